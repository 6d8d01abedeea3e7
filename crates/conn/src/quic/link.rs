//! One QUIC connection: its handshake, its events, the datagrams that it sends and its deadlines. Must never
//! know what its streams carry.

use std::cell::{Cell, OnceCell, RefCell, RefMut};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quic::cid::HandshakeIds;
use quic::qlog::Subject;
use quic::{Closed, Event, Handle, Input};
use rt::net::ReceiveBatch;
use tls::HandshakeInfo;

use super::closing::{Closing, LastPacket};
use super::socket::{DatagramReceiver, Socket, with_out};
use super::timed::TimedConnection;
use super::trace::{LinkTrace, QlogSink};
use super::views::{Carried, CloseCode, LinkCounts};

/// A connection to a peer. Dropping it closes the connection.
pub struct Link(pub(super) Rc<State>);

/// A connection, shared by its tasks and the listener.
pub(super) struct State {
    pub(super) socket: Rc<Socket>,
    handle: Handle,
    pub(super) connection: RefCell<TimedConnection>,
    /// The session's task.
    task: RefCell<Option<Waker>>,
    /// The tag of that task, for panics.
    tag: Cell<u64>,
    timer: RefCell<rt::Timer>,
    /// Events of the handshake's time that concern streams.
    early: RefCell<VecDeque<Event>>,
    /// The code with which the connection is closed.
    code: Cell<u64>,
    /// Whether its client is not to be answered (`silent-drop`).
    silent: Cell<bool>,
    /// Whether the machine has forgotten the connection.
    drained: Cell<bool>,
    /// The client's address, to recognize that it has changed, and how often it has.
    peer: Cell<SocketAddr>,
    pub(super) migrations: Cell<u64>,
    /// Events that were taken.
    pub(super) counted: Cell<LinkCounts>,
    /// The code with which the peer has closed the connection.
    pub(super) close_code: Cell<Option<CloseCode>>,
    /// The protocol that it carries.
    pub(super) carried: RefCell<Option<Weak<dyn Carried>>>,
    /// Whether its task receives the datagrams of the socket, which carries nothing else.
    pub(super) owns_socket: bool,
    /// Datagrams received.
    heard: Cell<u64>,
    /// Whether processing a datagram has panicked: the connection has ended.
    broken: Cell<bool>,
    /// The packet that has informed the peer of the end.
    last: RefCell<Option<Box<LastPacket>>>,
    /// Its qlog.
    trace: OnceCell<Box<LinkTrace>>,
}

/// Why a handshake has failed.
pub struct HandshakeFailure {
    /// How the connection has ended.
    pub closed: Closed,
    /// The result of the negotiation before the failure.
    pub info: Option<Arc<HandshakeInfo>>,
}

impl DatagramReceiver for State {
    /// Processes a datagram. A panic ends the connection's session.
    fn receive(&self, input: Input) {
        if self.silent.get() || self.broken.get() {
            return;
        }
        self.heard.set(self.heard.get().wrapping_add(1));
        self.broken.set(true);
        rt::contain(self.tag.get(), || {
            let connection = &mut *self.connection.borrow_mut();
            connection.receive(input);
            let peer = connection.peer();
            if self.peer.replace(peer) != peer {
                self.migrations.set(self.migrations.get() + 1);
            }
            if let Some(trace) = self.trace.get() {
                trace.note_received(connection);
            }
            self.broken.set(false);
        });
        self.wake();
    }

    fn handshake(&self) -> Option<HandshakeIds> {
        self.connection.borrow().handshake_ids()
    }
}

impl State {
    /// The address of the listening socket.
    pub(super) fn listening(&self) -> SocketAddr {
        self.socket.socket.local_address()
    }

    fn wake(&self) {
        if let Some(task) = self.task.borrow_mut().take() {
            task.wake();
        }
    }

    /// Exchanges what the connection and the machine have for each other.
    fn settle(&self) {
        if !self.drained.get() && !self.socket.machine.borrow_mut().settle(&mut self.connection.borrow_mut()) {
            self.drained.set(true);
        }
    }

    /// Receives one batch of datagrams of the socket that the connection owns. Returns false if there is none.
    fn receive_own(&self, cx: &mut Context<'_>) -> bool {
        let mut batch = ReceiveBatch::new();
        let Poll::Ready(Ok(())) = self.socket.socket.poll_receive(cx, &mut batch) else { return false };
        // This task goes on anyway.
        self.task.borrow_mut().take();
        for message in batch.iter() {
            Socket::each(&message, &mut |datagram| {
                // No client connects to this socket.
                let ignore = &mut |incoming| self.socket.machine.borrow_mut().ignore(incoming);
                rt::contain(self.tag.get(), || self.socket.receive(datagram, ignore));
            });
        }
        true
    }

