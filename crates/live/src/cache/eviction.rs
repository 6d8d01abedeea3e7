//! Eviction with W-TinyLFU (Einziger, Friedman, Manes, 2017). New entries are added to a window of a hundredth of the
//! blocks; an entry that leaves the window, or is larger than it, replaces the least recently used one only if it is
//! requested as often. Entries used again are protected, up to four fifths of the blocks. So entries requested once do
//! not evict entries requested repeatedly. Must never remove an entry with readers, and never exceed the cache's size.

use super::blocks::blocks;
use super::entry::{Freed, Newcomer, Segment};
use super::shard::Position;
use super::{Cache, Entry, Object};
use config::spec::EarlyHints;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Entries with readers that are skipped in a shard during eviction.
const PASSED_OVER: usize = 32;
/// Maximum number of entries evicted for a new one.
const MOST_REMOVED: usize = 4_096;
/// Maximum number of entries moved to another segment at a time.
const MOST_MOVED: usize = 64;

/// An entry that may be evicted. The one with the smallest turn was used least recently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    turn: u64,
    shard: usize,
}

impl Cache {
    /// Size of the window in blocks.
    fn window_size(&self) -> u32 {
        (self.plan.blocks / 100).max(1)
    }

    /// The segment to which an entry of that size is added.
    pub(super) fn entrance(&self, blocks: u32) -> Segment {
        if blocks <= self.window_size() { Segment::Window } else { Segment::Probation }
    }

    /// Adds an entry, whose blocks are reserved, and removes those that it replaces.
    pub(super) fn add(&self, key: &[u8], entry: Entry) {
        let (segment, blocks) = (entry.segment, entry.blocks);
        let mut shard = self.shard(key);
        let freed = shard.insert(key, entry);
        // Counted before the entry can be removed.
        match segment {
            Segment::Window => self.window.fetch_add(blocks, Relaxed),
            Segment::Hints => self.hints.fetch_add(blocks, Relaxed),
            Segment::Probation | Segment::Protected => 0,
        };
        drop(shard);
        self.give_back(freed);
        self.limit_window();
    }

    /// Releases blocks.
    pub(super) fn give_back(&self, freed: Freed) {
        if freed.sum() > 0 {
            self.hints.fetch_sub(freed.hints, Relaxed);
            self.window.fetch_sub(freed.window, Relaxed);
            self.protected.fetch_sub(freed.protected, Relaxed);
            self.used.fetch_sub(freed.sum(), Release);
        }
    }

    /// Reserves blocks for a new entry, and evicts others until there are enough.
    pub(super) fn reserve(&self, needed: u32, newcomer: &Newcomer) -> bool {
        if needed > self.plan.blocks {
            return false;
        }
        for _ in 0..MOST_REMOVED {
            let used = self.used.load(Acquire);
            if used.saturating_add(needed) <= self.plan.blocks {
                if self.used.compare_exchange_weak(used, used + needed, Release, Relaxed).is_ok() {
                    return true;
                }
            } else if !self.make_room(newcomer) {
                return false;
            }
        }
        false
    }

    /// Evicts one entry, or strips it to its hints. False: all have readers, or are requested more often.
    fn make_room(&self, newcomer: &Newcomer) -> bool {
        let size = self.window_size();
        let enters = newcomer.blocks <= size;
        let pushes = enters && self.window.load(Relaxed).saturating_add(newcomer.blocks) > size;
        let candidate = if pushes { self.oldest(Segment::Window) } else { None };
        let evicted = match (candidate, self.victim()) {
            (Some(candidate), Some(victim)) if self.frequency(candidate) < self.frequency(victim) => Some(candidate),
            (Some(candidate), Some(victim)) => {
                self.leave_window(candidate);
                Some(victim)
            }
            (None, Some(victim)) if !enters && newcomer.frequency < self.frequency(victim) => return false,
            (candidate, victim) => victim.or(candidate).or_else(|| self.oldest(Segment::Window)),
        };
        match evicted {
            Some(evicted) if self.plan.hints == EarlyHints::On => self.strip(evicted.shard, evicted.turn),
            Some(evicted) => self.drop_entry(evicted.shard, evicted.turn),
            None => match self.oldest(Segment::Hints) {
                Some(hints) => self.drop_entry(hints.shard, hints.turn),
                None => return false,
            },
        }
        true
    }

