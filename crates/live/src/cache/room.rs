//! The room of a cache, and who gets it: W-TinyLFU (Einziger, Friedman, Manes, 2017). What comes enters a window of a hundredth of
//! the blocks; what leaves the window, or is larger than it, takes the place of what was not used for the longest time only if it is
//! asked for as often. What was used since it came is protected, up to four fifths of the blocks. So what is asked for once does
//! not drive out what is asked for again and again. Must never remove what is being read, and never hold more than the cache may.

use super::entry::{Freed, Segment};
use super::{Cache, Entry, Object, blocks};
use config::spec::EarlyHints;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Entries in use that are passed over in a shard while room is made.
const PASSED_OVER: usize = 32;
/// Entries that are removed for one that comes.
const MOST_REMOVED: usize = 4_096;
/// Entries that are put in another segment at a time.
const MOST_MOVED: usize = 64;

/// What wants room.
pub(super) struct Newcomer {
    /// All of its blocks.
    pub(super) blocks: u32,
    /// How often it was asked for.
    pub(super) frequency: u8,
}

impl Newcomer {
    /// Hints, which have their own limit.
    pub(super) fn of_hints(blocks: u32) -> Self {
        Self { blocks, frequency: u8::MAX }
    }
}

impl Cache {
    /// Blocks of the window.
    fn window_size(&self) -> u32 {
        (self.plan.blocks / 100).max(1)
    }

    /// Where an entry of that size begins.
    pub(super) fn entrance(&self, blocks: u32) -> Segment {
        if blocks <= self.window_size() { Segment::Window } else { Segment::Probation }
    }

    /// Adds an entry, whose blocks were reserved, in the place of those that it replaces.
    pub(super) fn add(&self, key: &[u8], entry: Entry) {
        let (segment, blocks) = (entry.segment, entry.blocks);
        let mut shard = self.shard(key);
        let freed = shard.insert(key, entry);
        // Counted before anybody can remove it.
        match segment {
            Segment::Window => self.window.fetch_add(blocks, Relaxed),
            Segment::Hints => self.hints.fetch_add(blocks, Relaxed),
            Segment::Probation | Segment::Protected => 0,
        };
        drop(shard);
        self.give_back(freed);
        self.limit_window();
    }

    /// Blocks that are not used any more.
    pub(super) fn give_back(&self, freed: Freed) {
        if freed.sum() > 0 {
            self.hints.fetch_sub(freed.hints, Relaxed);
            self.window.fetch_sub(freed.window, Relaxed);
            self.protected.fetch_sub(freed.protected, Relaxed);
            self.used.fetch_sub(freed.sum(), Release);
        }
    }

    /// Takes blocks for a newcomer, and removes others until there are enough.
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

    /// Removes one entry, or leaves nothing of it but its hints. False: all are in use, or are asked for more often.
    fn make_room(&self, newcomer: &Newcomer) -> bool {
        let size = self.window_size();
        let enters = newcomer.blocks <= size;
        let pushes = enters && self.window.load(Relaxed).saturating_add(newcomer.blocks) > size;
        let candidate = if pushes { self.oldest(Segment::Window) } else { None };
        let evicted = match (candidate, self.victim()) {
            (Some(candidate), Some(victim)) if self.frequency(candidate) < self.frequency(victim) => Some(candidate),
            (Some((turn, at)), Some(victim)) => {
                self.leave_window(turn, at);
                Some(victim)
            }
            (None, Some(victim)) if !enters && newcomer.frequency < self.frequency(victim) => return false,
            (candidate, victim) => victim.or(candidate).or_else(|| self.oldest(Segment::Window)),
        };
        match evicted {
            Some((turn, at)) if self.plan.hints == EarlyHints::On => self.strip(at, turn),
            Some((turn, at)) => self.drop_entry(at, turn),
            None => match self.oldest(Segment::Hints) {
                Some((turn, at)) => self.drop_entry(at, turn),
                None => return false,
            },
        }
        true
    }

    /// The entry of a segment that was not used for the longest time: its turn and its shard.
    fn oldest(&self, segment: Segment) -> Option<(u64, usize)> {
        let oldest = |at: usize| {
            let mut shard = self.lock(at);
            let (turn, promoted) = shard.oldest(segment, PASSED_OVER);
            self.protected.fetch_add(promoted, Relaxed);
            turn.map(|turn| (turn, at))
        };
        (0..self.shards.len()).filter_map(oldest).min()
    }

    /// The entry beyond the window that makes room.
    fn victim(&self) -> Option<(u64, usize)> {
        let found = self.oldest(Segment::Probation);
        self.limit_protected();
        found.or_else(|| self.oldest(Segment::Probation)).or_else(|| self.oldest(Segment::Protected))
    }

    /// How often an entry is asked for.
    fn frequency(&self, (turn, at): (u64, usize)) -> u8 {
        let key = self.lock(at).key(turn);
        key.map_or(0, |key| self.sketch.frequency(self.hash(&key)))
    }

    /// Puts what is protected beyond its share back on probation, behind what is there.
    fn limit_protected(&self) {
        let most = self.plan.blocks / 5 * 4;
        for _ in 0..MOST_MOVED {
            if self.protected.load(Relaxed) <= most {
                return;
            }
            let Some((turn, at)) = self.oldest(Segment::Protected) else { return };
            let mut shard = self.lock(at);
            let moved = shard.put_behind((turn, Segment::Protected), (self.next_turn(), Segment::Probation));
            self.protected.fetch_sub(moved, Relaxed);
        }
    }

    /// While there is room, what leaves the window stays.
    fn limit_window(&self) {
        for _ in 0..MOST_MOVED {
            if self.window.load(Relaxed) <= self.window_size() {
                return;
            }
            let Some((turn, at)) = self.oldest(Segment::Window) else { return };
            self.leave_window(turn, at);
        }
    }

    fn leave_window(&self, turn: u64, at: usize) {
        let mut shard = self.lock(at);
        let moved = shard.put_behind((turn, Segment::Window), (turn, Segment::Probation));
        self.window.fetch_sub(moved, Relaxed);
    }

    fn drop_entry(&self, shard: usize, turn: u64) {
        self.leave(shard, turn);
        let freed = self.lock(shard).take(turn);
        self.give_back(freed);
    }

    /// An entry that makes room for others goes to the file, if there is one.
    fn leave(&self, shard: usize, turn: u64) {
        let Some(disk) = &self.disk else { return };
        let found = self.lock(shard).response(turn);
        if let Some((key, object)) = found {
            disk.leave(&key, &object);
        }
    }

    /// Takes a response that lay in the file into the memory, where there is room.
    pub(super) fn admit(&self, key: &[u8], object: &Arc<Object>) {
        let needed = blocks(object.head_bytes() + object.length);
        let newcomer = Newcomer { blocks: needed, frequency: self.sketch.frequency(self.hash(key)) };
        if object.head_bytes() + object.length > self.plan.largest || !self.reserve(needed, &newcomer) {
            return;
        }
        self.add(key, Entry::new(Arc::clone(object), needed, self.next_turn(), self.entrance(needed)));
    }

    /// Leaves the hints of an entry alone; where these have no room, the oldest ones go first.
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
                Some((turn, at)) => self.drop_entry(at, turn),
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
