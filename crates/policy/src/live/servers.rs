//! What the lock of a backend guards: its servers' loads, the balance and the queues, and every transition of them.
//! Plain data: it neither locks nor wakes. Wakers that are due are handed to the caller, who calls them after the lock.
//!
//! What holds between any two transitions:
//! - no server that takes part in the balance has a free slot while a request waits in the backend's queue;
//! - no server has a free slot while a request waits in its own queue.

use super::queue::{Place, Queue, WaiterId, Waiters};
use super::ramp::Ramps;
use super::{Counts, PickContext, Preference, QueuePositions, Setting};
use crate::balance::{self, Candidate, Change, Load, Loads, Pick, Row, State};
use crate::program;
use std::task::Waker;

/// What is written of a server when requests wait or the configuration changes; its load lies apart.
#[derive(Debug)]
struct ServerState {
    queue: Queue,
    /// As configured, for algorithms that heed no change.
    initial_weight: u32,
    weight: u32,
    id: u32,
    enabled: bool,
    backup: bool,
    /// Takes part in the balance now.
    candidate: bool,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Slot(usize),
    Queued(WaiterId),
    Unavailable,
    QueueFull,
}

/// Everything under a backend's lock, in this order: what every request writes comes first and shares a cache line with
/// the lock itself; then what it only reads; then what is written when requests wait.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Servers {
    /// Requests that are served or wait.
    held: u32,
    /// Requests that wait.
    waiting: u32,
    balance: State,
    loads: Loads,
    /// Servers that take part in the balance.
    candidates: u32,
    /// The one backup server that gets everything because no other server can.
    backup: Option<usize>,
    row: &'static Row,
    ramps: Ramps,
    servers: Vec<ServerState>,
    waiters: Waiters,
    queue: Queue,
}

impl Servers {
    /// Idle servers as configured.
    pub(super) fn new(backend: Option<&program::Backend>) -> Self {
        let (row, balance) = balance::find(&backend.map(|backend| backend.balance.clone()).unwrap_or_default());
        let configured = backend.map_or(&[][..], |backend| &backend.servers);
        let mut loads = Loads::new(configured.len());
        let mut servers = Vec::with_capacity(configured.len());
        let mut ramps = Ramps::new(backend.map_or(1, |backend| backend.fullconn));
        for (index, server) in configured.iter().enumerate() {
            loads[index].limit = server.maxconn.unwrap_or(u32::MAX);
            if let (Some(least), Some(most)) = (server.minconn, server.maxconn) {
                ramps.add(index, least, most);
            }
            loads[index].maxqueue = server.maxqueue.unwrap_or(u32::MAX);
            servers.push(ServerState {
                queue: Queue::EMPTY,
                initial_weight: server.weight,
                weight: server.weight,
                id: server.id,
                enabled: !server.disabled,
                backup: server.backup,
                candidate: false,
            });
        }
        let mut state = Self {
            held: 0,
            waiting: 0,
            balance,
            loads,
            candidates: 0,
            backup: None,
            row,
            ramps,
            servers,
            waiters: Waiters::new(),
            queue: Queue::EMPTY,
        };
        state.rebuild();
        state.set_limits();
        state
    }

    /// Chooses a server for a request and takes a slot of it, or queues the request. The wakers are those of requests
    /// that get a slot because this one makes the limits grow: they came before it.
    pub(super) fn assign(&mut self, request: &PickContext) -> (Outcome, Vec<Waker>) {
        self.held += 1;
        let wakers = self.follow_load();
        let outcome = self.place(request);
        if matches!(outcome, Outcome::Unavailable | Outcome::QueueFull) {
            self.let_go();
        }
        (outcome, wakers)
    }

    fn place(&mut self, request: &PickContext) -> Outcome {
        if let Some(server) = self.designated(request).or_else(|| self.preferred(request)) {
            return self.take_or_queue(server);
        }
        if self.candidates == 0 {
            return Outcome::Unavailable;
        }
        match self.balance.pick(&self.pick_for(request), &self.loads) {
            Some(server) => self.take_or_queue(server),
            None => self.join(Place::Backend),
        }
    }

    /// The server that a request gets without balancing. Requests for the lone backup server wait in its own queue.
    fn designated(&self, request: &PickContext) -> Option<usize> {
        let is_enabled = |server: &usize| self.servers.get(*server).is_some_and(|server| server.enabled);
        request.server.filter(is_enabled).or(self.backup)
    }

    /// The server that the request prefers, where the balance is free to choose and it need not wait there too long.
    fn preferred(&self, request: &PickContext) -> Option<usize> {
        let Preference { server, waiting } = request.prefer?;
        let (state, load) = (self.servers.get(server)?, self.loads[server]);
        let is_free = self.row.dynamic && !self.row.hashes && state.candidate;
        let is_near = load.has_slot() || (load.queued < waiting && load.has_queue_room());
        (is_free && is_near).then_some(server)
    }

