//! TLS over a stream. Owns the bytes received and not read, and the bytes sealed and not sent; must never hold a buffer
//! for an idle connection.

mod closing;
mod handshake;

use std::io::{self, IoSlice};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use base::BufferPool;
use base::buffer::Buffer;
use rt::net::{Hangup, ParkedId, ParkedStream, Stream};
use tls::connection::{LARGEST, LARGEST_FLIGHT, LARGEST_RECORD, OVERHEAD};
use tls::{Connection, Failure, HandshakeInfo, RecordContent};

use super::sealed::{Output, SEAL_SIZE, seal_all};

/// Bytes read at a time: a record always fits after the front of the previous one.
const READ_SIZE: usize = 2 * LARGEST_RECORD;
/// The number of buffers that a worker keeps for other connections.
const KEPT: usize = 64;
/// The number of unsent bytes above which nothing more is read: those of a write, and of answers to records received
/// since.
const MOST_UNSAID: usize = 2 * SEAL_SIZE;

thread_local! {
    static INPUTS: BufferPool = BufferPool::new(READ_SIZE, KEPT);
}

/// Why there is no secure connection.
#[derive(Debug)]
pub enum Insecure {
    /// The TLS handshake failed.
    Handshake(Failure),
    /// The connection failed.
    Connection(io::Error),
    /// The peer closed before the end of the handshake.
    Closed {
        /// Whether a byte was received.
        received: bool,
    },
}

/// The stream of a [`Tls`]. It is taken out only when that ends.
#[derive(Debug)]
struct LowerStream(Option<Stream>);

impl LowerStream {
    fn take(&mut self) -> Stream {
        self.0.take().unwrap_or_else(|| unreachable!("it is taken once"))
    }
}

impl Deref for LowerStream {
    type Target = Stream;

    fn deref(&self) -> &Stream {
        self.0.as_ref().unwrap_or_else(|| unreachable!("it is taken where its owner ends"))
    }
}

impl DerefMut for LowerStream {
    fn deref_mut(&mut self) -> &mut Stream {
        self.0.as_mut().unwrap_or_else(|| unreachable!("it is taken where its owner ends"))
    }
}

/// The number of open TLS connections in the process, including idle ones.
static OPEN: AtomicU64 = AtomicU64::new(0);

/// Counts one open TLS connection.
#[derive(Debug)]
struct ConnectionCount(());

