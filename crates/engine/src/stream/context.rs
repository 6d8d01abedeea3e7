//! A request in progress, as the functions that serve it pass it on: its session, its client's connection, its state and its
//! destination. Must never serve a request.

use policy::program::{Backend, Features, Proxy};

use crate::session::Session;
use crate::stream::client::Client;
use crate::worker::SharedStreamState;

/// A request in progress.
pub struct RequestContext<'s> {
    /// The session.
    pub session: &'s Session,
    /// The client's side of the session.
    pub client: &'s mut Client,
    /// The state of the stream.
    pub state: SharedStreamState,
}

/// Destination of a request.
#[derive(Clone, Copy)]
pub struct Route<'s> {
    /// The backend's proxy.
    pub proxy: &'s Proxy,
    /// The backend of that proxy.
    pub backend: &'s Backend,
    /// The combined features of frontend and backend.
    pub features: Features,
}
