//! Whether a session has ended, for a task that waits for that. Must never know a session.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// What the task waits on.
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

/// Part of a session: says that it has ended when it is dropped.
pub struct Guard(Rc<Ending>);

impl Guard {
    /// The one that this ending waits for.
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
