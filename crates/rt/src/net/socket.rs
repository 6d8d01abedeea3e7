//! A socket of either driver, without a worker.
//!
//! It must never track readiness: it tries, and reports when it would have waited.

use std::fmt;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::net::Address;
use crate::sim::SimSocket;
use crate::sys;
use crate::sys::descriptor::Descriptor;

/// A kernel descriptor, or an endpoint of the simulated network. Dropping it closes it.
pub(crate) enum Socket {
    Os(Descriptor),
    /// Boxed, so that a stream has space for the discriminant of other transports.
    Sim(Box<SimSocket>),
}

impl Socket {
    /// Takes a connection out of a listening socket's backlog; `None` if there is none.
    pub(crate) fn accept(&self) -> io::Result<Option<(Socket, Address)>> {
        match self {
            Socket::Os(fd) => {
                let accepted = sys::socket::accept(fd.as_raw_fd())?;
                Ok(accepted.map(|(fd, address)| (Socket::Os(fd.into()), address)))
            }
            Socket::Sim(socket) => {
                Ok(socket.accept()?.map(|(socket, address)| (Socket::Sim(Box::new(socket)), address)))
            }
        }
    }

    /// Returns the number by which the driver can stop watching a socket that it has no reference to.
    pub(crate) fn number(&self) -> i32 {
        match self {
            Socket::Os(fd) => fd.as_raw_fd(),
            Socket::Sim(socket) => socket.number(),
        }
    }

    /// Receives into `place`; 0 at the end, `None` if nothing is available yet.
    #[inline]
    pub(crate) fn receive(&self, place: &mut [u8]) -> io::Result<Option<usize>> {
        match self {
            Socket::Os(fd) => sys::socket::receive(fd.as_raw_fd(), place, 0),
            Socket::Sim(socket) => socket.receive(place),
        }
    }

    /// Discards up to `most` bytes of received data; 0 at the end, `None` if nothing is available yet.
    #[inline]
    pub(crate) fn discard(&self, most: usize) -> io::Result<Option<usize>> {
        match self {
            Socket::Os(fd) => sys::socket::discard(fd.as_raw_fd(), most),
            Socket::Sim(socket) => socket.receive(&mut vec![0; most]),
        }
    }

    /// Whether there is something to receive (data, the end or an error), without taking it.
    pub(crate) fn has_something(&self) -> bool {
        match self {
            Socket::Os(fd) => !matches!(sys::socket::receive(fd.as_raw_fd(), &mut [0], libc::MSG_PEEK), Ok(None)),
            Socket::Sim(socket) => socket.has_something(),
        }
    }

    #[inline]
    pub(crate) fn send(&self, bytes: &[u8], more: bool) -> io::Result<Option<usize>> {
        match self {
            Socket::Os(fd) => sys::socket::send(fd.as_raw_fd(), bytes, more),
            Socket::Sim(socket) => socket.send(bytes),
        }
    }

