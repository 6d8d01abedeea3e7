//! Servers added and removed while requests are served. Must never reuse an index unless the caller guarantees that
//! there are no references to the former server, and never remove a server with requests.

use super::Servers;
use crate::load_limits::Ramps;
use crate::server::ServerState;
use crate::{Admin, Removal, ServerPlan};
use balance::{Load, Loads};
use base::moment::Moment;

/// Number of servers up to which no room is kept for more.
const FEW: usize = 4;

/// Sets the limits of a server.
pub(super) fn enter(server: &ServerPlan, index: usize, loads: &mut Loads, ramps: &mut Ramps) {
    loads[index].limit = server.maxconn.unwrap_or(u32::MAX);
    loads[index].maxqueue = server.maxqueue.unwrap_or(u32::MAX);
    if let (Some(least), Some(most)) = (server.minconn, server.maxconn) {
        ramps.add(index, least, most);
    }
}

/// The initial state of an added server: in maintenance, with disabled checks.
fn arrival(server: &ServerPlan, now: Moment) -> ServerState {
    let mut state = ServerState::new(server);
    state.forced = Admin::Maintenance;
    for health in state.health.iter_mut().chain(&mut state.agent) {
        health.enable(false);
    }
    state.changed = Some(now);
    state.former_level = server.unchecked_level;
    state
}

impl Servers {
    /// Adds a server, in maintenance. False: its index is not the next one.
    pub(crate) fn add(&mut self, server: &ServerPlan, now: Moment) -> bool {
        let index = self.servers.len();
        if server.index != index {
            return false;
        }
        self.loads.grow(index + 1);
        enter(server, index, &mut self.loads, &mut self.ramps);
        if index < FEW {
            self.servers.reserve_exact(1);
        }
        self.servers.push(arrival(server, now));
        self.set_limits();
        self.rebuild();
        true
    }

    /// Returns since when the index of a removed server is free.
    pub(crate) fn removed(&self, server: usize) -> Option<Moment> {
        self.servers.get(server)?.removed
    }

    /// The number of servers that had an index before the current one.
    pub(crate) fn occupant(&self, server: usize) -> u32 {
        self.servers.get(server).map_or(0, |state| state.occupant)
    }

    /// Adds a server, in maintenance, at the index of a removed one. False: none was removed there.
    pub(crate) fn replace(&mut self, server: &ServerPlan, now: Moment) -> bool {
        let index = server.index;
        if self.removed(index).is_none() || self.loads[index].served > 0 {
            return false;
        }
        let occupant = self.servers[index].occupant.wrapping_add(1);
        self.servers[index] = ServerState { occupant, ..arrival(server, now) };
        self.loads[index] = Load::IDLE;
        enter(server, index, &mut self.loads, &mut self.ramps);
        if let Some(outliers) = &mut self.outliers {
            outliers.forget(index);
        }
        self.set_limits();
        self.rebuild();
        true
    }

    /// Whether a server may be removed: it is in maintenance, and has no requests.
    pub(crate) fn removal(&self, server: usize) -> Removal {
        match self.servers.get(server) {
            None => Removal::Unknown,
            Some(state) if state.removed.is_some() => Removal::Unknown,
            Some(state) if state.admin() != Admin::Maintenance => Removal::InService,
            Some(state) if self.loads[server].served > 0 || state.queue.length > 0 => Removal::Busy,
            Some(_) => Removal::Possible,
        }
    }

    /// Removes a server if possible.
    pub(crate) fn remove(&mut self, server: usize, now: Moment) -> Removal {
        let removal = self.removal(server);
        if removal == Removal::Possible {
            let state = &mut self.servers[server];
            (state.removed, state.health, state.agent) = (Some(now), None, None);
            state.watcher = None;
            self.ramps.remove(server);
            self.leases.remove(&server);
            self.set_limits();
            self.rebuild();
        }
        removal
    }
}
