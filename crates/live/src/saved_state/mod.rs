//! What servers were before this process began: the text of "show servers state", kept in a file (management manual,
//! section 9.3; configuration manual, "server-state-file"). Must never open a file, and never change a server.

mod entry;
mod file;

use std::net::IpAddr;
use std::time::Duration;

use crate::health::CheckStatus;

pub use file::{Entry, Flaw, entries};

/// What a server did (`srv_op_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormerOperation {
    /// It did not serve.
    Stopped,
    /// It had come back, and got a part of its share (`slowstart`).
    Starting,
    /// It served.
    Running,
    /// It served, and wanted no new clients.
    Stopping,
}

/// What its administrator wanted (`srv_admin_state`), as far as it outlives a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FormerAdmin {
    /// 0x01: maintenance, by order or by the configuration.
    pub maintenance: bool,
    /// 0x04: the configuration of then wanted maintenance.
    pub configured: bool,
    /// 0x08: drained by order.
    pub drain: bool,
    /// 0x02 and 0x20: in maintenance for a reason that this process finds out for itself.
    pub passing: bool,
    /// 0x40: its name was given by order.
    pub renamed: bool,
}

/// All that is taken over of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedState {
    /// What it did.
    pub operation: FormerOperation,
    /// What was wanted of it.
    pub admin: FormerAdmin,
    /// Its weight.
    pub weight: u32,
    /// The weight that it was configured with.
    pub initial_weight: u32,
    /// How long ago it last began or ceased to serve.
    pub since: Duration,
    /// How its last check ended.
    pub status: CheckStatus,
    /// How far its checks had counted.
    pub level: u32,
    /// Its checks were not switched off; `None`: it had none.
    pub checked: Option<bool>,
    /// Its agent was not switched off; `None`: it had none.
    pub asked: Option<bool>,
    /// The name that its address came from.
    pub fqdn: Option<Box<str>>,
    /// Its port.
    pub port: Option<u16>,
    /// The service that it stood for.
    pub service: Option<Box<str>>,
    /// Where its checks went, and its agent was: as written, for they are looked at where they are taken over.
    pub targets: FormerTargets,
}

/// Where checks went, as written; `None`: nothing was.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct FormerTargets {
    pub check_port: Option<Box<str>>,
    pub check_address: Option<Box<str>>,
    pub agent_address: Option<Box<str>>,
    pub agent_port: Option<Box<str>>,
}

impl Entry {
    /// The address that the server had.
    pub fn address(&self) -> Option<IpAddr> {
        self.field(file::Field::Address).parse().ok()
    }
}
