//! Approximate request frequencies of keys, as in TinyLFU (Einziger, Friedman, Manes: "TinyLFU: A Highly Efficient
//! Cache Admission Policy", 2017). A key has four counters of four bits in one cache line of the processor, and the
//! smallest of them is its frequency. Threads count without a lock: concurrent increments may be lost. Must never store
//! a key, and never write a saturated counter.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Words of a line, each of 16 counters.
const LINE: usize = 8;
/// Number of counters of a key.
const ROWS: usize = 4;
/// Maximum value of a counter.
const FULL: u64 = 15;
/// Number of counted requests after which a word is halved.
const AGED_EVERY: u64 = 16;
/// The bits that remain in a word when its counters are halved.
const HALVES: u64 = 0x7777_7777_7777_7777;
/// Maximum number of words: 8 MB.
const MOST_WORDS: usize = 1 << 20;

/// The sketch of a cache.
#[derive(Debug)]
pub(super) struct Sketch {
    /// The lines; their number is a power of two.
    lines: Box<[[AtomicU64; LINE]]>,
    /// Number of counted requests. For every 16th of them one word is halved, in rotation: old keys decay, and no
    /// request pays for all of them.
    counted: AtomicU64,
}

impl Sketch {
    /// Creates the sketch for a cache of that many blocks.
    pub(super) fn new(blocks: u32) -> Self {
        let words = (blocks as usize / 4).next_power_of_two().clamp(LINE * 8, MOST_WORDS);
        let lines = (0..words / LINE).map(|_| std::array::from_fn(|_| AtomicU64::new(0))).collect();
        Self { lines, counted: AtomicU64::new(0) }
    }

    /// Returns the words of a key's counters, and the bit offsets of the counters.
    fn places(&self, hash: u64) -> Option<[(&AtomicU64, u32); ROWS]> {
        // The low bits of the hash select the shard.
        let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let line = self.lines.get((mixed >> 32) as usize & (self.lines.len() - 1))?;
        Some(std::array::from_fn(|row| {
            let own = (mixed >> (8 * row)) as usize & 0xff;
            (&line[row * 2 + (own & 1)], (own as u32 >> 1 & 15) * 4)
        }))
    }

    /// Counts a request for a key with that hash.
    pub(super) fn count(&self, hash: u64) {
        let mut grows = false;
        for (word, shift) in self.places(hash).into_iter().flatten() {
            let seen = word.load(Relaxed);
            if seen >> shift & FULL < FULL {
                grows |= word.compare_exchange(seen, seen + (1 << shift), Relaxed, Relaxed).is_ok();
            }
        }
        if grows {
            let counted = self.counted.fetch_add(1, Relaxed);
            if counted.is_multiple_of(AGED_EVERY) {
                let turn = (counted / AGED_EVERY) as usize;
                let aged = self.lines.get((turn / LINE) & (self.lines.len() - 1)).map(|line| &line[turn % LINE]);
                aged.into_iter().for_each(|word| word.store(word.load(Relaxed) >> 1 & HALVES, Relaxed));
            }
        }
    }

    /// The frequency of a key with that hash, up to 15.
    pub(super) fn frequency(&self, hash: u64) -> u8 {
        let places = self.places(hash).into_iter().flatten();
        places.map(|(word, shift)| (word.load(Relaxed) >> shift & FULL) as u8).min().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u64) -> u64 {
        number.wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(29).wrapping_mul(0xd6e8_feb8_6659_fd93)
    }

    #[test]
    fn requests_are_counted_up_to_15_and_told_apart() {
        let sketch = Sketch::new(65_536);
        for number in 0..1_000 {
            for _ in 0..number % 20 {
                sketch.count(hash(number));
            }
        }
        let wrong =
            (0..1_000).filter(|number| u64::from(sketch.frequency(hash(*number))) != (number % 20).min(15)).count();
        assert!(wrong < 50, "{wrong} of 1000 frequencies");
        assert_eq!(sketch.frequency(hash(5_000_000)), 0);
        // A saturated counter is not written: threads that request the same key write nothing.
        let before = sketch.counted.load(Relaxed);
        let full = (0..1_000).find(|number| sketch.frequency(hash(*number)) == 15).expect("one of the thousand");
        (0..100).for_each(|_| sketch.count(hash(full)));
        assert_eq!(sketch.counted.load(Relaxed), before);
    }

    #[test]
    fn what_is_not_asked_for_any_more_is_forgotten() {
        let sketch = Sketch::new(1_024);
        (0..15).for_each(|_| sketch.count(hash(1)));
        assert_eq!(sketch.frequency(hash(1)), 15);
        let words = (sketch.lines.len() * LINE) as u64;
        (0..words * AGED_EVERY * 6).for_each(|number| sketch.count(hash(number + 10)));
        assert!(sketch.frequency(hash(1)) < 8, "{}", sketch.frequency(hash(1)));
        let whole: u64 = sketch.lines.iter().flatten().map(|word| u64::from(word.load(Relaxed).count_ones())).sum();
        assert!(whole > 0);
    }
}
