//! A client's connection: streams begin, and what they have to send is sent. Must never know what a request contains.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use ::quic::{Closed, Direction, Event, StreamId};
use base::moment::Moment;
use wire::h3::{self, ErrorCode, MessageReader, Role};

use super::cell::StreamCell;
use super::control::{self, Control};
use super::handle::Handle;
use super::link::Link;
use super::reading::Reading;
use super::state::{Order, Shared, State};
use super::stream::Stream;
use super::{Counts, Terms};
use crate::conduct::Consequence;
use crate::h2::{Kill, Ping};
use crate::qmux::{self, Wire};
use crate::quic::{self, Carried};

/// The identifier in a GOAWAY after which every request is served: the largest one of a client's request.
const LATEST: u64 = (1 << 62) - 4;

/// How the connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Departure {
    /// It does not.
    None,
    /// GOAWAY was sent, and the client closes it.
    ByClient,
    /// GOAWAY was sent. Requests that the client sends before it has received that are served.
    Announced,
    /// GOAWAY was sent with the newest request: it ends with its last stream.
    Graceful,
    /// It has ended.
    Over,
}

/// A client's connection.
pub struct Connection {
    shared: Rc<Shared>,
    control: Control,
    departure: Departure,
    /// The time until the client has received GOAWAY.
    grace: Option<Box<rt::Timer>>,
    /// Requests from this identifier on are rejected.
    limit: Option<u64>,
    /// Whether the client's fault has ended it.
    faulted: bool,
    /// Whether the client no longer receives anything.
    gone: bool,
}

impl Connection {
    /// Serves a connection whose handshake is complete, or has received early data.
    pub fn new(link: quic::Link, terms: Terms) -> Self {
        link.close_with(ErrorCode::NoError.number());
        Self::over(Link::Quic(link), terms)
    }

    /// Serves a connection of QMux, whose transport is passed to each call that may send or receive.
    pub fn over_bytes(settings: qmux::Settings, terms: Terms) -> Self {
        Self::over(Link::Qmux(Box::new(qmux::Link::new(true, settings))), terms)
    }

    fn over(link: Link, terms: Terms) -> Self {
        let control = Control::new(Role::Server, &terms);
        let shared = Rc::new(Shared { link, state: RefCell::new(State::new(Role::Server, terms)) });
        let carried: Rc<dyn Carried> = shared.clone();
        shared.link.carry(Rc::downgrade(&carried));
        Self { shared, control, departure: Departure::None, grace: None, limit: None, faulted: false, gone: false }
    }

    /// Whether a stream is being served.
    pub fn has_streams(&self) -> bool {
        self.shared.state.borrow().open() > 0
    }

    /// Whether all bytes that were received have been processed.
    pub fn is_drained(&self) -> bool {
        true
    }

    /// The number of streams opened so far.
    pub fn opened(&self) -> u32 {
        self.shared.state.borrow().begun
    }

    /// The number of streams being served, and the maximum.
    pub fn streams(&self) -> (usize, usize) {
        let state = self.shared.state.borrow();
        (state.open(), state.terms.max_streams)
    }

    /// Updates the time.
    pub fn advance(&mut self, now: Moment) {
        self.shared.state.borrow_mut().conduct.advance(now);
    }

    /// Takes the counters since the last call.
    pub fn take_counts(&self) -> Counts {
        std::mem::take(&mut self.shared.state.borrow_mut().counts)
    }

    /// Returns the counts of a connection of QMux that has ended.
    pub fn end_counts(&self) -> Option<qmux::EndCounts> {
        self.shared.link.end_counts()
    }

    /// Sends GOAWAY, so that the client begins no more requests; those that it sends before it has received that are served
    /// (RFC 9114, section 5.2). The connection ends with its last stream. With `lasts`, the client closes it.
    pub fn leave(&mut self, lasts: bool) {
        if self.departure != Departure::None {
            return;
        }
        self.control.go_away(LATEST);
        self.departure = Departure::ByClient;
        if !lasts {
            self.departure = Departure::Announced;
            let mut grace = Box::new(rt::Timer::new());
            grace.arm(Some(rt::now() + self.shared.link.grace()));
            self.grace = Some(grace);
        }
        self.shared.link.wake();
    }

