//! What peers are told of a table and what they tell: refreshments in the order of their numbers, and entries that were
//! learned. Must never number what was learned: it would come back.

use super::page::Cursor;
use super::{EntryView, Table, TableKey, rate};
use base::moment::Moment;
use config::spec::DataKind;
use std::sync::atomic::Ordering::SeqCst;
use std::task::Waker;

/// A refreshment of an entry. Only the last one of an entry is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// Its number.
    pub number: u32,
    /// The key, as the table's type says.
    pub key: Box<[u8]>,
    /// The entry's data, as the table's layout says.
    pub words: Box<[u32]>,
    /// It is there until then.
    pub until: Moment,
}

/// Refreshments behind a number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Told {
    /// In their order.
    pub updates: Vec<Update>,
    /// With them everything is told up to this number.
    pub up_to: u32,
}

impl Table {
    /// A moment in the milliseconds of rates, as their words have it.
    pub fn tick(now: Moment) -> u32 {
        rate::tick(now)
    }

    /// The number of the last refreshment: a reader that has all of them waits until it grows.
    pub fn last_update(&self) -> u32 {
        self.updates.load(SeqCst)
    }

    /// Wakes the task when something is refreshed behind `known`; true: something was already. One task waits at a time.
    pub fn wait_for_update(&self, known: u32, waker: &Waker) -> bool {
        self.bell.wait(waker);
        self.last_update() != known
    }

    /// The refreshments behind a number, in their order, `most` at a time. None where the table is not shared, or only
    /// learns.
    pub fn updates(&self, after: u32, most: usize) -> Told {
        // A number is given under the lock of a shard, and what has one up to this is found under those locks.
        let last = self.last_update();
        let mut found: Vec<Update> = Vec::new();
        if !self.plan.shared || self.plan.recv_only || most == 0 {
            return Told { updates: found, up_to: last };
        }
        let reach = last.wrapping_sub(after);
        for at in 0..self.parts.len() as u32 {
            let shard = self.shard(at);
            let mut here = Vec::new();
            shard.each_update(after, |slot, number| {
                if number.wrapping_sub(after) <= reach {
                    here.push((slot, number));
                }
                true
            });
            // The newest come first; of those that are too many, the oldest are told.
            here.reverse();
            here.truncate(most);
            found.extend(here.into_iter().map(|(slot, number)| {
                let (words, key) = shard.parts(slot);
                Update { number, key: key.into(), words: words.into(), until: shard.standing(slot).1 }
            }));
        }
        found.sort_by_key(|update| update.number.wrapping_sub(after));
        let up_to = if found.len() < most { last } else { found[most - 1].number };
        found.truncate(most);
        Told { updates: found, up_to }
    }

    /// Hands the entries to `take` that were refreshed here behind a number, looking at `most` places behind the cursor:
    /// for a reader that has very much to send. `None`: that was all.
    pub fn page_updates(
        &self,
        from: Cursor,
        most: u32,
        after: u32,
        now: Moment,
        mut take: impl FnMut(EntryView<'_>),
    ) -> Option<Cursor> {
        self.page_of_shard(from, most, now, |at, view, shard| {
            if shard.told_behind(at.slot, after) {
                take(view);
            }
        })
    }

    /// A peer has told of an entry: its data are set, element by element, as `data` gives them. It stays until `until`,
    /// if the table's entries end, and is not told to others. False: there is no room for it.
    pub fn learn<'d>(
        &self,
        key: &TableKey<'_>,
        now: Moment,
        until: Moment,
        data: impl IntoIterator<Item = (DataKind, u32, &'d [u32])>,
    ) -> bool {
        let Some((_, slot, mut shard)) = self.obtain(key.bytes(), now) else { return false };
        let end = self.plan.expire.map_or(Moment::MAX, |_| until);
        shard.refresh(slot, end);
        shard.note_learned(slot, self.last_update());
        let mut entry = self.lend(&mut shard, slot, now);
        for (kind, element, words) in data {
            // How many connections there are here is known here best.
            if kind != DataKind::ConnCur || self.plan.recv_only {
                entry.set_raw(kind, element, words);
            }
        }
        true
    }
}
