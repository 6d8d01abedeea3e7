//! The state under a backend's lock: its servers' loads, load balancing, queues, and all transitions. Plain data: it
//! neither locks nor wakes. Wakers are returned to the caller, which calls them after the lock is released.
//!
//! **Invariant** between any two transitions:
//! - no server available for load balancing has a free slot while a request is in the backend's queue;
//! - no server has a free slot while a request is in its own queue.

mod arrivals;
mod leased;
mod outliers;
mod warmth;

use super::load_limits::Ramps;
use super::outages::{LastChange, OutageReport, Outages};
use super::queue::{Queue, QueueOwner, WaiterId, Waiters};
use super::server::ServerState;
use super::slow_start;
use super::{
    Admin, BackendPlan, Counts, PickContext, Preference, Priority, QueuePositions, ServerCounts, ServerStatus, Setting,
};
use crate::health::Operation;
use balance::{Candidate, Change, Load, Loads, Pick, Row, State};
use base::moment::Moment;
use std::collections::BTreeMap;
use std::ops::Range;
use std::task::Waker;
use std::time::Duration;

/// The result of an assignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Slot(usize),
    Queued(WaiterId),
    Unavailable,
    QueueFull,
}

/// Everything under a backend's lock, in this order: the fields that every request writes come first and share a cache
/// line with the lock itself; then those that it only reads; then those written when requests are queued.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Servers {
    /// Requests served or queued.
    held: u32,
    /// Queued requests.
    waiting: u32,
    balance: State,
    loads: Loads,
    /// Number of servers available for load balancing.
    candidates: u32,
    /// The backup server that gets all requests because no other server can.
    backup: Option<usize>,
    allbackups: bool,
    /// Whether changed weights have an effect.
    heeds_weights: bool,
    row: &'static Row,
    ramps: Ramps,
    pub(super) servers: Vec<ServerState>,
    waiters: Waiters,
    queue: Queue,
    outages: Outages,
    outliers: Option<Box<outliers::Outliers>>,
    /// Slots that this process has leased from stores (`maxconn-store`), by server.
    leases: BTreeMap<usize, u32>,
}

impl Servers {
    /// Creates idle servers as configured.
    pub(super) fn new(backend: Option<&BackendPlan>) -> Self {
        let written = backend.map(|backend| backend.balance.clone()).unwrap_or_default();
        let hash = backend.map(|backend| backend.hash).unwrap_or_default();
        let (row, balance) = balance::find(&written, &hash);
        let configured = || backend.into_iter().flat_map(|backend| &backend.servers);
        let count = configured().count();
        let mut loads = Loads::new(count);
        let mut servers = Vec::with_capacity(count);
        let mut ramps = Ramps::new(backend.map_or(1, |backend| backend.fullconn));
        for (index, server) in configured().enumerate() {
            arrivals::enter(server, index, &mut loads, &mut ramps);
            servers.push(ServerState::new(server));
        }
        let mut state = Self {
            held: 0,
            waiting: 0,
            balance,
            loads,
            candidates: 0,
            backup: None,
            allbackups: backend.is_some_and(|backend| backend.allbackups),
            heeds_weights: row.heeds_weights(&hash),
            row,
            ramps,
            servers,
            waiters: Waiters::new(),
            queue: Queue::EMPTY,
            outages: Outages::default(),
            outliers: backend.and_then(|own| own.outliers).map(|own| Box::new(outliers::Outliers::new(own))),
            leases: BTreeMap::new(),
        };
        state.rebuild();
        state.set_limits();
        state
    }

    /// Selects a server for a request and takes a slot of it, or queues the request. Also returns the wakers of earlier
    /// requests that get a slot because this one raises the limits.
    pub(super) fn assign(&mut self, request: &PickContext) -> (Outcome, Vec<Waker>) {
        self.held += 1;
        let wakers = self.follow_load();
        let outcome = self.place(request);
        if matches!(outcome, Outcome::Unavailable | Outcome::QueueFull) {
            self.release_load();
        }
        (outcome, wakers)
    }

