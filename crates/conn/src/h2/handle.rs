//! A stream as seen by its task, for both roles: data that it takes from the connection and data that it queues. Must
//! never keep a borrow of the shared state.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll};

use base::buffer::Buffer;
use wire::h2::MAX_FRAME_SIZE;
use wire::http::Fields;

use super::kill::Kill;
use super::state::State;
use super::stream_half::{Arrival, Half};
use crate::flow::BodyDelimiter;

pub(super) struct Handle {
    pub(super) state: Rc<RefCell<State>>,
    /// The stream identifier; that of a request is assigned when it is sent.
    stream: Cell<u32>,
    /// Bytes that the peer may still send after the stream was released and our message has ended. `None`: the stream
    /// is then reset.
    pub(super) rest: Cell<Option<usize>>,
    /// Whether the last read has completed a frame.
    completes: Cell<bool>,
    /// Whether the stream is reset as refused if it is released before its answer is complete.
    pub(super) refuses: Cell<bool>,
}

pub(super) fn connection_closed() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

impl Handle {
    pub(super) fn new(state: Rc<RefCell<State>>, stream: u32, rest: Option<usize>) -> Self {
        Self {
            state,
            stream: Cell::new(stream),
            rest: Cell::new(rest),
            completes: Cell::new(false),
            refuses: Cell::new(false),
        }
    }

    /// Its identifier on the connection.
    pub(super) fn stream(&self) -> u32 {
        self.stream.get()
    }

    /// Ends the whole connection.
    pub(super) fn kill(&self, kill: Kill) {
        let mut state = self.state.borrow_mut();
        state.killed = Some(kill);
        state.wake();
    }

    /// Calls `with` on the connection's half; `None`: the connection has ended.
    pub(super) fn with<T>(&self, with: impl FnOnce(&mut Half) -> T) -> Option<T> {
        self.state.borrow_mut().half(self.stream()).map(with)
    }

    /// Ready when a read or the head returns something.
    pub(super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        let ready = self.with(|half| {
            let has_head = half.arrival != Arrival::Nothing;
            let ready = half.failed || half.ended || has_head || !half.payload().is_empty();
            if !ready {
                half.wait(cx);
            }
            ready
        });
        if ready.unwrap_or(true) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Reads payload, as [`crate::flow::ByteSource::poll_read`].
    pub(super) fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        let state = &mut *self.state.borrow_mut();
        let Some(half) = state.half(self.stream()) else { return Poll::Ready(Err(connection_closed())) };
        let length = half.payload().len().min(buffer.room());
        if length > 0 && buffer.push(&half.payload()[..length]) {
            half.take(length);
            self.completes.set(half.progress.take());
            state.note_taken(self.stream(), length);
            return Poll::Ready(Ok(length));
        }
        match (half.ended, half.failed) {
            // Payload received before a reset was returned; a truncated message has no end.
            (true, _) => Poll::Ready(Ok(0)),
            (false, true) if half.malformed => Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
            (false, true) => Poll::Ready(Err(connection_closed())),
            (false, false) => {
                half.wait(cx);
                Poll::Pending
            }
        }
    }

    /// Whether the last read has completed a frame, as [`crate::flow::ByteSource::completes`].
    pub(super) fn completes(&self) -> bool {
        self.completes.take()
    }

    /// Writes frames of heads and payload after them, as [`crate::flow::ByteSink::poll_write`].
    pub(super) fn poll_write(
        &self,
        cx: &mut Context<'_>,
        head: &mut Buffer,
        body: &mut Buffer,
    ) -> Poll<io::Result<usize>> {
        let state = &mut *self.state.borrow_mut();
        let mut written = 0;
        if !head.is_empty() {
            if !self.may_write(state, cx)? {
                return Poll::Pending;
            }
            self.stream.set(state.open_stream(self.stream()));
            state.push_heads(self.stream(), head.data());
            written += head.len();
            head.clear();
        }
        if !body.is_empty() {
            written += self.push_payload(state, cx, body)?;
        }
        if written == 0 && !body.is_empty() {
            return Poll::Pending;
        }
        state.wake();
        Poll::Ready(Ok(written))
    }

    /// Passes on a message in one step whose payload `source` has received whole: the frames of its head, the payload,
    /// and its end. Returns the number of bytes of payload. `None`: nothing was done, because the message is
    /// incomplete, or there is not enough free space.
    pub(super) fn pass_whole(&self, source: &Self, head: &mut Buffer, end: BodyDelimiter) -> Option<usize> {
        let (mut from, mut to) = (source.state.try_borrow_mut().ok()?, self.state.try_borrow_mut().ok()?);
        let (from, stream) = (from.half(source.stream())?, self.stream());
        let payload = from.payload();
        match end {
            BodyDelimiter::Length(0) => {}
            BodyDelimiter::Length(length) if payload.len() as u64 != length => return None,
            _ if !from.ended || from.failed || from.trailers.is_some() => return None,
            _ => {}
        }
        let payload = if end == BodyDelimiter::Length(0) { &[][..] } else { payload };
        let length = payload.len();
        if length > MAX_FRAME_SIZE || !to.has_room() || head.len() + length > to.room() || to.is_preceded(stream) {
            return None;
        }
        let own = to.half(stream).filter(|own| !own.failed && !own.complete && own.window >= length as i64)?;
        own.complete = true;
        to.push_heads(stream, head.data());
        head.clear();
        if length > 0 {
            to.push_payload(stream, payload);
            from.take(length);
        }
        to.push_end(stream);
        to.wake();
        Some(length)
    }