    /// A request more: limits that follow the load grow, and whoever waited for that is served.
    fn follow_load(&mut self) -> Vec<Waker> {
        if self.ramps.is_settled(self.held) {
            return Vec::new();
        }
        self.set_limits();
        self.fill_free_slots()
    }

    /// A request less: limits that follow the load shrink.
    fn let_go(&mut self) {
        self.held -= 1;
        if !self.ramps.is_settled(self.held) {
            self.set_limits();
        }
    }

    fn set_limits(&mut self) {
        let mut ramps = std::mem::replace(&mut self.ramps, Ramps::new(1));
        ramps.follow(self.held, |server, limit| {
            if self.loads[server].limit != limit {
                self.set_load(server, Load { limit, ..self.loads[server] });
            }
        });
        self.ramps = ramps;
    }

    fn pick_for(&self, request: &PickContext) -> Pick {
        let hash = if self.row.hashes { request.source.map(balance::source_hash) } else { None };
        Pick { hash, random: request.random, avoid: request.exclude }
    }

    /// The server in whose queue a request would have to wait.
    pub(super) fn bound_server(&mut self, request: &PickContext) -> Option<usize> {
        let pick = self.pick_for(request);
        let by_hash = if pick.hash.is_some() { self.balance.pick(&pick, &self.loads) } else { None };
        self.designated(request).or(by_hash)
    }

    fn take_or_queue(&mut self, server: usize) -> Outcome {
        let load = self.loads[server];
        if load.has_slot() {
            self.set_load(server, Load { served: load.served + 1, ..load });
            Outcome::Slot(server)
        } else if load.has_queue_room() {
            self.join(Place::Server(server))
        } else {
            Outcome::QueueFull
        }
    }

    fn join(&mut self, place: Place) -> Outcome {
        self.waiting += 1;
        let waiter = match place {
            Place::Backend => self.waiters.join(&mut self.queue, place),
            Place::Server(server) => self.waiters.join(&mut self.servers[server].queue, place),
        };
        self.note_queue(place);
        Outcome::Queued(waiter)
    }

    /// A slot of `server` is given back: to the next who waits, or to nobody. The counts are those of the moment when
    /// the slot was free.
    pub(super) fn release(&mut self, server: usize) -> (Counts, Option<Waker>) {
        self.let_go();
        let load = self.loads[server];
        let free = Load { served: load.served - 1, ..load };
        let counts = Counts { beconn: self.held, srv_conn: free.served };
        // With a limit that was lowered meanwhile the slot may be one too many.
        let next = if self.waiting > 0 && free.has_slot() { self.next_for(server) } else { None };
        match next {
            Some(place) => (counts, self.grant(place, server)),
            None => {
                self.set_load(server, free);
                (counts, None)
            }
        }
    }

    /// The queue whose first request is next for a slot of `server`: the older one of its own and the backend's.
    fn next_for(&self, server: usize) -> Option<Place> {
        let state = &self.servers[server];
        let own = self.waiters.first_arrival(&state.queue);
        let takes_any = state.candidate || self.backup == Some(server);
        let any = if takes_any { self.waiters.first_arrival(&self.queue) } else { None };
        match (own, any) {
            (None, None) => None,
            (Some(own), Some(any)) if any < own => Some(Place::Backend),
            (None, Some(_)) => Some(Place::Backend),
            (Some(_), _) => Some(Place::Server(server)),
        }
    }

    /// Hands a slot that is counted already to the first of a queue.
    fn grant(&mut self, place: Place, server: usize) -> Option<Waker> {
        self.waiting -= 1;
        let waker = match place {
            Place::Backend => self.waiters.grant(&mut self.queue, server),
            Place::Server(_) => self.waiters.grant(&mut self.servers[server].queue, server),
        };
        self.note_queue(place);
        waker
    }

    /// Whether a request that waits has its slot by now; else its waker is kept.
    pub(super) fn poll(&mut self, waiter: WaiterId, waker: &Waker) -> bool {
        self.waiters.poll(waiter, waker)
    }

    pub(super) fn positions(&self, waiter: WaiterId) -> QueuePositions {
        self.waiters.positions(waiter, self.queue_at(self.waiters.place(waiter)))
    }

    /// The server whose queue a request stands in.
    pub(super) fn queued_at(&self, waiter: WaiterId) -> Option<usize> {
        match self.waiters.place(waiter) {
            Some(Place::Server(server)) => Some(server),
            Some(Place::Backend) | None => None,
        }
    }

