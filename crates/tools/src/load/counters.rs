//! Counters of the load: a set for each worker and interval, and their sum. Must never count anything twice: those of
//! an interval are moved out of the worker.

use hdrhistogram::Histogram;
use std::time::Duration;

/// Number of status codes: 100 to 599.
const STATUSES: usize = 500;
/// Significant digits of a time in its histogram.
const DIGITS: u8 = 3;

/// Counters of an interval.
#[derive(Debug, Clone)]
pub struct Counters {
    /// Connections begun.
    pub connections: u64,
    /// Completed TLS handshakes.
    pub handshakes: u64,
    /// Handshakes that resumed a session.
    pub resumed: u64,
    /// Requests begun.
    pub requests: u64,
    /// Complete responses.
    pub answers: u64,
    /// Bytes received, including heads and chunked coding.
    pub received: u64,
    /// QUIC packets sent over connections that have ended.
    pub packets: u64,
    /// Those of them that were lost.
    pub lost_packets: u64,
    pub errors: Errors,
    /// Requests without a complete response at the end of the run: sent ones, and at a constant rate also those
    /// that were due and found no free connection. The times include how long they had waited by then. The last second
    /// of a run contains them.
    pub unanswered: u64,
    /// Complete responses by status code, index 0 for 100 up to 499 for 599.
    pub statuses: Box<[u64; STATUSES]>,
    /// Time from the request (or, at a constant rate, from when it was due) to the first byte of its response.
    pub first_byte: Times,
    /// The same, to the last byte.
    pub last_byte: Times,
    /// Time of the reference client, to the last byte.
    pub reference: Times,
    /// Times of responses that were complete with their first byte, as small ones are: they belong to both the first
    /// byte's times and the last byte's, and are recorded once until the counters are taken.
    at_once: Option<Box<Times>>,
}

/// Failures by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Errors {
    /// Connections that were refused or could not be established.
    pub connect: u64,
    /// I/O that took longer than `-w`.
    pub timeout: u64,
    /// Connections that were reset or closed before the response was complete.
    pub reset: u64,
    /// Responses that are not valid HTTP.
    pub protocol: u64,
    /// Responses with a status of 400 or above (they count as responses as well).
    pub status: u64,
}

/// Durations, in nanoseconds: their exact sum and number, and a histogram of three significant digits.
#[derive(Debug, Clone)]
pub struct Times {
    /// Sum of all, in nanoseconds.
    pub sum: u64,
    pub histogram: Histogram<u64>,
}

/// Maximum time of the histogram; longer ones are counted as this.
pub const LONGEST: Duration = Duration::from_secs(3600);

impl Counters {
    /// Creates empty counters.
    #[must_use]
    pub fn new() -> Self {
        Self {
            connections: 0,
            handshakes: 0,
            resumed: 0,
            requests: 0,
            answers: 0,
            received: 0,
            packets: 0,
            lost_packets: 0,
            errors: Errors::default(),
            unanswered: 0,
            statuses: Box::new([0; STATUSES]),
            first_byte: Times::new(),
            last_byte: Times::new(),
            reference: Times::new(),
            at_once: None,
        }
    }

    /// Adds other counters.
    pub fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        self.handshakes += other.handshakes;
        self.resumed += other.resumed;
        self.requests += other.requests;
        self.answers += other.answers;
        self.received += other.received;
        self.packets += other.packets;
        self.lost_packets += other.lost_packets;
        self.errors.add(other.errors);
        self.unanswered += other.unanswered;
        for (sum, count) in self.statuses.iter_mut().zip(other.statuses.iter()) {
            *sum += count;
        }
        self.first_byte.add(&other.first_byte);
        self.last_byte.add(&other.last_byte);
        self.reference.add(&other.reference);
        if let Some(at_once) = &other.at_once {
            self.at_once.get_or_insert_default().add(at_once);
        }
    }

    /// Returns the counters, and resets them.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let mut taken = std::mem::take(self);
        if let Some(at_once) = taken.at_once.take() {
            taken.first_byte.add(&at_once);
            taken.last_byte.add(&at_once);
        }
        taken
    }

    /// Records the times of a response, in nanoseconds. The result of [`Counters::take`] contains it in both times.
    #[inline]
    pub fn record_times(&mut self, first_byte: u64, last_byte: u64) {
        if first_byte == last_byte {
            return self.at_once.get_or_insert_default().record(last_byte);
        }
        self.first_byte.record(first_byte);
        self.last_byte.record(last_byte);
    }

    /// Counts a complete response by its status code; codes outside of 100 to 599 are ignored.
    pub fn count_status(&mut self, status: u16) {
        if let Some(count) = usize::from(status).checked_sub(100).and_then(|index| self.statuses.get_mut(index)) {
            *count += 1;
        }
    }
}

