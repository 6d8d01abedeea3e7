//! Socket addresses of all families that Weir supports. Must never open a socket that lasts.

use std::fmt;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::PathBuf;

/// Whether an address belongs to this machine: whether a socket can be bound to it. Costs a few system calls.
pub fn is_local(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// The address that a socket is bound to, or of its peer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// IPv4 or IPv6.
    Inet(SocketAddr),
    /// A UNIX socket in the file system.
    Unix(PathBuf),
    /// A UNIX socket in Linux's abstract name space: the bytes of `sun_path` after the leading NUL, at most 107, padded
    /// by the caller if the padding is part of the name.
    Abstract(Vec<u8>),
    /// The client end of a UNIX connection, which has no address.
    Unnamed,
    /// A connected UNIX socket inherited by the process, by its descriptor number. A client sends one end of a new
    /// socket pair over it, and a listener receives that end as a connection (HAProxy's `sockpair@`).
    Carrier(i32),
}

impl Address {
    /// Returns the internet address, if it is one.
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

/// Formats it as in HAProxy's configuration: `127.0.0.1:80`, `/run/socket`, `abns@name`.
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
