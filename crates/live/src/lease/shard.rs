//! A shard of a limit: its keys in an array, chained by hash. Used only under the lock of its owner. Must never hold more keys
//! than its maximum.

use super::ask::{Ask, Grant};
use super::entry::{ACTIVE, ALONE, Entry, FOREIGN, FRESH, LONGEST_PAUSE, Pace, RECENT, SCARCE, URGENT, millis};
use super::key;
use super::standing::Standing;
use base::moment::Moment;
use config::spec::LostMode;
use std::time::Duration;

/// No entry.
const NONE: u32 = u32::MAX;
/// Initial number of buckets.
const FIRST_BUCKETS: usize = 8;
/// Entries that the hand of eviction passes at most.
const LOOKED_AT: u32 = 16;
/// Refreshes without demand until the tokens of a key are given back.
const PATIENCE: u8 = 5;
/// Maximum number of requests for a key without an answer, and of keys that a call to [`Shard::ask_urgent`] requests again.
const MOST_FLIGHTS: u8 = 16;
const MOST_REPEATED: usize = 4;

/// Numbers of a limit on this node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitCounts {
    /// Keys that are kept.
    pub keys: u64,
    /// Tokens of leases that were not spent.
    pub leased: u64,
    /// Requests that were admitted, and those of them without a lease.
    pub admitted: u64,
    pub optimistic: u64,
    /// Requests that exceeded the limit.
    pub exceeded: u64,
    /// Keys that were dropped for others.
    pub evicted: u64,
    /// Keys for which the store holds other data.
    pub foreign: u64,
}

impl LimitCounts {
    /// Adds two sets of numbers.
    pub fn plus(self, other: &Self) -> Self {
        Self {
            keys: self.keys + other.keys,
            leased: self.leased + other.leased,
            admitted: self.admitted + other.admitted,
            optimistic: self.optimistic + other.optimistic,
            exceeded: self.exceeded + other.exceeded,
            evicted: self.evicted + other.evicted,
            foreign: self.foreign + other.foreign,
        }
    }
}

/// How many tokens a key should have.
pub(super) struct Target<'a> {
    pub(super) now: Moment,
    pub(super) pace: &'a Pace,
    /// The time that they should last, and the same for scarce keys, which are requested more often.
    pub(super) ahead: Duration,
    pub(super) ahead_scarce: Duration,
    /// Minimum time between two requests for a scarce key, in milliseconds.
    pub(super) pause: u32,
    /// Maximum number.
    pub(super) most: u32,
    /// State of the store: keys of another one are not requested.
    pub(super) epoch: u32,
}

impl Target<'_> {
    /// Returns the number of tokens for a rate of requests per millisecond, and for its variation.
    fn tokens(&self, rate: f32, is_scarce: bool) -> u32 {
        let ahead = if is_scarce { self.ahead_scarce } else { self.ahead };
        let mean = rate * ahead.as_millis() as f32;
        // A conversion saturates.
        ((mean + mean.sqrt() + 0.5) as u32).clamp(1, self.most)
    }
}

/// The limit of a request, and the state of its store.
pub(super) struct Terms<'a> {
    pub(super) pace: &'a Pace,
    pub(super) burst: u32,
    pub(super) lost: LostMode,
    pub(super) standing: &'a Standing,
    /// State of the store.
    pub(super) epoch: u32,
}

/// A shard.
#[derive(Debug)]
pub(super) struct Shard {
    entries: Vec<Entry>,
    keys: Vec<Box<[u8]>>,
    buckets: Vec<u32>,
    /// Slots of keys in use, and of those that need an answer soon.
    active: Vec<u32>,
    urgent: Vec<u32>,
    /// Position in `active` at which the next refresh continues.
    cursor: usize,
    /// Position of eviction.
    hand: u32,
    most: u32,
    counts: LimitCounts,
}

impl Shard {
    pub(super) fn new(most: u32) -> Self {
        Self {
            entries: Vec::new(),
            keys: Vec::new(),
            buckets: Vec::new(),
            active: Vec::new(),
            urgent: Vec::new(),
            cursor: 0,
            hand: 0,
            most,
            counts: LimitCounts::default(),
        }
    }

