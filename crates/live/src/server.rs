//! What is kept of one server behind its backend's lock, beside its load: what is wanted of it, what its checks and its
//! agent say, and what follows from that. Must never know another server.

use super::queue::Queue;
use super::warming::Warming;
use super::{Admin, Inherited, ServerPlan};
use crate::health::{Health, Operation};
use base::moment::Moment;
use config::spec::InitialState;
use std::task::Waker;
use std::time::Duration;

/// What is written of a server when requests wait or the configuration changes; its load lies apart.
#[derive(Debug)]
pub(super) struct ServerState {
    pub(super) queue: Queue,
    /// As configured, for algorithms that heed no change.
    pub(super) initial_weight: u32,
    pub(super) weight: u32,
    pub(super) id: u32,
    /// What its places on the circle of a consistent hash are reckoned from.
    pub(super) place: u32,
    /// What its own administrator wants.
    pub(super) forced: Admin,
    /// What it has of the server that it tracks.
    pub(super) inherited: Inherited,
    /// It has an address.
    pub(super) resolved: bool,
    /// What it does.
    pub(super) operation: Operation,
    /// It tracks another server: what that one does, it does.
    pub(super) follows: bool,
    /// `init-state`.
    pub(super) initial: InitialState,
    /// What its checks say; `None`: it is not checked.
    pub(super) health: Option<Box<Health>>,
    /// What its agent says; `None`: it has none.
    pub(super) agent: Option<Box<Health>>,
    /// Who waits for its next check to come sooner.
    pub(super) watcher: Option<Waker>,
    pub(super) backup: bool,
    /// When it last began or ceased to be usable.
    pub(super) changed: Option<Moment>,
    /// `lastchg` was cleared after that change.
    pub(super) change_is_cleared: bool,
    /// How long it was not usable, up to the last change.
    pub(super) downtime: Duration,
    /// How often it ceased to be usable.
    pub(super) downs: u64,
    /// `slowstart`.
    pub(super) warming: Warming,
    /// Its limit once it is warm.
    pub(super) limit: u32,
    /// Takes part in the balance now.
    pub(super) candidate: bool,
    /// When the runtime API removed it: nothing brings it back, but another one may take its place.
    pub(super) removed: Option<Moment>,
    /// How many servers had its place before it: tasks that serve one of those end by that.
    pub(super) occupant: u32,
    /// It fails too often (`eject-outliers`).
    pub(super) ejected: bool,
    /// The level of health that it was taken over with, or that an order has brought it to, until something changes; 0
    /// for others. Of use where nothing checks it.
    pub(super) former_level: u32,
}

impl ServerState {
    /// As configured.
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
            inherited: Inherited::default(),
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

    /// What is wanted of it, by whomever; without an address it is in maintenance.
    pub(super) fn admin(&self) -> Admin {
        match (self.forced, self.inherited) {
            _ if !self.resolved => Admin::Maintenance,
            (Admin::Maintenance, _) | (_, Inherited { maintenance: true, .. }) => Admin::Maintenance,
            (Admin::Drain, _) | (_, Inherited { drain: true, .. }) => Admin::Drain,
            (Admin::Ready, _) => Admin::Ready,
        }
    }

    /// Whether requests that are bound to it may go there.
    pub(super) fn is_usable(&self) -> bool {
        self.operation != Operation::Down && self.admin() != Admin::Maintenance && !self.is_out()
    }

    /// Whether the balance may give it requests.
    pub(super) fn is_balanced(&self) -> bool {
        self.operation == Operation::Up && self.admin() == Admin::Ready && self.weight > 0 && !self.is_out()
    }

    /// Whether it gets nothing whatever its checks and its administrator say.
    fn is_out(&self) -> bool {
        self.removed.is_some() || self.ejected
    }

    /// Applies the result of a check or of an agent. Good news of one does not override what the other one says: a server
    /// is up only if neither has it down, and it stays stopping while its checks pass conditionally.
    pub(super) fn operate(&mut self, wanted: Operation) {
        let objects = |health: &Option<Box<Health>>| health.as_ref().is_some_and(|health| health.objects());
        if wanted == Operation::Down {
            self.operation = Operation::Down;
            self.trust(false);
        } else if !(objects(&self.health) || objects(&self.agent)) {
            let stops = self.health.as_ref().is_some_and(|health| health.is_conditional());
            self.operation = if stops { Operation::Stopping } else { wanted };
            self.trust(true);
        }
    }

    /// Sets whether the server counts as up before its checks have passed.
    pub(super) fn trust(&mut self, trusted: bool) {
        if let Some(health) = &mut self.health {
            health.trust(trusted);
        }
    }

    /// Begins a maintenance.
    pub(super) fn pause(&mut self) {
        let served = self.operation != Operation::Down;
        if served {
            self.former_level = 0;
        }
        if let Some(health) = &mut self.health {
            health.pause(served);
        }
    }

    /// Ends a maintenance: the server is as at the start, and down while its agent says so.
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
        self.operation = if down || objects { Operation::Down } else { Operation::Up };
        self.trust(self.operation == Operation::Up);
    }
}
