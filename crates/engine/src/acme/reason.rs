//! Why a certificate was not obtained.

use std::time::Duration;

/// Why a certificate was not obtained.
#[derive(Debug)]
pub(super) struct Reason {
    text: String,
    /// Time for which the server refuses further requests of the account.
    pub refusal: Option<Duration>,
}

impl Reason {
    /// Returns a reason with the time for which the server refuses further requests of the account.
    pub(super) fn refused(text: String, refusal: Option<Duration>) -> Self {
        Self { text, refusal }
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Self { text, refusal: None }
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Why a certificate was not obtained, and when the next attempt is made.
pub(super) enum Failure {
    Refused {
        reason: Reason,
        /// The time until the next attempt of any node; `None`: this process decides.
        pause: Option<Duration>,
    },
    /// An attempt of another node has failed. This is the time until the next one.
    Paused(Duration),
}

impl From<Reason> for Failure {
    fn from(reason: Reason) -> Self {
        Self::Refused { reason, pause: None }
    }
}