    /// Takes a free slot of a server other than the excluded one, if the algorithm selects one.
    pub(super) fn assign_spare(&mut self, request: &PickContext) -> (Option<usize>, Vec<Waker>) {
        if self.candidates == 0 || self.candidates < 2 && request.exclude.is_some() {
            return (None, Vec::new());
        }
        self.held += 1;
        let wakers = self.follow_load();
        let picked = self.balance.pick(&self.pick_for(request), &self.loads);
        let spare = picked.filter(|server| Some(*server) != request.exclude && self.loads[*server].has_slot());
        match spare {
            Some(server) => {
                let load = self.loads[server];
                self.set_load(server, Load { served: load.served + 1, ..load });
            }
            None => self.release_load(),
        }
        (spare, wakers)
    }

    fn place(&mut self, request: &PickContext) -> Outcome {
        if let Some(server) = self.designated(request).or_else(|| self.preferred(request)) {
            return self.take_or_queue(server, request.priority);
        }
        if self.candidates == 0 {
            return Outcome::Unavailable;
        }
        match self.balance.pick(&self.pick_for(request), &self.loads) {
            Some(server) => self.take_or_queue(server, request.priority),
            None => self.join(QueueOwner::Backend, request.priority),
        }
    }

    /// Selects a server without taking a slot.
    pub(super) fn choose(&mut self, request: &PickContext) -> Option<usize> {
        match self.designated(request) {
            None if self.candidates > 0 => self.balance.pick(&self.pick_for(request), &self.loads),
            designated => designated,
        }
    }

    /// Returns the server that a request gets without load balancing. Requests for the single backup server are queued
    /// for that server.
    fn designated(&self, request: &PickContext) -> Option<usize> {
        let is_enabled = |server: &usize| {
            self.servers.get(*server).is_some_and(|server| {
                (request.forced && server.resolved && server.removed.is_none()) || server.is_usable()
            })
        };
        request.server.filter(is_enabled).or(self.backup)
    }

    /// Returns the server that the request prefers, if the algorithm allows it and its queue is short enough.
    fn preferred(&self, request: &PickContext) -> Option<usize> {
        let Preference { server, waiting } = request.prefer?;
        let (state, load) = (self.servers.get(server)?, self.loads[server]);
        let is_free = self.row.dynamic && !self.row.hashes && state.candidate;
        let is_near = load.has_slot() || (load.queued < waiting && load.has_queue_room());
        (is_free && is_near).then_some(server)
    }

    /// Raises limits that depend on the load, and serves requests queued because of them.
    fn follow_load(&mut self) -> Vec<Waker> {
        if self.ramps.is_settled(self.held) {
            return Vec::new();
        }
        self.set_limits();
        self.fill_free_slots()
    }

    /// Removes a request from the load: limits that depend on it shrink.
    fn release_load(&mut self) {
        self.held -= 1;
        if !self.ramps.is_settled(self.held) {
            self.set_limits();
        }
    }

    fn set_limits(&mut self) {
        let mut ramps = std::mem::replace(&mut self.ramps, Ramps::new(1));
        ramps.follow(self.held, |server, limit| {
            self.set_server_limit(server, limit);
        });
        self.ramps = ramps;
    }

    fn pick_for(&self, request: &PickContext) -> Pick {
        let hash = request.hash.filter(|_| self.row.hashes);
        Pick { hash, random: request.random, requests: self.held, avoid: request.exclude, now: request.priority.now }
    }

    /// Returns the server in whose queue a request would be.
    pub(super) fn bound_server(&mut self, request: &PickContext) -> Option<usize> {
        let pick = self.pick_for(request);
        let by_hash = if pick.hash.is_some() { self.balance.pick(&pick, &self.loads) } else { None };
        self.designated(request).or(by_hash)
    }

    fn take_or_queue(&mut self, server: usize, priority: Priority) -> Outcome {
        let load = self.loads[server];
        if load.has_slot() {
            self.set_load(server, Load { served: load.served + 1, ..load });
            Outcome::Slot(server)
        } else if load.has_queue_room() {
            self.join(QueueOwner::Server(server), priority)
        } else {
            Outcome::QueueFull
        }
    }

    fn join(&mut self, place: QueueOwner, priority: Priority) -> Outcome {
        self.waiting += 1;
        let waiter = match place {
            QueueOwner::Backend => self.waiters.join(&mut self.queue, place, priority),
            QueueOwner::Server(server) => self.waiters.join(&mut self.servers[server].queue, place, priority),
        };
        self.note_queue(place);
        Outcome::Queued(waiter)
    }

