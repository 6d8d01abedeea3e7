//! The dynamic table of a peer's encoder (RFC 7541, section 2.3; RFC 9204, section 3.2). Owns the entries that the peer
//! has added; must never exceed the table's size.

use std::collections::VecDeque;

use super::field::{HeaderField, KnownName};

/// Overhead of each entry beyond its text (RFC 7541, section 4.1; RFC 9204, section 3.2.1).
const OVERHEAD: usize = 32;

/// Entries that the first allocation has memory for. Most clients add one for each different field of their requests.
const FIRST: usize = 2;

/// An entry of the dynamic table.
#[derive(Debug)]
struct Entry {
    /// Name and value as one text.
    text: Box<[u8]>,
    /// The length of the name.
    split: u32,
    /// See [`HeaderField::known`].
    known: KnownName,
    /// See [`HeaderField::is_valid`].
    is_valid: bool,
}

/// A dynamic table, newest entry first.
#[derive(Debug)]
pub(crate) struct Table {
    entries: VecDeque<Entry>,
    size: u32,
    /// The current maximum size, chosen by the peer.
    most: u32,
}

impl Table {
    /// Creates an empty table of a maximum size in bytes.
    pub(crate) fn new(most: u32) -> Self {
        Self { entries: VecDeque::new(), size: 0, most }
    }

    /// Changes the maximum size and evicts the oldest entries if necessary.
    pub(crate) fn resize(&mut self, most: u32) {
        self.most = most;
        self.evict(0);
    }

    /// Adds an entry and evicts the oldest ones if necessary. Whether its text is valid is found once, for all fields
    /// that will refer to it. An entry larger than the table empties it, and is not added: false.
    pub(crate) fn add(&mut self, field: &HeaderField<'_>) -> bool {
        let HeaderField { name, value, known, .. } = *field;
        let size = entry_size(name.len() + value.len());
        self.evict(size);
        if size > self.most {
            return false;
        }
        self.size += size;
        let mut text = Vec::with_capacity(name.len() + value.len());
        text.extend_from_slice(name);
        text.extend_from_slice(value);
        let is_valid = field.is_valid();
        if self.entries.capacity() == 0 {
            self.entries.reserve_exact(FIRST);
        }
        self.entries.push_front(Entry { text: text.into_boxed_slice(), split: name.len() as u32, known, is_valid });
        true
    }

    /// Evicts the oldest entries until an entry of `size` bytes fits, or none is left.
    fn evict(&mut self, size: u32) {
        while self.size.saturating_add(size) > self.most {
            let Some(entry) = self.entries.pop_back() else { return };
            self.size -= entry_size(entry.text.len());
        }
    }

    /// Returns an entry by its age: 0 is the newest one.
    #[inline]
    pub(crate) fn get(&self, age: usize) -> Option<HeaderField<'_>> {
        let Entry { text, split, known, is_valid } = self.entries.get(age)?;
        let (name, value) = text.split_at_checked(*split as usize)?;
        Some(HeaderField { name, value, known: *known, is_valid: *is_valid })
    }

    /// Size of the table in bytes, as the RFCs define it.
    pub(crate) fn size(&self) -> usize {
        self.size as usize
    }
}

/// Returns the size of an entry whose name and value have `bytes` in all.
fn entry_size(bytes: usize) -> u32 {
    u32::try_from(bytes + OVERHEAD).unwrap_or(u32::MAX)
}
