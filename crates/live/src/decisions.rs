//! Permissions of servers that decide on requests (`auth-request … cache`), by the key of the rule, for all workers. Each rule has an
//! own cache, in shards by a keyed hash, each under a short lock of its own. Must never exceed its size, never compare a key by its
//! hash alone, and never read a clock.

mod shard;

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::moment::Moment;
use expression::pattern::Key;
use wire::http::Fields;

use shard::Shard;
pub use shard::{DecisionCounts, MOST_BYTES};

/// Number of shards: enough that workers seldom contend.
const SHARDS: usize = 8;

/// The permissions of one rule.
#[derive(Debug)]
pub struct DecisionCache {
    key: Key,
    shards: [Mutex<Shard>; SHARDS],
    /// Number of times that it was cleared.
    epoch: AtomicU64,
}

/// The state of a cache at the time when a server is asked. What was asked before the cache is cleared is not stored after that.
#[derive(Debug, Clone, Copy)]
pub struct Epoch(u64);

impl DecisionCache {
    /// Creates an empty cache of at most `size` bytes. `random` keys its hashes.
    pub fn new(size: usize, random: u64) -> Self {
        let key = Key::new(random);
        // Not the key that selects the shard: keys within a shard share bits of that hash.
        let within = Key::new(key.bytes(b"within a shard"));
        let shards = std::array::from_fn(|_| Mutex::new(Shard::new(size / SHARDS, within)));
        Self { key, shards, epoch: AtomicU64::new(0) }
    }

    fn shard(&self, key: &[u8]) -> MutexGuard<'_, Shard> {
        let at = self.key.hash_one(key) as usize % SHARDS;
        self.shards[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> impl Iterator<Item = MutexGuard<'_, Shard>> {
        self.shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the fields of the permission with that key, unless its time is over. Counts the request.
    pub fn find(&self, key: &[u8], now: Moment) -> Option<Arc<Fields>> {
        self.shard(key).find(key, now)
    }

    /// Returns the state before a server is asked.
    pub fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }

    /// Stores a permission that a server was asked for in `epoch`, until a time. Others are evicted if there is no capacity.
    pub fn store(&self, key: &[u8], fields: Fields, until: Moment, epoch: Epoch, now: Moment) {
        let mut shard = self.shard(key);
        // `clear` changes it before it takes the lock.
        if epoch.0 == self.epoch.load(Ordering::Acquire) {
            shard.store(key, Arc::new(fields), until, now);
        }
    }

    /// Removes all entries; returns their number.
    pub fn clear(&self) -> usize {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.all().map(|mut shard| shard.clear()).sum()
    }

    /// Returns the sums of all shards. Entries whose time is over are removed before.
    pub fn counts(&self, now: Moment) -> DecisionCounts {
        let mut sum = DecisionCounts::default();
        for mut shard in self.all() {
            shard.remove_expired(now);
            let own = shard.counts();
            sum.entries += own.entries;
            sum.bytes += own.bytes;
            sum.hits += own.hits;
            sum.misses += own.misses;
            sum.stored += own.stored;
            sum.evicted += own.evicted;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn fields(value: &str) -> Fields {
        let mut fields = Fields::new();
        fields.append(b"remote-user", value.as_bytes());
        fields
    }

    fn user(found: Option<Arc<Fields>>) -> Option<String> {
        found.map(|fields| String::from_utf8(fields.first(b"remote-user").unwrap().to_vec()).unwrap())
    }

    const START: Moment = Moment::ZERO;

    fn after(seconds: u64) -> Moment {
        START + Duration::from_secs(seconds)
    }

    #[test]
    fn an_entry_is_found_until_its_time_is_over() {
        let cache = DecisionCache::new(1 << 20, 7);
        cache.store(b"a", fields("ann"), after(10), cache.epoch(), START);
        cache.store(b"b", fields("bob"), after(20), cache.epoch(), START);
        assert_eq!(user(cache.find(b"a", after(9))).as_deref(), Some("ann"));
        assert_eq!(user(cache.find(b"b", after(9))).as_deref(), Some("bob"));
        assert_eq!(user(cache.find(b"", after(9))), None);
        assert_eq!(user(cache.find(b"a", after(10))), None);
        let counts = cache.counts(after(10));
        assert_eq!((counts.entries, counts.hits, counts.misses, counts.stored), (1, 2, 2, 2));
        assert_eq!(cache.counts(after(20)), DecisionCounts { entries: 0, bytes: 0, ..counts });
    }

    #[test]
    fn a_newer_permission_replaces_the_one_before() {
        let cache = DecisionCache::new(1 << 20, 7);
        cache.store(b"a", fields("ann"), after(10), cache.epoch(), START);
        cache.store(b"a", fields("eve"), after(20), cache.epoch(), after(5));
        assert_eq!(user(cache.find(b"a", after(15))).as_deref(), Some("eve"));
        assert_eq!(cache.counts(after(5)).entries, 1);
    }

    /// The least recently used entries are removed first, and the size is never exceeded.
    #[test]
    fn the_size_is_a_limit() {
        let size = 64 * 1024;
        let cache = DecisionCache::new(size, 7);
        cache.store(b"used", fields("ann"), after(1_000_000), cache.epoch(), START);
        for number in 0..20_000u32 {
            cache.store(&number.to_le_bytes(), fields("bob"), after(1_000_000), cache.epoch(), START);
            assert!(cache.find(b"used", START).is_some(), "{number}");
        }
        let counts = cache.counts(START);
        assert!(counts.bytes <= size && counts.entries > 100, "{counts:?}");
        assert_eq!(counts.stored - counts.evicted, counts.entries as u64);
        assert!(cache.find(&19_999u32.to_le_bytes(), START).is_some());
        assert!(cache.find(&0u32.to_le_bytes(), START).is_none());
    }

    #[test]
    fn an_entry_that_is_too_large_is_not_stored() {
        let cache = DecisionCache::new(1 << 20, 7);
        let large = "x".repeat(MOST_BYTES);
        cache.store(b"a", fields(&large), after(10), cache.epoch(), START);
        cache.store(large.as_bytes(), fields("a"), after(10), cache.epoch(), START);
        assert_eq!(cache.counts(START), DecisionCounts::default());
        let none = DecisionCache::new(0, 7);
        none.store(b"a", fields("ann"), after(10), none.epoch(), START);
        assert_eq!(none.counts(START), DecisionCounts::default());
    }

    #[test]
    fn a_permission_from_before_a_clearing_is_not_stored() {
        let cache = DecisionCache::new(1 << 20, 7);
        let asked = cache.epoch();
        cache.store(b"a", fields("ann"), after(10), asked, START);
        assert_eq!(cache.clear(), 1);
        cache.store(b"a", fields("ann"), after(10), asked, START);
        assert!(cache.find(b"a", START).is_none());
        cache.store(b"a", fields("ann"), after(10), cache.epoch(), START);
        assert!(cache.find(b"a", START).is_some());
    }
}
