//! A client's connection that a rule assigns to a server (`attach-srv`): the server and the key of the connection. Must never
//! hold the connection.

use expression::sample::Context;
use policy::rule::Attach;

/// The server that a connection is assigned to.
pub struct AttachedServer {
    /// Index of its backend, and of the server in it.
    pub(crate) server: (usize, usize),
    /// Key by which requests select the connection; empty if it has no name.
    pub(crate) key: Vec<u8>,
}

impl AttachedServer {
    /// Evaluates an `attach-srv` action.
    pub fn by(attach: &Attach, context: &Context<'_>) -> Self {
        let name = attach.name.as_ref().and_then(|name| name.evaluate(context)).and_then(|name| context.as_text(name));
        Self { server: (attach.backend, attach.server), key: name.map(key_of_name).unwrap_or_default() }
    }
}

/// Returns the key of a connection that has only a name.
pub fn key_of_name(name: &[u8]) -> Vec<u8> {
    [b"n", name].concat()
}
