//! The transitions of a server caused by checks, agents, traffic, administrators and tracked servers: those under a
//! backend's lock that are not requests. Must never run a check.

use super::server::ServerState;
use super::servers::Servers;
use super::{Admin, AdoptedState, TrackedState, Transition};
use crate::health::{Health, Operation, Pace, Report};
use base::moment::Moment;
use config::spec::{InitialState, OnError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The change of a server's state, and the wakers of requests that may proceed.
#[derive(Default)]
pub(super) struct StateChange {
    pub(super) transition: Option<Transition>,
    pub(super) wakers: Vec<Waker>,
}

/// One of a server's two checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checker {
    /// Its health check (`check`).
    Health,
    /// Its agent (`agent-check`).
    Agent,
}

impl Servers {
    /// Applies a change to a server's state, and updates the balancing.
    fn turn(&mut self, server: usize, now: Moment, change: impl FnOnce(&mut ServerState)) -> StateChange {
        let Some(before) = self.status(server) else { return StateChange::default() };
        let wakers = self.change_state(server, now, change);
        let transition = self.status(server).map(|after| Transition { before, after });
        StateChange { transition, wakers }
    }

    pub(super) fn set_admin(&mut self, server: usize, admin: Admin, now: Moment) -> StateChange {
        let is_pardoned = admin == Admin::Ready;
        if is_pardoned {
            self.pardon(server);
        }
        self.turn(server, now, |state| {
            (state.forced, state.ejected) = (admin, state.ejected && !is_pardoned);
        })
    }

    /// Records whether it has an address.
    pub(super) fn set_resolved(&mut self, server: usize, resolved: bool, now: Moment) -> StateChange {
        self.turn(server, now, |state| state.resolved = resolved)
    }

    /// Applies the state of the tracked server.
    pub(super) fn follow(&mut self, server: usize, leader: AdoptedState, now: Moment) -> StateChange {
        self.turn(server, now, |state| {
            state.inherited = leader.wanted;
            state.operation = leader.operation;
        })
    }

    /// Returns the state that tracking servers adopt.
    pub(super) fn standing(&self, server: usize) -> Option<AdoptedState> {
        let state = self.servers.get(server)?;
        let maintenance = state.admin() == Admin::Maintenance;
        let drain = state.forced == Admin::Drain || state.inherited.drain;
        Some(AdoptedState { operation: state.operation, wanted: TrackedState { maintenance, drain } })
    }

    /// Begins a check. False: the server must not be checked.
    pub(super) fn begin_check(&mut self, server: usize, checker: Checker) -> bool {
        let Some(state) = self.servers.get_mut(server) else { return false };
        let paused = checker == Checker::Health && state.admin() == Admin::Maintenance;
        let health = checked(state, checker).filter(|health| !paused && health.is_enabled());
        health.map(|health| health.begin()).is_some()
    }

    /// Ends a check: returns whether to log it, and what it changed.
    pub(super) fn end_check(
        &mut self,
        server: usize,
        checker: Checker,
        report: Report,
        now: Moment,
    ) -> (bool, StateChange) {
        let Some(health) = self.servers.get_mut(server).and_then(|state| checked(state, checker)) else {
            return (false, StateChange::default());
        };
        let was_conditional = health.is_conditional();
        let (wanted, told) = match checker {
            Checker::Health => health.end(report),
            Checker::Agent => health.end_of_agent(report),
        };
        // An agent cannot end the stopping state of the checks or an administrator, only its own.
        let stops = self.servers.get(server).is_some_and(|state| state.operation == Operation::Stopping);
        let held = checker == Checker::Agent && stops && wanted == Some(Operation::Up) && !was_conditional;
        let Some(wanted) = wanted.filter(|_| !held) else { return (told, StateChange::default()) };
        (told, self.turn_if(server, now, wanted))
    }

