//! One stream of a client's connection, as its request sees it: a head, payload, the answer. Must never know how frames are
//! read and written.

use std::cell::Cell;
use std::io;
use std::task::{Context, Poll, Waker};

use base::buffer::Buffer;
use rt::net::Hangup;
use wire::h1::{self, ConnectionLine, Edits, Limits, Overflow, Parse, RequestContext, Scan};
use wire::http::{Framing, Head, Method};

use super::frame::{self, Kind};
use super::half::Handle;
use crate::flow::{ByteSink, ByteSource, shrink};
use crate::h1::server::{fits, grow, make_room};
use crate::h1::{Received, UnreadBody};

/// A stream, as the task sees it that serves its request.
pub struct Stream {
    handle: Handle,
    /// What was taken from the connection and not used yet.
    input: Buffer,
    /// The head of a prepared answer was sent: what follows is payload.
    answering: bool,
    /// The answer was sent to its end.
    complete: Cell<bool>,
}

impl Stream {
    pub(super) fn new(handle: Handle) -> Self {
        Self { handle, input: Buffer::empty(), answering: false, complete: Cell::new(false) }
    }

    /// What was taken from the connection and not used.
    pub fn received(&self) -> &[u8] {
        self.input.data()
    }

    /// Whether a head or something of a body is here.
    pub fn has_received(&self) -> bool {
        !self.input.is_empty() || self.handle.with(|half| !half.heads.is_empty()).unwrap_or(false)
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
        self.handle.poll_readable(cx)
    }

    /// Whether a read returns something.
    pub fn is_readable(&mut self) -> bool {
        self.poll_readable(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// Parses the request's head.
    pub fn take_head(&mut self, limits: &Limits, scan: &mut Scan, head: &mut Head) -> Received {
        let Some(Some((text, alone))) = self.handle.with(|half| half.heads.pop_front()) else {
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
            return self.handle.poll_payload(cx, bytes);
        }
        let mut head = Head::new();
        let limits = Limits { max_head: bytes.len(), ..Limits::default() };
        let parsed = h1::parse_response(bytes, &limits, &RequestContext::default(), &mut Scan::default(), &mut head);
        let Ok(Parse::Complete { consumed }) = parsed else {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        };
        let mut text = Buffer::with_capacity(bytes.len() + 256);
        let edits = Edits { framing: head.framing, version: head.version(), ..Edits::interim() };
        if encode(self.handle.number, &head, &edits, &mut text).is_err() {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        std::task::ready!(self.handle.poll_frames(cx, &mut text))?;
        self.answering = head.status() >= 200;
        Poll::Ready(Ok(consumed))
    }

    /// Its number on the connection.
    pub fn number(&self) -> u8 {
        self.handle.number
    }

    /// All of the answer was written.
    pub fn complete(&self) {
        if !self.complete.replace(true) {
            self.handle.end();
        }
    }

    /// Ready when the client has reset the stream or the connection has ended.
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<Hangup> {
        let failed = self.handle.with(|half| {
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
        self.handle.leave(self.complete.get(), false);
    }
}

impl ByteSource for Stream {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        self.handle.poll_read(cx, buffer)
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
        self.handle.poll_write(cx, head, body)
    }
}
