//! A stream as seen by its task, for both roles: frames that it reads and writes. Must never keep a borrow of the shared
//! state.

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use base::buffer::Buffer;
use bytes::{Buf, Bytes};
use quic::stream::WriteError;
use wire::h3::{self, FrameType};
use wire::http::Fields;

use super::cell::{Access, Half, StreamCell};
use super::reading::Reading;
use super::state::Shared;

/// The most bytes of payload of one DATA frame.
const LARGEST: usize = 64 * 1024;

/// Buffers with fewer bytes of payload are copied: a buffer that is kept until the peer has acknowledged its bytes is mostly full.
const LEAST_KEPT: usize = LARGEST / 2;

pub(super) fn connection_closed() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

/// Whether the storage of a buffer is kept instead of a copy of its bytes.
fn is_kept(body: &Buffer) -> bool {
    body.len() >= LEAST_KEPT && body.capacity() <= LARGEST
}

/// A stream and its connection, borrowed for one operation.
#[derive(Clone, Copy)]
pub(super) struct Handle<'h> {
    pub(super) shared: &'h Shared,
    pub(super) cell: &'h StreamCell,
}

impl Handle<'_> {
    /// Writes to the stream. Returns 0 if it has to wait.
    fn write(self, half: &mut Half, bytes: &[u8]) -> io::Result<usize> {
        if half.access != Access::Direct {
            return self.write_early(half, bytes);
        }
        let written = self.shared.link.connection().write(self.cell.id, bytes);
        self.note_written(half, written)
    }

    /// Writes to a stream of a connection whose handshake is not complete, or that has failed.
    #[cold]
    fn write_early(self, half: &mut Half, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.shared.state.borrow_mut();
        let Some(early) = state.early.as_mut().filter(|_| half.access == Access::Early) else {
            return Err(connection_closed());
        };
        let room = early.room();
        if room == 0 {
            // The rest follows after the handshake.
            return Ok(0);
        }
        let written = self.shared.link.connection().write(self.cell.id, &bytes[..bytes.len().min(room)]);
        if let Ok(count) = written {
            early.note(self.cell.id.number(), &bytes[..count]);
        }
        drop(state);
        self.note_written(half, written)
    }

    /// Returns the result of a write.
    fn note_written(self, half: &mut Half, written: Result<usize, WriteError>) -> io::Result<usize> {
        match written {
            Ok(count) => Ok(count),
            Err(WriteError::Blocked) => Ok(0),
            Err(WriteError::Stopped(_) | WriteError::Closed) => {
                self.shared.note_unwritable(half);
                Err(connection_closed())
            }
        }
    }

    /// Sends the bytes that have to be sent first. Returns false if some are left: the window is exhausted then, and its
    /// opening is an event.
    pub(super) fn flush_prefix(self, half: &mut Half) -> io::Result<bool> {
        if half.prefix.is_empty() {
            return self.flush_waiting(half);
        }
        let mut prefix = std::mem::take(&mut half.prefix);
        while !prefix.is_empty() {
            // Only a write of 0 bytes is followed by an event.
            match self.write(half, &prefix)? {
                0 => break,
                written => drop(prefix.drain(..written)),
            }
        }
        half.prefix = prefix;
        Ok(half.prefix.is_empty() && self.flush_waiting(half)?)
    }

    /// Sends the rest of a DATA frame that was accepted whole. Returns false if bytes are left.
    fn flush_waiting(self, half: &mut Half) -> io::Result<bool> {
        while !half.waiting.is_empty() {
            if half.access != Access::Direct {
                return Err(connection_closed());
            }
            let written = self.shared.link.connection().write_shared(self.cell.id, &mut half.waiting);
            if self.note_written(half, written)? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Accepts a buffer as one DATA frame, whose storage is kept until the peer has acknowledged its bytes. Everything before it was sent.
    fn push_piece(self, half: &mut Half, body: &mut Buffer) -> io::Result<usize> {
        let length = body.len();
        half.prefix.extend_from_slice(h3::frame_header(FrameType::Data, length as u64).as_slice());
        half.waiting = Bytes::from_owner(std::mem::take(body).into_piece(rt::keep_piece));
        self.flush_prefix(half)?;
        Ok(length)
    }

    /// Writes payload as DATA frames. Returns the number of bytes written.
    fn push_payload(self, half: &mut Half, bytes: &[u8]) -> io::Result<usize> {
        let mut written = 0;
        while written < bytes.len() {
            if half.frame_left == 0 {
                if !half.waiting.is_empty() && !self.flush_prefix(half)? {
                    break;
                }
                let length = (bytes.len() - written).min(LARGEST);
                half.prefix.extend_from_slice(h3::frame_header(FrameType::Data, length as u64).as_slice());
                half.frame_left = length as u64;
            }
            if !self.flush_prefix(half)? {
                break;
            }
            let most = usize::try_from(half.frame_left).unwrap_or(usize::MAX).min(bytes.len() - written);
            let count = self.write(half, &bytes[written..written + most])?;
            if count == 0 {
                break;
            }
            half.frame_left -= count as u64;
            written += count;
        }
        Ok(written)
    }

    /// Writes payload. Returns the number of bytes written.
    pub(super) fn poll_payload(self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let half = &mut *self.cell.half();
        let written = self.push_payload(half, bytes)?;
        self.finish_write(cx, half, written, bytes.is_empty())
    }

    /// Wakes the connection if something was written, and waits otherwise.
    fn finish_write(
        self,
        cx: &Context<'_>,
        half: &mut Half,
        written: usize,
        is_empty: bool,
    ) -> Poll<io::Result<usize>> {
        if half.has_failed() {
            return Poll::Ready(Err(connection_closed()));
        }
        self.shared.link.wake();
        if written > 0 || is_empty {
            return Poll::Ready(Ok(written));
        }
        half.wait(cx);
        Poll::Pending
    }

    /// Writes frames of heads and payload after them, as [`crate::flow::ByteSink::poll_write`].
    pub(super) fn poll_write(
        self,
        cx: &mut Context<'_>,
        head: &mut Buffer,
        body: &mut Buffer,
    ) -> Poll<io::Result<usize>> {
        let half = &mut *self.cell.half();
        let is_empty = head.is_empty() && body.is_empty();
        let mut written = 0;
        if self.flush_prefix(half)? {
            while !head.is_empty() {
                let count = self.write(half, head.data())?;
                if count == 0 {
                    break;
                }
                head.consume(count);
                written += count;
            }
            if head.is_empty() && !body.is_empty() {
                written += if half.frame_left == 0 && half.access == Access::Direct && is_kept(body) {
                    self.push_piece(half, body)?
                } else {
                    let count = self.push_payload(half, body.data())?;
                    body.consume(count);
                    count
                };
            }
        }
        self.finish_write(cx, half, written, is_empty)
    }

    /// Writes payload, as [`crate::flow::ByteSink::poll_write_slices`].
    pub(super) fn poll_write_slices(self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let half = &mut *self.cell.half();
        let mut written = 0;
        for slice in slices {
            let count = self.push_payload(half, slice)?;
            written += count;
            if count < slice.len() {
                break;
            }
        }
        self.finish_write(cx, half, written, slices.iter().all(|slice| slice.is_empty()))
    }

    /// Marks the message as completely written, with trailers if there are some.
    pub(super) fn end(self, trailers: Option<&Fields>) {
        let half = &mut *self.cell.half();
        if half.has_failed() || std::mem::replace(&mut half.complete, true) {
            return;
        }
        if let Some(trailers) = trailers {
            half.queue_waiting();
            let start = half.prefix.len();
            if h3::encode_trailers(trailers, &mut half.prefix).is_err() {
                half.prefix.truncate(start);
            }
        }
        // A failed stream has no end.
        let _ = self.finish(half);
        self.shared.link.wake();
    }

    /// Writes once more what was written before the server has rejected it as early data.
    pub(super) fn write_again(self, mut bytes: Vec<u8>) {
        let half = &mut *self.cell.half();
        bytes.append(&mut half.prefix);
        half.prefix = bytes;
        if std::mem::take(&mut half.finished) {
            self.shared.state.borrow_mut().note_acknowledged();
        }
    }

    /// Sends the end of the stream once everything before it was sent. Returns false if the stream has to wait.
    pub(super) fn finish(self, half: &mut Half) -> io::Result<bool> {
        if half.finished || !self.flush_prefix(half)? {
            return Ok(half.finished);
        }
        half.prefix = Vec::new();
        if self.shared.link.connection().finish(self.cell.id).is_err() {
            self.shared.note_unwritable(half);
            return Err(connection_closed());
        }
        half.finished = true;
        self.shared.state.borrow_mut().note_finished();
        Ok(true)
    }

    /// Reads payload, as [`crate::flow::ByteSource::poll_read`].
    pub(super) fn poll_read(self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        let half = &mut *self.cell.half();
        if half.payload.is_empty() {
            match self.shared.read_payload(self.cell, half) {
                Reading::Head | Reading::Payload => {}
                Reading::Ended => return Poll::Ready(Ok(0)),
                // Only the beginning of a stream names a session.
                Reading::Session(_) => return Poll::Ready(Err(connection_closed())),
                Reading::Failed if half.malformed => return Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
                Reading::Failed => return Poll::Ready(Err(connection_closed())),
                Reading::Blocked => {
                    half.wait(cx);
                    return Poll::Pending;
                }
            }
        }
        let length = self.take_payload(half, buffer);
        if length > 0 {
            self.cell.completes.set(half.progress.take());
            // The peer may send more.
            self.shared.link.wake();
        }
        Poll::Ready(Ok(length))
    }

    /// Moves payload into a buffer, of all frames whose bytes were received together: small ones share a write to the other
    /// side. Returns the number of bytes.
    fn take_payload(self, half: &mut Half, buffer: &mut Buffer) -> usize {
        let mut taken = 0;
        loop {
            let length = half.payload.len().min(buffer.room());
            if length == 0 || !buffer.push(&half.payload[..length]) {
                return taken;
            }
            half.payload.advance(length);
            taken += length;
            // The next read reports an end or an error.
            if !half.payload.is_empty()
                || half.unread.is_empty()
                || self.shared.read_payload(self.cell, half) != Reading::Payload
            {
                return taken;
            }
        }
    }
}
