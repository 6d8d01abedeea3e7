//! Who may send when, on one worker: requests that are due go to the connections that have waited longest. Must never
//! hold a request that is due while a connection waits.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use base::Moment;

use super::schedule::Due;

/// The pace of one lane on one worker.
pub(super) struct Pacer {
    start: Moment,
    state: RefCell<State>,
}

struct State {
    due: Due,
    /// Connections that wait, by their numbers, the longest first.
    waiting: VecDeque<usize>,
    places: Vec<PacerSlot>,
    /// The task that hands out due requests, while there is no waiter.
    clerk: Option<Waker>,
}

/// What a connection has of the pacer.
#[derive(Default)]
struct PacerSlot {
    waits: bool,
    granted: Option<Moment>,
    waker: Option<Waker>,
}

impl Pacer {
    pub(super) fn new(start: Moment, due: Due) -> Self {
        let state = State { due, waiting: VecDeque::new(), places: Vec::new(), clerk: None };
        Self { start, state: RefCell::new(state) }
    }

    /// A number for a connection.
    pub(super) fn join(&self) -> usize {
        let places = &mut self.state.borrow_mut().places;
        places.push(PacerSlot::default());
        places.len() - 1
    }

    /// Ready when the connection may send: since when its request is due.
    pub(super) fn poll_turn(&self, context: &Context<'_>, number: usize) -> Poll<Moment> {
        let now = rt::now().saturating_since(self.start);
        let state = &mut *self.state.borrow_mut();
        let idle = state.waiting.is_empty();
        let Some(place) = state.places.get_mut(number) else { return Poll::Pending };
        if let Some(due) = place.granted.take() {
            return Poll::Ready(due);
        }
        if place.waits {
            return Poll::Pending;
        }
        if idle && let Some(due) = state.due.take(now) {
            return Poll::Ready(self.start + due);
        }
        place.waits = true;
        if place.waker.is_none() {
            place.waker = Some(context.waker().clone());
        }
        state.waiting.push_back(number);
        if let Some(clerk) = state.clerk.take() {
            clerk.wake();
        }
        Poll::Pending
    }

    /// Hands out what is due. Returns when the next request is due, while there is a waiter; otherwise the task is woken
    /// when there is one.
    pub(super) fn hand_out(&self, context: &Context<'_>) -> Option<Moment> {
        let now = rt::now().saturating_since(self.start);
        let state = &mut *self.state.borrow_mut();
        while let Some(number) = state.waiting.front().copied() {
            let Some(due) = state.due.take(now) else { return Some(self.start + state.due.next()) };
            state.waiting.pop_front();
            if let Some(place) = state.places.get_mut(number) {
                (place.waits, place.granted) = (false, Some(self.start + due));
                place.waker.iter().for_each(Waker::wake_by_ref);
            }
        }
        state.clerk = Some(context.waker().clone());
        None
    }

    /// Takes what was due and found no connection; see [`Due::take_rest`].
    pub(super) fn take_rest(&self, end: Moment, each: impl FnMut(Duration, u64)) {
        self.state.borrow_mut().due.take_rest(end.saturating_since(self.start), each);
    }
}
