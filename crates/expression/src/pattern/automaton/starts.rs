//! The positions of a text at which matches begin. Must never search the text itself.

/// Positions where matches of a text begin.
#[derive(Debug, Default)]
pub struct Starts {
    /// A bit for each position, including the end.
    bits: Vec<u64>,
    /// The first pattern that matches at each position, if there are several patterns.
    pub(super) first: Vec<u8>,
}

impl Starts {
    /// Clears it for a text of that many bytes.
    pub fn clear(&mut self, length: usize) {
        self.first.clear();
        self.bits.clear();
        self.bits.resize(length / 64 + 1, 0);
    }

    /// Adds a position.
    pub fn set(&mut self, at: usize) {
        if let Some(word) = self.bits.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    /// Returns the first pattern that matches at a position.
    pub fn pattern(&self, at: usize) -> usize {
        self.first.get(at).map_or(0, |first| usize::from(*first))
    }

    /// Returns the first position from that one on.
    pub fn next(&self, from: usize) -> Option<usize> {
        let first = self.bits.get(from / 64)? & (u64::MAX << (from % 64));
        let rest = self.bits[from / 64 + 1..].iter().copied();
        let mut words = (from / 64..).zip(std::iter::once(first).chain(rest));
        words.find(|(_, word)| *word != 0).map(|(at, word)| at * 64 + word.trailing_zeros() as usize)
    }
}
