//! `balance random`: the least loaded of a few servers drawn by lot.

use super::{Candidate, Load, Pick, Row, State};
use config::spec::BalanceSpec;

pub(super) const ROW: Row = Row {
    name: "random",
    doc: "Draws two servers (or as many as the argument says) by lot, each as likely as its weight says, and takes the \
          less loaded one; of equals the one whose last request lies further back. Full servers are not drawn.",
    dynamic: true,
    hashes: false,
    make: |spec| match spec {
        BalanceSpec::Random { draws } => {
            Some(State::Random(Random { draws: (*draws).clamp(1, MOST_DRAWS), ..Random::default() }))
        }
        _ => None,
    },
};

/// More draws than this find the same server anyway, and they are made under a lock.
const MOST_DRAWS: u32 = 1_000;

#[derive(Debug, Clone, Copy, Default)]
struct Seat {
    /// 0 if it does not take part.
    weight: u32,
    /// Whether its weight is in the lots.
    open: bool,
    requests: u32,
    /// The number of its last pick.
    picked: u64,
}

#[derive(Debug, Default)]
pub(super) struct Random {
    draws: u32,
    seats: Vec<Seat>,
    lots: Lots,
    picks: u64,
}

impl Random {
    pub(super) fn rebuild(&mut self, candidates: &[Candidate], count: usize) {
        let mut seats = super::roomy(count);
        seats.resize(count, Seat::default());
        self.lots = Lots::new(count);
        for candidate in candidates {
            let picked = self.seats.get(candidate.server).map_or(0, |seat| seat.picked);
            seats[candidate.server] = Seat { weight: candidate.weight, open: true, requests: 0, picked };
            self.lots.change(candidate.server, i64::from(candidate.weight));
        }
        self.seats = seats;
    }

    pub(super) fn pick(&mut self, pick: &Pick) -> Option<usize> {
        let mut numbers = Numbers(pick.random);
        // The server to avoid is taken out of the lots as long as another one stays in.
        let seat = pick.avoid.and_then(|server| self.seats.get(server).filter(|seat| seat.open).copied());
        let out = pick.avoid.zip(seat).filter(|(_, seat)| u64::from(seat.weight) < self.lots.total());
        if let Some((server, seat)) = out {
            self.lots.change(server, -i64::from(seat.weight));
        }
        let drawn = self.draw(&mut numbers);
        if let Some((server, seat)) = out {
            self.lots.change(server, i64::from(seat.weight));
        }
        let server = drawn?;
        self.picks += 1;
        self.seats[server].picked = self.picks;
        Some(server)
    }

    fn draw(&self, numbers: &mut Numbers) -> Option<usize> {
        let mut best = self.lots.find(numbers.below(self.lots.total())?)?;
        for _ in 1..self.draws {
            let other = self.lots.find(numbers.below(self.lots.total())?)?;
            if self.is_better(other, best) {
                best = other;
            }
        }
        Some(best)
    }

    /// Fewer requests for its weight; with as many, the one that is more overdue.
    fn is_better(&self, server: usize, than: usize) -> bool {
        let (a, b) = (self.seats[server], self.seats[than]);
        let load = |seat: Seat, other: Seat| u64::from(seat.requests) * u64::from(other.weight);
        let overdue = |seat: Seat| (self.picks + 1 - seat.picked).saturating_mul(u64::from(seat.weight));
        (load(a, b), overdue(b)) < (load(b, a), overdue(a))
    }

    pub(super) fn on_load(&mut self, server: usize, load: Load) {
        let seat = &mut self.seats[server];
        if seat.weight == 0 {
            return;
        }
        seat.requests = load.in_flight();
        if seat.open != load.has_slot() {
            seat.open = load.has_slot();
            let weight = i64::from(seat.weight);
            self.lots.change(server, if load.has_slot() { weight } else { -weight });
        }
    }
}

/// Weights with their running sums, as a tree of partial sums (Fenwick, 1994): a change and a search take the logarithm
/// of the number of servers.
#[derive(Debug, Default)]
struct Lots {
    /// From 1: each entry sums as many weights as the lowest set bit of its index says.
    sums: Vec<u64>,
    total: u64,
}

impl Lots {
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

    /// The server whose share of the line from 0 to the total holds `point`.
    fn find(&self, mut point: u64) -> Option<usize> {
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
        (index + 1 < self.sums.len()).then_some(index)
    }
}

/// More random numbers out of one (splitmix64).
struct Numbers(u64);

impl Numbers {
    /// A number below `bound`, evenly; `None` if that is impossible.
    fn below(&mut self, bound: u64) -> Option<u64> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (bound > 0).then(|| ((u128::from(mixed) * u128::from(bound)) >> 64) as u64)
    }
}
