//! Who is woken when a server has opened a connection, or another worker has given one (reverse HTTP). Must never look at it.

use std::cell::RefCell;
use std::task::{Context, Waker};

/// Tasks that are woken, at most: more of them, and those that have given up, look by themselves after a while.
const MOST: usize = 256;

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
