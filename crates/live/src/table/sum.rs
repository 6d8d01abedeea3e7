//! Tables of sums (`X.agg`): the last values of each origin by entry, and their sum, in the words of the entry. Must
//! never change a value that an origin did not send, and never keep one beyond its expiry.
//!
//! An entry takes 24 bytes, and 8 bytes plus its data for each origin that has sent the key, besides those of any entry.

use super::rate::{self, RateSum};
use super::shard::Shard;
use super::{Cursor, Layout, Table, TableKey};
use base::moment::Moment;
use config::spec::{DataForm, DataKind};
use std::sync::atomic::Ordering::SeqCst;

/// The words before the first origin: the time at which the sum must be computed again.
const HEAD: usize = 1;
/// The words before an origin's data: the origin, and the expiry.
const BLOCK_HEAD: usize = 2;
/// A sum is computed again after this time at the latest, in milliseconds: times wrap.
const HORIZON: u32 = 1 << 30;

/// The sender of values: a peer, and the session since which all its values are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    pub index: u16,
    pub epoch: u16,
}

impl Origin {
    /// Whether its values are older than those of another session of the same peer.
    fn is_before(self, present: Self) -> bool {
        // Sessions are numbered, and the numbers wrap.
        (present.epoch.wrapping_sub(self.epoch) as i16) > 0
    }

    fn word(self) -> u32 {
        u32::from(self.index) | u32::from(self.epoch) << 16
    }

    fn of_word(word: u32) -> Self {
        Self { index: word as u16, epoch: (word >> 16) as u16 }
    }
}

impl Table {
    /// Stores the values of an origin for a key, until `until`, in place of its former ones. Data types that the table
    /// does not store are ignored, missing ones are zero. False: the table is full.
    pub fn add_origin<'d>(
        &self,
        key: &TableKey<'_>,
        origin: Origin,
        now: Moment,
        until: Moment,
        data: impl IntoIterator<Item = (DataKind, u32, &'d [u32])>,
    ) -> bool {
        let Some((_, slot, mut shard)) = self.obtain(key.bytes(), now) else { return false };
        let end = self.plan.expire.map_or(Moment::MAX, |_| until.max(shard.standing(slot).1));
        shard.refresh(slot, end);
        let block = shard.origin_block(slot, origin, BLOCK_HEAD + self.plan.layout.words());
        block[..BLOCK_HEAD].copy_from_slice(&[origin.word(), rate::tick(until)]);
        let words = &mut block[BLOCK_HEAD..];
        words.fill(0);
        for (kind, element, from) in data {
            if let Some(place) = self.plan.layout.place(kind, element)
                && place.len() == from.len()
            {
                words[place].copy_from_slice(from);
            }
        }
        self.add_up(&mut shard, slot, now);
        shard.note_update(slot, self.updates.fetch_add(1, SeqCst).wrapping_add(1));
        drop(shard);
        self.ring();
        true
    }

    /// Removes the values of an origin that are not of its present epoch, from the entries in the next `most` slots
    /// after the cursor. `None`: that was all.
    pub fn drop_former(&self, from: Cursor, most: u32, present: Origin, now: Moment) -> Option<Cursor> {
        let (at, slots, next) = self.slots_of_page(from, most)?;
        let mut shard = self.shard(at);
        let mut changes = false;
        for slot in slots.start..slots.end.min(shard.places()) {
            let is_former = |origin: Origin| origin.index == present.index && origin.is_before(present);
            if !shard.is_used(slot) || !self.drop_origins(&mut shard, slot, |origin, _| is_former(origin)) {
                continue;
            }
            self.add_up(&mut shard, slot, now);
            let until = shard.standing(slot).1;
            shard.refresh(slot, until);
            shard.note_update(slot, self.updates.fetch_add(1, SeqCst).wrapping_add(1));
            changes = true;
        }
        drop(shard);
        if changes {
            self.ring();
        }
        next
    }

    /// The number of origins of a key's entry.
    pub fn origins(&self, key: &TableKey<'_>, now: Moment) -> usize {
        let key = key.bytes();
        let (at, hash) = self.locate(key);
        let mut shard = self.shard(at);
        let Some(slot) = shard.find(hash, key, now) else { return 0 };
        self.add_up(&mut shard, slot, now);
        let block = BLOCK_HEAD + self.plan.layout.words();
        shard.origins_mut(slot).map_or(0, |origins| origins.len().saturating_sub(HEAD) / block)
    }

    /// Computes a sum again if the share of an origin has changed since: a period of a rate or the life of its values
    /// has ended.
    #[inline]
    pub(super) fn renew(&self, shard: &mut Shard, slot: u32, now: Moment) {
        if self.plan.summed {
            self.renew_due(shard, slot, now);
        }
    }

