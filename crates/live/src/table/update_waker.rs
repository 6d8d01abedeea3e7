//! Wakes the task that sends a table's updates to peers. Must never cost more than reading one word if there is no
//! waiter, and never wake a task while a shard is locked.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::task::Waker;

/// There may be a waiter.
#[derive(Debug, Default)]
pub(super) struct UpdateWaker {
    awaited: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl UpdateWaker {
    /// Wakes the waiter, once.
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

    /// Registers a waiter. Earlier updates must be checked for after this call.
    pub(super) fn wait(&self, waker: &Waker) {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
        self.awaited.store(true, SeqCst);
    }
}
