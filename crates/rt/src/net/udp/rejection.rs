//! Peers that do not receive, as routers and their own hosts report it (ICMP). Must never end a socket.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use super::DatagramSocket;
use super::reports::Reports;
use crate::net::Socket;
use crate::sys::rejections;
use crate::sys::socket::set_option;

/// Maximum number of reports without a destination that are skipped: the kernel makes none.
const MOST_UNREADABLE: usize = 64;

/// A peer that has not received a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    pub peer: SocketAddr,
    /// The source address of the datagram, if the socket reports the destinations of received ones.
    pub local_ip: Option<IpAddr>,
    /// Its host reports that no program receives at its port: it has ended. Otherwise a router could not pass the datagram on, or it was too long.
    pub is_closed: bool,
}

impl DatagramSocket {
    /// Makes the kernel keep reports about datagrams of this socket that did not arrive ([`DatagramSocket::next_rejection`]).
    pub fn request_rejections(&self) {
        let Socket::Os(fd) = &*self.socket else { return };
        let mut results = vec![set_option(fd.as_raw_fd(), libc::IPPROTO_IP, libc::IP_RECVERR, 1)];
        if self.local_address().is_ipv6() {
            results.push(set_option(fd.as_raw_fd(), libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1));
        }
        if results.iter().any(io::Result::is_ok) {
            self.reports.set(Reports::Waiting);
        }
    }

    /// Returns the next report. It costs a system call only after an error of receiving or sending. To be called until there is none:
    /// no event follows for those that wait.
    pub fn next_rejection(&self) -> Option<Rejection> {
        if self.reports.get() != Reports::Waiting {
            return None;
        }
        let Socket::Os(fd) = &*self.socket else { return None };
        for _ in 0..MOST_UNREADABLE {
            match rejections::take(fd.as_raw_fd()) {
                Ok(Some(rejections::Report { peer, local_ip, error, offender })) => {
                    // Anyone may send ICMP messages: only the peer's host knows its ports.
                    let is_closed = error == libc::ECONNREFUSED && offender == Some(peer.ip());
                    return Some(Rejection { peer, local_ip, is_closed });
                }
                // It is removed.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
                Ok(None) | Err(_) => break,
            }
        }
        self.reports.set(Reports::Requested);
        None
    }
}
