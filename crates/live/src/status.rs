//! The administrative and operational state of a server (management manual, "set server").

use super::outages::LastChange;

use crate::health::Operation;
use balance::Load;

impl ServerStatus {
    /// Its operational state.
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

/// The administrative state of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Admin {
    /// Available.
    #[default]
    Ready,
    /// Not selected by load balancing; requests bound to it are accepted.
    Drain,
    /// Gets no requests; queued ones are redistributed.
    Maintenance,
}

/// The state inherited from the tracked server (`track`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrackedState {
    /// The tracked server is in maintenance.
    pub maintenance: bool,
    /// The tracked server is drained.
    pub drain: bool,
}

/// The state that tracking servers adopt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AdoptedState {
    pub operation: Operation,
    /// The administrative state, including that inherited from its own tracked server.
    pub wanted: TrackedState,
}

/// The states of a server before and after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    pub before: ServerStatus,
    pub after: ServerStatus,
}

/// The full status of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerStatus {
    /// Its effective administrative state, including that of the tracked server.
    pub admin: Admin,
    /// Set by its own administrator.
    pub forced: Admin,
    /// Inherited from the server that it tracks.
    pub inherited: TrackedState,
    /// It has an address; false while its name cannot be resolved.
    pub resolved: bool,
    /// Up by its checks; true without checks.
    pub up: bool,
    /// Its checks exclude new clients.
    pub stopping: bool,
    /// How often it became unusable.
    pub downs: u64,
    /// The health level that was restored from another process, or set by a command, until a change; otherwise 0.
    pub former_level: u32,
    /// Ejected by `eject-outliers`.
    pub ejected: bool,
    /// When it last became usable or unusable.
    pub changed: LastChange,
    /// Its weight, regardless of `slowstart`.
    pub weight: u32,
    /// Its current weight: reduced by `slowstart`, if the algorithm supports that.
    pub effective_weight: u32,
    /// The configured weight.
    pub initial_weight: u32,
    /// Its share during `slowstart` in percent.
    pub throttle: u32,
    /// `maxconn` after `slowstart`; `u32::MAX`: none.
    pub full_limit: u32,
    /// Its current requests, and its limits.
    pub load: Load,
    /// Whether load balancing selects it.
    pub takes_part: bool,
    /// Whether it is a backup.
    pub backup: bool,
}

/// Whether a server may be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It may be removed.
    Possible,
    /// There is no such server.
    Unknown,
    /// It is not in maintenance.
    InService,
    /// It has served or queued requests.
    Busy,
}
