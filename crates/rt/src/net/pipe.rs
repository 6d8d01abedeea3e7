//! Kernel pipes, through which a splice moves bytes between two streams without copying them.
//!
//! A pipe that contains bytes must never be used for another pair of streams.

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use super::{Socket, Stream};
use crate::{current, sim, sys};

/// Maximum number of unused pipes that a worker keeps.
const KEPT: usize = 16;
/// Default capacity in bytes that is requested for a pipe.
const WANTED_CAPACITY: usize = 512 * 1024;

/// Capacity in bytes that is requested for a pipe.
static WANTED: AtomicUsize = AtomicUsize::new(WANTED_CAPACITY);

/// Sets the capacity in bytes that is requested for pipes; the kernel rounds it up to pages, and a user's limit may
/// refuse it.
pub fn set_pipe_capacity(bytes: usize) {
    WANTED.store(bytes, Ordering::Relaxed);
}

/// The number of pipes of the process, and its limit.
static STOCK: Stock = Stock { open: AtomicUsize::new(0), most: AtomicUsize::new(usize::MAX) };

/// Limits the pipes of the process, kept ones included; streams without a pipe are copied.
pub fn limit_pipes(most: usize) {
    STOCK.most.store(most, Ordering::Relaxed);
}

struct Stock {
    open: AtomicUsize,
    most: AtomicUsize,
}

impl Stock {
    /// Counts another pipe, if the limit permits it.
    fn take(&'static self) -> Option<LocalRc> {
        let most = self.most.load(Ordering::Relaxed);
        let one_more = |open: usize| (open < most).then(|| open + 1);
        self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok().map(|_| LocalRc(self))
    }

    fn is_exhausted(&self) -> bool {
        self.open.load(Ordering::Relaxed) >= self.most.load(Ordering::Relaxed)
    }
}

