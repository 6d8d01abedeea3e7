//! Estimates the cost of evaluations in units, so that the clock is read only when it matters. Must never read it
//! itself.

use std::cell::Cell;

/// Units between two readings of the clock. A unit is a rule, a comparison, or a converter on a short text: some ten to
/// a hundred nanoseconds.
const UNITS_A_LOOK: u32 = 64;
/// Units from which on a single step is measured exactly, because it may take long.
const LONG: u32 = 256;

/// Counts the cost of evaluations; each worker has one.
#[derive(Debug)]
pub struct Meter {
    /// Units left before the clock is read.
    units: Cell<u32>,
}

impl Default for Meter {
    fn default() -> Self {
        Self { units: Cell::new(UNITS_A_LOOK) }
    }
}

impl Meter {
    /// Units of a single pass over `bytes` bytes.
    #[inline]
    pub fn scan(bytes: usize) -> u32 {
        1 + (bytes / 256) as u32
    }

    /// Units of a regular expression search in `bytes` bytes.
    #[inline]
    pub fn search(bytes: usize) -> u32 {
        1 + (bytes / 16) as u32
    }

    /// Whether a step of that many units may take long.
    pub(super) fn is_long(units: u32) -> bool {
        units >= LONG
    }

    /// Consumes units. False: the clock must be read first.
    #[inline]
    pub(super) fn take(&self, units: u32) -> bool {
        match self.units.get().checked_sub(units) {
            Some(left) => {
                self.units.set(left);
                true
            }
            None => false,
        }
    }

    /// Records that the clock was read before a step of that many units. After a long step the clock is read again
    /// before the next one, however short.
    pub(super) fn looked(&self, units: u32) {
        self.units.set(if units >= UNITS_A_LOOK { 0 } else { UNITS_A_LOOK });
    }

    /// Whether a completed step has not been measured yet.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.units.get() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs steps of these numbers of units; returns which of them read the clock first.
    fn looks(steps: &[u32]) -> Vec<bool> {
        let meter = Meter::default();
        let step = |units: &u32| {
            let looks = !meter.take(*units);
            if looks {
                meter.looked(*units);
            }
            looks
        };
        steps.iter().map(step).collect()
    }

    #[test]
    fn short_steps_are_looked_at_now_and_then() {
        assert_eq!(looks(&[1; 200]).into_iter().filter(|looked| *looked).count(), 3);
    }

    #[test]
    fn long_steps_are_looked_at_before_and_after() {
        assert_eq!(looks(&[1, 64, 1, 1]), [false, true, true, false]);
        assert_eq!(looks(&[256, 256, 1, 1]), [true, true, true, false]);
        assert_eq!([255, 256].map(Meter::is_long), [false, true]);
    }
}
