//! The index space of HPACK: the static table, followed by the dynamic one (RFC 7541, section 2.3.3).

use super::static_table::ENTRIES;
use crate::fields::field::HeaderField;
use crate::fields::table::Table;

/// Both tables of a decoder.
#[derive(Debug)]
pub(super) struct Dynamic {
    table: Table,
    /// The advertised maximum size, the largest that the peer may choose.
    announced: u32,
}

impl Dynamic {
    pub(super) fn new(announced: usize) -> Self {
        let announced = u32::try_from(announced).unwrap_or(u32::MAX);
        Self { table: Table::new(announced), announced }
    }

    /// Applies a size update of the peer. `None` if it exceeds the advertised size.
    pub(super) fn resize(&mut self, most: usize) -> Option<()> {
        self.table.resize(u32::try_from(most).ok().filter(|most| *most <= self.announced)?);
        Some(())
    }

    /// Adds an entry; one larger than the table empties it (RFC 7541, section 4.4).
    pub(super) fn add(&mut self, field: &HeaderField<'_>) {
        self.table.add(field);
    }

    /// Returns the entry at an index of the combined static and dynamic table.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<HeaderField<'_>> {
        let index = index.checked_sub(1)?;
        match ENTRIES.get(index) {
            Some(entry) => Some(*entry),
            None => self.table.get(index - ENTRIES.len()),
        }
    }

    /// Size of the dynamic table in bytes, as the RFC defines it.
    pub(super) fn size(&self) -> usize {
        self.table.size()
    }
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
