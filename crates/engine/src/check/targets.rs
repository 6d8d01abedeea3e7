//! Check and agent addresses set by the runtime API (management manual, "set server … check-addr", "agent-addr" and related
//! commands). Must never open a connection.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Settings of one check that were changed; `None` fields are as configured.
#[derive(Debug, Clone, Default)]
pub struct Orders {
    pub address: Option<IpAddr>,
    pub port: Option<u16>,
    /// The string that is sent first; agent checks only.
    pub send: Option<Box<[u8]>>,
}

/// The changed settings of all servers, by serial number.
#[derive(Debug, Default)]
pub struct Targets {
    /// Set once any setting was changed, so that no lock is taken before.
    is_set: AtomicBool,
    checks: Mutex<BTreeMap<usize, Orders>>,
    agents: Mutex<BTreeMap<usize, Orders>>,
}

impl Targets {
    /// Returns the changed settings of a server's health check.
    pub fn check(&self, serial: usize) -> Orders {
        self.of(&self.checks, serial)
    }

    /// Returns the changed settings of a server's agent check.
    pub fn agent(&self, serial: usize) -> Orders {
        self.of(&self.agents, serial)
    }

    /// Changes the settings of a server's health check.
    pub fn change_check(&self, serial: usize, change: impl FnOnce(&mut Orders)) {
        self.change(&self.checks, serial, change);
    }

    /// Changes the settings of a server's agent check.
    pub fn change_agent(&self, serial: usize, change: impl FnOnce(&mut Orders)) {
        self.change(&self.agents, serial, change);
    }

    /// Removes the changed settings of a server.
    pub fn forget(&self, serial: usize) {
        for orders in [&self.checks, &self.agents] {
            orders.lock().unwrap_or_else(PoisonError::into_inner).remove(&serial);
        }
    }

    fn of(&self, orders: &Mutex<BTreeMap<usize, Orders>>, serial: usize) -> Orders {
        if !self.is_set.load(Ordering::Acquire) {
            return Orders::default();
        }
        orders.lock().unwrap_or_else(PoisonError::into_inner).get(&serial).cloned().unwrap_or_default()
    }

    fn change(&self, orders: &Mutex<BTreeMap<usize, Orders>>, serial: usize, change: impl FnOnce(&mut Orders)) {
        change(orders.lock().unwrap_or_else(PoisonError::into_inner).entry(serial).or_default());
        self.is_set.store(true, Ordering::Release);
    }
}