    #[inline]
    pub(crate) fn send_slices(&self, slices: &[IoSlice<'_>], more: bool) -> io::Result<Option<usize>> {
        match self {
            Socket::Os(fd) => sys::socket::send_slices(fd.as_raw_fd(), slices, more),
            Socket::Sim(socket) => socket.send_slices(slices),
        }
    }

    pub(crate) fn shutdown_write(&self) -> io::Result<()> {
        match self {
            Socket::Os(fd) => sys::socket::shutdown_write(fd.as_raw_fd()),
            Socket::Sim(socket) => socket.shutdown_write(),
        }
    }

    pub(crate) fn local_address(&self) -> io::Result<Address> {
        match self {
            Socket::Os(fd) => sys::socket::local_address(fd.as_raw_fd()),
            Socket::Sim(socket) => socket.local_address(),
        }
    }

    /// Returns the free space of the send buffer in bytes.
    pub(crate) fn send_capacity(&self) -> io::Result<usize> {
        match self {
            Socket::Os(fd) => sys::socket::send_capacity(fd.as_raw_fd()),
            Socket::Sim(socket) => Ok(socket.send_capacity()),
        }
    }

    pub(crate) fn peer_address(&self) -> io::Result<Address> {
        match self {
            Socket::Os(fd) => sys::socket::peer_address(fd.as_raw_fd()),
            Socket::Sim(socket) => socket.peer_address(),
        }
    }

    pub(crate) fn take_error(&self) -> Option<io::Error> {
        match self {
            Socket::Os(fd) => sys::socket::take_error(fd.as_raw_fd()),
            Socket::Sim(socket) => socket.take_error(),
        }
    }

    /// Sets an option of type `int`. The simulated network has no options and accepts all.
    pub(crate) fn set_option(&self, level: i32, name: i32, value: i32) -> io::Result<()> {
        match self {
            Socket::Os(fd) => sys::socket::set_option(fd.as_raw_fd(), level, name, value),
            Socket::Sim(_) => Ok(()),
        }
    }

    /// Makes closing silent: the kernel drops the connection without a packet (`TCP_REPAIR`), or, without the
    /// privilege, sends a reset that the first router drops. With `hops`: a reset with that time to live.
    pub(crate) fn forget(&self, hops: Option<u8>) -> io::Result<()> {
        // Received data is acknowledged first: otherwise the peer would retransmit it and get a reset in response.
        let _ = self.set_option(libc::IPPROTO_TCP, libc::TCP_QUICKACK, 1);
        if hops.is_none() && self.set_option(libc::IPPROTO_TCP, libc::TCP_REPAIR, 1).is_ok() {
            return Ok(());
        }
        let hops = i32::from(hops.unwrap_or(1));
        if self.set_option(libc::IPPROTO_IP, libc::IP_TTL, hops).is_err() {
            self.set_option(libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, hops)?;
        }
        self.set_linger_zero()
    }

    /// Makes closing reset the connection instead of ending it in order.
    pub(crate) fn set_linger_zero(&self) -> io::Result<()> {
        match self {
            Socket::Os(fd) => sys::socket::set_linger_zero(fd.as_raw_fd()),
            Socket::Sim(socket) => {
                socket.set_reset_on_close();
                Ok(())
            }
        }
    }

    /// Returns the number of bytes written that the kernel has not sent yet. Only TCP counts them: 0 for other sockets.
    pub(crate) fn unsent(&self) -> usize {
        match self {
            Socket::Os(fd) => sys::socket::unsent(fd.as_raw_fd()).unwrap_or(0),
            Socket::Sim(socket) => socket.unsent(),
        }
    }

    /// Returns the number of bytes written that the peer's kernel has not acknowledged yet. Only TCP counts them: 0 for
    /// other sockets.
    pub(crate) fn unacknowledged(&self) -> usize {
        match self {
            Socket::Os(fd) => sys::socket::unacknowledged(fd.as_raw_fd()).unwrap_or(0),
            Socket::Sim(socket) => socket.unacknowledged(),
        }
    }

    /// Makes closing end the connection in order again.
    pub(crate) fn clear_linger(&self) -> io::Result<()> {
        match self {
            Socket::Os(fd) => sys::socket::clear_linger(fd.as_raw_fd()),
            Socket::Sim(socket) => {
                socket.clear_reset_on_close();
                Ok(())
            }
        }
    }

    /// Returns the descriptor; `None` in a simulation.
    pub(crate) fn descriptor(&self) -> Option<RawFd> {
        match self {
            Socket::Os(fd) => Some(fd.as_raw_fd()),
            Socket::Sim(_) => None,
        }
    }
}

/// A connected socket that no worker watches: it can be sent to any worker, which takes it over with
/// [`crate::net::Stream::adopt`]. Dropping it closes it.
pub struct OwnedSocket {
    pub(crate) socket: Socket,
}

impl OwnedSocket {
    /// Returns the descriptor's number; `None` in a simulation.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.socket.descriptor()
    }

    /// Returns the owned descriptor; `None`, and the endpoint closed, in a simulation.
    pub fn into_descriptor(self) -> Option<OwnedFd> {
        match self.socket {
            Socket::Os(fd) => Some(fd.into()),
            Socket::Sim(_) => None,
        }
    }
}

/// Takes over a connected stream socket, and makes it non-blocking.
impl TryFrom<OwnedFd> for OwnedSocket {
    type Error = io::Error;

    fn try_from(fd: OwnedFd) -> io::Result<OwnedSocket> {
        sys::set_nonblocking(&fd)?;
        Ok(OwnedSocket { socket: Socket::Os(fd.into()) })
    }
}

impl fmt::Debug for OwnedSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedSocket").field("descriptor", &self.descriptor()).finish()
    }
}
