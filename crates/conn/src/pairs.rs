//! A protocol for tests: two streams at a time on one connection. Owns the streams as requests see them; must never know
//! how frames are read and written.
//!
//! A connection begins with [`PREFACE`]. A frame is its kind, the number of its stream, two bytes of length, and so many
//! bytes. Heads are texts of HTTP/1 without framing fields other than `content-length`; payload is uncoded, and each side
//! sends at most [`WINDOW`] bytes of it for which it got no credit yet.

mod connection;
mod frame;

pub use crate::h1::preface::PREFACE;
pub use connection::Connection;
pub use frame::{Kind, frame};

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use base::buffer::Buffer;
use rt::net::Hangup;
use wire::h1::{self, ConnectionLine, Edits, Limits, Overflow, Parse, RequestContext, Scan};
use wire::http::{Framing, Head, Method};

use crate::flow::{ByteSink, ByteSource, shrink};
use crate::h1::server::{fits, grow, make_room};
use crate::h1::{Received, UnreadBody};

/// Streams at a time.
pub const MOST_STREAMS: usize = 2;

/// Bytes of payload that may be on their way in each direction of a stream.
pub const WINDOW: usize = 4096;

/// What the connection keeps of a stream.
struct Half {
    number: u8,
    /// Its task has let go of it.
    left: bool,
    /// The text of its request's head, until the task has taken it, and whether it ends the request.
    head: Option<(Vec<u8>, bool)>,
    /// Payload that was received and not taken.
    incoming: Vec<u8>,
    /// The client has sent all of it.
    ended: bool,
    /// The client has reset it, or the connection is gone.
    failed: bool,
    /// Bytes that were taken and for which the client has no credit yet.
    owed: usize,
    /// Frames that wait for the connection.
    outgoing: Vec<u8>,
    /// Bytes of payload that may still be sent.
    credit: usize,
    /// Its task, where that waits.
    task: Option<Waker>,
}

impl Half {
    fn wake(&mut self) {
        if let Some(task) = self.task.take() {
            task.wake();
        }
    }

    fn wait(&mut self, cx: &Context<'_>) {
        self.task = Some(cx.waker().clone());
    }
}

/// What a connection and its streams share.
#[derive(Default)]
struct Shared {
    halves: RefCell<Vec<Half>>,
    /// The connection's task.
    task: RefCell<Option<Waker>>,
}

impl Shared {
    /// The connection has something to do.
    fn wake(&self) {
        let task = self.task.borrow_mut().take();
        if let Some(task) = task {
            task.wake();
        }
    }

    /// Uses the half of a stream; `None`: the connection has ended, and forgotten it.
    fn with<T>(&self, number: u8, with: impl FnOnce(&mut Half) -> T) -> Option<T> {
        self.halves.borrow_mut().iter_mut().find(|half| half.number == number).map(with)
    }
}

/// A stream, as the task sees it that serves its request.
pub struct Stream {
    shared: Rc<Shared>,
    number: u8,
    /// What was taken from the connection and not used yet.
    input: Buffer,
    /// The head of a prepared answer was sent: what follows is payload.
    answering: bool,
    /// The answer was sent to its end.
    complete: Cell<bool>,
}

impl Stream {
    fn gone() -> io::Error {
        io::ErrorKind::ConnectionReset.into()
    }

    /// What was taken from the connection and not used.
    pub fn received(&self) -> &[u8] {
        self.input.data()
    }

    /// Whether a head or something of a body is here.
    pub fn has_received(&self) -> bool {
        !self.input.is_empty() || self.shared.with(self.number, |half| half.head.is_some()).unwrap_or(false)
    }

    /// Takes what was taken from the connection and not used.
    pub fn take_received(&mut self) -> Buffer {
        std::mem::replace(&mut self.input, Buffer::empty())
    }

    /// Gives an empty buffer back.
    pub fn release(&mut self) {
        if self.input.is_empty() {
            self.input = Buffer::empty();
        }
    }

