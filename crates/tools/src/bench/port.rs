//! Ports for programs that bind them themselves. Owns a reservation each. Must never return a port that another program
//! could take first.

use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// A port of 127.0.0.1 on which nothing listens. While this value exists, a socket that does not listen is bound to it,
/// so that the system assigns the port to no other program. A program that sets `SO_REUSEADDR`, as servers do, can
/// listen there.
#[derive(Debug)]
pub struct ReservedPort {
    number: u16,
    _socket: OwnedFd,
}

impl ReservedPort {
    /// Reserves a port.
    ///
    /// # Errors
    /// One line.
    pub fn new() -> Result<Self, String> {
        Self::bind().map_err(|error| format!("no free port: {error}"))
    }

    fn bind() -> io::Result<Self> {
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let bound = SocketAddr::try_from(getsockname(&socket)?)?;
        Ok(Self { number: bound.port(), _socket: socket })
    }

    /// Returns the port number.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_server_can_listen_on_a_reserved_port_and_others_are_not_given_it() {
        let reserved = ReservedPort::new().unwrap();
        // The standard library sets SO_REUSEADDR.
        let server = TcpListener::bind(("127.0.0.1", reserved.number())).unwrap();
        drop(server);
        let others: Vec<_> = (0..64).map(|_| TcpListener::bind(("127.0.0.1", 0)).unwrap()).collect();
        assert!(others.iter().all(|other| other.local_addr().unwrap().port() != reserved.number()));
    }

    #[test]
    fn a_program_without_address_reuse_does_not_get_a_reserved_port() {
        let reserved = ReservedPort::new().unwrap();
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        assert!(bind(&socket, &SocketAddr::from(([127, 0, 0, 1], reserved.number()))).is_err());
    }
}