    /// Does nothing if the server is in that state already.
    fn turn_if(&mut self, server: usize, now: Moment, wanted: Operation) -> StateChange {
        let remains = |state: &ServerState| {
            let stops = wanted == Operation::Up && state.operation == Operation::Stopping;
            state.operation == wanted || stops && state.excludes_new_clients()
        };
        match self.servers.get(server).is_none_or(remains) {
            true => StateChange::default(),
            false => self.turn(server, now, |state| state.operate(wanted)),
        }
    }

    /// Records that observed traffic exceeded the error limit.
    pub(super) fn suspect(
        &mut self,
        server: usize,
        on_error: OnError,
        errors: u32,
        last: &str,
        now: Moment,
    ) -> (bool, StateChange) {
        let none = (false, StateChange::default());
        let Some(state) = self.servers.get_mut(server).filter(|state| state.admin() != Admin::Maintenance) else {
            return none;
        };
        let Some(health) = state.health.as_mut().filter(|health| health.is_enabled()) else { return none };
        let (wanted, told) = health.suspect(on_error, errors, last);
        let watcher = state.watcher.take();
        let mut change = match wanted {
            Some(wanted) => self.turn_if(server, now, wanted),
            None => StateChange::default(),
        };
        change.wakers.extend(watcher);
        (told, change)
    }

    /// Ready when the next health check of a server is due earlier than scheduled.
    pub(super) fn poll_hurry(&mut self, server: usize, cx: &Context<'_>) -> Poll<()> {
        let Some(state) = self.servers.get_mut(server) else { return Poll::Ready(()) };
        if state.health.as_ref().is_none_or(|health| health.is_hurried()) {
            return Poll::Ready(());
        }
        if state.watcher.as_ref().is_none_or(|known| !known.will_wake(cx.waker())) {
            state.watcher = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Forces the operational state of a server on behalf of one of its checks, by a command.
    pub(super) fn force(&mut self, server: usize, checker: Checker, operation: Operation, now: Moment) -> StateChange {
        let Some(state) = self.servers.get_mut(server) else { return StateChange::default() };
        if let Some(health) = checked(state, checker) {
            health.force(operation);
        }
        let outcome = self.turn(server, now, |state| {
            state.operation = operation;
            if checker == Checker::Agent {
                state.trust(operation == Operation::Up);
                state.agent.iter_mut().for_each(|agent| agent.admit());
            }
        });
        // For an unchecked server, records the level that the command would have set.
        const UNCHECKED: u32 = 4;
        if let Some(state) = self.servers.get_mut(server).filter(|state| state.health.is_none())
            && checker == Checker::Health
        {
            state.former_level = if operation == Operation::Down { 0 } else { UNCHECKED };
        }
        outcome
    }

    /// Pauses or resumes one of a server's checks. False: the server has no such check.
    pub(super) fn enable(&mut self, server: usize, checker: Checker, enabled: bool) -> bool {
        let Some(state) = self.servers.get_mut(server) else { return false };
        let initial = state.initial;
        let Some(health) = checked(state, checker) else { return false };
        health.enable(enabled);
        if enabled && checker == Checker::Health && initial != InitialState::None {
            health.set_level(Health::new(health.thresholds().0, health.thresholds().1, initial).level());
        }
        true
    }

    /// Returns the state of one of a server's checks.
    pub(super) fn health(&self, server: usize, checker: Checker) -> Option<Health> {
        self.seen(server, checker).cloned()
    }

    /// The interval to the next check.
    pub(super) fn interval(&self, server: usize, checker: Checker, pace: &Pace) -> Option<Duration> {
        self.seen(server, checker).map(|health| health.interval(pace))
    }

    fn seen(&self, server: usize, checker: Checker) -> Option<&Health> {
        let state = self.servers.get(server)?;
        match checker {
            Checker::Health => state.health.as_deref(),
            Checker::Agent => state.agent.as_deref(),
        }
    }
}

fn checked(state: &mut ServerState, checker: Checker) -> Option<&mut Health> {
    match checker {
        Checker::Health => state.health.as_deref_mut(),
        Checker::Agent => state.agent.as_deref_mut(),
    }
}
