//! The state of one server under its backend's lock, except its load: administrative settings, the results of its
//! checks and its agent, and the resulting state. Must never access another server.

use super::queue::Queue;
use super::slow_start::Warming;
use super::{Admin, ServerPlan, TrackedState};
use crate::health::{Health, Operation};
use base::moment::Moment;
use config::spec::InitialState;
use std::task::Waker;
use std::time::Duration;

/// The state that changes when requests are queued or the configuration changes; the load is stored separately.
#[derive(Debug)]
pub(super) struct ServerState {
    pub(super) queue: Queue,
    /// As configured, for algorithms that ignore changes.
    pub(super) initial_weight: u32,
    pub(super) weight: u32,
    pub(super) id: u32,
    /// The seed of its positions in a consistent hash.
    pub(super) place: u32,
    /// Set by its own administrator.
    pub(super) forced: Admin,
    /// Inherited from the server that it tracks.
    pub(super) inherited: TrackedState,
    /// It has an address.
    pub(super) resolved: bool,
    pub(super) operation: Operation,
    /// It tracks another server, whose operational state it adopts.
    pub(super) follows: bool,
    /// `init-state`.
    pub(super) initial: InitialState,
    /// The state of its checks; `None`: it has none.
    pub(super) health: Option<Box<Health>>,
    /// The state of its agent; `None`: it has none.
    pub(super) agent: Option<Box<Health>>,
    /// Woken when its next check is due earlier than scheduled.
    pub(super) watcher: Option<Waker>,
    pub(super) backup: bool,
    /// When it last became usable or unusable.
    pub(super) changed: Option<Moment>,
    /// `lastchg` was cleared after that change.
    pub(super) change_is_cleared: bool,
    /// Total time unusable, up to the last change.
    pub(super) downtime: Duration,
    /// How often it became unusable.
    pub(super) downs: u64,
    /// `slowstart`.
    pub(super) warming: Warming,
    /// Its limit after `slowstart`.
    pub(super) limit: u32,
    /// It is available for load balancing.
    pub(super) candidate: bool,
    /// When the runtime API removed it: it cannot be restored, but its index can be reused.
    pub(super) removed: Option<Moment>,
    /// Number of servers that had its index before: ends tasks of the former servers.
    pub(super) occupant: u32,
    /// Ejected by `eject-outliers`.
    pub(super) ejected: bool,
    /// The health level that was restored, or set by a command, until a change; otherwise 0. Used without checks.
    pub(super) former_level: u32,
}

impl ServerState {
    /// Creates the configured state.
    pub(super) fn new(server: &ServerPlan) -> Self {
        let check = server.check.as_ref();
        let health = check.map(|check| Box::new(Health::new(check.rise, check.fall, check.initial)));
        let up = health.as_ref().is_none_or(|health| health.is_up());
        let mut state = Self {
            queue: Queue::EMPTY,
            initial_weight: server.weight,
            weight: server.weight,
            id: server.id,
            place: server.place,
            forced: if server.disabled { Admin::Maintenance } else { Admin::Ready },
            inherited: TrackedState::default(),
            resolved: server.resolved,
            operation: if up { Operation::Up } else { Operation::Down },
            follows: server.follows,
            initial: check.map_or(InitialState::None, |check| check.initial),
            health,
            agent: server.has_agent.then(|| Box::new(Health::of_agent())),
            watcher: None,
            changed: None,
            change_is_cleared: false,
            downtime: Duration::ZERO,
            downs: 0,
            warming: Warming::new(server.slowstart),
            limit: server.maxconn.unwrap_or(u32::MAX),
            backup: server.backup,
            candidate: false,
            removed: None,
            occupant: 0,
            ejected: false,
            former_level: 0,
        };
        if state.admin() == Admin::Maintenance {
            state.pause();
        }
        state
    }

    /// Returns its effective administrative state; without an address it is in maintenance.
    pub(super) fn admin(&self) -> Admin {
        match (self.forced, self.inherited) {
            _ if !self.resolved => Admin::Maintenance,
            (Admin::Maintenance, _) | (_, TrackedState { maintenance: true, .. }) => Admin::Maintenance,
            (Admin::Drain, _) | (_, TrackedState { drain: true, .. }) => Admin::Drain,
            (Admin::Ready, _) => Admin::Ready,
        }
    }

    /// Whether requests bound to it may be sent there.
    pub(super) fn is_usable(&self) -> bool {
        self.operation != Operation::Down && self.admin() != Admin::Maintenance && !self.is_out()
    }

    /// Whether load balancing may select it.
    pub(super) fn is_balanced(&self) -> bool {
        self.operation == Operation::Up && self.admin() == Admin::Ready && self.weight > 0 && !self.is_out()
    }

    /// Whether it gets no requests, whatever its checks and its administrator say.
    fn is_out(&self) -> bool {
        self.removed.is_some() || self.ejected
    }

    /// Applies the result of a check or of an agent. A success of one does not override the other: a server is up only
    /// if neither has it down, and it remains stopping while one of them excludes new clients.
    pub(super) fn operate(&mut self, wanted: Operation) {
        let objects = |health: &Option<Box<Health>>| health.as_ref().is_some_and(|health| health.objects());
        if wanted == Operation::Down {
            self.operation = Operation::Down;
            self.trust(false);
        } else if !(objects(&self.health) || objects(&self.agent)) {
            self.operation = if self.excludes_new_clients() { Operation::Stopping } else { wanted };
            self.trust(true);
        }
    }

    /// Whether its checks or its agent exclude new clients.
    pub(super) fn excludes_new_clients(&self) -> bool {
        self.health.iter().chain(&self.agent).any(|health| health.is_conditional())
    }

    /// Sets whether the server counts as up before its checks have passed.
    pub(super) fn trust(&mut self, trusted: bool) {
        if let Some(health) = &mut self.health {
            health.trust(trusted);
        }
    }

    pub(super) fn pause(&mut self) {
        let served = self.operation != Operation::Down;
        if served {
            self.former_level = 0;
        }
        if let Some(health) = &mut self.health {
            health.pause(served);
        }
    }

    /// Ends a maintenance: the server is as at the start, and down or stopping while its agent says so.
    pub(super) fn restart(&mut self) {
        if self.follows {
            return;
        }
        let mut down = false;
        if let Some(health) = self.health.as_mut().filter(|health| health.is_enabled()) {
            health.restart(self.initial);
            down = !health.is_up();
        }
        let objects = self.agent.as_ref().is_some_and(|agent| agent.objects());
        let stops = self.agent.as_ref().is_some_and(|agent| agent.is_conditional());
        self.operation = match (down || objects, stops) {
            (true, _) => Operation::Down,
            (false, true) => Operation::Stopping,
            (false, false) => Operation::Up,
        };
        self.trust(self.operation == Operation::Up);
    }
}
