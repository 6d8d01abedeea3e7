//! Test transport that splits reads and writes arbitrarily, as TLS does: received bytes are buffered and returned in
//! pieces; writes are accepted in part, and are sealed before they are sent. Must never be part of a product build.

use std::io::{self, IoSlice};
use std::ops::{Deref, DerefMut};
use std::task::{Context, Poll};

use base::buffer::Buffer;
use rt::net::{ParkedId, ParkedStream, Stream};

/// The connection, and the bytes received and not read yet.
#[derive(Debug)]
pub struct Records {
    pub(super) stream: Stream,
    received: Buffer,
    /// The sealed bytes of the last write, until all were sent; the write is pending until then.
    sealed: Vec<u8>,
    /// The number of sealed bytes sent.
    sent: usize,
    /// Whether this direction ends after they were sent.
    ending: bool,
}

/// An idle transport of this kind.
pub struct ParkedRecords {
    parked: ParkedStream,
    /// Whether bytes were received and not read, so that it cannot be used again.
    spoilt: bool,
}

/// A byte that concerns only the transport, on an idle connection.
const FILLER: u8 = 0;

/// Returns a random length, from 1 to `most`.
fn piece(most: usize) -> usize {
    1 + (rt::random() % most.max(1) as u64) as usize
}

/// All operations but reading and writing are the stream's.
impl Deref for Records {
    type Target = Stream;

    fn deref(&self) -> &Stream {
        &self.stream
    }
}

impl DerefMut for Records {
    fn deref_mut(&mut self) -> &mut Stream {
        &mut self.stream
    }
}

/// Splicing is impossible because the bytes pass through the process.
pub(super) fn not_spliced() -> Poll<io::Result<usize>> {
    Poll::Ready(Err(io::ErrorKind::InvalidInput.into()))
}

impl Records {
    pub(super) fn new(stream: Stream) -> Self {
        Self { stream, received: Buffer::empty(), sealed: Vec::new(), sent: 0, ending: false }
    }

    fn has_received(&self) -> bool {
        !self.received.is_empty()
    }

