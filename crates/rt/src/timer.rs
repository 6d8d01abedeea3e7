//! Timers owned by tasks, sleeping, and yielding.
//!
//! A timer must never fire early; it fires up to about two milliseconds late.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use base::{Moment, TimerKey};

use crate::current;
use crate::worker::now;

/// A timer that a task keeps and re-arms.
///
/// Arming, re-arming and disarming only store the deadline. An entry is added to the worker's wheel when the timer is
/// polled and no entry is early enough; an entry that turns out to be too early wakes the task once, without effect,
/// and is armed again. So a timeout that every request extends costs one entry per timeout, not per request.
pub struct Timer {
    /// [`Moment::MAX`] if it is not armed.
    deadline: Moment,
    entry: Option<Entry>,
    of_one_worker: PhantomData<*const ()>,
}

/// An entry in the worker's wheel.
struct Entry {
    key: TimerKey,
    at: Moment,
    waker: Waker,
}

impl Timer {
    /// Creates a timer that is not armed.
    pub const fn new() -> Timer {
        Timer { deadline: Moment::MAX, entry: None, of_one_worker: PhantomData }
    }

    /// Sets the deadline; `None` (and the end of the clock) disarms. Wakes the task that last polled the timer.
    #[inline]
    pub fn arm(&mut self, deadline: Option<Moment>) {
        self.deadline = deadline.unwrap_or(Moment::MAX);
    }

    /// Returns the deadline, if it is armed.
    #[inline]
    pub fn deadline(&self) -> Option<Moment> {
        (self.deadline != Moment::MAX).then_some(self.deadline)
    }

    /// Ready when the deadline has passed; the timer stays armed and ready until it is re-armed. Pending forever if it
    /// is not armed.
    #[inline]
    pub fn poll_expired(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let deadline = self.deadline;
        if deadline == Moment::MAX {
            return Poll::Pending;
        }
        let now = now();
        if now >= deadline {
            return Poll::Ready(());
        }
        match &self.entry {
            Some(entry) if entry.at <= deadline && entry.at > now && entry.waker.will_wake(context.waker()) => {}
            _ => self.enter(deadline, context.waker()),
        }
        Poll::Pending
    }

    /// Replaces the entry in the wheel with one for `deadline`.
    fn enter(&mut self, deadline: Moment, waker: &Waker) {
        // Wakers removed from the wheel are dropped after it is unborrowed: a foreign waker may run any code.
        let old = self.entry.take();
        let _old_waker = current::with(|worker| {
            let mut wheel = worker.timers.borrow_mut();
            let old_waker = old.as_ref().and_then(|entry| wheel.cancel(entry.key));
            let key = wheel.arm(deadline, waker.clone());
            self.entry = Some(Entry { key, at: deadline, waker: waker.clone() });
            old_waker
        });
    }
}

impl Default for Timer {
    fn default() -> Timer {
        Timer::new()
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            let _waker = current::try_with(|worker| worker.timers.borrow_mut().cancel(entry.key));
        }
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").field("deadline", &self.deadline()).finish()
    }
}

/// A future that waits for a deadline; see [`sleep_until`].
#[derive(Debug)]
#[must_use = "a future does nothing until it is awaited"]
pub struct Sleep {
    timer: Timer,
}

/// Returns a future that completes at `deadline`, or immediately if that has passed.
pub fn sleep_until(deadline: Moment) -> Sleep {
    let mut timer = Timer::new();
    timer.arm(Some(deadline));
    Sleep { timer }
}

/// Returns a future that completes after `duration`.
pub fn sleep(duration: Duration) -> Sleep {
    sleep_until(now() + duration)
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.timer.poll_expired(context)
    }
}

/// A future that lets the other tasks run; see [`yield_now`].
#[derive(Debug)]
#[must_use = "a future does nothing until it is awaited"]
pub struct YieldNow {
    yielded: bool,
}

/// Returns a future that completes in the worker's next iteration, after polling for events.
pub fn yield_now() -> YieldNow {
    YieldNow { yielded: false }
}

impl Future for YieldNow {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.yielded {
            return Poll::Ready(());
        }
        self.yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
