//! Addresses that need no more looking up (configuration manual, section 2.9). Must never resolve a name.

use config::spec::SocketKind;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// The port a server is reached at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerPort {
    /// This one.
    Exact(u16),
    /// The port that the client connected to, moved by so much; 0 when no port was written.
    Offset(i32),
}

impl ServerPort {
    /// The port for a client that connected to `destination`; 0 where there is none, as for a client on a UNIX socket.
    pub fn resolve(self, destination: u16) -> u16 {
        match self {
            Self::Exact(port) => port,
            // The sum wraps like the 16-bit field that it fills.
            Self::Offset(offset) => (i32::from(destination) + offset) as u16,
        }
    }
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerAddress {
    /// TCP.
    Inet {
        /// The host; a wildcard (`0.0.0.0`, `*`, `::`) means the address that the client connected to.
        ip: IpAddr,
        /// The port.
        port: ServerPort,
    },
    /// Nowhere yet: its name has not been resolved.
    Unresolved {
        /// The port, once it has an address.
        port: ServerPort,
    },
    /// A UNIX socket.
    Unix(PathBuf),
    /// An abstract UNIX socket: what stands behind the NUL, padded to 107 bytes for `abns@`.
    Abstract(Vec<u8>),
    /// `sockpair@`: a connected UNIX socket that was inherited, over which connections are passed.
    Carrier(i32),
    /// `rhttp@`: it opens connections to us, and requests are sent over those.
    Reversed,
}

/// Where a `bind` line listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum BindAddress {
    /// TCP, or UDP for a datagram kind.
    Inet(SocketAddr),
    /// A UNIX socket.
    Unix(PathBuf),
    /// An abstract UNIX socket: what stands behind the NUL, padded to 107 bytes for `abns@`.
    Abstract(Vec<u8>),
    /// `fd@`: an inherited descriptor that listens already. `sockpair@`: one over which connections come.
    Descriptor {
        /// Its number.
        fd: i32,
        /// What it must be.
        kind: SocketKind,
        /// `sockpair@`.
        is_carrier: bool,
    },
    /// `rhttp@`: connections are opened to a server instead.
    Reverse {
        /// Index of its backend.
        proxy: usize,
        /// Index of the server there.
        server: usize,
    },
}

/// The port of syslog (RFC 5426).
pub const SYSLOG: u16 = 514;

impl ServerAddress {
    /// The internet address; a port that depends on the client's is what is added to that.
    pub fn inet(&self) -> Option<SocketAddr> {
        match *self {
            Self::Inet { ip, port: ServerPort::Exact(port) } => Some(SocketAddr::new(ip, port)),
            Self::Inet { ip, port: ServerPort::Offset(offset) } => Some(SocketAddr::new(ip, offset as u16)),
            _ => None,
        }
    }

    /// Where a server of log lines listens: at the port of syslog where none is written. `None`: no line can go there.
    pub fn of_syslog(&self) -> Option<SocketAddr> {
        match *self {
            Self::Inet { ip, port: ServerPort::Exact(port) } => Some(SocketAddr::new(ip, port)),
            Self::Inet { ip, port: ServerPort::Offset(_) } => Some(SocketAddr::new(ip, SYSLOG)),
            _ => None,
        }
    }
}
