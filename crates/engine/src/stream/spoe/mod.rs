//! Asks external agents about streams (`filter spoe`, SPOE.txt): what is asked, over which connection, and what an answer
//! changes. A request waits for an agent as it waits for a script. Must never read a byte of a message.

mod asking;
mod links;
mod run;

pub(crate) use links::AgentLinks;
pub(crate) use run::{Run, StreamAgents};

use std::sync::atomic::{AtomicU64, Ordering};

use wire::spop::Status;

/// What an engine has processed since the start of the process, for its log lines.
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

/// Why an event or a group was not processed (SPOE.txt, "option set-on-error").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// Not in time.
    Timeout,
    /// The frame is too large.
    TooBig,
    /// Something of this process is missing.
    Resource,
    /// The connection has failed, or the agent says so.
    Protocol(Status),
}

impl Failure {
    /// As variables and log lines have it.
    fn code(self) -> i64 {
        match self {
            Self::Timeout => 1,
            Self::Resource => 2,
            Self::TooBig => 3,
            Self::Protocol(status) => 256 + i64::from(status.0),
        }
    }
}
