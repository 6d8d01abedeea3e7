//! Limits that hold over several nodes (section `store`; Weir's own). A node takes tokens of a key from a store in advance, as a
//! lease, and spends them without waiting; a task of the engine requests leases in the background. Keys are divided by a keyed
//! hash into shards, each under a short lock of its own. Must never hold more keys than the size of the limit, never admit more
//! than the limit on this node alone, and never read a clock.

mod ask;
mod entry;
mod key;
mod plan;
mod shard;
pub mod slots;
mod standing;
#[cfg(test)]
mod tests;

pub use ask::{Ask, Grant};
pub use key::LimitKey;
pub use plan::LimitPlan;
pub use shard::LimitCounts;
pub use standing::Standing;

use base::moment::Moment;
use config::spec::LostMode;
use entry::Pace;
use expression::pattern::Key;
use shard::{Shard, Target, Terms};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Number of shards of a large limit.
const SHARDS: u32 = 64;
/// Minimum number of keys per shard: a smaller limit has fewer shards.
const KEYS_PER_SHARD: u32 = 64;

/// How often leases of keys in use are renewed.
pub const REFRESH: Duration = Duration::from_millis(100);

/// The time for which tokens of scarce keys should last, beyond the delay of the store: these are requested several times within it.
const SCARCE_REFRESH: Duration = Duration::from_millis(50);
/// The delay of the store is divided by that number of requests for a scarce key at most.
const FLIGHTS: u32 = 8;

/// Longest delay of the store for which leases are sized.
const LONGEST_DELAY: Duration = Duration::from_secs(1);

/// The limits of a process, by their index in the program.
#[derive(Debug, Default)]
pub struct Limits {
    limits: Box<[Limit]>,
}

impl Limits {
    /// Creates limits without keys. `random` keys their hashes.
    pub fn new(plans: &[LimitPlan], random: u64) -> Self {
        let mut standings: Vec<Arc<Standing>> = Vec::new();
        let limits = plans.iter().enumerate().map(|(at, plan)| {
            while standings.len() <= plan.store {
                standings.push(Arc::default());
            }
            let key = Key::new(random.wrapping_add((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
            Limit::new(plan.clone(), Arc::clone(&standings[plan.store]), key)
        });
        Self { limits: limits.collect() }
    }

    /// Returns a limit.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&Limit> {
        self.limits.get(index)
    }

    /// Returns the limits of a store, with their indices.
    pub fn of_store(&self, store: usize) -> impl Iterator<Item = (usize, &Limit)> {
        self.limits.iter().enumerate().filter(move |(_, limit)| limit.plan.store == store)
    }
}

/// A shard on its own cache lines.
#[derive(Debug)]
#[repr(align(128))]
struct Part(Mutex<Shard>);

/// Decisions without a key, while the store is lost. On its own cache lines: the other fields of a limit are only read.
#[derive(Debug, Default)]
#[repr(align(128))]
struct LostCounts {
    admitted: AtomicU64,
    exceeded: AtomicU64,
}

/// Requests of one call over the shards.
struct Round<'a> {
    /// The shard at which the next call begins.
    start: &'a AtomicUsize,
    /// Maximum number of requests.
    most: usize,
}

/// A limit, and the keys that this node has seen.
#[derive(Debug)]
pub struct Limit {
    /// The configuration of the limit.
    pub plan: LimitPlan,
    /// The state of its store.
    pub standing: Arc<Standing>,
    key: Key,
    pace: Pace,
    parts: Box<[Part]>,
    /// Decisions of `lost open` and `lost closed`.
    lost: LostCounts,
    /// The shards at which the next calls of [`Self::ask_urgent`] and [`Self::ask_due`] begin: those that the last ones have not
    /// reached.
    urgent_start: AtomicUsize,
    due_start: AtomicUsize,
}

impl Limit {
    /// Creates a limit without keys.
    pub fn new(plan: LimitPlan, standing: Arc<Standing>, key: Key) -> Self {
        let shards = (plan.size / KEYS_PER_SHARD).clamp(1, SHARDS).next_power_of_two().min(SHARDS);
        // Rounded down, so that all shards together hold no more than the size.
        let most = (plan.size / shards).max(1);
        let parts = (0..shards).map(|_| Part(Mutex::new(Shard::new(most)))).collect();
        let (urgent_start, due_start) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let lost = LostCounts::default();
        Self { pace: Pace::of(&plan), plan, standing, key, parts, lost, urgent_start, due_start }
    }