    /// Ready when a read returns something.
    pub fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let ready = self.shared.with(self.number, |half| {
            let ready = half.failed || half.ended || half.head.is_some() || !half.incoming.is_empty();
            if !ready {
                half.wait(cx);
            }
            ready
        });
        if ready.unwrap_or(true) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Whether a read returns something.
    pub fn is_readable(&mut self) -> bool {
        self.poll_readable(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// Parses the request's head.
    pub fn take_head(&mut self, limits: &Limits, scan: &mut Scan, head: &mut Head) -> Received {
        let Some(Some((text, alone))) = self.shared.with(self.number, |half| half.head.take()) else {
            return Received::Closed;
        };
        match h1::parse_request(&text, limits, scan, head) {
            Ok(Parse::Complete { consumed }) if consumed == text.len() && fits(head, consumed, limits.max_head) => {}
            Ok(Parse::Complete { consumed }) if consumed == text.len() => return Received::Invalid { status: 431 },
            _ => return Received::Invalid { status: 400 },
        }
        if head.framing == Framing::Chunked || head.upgrade || head.known_method() == Method::Connect {
            return Received::Invalid { status: 400 };
        }
        match (alone, head.framing) {
            (true, Framing::None | Framing::Length(0)) | (false, Framing::Length(_)) => {}
            (true, _) => return Received::Invalid { status: 400 },
            (false, _) => head.framing = Framing::Chunked,
        }
        Received::Head { body: UnreadBody::uncoded(head), length: text.len() }
    }

    /// Writes an answer that is a text of HTTP/1: its head is whole in the first call.
    ///
    /// # Errors
    /// The stream's; `InvalidData` where the text is no answer.
    pub fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.answering {
            return self.poll_payload(cx, bytes);
        }
        let mut head = Head::new();
        let limits = Limits { max_head: bytes.len(), ..Limits::default() };
        let parsed = h1::parse_response(bytes, &limits, &RequestContext::default(), &mut Scan::default(), &mut head);
        let Ok(Parse::Complete { consumed }) = parsed else {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        };
        let mut text = Buffer::with_capacity(bytes.len() + 256);
        let edits = Edits { framing: head.framing, version: head.version(), ..Edits::interim() };
        if encode(self.number, &head, &edits, &mut text).is_err() {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        std::task::ready!(self.poll_frames(cx, &mut text))?;
        self.answering = head.status() >= 200;
        Poll::Ready(Ok(consumed))
    }

    /// Its number on the connection.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// Hands whole frames to the connection.
    fn poll_frames(&mut self, cx: &mut Context<'_>, frames: &mut Buffer) -> Poll<io::Result<()>> {
        let taken = self.shared.with(self.number, |half| {
            if half.failed {
                return Err(Self::gone());
            }
            if half.outgoing.len() >= WINDOW {
                half.wait(cx);
                return Ok(false);
            }
            half.outgoing.extend_from_slice(frames.data());
            Ok(true)
        });
        match taken {
            None => Poll::Ready(Err(Self::gone())),
            Some(Err(error)) => Poll::Ready(Err(error)),
            Some(Ok(false)) => Poll::Pending,
            Some(Ok(true)) => {
                frames.clear();
                self.shared.wake();
                Poll::Ready(Ok(()))
            }
        }
    }

    /// Hands payload to the connection, as much as the client has given credit for.
    fn poll_payload(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let taken = self.shared.with(self.number, |half| {
            let most = bytes.len().min(half.credit);
            if half.failed {
                return Err(Self::gone());
            }
            if half.outgoing.len() >= WINDOW || most == 0 && !bytes.is_empty() {
                half.wait(cx);
                return Ok(None);
            }
            frame::push(&mut half.outgoing, Kind::Data, half.number, &bytes[..most]);
            half.credit -= most;
            Ok(Some(most))
        });
        match taken {
            None => Poll::Ready(Err(Self::gone())),
            Some(Err(error)) => Poll::Ready(Err(error)),
            Some(Ok(None)) => Poll::Pending,
            Some(Ok(Some(sent))) => {
                self.shared.wake();
                Poll::Ready(Ok(sent))
            }
        }
    }

    /// All of the answer was written.
    pub fn complete(&self) {
        if !self.complete.replace(true) {
            self.shared.with(self.number, |half| frame::push(&mut half.outgoing, Kind::End, half.number, &[]));
            self.shared.wake();
        }
    }

    /// Ready when the client has reset the stream or the connection has ended.
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<Hangup> {
        let failed = self.shared.with(self.number, |half| {
            if !half.failed {
                half.wait(cx);
            }
            half.failed
        });
        if failed.unwrap_or(true) { Poll::Ready(Hangup::Error) } else { Poll::Pending }
    }

    /// As [`crate::h1::Server::begin_buffering`].
    pub fn begin_buffering(&mut self) {
        make_room(&mut self.input);
    }

    /// As [`crate::h1::Server::poll_buffer`].
    ///
    /// # Errors
    /// The stream was reset.
    pub fn poll_buffer(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<usize>>> {
        if self.input.capacity() < rt::buffer_size() {
            make_room(&mut self.input);
        }
        if self.input.room() == 0 {
            return Poll::Ready(Ok(None));
        }
        let mut input = self.take_received();
        let read = self.poll_read(cx, &mut input);
        self.input = input;
        read.map_ok(Some)
    }

    /// As [`crate::h1::Server::rest_buffering`].
    pub fn rest_buffering(&mut self) {
        shrink(&mut self.input);
    }

    /// As [`crate::h1::Server::grow`].
    pub fn grow(&mut self, large: &mut Option<usize>) -> bool {
        grow(&mut self.input, large)
    }
}

/// Writes the head of an answer as a frame.
///
/// # Errors
/// It does not fit.
pub fn encode(number: u8, head: &Head, edits: &Edits<'_>, out: &mut Buffer) -> Result<(), Overflow> {
    let framing = match edits.framing {
        // The end of a stream's payload needs no coding.
        Framing::Chunked => Framing::UntilClose,
        other => other,
    };
    let mut text = Vec::new();
    h1::encode_response(head, &Edits { connection: ConnectionLine::Nothing, framing, ..*edits }, &mut text)?;
    let before = out.len();
    if out.push(&frame::header(Kind::Head, number, text.len())) && out.push(&text) {
        return Ok(());
    }
    out.truncate(before);
    Err(Overflow)
}

impl Drop for Stream {
    /// What was not completed is reset, as well as a request whose end has not come.
    fn drop(&mut self) {
        self.shared.with(self.number, |half| {
            if !self.complete.get() || !half.ended {
                frame::push(&mut half.outgoing, Kind::Reset, half.number, &[]);
            }
            half.left = true;
        });
        self.shared.wake();
    }
}

impl ByteSource for Stream {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        let read = self.shared.with(self.number, |half| {
            if half.failed {
                return Poll::Ready(Err(Self::gone()));
            }
            let length = half.incoming.len().min(buffer.room());
            if length > 0 && buffer.push(&half.incoming[..length]) {
                half.incoming.drain(..length);
                half.owed += length;
                return Poll::Ready(Ok(length));
            }
            if half.ended {
                return Poll::Ready(Ok(0));
            }
            half.wait(cx);
            Poll::Pending
        });
        if matches!(read, Some(Poll::Ready(Ok(1..)))) {
            self.shared.wake();
        }
        read.unwrap_or_else(|| Poll::Ready(Err(Self::gone())))
    }
}

impl ByteSink for Stream {
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        head: &mut Buffer,
        body: &mut Buffer,
        _: bool,
    ) -> Poll<io::Result<usize>> {
        let mut written = 0;
        if !head.is_empty() {
            let length = head.len();
            std::task::ready!(self.poll_frames(cx, head))?;
            written += length;
        }
        if !body.is_empty() {
            match self.poll_payload(cx, body.data()) {
                Poll::Ready(Ok(sent)) => {
                    body.consume(sent);
                    written += sent;
                }
                Poll::Pending if written == 0 => return Poll::Pending,
                Poll::Pending => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(written))
    }
}
