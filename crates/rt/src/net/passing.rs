//! Passing descriptors to another process over a UNIX socket (`SCM_RIGHTS`).
//!
//! Nothing here may interpret the bytes that are sent.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::task::{Context, Poll};

use base::Key;

use super::{Address, BindOptions, ListeningSocket, OwnedSocket, Socket, Stream};
use crate::source::{Readiness, Source, Watch};
use crate::{current, process, sys};

/// Maximum number of descriptors in one message.
pub const MOST_DESCRIPTORS: usize = sys::passing::MOST_DESCRIPTORS;

/// Sends bytes over a UNIX socket, descriptors with the first of them, and returns the number of bytes sent. If it is
/// not zero, the descriptors were sent.
///
/// # Errors
/// `InvalidInput` for more than [`MOST_DESCRIPTORS`], or for descriptors without a byte; `WouldBlock` on a non-blocking
/// socket; otherwise from the socket.
pub fn send_descriptors(to: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let sent = sys::passing::send(to.as_fd().as_raw_fd(), bytes, descriptors, 0)?;
    sent.ok_or_else(|| io::ErrorKind::WouldBlock.into())
}

/// Receives bytes from a UNIX socket, 0 at the end, and appends the descriptors that came with them. Bytes sent with
/// descriptors are not received together with those sent after them.
///
/// # Errors
/// `WouldBlock` if nothing is available on a non-blocking socket, or within the socket's timeout; `InvalidData` for a
/// message with more descriptors than [`MOST_DESCRIPTORS`]; otherwise from the socket.
pub fn receive_descriptors(from: impl AsFd, place: &mut [u8], into: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let received = sys::passing::receive(from.as_fd().as_raw_fd(), place, into)?;
    received.ok_or_else(|| io::ErrorKind::WouldBlock.into())
}

impl Stream {
    /// Writes bytes to a UNIX stream, descriptors with the first of them; see [`send_descriptors`].
    ///
    /// # Errors
    /// As there; `Unsupported` in a simulation.
    pub fn poll_send_descriptors(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_send_by(context, bytes.len(), |socket| match socket {
            Socket::Os(fd) => sys::passing::send(fd.as_raw_fd(), bytes, descriptors, 0),
            Socket::Sim(_) => Err(io::ErrorKind::Unsupported.into()),
        })
    }
}

/// Checks that connections can be passed over a descriptor.
///
/// # Errors
/// `InvalidInput`: it is not a connected UNIX stream socket; otherwise from the system.
pub(super) fn check_carrier(fd: RawFd) -> io::Result<()> {
    let kind = sys::socket::option(fd, libc::SOL_SOCKET, libc::SO_TYPE)?;
    let family = sys::socket::option(fd, libc::SOL_SOCKET, libc::SO_DOMAIN)?;
    if kind != libc::SOCK_STREAM || family != libc::AF_UNIX || sys::socket::peer_address(fd).is_err() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a connected UNIX stream socket"));
    }
    Ok(())
}

impl ListeningSocket {
    /// Takes over an inherited, connected UNIX socket: connections arrive as descriptors over it.
    ///
    /// # Errors
    /// `InvalidInput` if it is not one, `ResourceBusy` if it was already taken over, otherwise from the socket.
    pub fn inherit_carrier(fd: RawFd, options: &BindOptions) -> io::Result<ListeningSocket> {
        check_carrier(fd)?;
        let carrier = process::take(fd)?;
        sys::set_nonblocking(&carrier)?;
        let socket = ListeningSocket::new(Socket::Os(carrier.into()), Address::Carrier(fd), options);
        socket.set_shared();
        Ok(socket)
    }

    /// Whether connections arrive as descriptors over it.
    pub(super) fn is_carrier(&self) -> bool {
        matches!(self.address, Address::Carrier(_))
    }
}

/// A listening socket received from another process.
#[derive(Debug)]
pub struct ForeignListener {
    fd: OwnedFd,
    /// The address that it listens on, from the kernel: for a UNIX socket the name that it was first bound to.
    pub address: Address,
    /// The network device that it is bound to, if any.
    pub interface: Option<String>,
}

impl ForeignListener {
    /// Takes over a descriptor; `None` if it is not a listening stream socket.
    pub fn new(fd: OwnedFd) -> Option<ForeignListener> {
        let is = |name, expected| {
            sys::socket::option(fd.as_raw_fd(), libc::SOL_SOCKET, name).is_ok_and(|value| value == expected)
        };
        if !is(libc::SO_TYPE, libc::SOCK_STREAM) || !is(libc::SO_ACCEPTCONN, 1) {
            return None;
        }
        let address = sys::socket::local_address(fd.as_raw_fd()).ok()?;
        let interface = sys::socket::interface(fd.as_raw_fd());
        Some(ForeignListener { fd, address, interface })
    }

