//! The clock, and a random number, for code that runs outside of a worker. Must never be read by a task, which uses its
//! worker's time.

use base::moment::Moment;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// An instant of the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point(Instant);

impl Point {
    pub fn now() -> Point {
        Point(Instant::now())
    }

    /// Returns the time since then; zero if it is in the future.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// Returns the time until `after` has passed since then; zero if it has.
    pub fn remaining(self, after: Duration) -> Duration {
        after.saturating_sub(self.elapsed())
    }
}

/// Returns the current time, by the clock that workers use.
pub fn moment() -> Moment {
    crate::sys::clock::monotonic()
}

/// Returns an instant of no meaning, for libraries that count from one: their times are differences from it.
pub fn origin() -> Instant {
    Instant::now()
}

/// Returns a random number from the kernel for code that runs outside of a worker, such as a hash key. Each call
/// returns another one.
pub fn seed() -> u64 {
    crate::sys::clock::seed()
}

/// Returns the time since 1970 in UTC, by the system's clock; zero if that is earlier.
pub fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
