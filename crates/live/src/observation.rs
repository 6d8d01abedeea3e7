//! Results of requests at servers, reported by the streams. Must never decide the consequences.

use base::moment::Moment;
use std::time::Duration;

/// An observation of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// The latency of the response; `None`: there was none, or it was not measured.
    pub took: Option<Duration>,
    /// It failed: no connection, no valid response, a timeout, or a status that indicates a failure of the server.
    pub failed: bool,
}

/// The minimum latency of a failure, for latency-based selection: a server that fails immediately must not seem fast.
const FAILURE: Duration = Duration::from_secs(1);

impl Observation {
    /// The latency to be used for selection.
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
    /// Its error rate.
    Errors {
        /// Failed requests.
        failed: u32,
        /// All requests.
        of: u32,
    },
    /// It is slower than the others.
    Latency {
        /// Its mean latency.
        mean: Duration,
        /// The mean latency of the others.
        others: Duration,
    },
}

/// The ejection of a server: it gets no requests for a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ejection {
    pub reason: Reason,
    /// Its duration.
    pub period: Duration,
    /// The end of the ejection: call [`ProxyState::end_ejection`](super::ProxyState::end_ejection) with it then.
    pub until: Moment,
    /// Number of the backend's servers that are ejected now.
    pub ejected: usize,
    /// Number of servers that still get requests.
    pub left: usize,
}
