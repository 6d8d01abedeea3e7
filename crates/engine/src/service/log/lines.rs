//! Lines that are buffered until the end of the event-loop iteration. Must never send any.

use std::ops::Range;

/// Whole lines, each with its final newline, or encoded records.
#[derive(Debug, Default)]
pub struct Lines {
    bytes: Vec<u8>,
    /// End offset of each line.
    ends: Vec<usize>,
}

/// Capacity that is kept between iterations, in bytes.
const KEPT: usize = 128 * 1024;

impl Lines {
    /// Appends a line that `write` produces, truncated so that it has at most `length` bytes including its newline.
    pub fn push(&mut self, length: usize, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.bytes.truncate(start + length.saturating_sub(1));
        self.bytes.push(b'\n');
        self.ends.push(self.bytes.len());
    }

    /// Appends a record that `write` produces.
    pub fn push_record(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Returns the number of lines.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Returns the total size in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Iterates over the lines, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.count()).map(|line| self.get(line..line + 1))
    }

    /// Returns consecutive lines.
    pub fn get(&self, lines: Range<usize>) -> &[u8] {
        let end = |line: usize| if line == 0 { 0 } else { self.ends[line - 1] };
        &self.bytes[end(lines.start)..end(lines.end)]
    }

    /// Splits into groups of lines with at most `most` bytes each; a longer line is a group of its own.
    pub fn groups(&self, most: usize) -> impl Iterator<Item = Range<usize>> {
        let mut next = 0;
        std::iter::from_fn(move || {
            let first = next;
            if first == self.count() {
                return None;
            }
            next += 1;
            while next < self.count() && self.get(first..next + 1).len() <= most {
                next += 1;
            }
            Some(first..next)
        })
    }

    /// Removes the lines and keeps the buffer, up to a limit.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
        self.ends.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str], length: usize) -> Lines {
        let mut lines = Lines::default();
        for text in texts {
            lines.push(length, |out| out.extend_from_slice(text.as_bytes()));
        }
        lines
    }

    /// `len` counts the newline, which every line has.
    #[test]
    fn long_lines_are_cut_before_their_newline() {
        for (text, wanted) in
            [("1234567", "1234567\n"), ("12345678", "1234567\n"), ("123456789", "1234567\n"), ("", "\n")]
        {
            assert_eq!(lines(&[text], 8).get(0..1), wanted.as_bytes());
        }
    }

    #[test]
    fn cutting_one_line_leaves_the_others_whole() {
        let lines = lines(&["a", "too long for this", "b"], 4);
        assert_eq!(lines.iter().collect::<Vec<_>>(), [&b"a\n"[..], b"too\n", b"b\n"]);
        assert_eq!((lines.count(), lines.size()), (3, 8));
    }

    #[test]
    fn groups_hold_as_many_lines_as_fit() {
        let lines = lines(&["1234", "123", "12345678901", "1", "1", ""], 100);
        assert_eq!(lines.groups(9).collect::<Vec<_>>(), [0..2, 2..3, 3..6]);
        assert_eq!(lines.groups(1).count(), 6);
        assert_eq!(Lines::default().groups(9).count(), 0);
    }
}
