//! Parts of tasks that are more or less urgent than the rest. Must never outlive the part: the task is of its own class again.

use crate::current;
use crate::task::Class;
use crate::timer::yield_now;

/// Runs a part of the running task in another class: each of its calls waits in the queue of that class, the first one too.
/// Then the task is of its former class again. A part that is dropped ends with its task.
pub async fn in_class<T>(class: Class, part: impl Future<Output = T>) -> T {
    let Some(former) = current::with(|worker| worker.tasks.borrow_mut().reclassify_running(class)) else {
        return part.await;
    };
    yield_now().await;
    let result = part.await;
    current::with(|worker| worker.tasks.borrow_mut().reclassify_running(former));
    result
}
