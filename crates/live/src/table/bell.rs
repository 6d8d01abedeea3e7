//! Wakes the task that passes a table's updates on. Must never cost more than a look at one word where
//! there is no waiter, and never wake a task while a shard is locked.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::task::Waker;

/// There may be a waiter.
#[derive(Debug, Default)]
pub(super) struct Bell {
    awaited: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Bell {
    /// Wakes who waits, once.
    #[inline]
    pub(super) fn ring(&self) {
        if self.awaited.load(SeqCst) {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        if self.awaited.swap(false, SeqCst) {
            let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// From now on there is a waiter. Updates from before have to be looked for after this.
    pub(super) fn wait(&self, waker: &Waker) {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
        self.awaited.store(true, SeqCst);
    }
}