/// A counted pipe.
struct LocalRc(&'static Stock);

impl Drop for LocalRc {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The two ends of an empty pipe, kept by a worker.
pub(crate) struct RawPipe {
    read: OwnedFd,
    write: OwnedFd,
    capacity: usize,
    _counted: LocalRc,
}

impl RawPipe {
    fn create(counted: LocalRc) -> io::Result<Self> {
        let (read, write, capacity) = sys::pipe::create(WANTED.load(Ordering::Relaxed))?;
        Ok(Self { read, write, capacity, _counted: counted })
    }
}

/// A pipe for one direction of a pair of streams. An empty one is returned to its worker when it is dropped.
pub struct Pipe {
    inner: Inner,
    filled: usize,
}

enum Inner {
    /// `None` once it is returned to its worker.
    Os(Option<RawPipe>),
    /// In a simulation the bytes are stored here.
    Sim(Vec<u8>),
}

impl Pipe {
    /// Takes a pipe from the current worker's store, or creates one.
    ///
    /// # Errors
    /// From the kernel: descriptors or pipe memory are exhausted; `QuotaExceeded` by [`limit_pipes`].
    pub fn new() -> io::Result<Pipe> {
        if sim::current_world().is_some() {
            return Ok(Pipe { inner: Inner::Sim(Vec::new()), filled: 0 });
        }
        let kept = current::with(|worker| worker.pipes.borrow_mut().pop());
        let raw = match kept {
            Some(raw) => raw,
            None => {
                let counted = STOCK.take().ok_or(io::ErrorKind::QuotaExceeded)?;
                RawPipe::create(counted)?
            }
        };
        Ok(Pipe { inner: Inner::Os(Some(raw)), filled: 0 })
    }

    /// Returns the number of bytes in the pipe.
    pub fn len(&self) -> usize {
        self.filled
    }

    pub fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Returns the capacity in bytes.
    pub fn capacity(&self) -> usize {
        match &self.inner {
            Inner::Os(raw) => raw.as_ref().map_or(0, |raw| raw.capacity),
            Inner::Sim(_) => WANTED_CAPACITY,
        }
    }

    /// Moves up to `max` bytes from a stream into the pipe, which must be empty; 0 is the end of the stream.
    ///
    /// # Errors
    /// From the stream; `InvalidInput` if the pipe is not empty: the kernel does not show then whether the pipe or the
    /// stream would block.
    pub fn poll_splice_in(
        &mut self,
        context: &mut Context<'_>,
        from: &mut Stream,
        max: usize,
    ) -> Poll<io::Result<usize>> {
        if self.filled > 0 {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        }
        let room = max.min(self.capacity());
        let inner = &mut self.inner;
        let moved = from.poll_receive_by(context, room, |socket| match (socket, inner) {
            (Socket::Os(fd), Inner::Os(Some(raw))) => {
                sys::pipe::splice(fd.as_raw_fd(), raw.write.as_raw_fd(), room, false)
            }
            (Socket::Sim(socket), Inner::Sim(bytes)) => {
                bytes.resize(room, 0);
                let received = socket.receive(bytes);
                bytes.truncate(received.as_ref().ok().copied().flatten().unwrap_or(0));
                received
            }
            _ => Err(io::ErrorKind::Unsupported.into()),
        });
        if let Poll::Ready(Ok(count)) = moved {
            self.filled = count;
        }
        moved
    }

    /// Moves the pipe's bytes into a stream; 0 if it is empty. `more` as for [`Stream::poll_write`].
    ///
    /// # Errors
    /// From the stream.
    pub fn poll_splice_out(
        &mut self,
        context: &mut Context<'_>,
        to: &mut Stream,
        more: bool,
    ) -> Poll<io::Result<usize>> {
        let filled = self.filled;
        if filled == 0 {
            return Poll::Ready(Ok(0));
        }
        let inner = &mut self.inner;
        let moved = to.poll_send_by(context, filled, |socket| match (socket, inner) {
            (Socket::Os(fd), Inner::Os(Some(raw))) => {
                sys::pipe::splice(raw.read.as_raw_fd(), fd.as_raw_fd(), filled, more)
            }
            (Socket::Sim(socket), Inner::Sim(bytes)) => {
                let sent = socket.send(bytes)?;
                bytes.drain(..sent.unwrap_or(0));
                Ok(sent)
            }
            _ => Err(io::ErrorKind::Unsupported.into()),
        });
        if let Poll::Ready(Ok(count)) = moved {
            self.filled -= count.min(filled);
        }
        moved
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let Inner::Os(raw) = &mut self.inner else { return };
        let Some(raw) = raw.take().filter(|_| self.filled == 0) else { return };
        current::try_with(|worker| {
            let mut pipes = worker.pipes.borrow_mut();
            // If the limit of pipes is reached, none is kept.
            if pipes.len() < KEPT && !STOCK.is_exhausted() {
                pipes.push(raw);
            }
        });
    }
}

impl fmt::Debug for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipe").field("filled", &self.filled).field("capacity", &self.capacity()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_pipes_than_there_may_be() {
        static STOCK: Stock = Stock { open: AtomicUsize::new(0), most: AtomicUsize::new(2) };
        let (one, other) = (STOCK.take(), STOCK.take());
        assert!(one.is_some() && other.is_some() && STOCK.is_exhausted() && STOCK.take().is_none());
        drop(one);
        assert!(!STOCK.is_exhausted() && STOCK.take().is_some());
        assert_eq!(STOCK.open.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_pipe_holds_as_much_as_was_set() {
        static STOCK: Stock = Stock { open: AtomicUsize::new(0), most: AtomicUsize::new(2) };
        set_pipe_capacity(8_192);
        let set = RawPipe::create(STOCK.take().unwrap()).unwrap();
        set_pipe_capacity(WANTED_CAPACITY);
        assert_eq!(set.capacity, 8_192);
        assert!(RawPipe::create(STOCK.take().unwrap()).unwrap().capacity > 8_192);
    }
}
