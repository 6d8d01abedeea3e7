//! Timers that tasks keep, sleeping, and yielding.
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

/// A timer that a task keeps and arms again and again.
///
/// Arming, re-arming and disarming only write the deadline down. The worker's wheel gets an entry when the timer is
/// polled while no entry is early enough; an entry that turns out to be too early wakes the task once, for nothing,
/// and is armed again. So a timeout that every request pushes ahead costs one entry per timeout, not per request.
pub struct Timer {
    /// [`Moment::MAX`] when it is not armed.
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
    /// A timer that is not armed.
    pub const fn new() -> Timer {
        Timer { deadline: Moment::MAX, entry: None, of_one_worker: PhantomData }
    }

    /// Sets the deadline; `None` (and the end of the clock) disarms. The task that polls the timer next is the one that is woken.
    #[inline]
    pub fn arm(&mut self, deadline: Option<Moment>) {
        self.deadline = deadline.unwrap_or(Moment::MAX);
    }

    /// The deadline, if it is armed.
    #[inline]
    pub fn deadline(&self) -> Option<Moment> {
        (self.deadline != Moment::MAX).then_some(self.deadline)
    }

    /// Ready when the deadline has come; the timer stays armed and ready until it is armed anew. Pending for ever when
    /// it is not armed.
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

    /// Puts an entry for `deadline` into the wheel in place of the present one.
    fn enter(&mut self, deadline: Moment, waker: &Waker) {
        // What comes out of the wheel is dropped after the wheel is free again: a foreign waker may do anything.
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

/// Waits for a moment; see [`sleep_until`].
#[derive(Debug)]
#[must_use = "a future does nothing until it is awaited"]
pub struct Sleep {
    timer: Timer,
}

/// A future that ends at `deadline`, or at once when that has passed.
pub fn sleep_until(deadline: Moment) -> Sleep {
    let mut timer = Timer::new();
    timer.arm(Some(deadline));
    Sleep { timer }
}

/// A future that ends after `duration`.
pub fn sleep(duration: Duration) -> Sleep {
    sleep_until(now() + duration)
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.timer.poll_expired(context)
    }
}

/// Lets the other tasks run; see [`yield_now`].
#[derive(Debug)]
#[must_use = "a future does nothing until it is awaited"]
pub struct YieldNow {
    yielded: bool,
}

/// A future that ends in the worker's next turn, after events were harvested.
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
