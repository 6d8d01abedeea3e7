//! The pause between two connection attempts. Must never read a clock.

use std::time::Duration;

use base::moment::Moment;

/// First and longest pause.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// Pause of a process that replaces another one, and for how long: a router accepts no second session, so that attempts fail until
/// the older process has ended its own.
const TAKEOVER: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(10));
/// A session that was established for this long counts as a success.
const SUCCESS: Duration = Duration::from_secs(10);

/// When to connect next.
#[derive(Debug)]
pub(super) struct Backoff {
    failures: u32,
    /// The end of a takeover.
    taking_over: Option<Moment>,
    /// The next attempt.
    pub(super) next: Moment,
}

impl Backoff {
    /// Permits an attempt at once. `succeeds`: an older process has a session with the router.
    pub(super) fn new(now: Moment, succeeds: bool) -> Self {
        Self { failures: 0, taking_over: succeeds.then(|| now.saturating_add(TAKEOVER.1)), next: now }
    }

    /// Sets the next attempt after a session that was established for `lasted`, if at all. Pauses double, and vary by a quarter
    /// so that many speakers do not connect at the same time.
    pub(super) fn ended(&mut self, lasted: Option<Duration>, now: Moment, random: u64) {
        if lasted.is_some() {
            self.taking_over = None;
        }
        if self.taking_over.is_some_and(|until| now < until) {
            self.next = now.saturating_add(jittered(TAKEOVER.0, random));
            return;
        }
        if lasted.is_some_and(|lasted| lasted >= SUCCESS) {
            self.failures = 0;
        }
        let pause = PAUSES.0.saturating_mul(1 << self.failures.min(5)).min(PAUSES.1);
        self.failures = self.failures.saturating_add(1);
        self.next = now.saturating_add(jittered(pause, random));
    }
}

/// Returns a duration from three quarters of `duration` to all of it (RFC 4271, section 10).
pub(super) fn jittered(duration: Duration, random: u64) -> Duration {
    duration * 3 / 4 + duration * u32::from(random as u16) / (u32::from(u16::MAX) * 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit_and_a_long_session_resets_them() {
        let now = Moment::ZERO + Duration::from_secs(100);
        let mut backoff = Backoff::new(now, false);
        assert_eq!(backoff.next, now);
        let mut pause = |lasted, random| {
            backoff.ended(lasted, now, random);
            backoff.next.saturating_since(now).as_millis()
        };
        let found: Vec<_> = (0..7).map(|_| pause(None, u64::MAX)).collect();
        assert_eq!(found, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        assert_eq!(pause(Some(Duration::from_secs(9)), 0), 22_500);
        assert_eq!(pause(Some(Duration::from_secs(10)), 0), 750);
        assert_eq!(pause(None, 0), 1_500);
    }

    #[test]
    fn a_process_that_replaces_another_one_repeats_its_attempts_fast() {
        let start = Moment::ZERO + Duration::from_secs(100);
        let pause = |backoff: &mut Backoff, lasted, millis| {
            let now = start + Duration::from_millis(millis);
            backoff.ended(lasted, now, u64::MAX);
            backoff.next.saturating_since(now).as_millis()
        };
        let mut backoff = Backoff::new(start, true);
        let found = [0, 250, 5_000, 9_999, 10_000, 11_000].map(|millis| pause(&mut backoff, None, millis));
        assert_eq!(found, [250, 250, 250, 250, 1_000, 2_000]);
        // Once it has had the session, a fault is one of the router.
        let mut backoff = Backoff::new(start, true);
        let short = Some(Duration::from_millis(10));
        assert_eq!([pause(&mut backoff, short, 20), pause(&mut backoff, None, 1_020)], [1_000, 2_000]);
    }
}
