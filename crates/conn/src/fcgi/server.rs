//! A multiplexed FastCGI connection, as seen by the task that moves its records. FastCGI has no flow control: if the
//! output of one request is not read, the others wait for its reader for a limited time. Must never interpret a
//! request.

use std::cell::{Cell, RefCell};
use std::io::IoSlice;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::buffer::Buffer;
use base::moment::Moment;
use rt::net::SocketQuery;
use tls::HandshakeInfo;
use wire::fcgi::{Decoder, Malformed, Piece};

use super::control::{Control, Requests};
use super::request::Request;
use super::state::{State, Terms};
use crate::server_info::About;
use crate::transport::Transport;

/// The most reads of one poll.
const READS: usize = 16;

/// How long other requests wait for the reader of a request whose buffers are full, until that request is aborted.
const STALL: Duration = Duration::from_secs(1);

/// A connection as seen by the task that moves its records.
pub struct ServerConnection {
    transport: Transport,
    control: Rc<Control>,
    decoder: Decoder,
    input: Buffer,
    now: Moment,
    /// The request whose reader blocks the connection, and since when other requests wait for it.
    stalled: Option<(u16, Option<Moment>)>,
}

impl ServerConnection {
    /// Starts FastCGI on an established transport.
    pub fn new(transport: Transport, terms: Terms, now: Moment) -> (Self, Requests) {
        let control = Rc::new(Control {
            state: RefCell::new(State::new(terms)),
            about: About::of(&transport),
            early: Cell::new(!transport.is_whole()),
        });
        let requests = Requests(Rc::clone(&control));
        let decoder = Decoder::for_several();
        (Self { transport, control, decoder, input: Buffer::empty(), now, stalled: None }, requests)
    }

    /// Moves records in both directions. Ready when the connection has ended.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.control.state.borrow_mut().mover = Some(cx.waker().clone());
        let read = self.receive(cx);
        let sent = self.send(cx);
        if self.control.early.get() {
            self.meet_handshake();
        }
        if read.is_err() || sent.is_err() || self.transport.has_refused_early() {
            self.control.state.borrow_mut().fail();
            return Poll::Ready(());
        }
        if self.is_unused() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Handles the end of a handshake during which early data was sent.
    fn meet_handshake(&mut self) {
        if self.transport.has_refused_early() {
            // The application has not received any of the requests.
            self.control.state.borrow_mut().refuse();
        }
        if let Some(info) = self.transport.handshake_info() {
            let _ = self.control.about.tls.set(Arc::clone(info));
            self.control.early.set(false);
        }
    }

    /// Updates the time, and aborts a request that blocks the others for too long.
    pub fn advance(&mut self, now: Moment) {
        self.now = now;
        let Some((request, since)) = self.stalled else { return };
        let state = &mut *self.control.state.borrow_mut();
        if state.live() < 2 {
            self.stalled = Some((request, None));
        } else if since.is_none() {
            self.stalled = Some((request, Some(now)));
        } else if since.is_some_and(|since| now >= since + STALL) {
            state.give_up(request);
            self.stalled = None;
        }
    }

    /// When [`Self::advance`] has to be called at the latest.
    pub fn deadline(&self) -> Option<Moment> {
        self.stalled.and_then(|(_, since)| since).map(|since| since + STALL)
    }

    /// Whether there is no request on it, and none can begin.
    fn is_unused(&self) -> bool {
        let state = self.control.state.borrow();
        (state.is_closing() || Rc::strong_count(&self.control) == 1) && state.live() == 0
    }

    fn send(&mut self, cx: &mut Context<'_>) -> Result<(), ConnectionBroken> {
        let state = &mut *self.control.state.borrow_mut();
        while !state.output.is_empty() {
            match self.transport.poll_write_slices(cx, &[IoSlice::new(&state.output)], false) {
                Poll::Ready(Ok(written)) if written > 0 => state.note_written(written),
                Poll::Ready(_) => return Err(ConnectionBroken),
                Poll::Pending => break,
            }
        }
        Ok(())
    }

    fn receive(&mut self, cx: &mut Context<'_>) -> Result<(), ConnectionBroken> {
        for _ in 0..READS {
            if !self.decode().map_err(|Malformed| ConnectionBroken)? {
                return Ok(());
            }
            if self.input.capacity() == 0 {
                if self.transport.poll_readable(cx).is_pending() {
                    return Ok(());
                }
                self.input = rt::buffer();
            }
            self.input.compact();
            let read = self.transport.poll_read(cx, &mut self.input);
            if self.input.is_empty() {
                self.input = Buffer::empty();
            }
            match read {
                Poll::Ready(Ok(1..)) => self.control.state.borrow_mut().heard += 1,
                Poll::Ready(Ok(0) | Err(_)) => return Err(ConnectionBroken),
                Poll::Pending => return Ok(()),
            }
        }
        // Yield to other tasks before reading more from an application that sends nothing of use.
        cx.waker().wake_by_ref();
        Ok(())
    }

    /// Decodes the input. Returns false if a reader has to free space first.
    fn decode(&mut self) -> Result<bool, Malformed> {
        let state = &mut *self.control.state.borrow_mut();
        let mut is_stalled = None;
        while !self.input.is_empty() {
            let output = self.decoder.output_of();
            let room = output.map_or(0, |request| state.room(request));
            let (used, piece) = self.decoder.next(self.input.data(), room)?;
            let request = self.decoder.request();
            let fits = match piece {
                None => true,
                Some(Piece::Output(data)) => state.take_output(request, data, self.decoder.has_whole_content()),
                Some(Piece::OutputEnded) => state.end_output(request),
                Some(Piece::Error { data, whole }) => state.take_error(request, data, whole),
                Some(Piece::Ended(status)) => state.end(request, status),
                Some(Piece::Values { data, whole }) => {
                    state.take_values(data, whole);
                    true
                }
            };
            if !fits {
                return Err(Malformed);
            }
            let took_nothing = used == 0 && piece.is_none();
            self.input.consume(used);
            if took_nothing {
                is_stalled = self.decoder.output_of();
                break;
            }
        }
        if self.input.is_empty() {
            self.input = Buffer::empty();
        }
        self.stalled = match (is_stalled, self.stalled) {
            (Some(request), Some((same, since))) if same == request => Some((request, since)),
            (Some(request), _) => Some((request, (state.live() > 1).then_some(self.now))),
            (None, _) => None,
        };
        Ok(self.stalled.is_none())
    }
}

/// The connection has ended, or its peer violates the protocol.
struct ConnectionBroken;

impl Requests {
    /// Begins a request; `None`: the maximum is in progress, or the connection is about to end.
    pub fn begin(&self) -> Option<Request> {
        let number = self.0.state.borrow_mut().begin()?;
        Some(Request::new(self.clone(), number))
    }

    /// Whether no more requests can begin on it.
    pub fn is_closing(&self) -> bool {
        self.0.state.borrow().is_closing()
    }

    /// The number of requests in progress.
    pub fn open(&self) -> usize {
        self.0.state.borrow().open()
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

    /// Lets no more requests begin; the connection ends with the last one.
    pub fn close(&self) {
        let mut state = self.0.state.borrow_mut();
        state.closing = true;
        state.wake_mover();
    }

    /// The number of requests that may be in progress at a time.
    pub fn limit(&self) -> usize {
        self.0.state.borrow().limit()
    }

    /// Whether both are handles of the same connection.
    pub fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// The number of answers received whole.
    pub fn answers(&self) -> u32 {
        self.0.state.borrow().answers
    }
}
