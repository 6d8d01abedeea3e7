//! Settings of `udp-lb` sections beside those of a proxy.

/// Size in bytes of the largest datagram by default: what an Ethernet frame carries over IPv4.
pub const DEFAULT_PAYLOAD: u32 = 1_472;

/// Settings of the flows of a `udp-lb` section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpSpec {
    /// `proxy-requests`: number of datagrams of a client after which a server is chosen again; `None`: never.
    pub requests: Option<u32>,
    /// `proxy-responses`: number of answers to each datagram after which a flow ends; `None`: unknown.
    pub responses: Option<u32>,
    /// `accepted-payload-size`: size of the largest datagram in bytes.
    pub payload: u32,
}

impl Default for UdpSpec {
    fn default() -> Self {
        Self { requests: None, responses: None, payload: DEFAULT_PAYLOAD }
    }
}
