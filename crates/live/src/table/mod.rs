//! Stick tables (configuration manual, section 11.1): entries by key, over all workers. A table is split by the hash of
//! the key into shards, each under a short lock of its own, so that workers seldom contend. Must never hold more
//! entries than its size, never drop a tracked one, and never read a clock.
//!
//! An entry takes 32 bytes, plus its data (4 bytes per counter, 8 per byte counter, 12 per rate), its key (4 bytes for
//! `ip` and `integer`, 16 for `ipv6`, 16 and the text for the others) and 4 to 8 bytes of index.

mod datum;
mod entry;
mod feed;
mod key;
mod origins;
mod page;
mod plan;
mod rate;
mod servers;
mod shard;
mod sum;
#[cfg(test)]
mod tests;
mod tracked;
mod update_waker;

pub use datum::Datum;
pub use entry::{EntryMut, EntryView};
pub use feed::{Update, UpdateBatch};
pub use key::{TableKey, sample_of, sample_type};
pub use origins::Origin;
pub use page::Cursor;
pub use plan::{Layout, StickTable};
pub use servers::ServerNames;
pub use sum::Removed;
pub use tracked::{Pinned, TableHandle, Tracked, Tracking};

use base::AppendOnlyVec;
use base::moment::Moment;
use config::spec::DataKind;
use expression::pattern::Key;
use shard::Shard;
use std::hash::BuildHasher;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use update_waker::UpdateWaker;

/// Number of shards of a large table.
const SHARDS: u32 = 64;
/// Minimum number of entries per shard: a smaller table has fewer shards.
const ENTRIES_PER_SHARD: u32 = 64;
/// Expired entries removed when one is added.
const SWEPT: usize = 2;
/// Entries examined in a shard for eviction.
const LOOKED_AT: usize = 64;

/// The tables of a process, by their index in the program. Removed ones remain for sessions that began before.
#[derive(Debug, Default)]
pub struct Tables {
    tables: AppendOnlyVec<Arc<Table>>,
    random: u64,
}

impl Tables {
    /// Creates empty tables. `random` keys their hashes.
    pub fn new(tables: &[StickTable], random: u64) -> Self {
        let empty = |(at, table): (usize, &StickTable)| Arc::new(Table::new(table.clone(), hash_key(random, at)));
        Self { tables: tables.iter().enumerate().map(empty).collect(), random }
    }

    /// Adds an empty table. False: its index is not the next one, or the list is full.
    pub fn add(&self, index: usize, table: StickTable) -> bool {
        self.tables.push(|at| Arc::new(Table::new(table, hash_key(self.random, at)))) == Ok(index)
    }

    /// Removes a table: lookups by name no longer find it.
    pub fn remove(&self, index: usize) {
        self.tables.strike(index);
    }

    /// Returns a table, even a removed one.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&Arc<Table>> {
        self.tables.get(index)
    }

    /// Returns all tables that were not removed.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Table>> {
        self.tables.iter()
    }
}

