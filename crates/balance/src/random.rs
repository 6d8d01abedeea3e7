//! `balance random`: the least loaded of a few servers chosen at random.

use super::bound::LoadBounds;
use super::ewma::Waits;
use super::{Candidate, Change, Load, Loads, Pick, Row, State};
use base::moment::Moment;
use config::spec::BalanceSpec;
use std::cmp::Ordering;
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "random",
    doc: "Draws two servers (or as many as the argument says) at random, in proportion to their weights, and selects the \
          less loaded one; of equals the one whose last request is older. Full servers are not drawn.",
    dynamic: true,
    hashes: false,
    make: |spec, hash| match spec {
        BalanceSpec::Random { draws } => Some(State::Random(Random::new(*draws, hash.balance_factor))),
        _ => None,
    },
};

/// Weir's own: the server with the lowest expected wait of a few drawn at random.
pub(super) const EWMA: Row = Row {
    name: "ewma",
    doc: "Weir's own. Draws two servers at random, in proportion to their weights, and selects the one with the lower \
          expected wait: the average time until its answers begin, times the requests that it would have, divided by its \
          weight. A slow answer counts at once, and decays over the time in parentheses (10 s).",
    dynamic: true,
    hashes: false,
    make: |spec, hash| match spec {
        BalanceSpec::Ewma { decay } => {
            Some(State::Random(Random::by_wait(Waits::new(Duration::from_millis(*decay)), hash.balance_factor)))
        }
        _ => None,
    },
};

/// More draws than this find the same server anyway, and they are made under a lock.
const MOST_DRAWS: u32 = 1_000;

/// Number of times that a server above `hash-balance-factor` is drawn again before it is used nevertheless.
const DRAWS_WITHIN_BOUND: u32 = 32;

#[derive(Debug, Default)]
pub(super) struct Random {
    draws: u32,
    picks: u64,
    /// In a separate allocation, because workers only read this cache line, which the fields above would invalidate.
    tables: Box<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    /// By server.
    weights: Vec<u32>,
    /// By server: the sequence number of its last selection.
    picked: Vec<u64>,
    /// The weights of the servers with a free slot.
    lots: WeightTree,
    /// `hash-balance-factor`.
    bound: Option<LoadBounds>,
    /// `balance ewma`: the response times, compared instead of the loads.
    waits: Option<Waits>,
}

impl Random {
    fn new(draws: u32, factor: Option<u32>) -> Self {
        let tables = Box::new(Tables { bound: factor.map(LoadBounds::new), ..Tables::default() });
        Self { draws: draws.clamp(1, MOST_DRAWS), picks: 0, tables }
    }

    /// Creates the state of `balance ewma`.
    pub(super) fn by_wait(waits: Waits, factor: Option<u32>) -> Self {
        let mut random = Self::new(2, factor);
        random.tables.waits = Some(waits);
        random
    }

    /// Records a server's response time.
    pub(super) fn note(&mut self, server: usize, took: Duration, now: Moment) {
        if let Some(waits) = &mut self.tables.waits {
            waits.note(server, took, now);
        }
    }

    pub(super) fn rebuild(&mut self, candidates: &[Candidate], count: usize) {
        self.tables.weights = vec![0; count];
        for candidate in candidates {
            self.tables.weights[candidate.server] = candidate.weight;
        }
        self.tables.lots = WeightTree::new(count);
        if let Some(bound) = &mut self.tables.bound {
            bound.rebuild(candidates, count);
        }
        if let Some(waits) = &mut self.tables.waits {
            waits.resize(count);
        }
        let mut picked = super::roomy(count);
        picked.extend(self.tables.picked.iter().copied().chain(std::iter::repeat(0)).take(count));
        self.tables.picked = picked;
    }

    pub(super) fn pick(&mut self, pick: &Pick, loads: &Loads) -> Option<usize> {
        // The server to avoid is excluded from the draw if another one remains.
        let out = pick.avoid.filter(|server| *server < self.tables.weights.len() && loads[*server].has_slot());
        let out = out.map(|server| (server, i64::from(self.tables.weights[server])));
        let out = out.filter(|(_, weight)| weight.unsigned_abs() < self.tables.lots.total());
        if let Some((server, weight)) = out {
            self.tables.lots.change(server, -weight);
        }
        let drawn = self.draw(pick, loads);
        if let Some((server, weight)) = out {
            self.tables.lots.change(server, weight);
        }
        let server = drawn?;
        self.picks += 1;
        self.tables.picked[server] = self.picks;
        Some(server)
    }

