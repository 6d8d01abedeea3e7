//! Virtual time: sleeping, waiting for so long, measuring to the millisecond.

use std::future::poll_fn;
use std::panic::Location;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use base::Moment;

/// How long a peer waits for anything, in virtual time. Far above every timeout of a test.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// What a timer may be late, with a few journeys over the simulated network on top.
pub const LATE_AT_MOST: Duration = Duration::from_millis(4);

/// A journey over the simulated network: a peer learns that much later what a timer has counted from.
const JOURNEY: Duration = Duration::from_micros(500);

/// Sleeps for so many milliseconds.
pub async fn sleep(millis: u64) {
    rt::sleep(Duration::from_millis(millis)).await;
}

/// What a future gives within a time, if anything.
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

/// Measures how long something takes on the virtual clock.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Moment);

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Stopwatch {
        Stopwatch(rt::now())
    }

    /// What has passed.
    pub fn elapsed(self) -> Duration {
        rt::now().saturating_since(self.0)
    }

    /// It took exactly so many milliseconds: not less, but for a journey, and no more than a timer is late.
    ///
    /// # Panics
    /// When it took another time.
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