    /// Sends GOAWAY with the newest request: those that begin from now on are rejected.
    fn depart(&mut self) {
        if matches!(self.departure, Departure::None | Departure::ByClient | Departure::Announced) {
            let next = self.shared.state.borrow().next;
            self.departure = Departure::Graceful;
            self.limit = Some(next);
            self.control.go_away(next);
            self.shared.link.wake();
        }
    }

    /// Processes events, and sends. Ready with a stream that has begun, or with `None`: the connection has ended.
    pub fn poll(&mut self, cx: &mut Context<'_>, mut wire: Option<&mut Wire<'_>>) -> Poll<Option<Stream>> {
        match self.departure {
            Departure::None | Departure::ByClient | Departure::Graceful => {}
            Departure::Announced => self.poll_grace(cx),
            Departure::Over => return Poll::Ready(None),
        }
        loop {
            self.shared.link.begin(cx);
            if self.process() || self.obey(wire.as_deref_mut()) {
                return Poll::Ready(None);
            }
            let ready = self.shared.state.borrow_mut().ready.pop_front();
            if let Some(cell) = ready {
                return Poll::Ready(Some(Stream::new(Rc::clone(&self.shared), cell)));
            }
            self.control.send(&mut self.shared.link.connection());
            if self.departure == Departure::Graceful && self.is_finished() {
                self.departure = Departure::Over;
                return Poll::Ready(None);
            }
            std::task::ready!(self.shared.link.poll_wait(cx, wire.as_deref_mut()));
        }
    }

    /// Waits until the client has received GOAWAY.
    fn poll_grace(&mut self, cx: &mut Context<'_>) {
        if self.grace.as_mut().is_none_or(|grace| grace.poll_expired(cx).is_ready()) {
            self.depart();
        }
    }

    /// Whether nothing is left to be done after GOAWAY.
    fn is_finished(&self) -> bool {
        let state = &mut *self.shared.state.borrow_mut();
        state.rest();
        state.open() == 0 && state.is_acknowledged() && self.control.is_sent()
    }

    /// Processes all events. Returns true if the connection has ended.
    fn process(&mut self) -> bool {
        while let Some(event) = self.shared.link.poll_event() {
            let done = match event {
                Event::StreamsOpened(Direction::Bidirectional) => self.accept(),
                Event::StreamsOpened(Direction::Unidirectional) => {
                    let (link, state) = (&self.shared.link, &mut *self.shared.state.borrow_mut());
                    self.control.accept(&mut link.connection(), state)
                }
                Event::Readable(id) if id.direction() == Direction::Unidirectional => {
                    let (link, state) = (&self.shared.link, &mut *self.shared.state.borrow_mut());
                    self.control.read(id, &mut link.connection(), state)
                }
                Event::Readable(id) => self.note_readable(id),
                Event::Writable(id) => self.note_writable(id),
                Event::Finished(id) => self.note_finished(id),
                Event::Stopped(id, code) => self.note_stopped(id, code),
                Event::Closed(closed) => {
                    self.gone = self.shared.link.is_gone();
                    self.faulted |= matches!(closed, Closed::Transport { .. });
                    self.end();
                    return true;
                }
                Event::Messages => self.shared.receive_messages(),
                Event::StreamsAvailable(_) => {
                    self.shared.note_room();
                    Ok(())
                }
                Event::Hello | Event::Connected => Ok(()),
            };
            if let Err(error) = done {
                self.shared.order(Order::Fail(error.code));
                return false;
            }
        }
        false
    }

