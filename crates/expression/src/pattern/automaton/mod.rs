//! Automata over bytes: what tells, in one pass over a text, whether patterns match and where matches begin. States are
//! worked out as texts lead to them, and every step of that work is counted. Must never take more steps than it is given.

mod cache;
mod extent;
mod program;
mod required;
mod shape;
mod starts;

pub(super) use cache::Automaton;
pub(super) use extent::Extent;
pub(super) use program::Way;
pub(super) use required::Required;
pub(super) use shape::{Shape, relaxed, without_looks};
pub(super) use starts::Starts;

use crate::sample::Exhausted;
use std::cell::Cell;

/// Steps that one look may take, however short the text. One is about a nanosecond.
const STEPS: u64 = 300_000;

/// Steps beyond those for each byte of the text: a buffer of the default size may take a million in all.
const STEPS_A_BYTE: u64 = 40;

/// Steps for each of several values, whatever its length.
const STEPS_A_VALUE: u64 = 100;

/// What is left of the steps that a look, or several that belong together, may take.
#[derive(Debug)]
pub struct Steps(Cell<u64>);

impl Steps {
    /// For looks at a text of that many bytes.
    pub fn for_text(length: usize) -> Self {
        Self(Cell::new(STEPS + STEPS_A_BYTE * length as u64))
    }

    /// For looks at values that belong together, in so many lists each: [`Steps::add_value`] adds what each value may take.
    pub fn for_values(lists: usize) -> Self {
        Self(Cell::new(STEPS * lists as u64))
    }

    /// Adds those for a value of that many bytes.
    pub fn add_value(&self, length: usize) {
        self.0.set(self.0.get() + STEPS_A_VALUE + STEPS_A_BYTE * length as u64);
    }

    /// Takes some.
    ///
    /// # Errors
    /// There are not so many left.
    #[inline]
    pub fn take(&self, steps: u64) -> Result<(), Exhausted> {
        let left = self.0.get().checked_sub(steps);
        self.0.set(left.unwrap_or(0));
        if left.is_some() { Ok(()) } else { Err(Exhausted) }
    }

    /// For what `regsub` looks at, which takes up to a match for each byte: four times as many.
    pub fn for_replacing(length: usize) -> Self {
        Self(Cell::new(4 * Self::for_text(length).left()))
    }

    /// What is left.
    pub fn left(&self) -> u64 {
        self.0.get()
    }
}

#[cfg(test)]
mod tests;
