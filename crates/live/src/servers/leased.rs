//! Servers whose `maxconn` is leased from a store (`maxconn-store`): the load as a lease needs it, and the limit that results.
//! Must never decide how many slots a lease has.

use super::Servers;
use crate::lease::slots::SlotReading;
use std::task::Waker;

impl Servers {
    /// Sets the slots that a server may use at most; `u32::MAX`: as many as it has. Returns its load and the wakers of requests
    /// that get a slot; `None`: it was removed.
    pub(crate) fn lease(&mut self, server: usize, slots: u32) -> Option<(SlotReading, Vec<Waker>)> {
        // Another server may have the index of one that was removed. Its slots are not leased.
        let state = self.servers.get(server).filter(|state| state.removed.is_none() && state.occupant == 0)?;
        let limit = state.limit;
        let mut wakers = Vec::new();
        if self.leased(server) != slots {
            self.leases.insert(server, slots);
            self.set_server_limit(server, limit);
            wakers = self.fill_free_slots();
        }
        Some((self.slots(server), wakers))
    }

    /// Returns the slots that a server may use at most.
    pub(super) fn leased(&self, server: usize) -> u32 {
        self.leases.get(&server).copied().unwrap_or(u32::MAX)
    }

    fn slots(&self, server: usize) -> SlotReading {
        let state = &self.servers[server];
        let takes_any = state.candidate || self.backup == Some(server);
        let any = if takes_any { self.queue.length } else { 0 };
        SlotReading {
            most: self.ramps.most(server).unwrap_or(state.limit),
            local: state.warming.share(state.limit),
            served: self.loads[server].served,
            waiting: state.queue.length.saturating_add(any),
        }
    }
}
