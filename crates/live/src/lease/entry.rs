//! One key of a limit: its tokens, and its own rate on this node. Must never know the key.

use super::plan::LimitPlan;
use base::moment::Moment;

/// The rate of a limit in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Time in which one token is added.
    interval: u64,
    /// Time in which the burst is added.
    tolerance: u64,
}

impl Pace {
    pub(super) fn of(plan: &LimitPlan) -> Self {
        let interval = plan.interval();
        Self { interval, tolerance: interval.saturating_mul(plan.burst.into()) }
    }
}

/// An entry of the list of keys in use ([`Entry::flags`]).
pub(super) const ACTIVE: u8 = 1;
/// An entry of the list of urgent keys.
pub(super) const URGENT: u8 = 2;
/// A request to the store has no answer yet.
pub(super) const IN_FLIGHT: u8 = 4;
/// The store holds other data for the key: it is treated as if the store were lost.
pub(super) const FOREIGN: u8 = 8;
/// Used since the hand of eviction has passed.
pub(super) const RECENT: u8 = 16;

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
    /// Requests since the last request to the store.
    pub(super) demand: u32,
    /// Time of that, in milliseconds.
    pub(super) asked: u32,
    /// Consecutive refreshes without demand.
    pub(super) idle: u8,
    pub(super) flags: u8,
}

impl Entry {
    /// Forgets what was learned from the store. `allowance`: tokens that may be taken before it answers.
    pub(super) fn begin(&mut self, epoch: u32, allowance: u32) {
        (self.epoch, self.tokens, self.debt, self.allowance) = (epoch, 0, 0, allowance);
        self.flags &= !(IN_FLIGHT | FOREIGN);
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

    /// Takes a token. False: there is none.
    #[inline]
    pub(super) fn spend(&mut self) -> bool {
        if self.tokens > 0 {
            self.tokens -= 1;
            return true;
        }
        if self.allowance == 0 {
            return false;
        }
        self.allowance -= 1;
        self.debt = self.debt.saturating_add(1);
        true
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}
