//! Notification of a session's end, for one task. Must never know a session.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// The waiting task's side.
#[derive(Default)]
pub struct Ending {
    has_ended: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Ending {
    /// Ready once the guard is dropped.
    pub fn poll(&self, cx: &Context<'_>) -> Poll<()> {
        if self.has_ended.get() {
            return Poll::Ready(());
        }
        *self.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// The session's side: dropping it reports the end.
pub struct Guard(Rc<Ending>);

impl Guard {
    /// Creates the guard of an [`Ending`].
    pub fn of(ending: &Rc<Ending>) -> Self {
        Self(Rc::clone(ending))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.has_ended.set(true);
        if let Some(waker) = self.0.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}
