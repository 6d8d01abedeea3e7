//! Tables of sums (`X.agg`): the operations on the values of origins, whose sums are the data of the entries. Must never
//! change a value that an origin did not send, and never keep an entry beyond its values unless it is tracked.
//!
//! An entry takes 32 bytes, and 8 bytes plus its data for each origin that has sent the key, besides those of any entry.

use super::origins::{Origin, Origins, Remaining, SumContext};
use super::rate;
use super::shard::{Shard, reserve};
use super::{Cursor, Table, TableKey};
use base::moment::Moment;
use config::spec::DataKind;
use std::sync::atomic::Ordering::SeqCst;

/// The progress of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removed {
    /// Where it continues; `None`: that was all.
    pub next: Option<Cursor>,
    /// The number of slots and of origins that were examined.
    pub cost: u32,
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
        let around = self.sum_context(now);
        let (origins, sum) = shard.sum_parts(slot);
        let is_counted = origins.store(&around, origin, rate::tick(until), |words| {
            for (kind, element, from) in data {
                if let Some(place) = around.layout.place(kind, element)
                    && place.len() == from.len()
                {
                    words[place].copy_from_slice(from);
                }
            }
        });
        if is_counted {
            origins.write(&around, sum);
            let end = if around.expires { until.max(shard.standing(slot).1) } else { Moment::MAX };
            shard.set_until(slot, end);
        } else {
            self.add_up(&mut shard, slot, now);
        }
        let (_, end) = shard.standing(slot);
        shard.refresh(slot, end);
        shard.note_update(slot, self.updates.fetch_add(1, SeqCst).wrapping_add(1));
        drop(shard);
        self.ring();
        true
    }

    /// Removes the values of an origin that are not of its present epoch, from the slots after the cursor, until about
    /// `most` slots and origins were examined.
    pub fn drop_former(&self, from: Cursor, most: u32, present: Origin, now: Moment) -> Removed {
        let Some((at, slots, mut next)) = self.slots_of_page(from, most) else {
            return Removed { next: None, cost: 0 };
        };
        let mut shard = self.shard(at);
        let (around, mut cost, mut changes) = (self.sum_context(now), 0, false);
        for slot in slots.start..slots.end.min(shard.places()) {
            if cost >= most {
                next = Some(from.at_slot(slot));
                break;
            }
            cost += 1;
            if !shard.is_used(slot) {
                continue;
            }
            let (origins, _) = shard.sum_parts(slot);
            let number = origins.len(&around) as u32;
            if !origins.remove(&around, present.index, |origin| origin.is_before(present)) {
                continue;
            }
            cost += number;
            let is_empty = origins.is_empty();
            let until = shard.standing(slot).1;
            self.add_up(&mut shard, slot, now);
            // The entry remains until its former values would have ended, so that the update is sent.
            let until = if is_empty { until } else { shard.standing(slot).1 };
            shard.refresh(slot, until);
            shard.note_update(slot, self.updates.fetch_add(1, SeqCst).wrapping_add(1));
            changes = true;
        }
        drop(shard);
        if changes {
            self.ring();
        }
        Removed { next, cost }
    }

    /// The number of origins of a key's entry.
    pub fn origins(&self, key: &TableKey<'_>, now: Moment) -> usize {
        let key = key.bytes();
        let (at, hash) = self.locate(key);
        let mut shard = self.shard(at);
        let Some(slot) = shard.find(hash, key, now) else { return 0 };
        self.add_up(&mut shard, slot, now);
        shard.sum_parts(slot).0.len(&self.sum_context(now))
    }

    /// Computes a sum again if the share of an origin has changed since: a period of a rate or the life of its values
    /// has ended. False: that was the end of the entry.
    #[inline]
    pub(super) fn renew(&self, shard: &mut Shard, slot: u32, now: Moment) -> bool {
        !self.plan.summed || self.renew_due(shard, slot, now)
    }

    #[inline(never)]
    fn renew_due(&self, shard: &mut Shard, slot: u32, now: Moment) -> bool {
        if shard.origins.get(slot as usize).is_some_and(|origins| origins.is_due(rate::tick(now))) {
            self.add_up(shard, slot, now);
        }
        let (trackers, until) = shard.standing(slot);
        trackers > 0 || until > now
    }

    fn sum_context(&self, now: Moment) -> SumContext<'_> {
        SumContext { layout: &self.plan.layout, expires: self.plan.expire.is_some(), now: rate::tick(now) }
    }

    /// Removes expired values, and computes the sum of the others. The entry ends with the last ones.
    fn add_up(&self, shard: &mut Shard, slot: u32, now: Moment) {
        let around = self.sum_context(now);
        let (origins, sum) = shard.sum_parts(slot);
        let was_empty = origins.is_empty();
        let remaining = origins.add_up(&around, sum);
        let full = |life: u32| Moment::from_nanos(now.as_nanos() / 1_000_000 * 1_000_000 + u64::from(life) * 1_000_000);
        match remaining {
            _ if !around.expires => {}
            Remaining::For(life) => shard.set_until(slot, full(life)),
            Remaining::Nothing if was_empty => {}
            Remaining::Nothing => shard.set_until(slot, now),
        }
    }
}

impl Shard {
    /// Returns the values of all origins of an entry, and their sum.
    fn sum_parts(&mut self, at: u32) -> (&mut Origins, &mut [u32]) {
        if self.origins.len() <= at as usize {
            let missing = self.slots.len() - self.origins.len();
            reserve(&mut self.origins, missing);
            self.origins.resize_with(self.slots.len(), Origins::default);
        }
        let start = at as usize * self.stride;
        (&mut self.origins[at as usize], &mut self.words[start..start + self.stride])
    }
}