    /// A request that has its slot leaves the queues with it.
    pub(super) fn take(&mut self, waiter: WaiterId) -> (Option<usize>, QueuePositions) {
        let left = self.waiters.leave(waiter, &mut self.queue);
        (left.granted, left.positions)
    }

    /// A request gives up waiting; a slot that it had been granted goes to the next.
    pub(super) fn give_up(&mut self, waiter: WaiterId) -> Option<Waker> {
        let place = self.waiters.place(waiter);
        let left = match place {
            Some(Place::Server(server)) => self.waiters.leave(waiter, &mut self.servers[server].queue),
            Some(Place::Backend) | None => self.waiters.leave(waiter, &mut self.queue),
        };
        if let Some(server) = left.granted {
            return self.release(server).1;
        }
        self.waiting -= 1;
        self.let_go();
        if let Some(place) = place {
            self.note_queue(place);
        }
        None
    }

    /// What is set of a server.
    pub(super) fn setting(&self, server: usize) -> Option<Setting> {
        self.servers.get(server).map(|server| Setting { enabled: server.enabled, weight: server.weight })
    }

    /// Requests in the backend's own queue, and in the one of a server.
    pub(super) fn queued(&self, server: Option<usize>) -> (u32, u32) {
        let server = server.and_then(|server| self.servers.get(server));
        (self.queue.length, server.map_or(0, |server| server.queue.length))
    }

    pub(super) fn counts(&self, server: Option<usize>) -> Counts {
        let server = server.filter(|server| *server < self.servers.len());
        Counts { beconn: self.held, srv_conn: server.map_or(0, |server| self.loads[server].served) }
    }

    /// A server's load, and whether it gets traffic by the balance.
    pub(super) fn load(&self, server: usize) -> Option<(Load, bool)> {
        let takes_part = |state: &ServerState| state.candidate || self.backup == Some(server);
        self.servers.get(server).map(|state| (self.loads[server], takes_part(state)))
    }

    pub(super) fn set_weight(&mut self, server: usize, weight: u32) -> Vec<Waker> {
        let heeds = self.row.dynamic;
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
            self.set_load(server, Load { limit, ..self.loads[server] });
        }
        self.fill_free_slots()
    }

    pub(super) fn set_enabled(&mut self, server: usize, enabled: bool) -> Vec<Waker> {
        if let Some(state) = self.servers.get_mut(server) {
            state.enabled = enabled;
            self.rebuild();
        }
        self.fill_free_slots()
    }

    /// Works out who takes part: the servers that are enabled and have a weight; if there are none, the first backup
    /// server that is and has.
    fn rebuild(&mut self) {
        for (index, server) in self.servers.iter_mut().enumerate() {
            if !server.enabled {
                self.waiters.move_all(&mut server.queue, &mut self.queue);
                self.loads[index].queued = 0;
            }
            server.candidate = server.enabled && !server.backup && server.weight > 0;
        }
        let candidates: Vec<Candidate> = (0..)
            .zip(&self.servers)
            .filter(|(_, server)| server.candidate)
            .map(|(index, server)| Candidate { server: index, weight: server.weight, id: server.id })
            .collect();
        let can_stand_in = |server: &ServerState| server.enabled && server.backup && server.weight > 0;
        self.backup = if candidates.is_empty() { self.servers.iter().position(can_stand_in) } else { None };
        self.candidates = candidates.len() as u32;
        self.balance.rebuild(&candidates, self.servers.len());
        for Candidate { server, .. } in candidates {
            let load = self.loads[server];
            self.balance.on_load(server, Change { load, turned: load.has_slot() });
        }
    }

    /// After a change: whoever can be served now is.
    fn fill_free_slots(&mut self) -> Vec<Waker> {
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

    /// After a change of a queue.
    fn note_queue(&mut self, place: Place) {
        if let Place::Server(server) = place {
            self.set_load(server, Load { queued: self.servers[server].queue.length, ..self.loads[server] });
        }
    }

    fn set_load(&mut self, server: usize, load: Load) {
        let before = std::mem::replace(&mut self.loads[server], load);
        if self.servers[server].candidate {
            self.balance.on_load(server, Change { load, turned: before.has_slot() != load.has_slot() });
        }
    }

    fn queue_at(&self, place: Option<Place>) -> &Queue {
        match place {
            Some(Place::Server(server)) => &self.servers[server].queue,
            Some(Place::Backend) | None => &self.queue,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Servers;
    use std::mem::offset_of;

    #[test]
    fn what_every_request_writes_fits_into_the_cache_line_of_the_lock() {
        // The lock itself takes eight bytes in front.
        assert!(8 + offset_of!(Servers, loads) <= 64, "{}", offset_of!(Servers, loads));
    }
}
