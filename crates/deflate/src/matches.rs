//! The sliding window and its matches: recent input, a hash table of positions in it, and the parsing of a block into
//! literals and matches. Owns all memory that depends on the input. Must never know how a block is written.

use crate::symbols::{DISTANCES, END, LENGTH_SLOT, LITERALS, LONGEST, SHORTEST, distance_slot};

/// Maximum distance of a match in the largest window: one less than the format permits, so that position 0 is never
/// used.
const HISTORY: usize = 32 * 1024;
/// Maximum size of a block in bytes.
pub(crate) const BLOCK: usize = 24 * 1024;
/// Number of positions in a `u16`.
const PLACES: usize = 64 * 1024;
/// Number of bytes after the last position, so that a comparison of a longest match stays in bounds.
const MARGIN: usize = LONGEST + 14;
const HASH_BITS: u32 = 12;
/// The minimum length of matches. In most texts, one of four bytes takes as many bits as its bytes, and more time.
const LEAST: usize = 5;
/// The minimum length in the first bytes of a message, and the number of those: with little history, short matches are
/// worth more.
const LEAST_AT_FIRST: usize = 4;
const FIRST: usize = 2048;
/// Number of literals of a sequence without a match.
const RUN: usize = 511;
/// Maximum number of sequences of a block: each covers at least a shortest match, or a run.
const SEQUENCES: usize = BLOCK / LEAST + FIRST / LEAST_AT_FIRST + BLOCK / RUN + 2;

/// Literals followed by a match: 9 bits for the number of literals, 8 for the match's length minus 3, 15 for its
/// distance minus 1. With [`RUN`] literals there is no match.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sequence(u32);

impl Sequence {
    #[inline(always)]
    fn new(literals: usize, length: usize, distance: usize) -> Self {
        Self((literals | (length << 9) | (distance << 17)) as u32)
    }

    #[inline(always)]
    pub(crate) fn literals(self) -> usize {
        self.0 as usize & RUN
    }

    #[inline(always)]
    pub(crate) fn has_match(self) -> bool {
        self.literals() != RUN
    }

    /// Returns the length of the match minus 3.
    #[inline(always)]
    pub(crate) fn length(self) -> usize {
        (self.0 >> 9) as usize & 255
    }

    /// Returns the distance of the match minus 1.
    #[inline(always)]
    pub(crate) fn distance(self) -> usize {
        (self.0 >> 17) as usize
    }
}

/// The symbol frequencies of a block.
pub(crate) struct Histogram {
    pub(crate) literals: [u32; LITERALS],
    pub(crate) distances: [u32; DISTANCES],
}

type Bytes = [u8; PLACES + MARGIN];
/// The last two positions of each hash of the first bytes of a match.
struct Table([[u16; 2]; 1 << HASH_BITS]);

/// Size of a window in bytes.
pub(crate) const MEMORY: usize = size_of::<Bytes>() + size_of::<Table>() + size_of::<[Sequence; SEQUENCES]>();

pub(crate) struct Window {
    bytes: Box<Bytes>,
    /// Positions before `start` belong to another message; 0 means none.
    table: Box<Table>,
    sequences: Box<[Sequence; SEQUENCES]>,
    count: usize,
    pub(crate) histogram: Histogram,
    /// The maximum distance minus 1.
    reach: usize,
    /// The start of the message.
    start: usize,
    /// The start of the block, and the end of its input so far.
    block: usize,
    end: usize,
    /// Positions before this one are in the hash table.
    hashed: usize,
}

#[inline(always)]
fn eight(bytes: &Bytes, place: usize) -> u64 {
    let part: Option<&[u8; 8]> = bytes.get(place..).and_then(<[u8]>::first_chunk);
    part.map_or(0, |part| u64::from_le_bytes(*part))
}

#[inline(always)]
fn hash<const LEAST: usize>(eight: u64) -> usize {
    ((eight << (64 - 8 * LEAST)).wrapping_mul(0x9E37_79B1_85EB_CA87) >> (64 - HASH_BITS)) as usize
}

/// Returns the number of equal bytes from two positions on, of which the first eight are equal, at most [`LONGEST`].
fn extend(bytes: &Bytes, one: usize, other: usize) -> usize {
    let mut length = 8;
    while length < LONGEST {
        let difference = eight(bytes, one + length) ^ eight(bytes, other + length);
        if difference != 0 {
            return (length + difference.trailing_zeros() as usize / 8).min(LONGEST);
        }
        length += 8;
    }
    LONGEST
}

impl Table {
    /// Inserts a position into the table.
    #[inline(always)]
    fn put<const LEAST: usize>(&mut self, bytes: &Bytes, place: usize) {
        let bucket = &mut self.0[hash::<LEAST>(eight(bytes, place & (PLACES - 1)))];
        *bucket = [place as u16, bucket[0]];
    }