    /// Returns the slot of a key, whose state is that of an epoch. Creates it if necessary, evicting another one if the shard is
    /// full.
    #[inline]
    pub(super) fn obtain(&mut self, hash: u32, key: &[u8], terms: &Terms<'_>, now: Moment) -> usize {
        let slot = match self.find(hash, key) {
            Some(slot) => slot as usize,
            None => self.insert(hash, key) as usize,
        };
        let entry = &mut self.entries[slot];
        entry.flags |= RECENT;
        if entry.epoch != terms.epoch {
            entry.begin(terms.epoch, terms.standing.first_allowance(terms.burst), now);
            self.hurry(slot);
        }
        slot
    }

    #[inline]
    fn find(&self, hash: u32, key: &[u8]) -> Option<u32> {
        let mut at = *self.buckets.get(self.bucket(hash))?;
        // The chain ends with [`NONE`], which is out of bounds.
        while let Some(entry) = self.entries.get(at as usize) {
            if entry.hash == hash && *self.keys[at as usize] == *key {
                return Some(at);
            }
            at = entry.next;
        }
        None
    }

    #[inline]
    fn bucket(&self, hash: u32) -> usize {
        hash as usize & self.buckets.len().wrapping_sub(1)
    }

    /// Creates the entry of a key, without a valid epoch.
    #[inline(never)]
    fn insert(&mut self, hash: u32, key: &[u8]) -> u32 {
        // When memory is short, another key has to leave.
        let is_full = !self.entries.is_empty() && !base::memory::PROCESS.may_keep();
        let at = if self.entries.len() < self.most as usize && !is_full {
            if self.entries.len() >= self.buckets.len() {
                self.grow();
            }
            self.entries.push(Entry::default());
            self.keys.push(key.into());
            self.entries.len() as u32 - 1
        } else {
            let at = self.evict();
            self.keys[at as usize] = key.into();
            at
        };
        let bucket = self.bucket(hash);
        let next = std::mem::replace(&mut self.buckets[bucket], at);
        let entry = &mut self.entries[at as usize];
        // The lists may contain the slot already; its next key stays there.
        let listed = entry.flags & (ACTIVE | URGENT);
        let generation = entry.generation.wrapping_add(1);
        // No state of a store has this number before 4 billion changes.
        *entry = Entry { hash, next, generation, epoch: u32::MAX, flags: listed, ..Entry::default() };
        at
    }

    /// Doubles the buckets.
    fn grow(&mut self) {
        self.buckets = vec![NONE; (self.buckets.len() * 2).max(FIRST_BUCKETS)];
        for at in 0..self.entries.len() {
            let bucket = self.bucket(self.entries[at].hash);
            self.entries[at].next = std::mem::replace(&mut self.buckets[bucket], at as u32);
        }
    }

    /// Removes a key: one that was not used for some time, or has no debt, if the hand finds one soon. Returns its slot.
    fn evict(&mut self) -> u32 {
        self.hand %= self.entries.len() as u32;
        let (mut chosen, mut least) = (self.hand, u32::MAX);
        for _ in 0..LOOKED_AT {
            let at = self.hand;
            self.hand = (self.hand + 1) % self.entries.len() as u32;
            let entry = &mut self.entries[at as usize];
            if entry.debt < least {
                (chosen, least) = (at, entry.debt);
            }
            if !entry.has(RECENT) && entry.debt == 0 {
                chosen = at;
                break;
            }
            entry.flags &= !RECENT;
        }
        self.counts.evicted += 1;
        let Entry { hash, next, .. } = self.entries[chosen as usize];
        let bucket = self.bucket(hash);
        if self.buckets[bucket] == chosen {
            self.buckets[bucket] = next;
        } else {
            let mut before = self.buckets[bucket];
            while let Some(entry) = self.entries.get_mut(before as usize) {
                if entry.next == chosen {
                    entry.next = next;
                    break;
                }
                before = entry.next;
            }
        }
        chosen
    }

    /// Marks a key as one that needs an answer of the store soon.
    #[inline]
    fn hurry(&mut self, slot: usize) {
        let entry = &mut self.entries[slot];
        if !entry.has(URGENT) {
            entry.flags |= URGENT;
            self.urgent.push(slot as u32);
        }
    }

