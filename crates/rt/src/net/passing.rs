//! Descriptors on their way to another process over a UNIX socket (`SCM_RIGHTS`).
//!
//! Nothing here may give a meaning to what is sent.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::task::{Context, Poll};

use base::Key;

use super::{Address, BindOptions, ListeningSocket, OwnedSocket, Socket, Stream};
use crate::source::{Readiness, Source, Watch};
use crate::{current, process, sys};

/// Descriptors that one message carries at most.
pub const MOST_DESCRIPTORS: usize = sys::passing::MOST_DESCRIPTORS;

/// Sends bytes over a UNIX socket, descriptors with the first of them, and returns how many bytes went. The descriptors
/// have gone if a byte has.
///
/// # Errors
/// `InvalidInput` for more than [`MOST_DESCRIPTORS`], or for descriptors without a byte; `WouldBlock` on a socket that
/// does not block; else the socket's.
pub fn send_descriptors(to: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let sent = sys::passing::send(to.as_fd().as_raw_fd(), bytes, descriptors, 0)?;
    sent.ok_or_else(|| io::ErrorKind::WouldBlock.into())
}

/// Receives bytes from a UNIX socket, 0 at the end, and appends the descriptors that came with them. What was sent with
/// descriptors is not received together with what was sent behind it.
///
/// # Errors
/// `WouldBlock` when nothing is there on a socket that does not block, or not in time on one that has a timeout;
/// `InvalidData` for a message with more descriptors than [`MOST_DESCRIPTORS`]; else the socket's.
pub fn receive_descriptors(from: impl AsFd, place: &mut [u8], into: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let received = sys::passing::receive(from.as_fd().as_raw_fd(), place, into)?;
    received.ok_or_else(|| io::ErrorKind::WouldBlock.into())
}

impl Stream {
    /// Writes bytes over a UNIX stream, descriptors with the first of them; see [`send_descriptors`].
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

/// Whether connections can be passed over a descriptor.
///
/// # Errors
/// `InvalidInput`: it is no connected stream socket of the UNIX family; else the system's.
pub(super) fn check_carrier(fd: RawFd) -> io::Result<()> {
    let kind = sys::socket::option(fd, libc::SOL_SOCKET, libc::SO_TYPE)?;
    let family = sys::socket::option(fd, libc::SOL_SOCKET, libc::SO_DOMAIN)?;
    if kind != libc::SOCK_STREAM || family != libc::AF_UNIX || sys::socket::peer_address(fd).is_err() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a connected UNIX stream socket"));
    }
    Ok(())
}

impl ListeningSocket {
    /// Takes over a connected UNIX socket that the process was started with: connections come as descriptors over it.
    ///
    /// # Errors
    /// `InvalidInput` when it is none, `ResourceBusy` when it was taken over already, else the socket's.
    pub fn inherit_carrier(fd: RawFd, options: &BindOptions) -> io::Result<ListeningSocket> {
        check_carrier(fd)?;
        let carrier = process::take(fd)?;
        sys::set_nonblocking(&carrier)?;
        let socket = ListeningSocket::new(Socket::Os(carrier.into()), Address::Carrier(fd), options);
        socket.set_shared();
        Ok(socket)
    }

    /// Whether connections come as descriptors over it.
    pub(super) fn is_carrier(&self) -> bool {
        matches!(self.address, Address::Carrier(_))
    }
}

/// Messages that one attempt to accept looks at.
const LOOKED_AT: usize = 8;