    pub(super) fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.has_received() { Poll::Ready(()) } else { self.stream.poll_readable(cx) }
    }

    pub(super) fn has_input(&mut self) -> bool {
        self.has_received() || self.stream.has_input()
    }

    pub(super) fn is_clean(&mut self) -> bool {
        !self.has_received() && self.stream.is_clean()
    }

    pub(super) fn is_quiet(&self) -> bool {
        !self.has_received() && self.stream.is_quiet()
    }

    /// Buffered bytes do not count for the kernel's mark.
    pub(super) fn set_receive_low_water(&mut self, _: usize) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn hand_out(&mut self, buffer: &mut Buffer) -> usize {
        let length = piece(self.received.len().min(buffer.room()));
        let whole = buffer.push(&self.received.data()[..length]);
        debug_assert!(whole, "no more than there is room for");
        self.received.consume(length);
        if self.received.is_empty() {
            self.received = Buffer::empty();
        }
        length
    }

    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        if buffer.room() == 0 {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        }
        if !self.has_received() {
            let mut record = rt::buffer();
            match std::task::ready!(self.stream.poll_read(cx, &mut record))? {
                0 => return Poll::Ready(Ok(0)),
                _ => self.received = record,
            }
        }
        Poll::Ready(Ok(self.hand_out(buffer)))
    }

    pub(super) fn try_read(&mut self, buffer: &mut Buffer) -> io::Result<Option<usize>> {
        if !self.has_received() {
            let mut record = rt::buffer();
            match self.stream.try_read(&mut record)? {
                None => return Ok(None),
                Some(0) => return Ok(Some(0)),
                Some(_) => self.received = record,
            }
        }
        Ok(Some(self.hand_out(buffer)))
    }

    pub(super) fn poll_discard(&mut self, cx: &mut Context<'_>, most: usize) -> Poll<io::Result<usize>> {
        if self.has_received() {
            let length = piece(self.received.len().min(most));
            self.received.consume(length);
            return Poll::Ready(Ok(length));
        }
        self.stream.poll_discard(cx, most)
    }

    /// Seals the first bytes of a write, or continues with those sealed before: the caller repeats them.
    fn seal(&mut self, first: &[u8]) {
        if self.sealed.is_empty() {
            self.sealed.extend_from_slice(&first[..piece(first.len())]);
        }
        assert!(first.starts_with(&self.sealed), "a write that was pending is repeated with other bytes");
    }

    /// Counts the bytes sent. Returns the length of the write once all of it was sent.
    fn count(&mut self, written: usize) -> Option<usize> {
        self.sent += written;
        if self.sent < self.sealed.len() {
            return None;
        }
        self.sent = 0;
        Some(std::mem::take(&mut self.sealed).len())
    }

    fn poll_sealed(&mut self, cx: &mut Context<'_>, first: &[u8], more: bool) -> Poll<io::Result<usize>> {
        self.seal(first);
        loop {
            let rest = &self.sealed[self.sent..];
            let slices = [IoSlice::new(&rest[..piece(rest.len())])];
            let written = std::task::ready!(self.stream.poll_write_slices(cx, &slices, more))?;
            if let Some(length) = self.count(written) {
                return Poll::Ready(Ok(length));
            }
            if rt::random().is_multiple_of(2) {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }

    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        head: &mut Buffer,
        body: &mut Buffer,
        more: bool,
    ) -> Poll<io::Result<usize>> {
        let first = if head.is_empty() { body } else { head };
        if first.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let written = std::task::ready!(self.poll_sealed(cx, first.data(), more))?;
        first.consume(written);
        Poll::Ready(Ok(written))
    }

    pub(super) fn poll_write_slices(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
        more: bool,
    ) -> Poll<io::Result<usize>> {
        let Some(first) = slices.iter().find(|slice| !slice.is_empty()) else { return Poll::Ready(Ok(0)) };
        self.poll_sealed(cx, first, more)
    }

    pub(super) fn try_write(&mut self, bytes: &[u8], more: bool) -> io::Result<Option<usize>> {
        if bytes.is_empty() {
            return Ok(Some(0));
        }
        self.seal(bytes);
        loop {
            let rest = &self.sealed[self.sent..];
            let Some(written) = self.stream.try_write(&rest[..piece(rest.len())], more)? else { return Ok(None) };
            if let Some(length) = self.count(written) {
                return Ok(Some(length));
            }
        }
    }

    /// As the stream's. An orderly end must not truncate a pending write.
    pub(super) fn shutdown_write(&mut self) -> io::Result<()> {
        assert!(self.sealed.is_empty(), "the end of a direction follows a write that is still pending");
        self.stream.shutdown_write()
    }

    /// The number of bytes of the pending write that the kernel has not accepted yet.
    pub(super) fn unsealed(&self) -> usize {
        self.sealed.len() - self.sent
    }

    /// As [`super::Transport::end`].
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.ending = self.unsealed() > 0;
        if self.ending { Ok(()) } else { self.stream.shutdown_write() }
    }

    /// As [`super::Transport::poll_drop_input`].
    pub(super) fn poll_drop_input(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        while self.unsealed() > 0 {
            let slices = [IoSlice::new(&self.sealed[self.sent..])];
            match self.stream.poll_write_slices(cx, &slices, false) {
                Poll::Ready(written) => self.sent += written?,
                Poll::Pending => break,
            }
        }
        if self.unsealed() == 0 && std::mem::take(&mut self.ending) {
            self.stream.shutdown_write()?;
        }
        self.stream.poll_drop(cx, super::closing::AT_ONCE)
    }

    /// Drops received [`FILLER`]; returns false if anything else was received.
    pub(super) fn settle(&mut self) -> bool {
        let mut record = rt::buffer();
        loop {
            record.clear();
            match self.stream.try_read(&mut record) {
                Ok(None) => return !self.has_received(),
                Ok(Some(1..)) if record.data().iter().all(|byte| *byte == FILLER) => {}
                _ => return false,
            }
        }
    }

    pub(super) fn is_movable(&self) -> bool {
        self.sealed.is_empty() && !self.has_received()
    }

    pub(super) fn park(self) -> ParkedRecords {
        assert!(self.sealed.is_empty(), "a connection is idle whose last write is still pending");
        let spoilt = self.has_received();
        ParkedRecords { parked: self.stream.park(), spoilt }
    }
}

impl ParkedRecords {
    pub(super) fn id(&self) -> ParkedId {
        self.parked.id()
    }

    pub(super) fn number(&self) -> i32 {
        self.parked.number()
    }

    pub(super) fn resume(self) -> Option<Records> {
        self.parked.resume().map(Records::new)
    }

    pub(super) fn take_over(self) -> Option<Records> {
        self.parked.take_over().map(Records::new)
    }

    pub(super) fn adopt(self) -> Option<Records> {
        if self.spoilt {
            return None;
        }
        self.parked.adopt().map(Records::new)
    }
}
