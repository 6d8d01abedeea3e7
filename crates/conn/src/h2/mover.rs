//! Moves a connection's frames in both directions: received ones to the streams, and queued ones to the peer. Must
//! never know which side has opened the connection.

use std::cell::RefCell;
use std::io::IoSlice;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use base::buffer::Buffer;
use base::moment::{Moment, OptionalMoment};
use wire::h2::{ErrorCode, INITIAL_WINDOW, Kind, MAX_WINDOW, PREFACE, Setting};

use super::cell::StreamCell;
use super::counts::Counts;
use super::kill::Kill;
use super::packed::PackedState;
use super::reader::{DEPARTING, Reader};
use super::state::{Fault, State};
use super::step::{Event, Limit};
use super::{Ping, Role, Terms};
use crate::conduct::Consequence;
use crate::transport::Transport;

/// The number of frames, or pieces of frames, after which nothing more is read in one poll.
const FRAMES: usize = 256;

/// The number of frames, or pieces of frames, after which a poll ends although more of them were read.
const MOST_FRAMES: usize = 2048;

/// How long the connection of a peer that does not acknowledge a GOAWAY is kept, for streams that the peer has begun
/// before receiving it.
const GRACE: Duration = Duration::from_secs(1);

/// The end of the connection as announced to the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Departure {
    /// No end was announced.
    None,
    /// The peer is to begin no more streams, but those that it begins before it has received the GOAWAY are served (RFC
    /// 9113, section 6.8). The connection ends with the last stream after the peer has acknowledged, or [`GRACE`] after
    /// [`Mover::departing_since`]; `lasts`: when the peer closes it.
    Graceful { lasts: bool },
    /// Streams that it begins are not served.
    Final,
}

/// The newest stream that a client may begin before it has received the GOAWAY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Newest {
    /// Any.
    Any,
    /// Far enough above the newest for all streams that the client may have begun; a client that goes beyond ignores
    /// the GOAWAY.
    AfterThose,
}

/// Moves the frames of a connection.
pub(super) struct Mover {
    reader: Reader,
    pub(super) state: Rc<RefCell<State>>,
    departure: Departure,
    /// Time of the first update after a graceful end was announced.
    departing_since: OptionalMoment,
    /// Whether the peer has violated the protocol, or a rule has ended the connection.
    broken: bool,
    /// Whether it has ended through the peer's fault.
    faulted: bool,
    /// Whether nothing more is read: the connection ends after the waiting bytes were written.
    over: bool,
    /// Whether the peer has closed its direction, or nothing can be written.
    gone: bool,
    /// When the next PING is due.
    ping_due: OptionalMoment,
}

impl Mover {
    /// Begins with our settings, after the preface if this side sends requests.
    pub(super) fn new(role: Role, terms: Terms) -> Self {
        Self::begin(role, terms, role == Role::Client)
    }

    /// For a connection that Weir has opened, and on which the peer sends requests (reverse HTTP).
    pub(super) fn reversed(terms: Terms) -> Self {
        Self::begin(Role::Server, terms, true)
    }

    /// For a connection that the peer has opened, and on which Weir sends requests (reverse HTTP).
    pub(super) fn asking(terms: Terms) -> Self {
        Self::begin(Role::Client, terms, false)
    }

    fn begin(role: Role, terms: Terms, opens: bool) -> Self {
        let mut state = State::new(role, terms);
        let mut settings = Vec::new();
        if opens {
            state.output().push_bytes(PREFACE);
        }
        match role {
            Role::Server => {
                let streams = u32::try_from(terms.max_streams).unwrap_or(u32::MAX);
                settings.extend_from_slice(&Setting::MaxConcurrentStreams.bytes(streams));
                if terms.extends {
                    settings.extend_from_slice(&Setting::EnableConnectProtocol.bytes(1));
                }
            }
            Role::Client => settings.extend_from_slice(&Setting::EnablePush.bytes(0)),
        }
        if terms.window != INITIAL_WINDOW {
            settings.extend_from_slice(&Setting::InitialWindowSize.bytes(terms.window));
        }
        if terms.table_size != 4096 {
            let size = u32::try_from(terms.table_size).unwrap_or(u32::MAX);
            settings.extend_from_slice(&Setting::HeaderTableSize.bytes(size));
        }
        state.push(Kind::Settings, 0, 0, &settings);
        Self {
            reader: Reader::new(terms.table_size),
            state: Rc::new(RefCell::new(state)),
            departure: Departure::None,
            departing_since: OptionalMoment::NONE,
            broken: false,
            faulted: false,
            over: false,
            gone: false,
            ping_due: OptionalMoment::NONE,
        }
    }

