//! The state of servers in the previous process: the output of "show servers state", saved in a file (management
//! manual, section 9.3; configuration manual, "server-state-file"). Must never open a file, and never change a server.

mod entry;
mod file;

use std::net::IpAddr;
use std::time::Duration;

use crate::health::CheckStatus;

pub use file::{Entry, FileError, entries};

/// The operational state of a server (`srv_op_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormerOperation {
    /// Down.
    Stopped,
    /// Up with a part of its share (`slowstart`).
    Starting,
    /// Up.
    Running,
    /// Up, but without new clients.
    Stopping,
}

/// The administrative state of a server (`srv_admin_state`), as far as it outlives a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FormerAdmin {
    /// 0x01: maintenance, by a command or by the configuration.
    pub maintenance: bool,
    /// 0x04: maintenance by the configuration of that time.
    pub configured: bool,
    /// 0x08: drained by a command.
    pub drain: bool,
    /// 0x02 and 0x20: in maintenance for a reason that the new process determines itself.
    pub passing: bool,
    /// 0x40: its host name was set by a command.
    pub renamed: bool,
}

/// The saved state of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedState {
    pub operation: FormerOperation,
    pub admin: FormerAdmin,
    pub weight: u32,
    /// The configured weight.
    pub initial_weight: u32,
    /// Time since its last change between usable and unusable.
    pub since: Duration,
    /// The result of its last check.
    pub status: CheckStatus,
    /// Its health level.
    pub level: u32,
    /// Whether its checks were enabled; `None`: it had none.
    pub checked: Option<bool>,
    /// Whether its agent was enabled; `None`: it had none.
    pub asked: Option<bool>,
    /// The host name of its address.
    pub fqdn: Option<Box<str>>,
    pub port: Option<u16>,
    /// Its SRV record.
    pub service: Option<Box<str>>,
    /// The targets of its checks and its agent, unparsed: they are validated when applied.
    pub targets: FormerTargets,
}

/// The targets of checks as written; `None`: not set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FormerTargets {
    pub check_port: Option<Box<str>>,
    pub check_address: Option<Box<str>>,
    pub agent_address: Option<Box<str>>,
    pub agent_port: Option<Box<str>>,
}

impl Entry {
    /// Returns the server's address.
    pub fn address(&self) -> Option<IpAddr> {
        self.field(file::Field::Address).parse().ok()
    }
}
