//! The PROXY protocol, versions 1 and 2 (`doc/proxy-protocol.txt` of HAProxy): what a header says. `decode` reads one,
//! `encode` writes one. Must never guess whether a header is there: the caller knows.

mod decode;
mod encode;
#[cfg(test)]
mod property_tests;
mod text;
mod tlv;

pub use decode::{Decoded, decode};
pub use encode::{EncoderV2, Ends, TooLong, encode_v1};
pub use tlv::{SslInfo, Tlv, Tlvs, kind, ssl_client, ssl_kind};

use std::fmt;
use std::net::SocketAddr;

/// The first bytes of a header of version 2.
pub const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// Bytes of a header of version 2 in front of its addresses.
pub const FIXED_V2: usize = 16;

/// Bytes of a header of version 1 at most, with its line end.
pub const LONGEST_V1: usize = 107;

/// Bytes of one UNIX address in a header of version 2.
pub const UNIX_ADDRESS: usize = 108;

/// The version of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// One line of text.
    V1,
    /// Binary.
    V2,
}

/// On whose behalf a connection was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// The sender's own: the connection's real addresses count.
    Local,
    /// A relayed connection, whose addresses are in the header.
    Proxy,
}

/// What the connection that is told of was made of (the lower four bits of version 2's 14th byte).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Unknown, or something else.
    Unspecified,
    /// TCP, or a UNIX stream.
    Stream,
    /// UDP, or UNIX datagrams.
    Datagram,
}

/// Both ends of the connection that is told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Addresses {
    /// Not told: the connection's real addresses count.
    Unspecified,
    /// Both IPv4, or both IPv6.
    Inet {
        /// The client.
        source: SocketAddr,
        /// Where it connected to.
        destination: SocketAddr,
    },
    /// UNIX sockets: `sun_path` as it stands, with zeroes behind it.
    Unix {
        /// The client.
        source: Box<[u8; UNIX_ADDRESS]>,
        /// Where it connected to.
        destination: Box<[u8; UNIX_ADDRESS]>,
    },
}

/// A header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Its version.
    pub version: Version,
    /// On whose behalf.
    pub command: Command,
    /// Of what.
    pub transport: Transport,
    /// From where to where. Always unspecified for [`Command::Local`].
    pub addresses: Addresses,
    /// What else version 2 tells.
    pub tlvs: Tlvs,
}

impl Header {
    /// The ends that count instead of the connection's own: `None` where it has to keep its own.
    pub fn inet(&self) -> Option<(SocketAddr, SocketAddr)> {
        match self.addresses {
            Addresses::Inet { source, destination } => Some((source, destination)),
            Addresses::Unspecified | Addresses::Unix { .. } => None,
        }
    }
}

/// What is wrong with a header, as the configuration manual's `fc_err` sorts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// The first bytes belong to no header.
    NotAHeader,
    /// It is longer than can be read.
    TooLong,
    /// Something in it is not as it has to be.
    Invalid,
    /// The checksum in it is another one than its bytes have.
    Checksum,
    /// Version 1 tells of a protocol that does not exist.
    Protocol,
}

impl fmt::Display for Malformed {
    /// The sentence of the manual (`fc_err_str`).
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
