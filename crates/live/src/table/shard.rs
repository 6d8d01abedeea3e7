//! A shard of a table: its entries in an array, chained by hash, and in a list by their last refresh. Used only under
//! the lock of its owner. Must never create an entry without a request for it, and never drop a tracked one.

use super::key::Keys;
use super::origins::Origins;
use base::moment::Moment;
use config::spec::TableKeySpec;

/// No entry.
pub(super) const NONE: u32 = u32::MAX;
/// Stored as `older`: the entry is free.
const FREE: u32 = u32::MAX - 1;
/// Mask of the number of trackers; the bit above is [`LEARNED`].
const TRACKERS: u32 = LEARNED - 1;
/// The last update was learned from a peer: it is not sent to others.
const LEARNED: u32 = 1 << 31;
/// Initial number of buckets.
const FIRST_BUCKETS: usize = 8;

/// The fixed part of every entry besides its key and its data: 32 bytes.
#[derive(Debug)]
pub(super) struct Slot {
    /// Hash of the key.
    hash: u32,
    /// The next one in its chain, or the next free one.
    next: u32,
    /// The one refreshed before it.
    older: u32,
    /// The one refreshed after it.
    newer: u32,
    /// The number of trackers ([`TRACKERS`]), and the origin ([`LEARNED`]).
    trackers: u32,
    /// The number of its last update, if updates are sent to peers; wraps.
    update: u32,
    /// Its expiry; [`Moment::MAX`]: kept until it is evicted.
    until: Moment,
}

/// A shard of a table.
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) slots: Vec<Slot>,
    keys: Keys,
    pub(super) words: Vec<u32>,
    /// Words of an entry.
    pub(super) stride: usize,
    /// In a table of sums: by slot, the values of each origin.
    pub(super) origins: Vec<Origins>,
    buckets: Vec<u32>,
    free: u32,
    oldest: u32,
    newest: u32,
    used: usize,
}

impl Shard {
    pub(super) fn new(key: TableKeySpec, stride: usize) -> Self {
        Self {
            slots: Vec::new(),
            keys: Keys::new(key),
            words: Vec::new(),
            stride,
            origins: Vec::new(),
            buckets: Vec::new(),
            free: NONE,
            oldest: NONE,
            newest: NONE,
            used: 0,
        }
    }

    /// Whether an entry is tracked.
    pub(super) fn has_tracked(&self) -> bool {
        self.slots.iter().any(|slot| slot.older != FREE && slot.trackers & TRACKERS > 0)
    }

    /// The number of entries.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Returns the entry of a key at that time. An expired one is found only while it is tracked.
    #[inline]
    pub(super) fn find(&self, hash: u32, key: &[u8], now: Moment) -> Option<u32> {
        let at = self.position(hash, key)?;
        let slot = &self.slots[at as usize];
        (slot.until > now || slot.trackers & TRACKERS > 0).then_some(at)
    }

    #[inline]
    fn position(&self, hash: u32, key: &[u8]) -> Option<u32> {
        let mut at = *self.buckets.get(self.bucket(hash))?;
        // The chain ends with [`NONE`], which is out of bounds.
        while let Some(slot) = self.slots.get(at as usize) {
            if slot.hash == hash && self.keys.is(at as usize, key) {
                return Some(at);
            }
            at = slot.next;
        }
        None
    }

    #[inline]
    fn bucket(&self, hash: u32) -> usize {
        hash as usize & self.buckets.len().wrapping_sub(1)
    }

    /// Creates an entry for a key that has none, as the newest one.
    pub(super) fn insert(&mut self, hash: u32, key: &[u8], until: Moment) -> u32 {
        if self.used >= self.buckets.len() {
            self.grow();
        }
        let bucket = self.bucket(hash);
        let next = self.buckets[bucket];
        let slot = Slot { hash, next, older: NONE, newer: NONE, trackers: 0, update: 0, until };
        let at = if self.free == NONE {
            let at = self.slots.len() as u32;
            reserve(&mut self.slots, 1);
            reserve(&mut self.words, self.stride);
            self.slots.push(slot);
            self.keys.push(key);
            self.words.resize(self.words.len() + self.stride, 0);
            at
        } else {
            let at = self.free;
            self.free = self.slots[at as usize].next;
            self.slots[at as usize] = slot;
            self.keys.set(at as usize, key);
            let start = at as usize * self.stride;
            self.words[start..start + self.stride].fill(0);
            at
        };
        self.buckets[bucket] = at;
        self.used += 1;
        self.append(at);
        at
    }

