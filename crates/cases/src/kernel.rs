//! Queries the kernel about the far end of a connection: whether the subject has accepted it and read all that was
//! sent.
//!
//! So a script can wait until bytes have reached the subject without help from the subject, and without sleeping. TCP
//! only; each query is one message to the kernel's socket diagnosis (sock_diag(7)), which finds the socket by its
//! addresses.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};

use crate::failure::{Failure, Result};

const AF_NETLINK: i32 = 16;
const NETLINK_SOCK_DIAG: i32 = 4;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const TCP: u8 = 6;
const TCP_LISTEN: u8 = 10;
/// `nlmsghdr`, then `inet_diag_req_v2` or `inet_diag_msg`.
const HEADER: usize = 16;
const REQUEST: usize = HEADER + 56;
const ANSWER: usize = HEADER + 72;

/// A socket for kernel queries.
pub(crate) struct Kernel(Socket);

impl Kernel {
    pub(crate) fn open() -> Result<Self> {
        Ok(Self(Socket::new(Domain::from(AF_NETLINK), Type::DGRAM, Some(Protocol::from(NETLINK_SOCK_DIAG)))?))
    }

    /// Whether the owner of `far` (our peer's end) has accepted the connection from `near` and read everything.
    pub(crate) fn has_read_all(&mut self, near: SocketAddr, far: SocketAddr) -> Result<bool> {
        Ok(self.unread(near, far)? == Some(0))
    }

    /// Whether the owner of `far` has accepted the connection from `near`.
    pub(crate) fn has_accepted(&mut self, near: SocketAddr, far: SocketAddr) -> Result<bool> {
        Ok(self.unread(near, far)?.is_some())
    }

    /// Returns the number of unread bytes at the owner of `far`; `None`: not accepted, or no such connection.
    fn unread(&mut self, near: SocketAddr, far: SocketAddr) -> Result<Option<u32>> {
        self.0.write_all(&request(far, near))?;
        let mut answer = [0; 1024];
        let length = self.0.read(&mut answer)?;
        let kind = u16::from_ne_bytes([answer[4], answer[5]]);
        if kind != SOCK_DIAG_BY_FAMILY {
            return Ok(None);
        }
        if length < ANSWER {
            return Err(Failure::new("the kernel's answer about a socket is too short"));
        }
        let state = answer[HEADER + 1];
        let unread = word(&answer, HEADER + 56);
        let inode = word(&answer, HEADER + 68);
        Ok((state != TCP_LISTEN && inode != 0).then_some(unread))
    }
}

fn word(bytes: &[u8; 1024], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Builds a query for the socket whose own address is `local`.
fn request(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
    let family = if local.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let mut bytes = Vec::with_capacity(REQUEST);
    bytes.extend((REQUEST as u32).to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(NLM_F_REQUEST.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([i32::from(family) as u8, TCP, 0, 0]);
    bytes.extend([0xff; 4]);
    bytes.extend(local.port().to_be_bytes());
    bytes.extend(remote.port().to_be_bytes());
    bytes.extend(octets(local.ip()));
    bytes.extend(octets(remote.ip()));
    bytes.extend([0; 4]);
    bytes.extend([0xff; 8]);
    bytes
}

fn octets(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => {
            let mut octets = [0; 16];
            octets[..4].copy_from_slice(&ip.octets());
            octets
        }
        IpAddr::V6(ip) => ip.octets(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn unread_bytes_and_unaccepted_connections_show() {
        let mut kernel = Kernel::open().unwrap();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (near, far) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
            assert!(!kernel.has_read_all(near, far).unwrap(), "not accepted yet");
            assert!(!kernel.has_accepted(near, far).unwrap());
            let (mut accepted, _) = listener.accept().unwrap();
            client.write_all(b"abc").unwrap();
            accepted.read_exact(&mut [0; 2]).unwrap();
            assert!(!kernel.has_read_all(near, far).unwrap(), "one byte is left");
            assert!(kernel.has_accepted(near, far).unwrap());
            accepted.read_exact(&mut [0; 1]).unwrap();
            assert!(kernel.has_read_all(near, far).unwrap());
            drop(accepted);
            drop(listener);
            let unused = SocketAddr::new(near.ip(), 1);
            assert!(!kernel.has_read_all(unused, far).unwrap(), "no such connection");
        }
    }
}
