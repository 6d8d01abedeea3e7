//! One key of a limit: its tokens, and its own rate on this node. Must never know the key.

use super::ask::Ask;
use super::plan::LimitPlan;
use base::moment::Moment;
use std::time::Duration;

/// Maximum age of a debt.
const OLDEST: Duration = Duration::from_secs(1);

/// Bounds of [`Pace::pause`] in milliseconds: two ticks of the task that requests tokens, which may be late, and the time in which all
/// keys in use are refreshed.
const PAUSE: u32 = 15;
pub(super) const LONGEST_PAUSE: u32 = 95;
/// Time over which demand is averaged, and the minimum time since the last request to the store, in milliseconds.
const AVERAGED: f32 = 40.0;
const SHORTEST: f32 = 10.0;

/// The rate of a limit in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Time in which one token is added.
    interval: u64,
    /// Time in which the burst is added.
    tolerance: u64,
    /// Time in which one token is added, in milliseconds, within bounds.
    pause: u32,
}

impl Pace {
    pub(super) fn of(plan: &LimitPlan) -> Self {
        let interval = plan.interval();
        let pause = (interval / 1_000_000).clamp(PAUSE.into(), LONGEST_PAUSE.into()) as u32;
        Self { interval, tolerance: interval.saturating_mul(plan.burst.into()), pause }
    }
}

/// An entry of the list of keys in use ([`Entry::flags`]).
pub(super) const ACTIVE: u8 = 1;
/// An entry of the list of urgent keys.
pub(super) const URGENT: u8 = 2;
/// Tokens and allowance may not suffice until an answer: further requests are sent to the store before it answers.
pub(super) const SCARCE: u8 = 4;
/// The store holds other data for the key: it is treated as if the store were lost.
pub(super) const FOREIGN: u8 = 8;
/// Used since the hand of eviction has passed.
pub(super) const RECENT: u8 = 16;
/// The rate of this node, which is the only one, includes what the store knew of the key.
pub(super) const ALONE: u8 = 32;
/// The store was not asked since the key is in use.
pub(super) const FRESH: u8 = 64;

/// A key.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Entry {
    pub(super) hash: u32,
    /// The next entry in its chain.
    pub(super) next: u32,
    /// Incremented when another key takes the entry, so that late answers are recognized.
    pub(super) generation: u32,
    /// State of the store for which the fields below are valid.
    pub(super) epoch: u32,
    /// Theoretical arrival time of GCRA, for the requests that this node has admitted, in nanoseconds.
    pub(super) arrival: u64,
    /// Tokens of the lease.
    pub(super) tokens: u32,
    /// Tokens that may be taken in addition, before the store knows.
    pub(super) allowance: u32,
    /// Tokens taken in addition, which the store does not know yet.
    pub(super) debt: u32,
    /// Tokens that are requested, and debts that are reported, without an answer.
    pub(super) wanted: u32,
    pub(super) reported: u32,
    /// Tokens that the key should have: its demand until the answer to the next request.
    pub(super) target: u32,
    /// Without a lease, the key is scarce below this allowance.
    pub(super) low: u32,
    /// Requests since the last request to the store.
    pub(super) demand: u32,
    /// Time of that, or of the first request in the epoch or after a pause, in milliseconds.
    pub(super) asked: u32,
    /// Average demand in requests per millisecond.
    pub(super) rate: f32,
    /// Tokens that the store had left at its last answer; the maximum before there is one.
    pub(super) left: i32,
    /// Requests to the store without an answer.
    pub(super) flights: u8,
    /// Consecutive refreshes without demand.
    pub(super) idle: u8,
    pub(super) flags: u8,
}

impl Entry {
    /// Forgets what was learned from the store. `allowance`: tokens that may be taken before it answers.
    pub(super) fn begin(&mut self, epoch: u32, allowance: u32, now: Moment) {
        (self.epoch, self.tokens, self.debt, self.allowance) = (epoch, 0, 0, allowance);
        (self.demand, self.asked, self.left) = (0, millis(now), i32::MAX);
        (self.wanted, self.reported, self.flights) = (0, 0, 0);
        (self.rate, self.target, self.low) = (0.0, 0, u32::MAX);
        self.flags = self.flags & !(SCARCE | FOREIGN | ALONE) | FRESH;
    }

