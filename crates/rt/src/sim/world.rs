//! The simulated world: one clock, one agenda of pending events, and the watches of each worker.
//!
//! It must never depend on anything but its seed: no clock, no memory addresses, no hash map order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::{Key, Moment, Slab, WallTime};

use super::faults::Faults;
use super::node::{CapturedDatagram, Kind, Receivers, SimDatagram};
use super::path::Paths;
use crate::net::Address;
use crate::random::Random;
use crate::source::{Events, Watch};

/// The calendar time at which every simulation starts: 2026-01-01, midnight UTC.
const FIRST_DAY: WallTime = WallTime { seconds: 1_767_225_600, nanos: 0 };
/// The monotonic time at which every simulation starts; not zero, so that zero is not mistaken for "now".
const FIRST_MOMENT: Moment = Moment::from_nanos(1_000_000_000_000);

/// A world shared by its sockets and workers. All of them are used in one thread; the lock only makes the handles
/// `Send`, as the real ones are.
pub(crate) type SharedWorld = Arc<Mutex<World>>;

pub(crate) fn lock(world: &SharedWorld) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state of a simulation.
pub(crate) struct World {
    pub(super) now: Moment,
    /// Time that a task's reading of the clock takes: it represents the work since the previous reading.
    pub(super) cost_of_measuring: Duration,
    pub(super) random: Random,
    agenda: BTreeMap<(Moment, u64), Happening>,
    sequence: u64,
    pub(super) nodes: Slab<Node>,
    /// The listeners and receivers, by address.
    pub(super) listening: BTreeMap<Address, Key>,
    pub(super) receiving: BTreeMap<Address, Receivers>,
    pub(super) paths: Paths,
    /// For each worker (by instance), the nodes that may have events for it.
    ready: BTreeMap<u32, Vec<Key>>,
    pub(super) faults: Faults,
    pub(super) datagrams: Vec<CapturedDatagram>,
    pub(super) signals: VecDeque<i32>,
    next_port: u16,
    /// A running hash of all events: equal seeds must give equal hashes.
    fingerprint: u64,
}

/// A simulated socket and its watchers.
pub(super) struct Node {
    pub(super) kind: Kind,
    watches: Vec<Watched>,
}

struct Watched {
    instance: u32,
    key: Key,
    watch: Watch,
    /// The node is in the worker's ready list.
    queued: bool,
}

/// An event at a point in time.
#[derive(Debug)]
pub(super) enum Happening {
    /// A client's SYN for the listener at `to`.
    Syn { client: Key, to: Address },
    /// The listener's side responds.
    Established { client: Key, server: Key },
    /// There is no listener.
    Refused { client: Key },
    /// Bytes arrive.
    Data { to: Key, from: Key, bytes: Vec<u8> },
    /// The peer's end of its direction arrives.
    End { to: Key },
    /// A reset arrives.
    Reset { to: Key },
    /// The peer has read: there is free space to write again.
    Room { at: Key },
    /// An alarm may have expired.
    Alarm { at: Key },
    /// A datagram arrives.
    Datagram(SimDatagram),
}

impl World {
    pub(super) fn new(seed: u64) -> World {
        World {
            now: FIRST_MOMENT,
            cost_of_measuring: Duration::ZERO,
            random: Random::seeded(seed),
            agenda: BTreeMap::new(),
            sequence: 0,
            nodes: Slab::new(),
            listening: BTreeMap::new(),
            receiving: BTreeMap::new(),
            paths: Paths::default(),
            ready: BTreeMap::new(),
            faults: Faults::default(),
            datagrams: Vec::new(),
            signals: VecDeque::new(),
            next_port: 32_768,
            fingerprint: seed,
        }
    }

    pub(crate) fn now(&self) -> Moment {
        self.now
    }

    /// Advances the clock by the cost of work since the last reading, and reads it.
    pub(crate) fn measure(&mut self) -> Moment {
        self.advance_to(self.now + self.cost_of_measuring);
        self.now
    }

    pub(crate) fn wall(&self) -> WallTime {
        FIRST_DAY.saturating_add(self.now.saturating_since(FIRST_MOMENT))
    }

    /// Returns the virtual time since the simulation began.
    pub(super) fn elapsed(&self) -> Duration {
        self.now.saturating_since(FIRST_MOMENT)
    }

