//! Response times of servers, for `balance ewma`: a moving average that rises immediately with every slow response and
//! decays slowly ("peak EWMA"). Must never measure time.

use base::moment::Moment;
use std::time::Duration;

/// The average response times of servers.
#[derive(Debug)]
pub(super) struct Waits {
    /// Time constant in nanoseconds: after this time a value counts about a third.
    decay: f64,
    /// By server: the average in nanoseconds, and its time.
    by_server: Vec<(f64, Moment)>,
}

impl Waits {
    pub(super) fn new(decay: Duration) -> Self {
        Self { decay: (decay.as_nanos() as f64).max(1.0), by_server: Vec::new() }
    }

    /// Extends the list to `count` servers; known averages are kept.
    pub(super) fn resize(&mut self, count: usize) {
        self.by_server.resize(count.max(self.by_server.len()), (0.0, Moment::ZERO));
    }

    /// Returns a server's average, decayed until `now`.
    fn at(&self, server: usize, now: Moment) -> f64 {
        let Some((wait, then)) = self.by_server.get(server) else { return 0.0 };
        let age = now.saturating_since(*then).as_nanos() as f64;
        wait * (-age / self.decay).exp()
    }

    /// Records a server's response time.
    pub(super) fn note(&mut self, server: usize, took: Duration, now: Moment) {
        let took = took.as_nanos() as f64;
        let known = self.at(server, now);
        let Some(entry) = self.by_server.get_mut(server) else { return };
        // A slower response replaces the average; a faster one counts in proportion to the time elapsed.
        let wait = if took >= known {
            took
        } else {
            let age = now.saturating_since(entry.1).as_nanos() as f64;
            known + took * (1.0 - (-age / self.decay).exp())
        };
        *entry = (wait, now.max(entry.1));
    }

    /// Returns the expected wait for one more request, with `in_flight` in progress; a server that has never responded
    /// counts as very slow as long as it has requests.
    pub(super) fn cost(&self, server: usize, in_flight: u32, weight: u32, now: Moment) -> f64 {
        const UNKNOWN: f64 = 1e12;
        let wait = self.at(server, now);
        let requests = f64::from(in_flight) + 1.0;
        let wait = if wait < 1.0 && in_flight > 0 { UNKNOWN } else { wait };
        wait * requests / f64::from(weight.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    fn waits() -> Waits {
        let mut waits = Waits::new(Duration::from_secs(10));
        waits.resize(2);
        waits
    }

    #[test]
    fn slow_answers_count_at_once_and_are_forgotten_slowly() {
        let mut waits = waits();
        waits.note(0, Duration::from_millis(10), at(0));
        waits.note(0, Duration::from_millis(500), at(100));
        assert_eq!(waits.at(0, at(100)), 500e6);
        for quick in 0..10 {
            waits.note(0, Duration::from_millis(10), at(110 + 10 * quick));
        }
        assert!(waits.at(0, at(200)) > 490e6, "ten quick answers in a moment prove little");
        let third = waits.at(0, at(10_100));
        assert!((170e6..190e6).contains(&third), "{third}");
        assert!(waits.at(0, at(100_000)) < 1e6);
    }

    #[test]
    fn steady_answers_are_what_they_are() {
        let mut waits = waits();
        for step in 0..1_000 {
            waits.note(0, Duration::from_millis(20), at(step * 50));
        }
        let known = waits.at(0, at(49_950));
        assert!((19.9e6..20.1e6).contains(&known), "{known}");
    }

    #[test]
    fn who_never_answered_is_tried_with_one_request_at_a_time() {
        let mut waits = waits();
        waits.note(0, Duration::from_millis(20), at(0));
        assert!(waits.cost(1, 0, 1, at(1)) < waits.cost(0, 0, 1, at(1)));
        assert!(waits.cost(1, 1, 1, at(1)) > waits.cost(0, 9, 1, at(1)));
    }
}
