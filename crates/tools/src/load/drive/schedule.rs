//! Times at which requests are due: at a rate that may first rise linearly from 0 to its maximum. Must never read a
//! clock or the result of a request.

use std::time::Duration;

/// Maximum time for which a limited rate may catch up: lateness of this program's own
/// timers, not of the peer.
const CREDIT: Duration = Duration::from_millis(10);

/// A rate over time, relative to the start of the run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule {
    /// Requests per second after the ramp-up.
    rate: f64,
    /// Duration of the ramp-up, in seconds.
    ramp: f64,
}

impl Schedule {
    pub(super) fn new(rate: f64, ramp: Duration) -> Self {
        Self { rate: rate.max(1e-9), ramp: ramp.as_secs_f64() }
    }

    /// Returns the number of requests due by a time, as a fraction.
    pub(super) fn count_at(&self, at: Duration) -> f64 {
        let at = at.as_secs_f64();
        if at < self.ramp { self.rate * at * at / (2.0 * self.ramp) } else { self.rate * (at - self.ramp / 2.0) }
    }

    /// Returns the time at which a request is due.
    pub(super) fn moment_of(&self, number: f64) -> Duration {
        let within_ramp = self.rate * self.ramp / 2.0;
        let seconds = if number < within_ramp {
            (2.0 * self.ramp * number / self.rate).sqrt()
        } else {
            number / self.rate + self.ramp / 2.0
        };
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

/// The due requests of one worker.
#[derive(Debug, Clone, Copy)]
pub(super) struct DueRequests {
    schedule: Schedule,
    next: f64,
    /// Missed requests stay due.
    constant: bool,
}

impl DueRequests {
    /// Creates the sequence; `offset`, below 1, is this worker's position between the others.
    pub(super) fn new(schedule: Schedule, offset: f64, constant: bool) -> Self {
        Self { schedule, next: offset, constant }
    }

    /// Returns the time of the next request.
    pub(super) fn next(&self) -> Duration {
        self.schedule.moment_of(self.next)
    }

    /// Takes the next request if it is due, and returns the time at which it was due.
    pub(super) fn take(&mut self, now: Duration) -> Option<Duration> {
        let due = self.next();
        if due > now {
            return None;
        }
        if !self.constant {
            self.next = self.next.max(self.schedule.count_at(now.saturating_sub(CREDIT)));
        }
        self.next += 1.0;
        Some(due)
    }

    /// Takes all requests due before `end`: calls `each` with their waiting time and their number, in at most
    /// some thousand groups. None if missed requests do not stay due.
    pub(super) fn take_rest(&mut self, end: Duration, mut each: impl FnMut(Duration, u64)) {
        const MOST_GROUPS: u64 = 10_000;
        if !self.constant || self.next() >= end {
            return;
        }
        // Positions differ by one, so that all of them below the end's are due.
        let count = (self.schedule.count_at(end) - self.next).ceil().max(0.0) as u64;
        let group = count.div_ceil(MOST_GROUPS).max(1);
        let mut left = count;
        while left > 0 {
            let size = group.min(left);
            // The middle one represents its group.
            let middle = self.schedule.moment_of(self.next + (size - 1) as f64 / 2.0);
            each(end.saturating_sub(middle), size);
            self.next += size as f64;
            left -= size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_rate_rises_linearly_and_stays() {
        let schedule = Schedule::new(100.0, millis(2_000));
        assert!((schedule.count_at(millis(1_000)) - 25.0).abs() < 1e-9);
        assert!((schedule.count_at(millis(2_000)) - 100.0).abs() < 1e-9);
        assert!((schedule.count_at(millis(3_000)) - 200.0).abs() < 1e-9);
        for number in [0.0, 1.0, 24.5, 99.0, 100.0, 101.0, 1e9] {
            assert!((schedule.count_at(schedule.moment_of(number)) - number).abs() < 1e-3, "{number}");
        }
        assert_eq!(Schedule::new(10.0, Duration::ZERO).moment_of(5.0), millis(500));
    }

    #[test]
    fn workers_take_turns() {
        let due = |offset| DueRequests::new(Schedule::new(50.0, Duration::ZERO), offset, true);
        let (mut one, mut other) = (due(0.0), due(0.5));
        assert_eq!(one.take(millis(0)), Some(millis(0)));
        assert_eq!(other.take(millis(5)), None);
        assert_eq!(other.take(millis(10)), Some(millis(10)));
        assert_eq!((one.next(), other.next()), (millis(20), millis(30)));
    }

    #[test]
    fn a_constant_rate_remembers_what_was_missed_and_a_limit_forgets_it() {
        let schedule = Schedule::new(1_000.0, Duration::ZERO);
        let take_all = |mut due: DueRequests| std::iter::from_fn(|| due.take(millis(5_000))).count();
        assert_eq!(take_all(DueRequests::new(schedule, 0.0, true)), 5_001);
        // The last ten milliseconds, and the current one.
        assert!((10..=12).contains(&take_all(DueRequests::new(schedule, 0.0, false))));
    }

    #[test]
    fn what_was_due_and_never_taken_is_told_with_how_long_it_waited() {
        let mut due = DueRequests::new(Schedule::new(10.0, Duration::ZERO), 0.0, true);
        assert_eq!(due.take(millis(0)), Some(millis(0)));
        let mut waited = Vec::new();
        due.take_rest(millis(500), |time, count| waited.push((time, count)));
        assert_eq!(waited, [400, 300, 200, 100].map(|time| (millis(time), 1)));
        due.take_rest(millis(500), |_, _| panic!("told twice"));
        let mut many = DueRequests::new(Schedule::new(1e6, Duration::ZERO), 0.0, true);
        let (mut groups, mut sum) = (0, 0);
        many.take_rest(millis(3_600_000), |_, count| (groups, sum) = (groups + 1, sum + count));
        assert!(groups <= 10_000 && sum == 3_600_000_000, "{groups} {sum}");
    }
}