    /// Writes payload only.
    pub(super) fn poll_payload(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let state = &mut *self.state.borrow_mut();
        let mut rest = Payload::Bytes(bytes, 0);
        let written = self.push_some(state, cx, &mut rest)?;
        if written == 0 && !bytes.is_empty() {
            return Poll::Pending;
        }
        state.wake();
        Poll::Ready(Ok(written))
    }

    /// Writes payload from several slices.
    pub(super) fn poll_slices(&self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let state = &mut *self.state.borrow_mut();
        let mut written = 0;
        for slice in slices.iter().filter(|slice| !slice.is_empty()) {
            let count = self.push_some(state, cx, &mut Payload::Bytes(slice, 0))?;
            written += count;
            if count < slice.len() {
                break;
            }
        }
        if written == 0 {
            return Poll::Pending;
        }
        state.wake();
        Poll::Ready(Ok(written))
    }

    /// Whether there is free space for a head; otherwise the stream waits for some.
    fn may_write(&self, state: &mut State, cx: &mut Context<'_>) -> io::Result<bool> {
        let has_room = state.has_room();
        let half = state.half(self.stream()).filter(|half| !half.failed).ok_or_else(connection_closed)?;
        if has_room {
            return Ok(true);
        }
        half.wait(cx);
        if !std::mem::replace(&mut half.queued, true) {
            state.enqueue(self.stream());
        }
        state.wake();
        Ok(false)
    }

    fn push_payload(&self, state: &mut State, cx: &mut Context<'_>, body: &mut Buffer) -> io::Result<usize> {
        self.push_some(state, cx, &mut Payload::Buffer(body))
    }

    /// Queues as much payload as windows and free space allow. If some is left, the stream waits for more of them.
    fn push_some(&self, state: &mut State, cx: &mut Context<'_>, payload: &mut Payload<'_>) -> io::Result<usize> {
        let mut written = 0;
        let waits = state.is_preceded(self.stream());
        loop {
            let room = if waits { 0 } else { state.room() };
            let half = state.half(self.stream()).filter(|half| !half.failed).ok_or_else(connection_closed)?;
            let rest = payload.data();
            if rest.is_empty() {
                return Ok(written);
            }
            let window = usize::try_from(half.window).unwrap_or(0);
            let most = rest.len().min(room).min(window).min(MAX_FRAME_SIZE);
            if most == 0 {
                half.wait(cx);
                let is_new = !std::mem::replace(&mut half.stalled, true);
                if window > 0 && !std::mem::replace(&mut half.queued, true) {
                    state.enqueue(self.stream());
                }
                if is_new {
                    state.note_stall(window == 0);
                }
                if waits {
                    // The connection has to find the stream that is first.
                    state.wake();
                }
                return Ok(written);
            }
            state.push_payload(self.stream(), &rest[..most]);
            payload.consume(most);
            written += most;
        }
    }

    /// Ends our message, with trailers if there are some.
    pub(super) fn end(&self, trailers: Option<&Fields>) {
        let state = &mut *self.state.borrow_mut();
        let stream = self.stream();
        let Some(half) = state.half(stream) else { return };
        if half.failed || std::mem::replace(&mut half.complete, true) {
            return;
        }
        if !trailers.is_some_and(|trailers| state.push_trailers(stream, trailers)) {
            state.push_end(stream);
        }
        state.wake();
    }

    /// Takes the trailers received after the payload.
    pub(super) fn take_trailers(&self) -> Option<Box<Fields>> {
        self.with(|half| half.trailers.take()).flatten()
    }
}

impl Drop for Handle {
    /// Releases the stream.
    fn drop(&mut self) {
        let state = &mut *self.state.borrow_mut();
        if self.refuses.get() {
            state.refuse(self.stream());
        }
        state.leave(self.stream(), self.rest.get());
    }
}

/// Payload to be queued.
enum Payload<'p> {
    Buffer(&'p mut Buffer),
    Bytes(&'p [u8], usize),
}

impl Payload<'_> {
    fn data(&self) -> &[u8] {
        match self {
            Self::Buffer(buffer) => buffer.data(),
            Self::Bytes(bytes, at) => &bytes[*at..],
        }
    }

    fn consume(&mut self, count: usize) {
        match self {
            Self::Buffer(buffer) => buffer.consume(count),
            Self::Bytes(_, at) => *at += count,
        }
    }
}