    /// Returns the least recently used entry of a segment.
    fn oldest(&self, segment: Segment) -> Option<Candidate> {
        let oldest = |at: usize| {
            let mut shard = self.lock(at);
            let (turn, promoted) = shard.oldest(segment, PASSED_OVER);
            self.protected.fetch_add(promoted, Relaxed);
            turn.map(|turn| Candidate { turn, shard: at })
        };
        (0..self.shards.len()).filter_map(oldest).min()
    }

    /// Returns the entry outside the window to be evicted next.
    fn victim(&self) -> Option<Candidate> {
        let found = self.oldest(Segment::Probation);
        self.limit_protected();
        found.or_else(|| self.oldest(Segment::Probation)).or_else(|| self.oldest(Segment::Protected))
    }

    /// How often an entry's key was requested.
    fn frequency(&self, candidate: Candidate) -> u8 {
        let key = self.lock(candidate.shard).key(candidate.turn);
        key.map_or(0, |key| self.sketch.frequency(self.hash(&key)))
    }

    /// Moves entries of the protected segment beyond its limit back to probation, as most recently used.
    fn limit_protected(&self) {
        let most = self.plan.blocks / 5 * 4;
        for _ in 0..MOST_MOVED {
            if self.protected.load(Relaxed) <= most {
                return;
            }
            let Some(Candidate { turn, shard: at }) = self.oldest(Segment::Protected) else { return };
            let mut shard = self.lock(at);
            let from = Position { segment: Segment::Protected, turn };
            let moved = shard.put_behind(from, Position { segment: Segment::Probation, turn: self.next_turn() });
            self.protected.fetch_sub(moved, Relaxed);
        }
    }

    /// Moves entries beyond the window's limit to probation; they stay while there is free space.
    fn limit_window(&self) {
        for _ in 0..MOST_MOVED {
            if self.window.load(Relaxed) <= self.window_size() {
                return;
            }
            let Some(candidate) = self.oldest(Segment::Window) else { return };
            self.leave_window(candidate);
        }
    }

    fn leave_window(&self, candidate: Candidate) {
        let Candidate { turn, shard: at } = candidate;
        let mut shard = self.lock(at);
        let from = Position { segment: Segment::Window, turn };
        let moved = shard.put_behind(from, Position { segment: Segment::Probation, turn });
        self.window.fetch_sub(moved, Relaxed);
    }

    fn drop_entry(&self, shard: usize, turn: u64) {
        self.leave(shard, turn);
        let freed = self.lock(shard).take(turn);
        self.give_back(freed);
    }

    /// Queues an evicted entry for writing to the file, if there is one.
    fn leave(&self, shard: usize, turn: u64) {
        let Some(disk) = &self.disk else { return };
        let found = self.lock(shard).response(turn);
        if let Some((key, object)) = found {
            disk.leave(&key, &object);
        }
    }

    /// Adds a response from the file to the memory, if there is space.
    pub(super) fn admit(&self, key: &[u8], object: &Arc<Object>) {
        let needed = blocks(object.head_bytes() + object.length);
        let newcomer = Newcomer { blocks: needed, frequency: self.sketch.frequency(self.hash(key)) };
        if object.head_bytes() + object.length > self.plan.largest || !self.reserve(needed, &newcomer) {
            return;
        }
        self.add(key, Entry::new(Arc::clone(object), needed, self.next_turn(), self.entrance(needed)));
    }

    /// Strips an entry to its hints; if the limit of hints is reached, evicts the oldest ones first.
    fn strip(&self, shard: usize, turn: u64) {
        let bytes = self.lock(shard).hint_bytes(turn);
        let needed = match bytes {
            Some(bytes) if bytes > 0 => blocks(bytes),
            _ => return self.drop_entry(shard, turn),
        };
        self.leave(shard, turn);
        for _ in 0..MOST_REMOVED {
            if self.hints.load(Relaxed).saturating_add(needed) <= self.plan.hint_blocks {
                break;
            }
            match self.oldest(Segment::Hints) {
                Some(hints) => self.drop_entry(hints.shard, hints.turn),
                None => return self.drop_entry(shard, turn),
            }
        }
        let mut own = self.lock(shard);
        let freed = own.strip(turn, needed);
        if freed.sum() > 0 {
            self.hints.fetch_add(needed, Relaxed);
            self.used.fetch_add(needed, Relaxed);
        }
        drop(own);
        self.give_back(freed);
    }
}