    #[inline(never)]
    fn renew_due(&self, shard: &mut Shard, slot: u32, now: Moment) {
        let horizon = shard.origins_mut(slot).and_then(|origins| origins.first().copied());
        if horizon.is_some_and(|horizon| is_past(horizon, rate::tick(now))) {
            self.add_up(shard, slot, now);
        }
    }

    /// Removes origins from an entry. True: there were some.
    fn drop_origins(&self, shard: &mut Shard, slot: u32, drops: impl Fn(Origin, u32) -> bool) -> bool {
        let block = BLOCK_HEAD + self.plan.layout.words();
        let Some(origins) = shard.origins_mut(slot) else { return false };
        let (mut at, before) = (HEAD, origins.len());
        while at + block <= origins.len() {
            if drops(Origin::of_word(origins[at]), origins[at + 1]) {
                // The order of origins has no meaning.
                let last = origins.len() - block;
                origins.copy_within(last.., at);
                origins.truncate(last);
            } else {
                at += block;
            }
        }
        before != origins.len()
    }

    /// Removes expired values, and computes the sum of the others.
    fn add_up(&self, shard: &mut Shard, slot: u32, now: Moment) {
        let tick = rate::tick(now);
        let expires = self.plan.expire.is_some();
        if expires {
            self.drop_origins(shard, slot, |_, until| is_past(until, tick));
        }
        let Some((origins, words)) = shard.sum_parts(slot) else { return };
        let mut left = HORIZON;
        let blocks = origins[HEAD..].chunks_exact(BLOCK_HEAD + words.len());
        if expires {
            left = blocks.clone().map(|block| block[1].wrapping_sub(tick)).fold(left, u32::min);
        }
        let values = blocks.map(|block| &block[BLOCK_HEAD..]);
        left = left.min(sum_of(&self.plan.layout, values, words, tick));
        origins[0] = tick.wrapping_add(left);
    }
}

/// Writes the sum of values. Returns the time after which it must be computed again, in milliseconds.
fn sum_of<'v>(layout: &Layout, values: impl Iterator<Item = &'v [u32]> + Clone, out: &mut [u32], now: u32) -> u32 {
    let mut left = HORIZON;
    for store in &layout.stores {
        for element in 0..store.elements {
            let Some(place) = layout.place(store.kind, element) else { continue };
            let parts = values.clone().map(|words| &words[place.clone()]);
            match (store.kind.form(), &mut out[place.clone()]) {
                (DataForm::Large, [low, high]) => {
                    let sum = parts
                        .fold(0_u64, |sum, words| sum.saturating_add(u64::from(words[0]) | u64::from(words[1]) << 32));
                    (*low, *high) = (sum as u32, (sum >> 32) as u32);
                }
                (DataForm::Rate, words) => {
                    let mut sum = RateSum::default();
                    for rate in parts {
                        left = left.min(sum.add(rate, now, store.period).unwrap_or(HORIZON));
                    }
                    sum.write(words, now);
                }
                (_, words) => words[0] = parts.fold(0, |sum: u32, words| sum.saturating_add(words[0])),
            }
        }
    }
    left
}

/// Whether a time in milliseconds has been reached.
fn is_past(then: u32, now: u32) -> bool {
    now.wrapping_sub(then) as i32 >= 0
}

impl Shard {
    /// Returns the values of all origins of an entry, to be changed.
    fn origins_mut(&mut self, at: u32) -> Option<&mut Vec<u32>> {
        self.origins.get_mut(at as usize)
    }

    /// Returns the values of all origins of an entry, and their sum.
    fn sum_parts(&mut self, at: u32) -> Option<(&mut Vec<u32>, &mut [u32])> {
        let start = at as usize * self.stride;
        let origins = self.origins.get_mut(at as usize).filter(|origins| !origins.is_empty())?;
        Some((origins, &mut self.words[start..start + self.stride]))
    }

    /// Returns the place of an origin's values in an entry.
    fn origin_block(&mut self, at: u32, origin: Origin, size: usize) -> &mut [u32] {
        if self.origins.len() <= at as usize {
            let slots = self.slots.len();
            self.origins.reserve_exact(slots - self.origins.len());
            self.origins.resize_with(slots, Vec::new);
        }
        let origins = &mut self.origins[at as usize];
        if origins.is_empty() {
            origins.reserve_exact(HEAD + size);
            origins.resize(HEAD, 0);
        }
        let mut starts = (HEAD..origins.len()).step_by(size);
        let known = starts.find(|start| Origin::of_word(origins[*start]).index == origin.index);
        let start = known.unwrap_or(origins.len());
        if known.is_none() {
            // Grows by an eighth: few origins share most keys.
            origins.reserve_exact(size * (1 + (start / size) / 8));
            origins.resize(start + size, 0);
        }
        &mut origins[start..start + size]
    }
}
