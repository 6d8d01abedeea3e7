//! Runs parts of a task in another scheduling class. Must never outlive the part: the task returns to its own class
//! afterwards.

use crate::current;
use crate::task::Class;
use crate::timer::yield_now;

/// Runs a part of the running task in another class: each of its polls, including the first, waits in the queue of that
/// class. Afterwards the task returns to its previous class. A part must only be dropped together with its task: the
/// class is not restored then.
pub async fn in_class<T>(class: Class, part: impl Future<Output = T>) -> T {
    let Some(former) = current::with(|worker| worker.tasks.borrow_mut().reclassify_running(class)) else {
        return part.await;
    };
    yield_now().await;
    let result = part.await;
    current::with(|worker| worker.tasks.borrow_mut().reclassify_running(former));
    result
}
