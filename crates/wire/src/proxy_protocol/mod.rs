//! The PROXY protocol, versions 1 and 2 (`doc/proxy-protocol.txt` of HAProxy): `decode` parses a header, `encode`
//! writes one. Must never guess whether a header is present: the caller knows from the configuration.

mod decode;
mod encode;
#[cfg(test)]
mod property_tests;
mod text;
mod tlv;

pub use decode::{ParsedHeader, decode};
pub use encode::{EncoderV2, Ends, TooLong, encode_v1};
pub use tlv::{SslInfo, Tlv, Tlvs, kind, ssl_client, ssl_kind};

use std::fmt;
use std::net::SocketAddr;

/// Signature of version 2: the first bytes of a header.
pub const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// Length of a version 2 header before its addresses, in bytes.
pub const FIXED_V2: usize = 16;

/// Maximum length of a version 1 header in bytes, including the line end.
pub const LONGEST_V1: usize = 107;

/// Length of one UNIX address in a version 2 header, in bytes.
pub const UNIX_ADDRESS: usize = 108;

/// The version of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

/// The command of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// A connection of the sender itself: the connection's real addresses apply.
    Local,
    /// A relayed connection, whose addresses are in the header.
    Proxy,
}

/// The transport protocol of the original connection (the lower four bits of version 2's 14th byte).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Unknown or unsupported.
    Unspecified,
    /// TCP, or a UNIX stream.
    Stream,
    /// UDP, or UNIX datagrams.
    Datagram,
}

/// Source and destination of the original connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Addresses {
    /// Not specified: the connection's real addresses apply.
    Unspecified,
    /// Both IPv4 or both IPv6.
    Inet {
        /// The client's address.
        source: SocketAddr,
        /// The address that the client connected to.
        destination: SocketAddr,
    },
    /// UNIX sockets: `sun_path`, padded with zeros.
    Unix {
        /// The client's address.
        source: Box<[u8; UNIX_ADDRESS]>,
        /// The address that the client connected to.
        destination: Box<[u8; UNIX_ADDRESS]>,
    },
}

/// A PROXY protocol header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub version: Version,
    pub command: Command,
    pub transport: Transport,
    /// Source and destination. Always unspecified for [`Command::Local`].
    pub addresses: Addresses,
    /// TLVs of version 2; empty for version 1.
    pub tlvs: Tlvs,
}

impl Header {
    /// Returns the source and destination that replace the connection's own; `None` if the connection keeps its own.
    pub fn inet(&self) -> Option<(SocketAddr, SocketAddr)> {
        match self.addresses {
            Addresses::Inet { source, destination } => Some((source, destination)),
            Addresses::Unspecified | Addresses::Unix { .. } => None,
        }
    }
}

/// Why a header is invalid, in the classes of the configuration manual's `fc_err`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// The first bytes are not a header.
    NotAHeader,
    /// The header is longer than the permitted maximum.
    TooLong,
    /// The header violates the specification.
    Invalid,
    /// The checksum does not match.
    Checksum,
    /// Version 1 with an unknown protocol.
    Protocol,
}

impl fmt::Display for Malformed {
    /// Writes the manual's text (`fc_err_str`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Malformed::NotAHeader => "Received something which does not look like a PROXY protocol header",
            Malformed::TooLong => "Truncated PROXY protocol header received",
            Malformed::Invalid | Malformed::Checksum => "Received an invalid PROXY protocol header",
            Malformed::Protocol => "Received an unhandled protocol in the PROXY protocol header",
        })
    }
}

impl std::error::Error for Malformed {}
