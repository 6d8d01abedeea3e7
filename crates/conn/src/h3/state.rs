//! State shared by a connection and the tasks of its streams. Must never wait.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use quic::StreamId;
use wire::h3::{self, ErrorCode};

use super::Terms;
use super::cell::{Half, StreamCell};
use super::counts::{Conduct, Counts};
use crate::h2::Kill;
use crate::quic::{Carried, Link, StreamView};

/// A connection, as its task and its streams share it.
pub(super) struct Shared {
    pub(super) link: Link,
    pub(super) state: RefCell<State>,
}

/// An order that concerns the whole connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// A request ends it.
    Kill(Kill),
    /// The client has violated the protocol.
    Fail(ErrorCode),
}

pub(super) struct State {
    pub(super) terms: Terms,
    pub(super) decoder: h3::qpack::Decoder,
    /// Streams by identifier, those that were released and whose answer is not acknowledged included.
    streams: VecDeque<Rc<StreamCell>>,
    /// The number of streams whose request has begun and that were not released.
    open: usize,
    /// The number of streams whose end was sent and not acknowledged.
    unacknowledged: usize,
    /// Streams whose head was received, until their tasks begin.
    pub(super) ready: VecDeque<Rc<StreamCell>>,
    /// The identifier after that of the newest stream.
    pub(super) next: u64,
    pub(super) order: Option<Order>,
    pub(super) counts: Counts,
    pub(super) conduct: Conduct,
    /// The number of streams begun.
    pub(super) begun: u32,
}

impl Carried for Shared {
    fn streams(&self, most: usize) -> (Vec<StreamView>, usize) {
        let state = self.state.borrow();
        let views = state.streams().take(most).map(|cell| {
            let half = cell.half();
            StreamView {
                id: cell.id.number(),
                unread: half.unread.len() + half.payload.len(),
                is_ended: half.ended,
                is_answered: half.complete,
                is_released: half.released,
            }
        });
        (views.collect(), state.streams.len())
    }
}

impl Shared {
    /// Orders the end of the whole connection. The first order counts.
    pub(super) fn order(&self, order: Order) {
        self.state.borrow_mut().order.get_or_insert(order);
        self.link.wake();
    }

    /// Handles an error of the client in what it has sent on a stream.
    pub(super) fn fail(&self, cell: &StreamCell, half: &mut Half, error: h3::Error) {
        match error.scope {
            h3::Scope::Connection => {
                half.malformed = true;
                half.fail();
                self.order(Order::Fail(error.code));
            }
            h3::Scope::Stream => self.reset(cell, half, error.code),
        }
    }

    /// Ends a stream because of its client's error.
    pub(super) fn reset(&self, cell: &StreamCell, half: &mut Half, code: ErrorCode) {
        half.malformed = true;
        self.abort(cell, half, code);
        half.fail();
        let state = &mut *self.state.borrow_mut();
        state.conduct.note_failed_stream(&mut state.counts, state.begun);
    }

    /// Ends both directions of a stream.
    pub(super) fn abort(&self, cell: &StreamCell, half: &Half, code: ErrorCode) {
        let connection = &mut *self.link.connection();
        if !half.ended {
            connection.stop(cell.id, code.number());
        }
        if !half.finished {
            connection.reset(cell.id, code.number());
        }
        self.link.wake();
    }

    /// Releases a stream, whose task has ended.
    pub(super) fn release(&self, cell: &StreamCell) {
        let half = &mut *cell.half();
        if half.released {
            return;
        }
        let code = match (half.complete, cell.refuses.get()) {
            (true, _) => ErrorCode::NoError,
            (false, true) => ErrorCode::RequestRejected,
            (false, false) => ErrorCode::RequestCancelled,
        };
        if !half.failed {
            let connection = &mut *self.link.connection();
            if !half.ended {
                connection.stop(cell.id, code.number());
            }
            if !half.complete {
                connection.reset(cell.id, code.number());
            }
        }
        half.rest();
        let state = &mut *self.state.borrow_mut();
        state.open -= 1;
        if half.failed || !half.complete {
            state.remove(cell.id);
        }
        self.link.wake();
    }
}

impl State {
    pub(super) fn new(terms: Terms) -> Self {
        Self {
            decoder: h3::qpack::Decoder::new(h3::qpack::TableLimits::default()),
            terms,
            streams: VecDeque::new(),
            open: 0,
            unacknowledged: 0,
            ready: VecDeque::new(),
            next: 0,
            order: None,
            counts: Counts::default(),
            conduct: Conduct::new(),
            begun: 0,
        }
    }

    /// Adds a stream that the client has opened; identifiers grow.
    pub(super) fn push(&mut self, cell: Rc<StreamCell>) {
        self.next = cell.id.number() + 4;
        self.streams.push_back(cell);
    }

    fn position(&self, id: StreamId) -> Option<usize> {
        self.streams.binary_search_by_key(&id.number(), |cell| cell.id.number()).ok()
    }

    /// Returns a stream.
    pub(super) fn stream(&self, id: StreamId) -> Option<Rc<StreamCell>> {
        self.position(id).and_then(|position| self.streams.get(position)).map(Rc::clone)
    }

    /// Returns the stream with that number.
    pub(super) fn numbered(&self, number: u64) -> Option<Rc<StreamCell>> {
        let position = self.streams.binary_search_by_key(&number, |cell| cell.id.number()).ok()?;
        self.streams.get(position).map(Rc::clone)
    }

    /// Removes a stream that its task has released.
    pub(super) fn remove_released(&mut self, id: StreamId) {
        if self.stream(id).is_some_and(|cell| cell.half().released) {
            self.remove(id);
        }
    }

    /// Removes a stream.
    pub(super) fn remove(&mut self, id: StreamId) {
        if let Some(position) = self.position(id) {
            self.streams.remove(position);
        }
    }

    /// Begins a request.
    pub(super) fn begin(&mut self, cell: Rc<StreamCell>) {
        self.open += 1;
        self.begun = self.begun.saturating_add(1);
        self.counts.streams += 1;
        self.conduct.note_stream();
        self.ready.push_back(cell);
    }

    /// The number of streams being served.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// Counts a stream whose end was sent.
    pub(super) fn note_finished(&mut self) {
        self.unacknowledged += 1;
    }

    /// Handles the acknowledgement of a stream's end, or that there will be none.
    pub(super) fn note_acknowledged(&mut self) {
        self.unacknowledged = self.unacknowledged.saturating_sub(1);
    }

    /// Whether the client has received all answers that have ended.
    pub(super) fn is_acknowledged(&self) -> bool {
        self.unacknowledged == 0
    }

    /// Returns all streams.
    pub(super) fn streams(&self) -> impl ExactSizeIterator<Item = &Rc<StreamCell>> {
        self.streams.iter()
    }

    /// Releases memory that an idle connection does not need.
    pub(super) fn rest(&mut self) {
        if self.streams.is_empty() {
            (self.streams, self.ready) = (VecDeque::new(), VecDeque::new());
        }
    }
}