    /// Sends a PING every `interval` to the peer of an idle connection.
    pub(super) fn ping(&mut self, now: Moment, interval: Duration) -> Ping {
        let mut state = self.state.borrow_mut();
        if state.open() > 0 {
            (self.ping_due, state.life.pinged) = (OptionalMoment::NONE, false);
        }
        let due = self.ping_due.get_or_insert(now + interval);
        if now < due {
            return Ping::Due(due);
        }
        if state.life.pinged {
            return Ping::Unanswered;
        }
        state.life.pinged = true;
        state.push(Kind::Ping, 0, 0, b"idleping");
        self.ping_due = Some(now + interval).into();
        Ping::Sent
    }

    /// Whether it has ended because the peer has violated the protocol, or by a rule: the GOAWAY should reach the peer.
    #[cfg(any(test, feature = "machine"))]
    pub(super) fn is_broken(&self) -> bool {
        self.over && self.broken
    }

    /// Whether it has ended through the peer's fault.
    pub(super) fn has_faulted(&self) -> bool {
        self.faulted
    }

    /// Whether nothing more is read.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// Moves frames in both directions. Ready with a stream that the peer has begun, or with `None`: the connection has
    /// ended. A poll ends with the last frame of a read, so that streams which the connection does not outlive are not served before
    /// that is known.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        transport: &mut Transport,
        input: &mut Buffer,
    ) -> Poll<Option<Rc<StreamCell>>> {
        let state = Rc::clone(&self.state);
        let mut state = state.borrow_mut();
        state.wait(cx);
        match state.closing.killed {
            None => {}
            Some(Kill::Close) if self.over => {}
            Some(Kill::Close) => self.end(&mut state, ErrorCode::NoError),
            Some(Kill::Forget(hops)) => {
                // If the socket cannot be dropped silently, it is closed nevertheless.
                let _ = transport.forget(hops);
                return Poll::Ready(None);
            }
        }
        for taken in 0..MOST_FRAMES {
            if self.over || state.is_stuffed() {
                if write(cx, transport, &mut state).is_err() {
                    self.gone = true;
                    return Poll::Ready(None);
                }
                if self.over && state.waiting() == 0 {
                    return Poll::Ready(None);
                }
                if self.over || state.is_stuffed() {
                    return Poll::Pending;
                }
            }
            match self.step(input, &mut state) {
                Event::Progress => {}
                Event::Opened(stream) => return Poll::Ready(state.stream(stream)),
                Event::More => {
                    // Everything queued by the frames of one read is sent in one write.
                    if write(cx, transport, &mut state).is_err() {
                        self.gone = true;
                        return Poll::Ready(None);
                    }
                    // The caller ends its turn where nothing of a frame is left.
                    if taken >= FRAMES || !input.is_empty() && rt::slice_is_over() {
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    if !std::task::ready!(self.poll_read(cx, transport, input, &mut state)) {
                        return Poll::Ready(None);
                    }
                }
            }
        }
        if write(cx, transport, &mut state).is_err() {
            self.gone = true;
            return Poll::Ready(None);
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Handles the next frame, or a piece of it. An error is reported to the peer.
    pub(super) fn step(&mut self, input: &mut Buffer, state: &mut State) -> Event {
        let event = match self.reader.take(input, state) {
            Ok(event) => event,
            Err(fault) => {
                self.handle_fault(fault, state);
                Event::Progress
            }
        };
        if state.conduct.is_suspicious() || state.closing.is_known {
            self.judge(state);
        }
        event
    }

    /// Reports an error to the peer.
    #[cold]
    fn handle_fault(&mut self, fault: Fault, state: &mut State) {
        match fault {
            Fault::Stream(stream, code) => {
                state.note_failed_stream();
                state.counts().stream_errors += 1;
                state.counts().resets_sent += 1;
                state.reset(stream, code);
                if let Some(cell) = state.stream(stream) {
                    cell.half().malformed |= code == ErrorCode::ProtocolError;
                }
                state.abort(stream, false);
            }
            Fault::Connection(code) => {
                state.note_glitches(1);
                state.counts().connection_errors += 1;
                self.end(state, code);
            }
        }
    }

    /// Ends all streams, and sends GOAWAY to the peer as far as that is possible at once.
    pub(super) fn close(&mut self, transport: &mut Transport) {
        self.announce(ErrorCode::NoError);
        let mut state = self.state.borrow_mut();
        state.closing.begun = true;
        state.fail();
        if matches!(state.closing.killed, Some(Kill::Forget(_))) {
            return;
        }
        let mut cx = Context::from_waker(Waker::noop());
        if let Poll::Ready(Ok(written)) =
            transport.poll_write_slices(&mut cx, &[IoSlice::new(state.output().next())], false)
        {
            state.output().note_sent(written);
        }
    }

    /// Whether the peer has closed its direction, or nothing can or may be sent to it.
    pub(super) fn is_gone(&self) -> bool {
        self.gone || matches!(self.state.borrow().closing.killed, Some(Kill::Forget(_)))
    }

    /// Sends remaining bytes of a closed connection. Ready with the number of bytes sent; 0: nothing is left.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>, transport: &mut Transport) -> Poll<usize> {
        let mut state = self.state.borrow_mut();
        if self.gone || state.waiting() == 0 {
            return Poll::Ready(0);
        }
        match std::task::ready!(transport.poll_write_slices(cx, &[IoSlice::new(state.output().next())], false)) {
            Ok(written) => {
                state.output().note_sent(written);
                Poll::Ready(written)
            }
            Err(_) => {
                self.gone = true;
                Poll::Ready(0)
            }
        }
    }

    /// Ends the connection because of an error of the peer, or a rule.
    fn end(&mut self, state: &mut State, code: ErrorCode) {
        state.counts().departures_sent += 1;
        self.depart(state, code);
        state.closing.begun = true;
        state.fail();
        self.broken = true;
        self.faulted = code != ErrorCode::NoError;
        self.over = true;
    }

    /// Applies the limits of glitches and of the budget, and handles the peer's acknowledgement of a GOAWAY.
    #[cold]
    fn judge(&mut self, state: &mut State) {
        if self.over {
            state.conduct.settle();
        } else {
            match (state.conduct.judge(state.terms.glitches, state.terms.budget), state.role) {
                (Consequence::None, _) => {}
                (Consequence::Kill, _) => return self.end(state, ErrorCode::EnhanceYourCalm),
                (Consequence::Leave, Role::Server) => self.leave_in(state, Newest::AfterThose, false),
                (Consequence::Leave, Role::Client) => state.closing.begun = true,
            }
        }
        if state.closing.is_known && matches!(self.departure, Departure::Graceful { lasts: false }) {
            self.depart(state, ErrorCode::NoError);
        }
    }

    /// Sends a graceful GOAWAY to a client; streams that it begins before it has received that are served. `lasts`: the
    /// client closes a connection without streams.
    pub(super) fn leave(&mut self, newest: Newest, lasts: bool) {
        let state = Rc::clone(&self.state);
        self.leave_in(&mut state.borrow_mut(), newest, lasts);
    }

    fn leave_in(&mut self, state: &mut State, newest: Newest, lasts: bool) {
        if self.departure != Departure::None {
            return;
        }
        self.departure = Departure::Graceful { lasts };
        let more = u32::try_from(state.terms.max_streams).unwrap_or(MAX_WINDOW).saturating_mul(2);
        let last = match newest {
            Newest::Any => MAX_WINDOW,
            Newest::AfterThose => state.newest.saturating_add(more).min(MAX_WINDOW),
        };
        self.push_departure(state, Limit { last, is_final: false }, ErrorCode::NoError);
        if !lasts {
            state.push(Kind::Ping, 0, 0, DEPARTING);
        }
    }

    /// Sends GOAWAY with the newest stream: no stream above it is served (RFC 9113, section 6.8).
    pub(super) fn announce(&mut self, code: ErrorCode) {
        let state = Rc::clone(&self.state);
        if self.departure != Departure::Final {
            self.depart(&mut state.borrow_mut(), code);
        }
    }

    fn depart(&mut self, state: &mut State, code: ErrorCode) {
        self.departure = Departure::Final;
        // Servers begin no streams.
        let last = if state.role == Role::Server { state.newest } else { 0 };
        self.push_departure(state, Limit { last, is_final: true }, code);
    }

    fn push_departure(&mut self, state: &mut State, limit: Limit, code: ErrorCode) {
        self.reader.limit = limit;
        let mut payload = limit.last.to_be_bytes().to_vec();
        payload.extend_from_slice(&code.bytes());
        state.push(Kind::GoAway, 0, 0, &payload);
    }

    /// Bytes of memory that the connection and its streams hold.
    #[cfg(any(test, feature = "machine"))]
    pub(super) fn held(&self) -> usize {
        self.reader.held() + self.state.borrow().held()
    }

    /// Updates the time. Returns when this has to be called again at the latest.
    pub(super) fn advance(&mut self, now: Moment) -> Option<Moment> {
        let state = Rc::clone(&self.state);
        let mut state = state.borrow_mut();
        state.conduct.advance(now);
        let Departure::Graceful { lasts: false } = self.departure else { return None };
        let until = self.departing_since.get_or_insert(now) + GRACE;
        if now < until {
            return Some(until);
        }
        self.depart(&mut state, ErrorCode::NoError);
        state.wake();
        None
    }

    /// Takes the counters since the last call.
    pub(super) fn take_counts(&self) -> Counts {
        self.state.borrow_mut().take_counts()
    }

    /// Reads available input. Ready with false if the connection has ended.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        transport: &mut Transport,
        input: &mut Buffer,
        state: &mut State,
    ) -> Poll<bool> {
        if rt::poll_memory(cx, rt::Stage::Underway).is_pending() {
            return Poll::Pending;
        }
        crate::flow::expand(input);
        match transport.poll_read(cx, input) {
            Poll::Ready(Ok(1..)) => {
                state.life.heard += 1;
                Poll::Ready(true)
            }
            Poll::Ready(_) => {
                self.gone = true;
                Poll::Ready(false)
            }
            Poll::Pending => {
                if input.is_empty() {
                    *input = Buffer::empty();
                } else {
                    crate::flow::shrink(input);
                }
                if self.departure == Departure::Final && state.open() == 0 {
                    self.over = true;
                    return Poll::Ready(state.waiting() > 0);
                }
                Poll::Pending
            }
        }
    }
}