    /// Sends what can be sent. Returns false if the socket is full.
    fn send(&self) -> bool {
        let connection = &mut *self.connection.borrow_mut();
        let most = self.socket.socket.most_segments();
        with_out(|out| {
            while let Some(transmit) = connection.transmit(most, out) {
                if let Some(trace) = self.trace.get() {
                    trace.note_sent(&transmit, connection);
                }
                if connection.is_closed() {
                    self.last.replace(Some(Box::new(LastPacket::new(&transmit, out))));
                }
                if !self.socket.send(&transmit, out) {
                    return false;
                }
            }
            true
        })
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.socket.leave(self.handle);
        if self.drained.get() {
            return;
        }
        // Packets cannot be late at a socket that carries nothing else: it ends with its connection.
        let may_be_late = !self.owns_socket && !self.silent.get() && !self.broken.get();
        match self.connection.get_mut().deadline().filter(|_| may_be_late) {
            Some(end) => {
                // Nothing is sent to a peer that has ended the connection.
                let last = self.last.take().filter(|_| self.close_code.get().is_none());
                let closing = Closing::new(self.peer.get(), last);
                self.socket.close(self.handle, closing, end);
            }
            None => self.socket.machine.borrow_mut().forget(self.handle),
        }
    }
}

impl Link {
    /// A connection of a client, whose datagrams the listener hands over.
    pub(super) fn new(socket: &Rc<Socket>, handle: Handle, connection: TimedConnection) -> Self {
        Self::over(socket, handle, connection, false)
    }

    /// A connection to a server, which receives from its own socket.
    pub(super) fn owning(socket: &Rc<Socket>, handle: Handle, connection: TimedConnection) -> Self {
        Self::over(socket, handle, connection, true)
    }

    fn over(socket: &Rc<Socket>, handle: Handle, connection: TimedConnection, owns_socket: bool) -> Self {
        let state = Rc::new(State {
            socket: Rc::clone(socket),
            handle,
            peer: Cell::new(connection.peer()),
            connection: RefCell::new(connection),
            task: RefCell::default(),
            tag: Cell::new(u64::MAX),
            timer: RefCell::new(rt::Timer::new()),
            early: RefCell::default(),
            code: Cell::new(0),
            silent: Cell::new(false),
            drained: Cell::new(false),
            migrations: Cell::new(0),
            counted: Cell::default(),
            close_code: Cell::new(None),
            carried: RefCell::default(),
            owns_socket,
            heard: Cell::new(0),
            broken: Cell::new(false),
            last: RefCell::default(),
            trace: OnceCell::new(),
        });
        let receiver: Rc<dyn DatagramReceiver> = state.clone();
        socket.enter(handle, Rc::downgrade(&receiver));
        Self(state)
    }

    /// Sets the tag of the session's task: a panic while a datagram is processed is one of that task.
    pub fn set_tag(&self, tag: u64) {
        self.0.tag.set(tag);
    }

    /// Sets what the connection carries.
    pub(crate) fn carry(&self, carried: Weak<dyn Carried>) {
        *self.0.carried.borrow_mut() = Some(carried);
    }

    /// Traces the connection from now on. `title` names it for a reader.
    pub fn trace(&self, title: String, sink: Box<dyn QlogSink>) {
        let own = SocketAddr::new(self.local().unwrap_or(self.listening().ip()), self.listening().port());
        let subject = Subject { title, is_server: !self.0.owns_socket, addresses: [own, self.peer()] };
        let trace = LinkTrace::new(&subject, sink);
        // What was received before is recorded as well.
        trace.note_received(&self.connection());
        let _ = self.0.trace.set(Box::new(trace));
    }

    /// The number of datagrams received.
    pub fn heard(&self) -> u64 {
        self.0.heard.get()
    }