    /// Takes a token for a request; false: the limit is exceeded.
    #[inline]
    pub(super) fn take(&mut self, slot: usize, terms: &Terms<'_>, now: Moment) -> bool {
        if !self.entries[slot].has(ACTIVE) {
            self.resume(slot, terms, now);
        }
        let entry = &mut self.entries[slot];
        entry.demand = entry.demand.saturating_add(1);
        let is_lost = Standing::is_lost(entry.epoch) || entry.has(FOREIGN);
        let (debt, had) = (entry.debt, entry.tokens);
        let conforms = entry.conforms(terms.pace, now);
        // The number of nodes may have grown since the last answer.
        let most = terms.standing.first_allowance(terms.burst);
        let admitted = match terms.lost {
            LostMode::Open if is_lost => true,
            LostMode::Closed if is_lost => false,
            _ => conforms && (is_lost || entry.spend(most)),
        };
        if admitted {
            entry.admit(terms.pace, now);
            self.counts.admitted += 1;
            self.counts.optimistic += u64::from(entry.debt > debt);
        } else {
            self.counts.exceeded += 1;
        }
        if had == 0 && conforms && !is_lost && entry.allowance < entry.low {
            // The lease was not sufficient.
            entry.flags |= SCARCE;
        }
        if entry.has(SCARCE) && entry.may_gain(terms.pace, now) {
            self.hurry(slot);
        }
        admitted
    }

    /// Adds a key to those in use. If it was idle, what may be taken follows from what the store has added since its last answer.
    fn resume(&mut self, slot: usize, terms: &Terms<'_>, now: Moment) {
        let entry = &mut self.entries[slot];
        entry.flags = entry.flags & !SCARCE | ACTIVE | FRESH;
        entry.rate = 0.0;
        self.active.push(slot as u32);
        if entry.has(ALONE) && terms.standing.nodes() == 1 {
            return;
        }
        if entry.left < i32::MAX && !Standing::is_lost(entry.epoch) {
            let left = entry.left(terms.pace, entry.asked, now);
            entry.allowance = terms.standing.returning_allowance(left, terms.burst);
            entry.asked = millis(now);
            self.hurry(slot);
        }
    }

    /// Adds requests for urgent keys, `most` at a time. Only some of those are requested again that the store was asked for, so that
    /// keys that exceed their limits do not occupy it.
    pub(super) fn ask_urgent(&mut self, part: u32, target: &Target<'_>, most: usize, out: &mut Vec<Ask>) {
        let mut repeated = 0;
        for _ in 0..most {
            let Some(slot) = self.urgent.pop() else { return };
            let entry = &mut self.entries[slot as usize];
            entry.flags &= !URGENT;
            if entry.epoch != target.epoch {
                continue;
            }
            if !entry.has(FRESH) {
                if repeated >= MOST_REPEATED || !entry.has_paused(target.pause, target.now) {
                    continue;
                }
                repeated += 1;
            }
            self.push(part, slot, false, target, out);
        }
    }

    /// Adds requests for keys that were used, and removes idle ones from the list.
    pub(super) fn ask_due(&mut self, part: u32, target: &Target<'_>, most: usize, out: &mut Vec<Ask>) {
        let end = out.len() + most;
        for _ in 0..self.active.len() {
            if out.len() >= end {
                return;
            }
            if self.cursor >= self.active.len() {
                self.cursor = 0;
            }
            let slot = self.active[self.cursor];
            if self.refresh(part, slot, target, out) {
                self.cursor += 1;
            } else {
                self.entries[slot as usize].flags &= !ACTIVE;
                self.active.swap_remove(self.cursor);
            }
        }
    }

    /// Adds a request for a key if it is due. False: the key is idle, and has no tokens and no debt.
    fn refresh(&mut self, part: u32, slot: u32, target: &Target<'_>, out: &mut Vec<Ask>) -> bool {
        let entry = &mut self.entries[slot as usize];
        if entry.epoch != target.epoch {
            // It was not used since the store was lost.
            entry.demand = 0;
            return false;
        }
        let is_recent = !entry.has_paused(LONGEST_PAUSE, target.now);
        if entry.demand > 0 || is_recent {
            entry.idle = 0;
            if !(is_recent && entry.has(SCARCE)) || entry.has(FRESH) {
                self.push(part, slot, false, target, out);
            }
            return true;
        }
        entry.idle = entry.idle.saturating_add(1);
        let is_idle = entry.idle >= PATIENCE;
        if entry.debt > 0 || (is_idle && entry.tokens > 0) {
            self.push(part, slot, true, target, out);
        } else if is_idle && entry.flights == 0 {
            return false;
        }
        true
    }

