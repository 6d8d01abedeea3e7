//! Iterates over a table some entries at a time: for the runtime API's show, set and clear. Must never hold a lock
//! longer than for one page of one shard.

use super::shard::Shard;
use super::{EntryMut, EntryRef, EntryView, Table};
use base::moment::Moment;
use std::ops::Range;

/// The position of an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursor {
    shard: u32,
    slot: u32,
}

impl Cursor {
    /// Returns the position of a slot of the same shard.
    pub(super) fn at_slot(self, slot: u32) -> Self {
        Self { slot, ..self }
    }
}

impl Table {
    /// Passes the entries in the next `most` slots after the cursor. `None`: that was all.
    pub fn page(
        &self,
        from: Cursor,
        most: u32,
        now: Moment,
        mut take: impl FnMut(EntryRef, EntryView<'_>),
    ) -> Option<Cursor> {
        self.page_of_shard(from, most, now, |at, view, _| take(at, view))
    }

    /// The same with the shard.
    pub(super) fn page_of_shard(
        &self,
        from: Cursor,
        most: u32,
        now: Moment,
        mut take: impl FnMut(EntryRef, EntryView<'_>, &Shard),
    ) -> Option<Cursor> {
        let (at, slots, next) = self.slots_of_page(from, most)?;
        let mut shard = self.shard(at);
        for slot in slots.start..slots.end.min(shard.places()) {
            if shard.is_used(slot) {
                self.renew(&mut shard, slot, now);
                let view = self.view(&shard, slot, now);
                if view.until > now || view.trackers > 0 {
                    take(EntryRef { shard: from.shard, slot }, view, &shard);
                }
            }
        }
        next
    }

    /// Returns the shard and the slots of the page after a cursor, and the cursor after it. `None`: there is no page.
    pub(super) fn slots_of_page(&self, from: Cursor, most: u32) -> Option<(u32, Range<u32>, Option<Cursor>)> {
        if from.shard as usize >= self.parts.len() {
            return None;
        }
        let places = self.shard(from.shard).places();
        let end = places.min(from.slot.saturating_add(most));
        let next = if end >= places { Cursor { shard: from.shard + 1, slot: 0 } } else { Cursor { slot: end, ..from } };
        Some((from.shard, from.slot..end, ((next.shard as usize) < self.parts.len()).then_some(next)))
    }

    /// Reads the entry at a position, if it still exists.
    pub fn read_at<T>(&self, at: EntryRef, now: Moment, read: impl FnOnce(EntryView<'_>) -> T) -> Option<T> {
        if at.shard as usize >= self.parts.len() {
            return None;
        }
        let mut shard = self.shard(at.shard);
        if !shard.is_used(at.slot) {
            return None;
        }
        self.renew(&mut shard, at.slot, now);
        Some(read(self.view(&shard, at.slot, now)))
    }

    /// Changes and refreshes the entry at a position, if it still exists.
    pub fn change_at<T>(&self, at: EntryRef, now: Moment, change: impl FnOnce(&mut EntryMut<'_>) -> T) -> Option<T> {
        if at.shard as usize >= self.parts.len() {
            return None;
        }
        let mut shard = self.shard(at.shard);
        if !shard.is_used(at.slot) {
            return None;
        }
        self.touch(&mut shard, at.slot, now);
        let result = change(&mut self.lend(&mut shard, at.slot, now));
        drop(shard);
        self.ring();
        Some(result)
    }

    /// Removes the entry at a position, if it exists, is not tracked, and `wanted` returns true.
    pub fn remove_at(&self, at: EntryRef, now: Moment, wanted: impl FnOnce(EntryView<'_>) -> bool) -> bool {
        if at.shard as usize >= self.parts.len() {
            return false;
        }
        let mut shard = self.shard(at.shard);
        let removes =
            shard.is_used(at.slot) && shard.standing(at.slot).0 == 0 && wanted(self.view(&shard, at.slot, now));
        if removes {
            shard.remove(at.slot);
            self.give_back(1);
        }
        removes
    }
}
