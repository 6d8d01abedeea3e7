//! The entries of a cache whose keys hash to one shard, by key and by last use. Must never be used without its lock,
//! and never count the blocks of the whole cache.

use super::blocks::blocks;
use super::entry::{Freed, Segment};
use super::lookup::{CacheLookup, Update};
use super::plan::CachePlan;
use super::{CacheListing, Entry, Object, Signature};
use base::moment::Moment;
use config::spec::EarlyHints;
use expression::pattern::Key;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of used entries that are sorted again during one search for the oldest.
const REORDERED: usize = 64;

/// The position of an entry: its segment, and its turn there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    pub(super) segment: Segment,
    pub(super) turn: u64,
}

/// A shard of a cache.
#[derive(Debug)]
pub(super) struct Shard {
    entries: HashMap<Arc<[u8]>, Vec<Entry>, Key>,
    /// The keys of entries by their turns, for each segment. A use does not change the order: the search for the oldest
    /// entry sorts entries used since.
    orders: [BTreeMap<u64, Arc<[u8]>>; 4],
    /// Responses being stored: key and request.
    claims: HashSet<(Box<[u8]>, Signature)>,
}

impl Shard {
    /// Creates an empty shard; `key` keys its hashes.
    pub(super) fn new(key: Key) -> Self {
        let entries = HashMap::with_hasher(key);
        Self { entries, orders: Default::default(), claims: HashSet::new() }
    }

    /// Looks up a response to a request; also returns the blocks of entries removed because they are too old.
    /// `use_again` returns the number of a new use, given that of the last one.
    pub(super) fn look_up(
        &mut self,
        key: &[u8],
        request: &Signature,
        now: Moment,
        plan: &CachePlan,
        use_again: impl FnOnce(u64) -> u64,
    ) -> (CacheLookup, Freed) {
        let (keeps_hints, keeps_over) = (plan.hints != EarlyHints::Off, plan.standard);
        let mut gone = Freed::default();
        let Some(entries) = self.entries.get_mut(key) else { return (CacheLookup::Nothing, gone) };
        let answers = |entry: &&Entry| entry.object.variant.1.answers(entry.object.variant.0, request);
        let is_fresh = |entry: &&mut Entry| !entry.hints_alone() && !entry.object.is_over(now) && answers(&&**entry);
        if let Some(entry) = entries.iter_mut().find(is_fresh) {
            entry.used = use_again(entry.used);
            return (CacheLookup::Hit(Arc::clone(&entry.object)), gone);
        }
        let is_gone = |object: &Object| {
            object.is_over(now)
                && !object.is_within(now, plan.stale)
                && !object.is_within_error(now, plan.stale_if_error)
        };
        let is_useful = |object: &Object| object.is_over(now) && object.is_within(now, plan.stale);
        let useful = entries.iter().find(|entry| !entry.hints_alone() && is_useful(&entry.object) && answers(entry));
        if let Some(entry) = useful {
            return (CacheLookup::Stale(Arc::clone(&entry.object)), gone);
        }
        let hinted = keeps_hints.then(|| entries.iter().find(|entry| !entry.object.hints.is_empty() && answers(entry)));
        let found =
            hinted.flatten().map_or(CacheLookup::Nothing, |entry| CacheLookup::Hints(Arc::clone(&entry.object)));
        // An entry that is too old and has no hints is useless, unless it may be revalidated.
        let old =
            |entry: &Entry| !keeps_over && is_gone(&entry.object) && (!keeps_hints || entry.object.hints.is_empty());
        let turns: Vec<u64> = entries.iter().filter(|entry| old(entry)).map(|entry| entry.turn).collect();
        turns.into_iter().for_each(|turn| gone.add(self.take(turn)));
        (found, gone)
    }

    /// Looks up a stale response, for a request whose server failed.
    pub fn look_up_stale(&self, key: &[u8], request: &Signature, now: Moment, stale: Duration) -> Option<Arc<Object>> {
        let entries = self.entries.get(key)?;
        let answers = |entry: &&Entry| {
            let (object, variant) = (&entry.object, &entry.object.variant);
            !entry.hints_alone() && object.is_within_error(now, stale) && variant.1.answers(variant.0, request)
        };
        entries.iter().find(answers).map(|entry| Arc::clone(&entry.object))
    }

    /// Records that a response to a request is being stored. False: one is already, or the maximum number of variants
    /// is reached. Stale variants are removed, and their blocks returned.
    pub(super) fn claim(&mut self, key: &[u8], request: &Signature, variants: u32, now: Moment) -> (bool, Freed) {
        let mut gone = Freed::default();
        let own: Vec<(u64, bool)> = self.entries.get(key).map_or_else(Vec::new, |entries| {
            let varies = entries.iter().filter(|entry| !entry.hints_alone() && entry.object.variant.0.any());
            varies.map(|entry| (entry.turn, entry.object.is_over(now))).collect()
        });
        let mut count = own.len();
        if count >= variants as usize {
            for (turn, _) in own.iter().filter(|(_, over)| *over) {
                gone.add(self.take(*turn));
                count -= 1;
            }
        }
        (count < variants as usize && self.claims.insert((key.into(), *request)), gone)
    }