impl ConnectionCount {
    fn new() -> Self {
        OPEN.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The number of open TLS connections in the process, on both sides.
pub fn open_connections() -> u64 {
    OPEN.load(Ordering::Relaxed)
}

/// A stream with TLS over it, after `Tls::begin`. Dropping it sends a `close_notify` alert.
#[derive(Debug)]
pub struct Tls {
    stream: LowerStream,
    /// `None`: plain bytes, until the handshake begins.
    connection: Option<Connection>,
    /// The side that will begin the handshake.
    waiting: Option<Connection>,
    /// Received bytes. The first `plain` of them are decrypted.
    input: Buffer,
    plain: usize,
    /// The number of bytes after the plain ones that are dropped with the last of them.
    behind: usize,
    output: Output,
    /// The number of plain bytes of the pending write.
    covered: usize,
    /// The result of the handshake.
    info: Option<Arc<HandshakeInfo>>,
    /// Whether any byte was received.
    received: bool,
    /// Whether this direction ends after everything was sent.
    closing: bool,
    /// Whether the input has ended.
    ended: bool,
    /// Whether it failed, so that no more records are sent to the peer.
    failed: bool,
    /// Whether dropping it sends no alert.
    silent: bool,
    /// Whether it failed because the server does not support the protocol of early data, which it has not seen.
    early_refused: bool,
    _counted: ConnectionCount,
}

/// An idle TLS connection.
pub struct ParkedTls {
    pub(super) parked: ParkedStream,
    connection: Option<Connection>,
    info: Option<Arc<HandshakeInfo>>,
    _counted: ConnectionCount,
    /// Whether bytes were received and not read, or were not sent, so that it cannot be used again.
    spoilt: bool,
}

impl Drop for Tls {
    fn drop(&mut self) {
        if let Some(early) = self.info.as_ref().and_then(|info| info.early.as_ref()) {
            early.conclude(false);
        }
        if self.stream.0.is_some() {
            // Bytes that cannot be sent at once are dropped, because nothing waits for them.
            let _ = self.say_goodbye();
        }
    }
}

/// All operations but reading and writing are the stream's.
impl Deref for Tls {
    type Target = Stream;

    fn deref(&self) -> &Stream {
        &self.stream
    }
}

impl DerefMut for Tls {
    fn deref_mut(&mut self) -> &mut Stream {
        &mut self.stream
    }
}

fn broken(_: Failure) -> io::Error {
    io::ErrorKind::InvalidData.into()
}

/// Splicing is impossible because the bytes pass through the process.
pub(super) fn not_spliced() -> Poll<io::Result<usize>> {
    Poll::Ready(Err(io::ErrorKind::InvalidInput.into()))
}

impl Tls {
    /// Creates a transport whose TLS begins at the call of [`Tls::begin`].
    pub(super) fn new(stream: Stream, waiting: Connection) -> Self {
        Self::over(stream, None, Some(waiting))
    }

    fn again(stream: Stream, connection: Option<Connection>, info: Option<Arc<HandshakeInfo>>) -> Self {
        let mut tls = Self::over(stream, connection, None);
        tls.info = info;
        tls
    }

    fn over(stream: Stream, connection: Option<Connection>, waiting: Option<Connection>) -> Self {
        Self {
            stream: LowerStream(Some(stream)),
            received: connection.is_some(),
            connection,
            waiting,
            input: Buffer::empty(),
            plain: 0,
            behind: 0,
            output: Output::default(),
            covered: 0,
            info: None,
            closing: false,
            ended: false,
            failed: false,
            silent: false,
            early_refused: false,
            _counted: ConnectionCount::new(),
        }
    }

    /// Begins the handshake; `early` are bytes received before.
    pub(super) fn begin(&mut self, early: &[u8]) {
        self.connection = self.waiting.take();
        if !early.is_empty() {
            self.received = true;
            self.input = INPUTS.with(BufferPool::get);
            if !self.input.push(early) {
                self.input = Buffer::with_capacity(LARGEST_FLIGHT);
                // More bytes than a whole flight cannot be a handshake, which is detected by a part of them.
                let _ = self.input.push(&early[..early.len().min(LARGEST_FLIGHT)]);
            }
        }
    }

    pub(super) fn info(&self) -> Option<&Arc<HandshakeInfo>> {
        self.info.as_ref()
    }

    /// Releases the input buffer if it is empty.
    fn release(&mut self) {
        if self.input.is_empty() {
            self.input = Buffer::empty();
        }
    }

    fn has_received(&self) -> bool {
        self.plain > 0 || self.ended
    }

    /// Decrypts records until there are plain bytes, or the end. Returns false if more input is needed.
    fn open(&mut self) -> io::Result<bool> {
        if !self.is_whole() {
            if self.early_data().is_some_and(|early| !early.is_empty()) || self.ended {
                return Ok(true);
            }
            let shaken = self.shake().map_err(broken)?;
            if !shaken.is_open() {
                return Ok(self.early_data().is_some_and(|early| !early.is_empty()));
            }
        }
        let Some(connection) = &mut self.connection else { return Ok(false) };
        while self.plain == 0 && !self.ended {
            if self.input.is_empty() {
                return Ok(false);
            }
            match connection.receive(&mut self.input, self.output.vec()) {
                Ok(RecordContent::Part) => {
                    self.output.advance(0);
                    return Ok(false);
                }
                Ok(RecordContent::Own) => {}
                Ok(RecordContent::End) => self.ended = true,
                Ok(RecordContent::Data { plain, behind }) => (self.plain, self.behind) = (plain, behind),
                Err(failure) => {
                    self.failed = true;
                    let _ = self.output.try_flush(&mut self.stream, false);
                    return Err(broken(failure));
                }
            }
        }
        self.output.advance(0);
        Ok(true)
    }

    /// Ready when there are plain bytes, or the end.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if self.open()? {
                return Poll::Ready(Ok(()));
            }
            // Pending records are sent before this side waits. If a peer causes more and more of them and does not
            // read, it is not read from either.
            if let Poll::Ready(Err(error)) = self.poll_say(cx) {
                return Poll::Ready(Err(error));
            }
            if self.output.len() > MOST_UNSAID {
                return Poll::Pending;
            }
            if self.input.capacity() == 0 {
                ready!(self.stream.poll_readable(cx));
                self.input = INPUTS.with(BufferPool::get);
            }
            self.input.compact();
            match self.stream.poll_read(cx, &mut self.input) {
                // A close without `close_notify` is an end: protocols for which that matters delimit their messages.
                Poll::Ready(Ok(0)) => self.ended = true,
                Poll::Ready(Ok(_)) => self.received = true,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    self.release();
                    return Poll::Pending;
                }
            }
        }
    }

    /// As [`Self::poll_fill`], without waiting. Returns false if there are none.
    fn try_fill(&mut self) -> io::Result<bool> {
        loop {
            if self.open()? {
                return Ok(true);
            }
            if self.covered == 0 && !self.output.is_empty() {
                self.output.try_flush(&mut self.stream, false)?;
            }
            if self.output.len() > MOST_UNSAID {
                return Ok(false);
            }
            if self.input.capacity() == 0 {
                self.input = INPUTS.with(BufferPool::get);
            }
            self.input.compact();
            match self.stream.try_read(&mut self.input)? {
                Some(0) => self.ended = true,
                Some(_) => self.received = true,
                None => {
                    self.release();
                    return Ok(false);
                }
            }
        }
    }

    /// Consumes plain bytes.
    fn consume(&mut self, count: usize) {
        self.input.consume(count);
        self.plain -= count;
        if self.plain == 0 {
            self.input.consume(std::mem::take(&mut self.behind));
            self.release();
        }
    }

    fn hand_out(&mut self, buffer: &mut Buffer) -> usize {
        if let Some(early) = self.early_data() {
            let count = early.len().min(buffer.room());
            let whole = buffer.push(&early[..count]);
            debug_assert!(whole, "no more than there is room for");
            early.drain(..count);
            return count;
        }
        let count = self.plain.min(buffer.room());
        let whole = buffer.push(&self.input.data()[..count]);
        debug_assert!(whole, "no more than there is room for");
        if count > 0 {
            self.consume(count);
        }
        count
    }

    pub(super) fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.connection.is_none() {
            return self.stream.poll_readable(cx);
        }
        self.poll_fill(cx).map(|_| ())
    }

    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        if self.connection.is_none() {
            return self.stream.poll_read(cx, buffer);
        }
        if buffer.room() == 0 {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        }
        ready!(self.poll_fill(cx))?;
        Poll::Ready(Ok(self.hand_out(buffer)))
    }

    pub(super) fn try_read(&mut self, buffer: &mut Buffer) -> io::Result<Option<usize>> {
        if self.connection.is_none() {
            return self.stream.try_read(buffer);
        }
        if !self.try_fill()? {
            return Ok(None);
        }
        Ok(Some(self.hand_out(buffer)))
    }

    pub(super) fn poll_discard(&mut self, cx: &mut Context<'_>, most: usize) -> Poll<io::Result<usize>> {
        if self.connection.is_none() {
            return self.stream.poll_discard(cx, most);
        }
        ready!(self.poll_fill(cx))?;
        if let Some(early) = self.early_data() {
            let count = early.len().min(most);
            early.drain(..count);
            return Poll::Ready(Ok(count));
        }
        let count = self.plain.min(most);
        if count > 0 {
            self.consume(count);
        }
        Poll::Ready(Ok(count))
    }

    pub(super) fn poll_hangup(&mut self, cx: &mut Context<'_>) -> Poll<Hangup> {
        if self.ended {
            return Poll::Ready(Hangup::PeerClosed);
        }
        self.stream.poll_hangup(cx)
    }

    pub(super) fn has_input(&mut self) -> bool {
        let early = self.early_data().is_some_and(|early| !early.is_empty());
        early || self.has_received() || !self.input.is_empty() || self.stream.has_input()
    }

    /// Whether closing would not reset the connection. Not before the end of a handshake, whose last records are still
    /// to be received.
    pub(super) fn is_clean(&mut self) -> bool {
        self.is_whole() && !self.has_received() && self.input.is_empty() && self.stream.is_clean()
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.is_whole() && !self.has_received() && self.input.is_empty() && self.stream.is_quiet()
    }

    /// Buffered bytes do not count for the kernel's mark.
    pub(super) fn set_receive_low_water(&mut self, _: usize) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Seals the first bytes of a write, unless a write is pending, whose bytes the caller repeats.
    fn seal(&mut self, [head, body]: [&[u8]; 2]) -> io::Result<()> {
        if self.covered > 0 {
            return Ok(());
        }
        let Some(connection) = &mut self.connection else { return Err(io::ErrorKind::NotConnected.into()) };
        let whole = (head.len() + body.len()).min(SEAL_SIZE);
        let out = self.output.vec();
        out.reserve(whole + whole.div_ceil(LARGEST) * OVERHEAD);
        while self.covered < whole {
            let rest = [head.get(self.covered..).unwrap_or_default(), &body[self.covered.saturating_sub(head.len())..]];
            self.covered += connection.send(rest, whole - self.covered, out).map_err(broken)?;
        }
        Ok(())
    }

    fn poll_sealed(&mut self, cx: &mut Context<'_>, pieces: [&[u8]; 2], more: bool) -> Poll<io::Result<usize>> {
        if self.covered == 0 && !self.is_whole() && !self.seal_early(pieces)? && !self.is_whole() {
            ready!(self.poll_whole_handshake(cx)).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        }
        self.seal(pieces)?;
        ready!(self.output.poll_flush(cx, &mut self.stream, more))?;
        Poll::Ready(Ok(std::mem::take(&mut self.covered)))
    }

    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        head: &mut Buffer,
        body: &mut Buffer,
        more: bool,
    ) -> Poll<io::Result<usize>> {
        if self.connection.is_none() {
            return self.stream.poll_write(cx, head, body, more);
        }
        if head.is_empty() && body.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let count = ready!(self.poll_sealed(cx, [head.data(), body.data()], more))?;
        let of_head = count.min(head.len());
        head.consume(of_head);
        body.consume(count - of_head);
        Poll::Ready(Ok(count))
    }

    pub(super) fn poll_write_slices(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
        more: bool,
    ) -> Poll<io::Result<usize>> {
        let Some(connection) = &mut self.connection else {
            return self.stream.poll_write_slices(cx, slices, more);
        };
        let mut filled = slices.iter().filter(|slice| !slice.is_empty());
        let Some(first) = filled.next() else { return Poll::Ready(Ok(0)) };
        let second = filled.next().map_or(&[][..], |slice| slice);
        if filled.next().is_some() && self.covered == 0 && connection.is_open() {
            self.covered = seal_all(connection, slices, self.output.vec()).map_err(broken)?;
        }
        self.poll_sealed(cx, [first, second], more)
    }

    pub(super) fn try_write(&mut self, bytes: &[u8], more: bool) -> io::Result<Option<usize>> {
        if self.connection.is_none() {
            return self.stream.try_write(bytes, more);
        }
        if bytes.is_empty() {
            return Ok(Some(0));
        }
        if self.covered == 0 && !self.is_whole() && !self.seal_early([bytes, &[]])? && !self.is_whole() {
            return Ok(None);
        }
        self.seal([bytes, &[]])?;
        let whole = self.output.try_flush(&mut self.stream, more)?;
        Ok(whole.then(|| std::mem::take(&mut self.covered)))
    }

    /// Handles input received while idle that concerns only the transport. Returns false if there was other input.
    pub(super) fn settle(&mut self) -> bool {
        matches!(self.try_fill(), Ok(false)) && self.input.is_empty()
    }

    /// Whether it contains bytes that would be lost with it.
    pub(super) fn is_spoilt(&self) -> bool {
        !self.is_whole() || self.has_received() || !self.input.is_empty() || !self.output.is_empty() || self.failed
    }

    pub(super) fn park(mut self) -> Box<ParkedTls> {
        let spoilt = self.is_spoilt();
        let connection = self.connection.take();
        let info = self.info.take();
        Box::new(ParkedTls {
            parked: self.stream.take().park(),
            connection,
            info,
            _counted: ConnectionCount::new(),
            spoilt,
        })
    }

    /// Returns the stream, without sending an alert.
    pub(super) fn into_stream(mut self) -> Stream {
        self.stream.take()
    }
}

impl ParkedTls {
    pub(super) fn id(&self) -> ParkedId {
        self.parked.id()
    }

    pub(super) fn resume(self) -> Option<Tls> {
        self.again(ParkedStream::resume)
    }

    pub(super) fn take_over(self) -> Option<Tls> {
        self.again(ParkedStream::take_over)
    }

    pub(super) fn adopt(self) -> Option<Tls> {
        self.again(ParkedStream::adopt)
    }

    fn again(self, take: impl FnOnce(ParkedStream) -> Option<Stream>) -> Option<Tls> {
        let Self { parked, connection, info, _counted, spoilt } = self;
        let parked = Some(parked).filter(|_| !spoilt)?;
        take(parked).map(|stream| Tls::again(stream, connection, info))
    }
}
