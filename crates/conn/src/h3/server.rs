//! A connection to a server: requests begin on it, and its answers are received. Must never know what either contains.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::quic::{Direction, Event, StreamId};
use base::buffer::Buffer;
use base::moment::Moment;
use bytes::Bytes;
use rt::net::SocketQuery;
use tls::HandshakeInfo;
use wire::h3::webtransport::BeginningReader;
use wire::h3::{self, ErrorCode, MessageReader, Role};

use super::cell::{Arrival, StreamCell};
use super::control::{self, Control};
use super::early::{Early, HandshakeLimit, Unshaken};
use super::handle::Handle;
use super::link::Link;
use super::state::{Order, Shared, State};
use super::{Counts, Terms};
use crate::conduct::Consequence;
use crate::qmux::{self, Wire};
use crate::quic::{self, Carried, StreamView};
use crate::server_info::About;
use crate::transport::Transport;

/// State shared by the connection's task and its requests.
struct Exchanges {
    shared: Shared,
    about: About,
    /// The number of answers received whole.
    answers: Cell<u32>,
    /// Whether the connection has ended.
    over: Cell<bool>,
}

impl Carried for Exchanges {
    fn streams(&self, most: usize) -> (Vec<StreamView>, usize) {
        self.shared.streams(most)
    }
}

/// Handle of a connection for tasks that begin requests on it.
#[derive(Clone)]
pub struct Requests(Rc<Exchanges>);

/// A connection as seen by the task that processes its events.
pub struct ServerConnection {
    exchanges: Rc<Exchanges>,
    control: Control,
    /// The transport of QMux, and the bytes read from it.
    wire: Option<Box<(Transport, Buffer)>>,
    /// The time limit of a handshake during which early data is sent.
    limit: Option<HandshakeLimit>,
}

impl ServerConnection {
    /// Starts HTTP/3 on a connection whose handshake is complete.
    pub fn new(link: quic::Link, terms: Terms, tls: Option<Arc<HandshakeInfo>>) -> (Self, Requests) {
        link.close_with(ErrorCode::NoError.number());
        let about = About::of_quic(&link, tls);
        Self::over(Link::Quic(link), terms, about, None)
    }

    /// Starts HTTP/3 on a connection whose handshake is in progress: requests are sent as early data. If the handshake is not
    /// complete at the `deadline`, they end as not processed: only those that may be sent twice are to begin until then.
    pub fn new_early(link: quic::Link, terms: Terms, deadline: Option<Moment>) -> (Self, Requests) {
        let (mut own, requests) = Self::new(link, terms, None);
        own.exchanges.shared.state.borrow_mut().early = Some(Box::default());
        own.limit = Some(HandshakeLimit::new(deadline));
        (own, requests)
    }

    /// Starts HTTP/3 by QMux on an established transport. No request begins before [`Requests::is_ready`].
    pub fn over_bytes(transport: Transport, settings: qmux::Settings, terms: Terms) -> (Self, Requests) {
        let (about, link) = (About::of(&transport), Link::Qmux(Box::new(qmux::Link::new(false, settings))));
        Self::over(link, terms, about, Some(Box::new((transport, Buffer::empty()))))
    }

    fn over(link: Link, terms: Terms, about: About, wire: Option<Box<(Transport, Buffer)>>) -> (Self, Requests) {
        let control = Control::new(Role::Client, &terms);
        let shared = Shared { link, state: RefCell::new(State::new(Role::Client, terms)) };
        let exchanges = Rc::new(Exchanges { shared, about, answers: Cell::new(0), over: Cell::new(false) });
        let carried: Rc<dyn Carried> = exchanges.clone();
        exchanges.shared.link.carry(Rc::downgrade(&carried));
        drop(carried);
        let requests = Requests(Rc::clone(&exchanges));
        (Self { exchanges, control, wire, limit: None }, requests)
    }

