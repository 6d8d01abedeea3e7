//! The cause of a change of a server's state. Must never apply a change.

use live::Checker;
use live::health::Report;

/// Source of an administrative command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Orderer {
    /// The runtime API.
    Cli,
    /// The statistics page.
    Page,
    /// The dashboard.
    Dashboard,
    /// A script.
    Script,
    /// The server's agent.
    Agent,
}

impl Orderer {
    /// Text for HAProxy's log.
    pub(super) const fn sentence(self) -> &'static str {
        match self {
            Self::Cli | Self::Agent => "changed from CLI",
            Self::Page | Self::Dashboard => "changed from Web interface",
            Self::Script => "changed from Lua script",
        }
    }
}

/// Cause of a state change.
#[derive(Debug, Clone, Copy)]
pub enum Cause<'a> {
    /// The result of a check.
    Check {
        report: &'a Report,
        checker: Checker,
        /// The log has the result already.
        is_logged: bool,
    },
    /// An administrative command.
    Order(Orderer),
    /// A change of the server that it tracks.
    Leader(&'a str),
    /// Name resolution, with the reason of a failure.
    Name(&'a str),
    /// State restored from the previous process.
    SavedServer,
}
