//! The worker that runs on this thread. Apart from the allocator's counter, this is the workspace's only thread-local.
//!
//! It must never be set for longer than the scope that holds the worker.

use std::cell::Cell;
use std::ptr;

use crate::worker::Worker;

thread_local! {
    static CURRENT: Cell<*const Worker> = const { Cell::new(ptr::null()) };
}

/// Runs `action` on the current worker.
///
/// # Panics
/// When no worker runs on this thread.
#[inline]
pub(crate) fn with<R>(action: impl FnOnce(&Worker) -> R) -> R {
    match try_with(action) {
        Some(result) => result,
        None => not_on_a_worker(),
    }
}

#[cold]
fn not_on_a_worker() -> ! {
    panic!("no Weir worker runs on this thread")
}

/// Runs `action` on the current worker; `None` if there is none.
#[inline]
pub(crate) fn try_with<R>(action: impl FnOnce(&Worker) -> R) -> Option<R> {
    let worker = CURRENT.get();
    // SAFETY: the pointer is null or was set by `enter`, which holds the reference that it was made from until it has
    // restored the previous pointer; the thread-local is not reachable from another thread.
    unsafe { worker.as_ref() }.map(action)
}

/// Sets `worker` as the current one while `action` runs.
pub(crate) fn enter<R>(worker: &Worker, action: impl FnOnce() -> R) -> R {
    struct Restore(*const Worker);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    let _restore = Restore(CURRENT.replace(worker));
    action()
}
