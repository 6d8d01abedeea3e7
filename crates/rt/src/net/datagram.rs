//! Datagram sockets: UDP and UNIX. Sending never waits; what the kernel does not accept immediately is lost.
//!
//! It must never queue a datagram.

use std::cell::Cell;
use std::fmt;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, RawFd};
use std::task::{Context, Poll};

use base::{Buffer, Key};

use super::listener::bind_datagram;
use super::{Address, BindOptions, Namespace, Socket};
use crate::sim::{self, SimSocket};
use crate::source::{Readiness, Source, Watch};
use crate::sys::address::RawAddress;
use crate::{current, process, sys};

/// The family of a datagram socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// UDP over IPv4.
    Inet4,
    /// UDP over IPv6.
    Inet6,
    /// UNIX datagrams.
    Unix,
}

impl Family {
    /// Returns the family of an address.
    pub fn of(address: &Address) -> Family {
        match address {
            Address::Inet(address) if address.is_ipv4() => Family::Inet4,
            Address::Inet(_) => Family::Inet6,
            Address::Unix(_) | Address::Abstract(_) | Address::Unnamed | Address::Carrier(_) => Family::Unix,
        }
    }

    fn number(self) -> i32 {
        match self {
            Family::Inet4 => libc::AF_INET,
            Family::Inet6 => libc::AF_INET6,
            Family::Unix => libc::AF_UNIX,
        }
    }
}

/// A non-blocking datagram socket. `Send` until it first waits to receive; from then on it stays on one worker.
pub struct Datagram {
    socket: Socket,
    watched_by: Option<(u32, Key)>,
    /// Whether the kernel can send datagrams of one length together (UDP segmentation offload).
    together: Cell<bool>,
}

impl Datagram {
    fn of(socket: Socket) -> Datagram {
        Datagram { socket, watched_by: None, together: Cell::new(false) }
    }

    /// Creates an unbound socket, for sending.
    ///
    /// # Errors
    /// From the kernel: no descriptors.
    pub fn unconnected(family: Family) -> io::Result<Datagram> {
        if let Some(world) = sim::current_world() {
            return Ok(Datagram::of(Socket::Sim(Box::new(SimSocket::datagram(&world, None)?))));
        }
        let fd = sys::socket::create(family.number(), libc::SOCK_DGRAM)?;
        let together = family != Family::Unix && sys::batch::knows_segments(&fd);
        let datagram = Datagram::of(Socket::Os(fd.into()));
        datagram.together.set(together);
        Ok(datagram)
    }

    /// Creates a socket bound to an address, for receiving.
    ///
    /// # Errors
    /// From the socket.
    pub fn bind(address: &Address) -> io::Result<Datagram> {
        if let Some(world) = sim::current_world() {
            return Ok(Datagram::of(Socket::Sim(Box::new(SimSocket::datagram(&world, Some(address))?))));
        }
        let fd = sys::socket::create(sys::socket::family(address), libc::SOCK_DGRAM)?;
        sys::socket::bind(&fd, address)?;
        Ok(Datagram::of(Socket::Os(fd.into())))
    }

    /// Like [`Datagram::bind`], with options: an address shared by several processes, buffer sizes, a namespace. A UNIX
    /// socket replaces an existing one.
    ///
    /// # Errors
    /// From the socket or the file system.
    pub fn bind_with(address: &Address, options: &BindOptions) -> io::Result<Datagram> {
        if sim::current_world().is_some() {
            return Datagram::bind(address);
        }
        let fd = match &options.namespace {
            Some(name) => Namespace::open(name)?.run(|| bind_datagram(address, options))??,
            None => bind_datagram(address, options)?,
        };
        Ok(Datagram::of(Socket::Os(fd.into())))
    }

    /// Takes over an inherited descriptor.
    ///
    /// # Errors
    /// `InvalidInput` if it is not a datagram socket, `ResourceBusy` if it was already taken over, otherwise from the
    /// socket.
    pub fn inherit(fd: RawFd) -> io::Result<Datagram> {
        let kind = sys::socket::option(fd, libc::SOL_SOCKET, libc::SO_TYPE)?;
        if kind != libc::SOCK_DGRAM {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a datagram socket"));
        }
        let fd = process::take(fd)?;
        sys::set_nonblocking(&fd)?;
        Ok(Datagram::of(Socket::Os(fd.into())))
    }

    /// Sets the peer: `send` sends to it, and only its datagrams are received.
    ///
    /// # Errors
    /// From the socket.
    pub fn connect(&self, address: &Address) -> io::Result<()> {
        match &self.socket {
            Socket::Os(fd) => sys::socket::connect(fd, address).map(drop),
            Socket::Sim(socket) => socket.connect_datagram(address),
        }
    }

    /// Sets the size of the kernel's send buffer in bytes.
    ///
    /// # Errors
    /// From the socket.
    pub fn set_send_buffer(&self, bytes: usize) -> io::Result<()> {
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
        self.socket.set_option(libc::SOL_SOCKET, libc::SO_SNDBUF, bytes)
    }

