//! Requests of one worker that wait for a connection opened by their server (reverse HTTP), in order of arrival. Must never look
//! at a connection.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::task::{Context, Poll, Waker};

use super::Worker;
use super::attachments::Kind;

/// Queues of waiting requests, by kind. Each entry is a running stream, so their number is bounded by that of streams.
#[derive(Default)]
pub(crate) struct Arrivals {
    queues: RefCell<HashMap<Kind, BTreeMap<u64, Turn>>>,
    next: Cell<u64>,
}

/// State of a waiting request: whether it may look for a connection, and its waker.
#[derive(Default)]
struct Turn {
    has_come: bool,
    waker: Option<Waker>,
}

impl Arrivals {
    /// Whether requests wait for a connection of that kind.
    pub(crate) fn are_there(&self, kind: &Kind) -> bool {
        self.queues.borrow().contains_key(kind)
    }

    /// Wakes the first waiting request, after a connection got a free stream or the last one was closed. The next request is
    /// woken when this one leaves the queue.
    pub(crate) fn wake(&self, kind: &Kind) {
        let waker = self.queues.borrow_mut().get_mut(kind).and_then(|queue| {
            let (_, first) = queue.iter_mut().next()?;
            first.has_come = true;
            first.waker.take()
        });
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

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
        arrivals.queues.borrow_mut().entry(kind.clone()).or_default().insert(number, Turn::default());
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
