//! The clock, and a random number, for code that runs outside of a worker. Must never be read by a task,
//! which asks its worker.

use base::moment::Moment;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A moment of the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point(Instant);

impl Point {
    /// Now.
    pub fn now() -> Point {
        Point(Instant::now())
    }

    /// How long ago it was; nothing for one that is still to come.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// How long it is until `after` has passed since then; nothing when that is over.
    pub fn remaining(self, after: Duration) -> Duration {
        after.saturating_sub(self.elapsed())
    }
}

/// Now, by the clock that workers will have.
pub fn moment() -> Moment {
    crate::sys::clock::monotonic()
}

/// A random number of the kernel for code that runs outside of a worker: what hashes are keyed with, say. Each call gives
/// another one.
pub fn seed() -> u64 {
    crate::sys::clock::seed()
}

/// Time since 1970 in UTC, by the system's calendar; zero where that stands before it.
pub fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