    /// Processes events, and sends. Ready when the connection has ended, also because it is unused.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.exchanges.over.get() {
            return Poll::Ready(());
        }
        loop {
            self.exchanges.shared.link.begin(cx);
            if self.process() || self.obey() || self.poll_limit(cx).is_ready() {
                self.send();
                return Poll::Ready(());
            }
            self.control.send(&mut self.exchanges.shared.link.connection());
            if self.is_unused() {
                control::close(&self.exchanges.shared.link, ErrorCode::NoError);
                self.send();
                self.end();
                return Poll::Ready(());
            }
            let wire = &mut self.wire.as_deref_mut().map(|(transport, input)| Wire { transport, input });
            std::task::ready!(self.exchanges.shared.link.poll_wait(cx, wire.as_mut()));
        }
    }

    /// Sends what is left of a connection of QMux, as far as its transport accepts it at once.
    fn send(&mut self) {
        if let Some((transport, input)) = self.wire.as_deref_mut() {
            self.exchanges.shared.link.send(Some(&mut Wire { transport, input }));
        }
    }

    /// Processes all events. Returns true if the connection has ended.
    fn process(&mut self) -> bool {
        loop {
            let Some(event) = self.exchanges.shared.link.poll_event() else { return false };
            let done = match event {
                Event::StreamsOpened(Direction::Bidirectional) => self.accept(),
                Event::StreamsOpened(Direction::Unidirectional) => {
                    let Shared { link, state } = &self.exchanges.shared;
                    self.control.accept(&mut link.connection(), &mut state.borrow_mut())
                }
                Event::Readable(id) if id.direction() == Direction::Unidirectional => {
                    let Shared { link, state } = &self.exchanges.shared;
                    self.control.read(id, &mut link.connection(), &mut state.borrow_mut())
                }
                Event::Readable(id) => self.note_readable(id),
                Event::Stopped(id, _) if id.direction() == Direction::Unidirectional => {
                    self.control.note_stopped(id).and_then(|()| self.exchanges.shared.note_of_session(id))
                }
                Event::Stopped(id, _) if self.exchanges.shared.state.borrow().stream(id).is_none() => {
                    self.exchanges.shared.note_of_session(id)
                }
                Event::Stopped(id, code) => {
                    // The server needs no more of the request; its answer may still arrive (RFC 9114, section 4.1).
                    self.exchanges.shared.link.connection().reset(id, code);
                    if let Some(cell) = self.exchanges.shared.state.borrow().stream(id) {
                        cell.stopped.set(true);
                    }
                    self.note_writable(id)
                }
                Event::Writable(id) => self.note_writable(id),
                Event::Closed(_) => {
                    self.refuse_early(Unshaken::Failed);
                    self.end();
                    return true;
                }
                Event::Connected => self.end_handshake(),
                Event::Messages => self.exchanges.shared.receive_messages(),
                Event::StreamsAvailable(_) => {
                    self.exchanges.shared.note_room();
                    Ok(())
                }
                Event::Hello | Event::Finished(_) => Ok(()),
            };
            if let Err(error) = done {
                self.exchanges.shared.order(Order::Fail(error.code));
                return false;
            }
        }
    }

    /// Ends the connection after a violation of the protocol. Returns true if it has ended.
    fn obey(&mut self) -> bool {
        let shared = &self.exchanges.shared;
        let code = {
            let state = &mut *shared.state.borrow_mut();
            state.note_idle_frames(shared.link.take_glitches());
            match state.judge() {
                Consequence::None => {}
                Consequence::Leave => state.server.is_closing = true,
                Consequence::Kill => {
                    state.order.get_or_insert(Order::Fail(ErrorCode::ExcessiveLoad));
                }
            }
            match state.order {
                None => return false,
                Some(Order::Fail(code)) => code,
                // Only clients are killed.
                Some(Order::Kill(_)) => ErrorCode::NoError,
            }
        };
        control::close(&shared.link, code);
        self.end();
        true
    }

    /// Ends all requests with the connection.
    fn end(&self) {
        self.exchanges.over.set(true);
        let state = &mut *self.exchanges.shared.state.borrow_mut();
        state.server.is_closing = true;
        state.streams().for_each(|cell| cell.half().fail());
    }

    /// Wakes the task that reads a stream. A task that does not read sees a reset.
    fn note_readable(&self, id: StreamId) -> Result<(), h3::Error> {
        let shared = &self.exchanges.shared;
        let Some(cell) = shared.state.borrow().stream(id) else { return shared.note_of_session(id) };
        let half = &mut *cell.half();
        let is_read = half.has_head && half.arrival == Arrival::Nothing;
        if is_read && half.payload.is_empty() && half.unread.is_empty() {
            shared.read_payload(&cell, half);
        }
        half.wake();
        Ok(())
    }

    /// Goes on with a request that had to wait, or that the server reads no further.
    fn note_writable(&self, id: StreamId) -> Result<(), h3::Error> {
        let shared = &self.exchanges.shared;
        let Some(cell) = shared.state.borrow().stream(id) else { return shared.note_of_session(id) };
        let half = &mut *cell.half();
        let handle = Handle { shared, cell: &cell };
        // A failed stream has no end.
        let _ = if half.complete { handle.finish(half) } else { handle.flush_prefix(half) };
        half.wake();
        Ok(())
    }

    /// Accepts the bidirectional streams that the server has opened: only sessions of WebTransport have some.
    #[cold]
    fn accept(&self) -> Result<(), h3::Error> {
        let Shared { link, state } = &self.exchanges.shared;
        let (streams, state) = (&mut link.connection(), &mut *state.borrow_mut());
        if state.sessions.is_none() {
            return Err(h3::Error::connection(ErrorCode::StreamCreationError));
        }
        while let Some(id) = streams.accept(Direction::Bidirectional) {
            state.begin_stream(id, BeginningReader::new(), Bytes::new(), streams)?;
        }
        Ok(())
    }

    /// Ready when a handshake during which requests were sent has taken too long: the connection has ended then.
    fn poll_limit(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(limit) = &mut self.limit else { return Poll::Pending };
        std::task::ready!(limit.poll(cx));
        self.refuse_early(Unshaken::Expired);
        control::close(&self.exchanges.shared.link, ErrorCode::NoError);
        self.end();
        Poll::Ready(())
    }

    /// Goes on after the handshake with requests that were sent before its end. The server has processed all of them, or has seen
    /// none.
    fn end_handshake(&mut self) -> Result<(), h3::Error> {
        self.limit = None;
        let Exchanges { shared, about, .. } = &*self.exchanges;
        let Some(early) = shared.state.borrow_mut().early.take() else { return Ok(()) };
        shared.state.borrow().streams().for_each(|cell| cell.half().end_early());
        let info = shared.link.handshake_info();
        let speaks = info.as_ref().is_some_and(|info| info.alpn.as_deref() == Some(b"h3"));
        if let Some(info) = info {
            let _ = about.tls.set(info);
        }
        if !speaks {
            // The server has agreed on no protocol (RFC 9001, section 8.1).
            let state = &mut *shared.state.borrow_mut();
            state.server.unshaken = Some(Unshaken::Failed);
            state.note_departure(0);
            return Err(h3::Error::connection(ErrorCode::NoError));
        }
        if !shared.link.is_early_accepted() {
            self.send_again(*early);
        }
        let ids: Vec<StreamId> = self.exchanges.shared.state.borrow().streams().map(|cell| cell.id).collect();
        ids.into_iter().try_for_each(|id| self.note_writable(id))
    }

    /// Opens the streams again whose early data the server has rejected, with the same identifiers. Requests beyond the server's
    /// new limit were not processed.
    fn send_again(&mut self, early: Early) {
        let Shared { link, state } = &self.exchanges.shared;
        let terms = state.borrow().terms;
        self.control = Control::new(Role::Client, &terms);
        for (number, bytes) in (0..).step_by(4).zip(early.into_streams()) {
            let opened = link.connection().open(Direction::Bidirectional);
            let Some(id) = opened else { return state.borrow().refuse_from(number) };
            let cell = state.borrow().stream(id);
            match cell {
                Some(cell) => Handle { shared: &self.exchanges.shared, cell: &cell }.write_again(bytes),
                None => {
                    let code = ErrorCode::RequestCancelled.number();
                    link.connection().stop(id, code);
                    link.connection().reset(id, code);
                }
            }
        }
    }

    /// Marks requests as not processed if the connection has ended before its handshake was complete. A server may have begun with
    /// them; they may be sent twice.
    fn refuse_early(&self, reason: Unshaken) {
        let state = &mut *self.exchanges.shared.state.borrow_mut();
        if state.early.take().is_some() {
            state.server.unshaken = Some(reason);
            state.note_departure(0);
        }
    }

    /// Whether there is no request on it, and none can begin.
    fn is_unused(&self) -> bool {
        let state = self.exchanges.shared.state.borrow();
        (state.server.is_closing || Rc::strong_count(&self.exchanges) == 1) && state.open() == 0
    }

    /// Updates the time.
    pub fn advance(&mut self, now: Moment) {
        self.exchanges.shared.state.borrow_mut().conduct.advance(now);
    }

    /// Returns the counts of a connection of QMux that has ended.
    pub fn end_counts(&self) -> Option<qmux::EndCounts> {
        self.exchanges.shared.link.end_counts()
    }

    /// Takes the counters since the last call.
    pub fn take_counts(&self) -> Counts {
        std::mem::take(&mut self.exchanges.shared.state.borrow_mut().counts)
    }
}

