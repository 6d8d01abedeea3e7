//! The lines of a ring, bounded in bytes. Must never know its readers.

use std::collections::VecDeque;

/// A position between two lines: the number of lines appended before it, and their size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursor {
    line: u64,
    byte: u64,
}

/// Length-prefixed lines (four bytes, little-endian).
#[derive(Debug)]
pub struct Store {
    bytes: VecDeque<u8>,
    size: usize,
    first: Cursor,
    end: Cursor,
}

/// Size of the length prefix.
const PREFIX: usize = 4;

impl Store {
    /// Creates a store of that size in bytes; memory is allocated as needed.
    pub fn new(size: usize) -> Self {
        Self { bytes: VecDeque::new(), size, first: Cursor::default(), end: Cursor::default() }
    }

    /// Appends a line, removing the oldest ones for it. Returns false if the line does not fit into an empty ring.
    pub fn append(&mut self, line: &[u8]) -> bool {
        let needed = PREFIX + line.len();
        let Ok(length) = u32::try_from(line.len()) else { return false };
        if needed > self.size {
            return false;
        }
        while self.size - self.bytes.len() < needed {
            self.drop_oldest();
        }
        self.bytes.extend(length.to_le_bytes());
        self.bytes.extend(line);
        self.end = Cursor { line: self.end.line + 1, byte: self.end.byte + needed as u64 };
        true
    }

    fn drop_oldest(&mut self) {
        let taken = (PREFIX + self.length_at(0)).min(self.bytes.len());
        self.bytes.drain(..taken);
        self.first = Cursor { line: self.first.line + 1, byte: self.first.byte + taken as u64 };
    }

    /// Returns the length prefix at an offset; 0 after the end.
    fn length_at(&self, at: usize) -> usize {
        let mut prefix = [0; PREFIX];
        for (place, byte) in prefix.iter_mut().zip(self.bytes.range(at.min(self.bytes.len())..)) {
            *place = *byte;
        }
        u32::from_le_bytes(prefix) as usize
    }

    /// Returns the cursor before the oldest line.
    pub fn start(&self) -> Cursor {
        self.first
    }

    /// Returns the cursor after the newest line.
    pub fn end(&self) -> Cursor {
        self.end
    }

    /// Whether there are lines after a cursor.
    pub fn has_lines_behind(&self, cursor: Cursor) -> bool {
        cursor.line < self.end.line
    }

    /// Passes the lines after a cursor to `take`, in order, until it returns false: each in two parts, with the cursor following
    /// it. Returns the cursor following the last one taken, and the number of lines that were overwritten before they could be
    /// read.
    pub fn read(&self, from: Cursor, mut take: impl FnMut(&[u8], &[u8], Cursor) -> bool) -> (Cursor, u64) {
        let lost = self.first.line.saturating_sub(from.line);
        let mut cursor = if lost > 0 { self.first } else { from };
        while self.has_lines_behind(cursor) {
            let at = (cursor.byte - self.first.byte) as usize;
            let length = self.length_at(at);
            let start = at + PREFIX;
            let (front, back) = self.bytes.as_slices();
            let (first, second) = if start >= front.len() {
                (&back[start - front.len()..start - front.len() + length], &b""[..])
            } else if start + length <= front.len() {
                (&front[start..start + length], &b""[..])
            } else {
                (&front[start..], &back[..start + length - front.len()])
            };
            let behind = cursor.behind(length);
            if !take(first, second, behind) {
                break;
            }
            cursor = behind;
        }
        (cursor, lost)
    }
}

impl Cursor {
    /// Returns the number of lines between an earlier cursor and this one.
    pub fn lines_behind(self, earlier: Self) -> u64 {
        self.line.saturating_sub(earlier.line)
    }

    /// Returns the cursor after a line of that length that starts here.
    const fn behind(self, length: usize) -> Self {
        Self { line: self.line + 1, byte: self.byte + (PREFIX + length) as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(store: &Store, from: Cursor, most: usize) -> (Vec<String>, Cursor, u64) {
        let mut lines = Vec::new();
        let (cursor, lost) = store.read(from, |front, back, _| {
            if lines.len() == most {
                return false;
            }
            lines.push(String::from_utf8([front, back].concat()).unwrap());
            true
        });
        (lines, cursor, lost)
    }

    #[test]
    fn lines_come_out_in_order_and_once() {
        let mut store = Store::new(100);
        for line in ["a", "", "bcd"] {
            assert!(store.append(line.as_bytes()));
        }
        let (lines, cursor, lost) = read(&store, Cursor::default(), 2);
        assert_eq!((lines, lost), (vec!["a".to_owned(), String::new()], 0));
        assert!(store.has_lines_behind(cursor));
        let (lines, cursor, _) = read(&store, cursor, 9);
        assert_eq!(lines, ["bcd"]);
        assert!(!store.has_lines_behind(cursor));
        assert_eq!(read(&store, cursor, 9).0.len(), 0);
    }

    #[test]
    fn the_oldest_lines_make_room_and_are_counted_as_lost() {
        let mut store = Store::new(30);
        for number in 10..20 {
            assert!(store.append(number.to_string().as_bytes()));
        }
        let (lines, cursor, lost) = read(&store, Cursor::default(), 99);
        assert_eq!((lines, lost), ((15..20).map(|number| number.to_string()).collect(), 5));
        assert!(store.append(b"20"));
        assert_eq!(read(&store, cursor, 99), (vec!["20".to_owned()], cursor.behind(2), 0));
    }

    /// Every split of a line over the end of the storage, at every size.
    #[test]
    fn lines_survive_the_turn_of_the_storage() {
        for size in 20..60 {
            let mut store = Store::new(size);
            let mut cursor = Cursor::default();
            for number in 0..200_u32 {
                let line = "x".repeat(number as usize % 13) + &number.to_string();
                assert!(store.append(line.as_bytes()));
                let (lines, next, lost) = read(&store, cursor, 9);
                assert_eq!((lines, lost), (vec![line], 0), "{size} {number}");
                cursor = next;
            }
            assert!(store.bytes.len() <= size);
        }
    }

    #[test]
    fn what_fits_into_no_ring_is_refused_and_harms_nothing() {
        let mut store = Store::new(10);
        assert!(store.append(b"123456"));
        assert!(!store.append(b"1234567"));
        assert_eq!(read(&store, Cursor::default(), 9).0, ["123456"]);
    }
}
