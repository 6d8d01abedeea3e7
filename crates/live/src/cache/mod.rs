//! Responses stored for later requests (configuration manual, section 6). A cache is split by the hash of the key into
//! shards, each under a short lock of its own; its total size is counted in blocks of a kilobyte. Lookups find complete
//! responses only. Must never exceed its size, never compare a key by its hash alone, never interpret a message, and
//! never read a clock.

mod blocks;
mod coalescing;
mod disk;
mod entry;
mod eviction;
mod lifetime;
mod lookup;
mod plan;
mod shard;
mod sketch;
mod storing;
#[cfg(test)]
mod tests;
mod vary;

pub use coalescing::{FlightResult, Lead, Role, Waiting};
pub use disk::{PendingWrites, Place};
pub use entry::{CacheListing, Entry, Object};
pub use lifetime::{Lifetime, RequestDirectives};
pub use lookup::{CacheLookup, Update};
pub use plan::CachePlan;
pub use storing::Storing;
pub use vary::{Codings, Signature, Varies};

use base::moment::Moment;
use blocks::{BLOCK, blocks};
use entry::{Newcomer, Segment};
use expression::pattern::Key;
use shard::Shard;
use std::hash::BuildHasher;
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wire::http::Head;

/// Number of shards: enough that workers seldom contend.
const SHARDS: usize = 16;

/// The caches of a program, by index.
#[derive(Debug, Default)]
pub struct Caches(Vec<Arc<Cache>>);

