//! The server of a request with a link to it, or why there is none. Must never choose a server.

use conn::link::Link;

use crate::stream_state::failure::Failure;
use crate::stream_state::{Cause, Outcome, Phase};
use crate::worker::Slot;

/// The status of an answer that sends the client to the server itself (`redir`).
pub const REDIRECT: i32 = 302;

/// A server's slot and a link to it.
pub struct Target {
    /// The slot.
    pub slot: Slot,
    /// The link.
    pub link: Link,
}

impl Target {
    /// Ends the request on its link, which carries no other after it.
    pub fn abort(mut self) -> Self {
        self.link.carrier.abort();
        self
    }
}

/// Why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// How it is logged.
    pub outcome: Outcome,
    /// The status for an HTTP client; -1: none is sent.
    pub status: i32,
}

impl Refusal {
    pub(super) const fn new(cause: Cause, phase: Phase, status: i32) -> Self {
        Self { outcome: Outcome::new(cause, phase), status }
    }
}

impl From<Refusal> for Failure {
    fn from(Refusal { outcome, status }: Refusal) -> Self {
        Self { outcome, status, page: status > 0 }
    }
}