    /// Admits a request if the rate of this node allows it (generic cell rate algorithm).
    #[inline]
    pub(super) fn conforms(&self, pace: &Pace, now: Moment) -> bool {
        let now = now.as_nanos();
        let next = self.arrival.max(now).saturating_add(pace.interval);
        next - now <= pace.tolerance
    }

    /// Counts an admitted request.
    #[inline]
    pub(super) fn admit(&mut self, pace: &Pace, now: Moment) {
        self.arrival = self.arrival.max(now.as_nanos()).saturating_add(pace.interval);
    }

    /// Returns how many tokens the store has at most, from its last answer and what it has added since a time in milliseconds.
    pub(super) fn left(&self, pace: &Pace, since: u32, now: Moment) -> i64 {
        let elapsed = u64::from(millis(now).wrapping_sub(since)) * 1_000_000;
        i64::from(self.left).saturating_add((elapsed / pace.interval) as i64)
    }

    /// Returns the time since the tokens of the debt began to be taken, as if each was taken when the one before had been added again.
    pub(super) fn debt_age(&self, pace: &Pace, now: Moment) -> Duration {
        if self.debt == 0 {
            return Duration::ZERO;
        }
        let began = self.arrival.saturating_sub(pace.interval.saturating_mul(self.debt.into()));
        Duration::from_nanos(now.as_nanos().saturating_sub(began)).min(OLDEST)
    }

    /// Brings the rate of this node forward, so that it admits no more than the store has left and this node holds. Since a time in
    /// milliseconds, no earlier request was unknown to the store.
    pub(super) fn catch_up(&mut self, pace: &Pace, since: u32, now: Moment) {
        let held = i64::from(self.tokens) - i64::from(self.debt) - i64::from(self.reported);
        // One more: the store has rounded down.
        let remaining = self.left(pace, since, now).saturating_add(held).saturating_add(1);
        let burst = (pace.tolerance / pace.interval) as i64;
        // The store bounds what is taken in the same way.
        let taken = burst.saturating_sub(remaining).clamp(0, burst.saturating_mul(8)) as u64;
        self.arrival = self.arrival.max(now.as_nanos().saturating_add(taken.saturating_mul(pace.interval)));
    }

    /// Takes a token; `most`: maximum number without a lease. False: there is none.
    #[inline]
    pub(super) fn spend(&mut self, most: u32) -> bool {
        if self.tokens > 0 {
            self.tokens -= 1;
            return true;
        }
        self.allowance = self.allowance.min(most);
        if self.allowance == 0 {
            return false;
        }
        self.allowance -= 1;
        self.debt = self.debt.saturating_add(1);
        true
    }

    /// Averages the demand since the last request to the store. Returns the time of that request in milliseconds.
    pub(super) fn average(&mut self, now: Moment) -> u32 {
        let since = std::mem::replace(&mut self.asked, millis(now));
        let elapsed = (self.asked.wrapping_sub(since) as f32).max(SHORTEST);
        let demand = std::mem::take(&mut self.demand) as f32 / elapsed;
        self.rate += (demand - self.rate) * (elapsed / (elapsed + AVERAGED));
        since
    }

    /// Whether the last request to the store was some milliseconds ago.
    #[inline]
    pub(super) fn has_paused(&self, pause: u32, now: Moment) -> bool {
        millis(now).wrapping_sub(self.asked) >= pause
    }

    /// Whether another request to the store may get tokens: it had some, or has added one since the last request.
    #[inline]
    pub(super) fn may_gain(&self, pace: &Pace, now: Moment) -> bool {
        self.has_paused(if self.left > 0 { PAUSE } else { pace.pause }, now)
    }

    /// Forgets a request to the store that has an answer, or was not sent.
    pub(super) fn land(&mut self, ask: &Ask) {
        self.flights = self.flights.saturating_sub(1);
        self.wanted = self.wanted.saturating_sub(ask.want);
        self.reported = self.reported.saturating_sub(ask.reported);
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Returns milliseconds that wrap.
pub(super) fn millis(now: Moment) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}