    /// Returns the length and position of the longest match among the table's entries from `low` on, and inserts the
    /// position. The selection is branch-free: branches would be unpredictable.
    #[inline(always)]
    fn find<const LEAST: usize>(&mut self, bytes: &Bytes, place: usize, low: usize) -> Option<(usize, usize)> {
        let here = eight(bytes, place & (PLACES - 1));
        let bucket = &mut self.0[hash::<LEAST>(here)];
        let [last, other] = *bucket;
        *bucket = [place as u16, last];
        // Ones for the equal bits before the first different one.
        let same = |from: u16| {
            let from = usize::from(from);
            let difference = (eight(bytes, from) ^ here) | u64::from(from < low);
            difference.wrapping_sub(1) & !difference
        };
        let (one, two) = (same(last), same(other));
        let (same, from) = if two > one { (two, other) } else { (one, last) };
        let from = usize::from(from);
        if same < u64::MAX >> (64 - 8 * LEAST) {
            return None;
        }
        if same < u64::MAX {
            return Some((same.trailing_ones() as usize / 8, from));
        }
        let length = extend(bytes, from, place);
        if two == same && usize::from(other) != from {
            let longer = extend(bytes, usize::from(other), place);
            if longer > length {
                return Some((longer, usize::from(other)));
            }
        }
        Some((length, from))
    }
}

impl Window {
    /// Creates a window with distances of at most `1 << bits` bytes.
    pub(crate) fn new(bits: u8) -> Self {
        Self {
            bytes: Box::new([0; PLACES + MARGIN]),
            table: Box::new(Table([[0; 2]; 1 << HASH_BITS])),
            sequences: Box::new([Sequence::default(); SEQUENCES]),
            count: 0,
            histogram: Histogram { literals: [0; LITERALS], distances: [0; DISTANCES] },
            reach: (1 << bits).min(HISTORY - 1),
            start: 1,
            block: 1,
            end: 1,
            hashed: 1,
        }
    }

    /// Begins another message.
    pub(crate) fn restart(&mut self) {
        (self.start, self.block, self.hashed) = (self.end, self.end, self.end);
    }

    /// Returns the bytes of the current block.
    pub(crate) fn block(&self) -> &[u8] {
        &self.bytes[self.block..self.end]
    }

    /// Returns the bytes of the block, and some after it.
    pub(crate) fn block_onward(&self) -> &[u8] {
        &self.bytes[self.block..]
    }

    /// Returns the sequences of the parsed block; the literals after the last one are in no sequence.
    pub(crate) fn sequences(&self) -> &[Sequence] {
        &self.sequences[..self.count]
    }

    pub(crate) fn is_full(&self) -> bool {
        self.end - self.block == BLOCK
    }

    /// Adds input to the block, up to its maximum size; returns the number of bytes.
    pub(crate) fn take(&mut self, input: &[u8]) -> usize {
        if self.end == self.block && self.block > PLACES - BLOCK {
            self.slide();
        }
        let length = input.len().min(self.block + BLOCK - self.end);
        self.bytes[self.end..self.end + length].copy_from_slice(&input[..length]);
        self.end += length;
        length
    }

    /// Ends the block.
    pub(crate) fn finish_block(&mut self) {
        self.block = self.end;
    }

    /// Makes space for a block: discards the history that no match may reach.
    fn slide(&mut self) {
        let by = if self.start == self.block { self.block - 1 } else { self.block - HISTORY };
        self.bytes.copy_within(by..self.end, 0);
        for places in &mut self.table.0 {
            *places = places.map(|place| place.saturating_sub(by as u16));
        }
        self.start = self.start.saturating_sub(by).max(1);
        self.hashed = self.hashed.saturating_sub(by).max(1);
        self.block -= by;
        self.end -= by;
    }

    /// Parses the block.
    pub(crate) fn parse(&mut self) {
        if self.end - self.start <= FIRST {
            return self.parse_with::<LEAST_AT_FIRST, true>();
        }
        if self.block - self.start <= FIRST {
            // They were inserted with the other hash.
            self.hashed = self.start;
        }
        self.parse_with::<LEAST, false>();
    }