    /// Takes one token of a key. Returns true if the limit is exceeded: there was none.
    #[inline]
    pub fn exceeds(&self, key: &LimitKey, now: Moment) -> bool {
        let epoch = self.standing.epoch();
        let is_lost = Standing::is_lost(epoch);
        match self.plan.lost {
            LostMode::Open if is_lost => {
                self.lost.admitted.fetch_add(1, Relaxed);
                return false;
            }
            LostMode::Closed if is_lost => {
                self.lost.exceeded.fetch_add(1, Relaxed);
                return true;
            }
            _ => {}
        }
        let hash = self.key.bytes(key.bytes());
        let at = (hash >> 32) as usize & (self.parts.len() - 1);
        let terms = self.terms(epoch);
        let mut shard = self.shard(at);
        let slot = shard.obtain(hash as u32, key.bytes(), &terms, now);
        !shard.take(slot, &terms, now)
    }

    #[inline]
    fn terms(&self, epoch: u32) -> Terms<'_> {
        let (burst, lost) = (self.plan.burst, self.plan.lost);
        Terms { pace: &self.pace, burst, lost, standing: &self.standing, epoch }
    }

    /// Every change is a single step, so a panic elsewhere does not corrupt it.
    #[inline]
    fn shard(&self, at: usize) -> MutexGuard<'_, Shard> {
        self.parts[at].0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds requests to the store for keys whose state is unknown or that may have too few tokens, `most` at a time. `delay` is the time
    /// that an answer takes.
    pub fn ask_urgent(&self, now: Moment, delay: Duration, most: usize, out: &mut Vec<Ask>) {
        let target = self.target(now, delay);
        let round = Round { start: &self.urgent_start, most };
        self.ask(&target, &round, out, |shard, part, most, out| shard.ask_urgent(part, &target, most, out));
    }

    /// The same for all keys that were used since the last call. Call it once per [`REFRESH`].
    pub fn ask_due(&self, now: Moment, delay: Duration, most: usize, out: &mut Vec<Ask>) {
        let target = self.target(now, delay);
        let round = Round { start: &self.due_start, most };
        self.ask(&target, &round, out, |shard, part, most, out| shard.ask_due(part, &target, most, out));
    }

    fn target(&self, now: Moment, delay: Duration) -> Target<'_> {
        let delay = delay.min(LONGEST_DELAY);
        let pause = (delay / FLIGHTS).as_millis() as u32;
        let (ahead, ahead_scarce) = (REFRESH + delay, SCARCE_REFRESH.max(delay / FLIGHTS * 2) + delay);
        let most = self.plan.burst.saturating_add(self.advance(delay));
        Target { now, pace: &self.pace, ahead, ahead_scarce, pause, most, epoch: self.standing.epoch() }
    }

    fn ask(
        &self,
        target: &Target<'_>,
        round: &Round<'_>,
        out: &mut Vec<Ask>,
        each: impl Fn(&mut Shard, u32, usize, &mut Vec<Ask>),
    ) {
        if Standing::is_lost(target.epoch) {
            return;
        }
        let end = out.len() + round.most;
        let first = round.start.load(Relaxed);
        for step in 0..self.parts.len() {
            let part = (first + step) & (self.parts.len() - 1);
            let left = end.saturating_sub(out.len());
            if left == 0 {
                round.start.store(part, Relaxed);
                return;
            }
            each(&mut self.shard(part), part as u32, left, out);
        }
    }

    /// Returns how many tokens the store grants in advance, beyond the burst: most of what it adds while tokens are on their way to
    /// nodes or wait there. `delay` is the time that an answer takes.
    pub fn advance(&self, delay: Duration) -> u32 {
        let ahead = SCARCE_REFRESH * 2 / 5 + delay.min(LONGEST_DELAY) * 4 / 5;
        u32::try_from(ahead.as_nanos() / u128::from(self.plan.interval())).unwrap_or(u32::MAX)
    }

    /// Applies an answer of the store. An answer for a key that has been evicted is dropped.
    pub fn settle(&self, ask: &Ask, grant: Grant, now: Moment) {
        if (ask.part as usize) < self.parts.len() {
            let terms = self.terms(self.standing.epoch());
            self.shard(ask.part as usize).settle(ask, grant, &terms, now);
        }
    }

    /// Takes back a request that was not sent. One for a key that has been evicted is dropped.
    pub fn restore(&self, ask: &Ask) {
        if (ask.part as usize) < self.parts.len() {
            self.shard(ask.part as usize).restore(ask);
        }
    }

    /// Returns the sums over all shards, and of the decisions while the store was lost.
    pub fn counts(&self) -> LimitCounts {
        let (admitted, exceeded) = (self.lost.admitted.load(Relaxed), self.lost.exceeded.load(Relaxed));
        let lost = LimitCounts { admitted, exceeded, ..LimitCounts::default() };
        (0..self.parts.len()).fold(lost, |sum, part| sum.plus(&self.shard(part).counts()))
    }
}
