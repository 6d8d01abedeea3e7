//! Addresses as written (configuration manual, section 2.9). Must never resolve a name.

use std::net::IpAddr;

/// The host part of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostSpec {
    /// Every address of the family: empty, `*` or `0.0.0.0`, as in `:80`, `*:80`. The family selects the wildcard.
    Any,
    /// A literal address.
    Ip(IpAddr),
    /// A name that is resolved at startup.
    Name(String),
}

/// The family selected by a prefix such as `ipv4@`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Family {
    /// No prefix: the family of the address; a wildcard means IPv4.
    #[default]
    Unspecified,
    /// `ipv4@`, `udp4@`, `tcp4@`, …
    V4,
    /// `ipv6@`, `udp6@`, `tcp6@`, …
    V6,
}

/// The port part of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PortSpec {
    #[default]
    None,
    /// `:80`
    Exact(u16),
    /// `:8000-8010`, both ends included.
    Range(u16, u16),
    /// `:+100` or `:-5`: the port of the client's connection plus an offset.
    Offset(i32),
}

/// Stream, datagram or QUIC, from `stream+`, `dgram+`, `quic+`, `udp@`, `tcp@`, `quic4@` and the like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SocketKind {
    /// A byte stream: TCP or a UNIX stream socket.
    #[default]
    Stream,
    /// Datagrams: UDP or a UNIX datagram socket.
    Datagram,
    /// QUIC: connections with streams over UDP.
    Quic,
}

/// One address as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddressSpec {
    /// IPv4, IPv6 or a name, with a port.
    Inet {
        host: HostSpec,
        family: Family,
        port: PortSpec,
        /// Stream, datagram or QUIC.
        kind: SocketKind,
        /// `mptcp@`: use MPTCP if the kernel supports it.
        multipath: bool,
    },
    /// `unix@path`, `uxst@path`, `uxdg@path` or a bare `/path`.
    Unix {
        /// The path, with a leading `unix-bind prefix` not yet applied.
        path: String,
        /// Stream or datagram.
        kind: SocketKind,
    },
    /// `abns@name` (padded with zeroes to the full length) or `abnsz@name` (not padded).
    Abstract {
        /// The name without its leading NUL.
        name: String,
        /// True for `abnsz@`.
        unpadded: bool,
        /// Stream or datagram.
        kind: SocketKind,
    },
    /// `fd@n`, `sockpair@n`: an inherited descriptor.
    Descriptor {
        fd: i32,
        /// Stream, datagram or QUIC.
        kind: SocketKind,
        /// `sockpair@`: connections are passed over it.
        is_carrier: bool,
    },
    /// `rhttp@<backend>/<server>` of a listener: connections that are opened to that server and carry its requests. For
    /// a server: it is reached over connections that it opens; the text after the prefix is ignored.
    Reverse {
        /// `<backend>/<server>`, as written.
        server: String,
    },
}

impl AddressSpec {
    /// Whether connections at the address are those of QUIC.
    pub fn is_quic(&self) -> bool {
        let (Self::Inet { kind, .. } | Self::Descriptor { kind, .. }) = self else { return false };
        *kind == SocketKind::Quic
    }
}
