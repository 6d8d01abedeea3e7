//! Reasons for which a request ends before a server has answered it. Must never send an answer.

use super::Outcome;

/// Reason for which the proxy ends a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// Termination state for the log.
    pub outcome: Outcome,
    /// Status for the log; -1: none.
    pub status: i32,
    /// Whether the client gets the error page of that status; otherwise the connection is closed without an answer.
    pub page: bool,
}

/// Rejection of a request by a filter.
#[derive(Debug)]
pub struct FilterRejection {
    /// Reason and termination state.
    pub failure: Failure,
    /// Response to be sent instead of an error page.
    pub text: Option<Vec<u8>>,
}

impl From<Failure> for FilterRejection {
    fn from(failure: Failure) -> Self {
        Self { failure, text: None }
    }
}
