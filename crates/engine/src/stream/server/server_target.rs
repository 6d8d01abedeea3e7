//! The server of a request and a connection to it, or the reason why there is none. Must never choose a server.

use conn::link::Link;

use crate::stream_state::failure::Failure;
use crate::stream_state::{Cause, Outcome, Phase};
use crate::worker::Slot;

/// Status of a response that redirects the client to a server (`redir`).
pub const REDIRECT: i32 = 302;

/// A server's slot and a connection to it.
pub struct Target {
    pub slot: Slot,
    pub link: Link,
}

impl Target {
    /// Aborts the request; the connection is not reused.
    pub fn abort(mut self) -> Self {
        self.link.carrier.abort();
        self
    }
}

/// Reason for which a request gets no server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Termination state for the log.
    pub outcome: Outcome,
    /// The status for an HTTP client; -1: none is sent.
    pub status: i32,
}

impl Refusal {
    pub(in crate::stream) const fn new(cause: Cause, phase: Phase, status: i32) -> Self {
        Self { outcome: Outcome::new(cause, phase), status }
    }
}

impl From<Refusal> for Failure {
    fn from(Refusal { outcome, status }: Refusal) -> Self {
        Self { outcome, status, page: status > 0 }
    }
}