    /// Sends one datagram, the concatenation of `parts`.
    ///
    /// # Errors
    /// From the socket; `WouldBlock` if the kernel does not accept it now.
    pub fn send_to(&self, address: &Address, parts: &[IoSlice<'_>]) -> io::Result<()> {
        match &self.socket {
            Socket::Os(fd) => {
                let raw = RawAddress::encode(address)?;
                taken(sys::socket::send_datagram(fd.as_raw_fd(), parts, Some(&raw))?)
            }
            Socket::Sim(socket) => socket.send_datagram(Some(address), parts),
        }
    }

    /// Sends one datagram to the connected peer.
    ///
    /// # Errors
    /// As for [`Datagram::send_to`]; `ConnectionRefused` reports that an earlier datagram found no receiver.
    pub fn send(&self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        match &self.socket {
            Socket::Os(fd) => taken(sys::socket::send_datagram(fd.as_raw_fd(), parts, None)?),
            Socket::Sim(socket) => socket.send_datagram(None, parts),
        }
    }

    /// Sends each element as one datagram to `address`, with as few system calls as possible; returns the number that
    /// the kernel accepted. The rest is lost unless the caller retries. Consecutive datagrams of one length are sent
    /// together if the kernel and the route allow it; the peer still receives them separately.
    ///
    /// # Errors
    /// From the socket, if the first datagram fails.
    pub fn send_batch(&self, address: &Address, datagrams: &[IoSlice<'_>]) -> io::Result<usize> {
        match &self.socket {
            Socket::Os(fd) => {
                let raw = RawAddress::encode(address)?;
                let number = fd.as_raw_fd();
                if datagrams.len() == 1 {
                    return Ok(usize::from(sys::socket::send_datagram(number, datagrams, Some(&raw))?.is_some()));
                }
                let sent = sys::batch::send_datagrams(number, datagrams, Some(&raw), self.together.get());
                if self.together.get() && sent.as_ref().is_err_and(sys::batch::is_about_segments) {
                    self.together.set(false);
                    return sys::batch::send_datagrams(number, datagrams, Some(&raw), false);
                }
                sent
            }
            Socket::Sim(socket) => {
                let send = |slice| socket.send_datagram(Some(address), std::slice::from_ref(slice));
                datagrams.iter().try_for_each(send).map(|()| datagrams.len())
            }
        }
    }

    /// Receives one datagram into the free space of `buffer`; what does not fit is lost.
    ///
    /// # Errors
    /// From the socket.
    pub fn poll_receive_from(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut Buffer,
    ) -> Poll<io::Result<(usize, Address)>> {
        current::with(|worker| {
            let mut sources = worker.sources.borrow_mut();
            let here = self.watched_by.filter(|(instance, _)| *instance == worker.remote.instance);
            let key = match here {
                Some((_, key)) => key,
                None => {
                    let key = sources.insert(Source::new());
                    self.watched_by = Some((worker.remote.instance, key));
                    key
                }
            };
            let Some(source) = sources.get_mut(key) else {
                return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
            };
            if source.may_read() {
                if !worker.may_spend(context) {
                    return Poll::Pending;
                }
                if let Some((count, address)) = self.receive_now(buffer)? {
                    return Poll::Ready(Ok((count, address)));
                }
                source.read = Readiness::Drained;
            }
            if !source.watched {
                worker.driver.watch(&self.socket, Watch::Edges, key)?;
                source.note_watched(self.socket.number());
            }
            source.wait_to_read(context);
            Poll::Pending
        })
    }

    fn receive_now(&self, buffer: &mut Buffer) -> io::Result<Option<(usize, Address)>> {
        let received = match &self.socket {
            Socket::Os(fd) => sys::socket::receive_datagram(fd.as_raw_fd(), buffer.spare_mut())?,
            Socket::Sim(socket) => socket.receive_datagram(buffer.spare_mut())?,
        };
        if let Some((count, _)) = &received {
            buffer.advance(*count);
        }
        Ok(received)
    }

    /// Returns the local address.
    ///
    /// # Errors
    /// From the socket.
    pub fn local_address(&self) -> io::Result<Address> {
        self.socket.local_address()
    }

    /// Returns the descriptor's number; `None` in a simulation.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.socket.descriptor()
    }
}

fn taken(sent: Option<usize>) -> io::Result<()> {
    sent.map(drop).ok_or_else(|| io::ErrorKind::WouldBlock.into())
}

impl Drop for Datagram {
    fn drop(&mut self) {
        let Some((instance, key)) = self.watched_by else { return };
        let _source = current::try_with(|worker| {
            (worker.remote.instance == instance).then(|| worker.sources.borrow_mut().remove(key))
        });
    }
}

impl fmt::Debug for Datagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Datagram").field("descriptor", &self.descriptor()).finish()
    }
}
