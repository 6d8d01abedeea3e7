//! Addresses of sockets, of all families that Weir speaks. Must never open a socket that lasts.

use std::fmt;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::PathBuf;

/// Whether an address is one of this machine's: whether a socket can be bound to it. A few system calls.
pub fn is_local(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// Where a socket is bound, or its peer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// IPv4 or IPv6.
    Inet(SocketAddr),
    /// A UNIX socket in the file system.
    Unix(PathBuf),
    /// A UNIX socket in Linux's abstract name space: the bytes of `sun_path` behind the leading NUL, up to 107, padded
    /// by the caller where padding belongs to the name.
    Abstract(Vec<u8>),
    /// The client end of a UNIX connection, which has no name.
    Unnamed,
    /// A connected UNIX socket that the process was started with, by its number. Whoever connects sends one end of a new pair of
    /// sockets over it, and whoever listens takes that as a connection (HAProxy's `sockpair@`).
    Carrier(i32),
}

impl Address {
    /// The internet address, if it is one.
    pub fn inet(&self) -> Option<SocketAddr> {
        match self {
            Address::Inet(address) => Some(*address),
            _ => None,
        }
    }

    /// Whether this is an address of a UNIX socket.
    pub fn is_unix(&self) -> bool {
        !matches!(self, Address::Inet(_))
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        Address::Inet(address)
    }
}

/// As HAProxy's configuration writes it: `127.0.0.1:80`, `/run/socket`, `abns@name`.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Inet(address) => address.fmt(f),
            Address::Unix(path) => path.display().fmt(f),
            Address::Abstract(name) => {
                let end = name.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                write!(f, "abns@{}", name[..end].escape_ascii())
            }
            Address::Unnamed => f.write_str("unix:"),
            Address::Carrier(number) => write!(f, "sockpair@{number}"),
        }
    }
}