    /// Carries out an order that concerns the whole connection. Returns true if it has ended.
    fn obey(&mut self, wire: Option<&mut Wire<'_>>) -> bool {
        let order = {
            let state = &mut *self.shared.state.borrow_mut();
            state.note_idle_frames(self.shared.link.take_glitches());
            let consequence = state.judge();
            if consequence == Consequence::Kill {
                state.order.get_or_insert(Order::Fail(ErrorCode::ExcessiveLoad));
            }
            (state.order, consequence)
        };
        match order {
            (None, Consequence::Leave) => {
                self.depart();
                return false;
            }
            (None, _) => return false,
            (Some(Order::Kill(Kill::Close)), _) => control::close(&self.shared.link, ErrorCode::NoError),
            (Some(Order::Kill(Kill::Forget(hops))), _) => {
                self.gone = true;
                self.shared.link.forget(hops, wire);
            }
            (Some(Order::Fail(code)), _) => {
                self.faulted = true;
                let state = &mut *self.shared.state.borrow_mut();
                state.counts.fatal += 1;
                control::close(&self.shared.link, code);
            }
        }
        self.end();
        true
    }

    fn end(&mut self) {
        self.departure = Departure::Over;
        for cell in self.shared.state.borrow().streams() {
            cell.half().fail();
        }
    }

    /// Accepts the request streams that the client has opened.
    fn accept(&mut self) -> Result<(), h3::Error> {
        loop {
            let Some(id) = self.shared.link.connection().accept(Direction::Bidirectional) else { return Ok(()) };
            let Terms { max_head, webtransport, .. } = self.shared.state.borrow().terms;
            let reader = MessageReader::with_sessions(Role::Server, max_head, webtransport);
            let cell = Rc::new(StreamCell::new(id, reader));
            self.shared.state.borrow_mut().push(Rc::clone(&cell));
            if self.is_late(id) {
                self.reject(&cell);
                continue;
            }
            self.announce_streams();
            self.read_head(&cell);
        }
    }

    /// Announces further streams if the client uses those that it has.
    fn announce_streams(&self) {
        let raised = self.shared.state.borrow_mut().raise_grant();
        if let Some(count) = raised {
            self.shared.link.connection().set_max_streams(Direction::Bidirectional, count);
        }
    }

    /// Whether a request has begun after GOAWAY.
    fn is_late(&self, id: StreamId) -> bool {
        self.limit.is_some_and(|limit| id.number() >= limit)
    }

    /// Rejects a request that was not processed. A client sends few of them before it has received GOAWAY. The first
    /// bytes of a stream of a session distinguish it.
    fn reject(&self, cell: &StreamCell) {
        let has_sessions = self.shared.state.borrow().sessions.is_some();
        if has_sessions {
            let reading = self.shared.read_head(cell, &mut cell.half());
            match reading {
                Reading::Session(session) => return self.shared.take_stream(cell, session),
                Reading::Blocked => return,
                Reading::Head | Reading::Payload | Reading::Ended | Reading::Failed => {}
            }
        }
        self.shared.abort(cell, &cell.half(), ErrorCode::RequestRejected);
        let state = &mut *self.shared.state.borrow_mut();
        state.remove(cell.id);
        state.note_idle_frame();
    }

    /// Reads the head of a request.
    fn read_head(&mut self, cell: &Rc<StreamCell>) {
        let reading = self.shared.read_head(cell, &mut cell.half());
        match reading {
            Reading::Head => {
                let is_last = {
                    let state = &mut *self.shared.state.borrow_mut();
                    state.begin(Rc::clone(cell));
                    state.terms.max_total > 0 && state.begun >= state.terms.max_total
                };
                if is_last {
                    self.depart();
                }
            }
            Reading::Blocked | Reading::Payload => {}
            Reading::Session(session) => self.shared.take_stream(cell, session),
            Reading::Ended | Reading::Failed => {
                let half = &mut *cell.half();
                if !half.malformed {
                    self.shared.abort(cell, half, ErrorCode::RequestIncomplete);
                }
                let state = &mut *self.shared.state.borrow_mut();
                state.counts.malformed += 1;
                state.remove(cell.id);
            }
        }
    }

    fn note_readable(&mut self, id: StreamId) -> Result<(), h3::Error> {
        let Some(cell) = self.shared.state.borrow().stream(id) else { return self.shared.note_of_session(id) };
        let has_head = cell.half().has_head;
        if !has_head {
            if self.is_late(id) {
                self.reject(&cell);
            } else {
                self.read_head(&cell);
            }
            return Ok(());
        }
        let half = &mut *cell.half();
        if half.payload.is_empty() && half.unread.is_empty() && !half.released {
            // A reset is seen by a task that does not read.
            self.shared.read_payload(&cell, half);
        }
        half.wake();
        Ok(())
    }

