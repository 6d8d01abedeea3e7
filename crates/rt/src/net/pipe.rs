//! Kernel pipes, through which a splice moves bytes between two streams without copying them.
//!
//! A pipe that contains bytes must never be used for another pair of streams.

use std::fmt;
use std::io;
use std::os::fd::AsRawFd;
use std::task::{Context, Poll};

use super::raw_pipe::{RawPipe, STOCK, WANTED_CAPACITY};
use super::{Socket, Stream};
use crate::{current, sim, sys};

/// Maximum number of unused pipes that a worker keeps.
const KEPT: usize = 16;
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
