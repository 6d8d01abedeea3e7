//! Datagrams on their paths: lost, changed, delayed and delivered.
//!
//! It must never draw from the seed for a fault that was not set.

use std::time::Duration;

use base::{Key, Moment};

use super::node::SimDatagram;
use super::path::{DatagramPath, Direction};
use super::world::{Happening, World};
use crate::net::Ecn;

/// A thousand of a thousand.
const ALL: u64 = 1000;
/// Number of destinations of a socket from which on those are forgotten to which nothing is in transit.
const MOST_DESTINATIONS: usize = 1024;

impl World {
    /// Sends a datagram on its path. `in_order`: without a path that was set, nothing overtakes it.
    pub(super) fn carry(&mut self, key: Key, mut datagram: SimDatagram, in_order: bool) {
        let Some(to) = self.paths.inside_of(&datagram.to) else { return };
        let (direction, path) = self
            .paths
            .of(&datagram.from, &to)
            .unwrap_or_else(|| (Direction::Any, DatagramPath::of(self.faults.link_of(&datagram.to), in_order)));
        if datagram.bytes.len() > path.mtu {
            self.paths.counts.too_large += 1;
            return;
        }
        if self.happens(path.loss) {
            self.paths.counts.lost += 1;
            return;
        }
        let Some(left) = self.paths.departure(&direction, &path, datagram.bytes.len(), self.now) else { return };
        self.change(&mut datagram, &path);
        if let Some(outside) = self.paths.outside_of(&datagram.from) {
            datagram.from = outside.clone();
        }
        if self.happens(path.duplicates) {
            self.paths.counts.duplicated += 1;
            self.deliver(key, datagram.clone(), &path, left);
        }
        self.deliver(key, datagram, &path, left);
    }

    /// Whether an event of that chance in a thousand happens.
    fn happens(&self, chance: u16) -> bool {
        chance > 0 && self.random.below(ALL) < u64::from(chance)
    }

    /// Marks and corrupts a datagram.
    fn change(&mut self, datagram: &mut SimDatagram, path: &DatagramPath) {
        if matches!(Ecn::from_bits(datagram.ecn), Some(Ecn::Ect0 | Ecn::Ect1)) && self.happens(path.marks) {
            datagram.ecn = Ecn::Ce.bits();
            self.paths.counts.marked += 1;
        }
        if path.bleaches_ecn {
            datagram.ecn = 0;
        }
        if !datagram.bytes.is_empty() && self.happens(path.corruption) {
            let bit = self.random.below(datagram.bytes.len() as u64 * 8) as usize;
            datagram.bytes[bit / 8] ^= 1 << (bit % 8);
            self.paths.counts.corrupted += 1;
        }
    }

    fn deliver(&mut self, key: Key, datagram: SimDatagram, path: &DatagramPath, left: Moment) {
        let jitter = self.random.below(path.jitter.as_nanos() as u64 + 1);
        let mut at = left + path.latency + Duration::from_nanos(jitter);
        let now = self.now;
        if path.keeps_order
            && let Ok(slot) = self.mailslot(key)
        {
            if slot.last_arrivals.len() >= MOST_DESTINATIONS {
                slot.last_arrivals.retain(|_, last| *last > now);
            }
            let last = slot.last_arrivals.entry(datagram.to.clone()).or_insert(at);
            at = at.max(*last);
            *last = at;
        }
        self.schedule(at, Happening::Datagram(datagram));
    }
}
