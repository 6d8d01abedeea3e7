//! Going through a table from outside, some entries at a time: what the runtime API shows, sets and clears. Must never
//! hold a lock longer than for one page of one shard.

use super::shard::Shard;
use super::{EntryMut, EntryRef, EntryView, Table};
use base::moment::Moment;

/// How far a walk through a table has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursor {
    shard: u32,
    slot: u32,
}

impl Table {
    /// Hands entries to `take`, looking at `most` places behind the cursor. `None`: that was all.
    pub fn page(
        &self,
        from: Cursor,
        most: u32,
        now: Moment,
        mut take: impl FnMut(EntryRef, EntryView<'_>),
    ) -> Option<Cursor> {
        self.page_of_shard(from, most, now, |at, view, _| take(at, view))
    }

    /// The same, with the shard.
    pub(super) fn page_of_shard(
        &self,
        from: Cursor,
        most: u32,
        now: Moment,
        mut take: impl FnMut(EntryRef, EntryView<'_>, &Shard),
    ) -> Option<Cursor> {
        if from.shard as usize >= self.parts.len() {
            return None;
        }
        let shard = self.shard(from.shard);
        let end = shard.places().min(from.slot.saturating_add(most));
        for slot in from.slot..end {
            if shard.is_used(slot) {
                let view = self.view(&shard, slot, now);
                if view.until > now || view.trackers > 0 {
                    take(EntryRef { shard: from.shard, slot }, view, &shard);
                }
            }
        }
        let over = end >= shard.places();
        let next = if over { Cursor { shard: from.shard + 1, slot: 0 } } else { Cursor { slot: end, ..from } };
        ((next.shard as usize) < self.parts.len()).then_some(next)
    }

    /// Reads the entry at a place that may be none any more.
    pub fn read_at<T>(&self, at: EntryRef, now: Moment, read: impl FnOnce(EntryView<'_>) -> T) -> Option<T> {
        if at.shard as usize >= self.parts.len() {
            return None;
        }
        let shard = self.shard(at.shard);
        shard.is_used(at.slot).then(|| read(self.view(&shard, at.slot, now)))
    }

    /// Changes the entry at a place that may be none any more; it is refreshed.
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

    /// Takes out the entry at a place, if there is one that is not tracked and that `wanted` accepts.
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
