//! Slots of servers that are leased from a store (`maxconn-store`; Weir's own), so that `maxconn` holds over several nodes. A task of
//! the engine reports what a node holds and needs, and the store answers with the slots that it may use. The result is the server's
//! limit under its backend's lock, so that requests know nothing of leases. Must never hold more slots than `maxconn`, never give
//! slots back that are still in use, and never read a clock.

mod lease;
mod report;
#[cfg(test)]
mod tests;

pub use report::{Claim, SlotGrant, SlotReading, SlotReport, StoreState};

use crate::ProxyState;
use base::AppendOnlyVec;
use base::moment::Moment;
use config::spec::LostMode;
use lease::Lease;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often servers are looked at.
pub const TICK: Duration = Duration::from_millis(20);

/// A server whose slots are leased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotPlan {
    /// The index of its proxy, and its index in it.
    pub proxy: usize,
    pub server: usize,
    /// Index of its store in the program.
    pub store: usize,
    /// `backend/server`, which all nodes have in common.
    pub name: Box<str>,
    /// `lost`.
    pub lost: LostMode,
}

/// The servers of a process whose slots are leased.
#[derive(Debug, Default)]
pub struct LeasedServers(Box<[LeasedServer]>);

impl LeasedServers {
    /// Creates leases without slots.
    pub fn new(plans: Vec<SlotPlan>) -> Self {
        Self(plans.into_iter().map(|plan| LeasedServer { plan, lease: Mutex::default() }).collect())
    }

    /// Takes all slots from the servers: they serve nothing until a store has answered.
    pub fn begin(&self, proxies: &AppendOnlyVec<Arc<ProxyState>>) {
        for server in &self.0 {
            if let Some(proxy) = proxies.get(server.plan.proxy) {
                server.apply(proxy);
            }
        }
    }

    /// Returns a server.
    pub fn get(&self, index: usize) -> Option<&LeasedServer> {
        self.0.get(index)
    }

    /// Whether a process that ends has given all slots back, or has none that a store counts.
    pub fn have_left(&self) -> bool {
        self.0.iter().all(LeasedServer::has_left)
    }

    /// Returns the servers of a store, with their indices.
    pub fn of_store(&self, store: usize) -> impl Iterator<Item = (usize, &LeasedServer)> {
        self.0.iter().enumerate().filter(move |(_, server)| server.plan.store == store)
    }
}

/// A server whose slots are leased, and its lease. One task of the process drives it.
#[derive(Debug)]
pub struct LeasedServer {
    pub plan: SlotPlan,
    lease: Mutex<Lease>,
}

impl LeasedServer {
    /// Every change is a single step, so a panic elsewhere does not corrupt it.
    fn lease(&self) -> MutexGuard<'_, Lease> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the limit of the server that follows from the lease. Returns its load; `None`: it was removed.
    fn apply(&self, proxy: &ProxyState) -> Option<SlotReading> {
        let slots = self.lease().slots(self.plan.lost);
        // The limit is set before the load is read: what the node reports as given back cannot be taken again.
        let reading = proxy.lease_slots(self.plan.server, slots);
        self.lease().note(reading);
        reading
    }

    /// Follows the time, the state of the store and the load. Returns the claim that is to be sent, if one is due. A process that
    /// ends (`is_leaving`) holds what its requests need. Call it once per [`TICK`].
    pub fn tick(&self, proxy: &ProxyState, store: StoreState, now: Moment, is_leaving: bool) -> Option<Claim> {
        self.lease().follow(store, now);
        let reading = self.apply(proxy)?;
        let is_due = self.lease().begin_claim(store, reading, now, is_leaving);
        if !is_due {
            return None;
        }
        // A lease that was lost may have had more slots than are claimed.
        let (most, reading) = (reading.most, self.apply(proxy)?);
        if reading.most != most {
            // `maxconn` was changed meanwhile: the next call claims by the new one.
            return None;
        }
        Some(self.lease().claim(self.plan.lost, reading, now, is_leaving))
    }

    /// Applies the answer to a claim.
    pub fn settle(&self, proxy: &ProxyState, claim: &Claim, grant: SlotGrant, now: Moment) {
        self.lease().settle(claim, grant, now);
        self.apply(proxy);
    }

    /// Whether a process that ends has given its slots back, or has none that the store counts.
    fn has_left(&self) -> bool {
        self.lease().has_left()
    }

    /// Ends a claim that has no answer.
    pub fn forget(&self, claim: &Claim) {
        self.lease().forget(claim);
    }

    /// Returns the state of the lease.
    pub fn report(&self) -> SlotReport {
        self.lease().report(self.plan.lost)
    }
}
