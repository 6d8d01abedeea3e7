//! Stick tables (configuration manual, section 11.1): entries by key, over all workers. A table is split by the hash of
//! the key into shards, each under a short lock of its own, so that workers seldom meet. Must never hold more entries
//! than its size says, never drop a tracked one, and never read a clock.
//!
//! An entry costs 32 bytes, its data (4 bytes a counter, 8 a counter of bytes, 12 a rate), its key (4 bytes for `ip` and
//! `integer`, 16 for `ipv6`, 16 and the text for the others) and 4 to 8 bytes of index.

mod bell;
mod datum;
mod entry;
mod feed;
mod key;
mod page;
mod plan;
mod rate;
mod servers;
mod shard;
#[cfg(test)]
mod tests;
mod tracked;

pub use datum::Datum;
pub use entry::{EntryMut, EntryView};
pub use feed::{Told, Update};
pub use key::{TableKey, sample_of, sample_type};
pub use page::Cursor;
pub use plan::{Layout, StickTable};
pub use servers::ServerNames;
pub use tracked::{Pinned, TableHandle, Tracked, Tracking};

use base::AppendOnlyVec;
use base::moment::Moment;
use bell::Bell;
use config::spec::DataKind;
use expression::pattern::Key;
use shard::Shard;
use std::hash::BuildHasher;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Shards of a large table.
const SHARDS: u32 = 64;
/// Entries that a shard should have room for: a smaller table has fewer shards.
const ENTRIES_PER_SHARD: u32 = 64;
/// Entries that are over and are taken out where one is added.
const SWEPT: usize = 2;
/// Entries that are looked at in a shard to make room.
const LOOKED_AT: usize = 64;

/// The tables of a process, by their index in the program. Those that were removed are there for sessions that began before.
#[derive(Debug, Default)]
pub struct Tables {
    tables: AppendOnlyVec<Arc<Table>>,
    random: u64,
}

impl Tables {
    /// Empty ones. `random` keys their hashes.
    pub fn new(tables: &[StickTable], random: u64) -> Self {
        let empty = |(at, table): (usize, &StickTable)| Arc::new(Table::new(table.clone(), hash_key(random, at)));
        Self { tables: tables.iter().enumerate().map(empty).collect(), random }
    }

    /// Another one, which is empty. False: its index is not the next one, or there is no room.
    pub fn add(&self, index: usize, table: StickTable) -> bool {
        self.tables.push(|at| Arc::new(Table::new(table, hash_key(self.random, at)))) == Ok(index)
    }

    /// A table is removed: nothing finds it by its name.
    pub fn remove(&self, index: usize) {
        self.tables.strike(index);
    }

    /// A table, be it removed.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&Arc<Table>> {
        self.tables.get(index)
    }

    /// All that were not removed.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Table>> {
        self.tables.iter()
    }
}

