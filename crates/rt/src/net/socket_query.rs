//! Queries about a stream's socket by callers that do not own the stream. Must never keep a stream open, nor query a
//! descriptor that may have been closed and reused.

use std::io;

use base::Key;

use super::{Address, TcpInfo, tcp_info};
use crate::current;
use crate::driver::Driver;
use crate::sim::SimSocketView;
use crate::sys;

/// Refers to a stream of one worker without owning it. Queries fail once the stream has been closed, moved to another
/// worker or parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketQuery {
    pub(super) instance: u32,
    pub(super) key: Key,
    pub(super) number: i32,
}

/// The socket of a query, if the stream still exists.
enum QueriedSocket {
    Os(i32),
    Sim(SimSocketView),
}

impl SocketQuery {
    /// Creates a query without a stream: every call fails.
    pub fn of_none() -> Self {
        Self { instance: u32::MAX, key: Key { slot: u32::MAX, generation: u32::MAX }, number: -1 }
    }

    /// Returns the number of the stream's descriptor; `None` if the stream is closed, parked or belongs to another
    /// worker.
    pub fn number(self) -> Option<i32> {
        self.find().is_ok().then_some(self.number)
    }

    /// Returns the address that the peer connected to. A system call.
    ///
    /// # Errors
    /// From the socket; `NotConnected` if the stream is closed, parked or belongs to another worker.
    pub fn local_address(self) -> io::Result<Address> {
        match self.find()? {
            QueriedSocket::Os(number) => sys::socket::local_address(number),
            QueriedSocket::Sim(socket) => socket.local_address(),
        }
    }

    /// Returns the address that the peer connected to before the packet filter redirected the connection to this socket
    /// (`SO_ORIGINAL_DST`). `v6` is the family of the local address. A system call.
    ///
    /// # Errors
    /// As for [`SocketQuery::local_address`]; from the kernel if the connection was not redirected.
    pub fn original_destination(self, v6: bool) -> io::Result<Address> {
        match self.find()? {
            QueriedSocket::Os(number) => sys::socket::original_destination(number, v6),
            QueriedSocket::Sim(socket) => socket.original_destination(),
        }
    }

    /// Returns `TCP_INFO` of the connection. A system call.
    ///
    /// # Errors
    /// As for [`SocketQuery::local_address`].
    pub fn tcp_info(self) -> io::Result<TcpInfo> {
        match self.find()? {
            QueriedSocket::Os(number) => tcp_info::read(number),
            QueriedSocket::Sim(socket) => socket.tcp_info(),
        }
    }

    /// Takes the SYN packet of an accepted connection, if its listening socket saves it
    /// ([`super::BindOptions::save_syn`]); the kernel returns it once. Returns the number of bytes written to `place`.
    ///
    /// # Errors
    /// As for [`SocketQuery::local_address`]; `Unsupported` for a simulated socket.
    pub fn take_saved_syn(self, place: &mut [u8]) -> io::Result<usize> {
        match self.find()? {
            QueriedSocket::Os(number) => {
                sys::socket::option_bytes(number, libc::IPPROTO_TCP, libc::TCP_SAVED_SYN, place)
            }
            QueriedSocket::Sim(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Sets the mark of its packets for the firewall and routing (`SO_MARK`). A simulated socket ignores it.
    ///
    /// # Errors
    /// As for [`SocketQuery::local_address`]; from the kernel if a privilege is missing.
    pub fn set_mark(self, mark: u32) -> io::Result<()> {
        match self.find()? {
            QueriedSocket::Os(number) => sys::socket::set_option(number, libc::SOL_SOCKET, libc::SO_MARK, mark as i32),
            QueriedSocket::Sim(_) => Ok(()),
        }
    }

    /// Sets the service class of its packets (`IP_TOS`, `IPV6_TCLASS`). A simulated socket ignores it.
    ///
    /// # Errors
    /// As for [`SocketQuery::local_address`]; from the kernel if the socket's family has no such option.
    pub fn set_service_class(self, class: u8) -> io::Result<()> {
        let QueriedSocket::Os(number) = self.find()? else { return Ok(()) };
        let v4 = sys::socket::set_option(number, libc::IPPROTO_IP, libc::IP_TOS, i32::from(class));
        let v6 = sys::socket::set_option(number, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, i32::from(class));
        v4.or(v6)
    }

    fn find(self) -> io::Result<QueriedSocket> {
        let found = current::try_with(|worker| {
            let there = worker.remote.instance == self.instance
                && worker.sources.borrow().get(self.key).is_some_and(|source| !source.parked);
            there.then(|| match &worker.driver {
                Driver::Epoll(_) => QueriedSocket::Os(self.number),
                Driver::Sim(driver) => QueriedSocket::Sim(driver.view(self.number)),
            })
        });
        found.flatten().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}
