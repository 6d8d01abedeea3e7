//! Encoding of blocks: stored, with fixed codes or with dynamic codes, whichever is the shortest (RFC 1951, section
//! 3.2), the block header, and the sequences. Must never know the source of a block.

use crate::bits::{Bits, Staging};
use crate::huffman::{codewords, lengths};
use crate::matches::{Histogram, Sequence};
use crate::symbols::{DISTANCES, END, LITERALS, SHORTEST, distance_extra, distance_slot, length_base, length_extra};

/// Maximum length in bits of a codeword of a literal or a length: four of them fit between two writes.
const LONGEST_LITERAL: usize = 14;
const LONGEST_DISTANCE: usize = 15;
const LONGEST_LENGTH_CODE: usize = 7;

/// The order of the code length code lengths.
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// A codeword and the bits after it: the bits in the upper part, their number in the lowest five bits.
#[derive(Clone, Copy, Default)]
struct Code(u32);

impl Code {
    fn new(bits: u32, count: u32) -> Self {
        Self(bits << 5 | count)
    }

    #[inline(always)]
    fn put(self, bits: &mut Bits) {
        bits.put(u64::from(self.0 >> 5), self.0 & 31);
    }
}

/// The block type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Stored,
    Fixed,
    Dynamic,
}

/// The codes of a block.
pub(crate) struct Codes {
    literals: [Code; 256],
    end: Code,
    /// By match length minus 3, including the extra bits.
    lengths: [Code; 256],
    /// By distance symbol, with the number of extra bits.
    distances: [(Code, u32); 32],
}

impl Codes {
    pub(crate) fn new() -> Self {
        let none = Code::default();
        Self { literals: [none; 256], end: none, lengths: [none; 256], distances: [(none, 0); 32] }
    }

    /// Builds the codes from the lengths of the codewords.
    fn set<const N: usize>(&mut self, literals: &[u8; N], distances: &[u8; DISTANCES]) {
        let words = codewords(literals);
        let code = |symbol: usize| Code::new(u32::from(words[symbol]), u32::from(literals[symbol]));
        for (symbol, literal) in self.literals.iter_mut().enumerate() {
            *literal = code(symbol);
        }
        self.end = code(END);
        for (slot, (first, extra)) in (0..29).map(|slot| (slot, (length_base(slot), length_extra(slot)))) {
            let (word, count) = (u32::from(words[END + 1 + slot]), u32::from(literals[END + 1 + slot]));
            let space = self.lengths[first as usize..].iter_mut().take(1 << extra);
            for (more, length) in (0..).zip(space) {
                *length = Code::new(word | more << count, count + extra);
            }
        }
        for (slot, (word, count)) in codewords(distances).into_iter().zip(distances).enumerate() {
            self.distances[slot] = (Code::new(u32::from(word), u32::from(*count)), distance_extra(slot));
        }
    }
}

/// A symbol of the code length code, and its extra bits.
#[derive(Clone, Copy, Default)]
struct Step {
    symbol: u8,
    extra: u8,
}

/// Returns the number of extra bits of a symbol of the code length code.
fn step_extra(symbol: u8) -> u32 {
    match symbol {
        16 => 2,
        17 => 3,
        18 => 7,
        _ => 0,
    }
}

/// The header of a block with dynamic codes.
struct Header {
    literals: usize,
    distances: usize,
    steps: [Step; LITERALS + DISTANCES],
    count: usize,
    lengths: [u8; 19],
    ordered: usize,
    bits: u64,
}

