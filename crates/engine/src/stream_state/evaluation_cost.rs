//! Accounting of the cost of evaluations for a stream. Must never read a clock.

use std::cell::Cell;
use std::time::Duration;

/// Time spent on evaluations for a stream.
#[derive(Debug, Default)]
pub struct EvaluationTime {
    pub(crate) time: Cell<Duration>,
}

impl EvaluationTime {
    /// Resets it for the next stream.
    pub fn clear(&self) {
        self.time.set(Duration::ZERO);
    }
}