    pub(super) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Adds a number to the running hash.
    pub(super) fn note(&mut self, number: u64) {
        self.fingerprint = (self.fingerprint.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    /// Returns an unused local port; after the last one they are reused.
    pub(super) fn fresh_port(&mut self) -> u16 {
        let port = self.next_port;
        self.next_port = self.next_port.checked_add(1).unwrap_or(32_768);
        port
    }

    pub(super) fn schedule(&mut self, at: Moment, happening: Happening) {
        self.sequence += 1;
        self.agenda.insert((at.max(self.now), self.sequence), happening);
    }

    /// Returns the time of the next event on the agenda.
    pub(super) fn next_happening(&self) -> Option<Moment> {
        self.agenda.keys().next().map(|(at, _)| *at)
    }

    /// Advances the clock; never moves it back.
    pub(super) fn advance_to(&mut self, moment: Moment) {
        self.now = self.now.max(moment);
    }

    /// Processes all events that are due.
    pub(super) fn happen(&mut self) {
        while let Some(entry) = self.agenda.first_entry() {
            let (at, sequence) = *entry.key();
            if at > self.now {
                break;
            }
            let happening = entry.remove();
            self.note(at.as_nanos() ^ sequence);
            self.come_to_pass(happening);
        }
    }

    fn come_to_pass(&mut self, happening: Happening) {
        match happening {
            Happening::Syn { client, to } => self.syn_arrives(client, to),
            Happening::Established { client, server } => self.established(client, server),
            Happening::Refused { client } => self.fail(client, libc::ECONNREFUSED),
            Happening::Data { to, from, bytes } => self.data_arrives(to, from, bytes),
            Happening::End { to } => self.end_arrives(to),
            Happening::Reset { to } => self.reset_arrives(to),
            Happening::Room { at } | Happening::Alarm { at } => self.trigger(at),
            Happening::Datagram(datagram) => self.datagram_arrives(datagram),
        }
    }

    pub(super) fn add_node(&mut self, kind: Kind) -> Key {
        self.nodes.insert(Node { kind, watches: Vec::new() })
    }

    /// Watches a node on a worker. Events that are pending already are reported in the worker's next iteration.
    pub(super) fn watch(&mut self, node: Key, instance: u32, key: Key, watch: Watch) {
        if let Some(found) = self.nodes.get_mut(node) {
            found.watches.push(Watched { instance, key, watch, queued: false });
            self.trigger(node);
        }
    }

    /// Stops watching a node, given by slot, on a worker.
    pub(crate) fn unwatch(&mut self, slot: u32, instance: u32) {
        if let Some((_, node)) = self.nodes.iter_mut().find(|(key, _)| key.slot == slot) {
            node.watches.retain(|watched| watched.instance != instance);
        }
    }

    /// Marks a node as changed: all its watchers examine it in the next iteration.
    pub(super) fn trigger(&mut self, node: Key) {
        let Some(found) = self.nodes.get_mut(node) else { return };
        for watched in found.watches.iter_mut().filter(|watched| !watched.queued) {
            watched.queued = true;
            self.ready.entry(watched.instance).or_default().push(node);
        }
    }

    /// Whether there may be events for a worker.
    pub(super) fn has_events(&self, instance: u32) -> bool {
        self.ready.get(&instance).is_some_and(|ready| !ready.is_empty())
    }

    /// Returns the events of a worker's iteration.
    pub(crate) fn harvest(&mut self, instance: u32) -> Vec<(Key, Events)> {
        let ready = self.ready.get_mut(&instance).map(std::mem::take).unwrap_or_default();
        let mut events = Vec::with_capacity(ready.len());
        for node in ready {
            let now = self.events_of(node);
            let Some(found) = self.nodes.get_mut(node) else { continue };
            let Some(watched) = found.watches.iter_mut().find(|watched| watched.instance == instance) else { continue };
            watched.queued = false;
            let key = watched.key;
            if now == Events::NONE {
                continue;
            }
            if watched.watch == Watch::Listener {
                watched.queued = true;
                self.ready.entry(instance).or_default().push(node);
            }
            events.push((key, now));
            self.note(key.to_bits() ^ u64::from(now.bits()) << 56);
        }
        events
    }

    /// Returns the current events of a node.
    fn events_of(&self, node: Key) -> Events {
        match self.nodes.get(node).map(|node| &node.kind) {
            Some(Kind::Stream(endpoint)) => self.stream_events(endpoint),
            Some(Kind::Listener(backlog)) if !backlog.is_empty() => Events::READABLE,
            Some(Kind::Datagram(slot)) => self.datagram_events(slot),
            Some(Kind::Signals) if !self.signals.is_empty() => Events::READABLE,
            Some(Kind::Alarm(at)) if *at <= self.now => Events::READABLE,
            Some(Kind::Listener(_) | Kind::Signals | Kind::Alarm(_)) | None => Events::NONE,
        }
    }

    pub(super) fn set_alarm(&mut self, node: Key, at: Moment) {
        if let Some(found) = self.nodes.get_mut(node) {
            found.kind = Kind::Alarm(at);
            self.schedule(at, Happening::Alarm { at: node });
        }
    }

    /// Raises a signal.
    pub(super) fn raise(&mut self, number: i32) {
        self.signals.push_back(number);
        let streams: Vec<Key> =
            self.nodes.iter().filter(|(_, node)| matches!(node.kind, Kind::Signals)).map(|(key, _)| key).collect();
        streams.into_iter().for_each(|node| self.trigger(node));
    }
}
