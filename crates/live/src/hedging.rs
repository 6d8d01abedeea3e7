//! `hedge-requests`, Weir's own: the delay before a request is sent to a second server as well, the budget of such
//! requests, and their results. Must never read a clock, and never select a server.

use super::budget::Budget;
use base::moment::Moment;
use config::spec::{HedgeDelay, HedgeSpec, RetryBudgetSpec};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Counters of hedged requests since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HedgeCounts {
    /// Requests that were sent to a second server.
    pub begun: u64,
    /// Of these, those that the second server answered first.
    pub won: u64,
    /// Of these, those whose second server failed: it refused, disconnected, or responded with 5xx.
    pub failed: u64,
    /// Requests not hedged because the budget was exhausted.
    pub over_budget: u64,
    /// Requests not hedged because no other server had a free slot.
    pub without_server: u64,
}

/// The result of one hedged request, or why it was not hedged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hedged {
    Begun,
    Won,
    Failed,
    OverBudget,
    WithoutServer,
}

/// The hedging state of a backend.
#[derive(Debug)]
pub(super) struct Hedging {
    budget: Budget,
    delay: Delay,
    counts: [AtomicU64; 5],
}

#[derive(Debug)]
enum Delay {
    Fixed(Duration),
    Percentile { share: u32, seen: Box<Latencies> },
}

impl Hedging {
    pub(super) fn new(written: HedgeSpec) -> Self {
        let delay = match written.after {
            HedgeDelay::Time(millis) => Delay::Fixed(Duration::from_millis(millis)),
            HedgeDelay::Percentile(share) => Delay::Percentile { share, seen: Box::default() },
        };
        let budget = Budget::new(RetryBudgetSpec { share: written.share, least: written.least });
        Self { budget, delay, counts: Default::default() }
    }

    /// Counts a request.
    pub(super) fn note_request(&self, now: Moment) {
        self.budget.note_request(now);
    }

    /// Whether another request may be hedged; if so, it is counted.
    pub(super) fn take(&self, now: Moment) -> bool {
        self.budget.take(now)
    }

    /// The delay before hedging. `None`: too few responses are known.
    pub(super) fn delay(&self) -> Option<Duration> {
        match &self.delay {
            Delay::Fixed(delay) => Some(*delay),
            Delay::Percentile { seen, .. } => seen.delay(),
        }
    }

    /// Records the latency of a response, or a lower bound of it.
    pub(super) fn note_latency(&self, took: Duration, now: Moment) {
        if let Delay::Percentile { share, seen } = &self.delay {
            seen.note(took, *share, now);
        }
    }