fn hash_key(random: u64, at: usize) -> Key {
    Key::new(random.wrapping_add((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// A place in a table. It stays that entry's as long as it is tracked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryRef {
    shard: u32,
    slot: u32,
}

impl EntryRef {
    /// As a number that is never 0: what the runtime API calls its address.
    pub fn number(self) -> u64 {
        1 << 44 | u64::from(self.shard) << 32 | u64::from(self.slot)
    }

    /// The place of such a number.
    pub fn of_number(number: u64) -> Option<Self> {
        let bare = number.checked_sub(1 << 44).filter(|bare| *bare < 1 << 40)?;
        Some(Self { shard: (bare >> 32) as u32, slot: bare as u32 })
    }
}

/// A shard on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Part(Mutex<Shard>);

/// A table.
#[derive(Debug)]
pub struct Table {
    /// What the configuration says about it.
    pub plan: StickTable,
    /// The servers that its entries name.
    pub servers: ServerNames,
    key: Key,
    /// How long an entry stays unless it is refreshed, nanoseconds; [`u64::MAX`]: until there is no room.
    life: u64,
    parts: Box<[Part]>,
    /// Entries, those included that are about to be made.
    used: AtomicU32,
    /// The number of the last refreshment.
    updates: AtomicU32,
    /// For the task that updates peers.
    bell: Bell,
}

impl Table {
    /// An empty one.
    pub fn new(plan: StickTable, key: Key) -> Self {
        let shards = (plan.size / ENTRIES_PER_SHARD).clamp(1, SHARDS).next_power_of_two().min(SHARDS);
        let part = || Part(Mutex::new(Shard::new(plan.key, plan.layout.words())));
        let parts = (0..shards).map(|_| part()).collect();
        let (used, updates) = (AtomicU32::new(0), AtomicU32::new(0));
        let life = plan.expire.map_or(u64::MAX, |life| u64::try_from(life.as_nanos()).unwrap_or(u64::MAX));
        Self { servers: ServerNames::default(), key, life, parts, used, updates, bell: Bell::default(), plan }
    }

    /// Frees all entries, except in shards of which one is tracked.
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

    /// Entries at this moment, those included that are over and were not yet taken out.
    pub fn used(&self) -> u32 {
        self.used.load(Relaxed)
    }

    /// Entries that it has room for.
    pub fn available(&self) -> u32 {
        self.plan.size.saturating_sub(self.used())
    }

    /// The shard and the hash of a key.
    #[inline]
    fn locate(&self, key: &[u8]) -> (u32, u32) {
        // Addresses of IPv4 and numbers take a product instead of a walk.
        let hash = match <[u8; 4]>::try_from(key) {
            Ok(four) => self.key.hash_one(u32::from_ne_bytes(four)),
            Err(_) => self.key.bytes(key),
        };
        ((hash >> 32) as u32 & (self.parts.len() as u32 - 1), hash as u32)
    }

    /// Every change is a single step, so a panic elsewhere does not spoil it.
    #[inline]
    fn shard(&self, at: u32) -> MutexGuard<'_, Shard> {
        self.parts[at as usize].0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When an entry is over that is refreshed now.
    #[inline]
    fn end(&self, now: Moment) -> Moment {
        Moment::from_nanos(now.as_nanos().saturating_add(self.life))
    }

    /// Refreshes an entry, and numbers that where peers are told. Behind it, when no shard is locked any more, [`Table::ring`].
    #[inline]
    fn touch(&self, shard: &mut Shard, at: u32, now: Moment) {
        shard.refresh(at, self.end(now));
        if self.plan.shared {
            shard.note_update(at, self.updates.fetch_add(1, SeqCst).wrapping_add(1));
        }
    }

    /// Something was updated: the task that updates peers is woken.
    #[inline]
    fn ring(&self) {
        if self.plan.shared {
            self.bell.ring();
        }
    }

    /// Reads the entry of a key, which lives no longer for it. `None`: there is none.
    pub fn find<T>(&self, key: &TableKey<'_>, now: Moment, read: impl FnOnce(EntryView<'_>) -> T) -> Option<T> {
        let key = key.bytes();
        let (at, hash) = self.locate(key);
        let shard = self.shard(at);
        let slot = shard.find(hash, key, now)?;
        Some(read(self.view(&shard, slot, now)))
    }

    /// The same, with the entry's place.
    pub fn find_place<T>(
        &self,
        key: &TableKey<'_>,
        now: Moment,
        read: impl FnOnce(EntryRef, EntryView<'_>) -> T,
    ) -> Option<T> {
        let key = key.bytes();
        let (at, hash) = self.locate(key);
        let shard = self.shard(at);
        let slot = shard.find(hash, key, now)?;
        Some(read(EntryRef { shard: at, slot }, self.view(&shard, slot, now)))
    }

    /// Changes the entry of a key, which is refreshed. `None`: there is none.
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

    /// Changes the entry of a key, which is refreshed, or made if there is none. `None`: there is no room for one.
    pub fn upsert<T>(&self, key: &TableKey<'_>, now: Moment, change: impl FnOnce(&mut EntryMut<'_>) -> T) -> Option<T> {
        let (_, slot, mut shard) = self.obtain(key.bytes(), now)?;
        self.touch(&mut shard, slot, now);
        let result = change(&mut self.lend(&mut shard, slot, now));
        drop(shard);
        self.ring();
        Some(result)
    }

    /// Pins the entry of a key, which is refreshed, or made if there is none, and changes it. `None`: there is no room.
    /// The caller has to release the place once.
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

    /// Changes a pinned entry, which is refreshed.
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
        let shard = self.shard(at.shard);
        read(self.view(&shard, at.slot, now))
    }

    /// Reads an element of a pinned entry. `None`: it is not stored.
    #[inline]
    pub fn get(&self, at: EntryRef, now: Moment, kind: DataKind, element: u32) -> Option<u64> {
        let shard = self.shard(at.shard);
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
        EntryMut { layout: &self.plan.layout, words: shard.words_mut(slot), now: rate::tick(now) }
    }

    /// The entry of a key, with the lock of its shard. It is made where there is none and there is room, or where room
    /// can be made.
    #[inline]
    fn obtain(&self, key: &[u8], now: Moment) -> Option<(u32, u32, MutexGuard<'_, Shard>)> {
        let (at, hash) = self.locate(key);
        let shard = self.shard(at);
        match shard.find(hash, key, now) {
            Some(slot) => Some((at, slot, shard)),
            None => self.make((at, hash), key, now, shard),
        }
    }

    /// The same for a key that has none in the shard which is locked.
    #[inline(never)]
    fn make<'t>(
        &'t self,
        (at, hash): (u32, u32),
        key: &[u8],
        now: Moment,
        mut shard: MutexGuard<'t, Shard>,
    ) -> Option<(u32, u32, MutexGuard<'t, Shard>)> {
        // The second time a place is held: the capacity that was freed, which no other caller can take.
        for holds_place in [false, true] {
            // What was over goes first, the old entry of that very key included.
            let swept = shard.forget(hash, key) + shard.expire(now, self.end(now), SWEPT);
            self.give_back(swept);
            if holds_place || self.reserve() {
                let slot = shard.insert(hash, key, self.end(now));
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

    /// Takes a place, if there is one. Where memory is short the table is as full as it may be, whatever its size.
    fn reserve(&self) -> bool {
        let size = if base::memory::PROCESS.may_keep() { self.plan.size } else { 0 };
        self.used.fetch_update(Relaxed, Relaxed, |used| (used < size).then(|| used + 1)).is_ok()
    }

    fn give_back(&self, places: usize) {
        if places > 0 {
            self.used.fetch_sub(places as u32, Relaxed);
        }
    }

    /// Takes out what is over, or the oldest entry if the table may: in the shard at `first`, else in another one. True:
    /// one of those places is the caller's.
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

    /// Takes out entries that are over, `most` of each shard; the moment when the next one will be, if there is one.
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

    /// Takes the entry of a key out. False: it is tracked. True where there is none.
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
