//! A connected stream that belongs to one worker.
//!
//! It tries before it waits, and is watched from its first wait on; it must never block.

mod transfer;

use std::fmt;
use std::io::{self, IoSlice};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::task::{Context, Poll};

use base::{Buffer, Key};

use super::set_up::saturate;
use super::{Address, OwnedSocket, Socket, SocketQuery};
use crate::calls::are_named;
use crate::current;
use crate::source::{Events, Readiness, Source, Watch};
use crate::sys;
use crate::worker::Worker;

/// How the peer ended a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hangup {
    /// The peer closed its direction in order; it may still read.
    PeerClosed,
    /// The connection failed, mostly by a reset.
    Error,
}

/// A connected TCP or UNIX stream of the current worker.
///
/// Errors of the `poll_` and `try_` methods come from the socket. A stream that returned one should be dropped.
pub struct Stream {
    socket: Socket,
    key: Key,
    of_one_worker: PhantomData<*const ()>,
}

/// Bodies of up to this number of bytes are copied after their head: cheaper than a second slice in a system call.
const FEW: usize = 512;

/// The event that a task waits for.
#[derive(Clone, Copy)]
enum Interest {
    Read,
    Write,
    Hangup,
}

impl Stream {
    /// Takes over a connected socket on the current worker. Its readiness is unknown, and it is not watched yet.
    pub fn adopt(socket: OwnedSocket) -> Stream {
        Stream::enter(socket.socket, Source::new())
    }

    /// Creates a source for a socket on the current worker.
    pub(super) fn enter(socket: Socket, source: Source) -> Stream {
        let key = current::with(|worker| worker.sources.borrow_mut().insert(source));
        Stream { socket, key, of_one_worker: PhantomData }
    }

    /// Creates a stream with an existing source.
    pub(super) fn resume(socket: Socket, key: Key) -> Stream {
        Stream { socket, key, of_one_worker: PhantomData }
    }

    /// Returns the socket's number, in a simulation as well.
    pub fn number(&self) -> i32 {
        self.socket.number()
    }

    /// Takes the stream apart without closing it or freeing its source.
    pub(super) fn into_parts(self) -> (Socket, Key) {
        let stream = ManuallyDrop::new(self);
        // SAFETY: the stream is not used again and its `drop` never runs, so the socket has one owner.
        (unsafe { std::ptr::read(&stream.socket) }, stream.key)
    }

    /// Runs `action` with the worker and this stream's source.
    #[inline]
    fn with_source<R>(&self, action: impl FnOnce(&Worker, &mut Source) -> R) -> R {
        current::with(|worker| match worker.sources.borrow_mut().get_mut(self.key) {
            Some(source) => action(worker, source),
            None => unreachable_source(),
        })
    }

