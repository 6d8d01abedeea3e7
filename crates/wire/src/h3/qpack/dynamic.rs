//! The dynamic table of a peer's encoder (RFC 9204, section 3.2): absolute indexes. Must never exceed the advertised
//! capacity.

use crate::fields::field::HeaderField;
use crate::fields::table::Table;

/// The smallest size of an entry in bytes (RFC 9204, section 3.2.1).
const SMALLEST: u32 = 32;

/// The dynamic table.
#[derive(Debug)]
pub(super) struct Dynamic {
    table: Table,
    /// The advertised capacity (SETTINGS_QPACK_MAX_TABLE_CAPACITY), in bytes.
    announced: u32,
    /// The capacity that the encoder has set.
    capacity: u32,
    /// The number of insertions so far: the absolute index of the next entry.
    inserted: u64,
}

impl Dynamic {
    pub(super) fn new(announced: u32) -> Self {
        Self { table: Table::new(0), announced, capacity: 0, inserted: 0 }
    }

    /// The largest number of entries of the advertised capacity (MaxEntries).
    pub(super) fn most_entries(&self) -> u64 {
        u64::from(self.announced / SMALLEST)
    }

    /// The number of insertions so far.
    pub(super) fn inserted(&self) -> u64 {
        self.inserted
    }

    /// The capacity that the encoder has set, in bytes.
    pub(super) fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// The advertised capacity in bytes.
    pub(super) fn announced(&self) -> u32 {
        self.announced
    }

    /// The size of the table in bytes.
    pub(super) fn size(&self) -> usize {
        self.table.size()
    }

    /// Sets the capacity. `None` if it exceeds the advertised one.
    pub(super) fn set_capacity(&mut self, capacity: u64) -> Option<()> {
        self.capacity = u32::try_from(capacity).ok().filter(|capacity| *capacity <= self.announced)?;
        self.table.resize(self.capacity);
        Some(())
    }

    /// Inserts an entry and evicts the oldest ones if necessary. `None` if it is larger than the table.
    pub(super) fn insert(&mut self, field: &HeaderField<'_>) -> Option<()> {
        if !self.table.add(field) {
            return None;
        }
        self.inserted += 1;
        Some(())
    }

    /// Returns an entry by its age: 0 is the newest one.
    pub(super) fn by_age(&self, age: u64) -> Option<HeaderField<'_>> {
        self.table.get(usize::try_from(age).ok()?)
    }

    /// Returns the entry at an absolute index, if it is not evicted.
    #[inline]
    pub(super) fn get(&self, index: u64) -> Option<HeaderField<'_>> {
        self.by_age(self.inserted.checked_sub(1)?.checked_sub(index)?)
    }
}