impl Header {
    fn new(literal_lengths: &[u8; LITERALS], distance_lengths: &[u8; DISTANCES]) -> Self {
        let used = |lengths: &[u8], least: usize| {
            let last = lengths.iter().rposition(|length| *length > 0).map_or(0, |last| last + 1);
            last.max(least)
        };
        let (literals, distances) = (used(literal_lengths, 257), used(distance_lengths, 1));
        let mut all = [0; LITERALS + DISTANCES];
        all[..literals].copy_from_slice(&literal_lengths[..literals]);
        all[literals..literals + distances].copy_from_slice(&distance_lengths[..distances]);
        let mut header = Self {
            literals,
            distances,
            steps: [Step::default(); LITERALS + DISTANCES],
            count: 0,
            lengths: [0; 19],
            ordered: 0,
            bits: 0,
        };
        let frequencies = header.add_steps(&all[..literals + distances]);
        header.lengths = lengths(&frequencies, LONGEST_LENGTH_CODE);
        let lengths = &header.lengths;
        header.ordered = ORDER.iter().rposition(|symbol| lengths[*symbol] > 0).map_or(4, |last| (last + 1).max(4));
        let of = |symbol: usize| u64::from(lengths[symbol]) + u64::from(step_extra(symbol as u8));
        let steps: u64 = (0..19).map(|symbol| u64::from(frequencies[symbol]) * of(symbol)).sum();
        header.bits = 14 + 3 * header.ordered as u64 + steps;
        header
    }

    /// Encodes the lengths of codewords as symbols; returns their frequencies.
    fn add_steps(&mut self, mut all: &[u8]) -> [u32; 19] {
        let mut frequencies = [0; 19];
        while let Some(first) = all.first().copied() {
            let run = all.iter().take_while(|length| **length == first).count();
            let (symbol, extra, covered) = match (first, run) {
                (0, 11..) => (18, run.min(138) - 11, run.min(138)),
                (0, 3..) => (17, run - 3, run),
                // The first length is written itself, the others as repetitions.
                (_, 4..) if first > 0 => {
                    self.push(first, 0, &mut frequencies);
                    (16, (run - 1).min(6) - 3, (run - 1).min(6) + 1)
                }
                _ => (first, 0, 1),
            };
            self.push(symbol, extra as u8, &mut frequencies);
            all = &all[covered..];
            // The following repetitions need not write the length itself.
            let more = |all: &[u8]| all.iter().take_while(|length| symbol == 16 && **length == first).count().min(6);
            while let run @ 3.. = more(all) {
                self.push(16, run as u8 - 3, &mut frequencies);
                all = &all[run..];
            }
        }
        frequencies
    }

    fn push(&mut self, symbol: u8, extra: u8, frequencies: &mut [u32; 19]) {
        self.steps[self.count] = Step { symbol, extra };
        self.count += 1;
        frequencies[usize::from(symbol)] += 1;
    }

    fn write(&self, bits: &mut Bits, to: &mut Staging) {
        let [literals, distances, ordered] = [self.literals - 257, self.distances - 1, self.ordered - 4];
        to.put(bits, (literals | distances << 5 | ordered << 10) as u64, 14);
        for symbol in &ORDER[..self.ordered] {
            to.put(bits, u64::from(self.lengths[*symbol]), 3);
        }
        let words = codewords(&self.lengths);
        for step in &self.steps[..self.count] {
            let (word, count) = (words[usize::from(step.symbol)], u32::from(self.lengths[usize::from(step.symbol)]));
            let value = u64::from(word) | u64::from(step.extra) << count;
            to.put(bits, value, count + step_extra(step.symbol));
        }
    }
}

const fn fixed_literals() -> [u8; 288] {
    let mut lengths = [8; 288];
    let mut symbol = 144;
    while symbol < 280 {
        lengths[symbol] = if symbol < 256 { 9 } else { 7 };
        symbol += 1;
    }
    lengths
}

const FIXED_LITERALS: [u8; 288] = fixed_literals();
const FIXED_DISTANCES: [u8; DISTANCES] = [5; DISTANCES];

/// Returns the number of bits that a code needs for the symbols.
fn cost(frequencies: &[u32], lengths: &[u8]) -> u64 {
    let bits = frequencies.iter().zip(lengths).map(|(frequency, length)| frequency * u32::from(*length));
    u64::from(bits.sum::<u32>())
}

