//! The synchronization of a table with peers: updates in the order of their numbers, and learned entries. Must never
//! number a learned update: it would be sent back.

use super::page::Cursor;
use super::{EntryView, Table, TableKey, rate};
use base::moment::Moment;
use config::spec::DataKind;
use std::sync::atomic::Ordering::SeqCst;
use std::task::Waker;

/// An update of an entry. Only the last one of an entry is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    pub number: u32,
    /// The key, encoded by the table's type.
    pub key: Box<[u8]>,
    /// The entry's data, in the table's layout.
    pub words: Box<[u32]>,
    /// Its expiry.
    pub until: Moment,
}

/// The updates after a number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UpdateBatch {
    /// In their order.
    pub updates: Vec<Update>,
    /// With them everything up to this number has been sent.
    pub up_to: u32,
}

impl Table {
    /// A time in milliseconds, as stored in the words of rates.
    pub fn tick(now: Moment) -> u32 {
        rate::tick(now)
    }

    /// Returns the age of a rate's period that began at `begin`, in milliseconds.
    pub fn age(begin: u32, tick: u32) -> u32 {
        rate::since(begin, tick)
    }

    /// The number of the last update: a reader that has all of them waits until it grows.
    pub fn last_update(&self) -> u32 {
        self.updates.load(SeqCst)
    }

    /// Registers a waker for updates after `known`; true: there are some already. Only one task may wait.
    pub fn wait_for_update(&self, known: u32, waker: &Waker) -> bool {
        self.bell.wait(waker);
        self.last_update() != known
    }

    /// Returns the updates after a number, in their order, at most `most`. None if the table is not shared, or
    /// `recv-only`.
    pub fn updates(&self, after: u32, most: usize) -> UpdateBatch {
        // A number is assigned under the lock of a shard, and all updates up to this one are found under those locks.
        let last = self.last_update();
        let mut found: Vec<Update> = Vec::new();
        if !self.plan.shared || self.plan.recv_only || most == 0 {
            return UpdateBatch { updates: found, up_to: last };
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
            // The newest come first; if there are too many, the oldest are sent.
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
        UpdateBatch { updates: found, up_to }
    }

    /// Passes the entries updated locally after a number, scanning `most` slots from the cursor: for a reader that has
    /// very much to send. `None`: that was all.
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

    /// Stores an entry learned from a peer: `data` are its elements. It expires at `until`, if the table's entries
    /// expire, and is not sent to other peers. False: the table is full.
    pub fn learn<'d>(
        &self,
        key: &TableKey<'_>,
        now: Moment,
        until: Moment,
        data: impl IntoIterator<Item = (DataKind, u32, &'d [u32])>,
    ) -> bool {
        self.store(key, now, until, false, data)
    }

    /// Stores an entry of an older process of this instance: the same, but it is sent to peers.
    pub fn inherit<'d>(
        &self,
        key: &TableKey<'_>,
        now: Moment,
        until: Moment,
        data: impl IntoIterator<Item = (DataKind, u32, &'d [u32])>,
    ) -> bool {
        let stored = self.store(key, now, until, true, data);
        self.ring();
        stored
    }

    fn store<'d>(
        &self,
        key: &TableKey<'_>,
        now: Moment,
        until: Moment,
        is_own: bool,
        data: impl IntoIterator<Item = (DataKind, u32, &'d [u32])>,
    ) -> bool {
        let Some((_, slot, mut shard)) = self.obtain(key.bytes(), now) else { return false };
        let end = self.plan.expire.map_or(Moment::MAX, |_| until);
        shard.refresh(slot, end);
        if is_own {
            shard.note_update(slot, self.updates.fetch_add(1, SeqCst).wrapping_add(1));
        } else {
            shard.note_learned(slot, self.last_update());
        }
        let mut entry = self.lend(&mut shard, slot, now);
        for (kind, element, words) in data {
            // The number of local connections is not learned.
            if kind != DataKind::ConnCur || self.plan.recv_only {
                entry.set_raw(kind, element, words);
            }
        }
        true
    }
}
