//! Times between attempts.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Doubling times between attempts, between two bounds.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    pub first: Duration,
    pub limit: Duration,
    attempts: u32,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(Duration::from_millis(200), Duration::from_secs(10))
    }
}

impl Backoff {
    pub fn new(first: Duration, limit: Duration) -> Self {
        Self { first, limit, attempts: 0 }
    }

    /// Returns the time until the next attempt: half of it at random, so that watches and replicas do not return at once.
    pub fn next_delay(&mut self) -> Duration {
        let delay = self.first.saturating_mul(1 << self.attempts.min(16)).min(self.limit);
        self.attempts = self.attempts.saturating_add(1);
        let half = delay / 2;
        let random = RandomState::new().hash_one(0u8) as u32;
        half + half.mul_f64(f64::from(random) / f64::from(u32::MAX))
    }

    /// Call after a success.
    pub fn reset(&mut self) {
        self.attempts = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_limit() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(350));
        for full in [100, 200, 350, 350] {
            let delay = backoff.next_delay();
            assert!(
                delay >= Duration::from_millis(full) / 2 && delay <= Duration::from_millis(full),
                "{delay:?} of {full}"
            );
        }
        backoff.reset();
        assert!(backoff.next_delay() <= Duration::from_millis(100));
    }
}
