//! What evaluations cost: an estimate in units, so that the clock is read only where it pays. Must never read it itself.

use std::cell::Cell;

/// Units between two readings of the clock. A unit is a rule, a comparison, or a converter over a short text: some ten to a
/// hundred nanoseconds.
const UNITS_A_LOOK: u32 = 64;
/// From here on a single step may take long: it is measured exactly.
const LONG: u32 = 256;

/// Counts what evaluations cost; a worker has one for all of them.
#[derive(Debug)]
pub struct Meter {
    /// Units before the clock is read.
    units: Cell<u32>,
}

impl Default for Meter {
    fn default() -> Self {
        Self { units: Cell::new(UNITS_A_LOOK) }
    }
}

impl Meter {
    /// Units of a step that goes over so many bytes once.
    #[inline]
    pub fn scan(bytes: usize) -> u32 {
        1 + (bytes / 256) as u32
    }

    /// Units of a search for a regular expression in so many bytes.
    #[inline]
    pub fn search(bytes: usize) -> u32 {
        1 + (bytes / 16) as u32
    }

    /// Whether a step of so many units may take long.
    pub(super) fn is_long(units: u32) -> bool {
        units >= LONG
    }

    /// Takes units. False: the clock has to be read first.
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

    /// The clock was read before a step of so many units. After one that was worth it by itself, the next step, however
    /// short, has it read again.
    pub(super) fn looked(&self, units: u32) {
        self.units.set(if units >= UNITS_A_LOOK { 0 } else { UNITS_A_LOOK });
    }

    /// Whether a step has ended that nothing has measured yet.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.units.get() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes steps of so many units. Tells which of them read the clock first.
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