    fn draw(&self, pick: &Pick, loads: &Loads) -> Option<usize> {
        let numbers = &mut Numbers(pick.random);
        let Some(bound) = &self.tables.bound else { return self.draw_freely(numbers, pick.now, loads) };
        let mut drawn = self.draw_freely(numbers, pick.now, loads)?;
        for _ in 0..DRAWS_WITHIN_BOUND {
            if bound.admits(drawn, pick.requests, loads) {
                break;
            }
            drawn = self.draw_freely(numbers, pick.now, loads)?;
        }
        Some(drawn)
    }

    fn draw_freely(&self, numbers: &mut Numbers, now: Moment, loads: &Loads) -> Option<usize> {
        if self.tables.weights.len() == 1 {
            return (self.tables.lots.total() > 0).then_some(0);
        }
        let lots = &self.tables.lots;
        let (mut best, start) = lots.find(numbers.below(lots.total())?)?;
        if self.tables.waits.is_some() {
            // Two different servers: otherwise a slow server could be selected because it was drawn twice.
            let own = u64::from(self.tables.weights[best]);
            let Some(point) = numbers.below(lots.total() - own) else { return Some(best) };
            let (other, _) = lots.find(if point < start { point } else { point + own })?;
            return Some(if self.is_better(other, best, now, loads) { other } else { best });
        }
        for _ in 1..self.draws {
            let (other, _) = lots.find(numbers.below(lots.total())?)?;
            if self.is_better(other, best, now, loads) {
                best = other;
            }
        }
        Some(best)
    }

    /// Whether a server has fewer requests relative to its weight or, if equal, is more overdue.
    fn is_better(&self, server: usize, than: usize, now: Moment, loads: &Loads) -> bool {
        let weight = |server: usize| u64::from(self.tables.weights[server]);
        let load = |load: Load, other: usize| u64::from(load.in_flight()) * weight(other);
        let overdue = |server: usize| (self.picks + 1 - self.tables.picked[server]).saturating_mul(weight(server));
        if let Some(waits) = &self.tables.waits {
            let cost = |server: usize| waits.cost(server, loads[server].in_flight(), self.tables.weights[server], now);
            match cost(server).total_cmp(&cost(than)) {
                Ordering::Less => return true,
                Ordering::Greater => return false,
                Ordering::Equal => {}
            }
        }
        (load(loads[server], than), overdue(than)) < (load(loads[than], server), overdue(server))
    }

    pub(super) fn on_load(&mut self, server: usize, change: Change) {
        if change.turned {
            let weight = i64::from(self.tables.weights[server]);
            self.tables.lots.change(server, if change.load.has_slot() { weight } else { -weight });
        }
    }
}

/// Weights with their prefix sums in a Fenwick tree (1994): changes and searches are O(log n) in the number of servers.
#[derive(Debug, Default)]
struct WeightTree {
    /// From index 1: each entry sums as many weights as the lowest set bit of its index.
    sums: Vec<u64>,
    total: u64,
}

impl WeightTree {
    fn new(count: usize) -> Self {
        let mut sums = super::roomy(count + 1);
        sums.resize(count + 1, 0);
        Self { sums, total: 0 }
    }

    fn total(&self) -> u64 {
        self.total
    }

    fn change(&mut self, server: usize, by: i64) {
        self.total = self.total.wrapping_add_signed(by);
        let mut index = server + 1;
        while let Some(sum) = self.sums.get_mut(index) {
            *sum = sum.wrapping_add_signed(by);
            index += index & index.wrapping_neg();
        }
    }

    /// Returns the server whose interval of the range from 0 to the total contains `point`, and the start of that
    /// interval.
    fn find(&self, point: u64) -> Option<(usize, u64)> {
        let (all, mut point) = (point, point);
        let mut index = 0;
        let mut step = self.sums.len().next_power_of_two();
        while step > 0 {
            if let Some(&sum) = self.sums.get(index + step)
                && sum <= point
            {
                point -= sum;
                index += step;
            }
            step /= 2;
        }
        (index + 1 < self.sums.len()).then_some((index, all - point))
    }
}

/// Derives further random numbers from one (splitmix64).
struct Numbers(u64);

impl Numbers {
    /// Returns a uniform number below `bound`; `None` if `bound` is 0.
    fn below(&mut self, bound: u64) -> Option<u64> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (bound > 0).then(|| ((u128::from(mixed) * u128::from(bound)) >> 64) as u64)
    }
}
