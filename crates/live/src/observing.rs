//! Outcomes of requests at servers, reported by the streams that carried them. Must never decide what that means.

use base::moment::Moment;
use std::time::Duration;

/// What was seen of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// How long the answer took to begin; `None`: there was none, or it was not timed.
    pub took: Option<Duration>,
    /// It failed: no connection, no answer that makes sense, none in time, or one that says that the server failed.
    pub failed: bool,
}

/// What a failure counts for at least, where servers are chosen by how long they take: a server that refuses at once must
/// not look quick.
const FAILURE: Duration = Duration::from_secs(1);

impl Seen {
    /// How long that counts for.
    pub(super) fn wait(self) -> Option<Duration> {
        match self.took {
            Some(took) if self.failed => Some(took.max(FAILURE)),
            None if self.failed => Some(FAILURE),
            took => took,
        }
    }
}

/// Why a server is ejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// So many requests failed.
    Errors {
        /// These.
        failed: u32,
        /// Of so many.
        of: u32,
    },
    /// It takes longer than the others.
    Latency {
        /// Its mean time until an answer.
        mean: Duration,
        /// Theirs.
        others: Duration,
    },
}

/// A server gets no requests for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ejection {
    /// Why.
    pub reason: Reason,
    /// For how long.
    pub period: Duration,
    /// The end of that: call [`ProxyState::end_ejection`](super::ProxyState::end_ejection) with it then.
    pub until: Moment,
    /// Servers of the backend that are ejected now.
    pub ejected: usize,
    /// Servers that get requests now.
    pub left: usize,
}