    /// Releases a slot of `server`: passes it to the next queued request, if there is one. The counts are as of when
    /// the slot was free.
    pub(super) fn release(&mut self, server: usize) -> (Counts, Option<Waker>) {
        self.release_load();
        let load = self.loads[server];
        let free = Load { served: load.served - 1, ..load };
        let counts = Counts { beconn: self.held, srv_conn: free.served };
        // If the limit was lowered since, the slot may exceed it.
        let next = if self.waiting > 0 && free.has_slot() { self.next_for(server) } else { None };
        match next {
            Some(place) => (counts, self.grant(place, server)),
            None => {
                self.set_load(server, free);
                (counts, None)
            }
        }
    }

    /// Returns the queue whose first request is next for a slot of `server`: the server's own or the backend's,
    /// whichever ranks first.
    fn next_for(&self, server: usize) -> Option<QueueOwner> {
        let state = &self.servers[server];
        let own = self.waiters.first_rank(&state.queue);
        let takes_any = state.candidate || self.backup == Some(server);
        let any = if takes_any { self.waiters.first_rank(&self.queue) } else { None };
        match (own, any) {
            (None, None) => None,
            (Some(own), Some(any)) if any < own => Some(QueueOwner::Backend),
            (None, Some(_)) => Some(QueueOwner::Backend),
            (Some(_), _) => Some(QueueOwner::Server(server)),
        }
    }

    /// Passes a counted slot to the first request of a queue.
    fn grant(&mut self, place: QueueOwner, server: usize) -> Option<Waker> {
        self.waiting -= 1;
        let waker = match place {
            QueueOwner::Backend => self.waiters.grant(&mut self.queue, server),
            QueueOwner::Server(_) => self.waiters.grant(&mut self.servers[server].queue, server),
        };
        self.note_queue(place);
        waker
    }

    /// Whether a queued request has been granted its slot; otherwise stores its waker.
    pub(super) fn poll(&mut self, waiter: WaiterId, waker: &Waker) -> bool {
        self.waiters.poll(waiter, waker)
    }

    pub(super) fn positions(&self, waiter: WaiterId) -> QueuePositions {
        self.waiters.positions(waiter, self.queue_at(self.waiters.place(waiter)))
    }

    /// Returns the server in whose queue a request is.
    pub(super) fn queued_at(&self, waiter: WaiterId) -> Option<usize> {
        match self.waiters.place(waiter) {
            Some(QueueOwner::Server(server)) => Some(server),
            Some(QueueOwner::Backend) | None => None,
        }
    }

    /// Removes a request with its granted slot from the queues.
    pub(super) fn take(&mut self, waiter: WaiterId) -> (Option<usize>, QueuePositions) {
        let left = self.waiters.leave(waiter, &mut self.queue);
        (left.granted, left.positions)
    }

    /// Removes a queued request; a slot granted to it is passed to the next.
    pub(super) fn give_up(&mut self, waiter: WaiterId) -> Option<Waker> {
        let place = self.waiters.place(waiter);
        let left = match place {
            Some(QueueOwner::Server(server)) => self.waiters.leave(waiter, &mut self.servers[server].queue),
            Some(QueueOwner::Backend) | None => self.waiters.leave(waiter, &mut self.queue),
        };
        if let Some(server) = left.granted {
            return self.release(server).1;
        }
        self.waiting -= 1;
        self.release_load();
        if let Some(place) = place {
            self.note_queue(place);
        }
        None
    }

    /// Whether requests bound to a server may be sent there.
    pub(super) fn is_usable(&self, server: usize) -> bool {
        self.servers.get(server).is_some_and(ServerState::is_usable)
    }

    /// Returns the settings of a server.
    pub(super) fn setting(&self, server: usize) -> Option<Setting> {
        self.servers
            .get(server)
            .map(|server| Setting { enabled: server.admin() != Admin::Maintenance, weight: server.weight })
    }

    /// Returns the lengths of the backend's own queue and of a server's queue.
    pub(super) fn queued(&self, server: Option<usize>) -> (u32, u32) {
        let server = server.and_then(|server| self.servers.get(server));
        (self.queue.length, server.map_or(0, |server| server.queue.length))
    }

    pub(super) fn counts(&self, server: Option<usize>) -> Counts {
        let server = server.filter(|server| *server < self.servers.len());
        Counts { beconn: self.held, srv_conn: server.map_or(0, |server| self.loads[server].served) }
    }

