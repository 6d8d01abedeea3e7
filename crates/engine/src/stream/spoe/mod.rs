//! Stream processing by external agents (`filter spoe`, SPOE.txt): the messages, the connections, and applying the answers. A
//! request waits for an agent as it waits for a script. Must never read a byte of a message.

mod asking;
mod links;
mod run;

pub(crate) use links::AgentLinks;
pub(crate) use run::Run;

use std::sync::atomic::{AtomicU64, Ordering};

use wire::spop::Status;

/// Counters of an engine since the start of the process, for its log lines.
#[derive(Debug, Default)]
pub struct AgentCounters {
    errors: AtomicU64,
    processed: AtomicU64,
}

impl AgentCounters {
    /// Counts an event or group, and returns the numbers of errors and of all so far.
    fn count(&self, failed: bool) -> (u64, u64) {
        let errors = self.errors.fetch_add(u64::from(failed), Ordering::Relaxed) + u64::from(failed);
        (errors, self.processed.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// Reason of a failed event or group (SPOE.txt, "option set-on-error").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// The processing timeout expired.
    Timeout,
    /// The frame is too large.
    TooBig,
    /// This process has no resources for it.
    Resource,
    /// The connection failed, or the agent reported an error.
    Protocol(Status),
}

impl Failure {
    /// Returns the error code for variables and log lines.
    fn code(self) -> i64 {
        match self {
            Self::Timeout => 1,
            Self::Resource => 2,
            Self::TooBig => 3,
            Self::Protocol(status) => 256 + i64::from(status.0),
        }
    }
}
