//! A stream as seen by its task, for both roles: data that it takes from the connection and data that it queues. Must
//! never keep a borrow of the shared state.

use std::cell::{RefCell, RefMut};
use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use base::buffer::Buffer;
use wire::h2::MAX_FRAME_SIZE;
use wire::http::Fields;

use super::cell::StreamCell;
use super::kill::Kill;
use super::state::State;
use super::stream_half::{Arrival, Half};
use crate::flow::BodyDelimiter;

/// A stream and its connection, borrowed for one operation.
#[derive(Clone, Copy)]
pub(super) struct Handle<'h> {
    pub(super) state: &'h RefCell<State>,
    pub(super) cell: &'h StreamCell,
}

pub(super) fn connection_closed() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

impl<'h> Handle<'h> {
    /// Its identifier on the connection.
    #[inline]
    pub(super) fn stream(self) -> u32 {
        self.cell.number.get()
    }

    /// Borrows the connection's half.
    #[inline]
    pub(super) fn half(self) -> RefMut<'h, Half> {
        self.cell.half()
    }

    /// Ends the whole connection.
    pub(super) fn kill(self, kill: Kill) {
        let mut state = self.state.borrow_mut();
        state.closing.killed = Some(kill);
        state.wake();
    }

    /// Releases the stream.
    pub(super) fn leave(self) {
        self.state.borrow_mut().leave(self.cell);
    }

    /// Ready when a read or the head returns something.
    pub(super) fn poll_readable(self, cx: &mut Context<'_>) -> Poll<()> {
        let mut half = self.half();
        let has_head = half.arrival != Arrival::Nothing;
        if half.failed || half.ended || has_head || !half.payload().is_empty() {
            return Poll::Ready(());
        }
        half.wait(cx);
        Poll::Pending
    }

    /// Reads payload, as [`crate::flow::ByteSource::poll_read`].
    pub(super) fn poll_read(self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        let state = &mut *self.state.borrow_mut();
        let half = &mut *self.half();
        let length = half.payload().len().min(buffer.room());
        if length > 0 && buffer.push(&half.payload()[..length]) {
            half.incoming.take(length);
            self.cell.completes.set(half.incoming.progress.take());
            state.note_taken(self.stream(), half, length);
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
    pub(super) fn completes(self) -> bool {
        self.cell.completes.take()
    }

    /// Writes frames of heads and payload after them, as [`crate::flow::ByteSink::poll_write`].
    pub(super) fn poll_write(
        self,
        cx: &mut Context<'_>,
        head: &mut Buffer,
        body: &mut Buffer,
    ) -> Poll<io::Result<usize>> {
        let state = &mut *self.state.borrow_mut();
        let mut written = 0;
        if !head.is_empty() {
            let half = &mut *self.half();
            if !self.may_write(state, half, cx)? {
                return Poll::Pending;
            }
            let stream = state.open_stream(self.cell, half);
            state.push_heads(stream, head.data());
            written += head.len();
            head.clear();
        }
        if !body.is_empty() {
            written += self.push_some(state, cx, &mut Payload::Buffer(body))?;
            if written == 0 {
                return Poll::Pending;
            }
        }
        state.wake();
        Poll::Ready(Ok(written))
    }

    /// Writes the head of a message without a body in one step, and ends the message. Returns the number of bytes
    /// written; `None`: nothing was done, because there is not enough free space, or the message has ended.
    pub(super) fn write_alone(self, head: &mut Buffer) -> Option<usize> {
        let state = &mut *self.state.borrow_mut();
        let half = &mut *self.half();
        if half.failed || half.complete || head.is_empty() || !state.has_room() {
            return None;
        }
        half.complete = true;
        let stream = state.open_stream(self.cell, half);
        state.push_heads(stream, head.data());
        state.push_end(stream);
        let written = head.len();
        head.clear();
        state.wake();
        Some(written)
    }

    /// Passes on a message in one step whose payload `source` has received whole: the frames of its head, the payload,
    /// and its end. Returns the number of bytes of payload. `None`: nothing was done, because the message is
    /// incomplete, or there is not enough free space.
    pub(super) fn pass_whole(self, source: Handle<'_>, head: &mut Buffer, end: BodyDelimiter) -> Option<usize> {
        let from = &mut *source.half();
        let payload = from.payload();
        match end {
            BodyDelimiter::Length(0) => {}
            BodyDelimiter::Length(length) if payload.len() as u64 != length => return None,
            _ if !from.ended || from.failed || from.has_trailers() => return None,
            _ => {}
        }
        let payload = if end == BodyDelimiter::Length(0) { &[][..] } else { payload };
        let length = payload.len();
        let mut to = self.state.try_borrow_mut().ok()?;
        let stream = self.stream();
        if length > MAX_FRAME_SIZE || !to.has_room() || head.len() + length > to.room() || to.is_preceded(stream) {
            return None;
        }
        let own = &mut *self.half();
        if own.failed || own.complete || own.window < length as i64 {
            return None;
        }
        own.complete = true;
        to.push_heads(stream, head.data());
        head.clear();
        if length > 0 {
            to.push_payload(stream, own, payload);
            from.incoming.take(length);
        }
        to.push_end(stream);
        to.wake();
        Some(length)
    }

    /// Writes payload only.
    pub(super) fn poll_payload(self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
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
    pub(super) fn poll_slices(self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
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
    #[inline]
    fn may_write(self, state: &mut State, half: &mut Half, cx: &mut Context<'_>) -> io::Result<bool> {
        if half.failed {
            return Err(connection_closed());
        }
        if state.has_room() {
            return Ok(true);
        }
        half.wait(cx);
        if !std::mem::replace(&mut half.queued, true) {
            state.enqueue(self.stream());
        }
        state.wake();
        Ok(false)
    }

    /// Queues as much payload as windows and free space allow. If some is left, the stream waits for more of them.
    fn push_some(self, state: &mut State, cx: &mut Context<'_>, payload: &mut Payload<'_>) -> io::Result<usize> {
        let mut written = 0;
        let waits = state.is_preceded(self.stream());
        let half = &mut *self.half();
        loop {
            let room = if waits { 0 } else { state.room() };
            if half.failed {
                return Err(connection_closed());
            }
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
            state.push_payload(self.stream(), half, &rest[..most]);
            payload.consume(most);
            written += most;
        }
    }

    /// Ends our message, with trailers if there are some.
    pub(super) fn end(self, trailers: Option<&Fields>) {
        {
            let half = &mut *self.half();
            if half.failed || std::mem::replace(&mut half.complete, true) {
                return;
            }
        }
        let state = &mut *self.state.borrow_mut();
        let stream = self.stream();
        if !trailers.is_some_and(|trailers| state.push_trailers(stream, trailers)) {
            state.push_end(stream);
        }
        state.wake();
    }

    /// Takes the trailers received after the payload.
    pub(super) fn take_trailers(self) -> Option<Box<Fields>> {
        self.half().take_trailers()
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
