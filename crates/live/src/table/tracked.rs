//! Entries tracked by a session or a stream: guards that pin them, and count a connection while they exist. Must never
//! be held by another thread than the one that created them.

use super::{EntryMut, EntryRef, EntryView, Table, TableKey};
use base::moment::Moment;
use config::spec::DataKind;
use expression::sample::TrackedEntry;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A worker's own handle of a table: tracking an entry counts references on one thread only.
pub type TableHandle = Rc<Arc<Table>>;

/// A tracked entry. Dropping it ends the tracking.
#[derive(Debug)]
pub struct Tracked {
    table: TableHandle,
    at: EntryRef,
    /// The tracking was ended explicitly.
    over: bool,
}

impl TrackedEntry for Tracked {}

impl Tracked {
    /// Tracks the entry of a key, creating it if necessary: counts a connection, and applies `change`. `None`: the
    /// table is full.
    #[inline]
    pub fn new(
        table: &TableHandle,
        key: &TableKey<'_>,
        now: Moment,
        change: impl FnOnce(&mut EntryMut<'_>),
    ) -> Option<Self> {
        let at = table.pin(key, now, |entry| {
            entry.add(DataKind::ConnCur, 0, 1);
            entry.add(DataKind::ConnCnt, 0, 1);
            entry.add(DataKind::ConnRate, 0, 1);
            change(entry);
        })?;
        Some(Self { table: Rc::clone(table), at, over: false })
    }

    #[inline]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Its position.
    pub fn place(&self) -> EntryRef {
        self.at
    }

    /// Changes and refreshes the entry.
    #[inline]
    pub fn change<T>(&self, now: Moment, change: impl FnOnce(&mut EntryMut<'_>) -> T) -> T {
        self.table.change(self.at, now, change)
    }

    #[inline]
    pub fn read<T>(&self, now: Moment, read: impl FnOnce(EntryView<'_>) -> T) -> T {
        self.table.read(self.at, now, read)
    }

    /// Reads an element of the entry. `None`: not stored.
    #[inline]
    pub fn get(&self, now: Moment, kind: DataKind, element: u32) -> Option<u64> {
        self.table.get(self.at, now, kind, element)
    }

    /// Ends the tracking after a last change; refreshes the entry.
    pub fn end(mut self, now: Moment, change: impl FnOnce(&mut EntryMut<'_>)) {
        self.finish(now, change);
    }

    /// The same without consuming it; the caller drops it afterwards.
    #[inline]
    fn finish(&mut self, now: Moment, change: impl FnOnce(&mut EntryMut<'_>)) {
        self.over = true;
        let mut shard = self.table.shard(self.at.shard);
        self.table.touch(&mut shard, self.at.slot, now);
        *shard.trackers_mut(self.at.slot) -= 1;
        let mut entry = self.table.lend(&mut shard, self.at.slot, now);
        entry.decrement(DataKind::ConnCur);
        change(&mut entry);
        drop(shard);
        self.table.ring();
    }

    /// Ends tracking that was not ended explicitly.
    #[cold]
    fn abandon(&self) {
        let mut shard = self.table.shard(self.at.shard);
        *shard.trackers_mut(self.at.slot) -= 1;
        self.table.lend(&mut shard, self.at.slot, Moment::ZERO).decrement(DataKind::ConnCur);
    }
}

impl Drop for Tracked {
    #[inline]
    fn drop(&mut self) {
        if !self.over {
            self.abandon();
        }
    }
}

/// An entry pinned only for its byte rate: streams share a limit. Dropping it unpins the entry.
#[derive(Debug)]
pub struct Pinned {
    table: TableHandle,
    at: EntryRef,
}

impl Pinned {
    /// Pins the entry of a key, creating it if necessary. `None`: the table is full.
    pub fn new(table: &TableHandle, key: &TableKey<'_>, now: Moment) -> Option<Self> {
        let at = table.pin(key, now, |_| {})?;
        Some(Self { table: Rc::clone(table), at })
    }

    /// Takes up to `wanted` bytes from a rate's limit, if at least `least` are left.
    ///
    /// # Errors
    /// When they will be available.
    pub fn take_bytes(&self, kind: DataKind, now: Moment, limit: u64, least: u64, wanted: u64) -> Result<u64, Moment> {
        let factor = u64::from(self.table.plan.byte_rate_factor);
        let events = |bytes: u64| u32::try_from(bytes.div_ceil(factor)).unwrap_or(u32::MAX);
        let limit = events(limit).max(1);
        let taken = self.table.change(self.at, now, |entry| entry.take(kind, limit, events(least), events(wanted)));
        match taken {
            None => Ok(wanted),
            Some(Ok(events)) => Ok((u64::from(events) * factor).min(wanted)),
            Some(Err(millis)) => Err(now + Duration::from_millis(millis.into())),
        }
    }

    /// Returns bytes that were taken but not transferred.
    pub fn give_back(&self, kind: DataKind, now: Moment, bytes: u64) {
        let events = bytes / u64::from(self.table.plan.byte_rate_factor);
        self.table.change(self.at, now, |entry| entry.take_back(kind, u32::try_from(events).unwrap_or(u32::MAX)));
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        *self.table.shard(self.at.shard).trackers_mut(self.at.slot) -= 1;
    }
}

/// The entries tracked by a session or a stream, by the number of the counter.
#[derive(Debug, Default)]
pub struct Tracking(Vec<(u8, Tracked)>);

impl Tracking {
    /// Whether it tracks nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the entry tracked under a number.
    #[inline]
    pub fn get(&self, number: u8) -> Option<&Tracked> {
        self.0.iter().find(|(known, _)| *known == number).map(|(_, tracked)| tracked)
    }

    /// Tracks an entry under a free number.
    pub fn add(&mut self, number: u8, tracked: Tracked) {
        self.0.push((number, tracked));
    }

    /// Changes all entries.
    #[inline]
    pub fn each(&self, now: Moment, mut change: impl FnMut(&mut EntryMut<'_>, &Table)) {
        for (_, tracked) in &self.0 {
            tracked.change(now, |entry| change(entry, tracked.table()));
        }
    }

    /// Ends all tracking and keeps the capacity.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Ends all tracking, each after a last change.
    #[inline]
    pub fn end(&mut self, now: Moment, mut change: impl FnMut(&mut EntryMut<'_>, u32)) {
        for (_, tracked) in &mut self.0 {
            let factor = tracked.table.plan.byte_rate_factor;
            tracked.finish(now, |entry| change(entry, factor));
        }
        self.0.clear();
    }
}
