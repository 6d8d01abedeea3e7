//! Resolved addresses (configuration manual, section 2.9). Must never resolve a name.

use config::spec::SocketKind;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// The port of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerPort {
    /// A fixed port.
    Exact(u16),
    /// The destination port of the client's connection plus an offset; 0 if no port was specified.
    Offset(i32),
}

impl ServerPort {
    /// Returns the port for a client that connected to port `destination`; 0 if there is none, as for clients on UNIX
    /// sockets.
    pub fn resolve(self, destination: u16) -> u16 {
        match self {
            Self::Exact(port) => port,
            // The sum wraps like the 16-bit field that it fills.
            Self::Offset(offset) => (i32::from(destination) + offset) as u16,
        }
    }
}

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerAddress {
    /// TCP.
    Inet {
        /// The host; a wildcard (`0.0.0.0`, `*`, `::`) means the destination address of the client's connection.
        ip: IpAddr,
        port: ServerPort,
    },
    /// The name is not resolved yet.
    Unresolved {
        /// The port to use after resolution.
        port: ServerPort,
    },
    /// A UNIX socket.
    Unix(PathBuf),
    /// An abstract UNIX socket: the name after the NUL, padded to 107 bytes for `abns@`.
    Abstract(Vec<u8>),
    /// `sockpair@`: an inherited connected UNIX socket over which connections are passed.
    Carrier(i32),
    /// `rhttp@`: the server opens connections to us, over which requests are sent.
    Reversed,
}

/// Where a `bind` line listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum BindAddress {
    /// TCP, or UDP for a datagram kind.
    Inet(SocketAddr),
    /// QUIC over UDP.
    Quic(SocketAddr),
    /// UDP, for load balancing of datagrams.
    Udp(SocketAddr),
    /// A UNIX socket.
    Unix(PathBuf),
    /// An abstract UNIX socket: the name after the NUL, padded to 107 bytes for `abns@`.
    Abstract(Vec<u8>),
    /// `fd@`: an inherited listening descriptor. `sockpair@`: an inherited socket that receives connections.
    Descriptor {
        /// File descriptor.
        fd: i32,
        /// The required socket type.
        kind: SocketKind,
        /// `sockpair@`.
        is_carrier: bool,
    },
    /// `rhttp@`: connections are opened to a server instead.
    Reverse {
        /// Index of the backend.
        proxy: usize,
        /// Index of the server in the backend.
        server: usize,
    },
}

/// The port of syslog (RFC 5426).
pub const SYSLOG: u16 = 514;

impl ServerAddress {
    /// Returns the internet address; for a port relative to the client's, the port is the offset.
    pub fn inet(&self) -> Option<SocketAddr> {
        match *self {
            Self::Inet { ip, port: ServerPort::Exact(port) } => Some(SocketAddr::new(ip, port)),
            Self::Inet { ip, port: ServerPort::Offset(offset) } => Some(SocketAddr::new(ip, offset as u16)),
            _ => None,
        }
    }

    /// Returns the address of a log server, with the port of syslog by default. `None` if lines cannot be sent to it.
    pub fn of_syslog(&self) -> Option<SocketAddr> {
        match *self {
            Self::Inet { ip, port: ServerPort::Exact(port) } => Some(SocketAddr::new(ip, port)),
            Self::Inet { ip, port: ServerPort::Offset(_) } => Some(SocketAddr::new(ip, SYSLOG)),
            _ => None,
        }
    }
}