    /// Reads into the free space of `buffer`; 0 is the end of the stream.
    ///
    /// # Errors
    /// From the socket; `InvalidInput` if `buffer` is full.
    #[inline]
    pub fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        self.with_source(|worker, source| {
            if source.may_read() {
                if !worker.may_spend(context) {
                    return Poll::Pending;
                }
                if let Some(count) = read(&self.socket, source, buffer)? {
                    worker.spend_bytes(count);
                    return Poll::Ready(Ok(count));
                }
            }
            self.wait(worker, source, context, Interest::Read)?;
            Poll::Pending
        })
    }

    /// Discards up to `most` received bytes without copying them (`MSG_TRUNC`), and returns their number; 0 is the end
    /// of the stream. Only for TCP: UNIX sockets do not support it.
    ///
    /// # Errors
    /// From the socket.
    #[inline]
    pub fn poll_discard(&mut self, context: &mut Context<'_>, most: usize) -> Poll<io::Result<usize>> {
        self.with_source(|worker, source| {
            if source.may_read() {
                if !worker.may_spend(context) {
                    return Poll::Pending;
                }
                let room = most.max(1);
                if let Some(count) = note_read(source, room, self.socket.discard(room))? {
                    worker.spend_bytes(count);
                    return Poll::Ready(Ok(count));
                }
            }
            self.wait(worker, source, context, Interest::Read)?;
            Poll::Pending
        })
    }

    /// Drops up to `most` of the bytes that have come, without waiting for more and without copying them where the socket is one of
    /// TCP; 0 is the end of the stream.
    ///
    /// # Errors
    /// The socket's.
    pub fn try_drop(&mut self, most: usize) -> io::Result<Option<usize>> {
        self.with_source(|_, source| if source.may_read() { drop_some(&self.socket, source, most) } else { Ok(None) })
    }

    /// The same, waiting for some.
    ///
    /// # Errors
    /// The socket's.
    pub fn poll_drop(&mut self, context: &mut Context<'_>, most: usize) -> Poll<io::Result<usize>> {
        self.with_source(|worker, source| {
            if source.may_read() {
                if !worker.may_spend(context) {
                    return Poll::Pending;
                }
                if let Some(count) = drop_some(&self.socket, source, most)? {
                    worker.spend_bytes(count);
                    return Poll::Ready(Ok(count));
                }
            }
            self.wait(worker, source, context, Interest::Read)?;
            Poll::Pending
        })
    }

    /// Reads without waiting: `None` when there is nothing yet. No task is woken when there is.
    ///
    /// # Errors
    /// As for [`Stream::poll_read`].
    pub fn try_read(&mut self, buffer: &mut Buffer) -> io::Result<Option<usize>> {
        self.with_source(|_, source| if source.may_read() { read(&self.socket, source, buffer) } else { Ok(None) })
    }

    /// Writes both buffers, `head` first, with one system call, and consumes what was written; a short body may be
    /// copied into `head` before. Either may be empty; if both are, returns 0 immediately. `more` indicates to the
    /// kernel that more data or a close follows immediately (`MSG_MORE`).
    ///
    /// # Errors
    /// From the socket.
    #[inline]
    pub fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        head: &mut Buffer,
        body: &mut Buffer,
        more: bool,
    ) -> Poll<io::Result<usize>> {
        if !head.is_empty() && (1..=FEW).contains(&body.len()) && head.push(body.data()) {
            body.clear();
        }
        let (in_head, in_body) = (head.len(), body.len());
        let written = match (in_head, in_body) {
            (0, 0) => return Poll::Ready(Ok(0)),
            (_, 0) => self.poll_send(context, in_head, |socket| socket.send(head.data(), more)),
            (0, _) => self.poll_send(context, in_body, |socket| socket.send(body.data(), more)),
            _ => {
                let slices = [IoSlice::new(head.data()), IoSlice::new(body.data())];
                self.poll_send(context, in_head + in_body, |socket| socket.send_slices(&slices, more))
            }
        };
        if let Poll::Ready(Ok(count)) = written {
            let from_head = count.min(in_head);
            head.consume(from_head);
            body.consume(count - from_head);
        }
        written
    }

    /// Writes slices with one system call and returns the number of bytes written.
    ///
    /// # Errors
    /// From the socket.
    pub fn poll_write_slices(
        &mut self,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
        more: bool,
    ) -> Poll<io::Result<usize>> {
        let offered = slices.iter().map(|slice| slice.len()).sum();
        if offered == 0 {
            return Poll::Ready(Ok(0));
        }
        self.poll_send(context, offered, |socket| match slices {
            [one] => socket.send(one, more),
            _ => socket.send_slices(slices, more),
        })
    }

    /// Writes without waiting: `None` if the kernel accepts nothing now; no task is woken later.
    ///
    /// # Errors
    /// From the socket.
    pub fn try_write(&mut self, bytes: &[u8], more: bool) -> io::Result<Option<usize>> {
        self.with_source(|_, source| {
            if !source.may_write() {
                return Ok(None);
            }
            let sent = self.socket.send(bytes, more)?;
            source.has_written(sent.unwrap_or(0), bytes.len().max(1));
            Ok(sent)
        })
    }

    #[inline]
    fn poll_send(
        &self,
        context: &Context<'_>,
        offered: usize,
        send: impl FnOnce(&Socket) -> io::Result<Option<usize>>,
    ) -> Poll<io::Result<usize>> {
        self.with_source(|worker, source| {
            if source.may_write() {
                if !worker.may_spend(context) {
                    return Poll::Pending;
                }
                let sent = send(&self.socket)?;
                source.has_written(sent.unwrap_or(0), offered);
                if let Some(count) = sent {
                    worker.spend_bytes(count);
                    return Poll::Ready(Ok(count));
                }
            }
            self.wait(worker, source, context, Interest::Write)?;
            Poll::Pending
        })
    }

    /// Ready when a read may return something, without reading: for idle clients that hold no buffer. Does not try a
    /// read, so that the first result for a stream that was never read is "ready".
    pub fn poll_readable(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.with_source(|worker, source| {
            if source.may_read() || self.wait(worker, source, context, Interest::Read).is_err() {
                return Poll::Ready(());
            }
            Poll::Pending
        })
    }

    /// Ready when a write may accept something.
    pub fn poll_writable(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.with_source(|worker, source| {
            if source.may_write() || self.wait(worker, source, context, Interest::Write).is_err() {
                return Poll::Ready(());
            }
            Poll::Pending
        })
    }

    /// Ready when the peer has closed or the connection failed. Data that arrives before is not read, and wakes no
    /// task. Watches the stream if it is not watched yet.
    pub fn poll_hangup(&mut self, context: &mut Context<'_>) -> Poll<Hangup> {
        self.with_source(|worker, source| {
            if source.seen().any(Events::ERROR) {
                return Poll::Ready(Hangup::Error);
            }
            if source.ending() {
                return Poll::Ready(Hangup::PeerClosed);
            }
            match self.wait(worker, source, context, Interest::Hangup) {
                Ok(()) => Poll::Pending,
                Err(_) => Poll::Ready(Hangup::Error),
            }
        })
    }

    /// Watches the stream if it is not watched yet, and stores the task's waker.
    #[inline]
    fn wait(&self, worker: &Worker, source: &mut Source, context: &Context<'_>, want: Interest) -> io::Result<()> {
        if !source.watched {
            self.watch(worker, source)?;
        }
        match want {
            Interest::Read => source.wait_to_read(context),
            Interest::Write => source.wait_to_write(context),
            Interest::Hangup => source.wait_for_hangup(context),
        }
        Ok(())
    }

    #[cold]
    fn watch(&self, worker: &Worker, source: &mut Source) -> io::Result<()> {
        worker.driver.watch(&self.socket, Watch::Edges, self.key)?;
        source.note_watched(self.socket.number());
        Ok(())
    }

    /// Watches the stream from now on; otherwise it is watched from its first wait. An error of the kernel is reported
    /// by that first wait.
    pub fn register(&mut self) {
        self.with_source(|worker, source| {
            if !source.watched {
                let _ = self.watch(worker, source);
            }
        });
    }

    /// Whether the driver watches the stream.
    pub fn is_registered(&self) -> bool {
        self.with_source(|_, source| source.watched)
    }

    /// Closes the write direction.
    ///
    /// # Errors
    /// From the socket: `NotConnected` after a reset.
    pub fn shutdown_write(&mut self) -> io::Result<()> {
        self.socket.shutdown_write()
    }

    /// Makes dropping the stream reset the connection (`SO_LINGER` 0): the peer gets no orderly end, and no socket
    /// remains in TIME_WAIT.
    ///
    /// # Errors
    /// From the socket.
    pub fn set_linger_zero(&mut self) -> io::Result<()> {
        self.socket.set_linger_zero()
    }

    /// Makes closing send nothing to the peer or, with `hops`, a reset with that time to live.
    ///
    /// # Errors
    /// From the socket.
    pub fn forget(&mut self, hops: Option<u8>) -> io::Result<()> {
        self.socket.forget(hops)
    }

    /// Wakes a reader only when `bytes` are available (`SO_RCVLOWAT`), or at the end. 1 is the default. A caller that
    /// raises it must lower it by a timer: otherwise a sender that pauses below the mark is never read.
    ///
    /// # Errors
    /// From the socket.
    pub fn set_receive_low_water(&mut self, bytes: usize) -> io::Result<()> {
        let mark = i32::try_from(bytes).unwrap_or(i32::MAX);
        self.socket.set_option(libc::SOL_SOCKET, libc::SO_RCVLOWAT, mark)?;
        if bytes <= 1 {
            // Data below the mark raised no event: the next read must try.
            self.with_source(|_, source| source.read = Readiness::Unknown);
        }
        Ok(())
    }

    /// Returns the local address. A system call.
    ///
    /// # Errors
    /// From the socket.
    pub fn local_address(&self) -> io::Result<Address> {
        self.socket.local_address()
    }

    /// Returns a handle that queries this socket while the stream exists, without owning it.
    pub fn query(&self) -> SocketQuery {
        let instance = current::with(|worker| worker.remote.instance);
        SocketQuery { instance, key: self.key, number: self.socket.number() }
    }

    /// Reduces the size of sent segments by a number of bytes below the peer's maximum (`TCP_MAXSEG`).
    ///
    /// # Errors
    /// From the socket.
    pub fn reduce_segments(&mut self, by: u32) -> io::Result<()> {
        let Some(descriptor) = self.socket.descriptor() else { return Ok(()) };
        let size = sys::socket::option(descriptor, libc::IPPROTO_TCP, libc::TCP_MAXSEG)?;
        let smaller = size.saturating_sub(saturate(by)).max(1);
        self.socket.set_option(libc::IPPROTO_TCP, libc::TCP_MAXSEG, smaller)
    }

    /// Returns the maximum segment size to the peer in bytes. A system call.
    ///
    /// # Errors
    /// From the socket; sockets other than TCP have no segments.
    pub fn segment_size(&self) -> io::Result<usize> {
        let descriptor = self.socket.descriptor().ok_or(io::ErrorKind::Unsupported)?;
        let size = sys::socket::option(descriptor, libc::IPPROTO_TCP, libc::TCP_MAXSEG)?;
        Ok(usize::try_from(size).unwrap_or(0))
    }

    /// Returns the peer's address. A system call.
    ///
    /// # Errors
    /// From the socket: `NotConnected` after a reset.
    pub fn peer_address(&self) -> io::Result<Address> {
        self.socket.peer_address()
    }

    /// Takes the pending error of the socket (`SO_ERROR`). A system call.
    pub fn take_error(&mut self) -> Option<io::Error> {
        self.socket.take_error()
    }

    /// Whether the peer has reset the connection, or it has failed otherwise. A system call unless that was reported.
    pub fn is_reset(&mut self) -> bool {
        self.with_source(|_, source| source.seen().any(Events::ERROR)) || self.socket.take_error().is_some()
    }

    /// Whether the stream is idle as it should be: nothing to read, no end, no error. A system call only when the last
    /// read left that open.
    pub fn is_clean(&mut self) -> bool {
        self.with_source(|_, source| is_clean(&self.socket, source))
    }

    /// Whether something can be read, or the end was reached, right now: queries the socket regardless of recorded
    /// events. The next read then tries.
    pub fn has_input(&mut self) -> bool {
        let something = self.socket.has_something();
        if something {
            self.with_source(|_, source| source.read = Readiness::Unknown);
        }
        something
    }

    /// Whether nothing is known to be readable: the last read emptied the socket, and no end has been reported since.
    /// Never a system call, so that bytes that have arrived on an unwatched stream are not noticed. A read never proves that with
    /// [`crate::SocketCalls::Named`], so that these look.
    pub fn is_quiet(&self) -> bool {
        self.with_source(|_, source| {
            (source.read == Readiness::Drained && !source.ending()) || (are_named() && is_clean(&self.socket, source))
        })
    }

    /// Removes the stream from its worker, so that another one may adopt it.
    pub fn detach(self) -> OwnedSocket {
        let (socket, key) = self.into_parts();
        let _source = current::with(|worker| {
            let source = worker.sources.borrow_mut().remove(key);
            if source.as_ref().is_some_and(|source| source.watched) {
                worker.driver.unwatch(&socket);
            }
            source
        });
        OwnedSocket { socket }
    }

    /// Returns the descriptor's number; `None` in a simulation.
    pub fn descriptor(&self) -> Option<std::os::fd::RawFd> {
        self.socket.descriptor()
    }

    /// Whether an event reported that the connection failed.
    pub(super) fn has_failed(&self) -> bool {
        self.with_source(|_, source| source.seen().any(Events::ERROR.with(Events::HANGUP)))
    }

    /// Resets the recorded readiness: the next read and the next write try.
    pub(super) fn expect_anything(&mut self) {
        self.with_source(|_, source| (source.read, source.write) = (Readiness::Unknown, Readiness::Unknown));
    }
}

