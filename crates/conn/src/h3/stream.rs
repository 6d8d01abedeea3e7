//! One stream of a client's connection, as seen by its request: a head, payload, the answer. Must never know how frames
//! are read.

use std::any::Any;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use base::buffer::Buffer;
use rt::net::Hangup;
use wire::h1::{self, Edits, HeadLimits, Parse, RequestContext, Scan};
use wire::h3;
use wire::http::{Fields, Head};

use super::cell::{Arrival, StreamCell};
use super::handle::{Handle, connection_closed};
use super::reading::Reading;
use super::state::{Order, Shared};
use crate::flow::{ByteSink, ByteSource, shrink};
use crate::h1::server::{fits, grow, make_room, replace_front};
use crate::h1::{ReadResult, UnreadBody};
use crate::h2::Kill;

/// The most bytes that a head needs in addition to its text when it is encoded as a frame.
const MARGIN: usize = 512;

/// A stream as seen by the task that serves its request.
pub struct Stream {
    shared: Rc<Shared>,
    cell: Rc<StreamCell>,
    /// Bytes taken from the connection and not consumed yet.
    input: Buffer,
}

/// A stream is stored where a connection of HTTP/1 could be, in at most as much memory.
const _: () = assert!(size_of::<Stream>() < size_of::<crate::h1::Server>());

impl Stream {
    pub(super) fn new(shared: Rc<Shared>, cell: Rc<StreamCell>) -> Self {
        Self { shared, cell, input: Buffer::empty() }
    }

    /// Its identifier on the connection.
    pub fn number(&self) -> u64 {
        self.cell.id.number()
    }

    pub(super) fn shared(&self) -> &Rc<Shared> {
        &self.shared
    }

    /// Whether its request asks for a WebTransport session that the connection permits.
    pub fn is_session(&self) -> bool {
        self.shared.has_session(self.cell.id)
    }

    /// Ends the whole connection with all of its streams.
    pub(crate) fn kill(&mut self, kill: Kill) {
        self.shared.order(Order::Kill(kill));
    }

    /// Marks the request as not processed: unless it is answered, the stream is reset with H3_REQUEST_REJECTED.
    pub(crate) fn refuse(&mut self) {
        self.cell.refuses.set(true);
    }

    /// Keeps a value alive until the stream is released.
    pub(crate) fn keep(&mut self, what: Box<dyn Any>) {
        self.cell.kept.replace(Some(what));
    }

    /// Whether it keeps a value.
    pub(crate) fn keeps(&self) -> bool {
        self.cell.kept.borrow().is_some()
    }

    /// The bytes taken from the connection and not consumed.
    pub fn received(&self) -> &[u8] {
        self.input.data()
    }

    /// Whether a head or a part of a body was received.
    pub fn has_received(&self) -> bool {
        !self.input.is_empty() || self.cell.half().arrival != Arrival::Nothing
    }

    /// Whether the request was received whole, and all of it was read.
    pub fn has_ended(&self) -> bool {
        let half = self.cell.half();
        half.ended && !half.has_failed() && half.payload.is_empty()
    }

    /// Whether it was reset, or its connection has ended.
    pub fn has_failed(&self) -> bool {
        self.cell.half().has_failed()
    }

    /// Whether the request was received whole.
    pub fn was_whole(&self) -> bool {
        self.cell.half().ended
    }

    /// Takes the bytes taken from the connection and not consumed.
    pub fn take_received(&mut self) -> Buffer {
        std::mem::replace(&mut self.input, Buffer::empty())
    }

    /// Releases the input buffer if it is empty.
    pub fn release(&mut self) {
        if self.input.is_empty() {
            self.input = Buffer::empty();
        }
    }