    /// Borrows the connection, to read and write streams.
    #[inline]
    pub(crate) fn connection(&self) -> RefMut<'_, TimedConnection> {
        self.0.connection.borrow_mut()
    }

    /// The peer's address; that of a client may change.
    pub fn peer(&self) -> SocketAddr {
        self.0.connection.borrow().peer()
    }

    /// The address that the peer has sent to, without its port; `None`: unknown.
    pub fn local(&self) -> Option<IpAddr> {
        self.0.connection.borrow().local()
    }

    /// Returns the smoothed round-trip time.
    pub(crate) fn round_trip(&self) -> Duration {
        self.0.connection.borrow().statistics().rtt
    }

    /// The address of the socket.
    pub fn listening(&self) -> SocketAddr {
        self.0.listening()
    }

    /// Wakes the session's task: something has to be sent.
    #[inline]
    pub(crate) fn wake(&self) {
        self.0.wake();
    }

    /// Ready when the handshake is complete, or when early data was received.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn poll_handshake(&self, cx: &mut Context<'_>) -> Poll<Result<Option<Arc<HandshakeInfo>>, HandshakeFailure>> {
        loop {
            self.begin(cx);
            loop {
                let event = if self.0.broken.get() { self.poll_event() } else { self.connection().poll_event() };
                match event {
                    None => break,
                    Some(Event::Hello) => {}
                    Some(Event::Connected) => {
                        self.note(&Event::Connected);
                        // The answer to the handshake leaves with the first answers, or when these are waited for.
                        return Poll::Ready(Ok(self.handshake_info()));
                    }
                    Some(Event::Closed(closed)) => {
                        self.0.close_code.set(CloseCode::of(&closed));
                        self.note(&Event::Closed(closed.clone()));
                        let info = self.handshake_info();
                        self.0.send();
                        return Poll::Ready(Err(HandshakeFailure { closed, info }));
                    }
                    Some(other) => {
                        self.0.early.borrow_mut().push_back(other);
                        if self.handshake_info().is_some_and(|info| info.is_early()) {
                            return Poll::Ready(Ok(self.handshake_info()));
                        }
                    }
                }
            }
            std::task::ready!(self.poll_wait(cx));
        }
    }

    /// Whether requests can be sent to the server although the handshake is in progress: a session permits early data.
    pub fn may_send_early(&self) -> bool {
        let connection = self.0.connection.borrow();
        connection.is_handshaking() && connection.may_send_early()
    }

    /// The result of the handshake, as far as it is known.
    pub fn handshake_info(&self) -> Option<Arc<HandshakeInfo>> {
        self.connection().handshake_info().map(Arc::new)
    }

    /// Begins a step of the session's task: it is woken by the next datagram, and deadlines that have passed are
    /// processed.
    pub(crate) fn begin(&self, cx: &Context<'_>) {
        let state = &*self.0;
        match &mut *state.task.borrow_mut() {
            Some(task) => task.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        state.connection.borrow_mut().expire();
        state.settle();
    }

    /// Returns the next event.
    pub(crate) fn poll_event(&self) -> Option<Event> {
        if self.0.broken.get() {
            return Some(Event::Closed(Closed::Local));
        }
        if let Some(early) = self.0.early.borrow_mut().pop_front() {
            return Some(early);
        }
        let event = self.connection().poll_event();
        if let Some(Event::Closed(closed)) = &event {
            self.0.close_code.set(CloseCode::of(closed));
        }
        if let Some(event) = &event {
            self.note(event);
        }
        event
    }

    /// Adds an event to its qlog, if it has one.
    #[inline]
    fn note(&self, event: &Event) {
        if let Some(trace) = self.0.trace.get() {
            trace.note_event(event);
        }
    }

    /// Sends what there is, and waits for the next deadline and the next datagram. Ready if one was received here.
    pub(crate) fn poll_wait(&self, cx: &mut Context<'_>) -> Poll<()> {
        let state = &*self.0;
        if state.socket.is_full() || !state.send() {
            state.socket.wait(cx);
            if state.owns_socket {
                state.socket.poll_unsent(cx);
            }
        }
        state.settle();
        if state.owns_socket && state.receive_own(cx) {
            if !rt::slice_is_over() {
                return Poll::Ready(());
            }
            // Other tasks run before the next batch.
            cx.waker().wake_by_ref();
        }
        let deadline = state.connection.borrow_mut().deadline();
        let timer = &mut *state.timer.borrow_mut();
        timer.arm(deadline);
        // It has not expired: the deadline is later.
        let _ = timer.poll_expired(cx);
        Poll::Pending
    }

    /// Sends what can be sent without waiting.
    pub(crate) fn send(&self) {
        if !self.0.socket.is_full() {
            self.0.send();
        }
        self.0.settle();
    }

    /// Whether the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.broken.get() || self.0.connection.borrow().is_closed()
    }

    /// Closes the connection with a code of the application's protocol.
    pub(crate) fn close(&self, code: u64, reason: &[u8]) {
        if !self.0.silent.get() && !self.0.broken.get() {
            self.connection().close(code, reason);
            self.send();
        }
    }

    /// Sets the code with which the connection is closed when this is dropped.
    pub(crate) fn close_with(&self, code: u64) {
        self.0.code.set(code);
    }

    /// Ends the connection without notice to the client.
    pub fn forget(&self) {
        if !self.0.silent.replace(true) {
            self.0.socket.keep_silent(self.0.clone());
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if self.0.broken.get() || self.0.silent.get() {
            return;
        }
        // The peer may have ended it.
        while self.poll_event().is_some() {}
        if !self.is_closed() {
            self.close(self.0.code.get(), &[]);
        }
    }
}
