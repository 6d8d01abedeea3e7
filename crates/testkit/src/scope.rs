//! Tasks that end with the script that started them, so that they leave nothing open after it.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use rt::{Class, NO_TAG};

/// Starts tasks; dropping it cancels them.
#[derive(Default)]
pub struct Scope {
    over: Rc<Cell<bool>>,
    wakers: Rc<RefCell<Vec<Waker>>>,
}

impl Scope {
    pub fn new() -> Scope {
        Scope::default()
    }

    /// Starts a task on this worker.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let (over, wakers) = (Rc::clone(&self.over), Rc::clone(&self.wakers));
        rt::spawn(Class::Normal, NO_TAG, async move {
            let mut task = Box::pin(task);
            let mut known = false;
            poll_fn(|context| {
                if !std::mem::replace(&mut known, true) {
                    wakers.borrow_mut().push(context.waker().clone());
                }
                if over.get() { Poll::Ready(()) } else { task.as_mut().poll(context) }
            })
            .await;
        });
    }
}

impl Scope {
    /// Cancels all tasks, including those that hold the scope themselves.
    pub fn end(&self) {
        self.over.set(true);
        self.wakers.borrow().iter().for_each(Waker::wake_by_ref);
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        self.end();
    }
}

impl std::fmt::Debug for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}
