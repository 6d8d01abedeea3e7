//! The dynamic table of HPACK (RFC 7541, section 2.3). Owns the entries that a peer has added; must never exceed the
//! table's size.

use std::collections::VecDeque;

use super::fields::HeaderField;
use super::static_table::STATIC;

/// Overhead of each entry beyond its text (RFC 7541, section 4.1).
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
    known: u8,
    /// See [`HeaderField::is_valid`].
    is_valid: bool,
}

/// The dynamic table, newest entry first.
#[derive(Debug)]
pub(super) struct Dynamic {
    entries: VecDeque<Entry>,
    size: u32,
    /// The current maximum size, chosen by the peer.
    most: u32,
    /// The advertised maximum size, the largest that the peer may choose.
    announced: u32,
}

impl Dynamic {
    pub(super) fn new(announced: usize) -> Self {
        let announced = u32::try_from(announced).unwrap_or(u32::MAX);
        Self { entries: VecDeque::new(), size: 0, most: announced, announced }
    }

    /// Applies a size update of the peer. `None` if it exceeds the advertised size.
    pub(super) fn resize(&mut self, most: usize) -> Option<()> {
        self.most = u32::try_from(most).ok().filter(|most| *most <= self.announced)?;
        self.evict(0);
        Some(())
    }

    /// Adds an entry and evicts the oldest ones if necessary. Whether its text is valid is found once, for all fields
    /// that will refer to it.
    pub(super) fn add(&mut self, field: &HeaderField<'_>) {
        let HeaderField { name, value, known, .. } = *field;
        let size = entry_size(name.len() + value.len());
        self.evict(size);
        if size > self.most {
            return;
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
    }

    /// Evicts the oldest entries until an entry of `size` bytes fits, or none is left.
    fn evict(&mut self, size: u32) {
        while self.size.saturating_add(size) > self.most {
            let Some(entry) = self.entries.pop_back() else { return };
            self.size -= entry_size(entry.text.len());
        }
    }

    /// Returns the entry at an index of the combined static and dynamic table.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<HeaderField<'_>> {
        let index = index.checked_sub(1)?;
        if let Some((name, value)) = STATIC.get(index) {
            let (name, value, known) = (name.as_bytes(), value.as_bytes(), index as u8 + 1);
            return Some(HeaderField { name, value, known, is_valid: true });
        }
        let Entry { text, split, known, is_valid } = self.entries.get(index - STATIC.len())?;
        let (name, value) = text.split_at_checked(*split as usize)?;
        Some(HeaderField { name, value, known: *known, is_valid: *is_valid })
    }

    /// Size of the dynamic table in bytes, as the RFC defines it.
    pub(super) fn size(&self) -> usize {
        self.size as usize
    }
}

/// Returns the size of an entry whose name and value have `bytes` in all (RFC 7541, section 4.1).
fn entry_size(bytes: usize) -> u32 {
    u32::try_from(bytes + OVERHEAD).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_make_room() {
        fn get(table: &Dynamic, index: usize) -> Option<(&[u8], &[u8])> {
            table.get(index).map(|field| (field.name, field.value))
        }
        let mut table = Dynamic::new(100);
        table.add(&HeaderField::new(b"a", b"1"));
        table.add(&HeaderField::new(b"b", b"2"));
        assert_eq!((get(&table, 62), get(&table, 63)), (Some((&b"b"[..], &b"2"[..])), Some((&b"a"[..], &b"1"[..]))));
        table.add(&HeaderField::new(b"c", b"3"));
        assert_eq!((get(&table, 63), get(&table, 64), table.size()), (Some((&b"b"[..], &b"2"[..])), None, 68));
        table.add(&HeaderField::new(&[b'x'; 200], b""));
        assert_eq!((get(&table, 62), table.size()), (None, 0));
        table.add(&HeaderField::new(b"d", b"4"));
        assert_eq!(table.resize(101), None);
        assert_eq!(table.resize(0), Some(()));
        assert_eq!(
            (get(&table, 62), get(&table, 0), get(&table, 61)),
            (None, None, Some((&b"www-authenticate"[..], &b""[..])))
        );
    }
}