    /// Returns a response to such a request, even a stale one, that the predicate selects.
    pub(super) fn find_over(
        &self,
        key: &[u8],
        request: &Signature,
        chooses: impl Fn(&Object) -> bool,
    ) -> Option<Arc<Object>> {
        let is = |entry: &&Entry| {
            let (varies, own) = entry.object.variant;
            !entry.hints_alone() && own.answers(varies, request) && chooses(&entry.object)
        };
        self.entries.get(key)?.iter().find(is).map(|entry| Arc::clone(&entry.object))
    }

    /// Updates the response to such a request, or removes it; returns the freed blocks.
    pub(super) fn freshen(&mut self, key: &[u8], request: &Signature, update: impl FnOnce(&Object) -> Update) -> Freed {
        let is = |entry: &&mut Entry| {
            let (varies, own) = entry.object.variant;
            !entry.hints_alone() && own.answers(varies, request)
        };
        let Some(entry) = self.entries.get_mut(key).and_then(|entries| entries.iter_mut().find(is)) else {
            return Freed::default();
        };
        match update(&entry.object) {
            Update::Keep => return Freed::default(),
            Update::Replace(object) if blocks(object.head_bytes() + object.length) <= entry.blocks => {
                entry.object = Arc::from(object);
                return Freed::default();
            }
            // It has grown, or must be removed.
            Update::Replace(_) | Update::Remove => {}
        }
        let turn = entry.turn;
        self.take(turn)
    }

    /// Records that a response to a request is no longer being stored.
    pub(super) fn disclaim(&mut self, key: &[u8], request: &Signature) {
        self.claims.remove(&(Box::from(key), *request));
    }

    /// Adds an entry; removes those that it replaces, and returns their blocks.
    pub(super) fn insert(&mut self, key: &[u8], entry: Entry) -> Freed {
        let mut gone = Freed::default();
        let (varies, own) = entry.object.variant;
        let replaced = |old: &&Entry| {
            let (old_varies, old_own) = old.object.variant;
            !varies.any() || !old_varies.any() || varies == old_varies && own.is_same(varies, &old_own)
        };
        let turns: Vec<u64> =
            self.entries.get(key).into_iter().flatten().filter(replaced).map(|old| old.turn).collect();
        turns.into_iter().for_each(|turn| gone.add(self.take(turn)));
        let key: Arc<[u8]> = self.entries.get_key_value(key).map_or_else(|| key.into(), |(known, _)| Arc::clone(known));
        self.orders[entry.segment as usize].insert(entry.turn, Arc::clone(&key));
        self.entries.entry(key).or_default().push(entry);
        gone
    }

    /// Removes all entries of a key.
    pub(super) fn remove(&mut self, key: &[u8]) -> Freed {
        let mut gone = Freed::default();
        let turns: Vec<u64> = self.entries.get(key).into_iter().flatten().map(|entry| entry.turn).collect();
        turns.into_iter().for_each(|turn| gone.add(self.take(turn)));
        gone
    }

    /// Removes the entries selected by their tags: returns their blocks and their number.
    pub(super) fn purge(&mut self, chooses: impl Fn(&[Box<[u8]>]) -> bool) -> (Freed, usize) {
        let chosen = self.entries.values().flatten().filter(|entry| chooses(&entry.object.tags));
        let turns: Vec<u64> = chosen.map(|entry| entry.turn).collect();
        let mut gone = Freed::default();
        turns.iter().for_each(|turn| gone.add(self.take(*turn)));
        (gone, turns.len())
    }

    /// Returns the key of the entry with that turn.
    pub(super) fn key(&self, turn: u64) -> Option<Arc<[u8]>> {
        self.orders.iter().find_map(|order| order.get(&turn)).map(Arc::clone)
    }

    fn find(&mut self, turn: u64) -> Option<&mut Entry> {
        let key = self.orders.iter().find_map(|order| order.get(&turn))?;
        self.entries.get_mut(key)?.iter_mut().find(|entry| entry.turn == turn)
    }

    /// Removes the entry with that turn.
    pub(super) fn take(&mut self, turn: u64) -> Freed {
        let Some(key) = self.orders.iter_mut().find_map(|order| order.remove(&turn)) else { return Freed::default() };
        let Some(entries) = self.entries.get_mut(&key) else { return Freed::default() };
        let Some(at) = entries.iter().position(|entry| entry.turn == turn) else { return Freed::default() };
        let entry = entries.swap_remove(at);
        if entries.is_empty() {
            self.entries.remove(&key);
        }
        entry.freed()
    }

