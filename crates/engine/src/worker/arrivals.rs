//! Requests of one worker that wait for a connection opened by their server (reverse HTTP), in order of arrival. Must never look
//! at a connection.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::task::Waker;

use super::attachments::Kind;

/// Queues of waiting requests, by kind. Each entry is a running stream, so their number is bounded by that of streams.
#[derive(Default)]
pub(crate) struct Arrivals {
    pub(crate) queues: RefCell<HashMap<Kind, BTreeMap<u64, WaitState>>>,
    pub(crate) next: Cell<u64>,
}

/// State of a waiting request: whether it may look for a connection, and its waker.
#[derive(Default)]
pub(crate) struct WaitState {
    pub(crate) has_come: bool,
    pub(crate) waker: Option<Waker>,
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