    /// Returns a server's load, and whether load balancing selects it.
    pub(super) fn load(&self, server: usize) -> Option<(Load, bool)> {
        let takes_part = |state: &ServerState| state.candidate || self.backup == Some(server);
        self.servers.get(server).map(|state| (self.loads[server], takes_part(state)))
    }

    pub(super) fn set_weight(&mut self, server: usize, weight: u32) -> Vec<Waker> {
        let heeds = self.heeds_weights;
        if let Some(state) = self.servers.get_mut(server) {
            state.weight = if heeds || weight == 0 { weight } else { state.initial_weight };
            self.rebuild();
        }
        self.fill_free_slots()
    }

    pub(super) fn set_limit(&mut self, server: usize, limit: Option<u32>) -> Vec<Waker> {
        let limit = limit.unwrap_or(u32::MAX);
        if self.ramps.set_most(server, limit) {
            self.set_limits();
        } else if server < self.servers.len() {
            self.set_server_limit(server, limit);
        }
        self.fill_free_slots()
    }

    /// Sets the limit of a server after `slowstart`.
    fn set_server_limit(&mut self, server: usize, limit: u32) {
        self.servers[server].limit = limit;
        let limit = self.servers[server].warming.share(limit).min(self.leased(server));
        if self.loads[server].limit != limit {
            self.set_load(server, Load { limit, ..self.loads[server] });
        }
    }

    /// Reports the outages of the backend (no usable server), as of `now`.
    pub(super) fn outages(&self, now: Moment) -> OutageReport {
        self.outages.report(now)
    }

    pub(super) fn preset_outages(&mut self, column: &str, value: u64, changed: Moment) {
        self.outages.preset(column, value, changed);
    }

    /// Records the start of the process: servers that are unusable count as unusable since then.
    pub(super) fn begin(&mut self, now: Moment) {
        for state in self.servers.iter_mut() {
            if state.changed.is_none() && !state.is_usable() {
                state.changed = Some(now);
            }
        }
        self.outages.begin(self.candidates == 0 && self.backup.is_none(), now);
    }

    /// Clears the number of transitions to down, their last time, and the number of failed checks: of one server, or of
    /// all and the backend itself.
    pub(super) fn clear_changes(&mut self, server: Option<usize>) {
        for (_, state) in
            self.servers.iter_mut().enumerate().filter(|(index, _)| server.is_none_or(|one| one == *index))
        {
            state.downs = 0;
            state.change_is_cleared = true;
            let checkers = [&mut state.health, &mut state.agent];
            checkers.into_iter().flatten().for_each(|health| health.forget_counts());
        }
        if server.is_none() {
            self.outages.clear();
        }
    }

    /// The total time that a server was unusable.
    pub(super) fn downtime(&self, server: usize, now: Moment) -> Duration {
        let Some(state) = self.servers.get(server) else { return Duration::ZERO };
        match state.changed {
            Some(since) if !state.is_usable() => state.downtime + now.saturating_since(since),
            _ => state.downtime,
        }
    }

    pub(super) fn change_state(
        &mut self,
        server: usize,
        now: Moment,
        change: impl FnOnce(&mut ServerState),
    ) -> Vec<Waker> {
        if let Some(state) = self.servers.get_mut(server) {
            let was_usable = state.is_usable();
            let was_out = state.admin() == Admin::Maintenance;
            let was_stopping = state.operation == Operation::Stopping;
            change(state);
            match (was_out, state.admin() == Admin::Maintenance) {
                (true, false) => state.restart(),
                (false, true) => state.pause(),
                _ => {}
            }
            state.downs += u64::from(was_usable && !state.is_usable());
            if was_usable != state.is_usable() {
                if let (false, Some(since)) = (was_usable, state.changed) {
                    state.downtime += now.saturating_since(since);
                }
                state.changed = Some(now);
                state.change_is_cleared = false;
            }
            match (was_usable, state.is_usable()) {
                (false, true) => state.warming.start(now),
                (true, false) => state.warming.end(),
                (true, true) if was_stopping && state.operation == Operation::Up => state.warming.start(now),
                _ => {}
            }
            self.settle(server, now);
        }
        self.fill_free_slots()
    }

    /// Updates the other servers after a server has changed.
    pub(super) fn settle(&mut self, server: usize, now: Moment) {
        let limit = self.servers[server].limit;
        self.set_server_limit(server, limit);
        self.rebuild();
        self.outages.note(self.candidates == 0 && self.backup.is_none(), now);
    }

