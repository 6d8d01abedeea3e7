//! A client's connection that a rule gives to a server (`attach-srv`): which server, and by which key. Must never hold the
//! connection.

use expression::sample::Context;
use policy::rule::Attach;

/// The server that a connection is given to.
pub struct Attached {
    /// Index of its backend, and of it there.
    pub(crate) server: (usize, usize),
    /// The key by which requests ask for the connection; empty where it has no name.
    pub(crate) key: Vec<u8>,
}

impl Attached {
    /// As a rule says.
    pub fn by(attach: &Attach, context: &Context<'_>) -> Self {
        let name = attach.name.as_ref().and_then(|name| name.evaluate(context)).and_then(|name| context.as_text(name));
        Self { server: (attach.backend, attach.server), key: name.map(named).unwrap_or_default() }
    }
}

/// The key of a connection that differs from others in its name alone.
pub fn named(name: &[u8]) -> Vec<u8> {
    [b"n", name].concat()
}
