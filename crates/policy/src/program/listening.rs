//! Parameters of listening sockets and accepted connections (configuration manual, section 5.1). Must never hold a
//! socket.

use super::QuicListening;
use config::spec::{KeepAliveSpec, MuxProtocol};
use std::time::Duration;

/// Parameters of a `bind` line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Listening {
    /// Socket options and namespace.
    pub socket: SocketOptions,
    /// `proto`: the protocol of clients; `None` to detect it.
    pub protocol: Option<MuxProtocol>,
    /// `idle-ping`: interval of liveness checks on idle connections.
    pub idle_ping: Option<Duration>,
    /// `nbconn`: number of connections of a reverse HTTP line.
    pub connections: u32,
    /// Headers expected before the client's first bytes.
    pub header: ExpectedHeader,
    /// `thread`: indices of the workers that serve the connections, in order; `None` for all of them.
    pub threads: Option<Box<[usize]>>,
    /// `label`.
    pub label: Option<Box<str>>,
    /// `guid-prefix` with the index of the address on its line.
    pub guid: Option<Box<str>>,
    /// QUIC; `None` for an address of another protocol.
    pub quic: Option<QuicListening>,
}

/// Options of a listening socket. User and group apply only to UNIX sockets; interface and transparency to TCP and QUIC; the
/// others, except the namespace, only to TCP.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SocketOptions {
    /// `interface`.
    pub interface: Option<Box<str>>,
    /// `namespace`.
    pub namespace: Option<Box<str>>,
    /// `transparent`.
    pub transparent: bool,
    /// `mptcp@`: use MPTCP if the kernel supports it.
    pub multipath: bool,
    /// `tfo`.
    pub fast_open: bool,
    /// `mss`.
    pub segments: Segments,
    /// `tcp-ut`.
    pub user_timeout: Option<Duration>,
    /// `tcp-md5sig`.
    pub md5_password: Option<Box<[u8]>>,
    /// `tcp-ss`, 1 or 2.
    pub save_syn: Option<u8>,
    /// `cc`.
    pub congestion_control: Option<Box<str>>,
    /// `user`, `uid`: the owner of a UNIX socket.
    pub user: Option<u32>,
    /// `group`, `gid`: the group of a UNIX socket.
    pub group: Option<u32>,
}

/// The maximum segment size (`mss`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Segments {
    /// The system's default.
    #[default]
    Default,
    /// A maximum size in bytes, in both directions.
    Announced(u32),
    /// Reduced by a number of bytes from the size that the client advertises.
    ReducedBy(u32),
}

/// Headers of a load balancer before the client's first bytes. With both, NetScaler's header comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExpectedHeader {
    /// `accept-netscaler-cip`, with the magic number.
    pub netscaler: Option<u32>,
    /// `accept-proxy`.
    pub proxy: bool,
}

impl ExpectedHeader {
    /// Whether any header is expected.
    pub fn is_some(self) -> bool {
        self.proxy || self.netscaler.is_some()
    }
}

/// Parameters of a frontend's accepted connections.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reception {
    /// `option clitcpka` with its parameters; `None` for no probes.
    pub keep_alive: Option<KeepAliveSpec>,
    /// `option tcp-smart-accept`; enabled in HTTP mode by default.
    pub smart_accept: bool,
    /// `option socket-stats`.
    pub socket_stats: bool,
}
