//! `retry-budget`, Weir's own: limits retries relative to the requests of the last ten seconds. Must never read a
//! clock.

use base::moment::Moment;
use config::spec::RetryBudgetSpec;
use std::sync::{Mutex, PoisonError};

/// The length of the window in seconds.
const SECONDS: usize = 10;

/// The counts of one second.
#[derive(Debug, Clone, Copy, Default)]
struct Second {
    number: u64,
    requests: u64,
    retries: u64,
}

/// The retry budget of a backend.
#[derive(Debug)]
pub(super) struct Budget {
    written: RetryBudgetSpec,
    seconds: Mutex<[Second; SECONDS]>,
}

impl Budget {
    pub(super) fn new(written: RetryBudgetSpec) -> Self {
        Self { written, seconds: Mutex::default() }
    }

    fn with<T>(&self, now: Moment, act: impl FnOnce(&mut [Second; SECONDS], usize) -> T) -> T {
        let number = now.as_nanos() / 1_000_000_000;
        let place = (number % SECONDS as u64) as usize;
        let mut seconds = self.seconds.lock().unwrap_or_else(PoisonError::into_inner);
        for second in seconds.iter_mut().filter(|second| second.number + (SECONDS as u64) <= number) {
            *second = Second::default();
        }
        seconds[place].number = number;
        act(&mut seconds, place)
    }

    /// Counts a request.
    pub(super) fn note_request(&self, now: Moment) {
        self.with(now, |seconds, place| seconds[place].requests += 1);
    }

    /// Whether another retry is allowed; if so, it is counted.
    pub(super) fn take(&self, now: Moment) -> bool {
        self.with(now, |seconds, place| {
            let requests: u64 = seconds.iter().map(|second| second.requests).sum();
            let retries: u64 = seconds.iter().map(|second| second.retries).sum();
            let most = requests * u64::from(self.written.share) / 100 + u64::from(self.written.least) * SECONDS as u64;
            let is_allowed = retries < most;
            seconds[place].retries += u64::from(is_allowed);
            is_allowed
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Moment {
        Moment::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn retries_are_a_share_of_requests_over_ten_seconds() {
        let budget = Budget::new(RetryBudgetSpec { share: 20, least: 0 });
        assert!(!budget.take(at(100)));
        (0..100).for_each(|_| budget.note_request(at(100)));
        let taken = (0..50).filter(|number| budget.take(at(100 + number % 10))).count();
        assert_eq!(taken, 20);
        assert!(!budget.take(at(110)), "the requests are forgotten before the retries");
        budget.note_request(at(130));
        assert!(!budget.take(at(130)));
    }

    #[test]
    fn some_a_second_are_always_allowed() {
        let budget = Budget::new(RetryBudgetSpec { share: 0, least: 2 });
        assert_eq!((0..100).filter(|_| budget.take(at(5))).count(), 20);
        assert_eq!((0..100).filter(|_| budget.take(at(15))).count(), 20);
    }

    #[test]
    fn four_threads_never_take_more_than_there_is() {
        let budget = Budget::new(RetryBudgetSpec { share: 10, least: 1 });
        let taken: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        (0..2_000)
                            .filter(|_| {
                                budget.note_request(at(50));
                                budget.take(at(50))
                            })
                            .count()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(taken, 8_000 / 10 + 10);
    }
}