    fn note_writable(&mut self, id: StreamId) -> Result<(), h3::Error> {
        let Some(cell) = self.shared.state.borrow().stream(id) else { return self.shared.note_of_session(id) };
        let half = &mut *cell.half();
        if half.complete {
            // A failed stream has no end.
            let _ = Handle { shared: &self.shared, cell: &cell }.finish(half);
        }
        half.wake();
        Ok(())
    }

    fn note_finished(&mut self, id: StreamId) -> Result<(), h3::Error> {
        let state = &mut *self.shared.state.borrow_mut();
        state.note_acknowledged();
        state.remove_released(id);
        Ok(())
    }

    /// Handles STOP_SENDING: the client does not want the answer.
    fn note_stopped(&mut self, id: StreamId, code: u64) -> Result<(), h3::Error> {
        let Some(cell) = self.shared.state.borrow().stream(id) else {
            self.control.note_stopped(id)?;
            return self.shared.note_of_session(id);
        };
        let half = &mut *cell.half();
        {
            let state = &mut *self.shared.state.borrow_mut();
            state.counts.errors.note(code);
            if half.finished {
                state.note_acknowledged();
            } else if !half.complete {
                state.note_failed_stream();
            }
        }
        self.shared.abort(&cell, half, ErrorCode::RequestCancelled);
        half.fail();
        if half.released {
            self.shared.state.borrow_mut().remove(id);
        }
        Ok(())
    }

    /// A connection has no pings of its own: QUIC has.
    pub fn ping(&mut self, now: Moment, interval: Duration) -> Ping {
        Ping::Due(now + interval)
    }

    /// The number of pings that the client has acknowledged.
    pub fn pongs(&self) -> u32 {
        0
    }

    /// Ends all streams, and announces the end to the client.
    pub fn close(&mut self, wire: Option<&mut Wire<'_>>) {
        if !self.gone && self.departure != Departure::Over {
            self.leave(false);
            self.control.send(&mut self.shared.link.connection());
            self.shared.link.send(wire);
        }
        self.end();
    }

    /// Whether nothing can or may be sent to the client.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// Whether the connection has ended through the client's fault.
    pub fn has_faulted(&self) -> bool {
        self.faulted
    }

    /// Sends remaining bytes after the connection was closed, until the client has acknowledged all answers. Ready with a
    /// number above 0 after progress; 0: nothing is left.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>, mut wire: Option<&mut Wire<'_>>) -> Poll<usize> {
        loop {
            self.shared.link.begin(cx);
            let mut progress = 0;
            while let Some(event) = self.shared.link.poll_event() {
                match event {
                    Event::Finished(id) => {
                        progress += 1;
                        let _ = self.note_finished(id);
                    }
                    Event::Writable(id) => {
                        progress += 1;
                        let _ = self.note_writable(id);
                    }
                    Event::Stopped(id, code) => {
                        let _ = self.note_stopped(id, code);
                    }
                    Event::Closed(_) => self.gone = self.shared.link.is_gone(),
                    _ => {}
                }
            }
            if self.gone {
                return Poll::Ready(0);
            }
            if self.shared.link.is_closed() || self.shared.state.borrow().is_acknowledged() {
                return self.shared.link.poll_rest(cx, wire, ErrorCode::NoError.number());
            }
            if progress > 0 {
                return Poll::Ready(progress);
            }
            let sent = self.shared.link.sent();
            let polled = self.shared.link.poll_wait(cx, wire.as_deref_mut());
            if self.shared.link.sent() != sent {
                return Poll::Ready(1);
            }
            std::task::ready!(polled);
        }
    }

    /// Ready when the last stream was released.
    pub fn poll_settled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.shared.link.begin(cx);
        if self.has_streams() { Poll::Pending } else { Poll::Ready(()) }
    }
}

impl Drop for Connection {
    /// Closes the connection; streams that were not released fail.
    fn drop(&mut self) {
        self.end();
        if !self.shared.link.is_closed() {
            control::close(&self.shared.link, ErrorCode::NoError);
        }
    }
}