    /// Whether changed weights have an effect.
    pub(super) fn heeds_weights(&self) -> bool {
        self.heeds_weights
    }

    pub(super) fn status(&self, server: usize) -> Option<ServerStatus> {
        let state = self.servers.get(server)?;
        Some(ServerStatus {
            admin: state.admin(),
            forced: state.forced,
            resolved: state.resolved,
            inherited: state.inherited,
            up: state.operation != Operation::Down,
            stopping: state.operation == Operation::Stopping,
            downs: state.downs,
            ejected: state.ejected,
            changed: LastChange { at: state.changed, is_cleared: state.change_is_cleared },
            former_level: state.former_level,
            weight: state.weight,
            effective_weight: if self.heeds_weights { state.warming.share(state.weight) } else { state.weight },
            initial_weight: state.initial_weight,
            throttle: state.warming.level() * 100 / slow_start::FULL,
            full_limit: state.limit,
            load: self.loads[server],
            takes_part: state.candidate || self.backup == Some(server),
            backup: state.backup,
        })
    }

    /// Counts the servers at these places; false: there are none from there on.
    pub(super) fn count_servers(&self, places: Range<usize>, counts: &mut ServerCounts) -> bool {
        for server in places.clone().take_while(|place| *place < self.servers.len()) {
            let is_present = self.servers[server].removed.is_none();
            if let Some(status) = self.status(server).filter(|_| is_present) {
                counts.count(status.availability());
            }
        }
        places.start < self.servers.len()
    }

    /// Recomputes the available servers: the usable ones with a weight; if there are none, the first usable backup
    /// server with a weight, or all of them.
    fn rebuild(&mut self) {
        for (index, server) in self.servers.iter_mut().enumerate() {
            if !server.is_usable() {
                self.waiters.move_all(&mut server.queue, &mut self.queue);
                self.loads[index].queued = 0;
            }
            server.candidate = !server.backup && server.is_balanced();
        }
        if self.allbackups && !self.servers.iter().any(|server| server.candidate) {
            for server in &mut self.servers {
                server.candidate = server.is_balanced();
            }
        }
        // All weights are scaled to integers if some are fractions (`slowstart`).
        let is_warming = |server: &ServerState| server.candidate && server.warming.level() < slow_start::FULL;
        let scale = if self.heeds_weights && self.servers.iter().any(is_warming) { slow_start::FULL } else { 1 };
        let candidates: Vec<Candidate> = (0..)
            .zip(&self.servers)
            .filter(|(_, server)| server.candidate)
            .map(|(index, server)| Candidate {
                server: index,
                weight: if scale == 1 { server.weight } else { server.weight * server.warming.level() },
                scale,
                id: server.id,
                place: server.place,
            })
            .collect();
        let can_stand_in = |server: &ServerState| server.backup && server.is_balanced();
        self.backup = if candidates.is_empty() { self.servers.iter().position(can_stand_in) } else { None };
        self.candidates = candidates.len() as u32;
        self.balance.rebuild(&candidates, self.servers.len());
        for Candidate { server, .. } in candidates {
            let load = self.loads[server];
            self.balance.on_load(server, Change { load, turned: load.has_slot() });
        }
    }

    /// After a change: serves the queued requests that can be served now.
    pub(super) fn fill_free_slots(&mut self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        for server in 0..self.servers.len() {
            while self.waiting > 0
                && self.loads[server].has_slot()
                && let Some(place) = self.next_for(server)
            {
                let load = self.loads[server];
                self.set_load(server, Load { served: load.served + 1, ..load });
                wakers.extend(self.grant(place, server));
            }
        }
        wakers
    }

    /// Updates the queue length in the load.
    fn note_queue(&mut self, place: QueueOwner) {
        if let QueueOwner::Server(server) = place {
            self.set_load(server, Load { queued: self.servers[server].queue.length, ..self.loads[server] });
        }
    }

    fn set_load(&mut self, server: usize, load: Load) {
        let before = std::mem::replace(&mut self.loads[server], load);
        if self.servers[server].candidate {
            self.balance.on_load(server, Change { load, turned: before.has_slot() != load.has_slot() });
        }
    }

    fn queue_at(&self, place: Option<QueueOwner>) -> &Queue {
        match place {
            Some(QueueOwner::Server(server)) => &self.servers[server].queue,
            Some(QueueOwner::Backend) | None => &self.queue,
        }
    }
}

#[cfg(test)]
mod tests;
