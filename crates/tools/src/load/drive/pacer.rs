//! Pacing on one worker: due requests are assigned to the connections that have waited longest. Must never
//! delay a due request while a connection waits.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use base::Moment;

use super::schedule::DueRequests;

/// The pace of one lane on one worker.
pub(super) struct Pacer {
    start: Moment,
    state: RefCell<State>,
}

struct State {
    due: DueRequests,
    /// Numbers of the waiting connections, the longest waiting first.
    waiting: VecDeque<usize>,
    places: Vec<PacerSlot>,
    /// Waker of the task that assigns due requests, while there is no waiter.
    clerk: Option<Waker>,
}

/// State of a connection.
#[derive(Default)]
struct PacerSlot {
    waits: bool,
    granted: Option<Moment>,
    waker: Option<Waker>,
}

impl Pacer {
    pub(super) fn new(start: Moment, due: DueRequests) -> Self {
        let state = State { due, waiting: VecDeque::new(), places: Vec::new(), clerk: None };
        Self { start, state: RefCell::new(state) }
    }

    /// Registers a connection, and returns its number.
    pub(super) fn join(&self) -> usize {
        let places = &mut self.state.borrow_mut().places;
        places.push(PacerSlot::default());
        places.len() - 1
    }

    /// Ready when the connection may send: returns the time at which its request was due.
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

    /// Assigns due requests. Returns the time of the next one while there is a waiter; otherwise the task is woken
    /// by the next waiter.
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

    /// Takes the due requests that found no connection; see [`DueRequests::take_rest`].
    pub(super) fn take_rest(&self, end: Moment, each: impl FnMut(Duration, u64)) {
        self.state.borrow_mut().due.take_rest(end.saturating_since(self.start), each);
    }
}