impl Caches {
    /// Creates empty caches. `random` keys their hashes.
    pub fn new(plans: &[CachePlan], random: u64) -> Self {
        let key = |at: usize| Key::new(random.wrapping_add((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        Self(plans.iter().enumerate().map(|(at, plan)| Arc::new(Cache::new(plan.clone(), key(at)))).collect())
    }

    /// Returns the cache of that index.
    pub fn get(&self, index: usize) -> Option<&Arc<Cache>> {
        self.0.get(index)
    }

    /// Returns all caches, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Cache>> {
        self.0.iter()
    }
}

/// A cache (`cache` section).
#[derive(Debug)]
pub struct Cache {
    plan: CachePlan,
    key: Key,
    shards: Box<[Mutex<Shard>]>,
    /// Requests in flight, split into shards as well.
    flights: Box<[coalescing::Flights]>,
    /// Blocks in use: by entries, and by responses still being stored.
    used: AtomicU32,
    /// Blocks of entries with hints only.
    hints: AtomicU32,
    /// Blocks of the window segment.
    window: AtomicU32,
    /// Blocks of the protected segment.
    protected: AtomicU32,
    /// The frequencies of keys.
    sketch: sketch::Sketch,
    /// The index of its file.
    disk: Option<disk::Disk>,
    /// The number of the last use: the entry with the smallest number is the least recently used.
    turn: AtomicU64,
}

impl Cache {
    fn new(plan: CachePlan, key: Key) -> Self {
        // Not the key that selects the shard: keys within a shard share bits of that hash.
        let within = Key::new(key.bytes(b"within a shard"));
        let shards = (0..SHARDS).map(|_| Mutex::new(Shard::new(within))).collect();
        let flights = (0..SHARDS).map(|_| coalescing::Flights::default()).collect();
        let [used, hints, window, protected] = std::array::from_fn(|_| AtomicU32::new(0));
        let disk = (plan.disk > 0).then(|| disk::Disk::new(plan.disk));
        let (sketch, turn) = (sketch::Sketch::new(plan.blocks), AtomicU64::new(0));
        Self { plan, key, shards, flights, used, hints, window, protected, sketch, disk, turn }
    }

    pub fn plan(&self) -> &CachePlan {
        &self.plan
    }

    /// Free blocks.
    pub fn available(&self) -> u32 {
        self.plan.blocks.saturating_sub(self.used.load(Acquire))
    }

    /// Blocks of entries without readers: they may be evicted.
    pub fn idle_blocks(&self) -> u32 {
        (0..self.shards.len()).map(|at| self.lock(at).idle_blocks()).sum()
    }

    fn hash(&self, key: &[u8]) -> u64 {
        self.key.hash_one(key)
    }

    fn lock(&self, shard: usize) -> MutexGuard<'_, Shard> {
        self.shards[shard % self.shards.len()].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shard(&self, key: &[u8]) -> MutexGuard<'_, Shard> {
        self.lock(self.hash(key) as usize)
    }

    fn flights(&self, key: &[u8]) -> &coalescing::Flights {
        &self.flights[self.hash(key) as usize % self.flights.len()]
    }

    fn next_turn(&self) -> u64 {
        self.turn.fetch_add(1, Relaxed) + 1
    }

    /// Looks up a response for a request with that key and these fields. Counts the request.
    pub fn look_up(&self, key: &[u8], request: &Signature, now: Moment) -> CacheLookup {
        let hash = self.hash(key);
        self.sketch.count(hash);
        let mut shard = self.lock(hash as usize);
        // The entry used last need not be updated: threads that request the same key write nothing.
        let use_again = |used: u64| if used == self.turn.load(Relaxed) { used } else { self.next_turn() };
        let (found, freed) = shard.look_up(key, request, now, &self.plan, use_again);
        self.give_back(freed);
        found
    }

    /// The same for a request with Cache-Control directives.
    pub fn look_up_for(&self, key: &[u8], request: &Signature, now: Moment, wants: &RequestDirectives) -> CacheLookup {
        match self.look_up(key, request, now) {
            CacheLookup::Hit(object) | CacheLookup::Stale(object) if !object.satisfies(wants, now) => {
                CacheLookup::Nothing
            }
            CacheLookup::Nothing | CacheLookup::Hints(_) if !wants.max_stale.is_zero() => {
                let found = self.shard(key).find_over(key, request, |object| object.satisfies(wants, now));
                found.map_or(CacheLookup::Nothing, CacheLookup::Hit)
            }
            found => found,
        }
    }

    /// Returns a stored response to such a request, however old, that can be revalidated.
    pub fn stored(&self, key: &[u8], request: &Signature) -> Option<Arc<Object>> {
        let is_named = |object: &Object| object.head.contains(b"etag") || object.head.contains(b"last-modified");
        self.shard(key).find_over(key, request, is_named)
    }

    /// Updates the stored response to such a request after revalidation.
    pub fn freshen(&self, key: &[u8], request: &Signature, update: impl FnOnce(&Object) -> Update) {
        let freed = self.shard(key).freshen(key, request, update);
        self.give_back(freed);
    }

    /// Looks up a stale response, for a request whose server failed.
    pub fn look_up_stale(&self, key: &[u8], request: &Signature, now: Moment) -> Option<Arc<Object>> {
        self.shard(key).look_up_stale(key, request, now, self.plan.stale_if_error)
    }

    /// Begins to store a response to a request with that key. `length`: length of its body in bytes, if known. `None`:
    /// it is too large, another response to the same request is being stored, or there is only space for it by evicting
    /// entries requested more often.
    pub fn begin(
        self: &Arc<Self>,
        key: &[u8],
        request: &Signature,
        object: Object,
        length: Option<u64>,
    ) -> Option<Storing> {
        let head = object.head_bytes();
        if head.saturating_add(length.unwrap_or(0)) > self.plan.largest {
            return None;
        }
        let needed = blocks(head.saturating_add(length.unwrap_or(0)));
        let (claimed, freed) = self.shard(key).claim(key, request, self.plan.variants, object.life.stored);
        self.give_back(freed);
        if !claimed {
            return None;
        }
        // With a file evicted entries are not lost.
        let frequency = if self.disk.is_some() { u8::MAX } else { self.sketch.frequency(self.hash(key)) };
        let storing = Storing::new(Arc::clone(self), key.into(), *request, object, length, frequency);
        storing.with_room(needed)
    }

    /// Stores only the hints of a response.
    pub fn store_hints(&self, key: &[u8], object: Object) {
        let needed = blocks(object.hint_bytes());
        if object.hint_bytes() > self.plan.largest.max(BLOCK) || !self.reserve(needed, &Newcomer::of_hints(needed)) {
            return;
        }
        let entry = Entry::new(Arc::new(object), needed, self.next_turn(), Segment::Hints);
        self.add(key, entry);
    }

    /// Removes everything stored for a key.
    /// Returns whether there was anything.
    pub fn remove(&self, key: &[u8]) -> bool {
        let freed = self.shard(key).remove(key);
        self.give_back(freed);
        let lay_there = self.disk.as_ref().is_some_and(|disk| disk.remove(key));
        freed.sum() > 0 || lay_there
    }

    /// Removes all entries that a predicate selects by their tags; returns their number.
    pub fn purge(&self, chooses: impl Fn(&[Box<[u8]>]) -> bool) -> usize {
        let mut count = self.disk.as_ref().map_or(0, |disk| disk.purge(&chooses));
        for at in 0..self.shards.len() {
            let (freed, removed) = self.lock(at).purge(&chooses);
            self.give_back(freed);
            count += removed;
        }
        count
    }

    /// Returns the entries of a shard for `show cache`.
    pub fn list(&self, shard: usize, now: Moment) -> Option<Vec<CacheListing>> {
        (shard < self.shards.len()).then(|| self.lock(shard).list(now, |key| self.hash(key)))
    }
}

impl Object {
    /// Creates a response without its body.
    pub fn new(head: Head, life: Lifetime) -> Self {
        Self::begin(head, life)
    }
}