impl Drop for ServerConnection {
    /// Closes the connection; requests that have not ended fail.
    fn drop(&mut self) {
        self.end();
        let link = &self.exchanges.shared.link;
        if !link.is_closed() {
            control::close(link, ErrorCode::NoError);
        }
    }
}

impl Requests {
    pub(super) fn shared(&self) -> &Shared {
        &self.0.shared
    }

    /// Properties of the connection.
    pub fn about(&self) -> &About {
        &self.0.about
    }

    /// Opens a stream for a request.
    pub(super) fn open_stream(&self) -> Option<Rc<StreamCell>> {
        let Shared { link, state } = &self.0.shared;
        let state = &mut *state.borrow_mut();
        if state.server.is_closing || state.open() >= state.terms.max_streams || link.is_closed() {
            return None;
        }
        if state.early.as_ref().is_some_and(|early| !early.takes_stream()) {
            return None;
        }
        let id = link.connection().open(Direction::Bidirectional)?;
        let cell = Rc::new(StreamCell::new(id, MessageReader::new(Role::Client, state.terms.max_head)));
        cell.heard.set(link.heard());
        state.begin_request(Rc::clone(&cell));
        Some(cell)
    }

    /// Counts an answer that was received whole.
    pub(super) fn note_answer(&self) {
        self.0.answers.set(self.0.answers.get().saturating_add(1));
    }