    /// Doubles the buckets.
    fn grow(&mut self) {
        let buckets = (self.buckets.len() * 2).max(FIRST_BUCKETS);
        self.buckets = vec![NONE; buckets];
        for at in 0..self.slots.len() {
            if self.slots[at].older == FREE {
                continue;
            }
            let bucket = self.bucket(self.slots[at].hash);
            self.slots[at].next = std::mem::replace(&mut self.buckets[bucket], at as u32);
        }
    }

    /// Removes an entry.
    pub(super) fn remove(&mut self, at: u32) {
        let (hash, next) = (self.slots[at as usize].hash, self.slots[at as usize].next);
        let bucket = self.bucket(hash);
        if self.buckets[bucket] == at {
            self.buckets[bucket] = next;
        } else {
            let mut before = self.buckets[bucket];
            while before != NONE && self.slots[before as usize].next != at {
                before = self.slots[before as usize].next;
            }
            if before != NONE {
                self.slots[before as usize].next = next;
            }
        }
        self.unlink(at);
        self.keys.clear(at as usize);
        if let Some(origins) = self.origins.get_mut(at as usize) {
            *origins = Origins::default();
        }
        let slot = &mut self.slots[at as usize];
        (slot.next, slot.older) = (self.free, FREE);
        self.free = at;
        self.used -= 1;
    }

    fn append(&mut self, at: u32) {
        let before = std::mem::replace(&mut self.newest, at);
        let slot = &mut self.slots[at as usize];
        (slot.older, slot.newer) = (before, NONE);
        match self.slots.get_mut(before as usize) {
            Some(before) => before.newer = at,
            None => self.oldest = at,
        }
    }

    fn unlink(&mut self, at: u32) {
        let (older, newer) = (self.slots[at as usize].older, self.slots[at as usize].newer);
        match self.slots.get_mut(older as usize) {
            Some(slot) => slot.newer = newer,
            None => self.oldest = newer,
        }
        match self.slots.get_mut(newer as usize) {
            Some(slot) => slot.older = older,
            None => self.newest = older,
        }
    }

    /// Makes an entry the newest one, with that expiry.
    #[inline]
    pub(super) fn refresh(&mut self, at: u32, until: Moment) {
        self.slots[at as usize].until = until;
        if self.newest != at {
            self.unlink(at);
            self.append(at);
        }
    }

    /// Sets the expiry of an entry that keeps its position.
    pub(super) fn set_until(&mut self, at: u32, until: Moment) {
        self.slots[at as usize].until = until;
    }

    /// Removes the expired ones of the `most` oldest entries; returns their number. Tracked ones are kept until `end`
    /// at least.
    pub(super) fn expire(&mut self, now: Moment, end: Moment, most: usize) -> usize {
        let mut removed = 0;
        for _ in 0..most {
            let at = self.oldest;
            let Some(slot) = self.slots.get(at as usize).filter(|slot| slot.until <= now) else { break };
            if slot.trackers & TRACKERS > 0 {
                self.postpone(at, end);
            } else {
                self.remove(at);
                removed += 1;
            }
        }
        removed
    }

    /// Moves a tracked entry to the end of the list, as if it were refreshed; nothing is sent to peers.
    fn postpone(&mut self, at: u32, end: Moment) {
        self.refresh(at, end.max(self.slots[at as usize].until));
        let newest = self.newest;
        // The numbers must remain in order.
        let before = self.slots[newest as usize].older;
        if let Some(number) = self.slots.get(before as usize).map(|slot| slot.update) {
            self.note_learned(at, number);
        }
    }