impl Default for Counters {
    fn default() -> Self {
        Self::new()
    }
}

impl Errors {
    pub fn add(&mut self, other: Self) {
        self.connect += other.connect;
        self.timeout += other.timeout;
        self.reset += other.reset;
        self.protocol += other.protocol;
        self.status += other.status;
    }

    /// Returns the number of failures, without responses of a status of 400 or above.
    #[must_use]
    pub const fn failures(&self) -> u64 {
        self.connect + self.timeout + self.reset + self.protocol
    }
}

impl Times {
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        let longest = u64::try_from(LONGEST.as_nanos()).unwrap_or(u64::MAX);
        let histogram = Histogram::new_with_bounds(1, longest, DIGITS);
        let histogram = histogram.unwrap_or_else(|error| unreachable!("the bounds are constants: {error}"));
        Self { sum: 0, histogram }
    }

    /// Records a time, in nanoseconds.
    #[inline]
    pub fn record(&mut self, nanos: u64) {
        self.record_many(nanos, 1);
    }

    /// Records several equal times.
    pub fn record_many(&mut self, nanos: u64, count: u64) {
        self.sum = self.sum.saturating_add(nanos.saturating_mul(count));
        self.histogram.saturating_record_n(nanos, count);
    }

    pub fn add(&mut self, other: &Self) {
        if other.histogram.is_empty() {
            return;
        }
        self.sum = self.sum.saturating_add(other.sum);
        // Cannot fail: both have the same bounds.
        let _ = self.histogram.add(&other.histogram);
    }

    /// Returns the number of times.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.histogram.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.histogram.is_empty()
    }

    /// Returns the mean in nanoseconds; 0 without any.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.sum as f64 / self.len() as f64 }
    }
}

impl Default for Times {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_adds_up_and_is_not_counted_twice() {
        let (mut counters, mut total) = (Counters::new(), Counters::new());
        for nanos in [1_000, 3_000] {
            counters.answers += 1;
            counters.count_status(200);
            counters.last_byte.record(nanos);
            total.add(&counters.take());
        }
        total.add(&counters.take());
        assert_eq!((total.answers, total.statuses[100], total.last_byte.len()), (2, 2, 2));
        assert!((total.last_byte.mean() - 2_000.0).abs() < f64::EPSILON);
        assert!(counters.last_byte.is_empty());
    }

    #[test]
    fn an_answer_that_came_at_once_is_in_both_times() {
        let mut counters = Counters::new();
        counters.record_times(1_000, 1_000);
        counters.record_times(2_000, 4_000);
        let taken = counters.take();
        assert_eq!((taken.first_byte.len(), taken.first_byte.sum), (2, 3_000));
        assert_eq!((taken.last_byte.len(), taken.last_byte.sum), (2, 5_000));
        assert_eq!(counters.take().last_byte.len(), 0, "counted once");
    }

    #[test]
    fn statuses_that_do_not_exist_and_times_without_end_are_no_accident() {
        let mut counters = Counters::new();
        counters.count_status(99);
        counters.count_status(600);
        counters.count_status(599);
        assert_eq!((counters.statuses.iter().sum::<u64>(), counters.statuses[499]), (1, 1));
        counters.last_byte.record_many(u64::MAX, 3);
        assert_eq!(counters.last_byte.len(), 3);
        assert!(counters.last_byte.histogram.max() >= 3_600_000_000_000);
    }
}
