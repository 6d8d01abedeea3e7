//! Why a request ends before a server has answered it. Must never send an answer.

use super::Outcome;

/// Why a request ends here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// How it is logged.
    pub outcome: Outcome,
    /// The status in the log; -1: none.
    pub status: i32,
    /// The client gets that status' page; else the connection just ends.
    pub page: bool,
}

/// Why a filter does not let a request go on.
#[derive(Debug)]
pub struct Refused {
    /// How it ends.
    pub failure: Failure,
    /// What the client gets in the place of a page.
    pub text: Option<Vec<u8>>,
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self { failure, text: None }
    }
}