    /// Parses the block into matches of at least `LEAST` bytes. With `DENSE`, all positions in a match are inserted
    /// into the table, otherwise some.
    fn parse_with<const LEAST: usize, const DENSE: bool>(&mut self) {
        self.histogram.literals.fill(0);
        self.histogram.distances.fill(0);
        self.histogram.literals[END] = 1;
        self.count = 0;
        let (block, end) = (self.block, self.end);
        // Comparisons read beyond the end. The bytes there decide between two matches, so they must not be those of an
        // earlier message.
        self.bytes[end..end + MARGIN].fill(0);
        // At positions before this one, at least `LEAST` bytes remain.
        let limit = end.saturating_sub(LEAST - 1);
        while self.hashed < block.min(limit) {
            self.table.put::<LEAST>(&self.bytes, self.hashed);
            self.hashed += 1;
        }
        let (mut place, mut first) = (block, block);
        while place < limit {
            let Some((length, from)) = self.find::<LEAST>(place) else {
                self.histogram.literals[usize::from(self.bytes[place & (PLACES - 1)])] += 1;
                place += 1;
                continue;
            };
            let (mut length, mut from, mut hashed) = (length.min(end - place), from, place);
            while DENSE && hashed + 1 < limit {
                // Lazy matching: a longer match at the next position is preferred.
                hashed += 1;
                let next = self.find::<LEAST>(hashed).map(|(longer, other)| (longer.min(end - hashed), other));
                let Some((longer, other)) = next.filter(|(longer, _)| *longer > length) else { break };
                self.histogram.literals[usize::from(self.bytes[place])] += 1;
                (length, from, place) = (longer, other, hashed);
            }
            self.add(place - first, length, place - from);
            let after = place + length;
            if DENSE {
                for inside in hashed + 1..after.min(limit) {
                    self.table.put::<LEAST>(&self.bytes, inside);
                }
            } else if after < limit {
                self.table.put::<LEAST>(&self.bytes, place + 1);
                self.table.put::<LEAST>(&self.bytes, after - 2);
                self.table.put::<LEAST>(&self.bytes, after - 1);
            }
            (place, first) = (after, after);
        }
        self.hashed = self.hashed.max(place.min(limit));
        for byte in &self.bytes[place..end] {
            self.histogram.literals[usize::from(*byte)] += 1;
        }
        self.add_runs(end - first);
    }

    /// Like [`Table::find`], limited to the positions that a match may reach.
    #[inline(always)]
    fn find<const LEAST: usize>(&mut self, place: usize) -> Option<(usize, usize)> {
        let low = self.start.max(place.saturating_sub(self.reach));
        self.table.find::<LEAST>(&self.bytes, place, low)
    }

    /// Adds literals, which are already counted, followed by a match.
    #[inline(always)]
    fn add(&mut self, mut literals: usize, length: usize, distance: usize) {
        if literals >= RUN {
            literals = self.add_runs(literals);
        }
        let (length, distance) = (length - SHORTEST, distance - 1);
        self.histogram.literals[END + 1 + usize::from(LENGTH_SLOT[length & 255])] += 1;
        self.histogram.distances[distance_slot(distance)] += 1;
        self.sequences[self.count] = Sequence::new(literals, length, distance);
        self.count += 1;
    }

    /// Adds runs without a match; returns the number of remaining literals.
    #[cold]
    fn add_runs(&mut self, mut literals: usize) -> usize {
        while literals >= RUN {
            self.sequences[self.count] = Sequence::new(RUN, 0, 0);
            self.count += 1;
            literals -= RUN;
        }
        literals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns pseudo-random bytes of that number of different values.
    fn noise(length: usize, values: u64, mut seed: u64) -> Vec<u8> {
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((seed >> 33) % values) as u8
        };
        (0..length).map(|_| next()).collect()
    }

    /// Checks the sequences of a window against its bytes, and returns the maximum distance.
    fn farthest(window: &Window, text: &[u8], before: usize) -> usize {
        let (mut place, mut farthest) = (before, 0);
        for sequence in window.sequences() {
            place += sequence.literals();
            if sequence.has_match() {
                let (length, distance) = (sequence.length() + SHORTEST, sequence.distance() + 1);
                assert!(distance <= place, "before the message");
                assert!((place..place + length).all(|place| text[place] == text[place - distance]));
                farthest = farthest.max(distance);
                place += length;
            }
        }
        assert!(place <= text.len() && text.len() - place < RUN);
        farthest
    }

    #[test]
    fn matches_reach_as_far_back_as_the_window_and_no_further() {
        for bits in 9..=15_u32 {
            let most = 1 << bits;
            for values in [2, 3, 5, 20, 256] {
                let mut window = Window::new(bits as u8);
                let (mut text, mut reached) = (Vec::new(), 0);
                // Repetitions at distances around the maximum, after pieces of various lengths.
                for (piece, distance) in [24_000, 300, 20_000, 800, 24_576, 24_000, 9].into_iter().zip(most - 4..) {
                    let before = text.len();
                    let mut more = noise(piece, values, before as u64);
                    if before >= distance {
                        let from = before - distance;
                        let length = (piece / 2).min(distance);
                        more[..length].copy_from_slice(&text[from..from + length]);
                    }
                    text.extend_from_slice(&more);
                    assert_eq!(window.take(&more), piece);
                    window.parse();
                    reached = reached.max(farthest(&window, &text, before));
                    window.finish_block();
                }
                assert!(reached <= most, "{bits} {values}: {reached}");
                assert!(values < 256 || reached > most / 2, "{bits} {values}: {reached}");
            }
        }
    }
}
