//! Settings of `udp-lb` sections beside those of a proxy.

use crate::span::Spanned;

/// Size in bytes of the largest datagram by default: what an Ethernet frame carries over IPv4.
pub const DEFAULT_PAYLOAD: u32 = 1_472;

/// Settings of the flows of a `udp-lb` section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UdpSpec {
    /// `proxy-requests`: number of datagrams of a client after which a server is chosen again; `None`: never.
    pub requests: Option<u32>,
    /// `proxy-responses`: number of answers to each datagram after which a flow ends; `None`: unknown.
    pub responses: Option<u32>,
    /// `accepted-payload-size`: size of the largest datagram in bytes.
    pub payload: u32,
    /// `option quic-passthrough`.
    pub quic: Option<Spanned<QuicPassthroughSpec>>,
}

/// `option quic-passthrough`: datagrams belong to QUIC connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuicPassthroughSpec {
    /// `server-id`: the bytes of connection IDs that contain the `id` of a server.
    pub server_id: Option<ServerIdPlace>,
}

/// A range of bytes of connection IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerIdPlace {
    pub offset: u8,
    /// 1 to 4.
    pub length: u8,
}

impl Default for UdpSpec {
    fn default() -> Self {
        Self { requests: None, responses: None, payload: DEFAULT_PAYLOAD, quic: None }
    }
}