    /// Listens on it, with the options that can be set on a socket that listens already.
    ///
    /// # Errors
    /// From the socket.
    pub fn adopt(self, address: &Address, options: &BindOptions) -> io::Result<ListeningSocket> {
        ListeningSocket::adopt(self.fd, address, options)
    }
}

/// Creates a connected pair of non-blocking UNIX stream sockets.
///
/// # Errors
/// From the kernel: no descriptors.
pub fn stream_pair() -> io::Result<(OwnedSocket, OwnedSocket)> {
    let (one, other) = sys::passing::pair(libc::SOCK_STREAM)?;
    Ok((OwnedSocket { socket: Socket::Os(one.into()) }, OwnedSocket { socket: Socket::Os(other.into()) }))
}

/// Creates a pair of connected ends between two processes; message boundaries are preserved, and messages may carry
/// descriptors. Make a [`Channel`] of each.
///
/// # Errors
/// From the kernel: no descriptors.
pub fn channel_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    sys::passing::pair(libc::SOCK_SEQPACKET)
}

/// Whether a descriptor is an end of a channel.
pub fn is_channel(end: &OwnedFd) -> bool {
    let option = |name| sys::socket::option(end.as_raw_fd(), libc::SOL_SOCKET, name).ok();
    option(libc::SO_TYPE) == Some(libc::SOCK_SEQPACKET) && option(libc::SO_DOMAIN) == Some(libc::AF_UNIX)
}

/// One end of a channel between two processes, watched by the current worker.
pub struct Channel {
    socket: Socket,
    key: Key,
}

impl Channel {
    /// Watches an end of [`channel_pair`].
    ///
    /// # Errors
    /// From the kernel; `InvalidInput` if it is not such an end.
    pub fn adopt(end: OwnedFd) -> io::Result<Channel> {
        if sys::socket::option(end.as_raw_fd(), libc::SOL_SOCKET, libc::SO_TYPE)? != libc::SOCK_SEQPACKET {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a channel"));
        }
        sys::set_nonblocking(&end)?;
        let key = current::with(|worker| worker.sources.borrow_mut().insert(Source::new()));
        Ok(Channel { socket: Socket::Os(end.into()), key })
    }

    /// Sends one message. Fails if the other end has no capacity for it.
    ///
    /// # Errors
    /// As for [`send_descriptors`]; `BrokenPipe` if the other end is closed.
    pub fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        match &self.socket {
            Socket::Os(fd) => send_descriptors(&**fd, bytes, descriptors).map(drop),
            Socket::Sim(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Receives one message into `place`; returns its length, 0 if the other end is closed. What does not fit is lost.
    ///
    /// # Errors
    /// As for [`receive_descriptors`].
    pub async fn receive(&mut self, place: &mut [u8], into: &mut Vec<OwnedFd>) -> io::Result<usize> {
        std::future::poll_fn(|context| self.poll_receive(context, place, into)).await
    }

    /// The poll form of [`Channel::receive`].
    ///
    /// # Errors
    /// As there.
    pub fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
        place: &mut [u8],
        into: &mut Vec<OwnedFd>,
    ) -> Poll<io::Result<usize>> {
        let Socket::Os(fd) = &self.socket else { return Poll::Ready(Err(io::ErrorKind::Unsupported.into())) };
        current::with(|worker| {
            let mut sources = worker.sources.borrow_mut();
            let Some(source) = sources.get_mut(self.key) else {
                return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
            };
            if source.may_read() {
                if !worker.may_spend(context) {
                    return Poll::Pending;
                }
                if let Some(count) = sys::passing::receive(fd.as_raw_fd(), place, into)? {
                    return Poll::Ready(Ok(count));
                }
                source.read = Readiness::Drained;
            }
            if !source.watched {
                worker.driver.watch(&self.socket, Watch::Edges, self.key)?;
                source.note_watched(self.socket.number());
            }
            source.wait_to_read(context);
            Poll::Pending
        })
    }

    /// Duplicates the end, for another [`Channel`] or another program; the copy is not watched.
    ///
    /// # Errors
    /// From the kernel: no descriptors.
    pub fn duplicate(&self) -> io::Result<OwnedFd> {
        match &self.socket {
            Socket::Os(fd) => fd.try_clone(),
            Socket::Sim(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        let _source = current::try_with(|worker| {
            // The other process, or a copy, may keep the same end open, so that closing it does not end the watch.
            worker.driver.unwatch(&self.socket);
            worker.sources.borrow_mut().remove(self.key)
        });
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").field("descriptor", &self.socket.descriptor()).finish()
    }
}
