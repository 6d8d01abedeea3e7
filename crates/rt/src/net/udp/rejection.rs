//! Peers that do not receive, as routers and their own hosts report it (ICMP). Must never end a socket.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use super::DatagramSocket;
use super::reports::Reports;
use crate::net::Socket;
use crate::sys::rejections;
use crate::sys::socket::set_option;

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

    /// Returns the next report. It costs a system call only after an error of receiving or sending.
    pub fn next_rejection(&self) -> Option<Rejection> {
        if self.reports.get() != Reports::Waiting {
            return None;
        }
        let Socket::Os(fd) = &*self.socket else { return None };
        let report = rejections::take(fd.as_raw_fd()).ok().flatten();
        let Some(rejections::Report { peer, local_ip, error, offender }) = report else {
            self.reports.set(Reports::Requested);
            return None;
        };
        // Anyone may send ICMP messages: only the peer's host knows its ports.
        let is_closed = error == libc::ECONNREFUSED && offender == Some(peer.ip());
        Some(Rejection { peer, local_ip, is_closed })
    }
}