/// Selects the type of a block of `bytes` bytes, appends its header to the output, and sets its codes.
pub(crate) fn begin(
    histogram: &Histogram,
    bytes: usize,
    last: bool,
    codes: &mut Codes,
    bits: &mut Bits,
    to: &mut Staging,
) -> Kind {
    let stored = 32 + 8 * bytes as u64 + 7;
    let mut extra = 0;
    for slot in 0..29 {
        extra += u64::from(histogram.literals[END + 1 + slot] * length_extra(slot));
    }
    for (slot, frequency) in histogram.distances.iter().enumerate() {
        extra += u64::from(frequency * distance_extra(slot));
    }
    let fixed = extra + cost(&histogram.literals, &FIXED_LITERALS) + cost(&histogram.distances, &FIXED_DISTANCES);
    let literals = lengths(&histogram.literals, LONGEST_LITERAL);
    let distances = lengths(&histogram.distances, LONGEST_DISTANCE);
    let header = Header::new(&literals, &distances);
    let dynamic = extra + header.bits + cost(&histogram.literals, &literals) + cost(&histogram.distances, &distances);
    let last = u64::from(last);
    if stored <= fixed && stored <= dynamic {
        Kind::Stored
    } else if fixed <= dynamic {
        to.put(bits, last | 1 << 1, 3);
        codes.set(&FIXED_LITERALS, &FIXED_DISTANCES);
        Kind::Fixed
    } else {
        to.put(bits, last | 2 << 1, 3);
        header.write(bits, to);
        codes.set(&literals, &distances);
        Kind::Dynamic
    }
}

/// Begins a stored block.
pub(crate) fn begin_stored(bytes: usize, last: bool, bits: &mut Bits, to: &mut Staging) {
    bits.put(u64::from(last), 3);
    bits.align();
    let length = bytes as u64 & 0xFFFF;
    to.put(bits, length | (!length & 0xFFFF) << 16, 32);
}

/// Maximum number of bytes of a sequence of that number of literals, with the space for a write after it.
#[inline(always)]
const fn space(literals: usize) -> usize {
    literals * 2 + 24
}

impl Codes {
    /// Writes sequences while there is space for them; returns their number. Their literals begin at the index `byte`
    /// of `bytes`; it is advanced, and so is the index `made` of the output.
    pub(crate) fn write_sequences(
        &self,
        sequences: &[Sequence],
        bytes: &[u8],
        byte: &mut usize,
        bits: &mut Bits,
        output: &mut [u8],
        made: &mut usize,
    ) -> usize {
        // Kept in registers.
        let (mut now, mut from, mut place) = (*bits, *byte, *made);
        let all = output.len();
        let mut written = sequences.len();
        for (number, sequence) in sequences.iter().enumerate() {
            if place + space(sequence.literals()) > all {
                written = number;
                break;
            }
            place = self.write_sequence(*sequence, bytes, &mut from, &mut now, output, place);
        }
        (*bits, *byte, *made) = (now, from, place);
        written
    }

    /// Writes a sequence; returns the index after it.
    #[inline(always)]
    pub(crate) fn write_sequence(
        &self,
        sequence: Sequence,
        bytes: &[u8],
        byte: &mut usize,
        bits: &mut Bits,
        output: &mut [u8],
        place: usize,
    ) -> usize {
        let literals = bytes.get(*byte..*byte + sequence.literals()).unwrap_or_default();
        let place = self.write_literals(literals, bits, output, place);
        *byte += literals.len();
        if !sequence.has_match() {
            return place;
        }
        let distance = sequence.distance();
        *byte += sequence.length() + SHORTEST;
        self.lengths[sequence.length()].put(bits);
        let (code, extra) = self.distances[distance_slot(distance) & 31];
        code.put(bits);
        bits.put(distance as u64 & ((1 << extra) - 1), extra);
        bits.write(output, place)
    }

    /// Writes literals; returns the index after them.
    #[inline(always)]
    pub(crate) fn write_literals(
        &self,
        mut literals: &[u8],
        bits: &mut Bits,
        output: &mut [u8],
        mut place: usize,
    ) -> usize {
        while let Some((four, rest)) = literals.split_first_chunk::<4>() {
            for literal in four {
                self.literals[usize::from(*literal)].put(bits);
            }
            place = bits.write(output, place);
            literals = rest;
        }
        for literal in literals {
            self.literals[usize::from(*literal)].put(bits);
        }
        bits.write(output, place)
    }

    /// Writes the end-of-block symbol.
    pub(crate) fn write_end(&self, bits: &mut Bits, to: &mut Staging) {
        self.end.put(bits);
        to.write(|output, place| bits.write(output, place));
    }
}
