//! The steps of a search. Must never grant more than the text's length allows.

use crate::sample::Exhausted;
use std::cell::Cell;

/// Steps allowed for one search, whatever the length of the text. A step is about a nanosecond.
const STEPS: u64 = 300_000;

/// Additional steps for each byte of the text: a buffer of the default size allows a million in total.
const STEPS_A_BYTE: u64 = 40;

/// Steps for each of several values, whatever its length.
const STEPS_A_VALUE: u64 = 100;

/// The remaining steps of a search, or of several related ones.
#[derive(Debug)]
pub struct Steps(Cell<u64>);

impl Steps {
    /// Creates the steps for a search in a text of that many bytes.
    pub fn for_text(length: usize) -> Self {
        Self(Cell::new(STEPS + STEPS_A_BYTE * length as u64))
    }

    /// Creates the steps for related values that are searched with `lists` lists each: [`Steps::add_value`] adds the
    /// steps of each value.
    pub fn for_values(lists: usize) -> Self {
        Self(Cell::new(STEPS * lists as u64))
    }

    /// Adds the steps for a value of that many bytes.
    pub fn add_value(&self, length: usize) {
        self.0.set(self.0.get() + STEPS_A_VALUE + STEPS_A_BYTE * length as u64);
    }

    /// Consumes steps.
    ///
    /// # Errors
    /// Fewer steps remain.
    #[inline]
    pub fn take(&self, steps: u64) -> Result<(), Exhausted> {
        let left = self.0.get().checked_sub(steps);
        self.0.set(left.unwrap_or(0));
        if left.is_some() { Ok(()) } else { Err(Exhausted) }
    }

    /// Creates the steps for `regsub`, which may have a match per byte: four times as many.
    pub fn for_replacing(length: usize) -> Self {
        Self(Cell::new(4 * Self::for_text(length).left()))
    }

    /// The remaining steps.
    pub fn left(&self) -> u64 {
        self.0.get()
    }
}
