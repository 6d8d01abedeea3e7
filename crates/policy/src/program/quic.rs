//! Parameters of QUIC towards clients (configuration manual, sections 3.2 and 5.1), including default values. Must never
//! hold a socket or a key.

use config::spec::QuicCongestion;
use std::time::Duration;

/// QUIC limits of client connections and of the process (`tune.quic.*`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuicLimits {
    /// `tune.quic.listen`: QUIC addresses receive datagrams. If not, their sockets are open and nothing is read.
    pub listens: bool,
    /// `cluster-secret`: the secret from which the keys of tokens and stateless resets are derived; `None`: random keys.
    pub cluster_secret: Option<Box<[u8]>>,
    /// `tune.quic.fe.sec.retry-threshold`: number of handshakes in progress, in the whole process, from which Retry packets are
    /// sent. `None` without a `cluster-secret`.
    pub retry_threshold: Option<u32>,
    /// `harden.reject-privileged-ports.quic`: datagrams from source ports below 1024 are ignored.
    pub refuses_privileged_ports: bool,
    /// `tune.quic.fe.max-idle-timeout`; `None`: only the client limits it.
    pub idle_timeout: Option<Duration>,
    /// `tune.quic.fe.sec.glitches-threshold`: number of glitches after which a connection is closed; 0 for no limit.
    pub glitches: u32,
    /// `tune.quic.mem.tx-max`: maximum number of bytes in flight of a connection; `None` for no limit.
    pub transmit_memory: Option<u64>,
    /// `tune.quic.fe.tx.udp-gso`: several datagrams are passed to the kernel at once if it can.
    pub segments: bool,
    /// `tune.sndbuf.frontend`: kernel send buffer of each socket in bytes.
    pub send_buffer: Option<u32>,
    /// Streams and their buffers.
    pub streams: QuicStreamLimits,
    /// Connections to servers.
    pub servers: QuicServerLimits,
    /// `tune.quic.qlog-dir`; `None`: connections are not traced.
    pub qlog: Option<QlogLimits>,
}

/// The traces of connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QlogLimits {
    /// Their directory.
    pub directory: Box<str>,
    /// Maximum number of files in it, and of connections that are traced at a time.
    pub files: u32,
    /// Maximum size of a file in bytes.
    pub size: u64,
}

/// Limits of the streams of a client's QUIC connection (`tune.quic.fe.stream.*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuicStreamLimits {
    /// `max-concurrent`: maximum number of concurrent bidirectional streams.
    pub concurrent: u32,
    /// `max-total`: total number of requests after which a connection is closed; 0 for no limit.
    pub total: u32,
    /// `rxbuf`: bytes that a connection may receive before they are read (`initial_max_data`).
    pub connection_window: u32,
    /// `data-ratio` of it, in whole buffers: bytes that a stream may receive before they are read.
    pub stream_window: u32,
}

/// QUIC limits of connections to servers (`tune.quic.be.*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuicServerLimits {
    /// `tune.quic.be.max-idle-timeout`; `None`: only the server limits it.
    pub idle_timeout: Option<Duration>,
    /// `tune.quic.be.sec.glitches-threshold`: number of glitches after which a connection is closed; 0 for no limit.
    pub glitches: u32,
    /// `tune.quic.be.tx.udp-gso`: several datagrams are passed to the kernel at once if it can.
    pub segments: bool,
    /// `tune.quic.be.stream.rxbuf`: bytes that a connection may receive before they are read (`initial_max_data`).
    pub connection_window: u32,
    /// `tune.quic.be.stream.data-ratio` of it, in whole buffers: bytes that a stream may receive before they are read.
    pub stream_window: u32,
}

/// QUIC parameters of a `server` line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuicConnecting {
    /// `quic-cc-algo`.
    pub congestion: QuicCongestion,
    /// Maximum congestion window in bytes: the argument of `quic-cc-algo`, else `tune.quic.be.cc.max-win-size`.
    pub max_window: u64,
    /// `webtransport`: WebTransport sessions are passed on, each over a connection of its own.
    pub webtransport: bool,
}

/// QUIC parameters of a `bind` line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuicListening {
    /// `quic-cc-algo`.
    pub congestion: QuicCongestion,
    /// Maximum congestion window in bytes: the argument of `quic-cc-algo`, else `tune.quic.fe.cc.max-win-size`.
    pub max_window: u64,
    /// `quic-force-retry`: every client is validated by a Retry packet.
    pub forces_retry: bool,
    /// `webtransport`: WebTransport sessions are accepted.
    pub webtransport: bool,
}