/// Takes a connection that was passed over a carrier; `None`: none has come. What is no message with one connected stream socket
/// is closed. `has_ended` is set when the other end of the carrier is closed.
pub(super) fn accept(carrier: &Socket, has_ended: &mut bool) -> io::Result<Option<(Socket, Address)>> {
    let Some(number) = carrier.descriptor() else { return Ok(None) };
    for _ in 0..LOOKED_AT {
        let (mut place, mut came) = ([0; 64], Vec::new());
        match sys::passing::receive(number, &mut place, &mut came) {
            Ok(None) => return Ok(None),
            Ok(Some(0)) => {
                *has_ended = true;
                return Ok(None);
            }
            Ok(Some(_)) => {}
            // Too many descriptors: all of them are closed.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => continue,
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                *has_ended = true;
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
        let [fd] = &came[..] else { continue };
        let is_connected =
            matches!(sys::socket::option(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_TYPE), Ok(libc::SOCK_STREAM));
        let peer = sys::socket::peer_address(fd.as_raw_fd()).ok().filter(|_| is_connected);
        if let Some(peer) = peer
            && sys::set_nonblocking(fd).is_ok()
            && let Some(fd) = came.pop()
        {
            return Ok(Some((Socket::Os(fd.into()), peer)));
        }
    }
    // The driver tells again where there is more.
    Ok(None)
}

/// Connects over a carrier: passes one end of a new pair, and returns the other one.
///
/// # Errors
/// Of the pair, and of passing it: `WouldBlock` where the other end does not take what was passed before.
pub(super) fn connect(carrier: RawFd) -> Result<OwnedFd, (bool, io::Error)> {
    let (own, other) = sys::passing::pair(libc::SOCK_STREAM).map_err(|error| (true, error))?;
    let sent =
        sys::passing::send(carrier, &[0], &[other.as_fd()], libc::MSG_DONTWAIT).map_err(|error| (false, error))?;
    sent.map(|_| own).ok_or_else(|| (false, io::ErrorKind::WouldBlock.into()))
}

/// A listening socket that came from another process.
#[derive(Debug)]
pub struct ForeignListener {
    fd: OwnedFd,
    /// Where it listens, as the kernel tells: of a UNIX socket the name that it was first bound to.
    pub address: Address,
    /// The network device that it accepts from, if it was bound to one.
    pub interface: Option<String>,
}

impl ForeignListener {
    /// Takes a descriptor over; `None` when it is no listening stream socket.
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

    /// Listens on it, with the options that a socket which listens already can still take.
    ///
    /// # Errors
    /// The socket's.
    pub fn adopt(self, address: &Address, options: &BindOptions) -> io::Result<ListeningSocket> {
        ListeningSocket::adopt(self.fd, address, options)
    }
}

/// A connected pair of UNIX stream sockets, which do not block.
///
/// # Errors
/// The kernel's: descriptors are exhausted.
pub fn stream_pair() -> io::Result<(OwnedSocket, OwnedSocket)> {
    let (one, other) = sys::passing::pair(libc::SOCK_STREAM)?;
    Ok((OwnedSocket { socket: Socket::Os(one.into()) }, OwnedSocket { socket: Socket::Os(other.into()) }))
}

/// A pair of connected ends between two processes; messages keep their bounds and may carry descriptors. Make a
/// [`Channel`] of each.
///
/// # Errors
/// The kernel's: descriptors are exhausted.
pub fn channel_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    sys::passing::pair(libc::SOCK_SEQPACKET)
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
    /// The kernel's; `InvalidInput` when it is no such end.
    pub fn adopt(end: OwnedFd) -> io::Result<Channel> {
        if sys::socket::option(end.as_raw_fd(), libc::SOL_SOCKET, libc::SO_TYPE)? != libc::SOCK_SEQPACKET {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a channel"));
        }
        sys::set_nonblocking(&end)?;
        let key = current::with(|worker| worker.sources.borrow_mut().insert(Source::new()));
        Ok(Channel { socket: Socket::Os(end.into()), key })
    }

    /// Sends one message. What the other end has no room for is refused.
    ///
    /// # Errors
    /// As for [`send_descriptors`]; `BrokenPipe` when the other end is closed.
    pub fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        match &self.socket {
            Socket::Os(fd) => send_descriptors(&**fd, bytes, descriptors).map(drop),
            Socket::Sim(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Receives one message into `place`: its length, 0 when the other end is closed. What does not fit is lost.
    ///
    /// # Errors
    /// As for [`receive_descriptors`].
    pub async fn receive(&mut self, place: &mut [u8], into: &mut Vec<OwnedFd>) -> io::Result<usize> {
        std::future::poll_fn(|context| self.poll_receive(context, place, into)).await
    }

    /// [`Channel::receive`] as a poll.
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

    /// The end, for another [`Channel`] or another program; it is not watched any more.
    ///
    /// # Errors
    /// The kernel's: descriptors are exhausted.
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
            // The other process, or a copy, may keep the same end open.
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
