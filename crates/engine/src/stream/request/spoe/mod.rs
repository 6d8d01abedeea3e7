//! Stream processing by external agents (`filter spoe`, SPOE.txt): the messages, the connections, and applying the answers. A
//! request waits for an agent as it waits for a script. Must never read a byte of a message.

mod agent_request;
mod links;
mod run;

pub(crate) use run::Run;

use wire::spop::Status;

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
