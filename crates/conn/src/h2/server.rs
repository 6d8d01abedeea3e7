//! A connection to a server: requests begin on it, and its answers are received. Must never know what either contains.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::buffer::Buffer;
use base::moment::Moment;
use rt::net::SocketQuery;
use tls::HandshakeInfo;
use wire::h2::{ErrorCode, PREFACE};

use super::control::{Control, Requests};
use super::mover::{Mover, Packed};
use super::request::Request;
use super::{Counts, Ping, Role, Terms};
use crate::server_info::About;
use crate::transport::{Parked, Transport};

/// A connection as seen by the task that moves its frames.
pub struct ServerConnection {
    transport: Transport,
    input: Buffer,
    mover: Mover,
    control: Rc<Control>,
}

impl ServerConnection {
    /// Starts HTTP/2 on an established transport.
    pub fn new(transport: Transport, terms: Terms) -> (Self, Requests) {
        Self::over(transport, Buffer::empty(), Mover::new(Role::Client, terms))
    }

    /// Takes over a connection that the server has opened: its input begins with the preface, which the server sends
    /// then (reverse HTTP).
    pub fn reversed(transport: Transport, mut input: Buffer, terms: Terms) -> (Self, Requests) {
        input.consume(PREFACE.len());
        Self::over(transport, input, Mover::asking(terms))
    }

    fn over(transport: Transport, input: Buffer, mover: Mover) -> (Self, Requests) {
        let control = Rc::new(Control {
            state: Rc::clone(&mover.state),
            about: About::of(&transport),
            answers: Cell::new(0),
            early: Cell::new(!transport.is_whole()),
        });
        let requests = Requests(Rc::clone(&control));
        (Self { transport, input, mover, control }, requests)
    }

    /// Moves frames in both directions. Ready when the connection has ended.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_unused() {
            self.mover.announce(ErrorCode::NoError);
        }
        let polled = self.mover.poll(cx, &mut self.transport, &mut self.input);
        if self.control.early.get() {
            self.meet_handshake();
        }
        match polled {
            Poll::Ready(_) => Poll::Ready(()),
            // The remaining output is not written if the server does not accept it.
            Poll::Pending if self.mover.is_over() => Poll::Ready(()),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Handles the end of a handshake during which early data was sent.
    fn meet_handshake(&mut self) {
        if self.transport.has_refused_early() {
            // The server has not received any of the requests.
            self.mover.state.borrow_mut().go_away(0);
        }
        if let Some(info) = self.transport.handshake_info() {
            let _ = self.control.about.tls.set(Arc::clone(info));
            self.control.early.set(false);
        }
    }

    /// Sends a PING every `interval` to the server of an idle connection.
    pub fn ping(&mut self, now: Moment, interval: Duration) -> Ping {
        self.mover.ping(now, interval)
    }

    /// Updates the time.
    pub fn advance(&mut self, now: Moment) {
        self.mover.advance(now);
    }

    /// Takes the counters since the last call.
    pub fn take_counts(&self) -> Counts {
        self.mover.take_counts()
    }

    /// Whether another worker may take it over: no request is in progress, and no part of a frame was received.
    pub fn is_movable(&self) -> bool {
        let state = self.mover.state.borrow();
        let is_at_rest = state.is_unused() && state.waiting() == 0 && !state.is_closing();
        is_at_rest && self.transport.is_movable() && !self.control.early.get() && !self.mover.is_over()
    }

    /// Makes it plain data, for another worker. To its other handles it has ended.
    pub fn pack(self) -> MovedConnection {
        let Self { transport, input, mover, control } = self;
        MovedConnection {
            parked: transport.park(),
            input: input.data().to_vec(),
            packed: mover.pack(),
            answers: control.answers.get(),
        }
    }

    /// Whether there is no request on it, and none can begin.
    fn is_unused(&self) -> bool {
        let state = self.mover.state.borrow();
        (state.is_closing() || Rc::strong_count(&self.control) == 1) && state.open() == 0
    }
}

/// A connection on its way to another worker.
pub struct MovedConnection {
    parked: Parked,
    input: Vec<u8>,
    packed: Packed,
    answers: u32,
}

impl MovedConnection {
    /// Resumes the connection on the current worker. `None`: it is lost.
    pub fn unpack(self) -> Option<(ServerConnection, Requests)> {
        let transport = self.parked.take_over()?;
        let mut input = rt::buffer();
        if !input.push(&self.input) {
            return None;
        }
        let (connection, requests) = ServerConnection::over(transport, input, self.packed.unpack());
        requests.0.answers.set(self.answers);
        Some((connection, requests))
    }
}

impl Requests {
    /// Begins a request; `None`: the maximum is in progress, or the connection is about to end.
    pub fn begin(&self) -> Option<Request> {
        let cell = self.0.state.borrow_mut().begin_request()?;
        Some(Request::new(self.clone(), cell))
    }

    /// Whether no more requests can begin on it.
    pub fn is_closing(&self) -> bool {
        self.0.state.borrow().is_closing()
    }

    /// Wakes the connection's task.
    pub fn wake(&self) {
        self.0.state.borrow_mut().wake();
    }

    /// Whether the server has sent its SETTINGS.
    pub fn is_settled(&self) -> bool {
        self.0.state.borrow().peer.extends.is_some()
    }

    /// The number of requests in progress.
    pub fn open(&self) -> usize {
        self.0.state.borrow().open()
    }

    /// Lets no more requests begin; the connection ends with the last one.
    pub fn close(&self) {
        let mut state = self.0.state.borrow_mut();
        state.closing.begun = true;
        state.wake();
    }

    /// The number of the server's glitches on this connection.
    pub fn glitches(&self) -> u32 {
        self.0.state.borrow().conduct.glitches()
    }

    /// Whether the handshake is not complete: a request that begins may be sent as early data.
    pub fn is_early(&self) -> bool {
        self.0.early.get()
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
        let state = self.0.state.borrow();
        state.most_streams()
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
