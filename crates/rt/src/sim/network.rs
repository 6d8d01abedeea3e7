//! The links of the simulated network and what can go wrong on them.
//!
//! Faults apply to a service's address, which is the one that clients connect to; both directions share them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::Key;

use super::CapturedDatagram;
use super::world::{Kind, SharedWorld, World, lock};
use crate::net::Address;

/// How bytes travel between two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Time from end to end.
    pub latency: Duration,
    /// Further time from nothing up to this, drawn for each piece. Bytes of one direction never overtake each other.
    pub jitter: Duration,
    /// Bytes that are on the way or unread at most, in each direction.
    pub buffer: usize,
    /// Whether writes arrive in pieces, down to single bytes, and are sometimes taken in part only.
    pub fragment: bool,
}

impl Default for Link {
    fn default() -> Link {
        let (latency, jitter) = (Duration::from_micros(100), Duration::from_micros(50));
        Link { latency, jitter, buffer: 256 * 1024, fragment: true }
    }
}

/// The faults that are in force.
#[derive(Default)]
pub(super) struct Faults {
    link: Link,
    links: BTreeMap<Address, Link>,
    refused: BTreeSet<Address>,
    black_holes: BTreeSet<Address>,
    accept_errors: BTreeMap<Address, AcceptError>,
    redirections: BTreeMap<Address, Address>,
    failing: BTreeMap<Address, i32>,
    pub(super) records: bool,
}

/// Why a listener cannot take connections, and how often that was met.
#[derive(Clone, Copy, Default)]
struct AcceptError {
    code: Option<i32>,
    met: u64,
}

impl Faults {
    pub(super) fn link_of(&self, service: &Address) -> Link {
        self.links.get(service).copied().unwrap_or(self.link)
    }

    pub(super) fn refuses(&self, service: &Address) -> bool {
        self.refused.contains(service)
    }

    pub(super) fn accept_error(&mut self, listener: &Address) -> Option<i32> {
        let error = self.accept_errors.get_mut(listener)?;
        error.met += u64::from(error.code.is_some());
        error.code
    }

    pub(super) fn redirection_of(&self, service: &Address) -> Option<&Address> {
        self.redirections.get(service)
    }

    /// The error with which connecting to a service fails before anything is sent.
    pub(super) fn failure(&self, service: &Address) -> Option<i32> {
        self.failing.get(service).copied()
    }

    pub(super) fn is_black_hole(&self, service: &Address) -> bool {
        self.black_holes.contains(service)
    }
}

fn put<T: Ord + Clone>(set: &mut BTreeSet<T>, value: &T, on: bool) {
    if on {
        set.insert(value.clone());
    } else {
        set.remove(value);
    }
}

/// The simulated network, for the script to change and to look at. Clones name the same network.
#[derive(Clone)]
pub struct Network {
    pub(super) world: SharedWorld,
}

impl Network {
    /// Sets the link of all connections that are opened from now on to services without a link of their own.
    pub fn set_default_link(&self, link: Link) {
        lock(&self.world).faults.link = link;
    }

    /// Sets the link of connections that are opened to `service` from now on.
    pub fn set_link(&self, service: &Address, link: Link) {
        lock(&self.world).faults.links.insert(service.clone(), link);
    }

    /// Code with transports above the sockets uses one that moves the borders of what is read and written
    /// ([`shuffles_records`]).
    pub fn shuffle_records(&self) {
        lock(&self.world).faults.records = true;
    }

    /// Refuses connections to `service` although there is a listener, or ends that.
    pub fn refuse(&self, service: &Address, on: bool) {
        put(&mut lock(&self.world).faults.refused, service, on);
    }

    /// Has accepting at `listener` fail with this error of the kernel (`EMFILE`, `ENOBUFS`, …) while connections wait, or
    /// ends that.
    pub fn fail_accepts(&self, listener: &Address, code: Option<i32>) {
        lock(&self.world).faults.accept_errors.entry(listener.clone()).or_default().code = code;
    }

    /// How many attempts to accept at `listener` have failed so.
    pub fn failed_accepts(&self, listener: &Address) -> u64 {
        lock(&self.world).faults.accept_errors.get(listener).map_or(0, |error| error.met)
    }

    /// Sends connections to `service` to the listener at `to` instead, as a packet filter's REDIRECT does.
    pub fn redirect(&self, service: &Address, to: &Address) {
        lock(&self.world).faults.redirections.insert(service.clone(), to.clone());
    }

    /// Lets the kernel refuse to connect to `service` with this error (`EMFILE`, `EADDRNOTAVAIL` …); `None` ends that.
    pub fn fail_to_connect(&self, service: &Address, code: Option<i32>) {
        let failing = &mut lock(&self.world).faults.failing;
        match code {
            Some(code) => drop(failing.insert(service.clone(), code)),
            None => drop(failing.remove(service)),
        }
    }

    /// Swallows everything to and from `service`: connections are never answered, bytes of open ones arrive after the
    /// end of the fault only, datagrams are lost.
    pub fn black_hole(&self, service: &Address, on: bool) {
        put(&mut lock(&self.world).faults.black_holes, service, on);
    }

    /// Resets every open connection to `service`, at both ends. Returns how many there were.
    pub fn reset(&self, service: &Address) -> usize {
        let mut world = lock(&self.world);
        let ends = world.open_ends(service);
        for key in &ends {
            world.fail(*key, libc::ECONNRESET);
        }
        ends.len() / 2
    }

    /// Ends of connections to `service` that are held: two for each open connection.
    pub fn open_ends(&self, service: &Address) -> usize {
        lock(&self.world).open_ends(service).len()
    }

    /// Ends of all connections that are held.
    pub fn all_open_ends(&self) -> usize {
        lock(&self.world).nodes.iter().filter(|(_, node)| matches!(node.kind, Kind::Stream(_))).count()
    }

    /// Takes the datagrams that were sent since the last call, in the order of sending.
    pub fn take_datagrams(&self) -> Vec<CapturedDatagram> {
        std::mem::take(&mut lock(&self.world).datagrams)
    }

    /// Has work take time, which it does not otherwise: the virtual clock goes on by `period` whenever a task looks how long
    /// it has run ([`crate::slice_is_over`], [`crate::measure`]).
    pub fn set_cost_of_work(&self, period: Duration) {
        lock(&self.world).cost_of_measuring = period;
    }

    /// Virtual time since the simulation began.
    pub fn elapsed(&self) -> Duration {
        lock(&self.world).elapsed()
    }

    /// A hash of everything that has happened: equal runs of equal seeds have equal prints.
    pub fn fingerprint(&self) -> u64 {
        lock(&self.world).fingerprint()
    }
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network").finish_non_exhaustive()
    }
}

impl World {
    fn open_ends(&self, service: &Address) -> Vec<Key> {
        let of_service = |kind: &Kind| matches!(kind, Kind::Stream(endpoint) if endpoint.service == *service);
        self.nodes.iter().filter(|(_, node)| of_service(&node.kind)).map(|(key, _)| key).collect()
    }
}
