//! State shared by a connection and the tasks of its streams. Must never wait.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use quic::StreamId;
use wire::h3::{self, ErrorCode, Role};

use super::Terms;
use super::cell::{Access, Half, StreamCell};
use super::counts::Counts;
use super::early::{Early, Unshaken};
use super::grant::StreamGrant;
use super::link::Link;
use super::webtransport::Sessions;
use crate::conduct::{Conduct, Consequence, EARNED, FAILED_STREAM};
use crate::h2::Kill;
use crate::quic::{Carried, StreamView};

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

/// The announcements of a server, and the end of a connection to it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Departing {
    /// Whether the server supports extended CONNECT; `None`: its SETTINGS were not received.
    pub(super) extends: Option<bool>,
    /// Whether no more requests begin.
    pub(super) is_closing: bool,
    /// Why the connection has ended before its handshake was complete, if requests were sent on it.
    pub(super) unshaken: Option<Unshaken>,
    /// Whether the server accepts WebTransport sessions.
    pub(super) takes_sessions: bool,
}

pub(super) struct State {
    pub(super) role: Role,
    pub(super) terms: Terms,
    pub(super) server: Departing,
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
    /// The streams that were announced to a client.
    grant: StreamGrant,
    pub(super) order: Option<Order>,
    pub(super) counts: Counts,
    pub(super) conduct: Conduct,
    /// The number of streams begun.
    pub(super) begun: u32,
    /// The early data sent to a server, until the handshake is complete.
    pub(super) early: Option<Box<Early>>,
    /// WebTransport sessions, if they are announced.
    pub(super) sessions: Option<Box<Sessions>>,
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
                is_complete: half.complete,
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

    /// Handles an error of the peer in what it has sent on a stream.
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

    /// Ends a stream because of its peer's error.
    pub(super) fn reset(&self, cell: &StreamCell, half: &mut Half, code: ErrorCode) {
        half.malformed = true;
        self.abort(cell, half, code);
        half.fail();
        let state = &mut *self.state.borrow_mut();
        state.note_failed_stream();
    }

    /// Ends both directions of a stream.
    pub(super) fn abort(&self, cell: &StreamCell, half: &Half, code: ErrorCode) {
        let connection = &mut self.link.connection();
        if !half.ended {
            connection.stop(cell.id, code.number());
        }
        if !half.finished {
            connection.reset(cell.id, code.number());
        }
        self.link.wake();
    }

    /// Handles that the peer accepts nothing more on a stream. A client that reads no more has no use for the rest of the
    /// exchange; a server may answer before it has the whole request.
    pub(super) fn note_unwritable(&self, half: &mut Half) {
        if self.state.borrow().role == Role::Server {
            half.fail();
        }
    }

    /// Releases a stream, whose task has ended.
    pub(super) fn release(&self, cell: &StreamCell) {
        let half = &mut *cell.half();
        if half.released {
            return;
        }
        let is_server = self.state.borrow().role == Role::Server;
        let code = match (half.complete && is_server, cell.refuses.get()) {
            (true, _) => ErrorCode::NoError,
            (false, true) => ErrorCode::RequestRejected,
            (false, false) => ErrorCode::RequestCancelled,
        };
        if !half.has_failed() {
            let connection = &mut self.link.connection();
            if !half.ended {
                connection.stop(cell.id, code.number());
            }
            if !half.complete || !is_server && !half.finished {
                connection.reset(cell.id, code.number());
            }
        }
        half.rest();
        let state = &mut *self.state.borrow_mut();
        state.open -= 1;
        if half.has_failed() || !half.complete || !is_server {
            state.remove(cell.id);
        }
        self.link.wake();
    }
}

impl State {
    pub(super) fn new(role: Role, terms: Terms) -> Self {
        Self {
            role,
            server: Departing::default(),
            decoder: h3::qpack::Decoder::new(h3::qpack::TableLimits::default()),
            terms,
            streams: VecDeque::new(),
            open: 0,
            unacknowledged: 0,
            ready: VecDeque::new(),
            next: 0,
            grant: StreamGrant::new(terms.max_streams),
            order: None,
            counts: Counts::default(),
            conduct: Conduct::new(),
            begun: 0,
            early: None,
            sessions: terms.webtransport.then(Box::default),
        }
    }

