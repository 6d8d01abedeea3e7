//! Decides which tasks wait when memory is scarce: those about to take a buffer, or to start something that takes more.
//!
//! It must never free anything itself. Work in progress takes precedence over new work.

use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use base::memory::{PROCESS, Supply};

use crate::loop_counts::count;
use crate::mailbox::Message;
use crate::memory_waits::memory_is_scarce;
use crate::task::Class;
use crate::task_id::NO_TAG;
use crate::worker::Worker;
use crate::{current, memory, sleep, spawn};

/// The interval at which a worker checks whether memory is available again, while a task waits for it.
const LOOK: Duration = Duration::from_millis(10);
/// Once per this number of checks, the other workers free their caches.
const TRIM_OTHERS: u32 = 10;
/// Number of a worker's tasks that proceed with each check although memory is short, so that something completes and
/// frees some.
const A_FEW: u32 = 8;
/// Maximum number of bytes that a task is expected to take, besides a buffer, before it waits the next time.
const A_TASK: usize = 16 * 1024;

/// The kind of work that a task is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Continue a request in progress. Waits while memory is critical.
    Underway,
    /// Start a request on an existing connection. Waits while memory is scarce.
    Request,
    /// Accept a connection. Waits while memory is scarce; existing connections take precedence.
    Connection,
}

impl Stage {
    const ALL: [Stage; 3] = [Stage::Underway, Stage::Request, Stage::Connection];

    /// The worst supply at which it does not wait.
    fn bears(self) -> Supply {
        if self == Stage::Underway { Supply::Scarce } else { Supply::Ample }
    }
}

/// Ready if there is memory for a stage; otherwise the task is woken when there may be. The fast path is one load.
#[inline]
pub fn poll_memory(context: &mut Context<'_>, stage: Stage) -> Poll<()> {
    if PROCESS.supply() == Supply::Ample {
        Poll::Ready(())
    } else {
        current::with(|worker| wait(worker, context, stage))
    }
}

/// Sets this worker's callback for scarce memory: it may end what is dispensable.
pub fn set_scarcity_hook(hook: Rc<dyn Fn()>) {
    let old = current::with(|worker| worker.waits.hook.borrow_mut().replace(hook));
    drop(old);
}

#[cold]
fn wait(worker: &Worker, context: &Context<'_>, stage: Stage) -> Poll<()> {
    let waits = &worker.waits;
    let supply = PROCESS.supply();
    if supply <= stage.bears() {
        return Poll::Ready(());
    }
    // Requests may start on existing connections until work in progress has to wait itself.
    let passes = match stage {
        Stage::Underway => PROCESS.bears_a_few(),
        Stage::Request => supply < Supply::Critical,
        Stage::Connection => false,
    };
    if passes && waits.passes.get() > 0 {
        waits.passes.set(waits.passes.get() - 1);
        return Poll::Ready(());
    }
    let queue = &mut waits.queues.borrow_mut()[stage as usize];
    if !queue.iter().any(|waker| waker.will_wake(context.waker())) {
        count(&worker.counts.memory_waits);
        queue.push_back(context.waker().clone());
    }
    if !waits.looking.replace(true) {
        // Run as a separate job: the caller may hold borrows that they need.
        let start = Box::new(|| {
            let hook = current::with(|worker| worker.waits.hook.borrow().clone());
            if let Some(hook) = hook {
                hook();
            }
            spawn(Class::Normal, NO_TAG, look());
        });
        worker.remote.send(Message::Job(start));
    }
    Poll::Pending
}

/// Frees a worker's caches.
fn trim(worker: &Worker) {
    worker.trim_buffers();
    worker.bins.trim();
}

/// Makes all workers free their caches until memory is available again, and wakes the waiting tasks as it becomes
/// available, until there are none.
async fn look() {
    for round in 0_u32.. {
        if memory_is_scarce() {
            current::with(|worker| {
                trim(worker);
                for other in worker.peers().iter().filter(|_| round.is_multiple_of(TRIM_OTHERS)) {
                    other.send(Message::Job(Box::new(|| current::with(trim))));
                }
            });
        }
        sleep(LOOK).await;
        memory::widen_budget();
        let whole = memory::restore_reserve();
        let waiting = current::with(release);
        if !waiting && whole {
            current::with(|worker| worker.waits.looking.set(false));
            return;
        }
    }
}

/// Wakes as many tasks as there is memory for, work in progress first. False: no task is waiting.
fn release(worker: &Worker) -> bool {
    let size = worker.buffer_size() + A_TASK;
    let supply = PROCESS.supply();
    let mut enough = PROCESS.ample_bytes() / size / worker.shared.workers.max(1);
    worker.waits.passes.set(A_FEW);
    let mut due = Vec::new();
    {
        let queues = &mut *worker.waits.queues.borrow_mut();
        for stage in Stage::ALL {
            let queue = &mut queues[stage as usize];
            let most = match supply <= stage.bears() {
                true if supply == Supply::Ample => enough.max(A_FEW as usize),
                true => queue.len(),
                false => A_FEW as usize,
            };
            let count = most.min(queue.len());
            enough -= count.min(enough);
            due.extend(queue.drain(..count));
        }
    }
    let woken = !due.is_empty();
    due.into_iter().for_each(Waker::wake);
    // Woken tasks may have to wait again.
    woken || worker.waits.queues.borrow().iter().any(|queue| !queue.is_empty())
}
