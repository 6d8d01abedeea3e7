//! Requests of one worker that wait for a connection which their server has opened (reverse HTTP), in the order in which they
//! came. Must never look at a connection.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::task::{Context, Poll, Waker};

use super::Worker;
use super::attachments::Kind;

/// Who waits, by what for. They are streams that are under way, so that there are never more than these.
#[derive(Default)]
pub(crate) struct Arrivals {
    queues: RefCell<HashMap<Kind, BTreeMap<u64, Turn>>>,
    next: Cell<u64>,
}

/// Whether a request may look, and whom to wake when it may.
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

    /// A connection has room, or there is none any more: the first of those that wait looks. The next one does when it has
    /// gone.
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

/// A request that waits.
pub(crate) struct Waiting<'w> {
    worker: &'w Worker,
    kind: Kind,
    number: u64,
}

impl<'w> Waiting<'w> {
    /// Behind those that wait already.
    pub(crate) fn join(worker: &'w Worker, kind: Kind) -> Self {
        let arrivals = &worker.arrivals;
        let number = arrivals.next.replace(arrivals.next.get() + 1);
        arrivals.queues.borrow_mut().entry(kind.clone()).or_default().insert(number, Turn::default());
        Self { worker, kind, number }
    }

    /// Whether none waits longer.
    pub(crate) fn is_first(&self) -> bool {
        let queues = self.worker.arrivals.queues.borrow();
        let first = queues.get(&self.kind).and_then(|queue| queue.keys().next());
        first == Some(&self.number)
    }

    /// Has those who have a connection know of the request. False: there is none.
    pub(crate) fn announce(&self) -> bool {
        self.worker.process.attachments.announce(&self.kind, self.worker.id)
    }

    /// Ready when the request may look again.
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
    /// Whatever has become of it, the next one looks.
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
