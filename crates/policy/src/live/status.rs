//! What a server's administrator and its checks say of it, and what follows from that (management manual, "set server").

use base::moment::Moment;

use crate::balance::Load;

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

/// Everything about a server at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerStatus {
    /// What its administrator wants.
    pub admin: Admin,
    /// What its checks say; true without any.
    pub up: bool,
    /// Its checks say that it wants no new clients.
    pub stopping: bool,
    /// When it last began or ceased to be usable; `None`: never since the start.
    pub changed: Option<Moment>,
    /// Its weight, without regard to `slowstart`.
    pub weight: u32,
    /// The weight that the configuration gave it.
    pub initial_weight: u32,
    /// How much of its share it has by now, per cent (`slowstart`).
    pub throttle: u32,
    /// Requests that it has to do with, and its limits.
    pub load: Load,
    /// Whether the balance gives it requests.
    pub takes_part: bool,
    /// Whether it is a backup.
    pub backup: bool,
}