    pub(super) fn count(&self, hedged: Hedged) {
        self.counts[hedged as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> HedgeCounts {
        let count = |hedged: Hedged| self.counts[hedged as usize].load(Ordering::Relaxed);
        HedgeCounts {
            begun: count(Hedged::Begun),
            won: count(Hedged::Won),
            failed: count(Hedged::Failed),
            over_budget: count(Hedged::OverBudget),
            without_server: count(Hedged::WithoutServer),
        }
    }
}

/// Buckets for each doubling: the result is at most an eighth too large.
const STEPS: u32 = 8;
/// Doublings, from 64 microseconds on: two minutes.
const DOUBLINGS: u32 = 21;
const BUCKETS: usize = (STEPS * DOUBLINGS) as usize;
/// The shortest latency distinguished, in microseconds, as a power of two.
const SHORTEST: u32 = 6;
/// The length of a period: the current one and the previous one are used.
const PERIOD: Duration = Duration::from_secs(10);
/// Minimum number of responses.
const ENOUGH: u64 = 50;
/// Number of responses after which the percentile is computed again.
const READ_EVERY: u32 = 32;

/// Recent latencies of responses. Counted without a lock: a few that arrive while a period ends may be counted in the
/// next one, or not at all.
#[derive(Debug)]
struct Latencies {
    periods: [[AtomicU32; BUCKETS]; 2],
    /// The number of the current period.
    period: AtomicU64,
    noted: AtomicU32,
    /// Microseconds; 0: too few responses are known.
    delay: AtomicU64,
}

impl Default for Latencies {
    fn default() -> Self {
        let empty = || std::array::from_fn(|_| AtomicU32::new(0));
        Self {
            periods: [empty(), empty()],
            period: AtomicU64::new(0),
            noted: AtomicU32::new(0),
            delay: AtomicU64::new(0),
        }
    }
}

impl Latencies {
    fn delay(&self) -> Option<Duration> {
        Some(self.delay.load(Ordering::Relaxed)).filter(|micros| *micros > 0).map(Duration::from_micros)
    }

    fn note(&self, took: Duration, share: u32, now: Moment) {
        let number = now.as_nanos() / u64::try_from(PERIOD.as_nanos()).unwrap_or(u64::MAX);
        let before = self.period.load(Ordering::Relaxed);
        if before < number && self.period.compare_exchange(before, number, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            self.empty(number);
            if before + 1 < number {
                self.empty(number + 1);
            }
        }
        self.counted(number)[bucket(took)].fetch_add(1, Ordering::Relaxed);
        let noted = self.noted.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        if noted.is_multiple_of(READ_EVERY) || (before < number && number > 0) {
            self.read_off(share);
        }
    }

    fn counted(&self, period: u64) -> &[AtomicU32; BUCKETS] {
        &self.periods[(period % 2) as usize]
    }

    fn empty(&self, period: u64) {
        self.counted(period).iter().for_each(|count| count.store(0, Ordering::Relaxed));
    }

    fn read_off(&self, share: u32) {
        let count = |place: usize| -> u64 {
            self.periods.iter().map(|period| u64::from(period[place].load(Ordering::Relaxed))).sum()
        };
        let all: u64 = (0..BUCKETS).map(count).sum();
        let mut below = 0;
        let found = (0..BUCKETS).find(|place| {
            below += count(*place);
            below * 100 >= all * u64::from(share)
        });
        let micros = found.filter(|_| all >= ENOUGH).map_or(0, end_of);
        self.delay.store(micros, Ordering::Relaxed);
    }
}

/// The bucket of a latency.
fn bucket(took: Duration) -> usize {
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1 << SHORTEST);
    let doubling = micros.ilog2();
    let step = ((micros >> (doubling - 3)) & 7) as u32;
    (((doubling - SHORTEST) * STEPS + step) as usize).min(BUCKETS - 1)
}

/// The upper end of a bucket in microseconds.
fn end_of(bucket: usize) -> u64 {
    let (doubling, step) = (bucket as u32 / STEPS + SHORTEST, bucket as u64 % u64::from(STEPS));
    (u64::from(STEPS) + step + 1) << (doubling - 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn times_lie_in_their_buckets() {
        for micros in [0, 1, 63, 64, 65, 72, 100, 127, 128, 1_000, 999_999, 60_000_000, 100_000_000] {
            let end = end_of(bucket(Duration::from_micros(micros)));
            assert!(end > micros, "{micros} lies below {end}");
            assert!(end <= (micros.max(64) * 9).div_ceil(8), "{micros} is close to {end}");
        }
        assert_eq!(bucket(Duration::from_secs(100_000)), BUCKETS - 1);
    }

    #[test]
    fn the_percentile_is_that_of_the_last_seconds() {
        let hedge = HedgeSpec { after: HedgeDelay::Percentile(90), share: 10, least: 1 };
        let hedging = Hedging::new(hedge);
        let fill = |from: u64, short: u64| {
            for number in 0..100 {
                let millis = if number % 20 == 0 { 2_000 } else { short };
                hedging.note_latency(Duration::from_millis(millis), at(from + number));
            }
        };
        let near = |millis: u64| {
            let found = hedging.delay().map_or(0, |delay| delay.as_millis() as u64);
            (millis..=millis * 9 / 8 + 1).contains(&found)
        };
        assert_eq!(hedging.delay(), None, "nothing is known");
        fill(20_000, 10);
        assert!(near(10), "{:?}", hedging.delay());
        fill(30_000, 100);
        assert!(near(100), "{:?}: of 200, half take so long", hedging.delay());
        fill(40_000, 1);
        fill(50_000, 1);
        assert!(near(1), "{:?}: what is older is forgotten", hedging.delay());
        hedging.note_latency(Duration::from_millis(1), at(500_000));
        assert_eq!(hedging.delay(), None, "after a long silence nothing is known");
    }

    #[test]
    fn a_fixed_delay_asks_for_nothing() {
        let hedging = Hedging::new(HedgeSpec { after: HedgeDelay::Time(40), share: 0, least: 1 });
        assert_eq!(hedging.delay(), Some(Duration::from_millis(40)));
        let taken = (0..100).filter(|_| hedging.take(at(1_000))).count();
        assert_eq!(taken, 10);
        hedging.count(Hedged::Begun);
        hedging.count(Hedged::Won);
        assert_eq!(hedging.counts(), HedgeCounts { begun: 1, won: 1, ..HedgeCounts::default() });
    }
}
