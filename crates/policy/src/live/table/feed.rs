//! What peers are told of a table and what they tell: refreshments in the order of their numbers, and entries that were
//! learned. Must never number what was learned: it would come back.

use super::{Table, TableKey};
use base::moment::Moment;
use config::spec::DataKind;

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

impl Table {
    /// The number of the last refreshment: whoever was told all of them waits until it grows.
    pub fn last_update(&self) -> u32 {
        self.updates.load(std::sync::atomic::Ordering::Acquire)
    }

    /// The refreshments behind a number, in their order, `most` at a time. Nothing where the table is not shared, or
    /// only learns.
    pub fn updates(&self, after: u32, most: usize) -> Vec<Update> {
        let mut found: Vec<Update> = Vec::new();
        if !self.plan.shared || self.plan.recv_only {
            return found;
        }
        for at in 0..self.parts.len() as u32 {
            let shard = self.shard(at);
            let mut here = Vec::new();
            shard.each_update(after, |slot, number| {
                here.push((slot, number));
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
        found.truncate(most);
        found
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
