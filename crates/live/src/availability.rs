//! Whether a server serves, in one word, and the numbers of servers by that. Must never decide what load balancing selects.

use std::ops::AddAssign;

use super::{Admin, ServerStatus};
use crate::health::Operation;

/// Whether a server serves, and otherwise the first reason that it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    /// Load balancing may select it, or would if it were needed.
    Usable,
    /// Its checks exclude new clients.
    Stopping,
    /// Its administrator, its agent or the server that it tracks excludes new clients, or its weight is 0.
    Drain,
    /// Its checks, its agent or a command have it down.
    Down,
    /// `eject-outliers` excludes it.
    Ejected,
    /// In maintenance.
    Maintenance,
    /// Without an address.
    Unresolved,
}

impl ServerStatus {
    /// Returns whether it serves.
    pub fn availability(&self) -> Availability {
        match (self.admin, self.operation()) {
            _ if !self.resolved => Availability::Unresolved,
            (Admin::Maintenance, _) => Availability::Maintenance,
            _ if self.ejected => Availability::Ejected,
            (_, Operation::Down) => Availability::Down,
            (Admin::Drain, _) => Availability::Drain,
            (_, Operation::Stopping) => Availability::Stopping,
            _ if self.weight == 0 => Availability::Drain,
            _ => Availability::Usable,
        }
    }
}

/// Numbers of servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerCounts {
    pub usable: u32,
    /// Down or ejected.
    pub down: u32,
    /// In maintenance, or without an address.
    pub maintenance: u32,
    /// Draining or stopping.
    pub drain: u32,
}

impl ServerCounts {
    /// Counts a server.
    pub fn count(&mut self, availability: Availability) {
        *match availability {
            Availability::Usable => &mut self.usable,
            Availability::Down | Availability::Ejected => &mut self.down,
            Availability::Maintenance | Availability::Unresolved => &mut self.maintenance,
            Availability::Drain | Availability::Stopping => &mut self.drain,
        } += 1;
    }

    /// Returns the number of all servers.
    pub const fn total(&self) -> u32 {
        self.usable + self.down + self.maintenance + self.drain
    }
}

impl AddAssign for ServerCounts {
    fn add_assign(&mut self, more: Self) {
        self.usable += more.usable;
        self.down += more.down;
        self.maintenance += more.maintenance;
        self.drain += more.drain;
    }
}
