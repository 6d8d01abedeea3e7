//! Compiled settings of `udp-lb` sections. Must never hold a flow.

use std::num::NonZeroU32;
use std::time::Duration;

use config::spec::ServerIdPlace;

/// How the flows of a `udp-lb` section begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowSettings {
    /// `proxy-requests`: number of datagrams of a client after which a server is chosen again.
    pub requests: Option<NonZeroU32>,
    /// `proxy-responses`: number of answers to each datagram after which a flow ends.
    pub responses: Option<u32>,
    /// `accepted-payload-size`: size of the largest datagram in bytes.
    pub payload: usize,
    /// Time without a datagram after which a flow ends.
    pub idle: Duration,
    /// `option quic-passthrough`.
    pub quic: Option<QuicPassthrough>,
    /// Whether datagrams of one client that arrive together may belong to several flows.
    pub are_apart: bool,
}

/// `option quic-passthrough`: flows belong to QUIC connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuicPassthrough {
    /// `server-id`: the bytes of connection IDs that contain the `id` of a server, in network byte order.
    pub server_id: Option<ServerIdPlace>,
}
