//! What a server's administrator and its checks say of it, and what follows from that (management manual, "set server").

use super::outages::LastChange;

use crate::health::Operation;
use balance::Load;

impl ServerStatus {
    /// What it does.
    pub fn operation(&self) -> Operation {
        match (self.up, self.stopping) {
            (false, _) => Operation::Down,
            (true, true) => Operation::Stopping,
            (true, false) => Operation::Up,
        }
    }

    /// Whether it is drained, by its administrator or with the server that it tracks.
    pub fn is_drained(&self) -> bool {
        self.forced == Admin::Drain || self.inherited.drain
    }
}

/// What the administrator wants of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Admin {
    /// It serves.
    #[default]
    Ready,
    /// The balance gives it nothing; requests that are bound to it go on.
    Drain,
    /// It gets nothing; who waited for it goes elsewhere.
    Maintenance,
}

/// What a server has of the one that it tracks (`track`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Inherited {
    /// That one is in maintenance.
    pub maintenance: bool,
    /// That one is drained.
    pub drain: bool,
}

/// What others follow of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// What it does.
    pub operation: Operation,
    /// What its administrator wants, its own leader's included.
    pub wanted: Inherited,
}

/// A server before and after something happened to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// As it was.
    pub before: ServerStatus,
    /// As it is.
    pub after: ServerStatus,
}

/// Everything about a server at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerStatus {
    /// What is wanted of it: by its administrator, and of the server that it tracks.
    pub admin: Admin,
    /// What its own administrator wants.
    pub forced: Admin,
    /// What it has of the server that it tracks.
    pub inherited: Inherited,
    /// It has an address; false while its name cannot be resolved.
    pub resolved: bool,
    /// What its checks say; true without any.
    pub up: bool,
    /// Its checks say that it wants no new clients.
    pub stopping: bool,
    /// How often it ceased to be usable.
    pub downs: u64,
    /// The level of health that it was taken over with from another process, or that an order has brought it to, until
    /// something changes; 0 for others.
    pub former_level: u32,
    /// It gets nothing because it fails too often (`eject-outliers`).
    pub ejected: bool,
    /// When it last began or ceased to be usable.
    pub changed: LastChange,
    /// Its weight, without regard to `slowstart`.
    pub weight: u32,
    /// Its weight as it counts now: what `slowstart` leaves of it, where the balance heeds that.
    pub effective_weight: u32,
    /// The weight that the configuration gave it.
    pub initial_weight: u32,
    /// How much of its share it has by now, per cent (`slowstart`).
    pub throttle: u32,
    /// `maxconn` once it is warm; `u32::MAX`: none.
    pub full_limit: u32,
    /// Requests that it has to do with, and its limits.
    pub load: Load,
    /// Whether the balance gives it requests.
    pub takes_part: bool,
    /// Whether it is a backup.
    pub backup: bool,
}

/// Whether a server may be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It may.
    Possible,
    /// There is no such server any more.
    Unknown,
    /// It is not in maintenance.
    InService,
    /// It serves requests, or some wait for it.
    Busy,
}
