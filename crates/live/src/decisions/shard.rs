//! The entries of a cache of decisions whose keys hash to one shard, by key and by last use. Must never be used without its lock.

use std::collections::HashMap;
use std::sync::Arc;

use base::moment::Moment;
use expression::pattern::Key;
use wire::http::Fields;

/// Maximum number of bytes of an entry.
pub const MOST_BYTES: usize = 16 * 1024;

/// Memory of an entry besides its key and its fields.
const OVERHEAD: usize = 256;

/// No entry.
const NONE: u32 = u32::MAX;

/// Numbers for reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DecisionCounts {
    pub entries: usize,
    pub bytes: usize,
    /// Requests that were allowed by an entry.
    pub hits: u64,
    /// Requests without an entry.
    pub misses: u64,
    pub stored: u64,
    /// Entries removed because the size was reached.
    pub evicted: u64,
}

/// A shard of a cache.
#[derive(Debug)]
pub(super) struct Shard {
    /// Maximum number of bytes.
    size: usize,
    places: HashMap<Arc<[u8]>, u32, Key>,
    /// The entries; the free ones are in `free`.
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// The entry used last, and the one whose last use is the longest ago.
    newest: u32,
    oldest: u32,
    counts: DecisionCounts,
}

#[derive(Debug)]
struct Entry {
    key: Arc<[u8]>,
    fields: Arc<Fields>,
    until: Moment,
    bytes: usize,
    /// Entries that were used before and after this one.
    older: u32,
    newer: u32,
}

/// Returns the number of bytes that an entry counts for.
fn measure(key: &[u8], fields: &Fields) -> usize {
    OVERHEAD + key.len() + fields.capacity()
}

impl Shard {
    /// Creates an empty shard; `key` keys its hashes.
    pub(super) fn new(size: usize, key: Key) -> Self {
        Self {
            size,
            places: HashMap::with_hasher(key),
            entries: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
            counts: DecisionCounts::default(),
        }
    }

    /// Returns the fields of an entry whose time is not over, and marks it as used.
    pub(super) fn find(&mut self, key: &[u8], now: Moment) -> Option<Arc<Fields>> {
        let place = self.places.get(key).copied();
        let Some(entry) = place.and_then(|place| self.entries.get(place as usize)) else {
            self.counts.misses += 1;
            return None;
        };
        let place = place.unwrap_or(NONE);
        if entry.until <= now {
            self.counts.misses += 1;
            self.remove(place);
            return None;
        }
        let found = Arc::clone(&entry.fields);
        self.counts.hits += 1;
        if self.newest != place {
            self.unlink(place);
            self.link(place);
        }
        Some(found)
    }

    /// Adds or replaces an entry, and removes the least recently used ones until there is capacity.
    pub(super) fn store(&mut self, key: &[u8], fields: Arc<Fields>, until: Moment, now: Moment) {
        if let Some(place) = self.places.get(key).copied() {
            self.remove(place);
        }
        let bytes = measure(key, &fields);
        if bytes > self.size.min(MOST_BYTES) {
            return;
        }
        while self.counts.bytes + bytes > self.size && self.oldest != NONE {
            let is_over = self.entries[self.oldest as usize].until <= now;
            self.counts.evicted += u64::from(!is_over);
            self.remove(self.oldest);
        }
        let key: Arc<[u8]> = key.into();
        let entry = Entry { key: Arc::clone(&key), fields, until, bytes, older: NONE, newer: NONE };
        let place = match self.free.pop() {
            Some(place) => {
                self.entries[place as usize] = entry;
                place
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        self.places.insert(key, place);
        self.link(place);
        self.counts.bytes += bytes;
        self.counts.entries += 1;
        self.counts.stored += 1;
    }

    /// Removes the entries whose time is over.
    pub(super) fn remove_expired(&mut self, now: Moment) {
        let over = |place: &&u32| self.entries[**place as usize].until <= now;
        let over: Vec<u32> = self.places.values().filter(over).copied().collect();
        over.into_iter().for_each(|place| self.remove(place));
    }

    /// Removes all entries; returns their number.
    pub(super) fn clear(&mut self) -> usize {
        let count = std::mem::take(&mut self.counts.entries);
        self.counts.bytes = 0;
        self.places = HashMap::with_hasher(*self.places.hasher());
        (self.entries, self.free) = (Vec::new(), Vec::new());
        (self.newest, self.oldest) = (NONE, NONE);
        count
    }

    pub(super) fn counts(&self) -> DecisionCounts {
        self.counts
    }

    /// Removes an entry; its memory is kept for the next one, its key and its fields are not.
    fn remove(&mut self, place: u32) {
        self.unlink(place);
        let entry = &mut self.entries[place as usize];
        let key = std::mem::take(&mut entry.key);
        entry.fields = Arc::default();
        self.counts.bytes -= entry.bytes;
        self.counts.entries -= 1;
        self.places.remove(&key);
        self.free.push(place);
    }

    /// Makes an entry the one used last.
    fn link(&mut self, place: u32) {
        let before = std::mem::replace(&mut self.newest, place);
        let entry = &mut self.entries[place as usize];
        (entry.older, entry.newer) = (before, NONE);
        match self.entries.get_mut(before as usize) {
            Some(before) => before.newer = place,
            None => self.oldest = place,
        }
    }

    /// Takes an entry out of the order of uses.
    fn unlink(&mut self, place: u32) {
        let Entry { older, newer, .. } = self.entries[place as usize];
        match self.entries.get_mut(older as usize) {
            Some(entry) => entry.newer = newer,
            None => self.oldest = newer,
        }
        match self.entries.get_mut(newer as usize) {
            Some(entry) => entry.older = older,
            None => self.newest = older,
        }
    }
}
