//! Datagrams as they come from a socket, and as they are sent on one.

use std::net::{IpAddr, SocketAddr};

use quinn_proto::EcnCodepoint;

/// A received datagram.
#[derive(Debug, Clone, Copy)]
pub struct Datagram<'a> {
    pub bytes: &'a [u8],
    pub peer: SocketAddr,
    /// The address that it was sent to, if it is known.
    pub local: Option<IpAddr>,
    /// The two bits of explicit congestion notification (RFC 3168).
    pub ecn: u8,
}

/// One datagram to send, or several of the same size: the bytes are at the front of the buffer that was passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    pub to: SocketAddr,
    /// The address to send from; `None`: any.
    pub from: Option<IpAddr>,
    /// The two bits of explicit congestion notification.
    pub ecn: u8,
    /// Number of bytes.
    pub size: usize,
    /// Size of each datagram in bytes; the last one may be smaller.
    pub segment: usize,
}

impl Transmit {
    pub(crate) fn of(transmit: &quinn_proto::Transmit) -> Self {
        Self {
            to: transmit.destination,
            from: transmit.src_ip,
            ecn: transmit.ecn.map_or(0, |mark| mark as u8),
            size: transmit.size,
            segment: transmit.segment_size.unwrap_or(transmit.size).max(1),
        }
    }
}

pub(crate) fn mark(bits: u8) -> Option<EcnCodepoint> {
    EcnCodepoint::from_bits(bits)
}