    /// Removes the expired entry of a key, whatever its position; returns the number removed.
    pub(super) fn forget(&mut self, hash: u32, key: &[u8]) -> usize {
        let Some(at) = self.position(hash, key) else { return 0 };
        self.remove(at);
        1
    }

    /// Returns the expiry of the oldest entry.
    pub(super) fn next_end(&self) -> Option<Moment> {
        self.slots.get(self.oldest as usize).map(|slot| slot.until)
    }

    /// Removes the oldest entry that is not tracked, of the `most` oldest; false: there is none.
    pub(super) fn drop_oldest(&mut self, end: Moment, most: usize) -> bool {
        for _ in 0..most {
            let at = self.oldest;
            let Some(slot) = self.slots.get(at as usize) else { return false };
            if slot.trackers & TRACKERS == 0 {
                self.remove(at);
                return true;
            }
            self.postpone(at, end);
        }
        false
    }

    /// Returns the data of an entry.
    #[inline]
    pub(super) fn words_mut(&mut self, at: u32) -> &mut [u32] {
        let start = at as usize * self.stride;
        &mut self.words[start..start + self.stride]
    }

    /// Returns the data of an entry.
    #[inline]
    pub(super) fn words(&self, at: u32) -> &[u32] {
        let start = at as usize * self.stride;
        &self.words[start..start + self.stride]
    }

    /// Returns the data of an entry, and its key.
    #[inline]
    pub(super) fn parts(&self, at: u32) -> (&[u32], &[u8]) {
        (self.words(at), self.keys.get(at as usize))
    }

    /// Returns the number of its trackers, and its expiry.
    #[inline]
    pub(super) fn standing(&self, at: u32) -> (u32, Moment) {
        let slot = &self.slots[at as usize];
        (slot.trackers & TRACKERS, slot.until)
    }

    /// Returns the number of its trackers, to be changed.
    #[inline]
    pub(super) fn trackers_mut(&mut self, at: u32) -> &mut u32 {
        &mut self.slots[at as usize].trackers
    }

    /// Records the number of its last update.
    #[inline]
    pub(super) fn note_update(&mut self, at: u32, update: u32) {
        let slot = &mut self.slots[at as usize];
        (slot.update, slot.trackers) = (update, slot.trackers & TRACKERS);
    }

    /// Records that its last update must not be sent, and the number after which it happened.
    pub(super) fn note_learned(&mut self, at: u32, update: u32) {
        let slot = &mut self.slots[at as usize];
        (slot.update, slot.trackers) = (update, slot.trackers | LEARNED);
    }

    /// Passes the entries with numbers above `after`, newest first, until `take` returns false.
    pub(super) fn each_update(&self, after: u32, mut take: impl FnMut(u32, u32) -> bool) {
        let mut at = self.newest;
        while let Some(slot) = self.slots.get(at as usize) {
            // Numbers wrap.
            if slot.update.wrapping_sub(after) as i32 <= 0 {
                return;
            }
            if slot.trackers & LEARNED == 0 && !take(at, slot.update) {
                return;
            }
            at = slot.older;
        }
    }

    /// Whether the last update of an entry was local and has a number above `after`.
    pub(super) fn told_behind(&self, at: u32, after: u32) -> bool {
        let slot = &self.slots[at as usize];
        slot.trackers & LEARNED == 0 && slot.update.wrapping_sub(after) as i32 > 0
    }

    /// Whether there is an entry in that slot.
    pub(super) fn is_used(&self, at: u32) -> bool {
        self.slots.get(at as usize).is_some_and(|slot| slot.older != FREE)
    }

    /// The number of slots, including free ones.
    pub(super) fn places(&self) -> u32 {
        self.slots.len() as u32
    }
}

/// Grows the capacity by a quarter instead of doubling it: a table has a limit, and its memory is counted.
pub(super) fn reserve<T>(list: &mut Vec<T>, more: usize) {
    if list.capacity() - list.len() < more {
        list.reserve_exact(more.max(list.len() / 4).max(8 * more));
    }
}