    /// Ready when a read returns something.
    pub fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let half = &mut *self.cell.half();
        if half.arrival != Arrival::Nothing || !half.payload.is_empty() {
            return Poll::Ready(());
        }
        match self.shared.read_payload(&self.cell, half) {
            Reading::Blocked => {
                half.wait(cx);
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }

    /// Whether a read returns something.
    pub fn is_readable(&mut self) -> bool {
        self.poll_readable(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// Takes the request's head.
    pub fn take_head(&mut self, limits: &HeadLimits, _: &mut Scan, head: &mut Head) -> ReadResult {
        match self.cell.half().take_head(head) {
            Arrival::Refused { status } => ReadResult::Invalid { status, fault: None },
            Arrival::Here { length } if !fits(head, length, limits.max_head) => {
                ReadResult::Invalid { status: 431, fault: None }
            }
            Arrival::Here { .. } if head.field_count() >= limits.max_fields => {
                ReadResult::Invalid { status: 400, fault: None }
            }
            Arrival::Here { length } => ReadResult::Head { body: UnreadBody::uncoded(head), length, glitch: false },
            Arrival::Nothing => ReadResult::Closed,
        }
    }

    /// Writes an answer in the text format of HTTP/1; the first call contains the whole head.
    ///
    /// # Errors
    /// The stream's; `InvalidData` if the text is not an answer.
    pub fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.cell.answering.get() {
            return self.handle().poll_payload(cx, bytes);
        }
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        let mut head = Head::new();
        let limits = HeadLimits { max_head: bytes.len(), ..HeadLimits::default() };
        let parsed = h1::parse_response(bytes, &limits, &RequestContext::default(), &mut Scan::default(), &mut head);
        let Ok(Parse::Complete { consumed }) = parsed else { return Poll::Ready(Err(invalid())) };
        let mut frame = Buffer::with_capacity(bytes.len() + MARGIN);
        let edits = Edits { framing: head.framing, version: head.version(), ..Edits::interim() };
        h3::encode_response(&head, &edits, &mut frame).map_err(|_| invalid())?;
        let half = &mut *self.cell.half();
        if half.has_failed() {
            return Poll::Ready(Err(connection_closed()));
        }
        half.queue_waiting();
        half.prefix.extend_from_slice(frame.data());
        // What does not fit now is sent before the payload.
        self.handle().flush_prefix(half)?;
        self.shared.link.wake();
        self.cell.answering.set(head.status() >= 200);
        Poll::Ready(Ok(consumed))
    }

    /// The handle of the stream.
    fn handle(&self) -> Handle<'_> {
        Handle { shared: &self.shared, cell: &self.cell }
    }

    /// Marks the answer as completely written, with trailers if there are some.
    pub fn complete(&self, trailers: Option<&Fields>) {
        self.handle().end(trailers);
    }

    /// Ready when the client has reset the stream or the connection has ended.
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<Hangup> {
        let half = &mut *self.cell.half();
        if half.has_failed() {
            return Poll::Ready(Hangup::Error);
        }
        half.wait(cx);
        Poll::Pending
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
        Handle { shared: &self.shared, cell: &self.cell }.poll_read(cx, &mut self.input).map_ok(Some)
    }

    /// As [`crate::h1::Server::rest_buffering`].
    pub fn rest_buffering(&mut self) {
        shrink(&mut self.input);
    }

    /// As [`crate::h1::Server::grow`].
    pub fn grow(&mut self, large: &mut Option<usize>) -> bool {
        grow(&mut self.input, large)
    }

    /// As [`crate::downstream::Downstream::replace_body`].
    pub fn replace_body(&mut self, length: usize, body: &[u8]) {
        replace_front(&mut self.input, length, body);
    }
}

impl Drop for Stream {
    /// Releases the stream.
    fn drop(&mut self) {
        self.shared.release(&self.cell);
        self.cell.kept.take();
    }
}

impl ByteSource for Stream {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        self.handle().poll_read(cx, buffer)
    }

    fn completes(&mut self) -> bool {
        self.cell.completes.take()
    }

    fn take_trailers(&mut self) -> Option<Box<Fields>> {
        self.cell.half().trailers.take()
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
        self.handle().poll_write(cx, head, body)
    }

    fn poll_write_slices(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>], _: bool) -> Poll<io::Result<usize>> {
        self.handle().poll_write_slices(cx, slices)
    }

    fn takes_slices(&self) -> bool {
        true
    }

    fn parts_heads(&self) -> bool {
        true
    }

    fn keeps_buffers(&self) -> bool {
        true
    }
}
