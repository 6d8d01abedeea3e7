//! A worker's random numbers: xoshiro256++, seeded from the kernel or from a simulation's seed.
//!
//! It must never be used for secrets.

use std::cell::Cell;

/// A small, fast generator (Blackman and Vigna's xoshiro256++).
pub(crate) struct Random {
    state: Cell<[u64; 4]>,
}

/// One step of splitmix64, which expands a seed into a state.
fn splitmix(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *seed;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Random {
    pub(crate) fn seeded(seed: u64) -> Random {
        let mut seed = seed;
        Random { state: Cell::new(std::array::from_fn(|_| splitmix(&mut seed))) }
    }

    #[inline]
    pub(crate) fn next(&self) -> u64 {
        let mut s = self.state.get();
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        self.state.set(s);
        result
    }

    /// Returns a number below `bound`; 0 if `bound` is 0. Biased by less than 2^-32 for bounds below 2^32.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_a_sequence_and_bounds_hold() {
        let (first, again, other) = (Random::seeded(7), Random::seeded(7), Random::seeded(8));
        let sequence: Vec<u64> = (0..8).map(|_| first.next()).collect();
        assert_eq!(sequence, (0..8).map(|_| again.next()).collect::<Vec<_>>());
        assert_ne!(sequence, (0..8).map(|_| other.next()).collect::<Vec<_>>());
        let mut seen = [false; 5];
        (0..200).for_each(|_| seen[first.below(5) as usize] = true);
        assert_eq!(seen, [true; 5]);
        assert_eq!(first.below(0), 0);
    }
}
