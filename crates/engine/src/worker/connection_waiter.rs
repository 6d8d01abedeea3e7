//! One request that waits for a connection which its server opens. Must never look at a connection.

use std::task::{Context, Poll};

use super::Worker;
use super::arrivals::WaitState;
use super::attachments::Kind;

/// A waiting request; dropping it leaves the queue.
pub(crate) struct Waiting<'w> {
    worker: &'w Worker,
    kind: Kind,
    number: u64,
}

impl<'w> Waiting<'w> {
    /// Appends a request to the queue.
    pub(crate) fn join(worker: &'w Worker, kind: Kind) -> Self {
        let arrivals = &worker.arrivals;
        let number = arrivals.next.replace(arrivals.next.get() + 1);
        arrivals.queues.borrow_mut().entry(kind.clone()).or_default().insert(number, WaitState::default());
        Self { worker, kind, number }
    }

    /// Whether the request is the first in its queue.
    pub(crate) fn is_first(&self) -> bool {
        let queues = self.worker.arrivals.queues.borrow();
        let first = queues.get(&self.kind).and_then(|queue| queue.keys().next());
        first == Some(&self.number)
    }

    /// Announces the request to the workers that have a connection. Returns false if there is no connection.
    pub(crate) fn announce(&self) -> bool {
        self.worker.process.attachments.announce(&self.kind, self.worker.id)
    }

    /// Ready when the request may look for a connection again.
    pub(crate) fn poll(&self, cx: &Context<'_>) -> Poll<()> {
        let mut queues = self.worker.arrivals.queues.borrow_mut();
        let Some(turn) = queues.get_mut(&self.kind).and_then(|queue| queue.get_mut(&self.number)) else {
            return Poll::Ready(());
        };
        if std::mem::take(&mut turn.has_come) {
            return Poll::Ready(());
        }
        turn.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Waiting<'_> {
    /// Wakes the next request, regardless of this one's outcome.
    fn drop(&mut self) {
        let arrivals = &self.worker.arrivals;
        let is_last = {
            let mut queues = arrivals.queues.borrow_mut();
            let Some(queue) = queues.get_mut(&self.kind) else { return };
            queue.remove(&self.number);
            queue.is_empty() && queues.remove(&self.kind).is_some()
        };
        if is_last {
            self.worker.process.attachments.withdraw(&self.kind, self.worker.id);
        } else {
            arrivals.wake(&self.kind);
        }
    }
}
