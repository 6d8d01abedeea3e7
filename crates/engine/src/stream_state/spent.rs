//! Account of the cost of evaluations for a stream. Must never read a clock.

use std::cell::Cell;
use std::time::Duration;

/// What evaluations for a stream have cost.
#[derive(Debug, Default)]
pub struct Spent {
    pub(crate) time: Cell<Duration>,
}

impl Spent {
    /// Another stream begins.
    pub fn clear(&self) {
        self.time.set(Duration::ZERO);
    }
}