    /// Whether no more requests can begin on it.
    pub fn is_closing(&self) -> bool {
        self.0.shared.state.borrow().server.is_closing
    }

    /// Wakes the connection's task.
    pub fn wake(&self) {
        self.0.shared.link.wake();
    }

    /// Whether requests can begin: over QMux, the server's parameters were received.
    pub fn is_ready(&self) -> bool {
        self.0.shared.link.is_ready()
    }

    /// Whether the server has sent its SETTINGS.
    pub fn is_settled(&self) -> bool {
        self.0.shared.state.borrow().server.extends.is_some()
    }

    /// The number of requests in progress.
    pub fn open(&self) -> usize {
        self.0.shared.state.borrow().open()
    }

    /// Lets no more requests begin; the connection ends with the last one.
    pub fn close(&self) {
        self.0.shared.state.borrow_mut().server.is_closing = true;
        self.wake();
    }

    /// The number of the server's glitches on this connection.
    pub fn glitches(&self) -> u32 {
        self.0.shared.state.borrow().conduct.glitches()
    }

    /// Whether the handshake is not complete: a request that begins may be sent as early data.
    pub fn is_early(&self) -> bool {
        self.0.shared.state.borrow().early.is_some()
    }

    /// Returns why the connection has ended before its handshake was complete, if requests were sent on it.
    pub fn unshaken(&self) -> Option<Unshaken> {
        self.0.shared.state.borrow().server.unshaken
    }

    /// Queries about the socket of the connection.
    pub fn socket(&self) -> SocketQuery {
        self.0.about.socket
    }

    /// The result of the handshake, once it is complete.
    pub fn handshake_info(&self) -> Option<&Arc<HandshakeInfo>> {
        self.0.about.tls.get()
    }

    /// The number of requests that may be in progress at a time.
    pub fn limit(&self) -> usize {
        self.0.shared.state.borrow().terms.max_streams
    }

    /// Whether both are handles of the same connection.
    pub fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// The number of answers received whole.
    pub fn answers(&self) -> u32 {
        self.0.answers.get()
    }
}