    /// Adds a stream; identifiers grow.
    pub(super) fn push(&mut self, cell: Rc<StreamCell>) {
        self.next = cell.id.number() + 4;
        self.streams.push_back(cell);
    }

    /// Returns the number of streams to announce to a client that uses those that it has.
    pub(super) fn raise_grant(&mut self) -> Option<u32> {
        self.grant.raise(self.streams.len())
    }

    /// As [`Self::raise_grant`], with `others` besides the streams of requests.
    pub(super) fn raise_grant_by(&mut self, others: usize) -> Option<u32> {
        self.grant.raise(self.streams.len() + others)
    }

    /// Whether a client cannot know yet that it may open that stream. The limit is counted from the newest stream, although some
    /// may be open.
    pub(super) fn is_beyond_limit(&self, stream: u64) -> bool {
        stream >= self.next.saturating_add(4 * self.grant.announced() as u64)
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

    /// Begins to serve a request.
    pub(super) fn begin(&mut self, cell: Rc<StreamCell>) {
        self.open += 1;
        self.begun = self.begun.saturating_add(1);
        self.counts.streams += 1;
        self.conduct.earn(EARNED);
        self.ready.push_back(cell);
    }

    /// Begins a request to a server.
    pub(super) fn begin_request(&mut self, cell: Rc<StreamCell>) {
        if let Some(early) = &mut self.early {
            early.begin_stream();
            cell.half().access = Access::Early;
        }
        self.push(cell);
        self.open += 1;
        self.begun = self.begun.saturating_add(1);
        self.counts.streams += 1;
        self.conduct.earn(EARNED);
        if self.terms.max_total > 0 && self.begun >= self.terms.max_total {
            self.server.is_closing = true;
        }
    }

    /// Handles GOAWAY of a server: requests from that identifier on were not processed.
    pub(super) fn note_departure(&mut self, next: u64) {
        self.server.is_closing = true;
        self.refuse_from(next);
    }

    /// Ends requests from that identifier on, which the server has not processed.
    pub(super) fn refuse_from(&self, next: u64) {
        for cell in self.streams.iter().filter(|cell| cell.id.number() >= next) {
            cell.refused.set(true);
            cell.half().fail();
        }
    }

    /// Handles the SETTINGS of a server.
    pub(super) fn note_settings(&mut self, settings: &h3::Settings) {
        self.server.extends = Some(settings.extended_connect);
        self.server.takes_sessions = settings.extended_connect && settings.datagrams && settings.sessions > 0;
        self.streams.iter().for_each(|cell| cell.half().wake());
    }

    /// Counts frames of the carrier that have no use to a stream.
    #[inline]
    pub(super) fn note_idle_frames(&mut self, count: u32) {
        (0..count).for_each(|_| self.note_idle_frame());
    }

    /// Counts a frame without use to a stream.
    pub(super) fn note_idle_frame(&mut self) {
        if self.conduct.spend() {
            self.note_glitch();
            self.charge(1);
        }
    }

    /// Counts a stream that fails through the peer's fault.
    #[cold]
    pub(super) fn note_failed_stream(&mut self) {
        self.note_glitch();
        self.charge(FAILED_STREAM);
    }

    fn note_glitch(&mut self) {
        self.conduct.note_glitches(1);
        self.counts.glitches = self.counts.glitches.saturating_add(1);
    }

    /// Charges the peer's budget with `points`. Every stream earns some, also one whose request is malformed.
    #[cold]
    pub(super) fn charge(&mut self, points: u32) {
        self.conduct.charge(points, u32::try_from(self.next / 4).unwrap_or(u32::MAX));
    }

    /// Returns the consequence of the peer's conduct.
    #[inline]
    pub(super) fn judge(&mut self) -> Consequence {
        match self.conduct.is_suspicious() {
            false => Consequence::None,
            true => self.conduct.judge(self.terms.glitches, self.terms.budget),
        }
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
