//! The paths of simulated datagrams and their faults, which the seed determines.
//!
//! A path applies to one direction. It must never change what a socket sends, only what arrives, and when.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::Moment;

use super::faults::Link;
use crate::net::Address;

/// The properties of a path that datagrams take, in one direction. Chances are in a thousand datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramPath {
    /// Delay of each datagram.
    pub latency: Duration,
    /// Additional delay, drawn between zero and this for each datagram.
    pub jitter: Duration,
    /// Whether datagrams of one sender arrive at one destination in order; otherwise the jitter reorders them.
    pub keeps_order: bool,
    /// Chance that a datagram is lost.
    pub loss: u16,
    /// Chance that a datagram arrives twice.
    pub duplicates: u16,
    /// Chance that one bit of a datagram is inverted.
    pub corruption: u16,
    /// Chance that a datagram of a sender that supports ECN is marked with CE.
    pub marks: u16,
    /// Whether the ECN bits are cleared.
    pub bleaches_ecn: bool,
    /// Maximum size of a datagram in bytes, without the headers of UDP and IP. Larger ones are dropped silently.
    pub mtu: usize,
    /// Bytes per second; `None`: unlimited.
    pub rate: Option<u64>,
    /// Maximum number of bytes that wait for a limited rate. Datagrams that do not fit are dropped.
    pub queue: usize,
}

impl Default for DatagramPath {
    fn default() -> DatagramPath {
        DatagramPath::of(Link::default(), true)
    }
}

impl DatagramPath {
    /// Returns the path without faults over a link.
    pub(super) fn of(link: Link, keeps_order: bool) -> DatagramPath {
        DatagramPath {
            latency: link.latency,
            jitter: link.jitter,
            keeps_order,
            loss: 0,
            duplicates: 0,
            corruption: 0,
            marks: 0,
            bleaches_ecn: false,
            mtu: usize::MAX,
            rate: None,
            queue: 64 * 1024,
        }
    }
}

/// Numbers of datagrams that paths have dropped or changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramFaults {
    pub lost: u64,
    pub duplicated: u64,
    pub corrupted: u64,
    /// Marked with CE.
    pub marked: u64,
    /// Dropped because of their size.
    pub too_large: u64,
    /// Dropped because the queue for a limited rate was full.
    pub overflowed: u64,
}

/// Which datagrams take a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Direction {
    To(Address),
    From(Address),
    Any,
}

/// The paths that the test has set, and their state.
#[derive(Default)]
pub(super) struct Paths {
    set: BTreeMap<Direction, DatagramPath>,
    /// When the last datagram that waits for the rate of a path will have left.
    idle_from: BTreeMap<Direction, Moment>,
    /// Addresses to which an address translator has bound sockets, by the sockets' own.
    outside: BTreeMap<Address, Address>,
    /// The sockets' own addresses, by those.
    inside: BTreeMap<Address, Address>,
    /// Sockets with a full send buffer, by address.
    full: BTreeSet<Address>,
    /// Numbers of messages to an address until a sender gets a rejection.
    rejecting: BTreeMap<Address, usize>,
    pub(super) counts: DatagramFaults,
}

impl Paths {
    pub(super) fn set(&mut self, direction: Direction, path: DatagramPath) {
        self.set.insert(direction, path);
    }

    pub(super) fn rebind(&mut self, socket: Address, outside: Address) {
        let former = self.outside.insert(socket.clone(), outside.clone());
        if let Some(former) = former {
            self.inside.remove(&former);
        }
        self.inside.insert(outside, socket);
    }

    pub(super) fn set_full(&mut self, socket: &Address, on: bool) {
        if on {
            self.full.insert(socket.clone())
        } else {
            self.full.remove(socket)
        };
    }

    pub(super) fn is_full(&self, socket: &Address) -> bool {
        self.full.contains(socket)
    }

    pub(super) fn reject_after(&mut self, destination: Address, messages: usize) {
        self.rejecting.insert(destination, messages);
    }

    /// Counts a message to an address. Returns false if its sender gets a rejection instead.
    pub(super) fn may_send_to(&mut self, destination: &Address) -> bool {
        match self.rejecting.get_mut(destination) {
            Some(0) => return false,
            Some(left) => *left -= 1,
            None => {}
        }
        true
    }

    /// Ends the rejection: a sender has got it.
    pub(super) fn end_rejection(&mut self, destination: &Address) {
        self.rejecting.remove(destination);
    }

    /// Returns the address that the datagrams of a socket come from.
    pub(super) fn outside_of(&self, socket: &Address) -> Option<&Address> {
        self.outside.get(socket)
    }

    /// Returns the address of the socket that gets what is sent to `to`; `None`: the translator has no entry for it.
    pub(super) fn inside_of(&self, to: &Address) -> Option<Address> {
        match self.inside.get(to) {
            Some(inside) => Some(inside.clone()),
            None => (!self.outside.contains_key(to)).then(|| to.clone()),
        }
    }

    /// Returns the path that was set for a datagram.
    pub(super) fn of(&self, from: &Address, to: &Address) -> Option<(Direction, DatagramPath)> {
        let directions = [Direction::To(to.clone()), Direction::From(from.clone()), Direction::Any];
        directions.into_iter().find_map(|direction| {
            let path = *self.set.get(&direction)?;
            Some((direction, path))
        })
    }

    /// Returns when a datagram of that size has left; `None`: it does not fit into the queue.
    pub(super) fn departure(
        &mut self,
        direction: &Direction,
        path: &DatagramPath,
        size: usize,
        now: Moment,
    ) -> Option<Moment> {
        let Some(rate) = path.rate else { return Some(now) };
        let time_of = |bytes: u64| Duration::from_nanos(bytes.saturating_mul(1_000_000_000) / rate.max(1));
        let idle_from = self.idle_from.get(direction).copied().unwrap_or(now).max(now);
        if idle_from.saturating_since(now) > time_of(path.queue.saturating_sub(size) as u64) {
            self.counts.overflowed += 1;
            return None;
        }
        let left = idle_from + time_of(size as u64);
        self.idle_from.insert(direction.clone(), left);
        Some(left)
    }
}
