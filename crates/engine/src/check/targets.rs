//! Where checks and agents are to be found since an order of the runtime API said so (management manual, "set server …
//! check-addr", "agent-addr" and their kin). Must never open a connection.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// What orders have changed of one check; the rest is as configured.
#[derive(Debug, Clone, Default)]
pub struct Orders {
    /// The address.
    pub address: Option<IpAddr>,
    /// The port.
    pub port: Option<u16>,
    /// What is sent first; agents only.
    pub send: Option<Box<[u8]>>,
}

/// The orders of all servers, by their serial numbers.
#[derive(Debug, Default)]
pub struct Targets {
    /// Takes no lock for unchanged servers.
    is_set: AtomicBool,
    checks: Mutex<BTreeMap<usize, Orders>>,
    agents: Mutex<BTreeMap<usize, Orders>>,
}

impl Targets {
    /// Those of a server's health check.
    pub fn check(&self, serial: usize) -> Orders {
        self.of(&self.checks, serial)
    }

    /// Those of its agent.
    pub fn agent(&self, serial: usize) -> Orders {
        self.of(&self.agents, serial)
    }

    /// Changes those of a server's health check.
    pub fn change_check(&self, serial: usize, change: impl FnOnce(&mut Orders)) {
        self.change(&self.checks, serial, change);
    }

    /// Changes those of its agent.
    pub fn change_agent(&self, serial: usize, change: impl FnOnce(&mut Orders)) {
        self.change(&self.agents, serial, change);
    }

    /// Nothing was ever ordered for a server.
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