/// A connection without streams, packed for another worker.
pub(super) struct Packed {
    reader: Reader,
    state: PackedState,
    departure: Departure,
    departing_since: OptionalMoment,
    broken: bool,
    over: bool,
}

impl Packed {
    pub(super) fn unpack(self) -> Mover {
        let Self { reader, state, departure, departing_since, broken, over } = self;
        let state = Rc::new(RefCell::new(state.unpack()));
        let (faulted, gone, ping_due) = (false, false, OptionalMoment::NONE);
        Mover { reader, state, departure, departing_since, broken, faulted, over, gone, ping_due }
    }
}

impl Mover {
    /// Takes out the whole state. Other owners of a part of it find a connection that has ended.
    pub(super) fn pack(mut self) -> Packed {
        let (role, terms) = (self.state.borrow().role, *self.state.borrow().terms);
        let state = std::mem::replace(&mut *self.state.borrow_mut(), State::new(role, terms));
        let reader = std::mem::replace(&mut self.reader, Reader::new(terms.table_size));
        let state = PackedState::of(state);
        let Self { departure, departing_since, broken, over, .. } = self;
        Packed { reader, state, departure, departing_since, broken, over }
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        let mut state = self.state.borrow_mut();
        state.closing.begun = true;
        state.fail();
    }
}

/// Writes the waiting bytes, and wakes streams that wait for free space.
fn write(cx: &mut Context<'_>, transport: &mut Transport, state: &mut State) -> Result<(), ()> {
    while state.waiting() > 0 {
        match transport.poll_write_slices(cx, &[IoSlice::new(state.output().next())], false) {
            Poll::Pending => break,
            Poll::Ready(Ok(written)) => state.output().note_sent(written),
            Poll::Ready(Err(_)) => return Err(()),
        }
    }
    if state.serve_queue() {
        cx.waker().wake_by_ref();
    }
    state.rest();
    Ok(())
}
