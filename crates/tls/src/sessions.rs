//! The session cache for clients without tickets: one for all threads and addresses (`tune.ssl.cachesize`,
//! `tune.ssl.lifetime`). Must never return an expired session, nor exceed its capacity.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Size in bytes of one of the cache's blocks (configuration manual, "tune.ssl.cachesize").
const BLOCK: usize = 200;

/// Caches sessions, independent of thread and address.
pub struct SessionStore {
    /// Maximum number of blocks.
    capacity: usize,
    shared: RwLock<Arc<Shared>>,
}

/// The content of a store, and of those that follow it.
#[derive(Default)]
struct Shared {
    kept: Mutex<CachedSessions>,
    lookups: AtomicU64,
    misses: AtomicU64,
}

#[derive(Default)]
struct CachedSessions {
    sessions: HashMap<Vec<u8>, Session>,
    /// Keys in insertion order, including those removed since.
    order: VecDeque<Vec<u8>>,
    blocks: usize,
}

struct Session {
    /// The expiry in seconds.
    until: u64,
    value: Vec<u8>,
}

impl Session {
    fn blocks(&self) -> usize {
        self.value.len().div_ceil(BLOCK).max(1)
    }
}

impl std::fmt::Debug for SessionStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionStore").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

/// Stores are equal if their capacities are.
impl PartialEq for SessionStore {
    fn eq(&self, other: &Self) -> bool {
        self.capacity == other.capacity
    }
}

impl Eq for SessionStore {}

impl SessionStore {
    /// Creates a cache of `capacity` blocks of 200 bytes. 0: nothing is cached.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, shared: RwLock::default() }
    }

    /// Whether its capacity is not zero.
    pub fn is_used(&self) -> bool {
        self.capacity > 0
    }

    /// Returns the number of lookups.
    pub fn lookups(&self) -> u64 {
        self.shared().lookups.load(Ordering::Relaxed)
    }

    /// Returns the number of lookups that found no valid session.
    pub fn misses(&self) -> u64 {
        self.shared().misses.load(Ordering::Relaxed)
    }

    fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Goes on with what another one remembers and has counted, if it holds as much.
    pub fn follow(&self, before: &Self) {
        if self.capacity == before.capacity {
            let shared = before.shared();
            *self.shared.write().unwrap_or_else(PoisonError::into_inner) = shared;
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut CachedSessions) -> T) -> T {
        work(&mut self.shared().kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a session until its expiry. False: it is larger than the capacity.
    pub fn put(&self, key: Vec<u8>, value: Vec<u8>, until: u64) -> bool {
        let session = Session { until, value };
        let blocks = session.blocks();
        if blocks > self.capacity {
            return false;
        }
        self.with(|kept| {
            kept.remove(&key);
            while kept.blocks + blocks > self.capacity {
                let Some(oldest) = kept.order.pop_front() else { break };
                kept.remove(&oldest);
            }
            kept.blocks += blocks;
            kept.order.push_back(key.clone());
            kept.sessions.insert(key, session);
            // What was taken has left its key in the order.
            if kept.order.len() > 2 * kept.sessions.len() + 64 {
                let CachedSessions { sessions, order, .. } = kept;
                order.retain(|key| sessions.contains_key(key));
            }
        });
        true
    }

    /// Returns a session that is still valid at `now`, in seconds.
    pub fn get(&self, key: &[u8], now: u64) -> Option<Vec<u8>> {
        let good = |session: &&Session| now < session.until;
        let found = self.with(|kept| kept.sessions.get(key).filter(good).map(|session| session.value.clone()));
        self.count(found)
    }

    /// Like [`Self::get`], and removes it: it is resumed once.
    pub fn take(&self, key: &[u8], now: u64) -> Option<Vec<u8>> {
        let taken = self.with(|kept| kept.remove(key));
        self.count(taken.filter(|session| now < session.until).map(|session| session.value))
    }

    fn count(&self, found: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let shared = self.shared();
        shared.lookups.fetch_add(1, Ordering::Relaxed);
        if found.is_none() {
            shared.misses.fetch_add(1, Ordering::Relaxed);
        }
        found
    }
}

impl CachedSessions {
    fn remove(&mut self, key: &[u8]) -> Option<Session> {
        let session = self.sessions.remove(key)?;
        self.blocks -= session.blocks();
        Some(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Vec<u8> {
        number.to_be_bytes().to_vec()
    }

    #[test]
    fn sessions_are_forgotten_in_time_and_taken_once() {
        let store = SessionStore::new(10);
        assert!(store.put(key(1), b"one".to_vec(), 100));
        assert_eq!(store.get(&key(1), 99), Some(b"one".to_vec()));
        assert_eq!(store.get(&key(1), 100), None);
        assert_eq!(store.take(&key(1), 99), Some(b"one".to_vec()));
        assert_eq!(store.take(&key(1), 99), None);
        assert_eq!((store.lookups(), store.misses()), (4, 2));
        assert!(!SessionStore::new(0).put(key(1), Vec::new(), 100));
    }

    #[test]
    fn the_oldest_make_room_by_their_size() {
        let store = SessionStore::new(4);
        assert!((0..4).all(|number| store.put(key(number), vec![0; BLOCK], 9)));
        // Uses two blocks.
        assert!(store.put(key(4), vec![0; BLOCK + 1], 9));
        let known = |number: usize| store.get(&key(number), 0).is_some();
        assert_eq!((0..5).map(known).collect::<Vec<_>>(), [false, false, true, true, true]);
        assert!(!store.put(key(5), vec![0; 4 * BLOCK + 1], 9));
        assert!(known(4));
        // The same key again is one session.
        assert!((0..9).all(|_| store.put(key(4), vec![0; BLOCK], 9)));
        assert!(known(2) && known(3) && known(4));
    }

    #[test]
    fn what_was_taken_leaves_nothing_behind() {
        let store = SessionStore::new(1000);
        for number in 0..100_000 {
            assert!(store.put(key(number), vec![0; 10], 9));
            assert!(store.take(&key(number), 0).is_some());
        }
        store.with(|kept| {
            assert_eq!((kept.sessions.len(), kept.blocks), (0, 0));
            assert!(kept.order.len() <= 65, "{}", kept.order.len());
        });
    }

    #[test]
    fn a_store_goes_on_where_one_of_its_size_ends() {
        let before = SessionStore::new(10);
        assert!(before.put(key(1), b"one".to_vec(), 100));
        let (same, other) = (SessionStore::new(10), SessionStore::new(11));
        [&same, &other].into_iter().for_each(|store| store.follow(&before));
        assert_eq!((same.get(&key(1), 0), other.get(&key(1), 0)), (Some(b"one".to_vec()), None));
        assert_eq!((before.lookups(), same.lookups(), other.lookups()), (1, 1, 1));
        // Connections that began before are still served by the former one.
        assert!(before.put(key(2), b"two".to_vec(), 100));
        assert_eq!(same.take(&key(2), 0), Some(b"two".to_vec()));
        assert_eq!(before.get(&key(2), 0), None);
    }
}