    /// Returns the turn of the least recently used entry of a segment without readers. Entries of the probation segment
    /// that were used become protected; returns their blocks as well.
    pub(super) fn oldest(&mut self, segment: Segment, passed_over: usize) -> (Option<u64>, u32) {
        let next = if segment == Segment::Probation { Segment::Protected } else { segment };
        let mut promoted = 0;
        for _ in 0..REORDERED {
            let Some((turn, used)) = self.first_idle(segment, passed_over) else { return (None, promoted) };
            if used == turn {
                return (Some(turn), promoted);
            }
            let blocks = self.put_behind(Position { segment, turn }, Position { segment: next, turn: used });
            promoted += if next == segment { 0 } else { blocks };
        }
        (self.first_idle(segment, passed_over).map(|(turn, _)| turn), promoted)
    }

    /// Returns the turn and the last use of the first entry without readers.
    fn first_idle(&self, segment: Segment, passed_over: usize) -> Option<(u64, u64)> {
        let idle = |(turn, key): (&u64, &Arc<[u8]>)| {
            let entry = self.entries.get(key)?.iter().find(|entry| entry.turn == *turn)?;
            (Arc::strong_count(&entry.object) == 1).then_some((entry.turn, entry.used))
        };
        self.orders[segment as usize].iter().take(passed_over).find_map(idle)
    }

    /// Moves an entry to another position; returns its blocks, or 0 if it no longer exists.
    pub(super) fn put_behind(&mut self, from: Position, to: Position) -> u32 {
        let Position { segment, turn } = to;
        let Some(entry) = self.find(from.turn).filter(|entry| entry.segment == from.segment) else { return 0 };
        (entry.turn, entry.used, entry.segment) = (turn, turn, segment);
        let blocks = entry.blocks;
        if let Some(key) = self.orders[from.segment as usize].remove(&from.turn) {
            self.orders[segment as usize].insert(turn, key);
        }
        blocks
    }

    /// Returns the response of the entry with that turn, and its key.
    pub(super) fn response(&self, turn: u64) -> Option<(Arc<[u8]>, Arc<Object>)> {
        let key = self.key(turn)?;
        let entry = self.entries.get(&key)?.iter().find(|entry| entry.turn == turn && !entry.hints_alone())?;
        let object = Arc::clone(&entry.object);
        Some((key, object))
    }

    /// Size of an entry's hints in bytes.
    pub(super) fn hint_bytes(&mut self, turn: u64) -> Option<u64> {
        self.find(turn).map(|entry| entry.object.hint_bytes())
    }

    /// Strips an entry to its hints, which take `blocks` blocks; returns the blocks that it had.
    pub(super) fn strip(&mut self, turn: u64, blocks: u32) -> Freed {
        let Some(entry) = self.find(turn).filter(|entry| Arc::strong_count(&entry.object) == 1) else {
            return Freed::default();
        };
        let freed = entry.freed();
        (entry.object, entry.blocks, entry.segment) = (Arc::new(entry.object.hints_alone()), blocks, Segment::Hints);
        if let Some(key) = self.orders.iter_mut().find_map(|order| order.remove(&turn)) {
            self.orders[Segment::Hints as usize].insert(turn, key);
        }
        freed
    }

    /// Blocks of entries without readers.
    pub(super) fn idle_blocks(&self) -> u32 {
        let idle = |entry: &&Entry| Arc::strong_count(&entry.object) == 1;
        self.entries.values().flatten().filter(idle).map(|entry| entry.blocks).sum()
    }

    pub(super) fn list(&self, now: Moment, hash: impl Fn(&[u8]) -> u64) -> Vec<CacheListing> {
        let one = |key: &Arc<[u8]>, entry: &Entry| {
            let object: &Object = &entry.object;
            let end = object.life.stored + object.life.left;
            let left = match end.saturating_since(now).as_secs() {
                0 => -i64::try_from(now.saturating_since(end).as_secs()).unwrap_or(0),
                left => i64::try_from(left).unwrap_or(i64::MAX),
            };
            CacheListing {
                place: Arc::as_ptr(&entry.object) as usize,
                hash: hash(key),
                variant: if object.variant.0.any() { variant_number(object) } else { 0 },
                hints_alone: entry.hints_alone(),
                bytes: object.head_bytes() + object.length,
                blocks: entry.blocks,
                readers: Arc::strong_count(&entry.object) - 1,
                left,
            }
        };
        self.entries.iter().flat_map(|(key, entries)| entries.iter().map(move |entry| one(key, entry))).collect()
    }
}

/// A number that distinguishes the variants of one key.
fn variant_number(object: &Object) -> u64 {
    use std::hash::{BuildHasher as _, BuildHasherDefault};
    BuildHasherDefault::<rustc_hash::FxHasher>::default().hash_one(object.variant)
}
