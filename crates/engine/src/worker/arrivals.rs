//! Who is woken when a server has opened a connection, or another worker has given one (reverse HTTP). Must never look at it.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};

use super::Process;

/// Tasks that are woken, at most: more of them, and those that have given up, look by themselves after a while.
const MOST: usize = 256;

/// Connections that are on their way from one worker to another.
#[derive(Debug, Default)]
pub struct Movements(AtomicUsize);

impl Movements {
    /// Whether there are any.
    pub(crate) fn are_there(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }
}

/// One of them, until it has arrived or is lost.
pub(crate) struct Moving(Arc<Process>);

impl Moving {
    pub(crate) fn of(process: &Arc<Process>) -> Self {
        process.moving.0.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(process))
    }
}

impl Drop for Moving {
    fn drop(&mut self) {
        self.0.moving.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Tasks that wait for a connection.
#[derive(Default)]
pub(crate) struct Arrivals(RefCell<Vec<Waker>>);

impl Arrivals {
    /// The calling task is woken by the next connection.
    pub(crate) fn wait(&self, cx: &Context<'_>) {
        if self.is_waiting(cx) {
            return;
        }
        let mut waiting = self.0.borrow_mut();
        if waiting.len() == MOST {
            waiting.remove(0);
        }
        waiting.push(cx.waker().clone());
    }

    /// Whether the calling task still waits.
    pub(crate) fn is_waiting(&self, cx: &Context<'_>) -> bool {
        self.0.borrow().iter().any(|known| known.will_wake(cx.waker()))
    }

    /// There is a connection.
    pub(crate) fn wake(&self) {
        for waker in self.0.take() {
            waker.wake();
        }
    }
}
