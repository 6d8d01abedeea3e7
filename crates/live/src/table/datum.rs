//! Kinds of data as named by fetches, converters and actions, and their location in a table's entries. Must never
//! depend on the caller.

use super::{EntryMut, EntryView, Layout, Table, Tracked};
use base::moment::Moment;
use config::spec::DataKind;

/// Maximum number of elements of an array.
const LARGEST_ARRAY: i64 = 100;

/// A kind of data, and an array element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datum {
    kind: DataKind,
    element: u32,
}

impl Datum {
    /// Creates a datum of a kind that is no array.
    pub const fn first(kind: DataKind) -> Self {
        Self { kind, element: 0 }
    }

    /// Creates an element of an array; `None`: the index is out of range.
    pub fn array(kind: DataKind, index: i64) -> Option<Self> {
        let element = u32::try_from(index).ok().filter(|_| index < LARGEST_ARRAY)?;
        Some(Self { kind, element })
    }

    /// Returns its location in a table: if the table stores the array, `gpc0` and the like are its first elements.
    fn resolve(self, layout: &Layout) -> (DataKind, u32) {
        let (array, element) = match self.kind {
            DataKind::Gpc0 => (DataKind::Gpc, 0),
            DataKind::Gpc1 => (DataKind::Gpc, 1),
            DataKind::Gpc0Rate => (DataKind::GpcRate, 0),
            DataKind::Gpc1Rate => (DataKind::GpcRate, 1),
            DataKind::Gpt0 => (DataKind::Gpt, 0),
            _ => return (self.kind, self.element),
        };
        if layout.has(self.kind) { (self.kind, 0) } else { (array, element) }
    }

    /// The rate of a counter.
    fn rate(self) -> Self {
        let kind = match self.kind {
            DataKind::Gpc0 => DataKind::Gpc0Rate,
            DataKind::Gpc1 => DataKind::Gpc1Rate,
            _ => DataKind::GpcRate,
        };
        Self { kind, ..self }
    }

    /// Reads its value in an entry; `None`: not stored.
    #[inline]
    pub fn read(self, entry: &EntryView<'_>, table: &Table) -> Option<u64> {
        let (kind, element) = self.resolve(&table.plan.layout);
        entry.get(kind, element).map(|found| in_units(kind, found, table))
    }

    /// Reads its value in a tracked entry; `None`: not stored.
    #[inline]
    pub fn read_tracked(self, tracked: &Tracked, now: Moment) -> Option<u64> {
        let table = tracked.table();
        let (kind, element) = self.resolve(&table.plan.layout);
        tracked.get(now, kind, element).map(|found| in_units(kind, found, table))
    }

    /// Adds to a counter and to its rate; returns the counter, or the rate if there is no counter. `None`: neither is
    /// stored.
    #[inline]
    pub fn count(self, entry: &mut EntryMut<'_>, table: &Table, more: u64) -> Option<u64> {
        let layout = &table.plan.layout;
        let (kind, element) = self.rate().resolve(layout);
        let rate = entry.add(kind, element, more);
        let (kind, element) = self.resolve(layout);
        entry.add(kind, element, more).or(rate)
    }

    /// Sets its value; returns the former one. `None`: not stored.
    #[inline]
    pub fn set(self, entry: &mut EntryMut<'_>, table: &Table, value: u64) -> Option<u64> {
        let (kind, element) = self.resolve(&table.plan.layout);
        entry.set(kind, element, value)
    }
}

/// Converts a rate of bytes to bytes; other values are unchanged.
#[inline]
fn in_units(kind: DataKind, found: u64, table: &Table) -> u64 {
    match kind {
        DataKind::BytesInRate | DataKind::BytesOutRate => found * u64::from(table.plan.byte_rate_factor),
        _ => found,
    }
}
