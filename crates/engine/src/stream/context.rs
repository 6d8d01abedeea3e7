//! A request in progress, as the functions that serve it pass it on: its session, its client's connection and its state. Must
//! never serve a request.

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