fn hash_key(random: u64, at: usize) -> Key {
    Key::new(random.wrapping_add((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// The position of an entry in a table. Stable while the entry is tracked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryRef {
    shard: u32,
    slot: u32,
}

impl EntryRef {
    /// Returns a non-zero number: the address shown by the runtime API.
    pub fn number(self) -> u64 {
        1 << 44 | u64::from(self.shard) << 32 | u64::from(self.slot)
    }

    /// Returns the position of such a number.
    pub fn of_number(number: u64) -> Option<Self> {
        let bare = number.checked_sub(1 << 44).filter(|bare| *bare < 1 << 40)?;
        Some(Self { shard: (bare >> 32) as u32, slot: bare as u32 })
    }
}

/// A shard on its own cache lines.
#[derive(Debug)]
#[repr(align(128))]
struct Part(Mutex<Shard>);

/// The effect of a local change of an entry on its expiry and position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refreshment {
    /// It is refreshed.
    Local,
    /// It is refreshed, and the update is numbered, to be sent to peers.
    Numbered,
    /// None: only new values refresh a sum, and its position is that of its last update.
    OfSum,
}

#[derive(Debug)]
pub struct Table {
    /// The configuration of the table.
    pub plan: StickTable,
    /// The names of servers in its entries.
    pub servers: ServerNames,
    key: Key,
    /// The data that callers can change: none of a table of sums.
    writable: Layout,
    refreshment: Refreshment,
    /// Time until an entry expires unless it is refreshed, in nanoseconds; [`u64::MAX`]: kept until it is evicted. Zero in
    /// a table of sums: an entry lives as long as its values.
    life: u64,
    parts: Box<[Part]>,
    /// Number of entries, including reserved ones.
    used: AtomicU32,
    /// The number of the last update.
    updates: AtomicU32,
    /// Wakes the task that sends updates to peers.
    bell: UpdateWaker,
}

impl Table {
    /// Creates an empty table.
    pub fn new(plan: StickTable, key: Key) -> Self {
        let shards = (plan.size / ENTRIES_PER_SHARD).clamp(1, SHARDS).next_power_of_two().min(SHARDS);
        let part = || Part(Mutex::new(Shard::new(plan.key, plan.layout.words())));
        let parts = (0..shards).map(|_| part()).collect();
        let (used, updates) = (AtomicU32::new(0), AtomicU32::new(0));
        let life = plan.expire.map_or(u64::MAX, |life| match plan.summed {
            true => 0,
            false => u64::try_from(life.as_nanos()).unwrap_or(u64::MAX),
        });
        let refreshment = match (plan.summed, plan.shared) {
            (true, _) => Refreshment::OfSum,
            (false, true) => Refreshment::Numbered,
            (false, false) => Refreshment::Local,
        };
        let writable = if plan.summed { Layout::default() } else { plan.layout.clone() };
        Self {
            servers: ServerNames::default(),
            key,
            writable,
            refreshment,
            life,
            parts,
            used,
            updates,
            bell: UpdateWaker::default(),
            plan,
        }
    }

    /// Frees all entries, except in shards with a tracked one.
    pub fn free(&self) {
        for at in 0..self.parts.len() as u32 {
            let mut shard = self.shard(at);
            if !shard.has_tracked() {
                let empty = Shard::new(self.plan.key, self.plan.layout.words());
                let former = std::mem::replace(&mut *shard, empty);
                self.give_back(former.used());
            }
        }
    }

    /// The current number of entries, including expired ones that were not removed yet.
    pub fn used(&self) -> u32 {
        self.used.load(Relaxed)
    }

    /// The number of free entries.
    pub fn available(&self) -> u32 {
        self.plan.size.saturating_sub(self.used())
    }

    /// Returns the shard and the hash of a key.
    #[inline]
    fn locate(&self, key: &[u8]) -> (u32, u32) {
        // IPv4 addresses and numbers are hashed with a multiplication.
        let hash = match <[u8; 4]>::try_from(key) {
            Ok(four) => self.key.hash_one(u32::from_ne_bytes(four)),
            Err(_) => self.key.bytes(key),
        };
        ((hash >> 32) as u32 & (self.parts.len() as u32 - 1), hash as u32)
    }

    /// Every change is a single step, so a panic elsewhere does not corrupt it.
    #[inline]
    fn shard(&self, at: u32) -> MutexGuard<'_, Shard> {
        self.parts[at as usize].0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The expiry of an entry that is refreshed now.
    #[inline]
    fn end(&self, now: Moment) -> Moment {
        Moment::from_nanos(now.as_nanos().saturating_add(self.life))
    }

    /// Refreshes an entry, and numbers the update if the table is shared. Call [`Table::ring`] after the shard is
    /// unlocked.
    #[inline]
    fn touch(&self, shard: &mut Shard, at: u32, now: Moment) {
        if self.refreshment == Refreshment::OfSum {
            return;
        }
        shard.refresh(at, self.end(now));
        if self.refreshment == Refreshment::Numbered {
            shard.note_update(at, self.updates.fetch_add(1, SeqCst).wrapping_add(1));
        }
    }

    /// Wakes the task that sends updates to peers.
    #[inline]
    fn ring(&self) {
        if self.plan.shared {
            self.bell.ring();
        }
    }

    /// Reads the entry of a key without refreshing it. `None`: there is none.
    pub fn find<T>(&self, key: &TableKey<'_>, now: Moment, read: impl FnOnce(EntryView<'_>) -> T) -> Option<T> {
        let key = key.bytes();
        let (at, hash) = self.locate(key);
        let mut shard = self.shard(at);
        let slot = shard.find(hash, key, now)?;
        if !self.renew(&mut shard, slot, now) {
            return None;
        }
        Some(read(self.view(&shard, slot, now)))
    }

    /// The same with the entry's position.
    pub fn find_place<T>(
        &self,
        key: &TableKey<'_>,
        now: Moment,
        read: impl FnOnce(EntryRef, EntryView<'_>) -> T,
    ) -> Option<T> {
        let key = key.bytes();
        let (at, hash) = self.locate(key);
        let mut shard = self.shard(at);
        let slot = shard.find(hash, key, now)?;
        if !self.renew(&mut shard, slot, now) {
            return None;
        }
        Some(read(EntryRef { shard: at, slot }, self.view(&shard, slot, now)))
    }

    /// Changes and refreshes the entry of a key. `None`: there is none.
    pub fn refresh<T>(
        &self,
        key: &TableKey<'_>,
        now: Moment,
        change: impl FnOnce(&mut EntryMut<'_>) -> T,
    ) -> Option<T> {
        let key = key.bytes();
        let (at, hash) = self.locate(key);
        let mut shard = self.shard(at);
        let slot = shard.find(hash, key, now)?;
        self.touch(&mut shard, slot, now);
        let result = change(&mut self.lend(&mut shard, slot, now));
        drop(shard);
        self.ring();
        Some(result)
    }

    /// Changes and refreshes the entry of a key, creating it if necessary. `None`: the table is full.
    pub fn upsert<T>(&self, key: &TableKey<'_>, now: Moment, change: impl FnOnce(&mut EntryMut<'_>) -> T) -> Option<T> {
        let (_, slot, mut shard) = self.obtain(key.bytes(), now)?;
        self.touch(&mut shard, slot, now);
        let result = change(&mut self.lend(&mut shard, slot, now));
        drop(shard);
        self.ring();
        Some(result)
    }

    /// Pins the entry of a key, creating it if necessary, and changes and refreshes it. `None`: the table is full. The
    /// caller must release the position once.
    #[inline]
    fn pin(&self, key: &TableKey<'_>, now: Moment, change: impl FnOnce(&mut EntryMut<'_>)) -> Option<EntryRef> {
        let (at, slot, mut shard) = self.obtain(key.bytes(), now)?;
        self.touch(&mut shard, slot, now);
        *shard.trackers_mut(slot) += 1;
        change(&mut self.lend(&mut shard, slot, now));
        drop(shard);
        self.ring();
        Some(EntryRef { shard: at, slot })
    }

    /// Changes and refreshes a pinned entry.
    #[inline]
    pub fn change<T>(&self, at: EntryRef, now: Moment, change: impl FnOnce(&mut EntryMut<'_>) -> T) -> T {
        let mut shard = self.shard(at.shard);
        self.touch(&mut shard, at.slot, now);
        let result = change(&mut self.lend(&mut shard, at.slot, now));
        drop(shard);
        self.ring();
        result
    }

    /// Reads a pinned entry.
    #[inline]
    pub fn read<T>(&self, at: EntryRef, now: Moment, read: impl FnOnce(EntryView<'_>) -> T) -> T {
        let mut shard = self.shard(at.shard);
        self.renew(&mut shard, at.slot, now);
        read(self.view(&shard, at.slot, now))
    }

    /// Reads an element of a pinned entry. `None`: not stored.
    #[inline]
    pub fn get(&self, at: EntryRef, now: Moment, kind: DataKind, element: u32) -> Option<u64> {
        let mut shard = self.shard(at.shard);
        self.renew(&mut shard, at.slot, now);
        entry::read(&self.plan.layout, shard.words(at.slot), kind, element, rate::tick(now))
    }

    #[inline]
    fn view<'s>(&'s self, shard: &'s Shard, slot: u32, now: Moment) -> EntryView<'s> {
        let (words, key) = shard.parts(slot);
        let (trackers, until) = shard.standing(slot);
        EntryView { layout: &self.plan.layout, words, key, trackers, until, now }
    }

    #[inline]
    fn lend<'s>(&'s self, shard: &'s mut Shard, slot: u32, now: Moment) -> EntryMut<'s> {
        EntryMut { layout: &self.writable, words: shard.words_mut(slot), now: rate::tick(now) }
    }

    /// Returns the entry of a key, with the lock of its shard. Creates it if necessary, evicting another one if the
    /// table is full.
    #[inline]
    fn obtain(&self, key: &[u8], now: Moment) -> Option<(u32, u32, MutexGuard<'_, Shard>)> {
        let (at, hash) = self.locate(key);
        let shard = self.shard(at);
        match shard.find(hash, key, now) {
            Some(slot) => Some((at, slot, shard)),
            None => self.make(at, hash, key, now, shard),
        }
    }

    /// The same for a key that has no entry in the locked shard.
    #[inline(never)]
    fn make<'t>(
        &'t self,
        at: u32,
        hash: u32,
        key: &[u8],
        now: Moment,
        mut shard: MutexGuard<'t, Shard>,
    ) -> Option<(u32, u32, MutexGuard<'t, Shard>)> {
        // In the second pass an entry is reserved: the freed capacity, which no other caller can take.
        for holds_place in [false, true] {
            // Expired entries are removed first, including the former entry of the same key.
            let swept = shard.forget(hash, key) + shard.expire(now, self.end(now), SWEPT);
            self.give_back(swept);
            if holds_place || self.reserve() {
                let slot = shard.insert(hash, key, self.end(now));
                if self.refreshment == Refreshment::OfSum {
                    // Updates remain in the order of their numbers, also those before an entry without values.
                    shard.note_learned(slot, self.last_update());
                }
                return Some((at, slot, shard));
            }
            drop(shard);
            if !self.make_room(at, now) {
                break;
            }
            shard = self.shard(at);
            if let Some(slot) = shard.find(hash, key, now) {
                self.give_back(1);
                return Some((at, slot, shard));
            }
        }
        None
    }

    /// Reserves an entry, if the table is not full. When memory is short, the table counts as full, whatever its size.
    fn reserve(&self) -> bool {
        let size = if base::memory::PROCESS.may_keep() { self.plan.size } else { 0 };
        self.used.fetch_update(Relaxed, Relaxed, |used| (used < size).then(|| used + 1)).is_ok()
    }

    fn give_back(&self, places: usize) {
        if places > 0 {
            self.used.fetch_sub(places as u32, Relaxed);
        }
    }

    /// Removes expired entries, or the oldest entry if the table allows it: in the shard `first`, or else in another
    /// one. True: one of the freed entries is reserved for the caller.
    #[cold]
    fn make_room(&self, first: u32, now: Moment) -> bool {
        let shards = self.parts.len() as u32;
        (0..shards).any(|step| {
            let mut shard = self.shard((first + step) % shards);
            let mut removed = shard.expire(now, self.end(now), LOOKED_AT);
            if removed == 0 && !self.plan.nopurge {
                removed = usize::from(shard.drop_oldest(self.end(now), LOOKED_AT));
            }
            self.give_back(removed.saturating_sub(1));
            removed > 0
        })
    }

    /// Removes expired entries, `most` of each shard; returns when the next one expires, if there is one.
    pub fn sweep(&self, now: Moment, most: usize) -> Option<Moment> {
        self.plan.expire?;
        let ends = (0..self.parts.len() as u32).filter_map(|at| {
            let mut shard = self.shard(at);
            let removed = shard.expire(now, self.end(now), most);
            self.give_back(removed);
            shard.next_end()
        });
        ends.min()
    }

    /// Removes the entry of a key. False: it is tracked. True if there is none.
    pub fn remove(&self, key: &TableKey<'_>, now: Moment) -> bool {
        let key = key.bytes();
        let (at, hash) = self.locate(key);
        let mut shard = self.shard(at);
        let Some(slot) = shard.find(hash, key, now) else { return true };
        if shard.standing(slot).0 > 0 {
            return false;
        }
        shard.remove(slot);
        self.give_back(1);
        true
    }
}
