//! Decides whether a worker with nothing left to do yields its processor to other programs before it sleeps.
//!
//! A client on the same processor is interrupted by the worker that its connection wakes. The worker serves that one
//! connection, often before its request was even sent, and sleeps again: so each connection costs a sleep or two, which
//! take longer than to serve it. If the worker yields once instead, the client goes on to open further connections, and
//! all of them are served together.
//!
//! Nothing here may yield where that does not pay off: on a processor of the worker's own no other thread is waiting;
//! next to programs that compute or flood it with connections the worker would be away for long; and requests on
//! persistent connections gain nothing.

use std::cell::Cell;
use std::time::Duration;

use base::Moment;

/// The time that yielding may take for each connection that is accepted afterwards.
const WORTH_A_CONNECTION: Duration = Duration::from_micros(50);
/// The longest absence that pays off, regardless of the number of connections: it adds to the latency of other clients.
const LONGEST: Duration = Duration::from_millis(2);
/// After this number of failures in a row only one of 2^14 opportunities is used. An opportunity is a sleep after an
/// accepted connection.
const MOST_FAILURES: u8 = 14;

/// The statistics of a worker's yielding.
#[derive(Debug, Default)]
pub(crate) struct YieldPolicy {
    /// Connections accepted since the worker last yielded or skipped an opportunity, plus those that the last absence
    /// brought if they were worth it.
    accepted: Cell<u32>,
    /// The length of the last absence, until it is judged.
    away: Cell<Option<Duration>>,
    /// Start of the last absence, until the next poll for events.
    left: Cell<Option<Moment>>,
    /// Number of absences in a row that did not pay off.
    failures: Cell<u8>,
    /// Number of opportunities to skip.
    left_out: Cell<u32>,
}

impl YieldPolicy {
    #[inline]
    pub(crate) fn note_accepted(&self) {
        self.accepted.set(self.accepted.get().saturating_add(1));
    }

    /// Whether the worker that is about to sleep should first poll without waiting and, if there is nothing to do, call
    /// [`YieldPolicy::idle`].
    #[inline]
    pub(crate) fn looks_first(&self) -> bool {
        if self.away.get().is_some() {
            return true;
        }
        if self.accepted.get() == 0 {
            return false;
        }
        match self.left_out.get().checked_sub(1) {
            Some(fewer) => {
                self.left_out.set(fewer);
                self.accepted.set(0);
                false
            }
            None => true,
        }
    }

    /// Called when the worker has nothing to do: yields, or judges the last absence. `now` reads the clock.
    pub(crate) fn idle(&self, now: impl Fn() -> Moment, give_way: impl FnOnce()) {
        match self.away.take() {
            Some(away) => self.judge(away),
            None => {
                self.accepted.set(0);
                let left = now();
                give_way();
                self.away.set(Some(now().saturating_since(left)));
                self.left.set(Some(left));
            }
        }
    }

    /// Returns when the worker yielded, if it did since the last poll for events: it has not worked since.
    #[inline]
    pub(crate) fn take_left(&self) -> Option<Moment> {
        self.left.take()
    }

    fn judge(&self, away: Duration) {
        let paid = away <= (WORTH_A_CONNECTION * self.accepted.get()).min(LONGEST);
        let failures = if paid { 0 } else { (self.failures.get() + 1).min(MOST_FAILURES) };
        self.failures.set(failures);
        self.left_out.set((1 << failures) - 1);
        if !paid {
            self.accepted.set(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICROSECOND: Duration = Duration::from_micros(1);

    /// Simulates a worker with nothing left to do, after an iteration that accepted a connection; if it yields, it is
    /// away for `away`, and the next iterations accept `brought` connections. Returns whether it yielded.
    fn try_once(patience: &YieldPolicy, away: Duration, brought: u32) -> bool {
        patience.note_accepted();
        if !patience.looks_first() {
            return false;
        }
        let clock = Cell::new(Moment::ZERO);
        patience.idle(|| clock.get(), || clock.set(clock.get() + away));
        assert_eq!((patience.take_left(), patience.take_left()), (Some(Moment::ZERO), None));
        for _ in 0..brought {
            patience.note_accepted();
            assert!(patience.looks_first(), "there may be more to serve, which is looked for");
        }
        patience.idle(|| clock.get(), || panic!("what the absence has brought is judged first"));
        true
    }

    #[test]
    fn giving_way_goes_on_while_it_brings_connections() {
        let patience = YieldPolicy::default();
        assert!((0..100).all(|_| try_once(&patience, 100 * MICROSECOND, 2)));
    }

    #[test]
    fn what_has_paid_is_done_again_though_nothing_else_has_come() {
        let patience = YieldPolicy::default();
        assert!(try_once(&patience, 100 * MICROSECOND, 2));
        let given_way = Cell::new(false);
        patience.idle(|| Moment::ZERO, || given_way.set(true));
        assert!(given_way.get());
        assert!(patience.looks_first());
        patience.idle(|| Moment::ZERO, || panic!("what this has brought is judged first"));
        assert!(!patience.looks_first(), "it brought nothing");
    }

    #[test]
    fn connections_that_stay_never_make_a_worker_give_way() {
        let patience = YieldPolicy::default();
        assert!((0..100_000).all(|_| !patience.looks_first()));
        assert!(try_once(&patience, 3000 * MICROSECOND, 0));
        assert!((0..100_000).all(|_| !patience.looks_first()));
    }

    #[test]
    fn a_processor_of_its_own_is_hardly_ever_left() {
        let patience = YieldPolicy::default();
        let left = (0..100_000).filter(|_| try_once(&patience, MICROSECOND, 0)).count();
        assert_eq!(left, 14 + 5, "sleeps 0, 2, 6, 14 and so on to 16,382, then each 16,384th");
    }

    #[test]
    fn an_absence_must_be_worth_its_length() {
        let patience = YieldPolicy::default();
        assert!(try_once(&patience, 2000 * MICROSECOND, 39));
        assert!(!try_once(&patience, 2000 * MICROSECOND, 40), "one chance is left out");
        assert!(try_once(&patience, 2000 * MICROSECOND, 40));
        assert!(try_once(&patience, 2000 * MICROSECOND, 40), "it has paid");
    }

    /// A flood of connections from the same processor does not keep the worker from its other clients.
    #[test]
    fn a_long_absence_never_pays() {
        let patience = YieldPolicy::default();
        let left = (0..100_000).filter(|_| try_once(&patience, 25_000 * MICROSECOND, 10_000)).count();
        assert!(left < 20, "{left}");
    }
}
