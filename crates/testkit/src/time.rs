//! Virtual time: sleeping, waiting with a limit, measuring to the millisecond.

use std::future::poll_fn;
use std::panic::Location;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use base::Moment;

/// Maximum time that a peer waits for anything, in virtual time. Far above every timeout of a test.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// Maximum delay of a timer, including a few transits of the simulated network.
pub const LATE_AT_MOST: Duration = Duration::from_millis(4);

/// The transit time of the simulated network: a peer observes the start of a timer that much later.
const JOURNEY: Duration = Duration::from_micros(500);

/// Sleeps for that number of milliseconds.
pub async fn sleep(millis: u64) {
    rt::sleep(Duration::from_millis(millis)).await;
}

/// Returns the output of a future if it completes within a time.
pub async fn within<T>(time: Duration, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut timer = rt::Timer::new();
    timer.arm(Some(rt::now() + time));
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => timer.poll_expired(context).map(|()| None),
    })
    .await
}

/// Runs two scripts at the same time, until both have ended.
pub async fn both<A, B>(first: impl Future<Output = A>, second: impl Future<Output = B>) -> (A, B) {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let (mut one, mut two) = (None, None);
    poll_fn(|context| {
        if one.is_none()
            && let Poll::Ready(value) = first.as_mut().poll(context)
        {
            one = Some(value);
        }
        if two.is_none()
            && let Poll::Ready(value) = second.as_mut().poll(context)
        {
            two = Some(value);
        }
        match (one.take(), two.take()) {
            (Some(one), Some(two)) => Poll::Ready((one, two)),
            (left, right) => {
                (one, two) = (left, right);
                Poll::Pending
            }
        }
    })
    .await
}

/// Measures durations on the virtual clock.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Moment);

impl Stopwatch {
    pub fn start() -> Stopwatch {
        Stopwatch(rt::now())
    }

    /// Returns the elapsed time.
    pub fn elapsed(self) -> Duration {
        rt::now().saturating_since(self.0)
    }

    /// Asserts that exactly `millis` milliseconds have elapsed: not less, except for a transit, and not more than a
    /// timer's delay.
    ///
    /// # Panics
    /// If another time has elapsed.
    #[track_caller]
    pub fn took(self, millis: u64) {
        let (elapsed, expected) = (self.elapsed(), Duration::from_millis(millis));
        assert!(
            (expected.saturating_sub(JOURNEY)..=expected + LATE_AT_MOST).contains(&elapsed),
            "took {elapsed:?} instead of {expected:?} ({})",
            Location::caller()
        );
    }
}