    /// Adds a request, so that a key has the tokens that it needs, none if it `is_idle`: more than twice as many are given back. None is
    /// added if there is nothing to request or to report.
    fn push(&mut self, part: u32, slot: u32, is_idle: bool, target: &Target<'_>, out: &mut Vec<Ask>) {
        let entry = &mut self.entries[slot as usize];
        if entry.flights >= MOST_FLIGHTS {
            return;
        }
        let age = entry.debt_age(target.pace, target.now);
        let since = entry.average(target.now);
        let wanted = if is_idle { 0 } else { target.tokens(entry.rate, entry.has(SCARCE)) };
        entry.target = wanted;
        let excess = if entry.tokens > wanted.saturating_mul(2) { entry.tokens - wanted } else { 0 };
        // The allowance of a key that the store was not asked for is a guess.
        let allowance = if entry.left == i32::MAX { 0 } else { entry.allowance };
        let expected = entry.tokens.saturating_add(entry.wanted).saturating_add(allowance);
        let (reported, want) = (entry.debt, wanted.saturating_sub(expected));
        let spent = i64::from(reported) - i64::from(excess);
        if want == 0 && spent == 0 {
            return;
        }
        entry.tokens -= excess;
        entry.debt = 0;
        entry.reported = entry.reported.saturating_add(reported);
        entry.wanted = entry.wanted.saturating_add(want);
        entry.flights += 1;
        entry.flags &= !FRESH;
        let (generation, epoch) = (entry.generation, entry.epoch);
        let mut key = Vec::new();
        key::push(&self.keys[slot as usize], &mut key);
        out.push(Ask { part, slot, generation, epoch, since, key, reported, spent, age, want });
    }

    /// Applies an answer.
    pub(super) fn settle(&mut self, ask: &Ask, grant: Grant, terms: &Terms<'_>, now: Moment) {
        let Some(entry) = self.entries.get_mut(ask.slot as usize) else { return };
        if (entry.generation, entry.epoch) != (ask.generation, ask.epoch) || ask.epoch != terms.epoch {
            return;
        }
        entry.flags &= !FOREIGN;
        entry.land(ask);
        match grant {
            Grant::Tokens { count, left } => {
                entry.tokens = entry.tokens.saturating_add(count.min(ask.want));
                entry.left = left.clamp(i32::MIN.into(), i64::from(i32::MAX) - 1) as i32;
                let allowance = terms.standing.allowance(left);
                entry.allowance = allowance.saturating_sub(entry.debt).saturating_sub(entry.reported);
                entry.low = entry.target.max(entry.allowance - entry.allowance / 4);
                entry.flags &= !SCARCE;
                if terms.standing.nodes() > 1 {
                    entry.flags &= !ALONE;
                    if allowance < entry.target {
                        entry.flags |= SCARCE;
                    }
                } else if !entry.has(ALONE) {
                    entry.flags |= ALONE;
                    entry.catch_up(terms.pace, ask.since, now);
                }
            }
            Grant::Foreign => entry.flags = entry.flags & !SCARCE | FOREIGN,
        }
    }

    /// Takes back a request that was not sent: the next one has its debt, and what it wanted.
    pub(super) fn restore(&mut self, ask: &Ask) {
        let Some(entry) = self.entries.get_mut(ask.slot as usize) else { return };
        if (entry.generation, entry.epoch) != (ask.generation, ask.epoch) {
            return;
        }
        entry.land(ask);
        entry.debt = entry.debt.saturating_add(ask.reported);
        let excess = i64::from(ask.reported) - ask.spent;
        entry.tokens = entry.tokens.saturating_add(u32::try_from(excess).unwrap_or(u32::MAX));
    }

    /// Returns the numbers of the shard.
    pub(super) fn counts(&self) -> LimitCounts {
        let leased = self.active.iter().map(|slot| u64::from(self.entries[*slot as usize].tokens)).sum();
        let foreign = self.active.iter().filter(|slot| self.entries[**slot as usize].has(FOREIGN)).count() as u64;
        LimitCounts { keys: self.entries.len() as u64, leased, foreign, ..self.counts }
    }
}
