//! Wakes tasks when the state of a server changes. Must never evaluate anything.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use crate::worker::Process;

/// The tasks that watch the states of servers.
#[derive(Debug, Default)]
pub struct HealthWatch {
    /// Whether there are any.
    is_used: AtomicBool,
    watchers: Mutex<Vec<Waker>>,
}

impl HealthWatch {
    /// Registers the calling task, which is woken by every change from now on.
    pub fn watch(&self, cx: &Context<'_>) {
        self.lock().push(cx.waker().clone());
        self.is_used.store(true, Ordering::Release);
    }

    fn changed(&self) {
        if !self.is_used.load(Ordering::Acquire) {
            return;
        }
        // No waker is called while the lock is held.
        let watchers = self.lock().clone();
        watchers.iter().for_each(Waker::wake_by_ref);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes the tasks that watch, after the state of a server has changed.
pub(crate) fn changed(process: &Process) {
    process.service::<HealthWatch>().changed();
}
