//! Limits that depend on a backend's load (configuration manual, "minconn", "fullconn"): up to `fullconn` requests a
//! server's limit grows with their number, from `minconn` to `maxconn`. Must never access requests.

use std::ops::RangeInclusive;

/// A limit between two bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ramp {
    server: usize,
    /// `minconn`, at least 1.
    least: u32,
    /// `maxconn`, at least `least`.
    most: u32,
}

impl Ramp {
    /// Computes the limit as HAProxy does: `most` multiplied by the load over `fullconn`, rounded down, but at least
    /// `least`.
    fn limit(self, held: u32, fullconn: u32) -> u32 {
        let share = u64::from(held.min(fullconn)) * u64::from(self.most) / u64::from(fullconn);
        (share as u32).max(self.least)
    }

    /// The range of loads with the same limit as `held`.
    fn stable(self, held: u32, fullconn: u32) -> RangeInclusive<u32> {
        let limit = self.limit(held, fullconn);
        // The smallest load with that share.
        let reaches = |share: u32| (u64::from(share) * u64::from(fullconn)).div_ceil(u64::from(self.most)) as u32;
        let from = if limit > self.least { reaches(limit) } else { 0 };
        let to = if limit < self.most { reaches(limit + 1) - 1 } else { u32::MAX };
        from..=to
    }
}

/// The servers of a backend whose limit depends on its load.
#[derive(Debug)]
pub(super) struct Ramps {
    /// The range of loads in which no limit changes.
    from: u32,
    to: u32,
    fullconn: u32,
    ramps: Vec<Ramp>,
}

impl Ramps {
    /// Creates it without servers.
    pub(super) fn new(fullconn: u32) -> Self {
        Self { from: 0, to: u32::MAX, fullconn: fullconn.max(1), ramps: Vec::new() }
    }

    /// Adds a server. [`Ramps::follow`] sets its limit.
    pub(super) fn add(&mut self, server: usize, least: u32, most: u32) {
        let least = least.max(1);
        self.ramps.push(Ramp { server, least, most: most.max(least) });
        (self.from, self.to) = (1, 0);
    }

    /// Changes a server's `maxconn`. False: its limit does not depend on the load.
    pub(super) fn set_most(&mut self, server: usize, most: u32) -> bool {
        let Some(ramp) = self.ramps.iter_mut().find(|ramp| ramp.server == server) else { return false };
        ramp.most = most.max(ramp.least);
        (self.from, self.to) = (1, 0);
        true
    }

    /// Returns a server's `maxconn`. `None`: its limit does not depend on the load.
    pub(super) fn most(&self, server: usize) -> Option<u32> {
        self.ramps.iter().find(|ramp| ramp.server == server).map(|ramp| ramp.most)
    }

    /// Removes a server.
    pub(super) fn remove(&mut self, server: usize) {
        self.ramps.retain(|ramp| ramp.server != server);
        (self.from, self.to) = (1, 0);
    }

    /// Whether all limits are unchanged at this load.
    pub(super) fn is_settled(&self, held: u32) -> bool {
        self.from <= held && held <= self.to
    }

    /// Sets the limits for this load, and computes the range of loads in which they remain.
    pub(super) fn follow(&mut self, held: u32, mut set: impl FnMut(usize, u32)) {
        (self.from, self.to) = (0, u32::MAX);
        for ramp in &self.ramps {
            set(ramp.server, ramp.limit(held, self.fullconn));
            let stable = ramp.stable(held, self.fullconn);
            (self.from, self.to) = (self.from.max(*stable.start()), self.to.min(*stable.end()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limits of HAProxy 3.5 at loads from 1 on: `minconn`, `maxconn`, `fullconn`.
    #[test]
    fn limits_are_those_of_haproxy() {
        let rows: [(u32, u32, u32, [u32; 22]); 3] = [
            (2, 10, 20, [2, 2, 2, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 10]),
            (4, 10, 20, [4, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 10]),
            (2, 10, 5, [2, 4, 6, 8, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10]),
        ];
        for (least, most, fullconn, limits) in rows {
            let ramp = Ramp { server: 0, least, most };
            let found: Vec<u32> = (1..=22).map(|held| ramp.limit(held, fullconn)).collect();
            assert_eq!(found, limits, "{least} {most} {fullconn}");
        }
    }

    #[test]
    fn the_range_in_which_nothing_changes_is_exact() {
        for (least, most, fullconn) in [(1, 1, 1), (1, 7, 3), (2, 10, 20), (3, 10, 1000), (5, 4000, 77), (1, 3, 100)] {
            let ramp = Ramp { server: 0, least, most };
            for held in 0..2 * fullconn {
                let limit = ramp.limit(held, fullconn);
                let stable = ramp.stable(held, fullconn);
                let inside = (0..3 * fullconn).filter(|other| ramp.limit(*other, fullconn) == limit);
                assert!(inside.eq((0..3 * fullconn).filter(|other| stable.contains(other))), "{ramp:?} {held}");
            }
        }
    }

    #[test]
    fn nothing_can_overflow() {
        let ramp = Ramp { server: 0, least: 1, most: u32::MAX };
        for (held, fullconn) in [(0, 1), (u32::MAX, u32::MAX), (u32::MAX - 1, u32::MAX), (1, u32::MAX), (7, 1)] {
            assert!(ramp.stable(held, fullconn).contains(&held));
        }
    }
}