#[cold]
fn unreachable_source() -> ! {
    panic!("a stream was used on a worker that is not its own")
}

/// Reads once, and records the resulting readiness.
#[inline]
fn read(socket: &Socket, source: &mut Source, buffer: &mut Buffer) -> io::Result<Option<usize>> {
    let place = buffer.spare_mut();
    let room = place.len();
    if room == 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no room to read into"));
    }
    let received = note_read(source, room, socket.receive(place))?;
    buffer.advance(received.unwrap_or(0));
    Ok(received)
}

/// Records the readiness that follows from a read into `room` bytes of free space.
#[inline]
fn note_read(source: &mut Source, room: usize, received: io::Result<Option<usize>>) -> io::Result<Option<usize>> {
    let received = received?;
    match received {
        // The end of the stream stays readable: only a read of some bytes can be short.
        Some(count) => source.has_read(if count == 0 { room } else { count }, room),
        None => source.read = Readiness::Drained,
    }
    Ok(received)
}

/// Drops some of the input that has arrived. A UNIX socket needs a buffer for that.
fn drop_some(socket: &Socket, source: &mut Source, most: usize) -> io::Result<Option<usize>> {
    let room = most.max(1);
    match socket.discard(room) {
        Err(error) if error.raw_os_error() == Some(libc::EFAULT) => {
            let mut place = [0; 4096];
            note_read(source, place.len(), socket.receive(&mut place))
        }
        dropped => note_read(source, room, dropped),
    }
}

/// Whether nothing waits to be read; looks when the state is open.
pub(super) fn is_clean(socket: &Socket, source: &mut Source) -> bool {
    if source.ending() {
        return false;
    }
    if source.watched && source.read == Readiness::Drained {
        return true;
    }
    let clean = !socket.has_something();
    if clean {
        source.read = Readiness::Drained;
    }
    clean
}

impl Drop for Stream {
    fn drop(&mut self) {
        // The source is removed first, and its wakers are dropped after the slab is unborrowed; then the socket closes,
        // which ends its watch.
        let _source = current::try_with(|worker| worker.sources.borrow_mut().remove(self.key));
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("descriptor", &self.descriptor()).finish()
    }
}
