//! The keyed hash of pattern indexes. Entries added by rules come from requests: without the key a client cannot choose
//! colliding texts or addresses. Must never generate a key itself.

use std::hash::{BuildHasher, Hasher};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The key of the hashes. Constant for the patterns of a configuration, random for entries added by requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Key(u64);

impl Key {
    /// Creates a key from a random number.
    pub const fn new(random: u64) -> Self {
        Self(random)
    }

    /// Hashes bytes: XXH3 with the key as its seed.
    #[inline]
    pub fn bytes(self, bytes: &[u8]) -> u64 {
        xxh3_64_with_seed(bytes, self.0)
    }
}

impl BuildHasher for Key {
    type Hasher = Folding;

    #[inline]
    fn build_hasher(&self) -> Folding {
        Folding { state: self.0 ^ 0x9e37_79b9_7f4a_7c15, second: self.0.rotate_left(29) ^ 0xd6e8_feb8_6659_fd93 }
    }
}

/// Hashes numbers: the two halves of a product, in which both factors depend on the key.
#[derive(Debug)]
pub struct Folding {
    state: u64,
    second: u64,
}

impl Folding {
    #[inline]
    fn fold(&mut self, low: u64, high: u64) {
        let product = u128::from(self.state ^ low) * u128::from(self.second ^ high);
        self.state = (product as u64 ^ (product >> 64) as u64).rotate_left(23);
    }
}

impl Hasher for Folding {
    fn write(&mut self, bytes: &[u8]) {
        self.state = xxh3_64_with_seed(bytes, self.state);
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.fold(number.into(), 0);
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.fold(number.into(), 0);
    }

    #[inline]
    fn write_u128(&mut self, number: u128) {
        self.fold(number as u64, (number >> 64) as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_depend_on_the_key() {
        let (one, other) = (Key::new(1), Key::new(2));
        assert_ne!(one.bytes(b"some text"), other.bytes(b"some text"));
        assert_eq!(one.bytes(b"some text"), Key::new(1).bytes(b"some text"));
        assert_ne!(one.hash_one((7_u32, 8_u8)), other.hash_one((7_u32, 8_u8)));
        assert_ne!(one.hash_one((7_u128 << 64, 8_u8)), other.hash_one((7_u128 << 64, 8_u8)));
    }

    #[test]
    fn neighbours_do_not_fall_together() {
        let key = Key::new(0x0123_4567_89ab_cdef);
        let mut seen: Vec<u64> = (0..4096_u32).map(|at| key.hash_one((at << 8, 24_u8))).collect();
        seen.extend((0..4096_u128).map(|at| key.hash_one((at << 64, 64_u8))));
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 8192);
        let slots: std::collections::HashSet<u64> = seen.iter().map(|hash| hash & 0xffff).collect();
        assert!(slots.len() > 7000, "{}", slots.len());
    }
}
