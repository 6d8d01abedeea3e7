//! QUIC: the options of `bind` and `server` lines about it, and `tune.quic.*` (configuration manual, sections 3.2 and 5.1). Must never
//! apply a default.

use crate::span::{Span, Spanned};

/// Algorithm of congestion control (`quic-cc-algo`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QuicCongestion {
    /// `cubic` (RFC 9438).
    #[default]
    Cubic,
    /// `newreno` (RFC 9002, section 7).
    NewReno,
    /// `bbr`.
    Bbr,
    /// `nocc`: the window is always the largest.
    Unlimited,
}

/// QUIC options of a `bind` line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicBindSpec {
    /// `quic-cc-algo`; default cubic.
    pub congestion: Option<QuicCongestion>,
    /// The argument of `quic-cc-algo`: maximum congestion window in bytes.
    pub max_window: Option<u64>,
    /// `quic-force-retry`, and its place.
    pub force_retry: Option<Span>,
    /// `webtransport`, and its place. Weir only.
    pub webtransport: Option<Span>,
}

/// QUIC options of a `server` line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicConnectingSpec {
    /// `quic-cc-algo`; default cubic.
    pub congestion: Option<QuicCongestion>,
    /// The argument of `quic-cc-algo`: maximum congestion window in bytes.
    pub max_window: Option<u64>,
    /// `webtransport`, and its place. Weir only.
    pub webtransport: Option<Span>,
}

/// `tune.quic.be.*`: connections to servers. `None` means "not written".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicServerTuneSpec {
    /// `tune.quic.be.max-idle-timeout`, milliseconds; default 30 s, 0: the server's alone.
    pub idle_timeout: Option<u64>,
    /// `tune.quic.be.cc.max-win-size`, bytes; default 480k.
    pub max_window: Option<u64>,
    /// `tune.quic.be.sec.glitches-threshold`; default 0: none.
    pub glitches: Option<u32>,
    /// `tune.quic.be.stream.max-concurrent`; default 100.
    pub streams: Option<u32>,
    /// `tune.quic.be.stream.rxbuf`, bytes; default 0: the product of streams and `tune.bufsize`.
    pub receive_buffer: Option<u64>,
    /// `tune.quic.be.stream.data-ratio`, percent of the receive buffer; default 90.
    pub data_ratio: Option<u32>,
    /// `tune.quic.be.tx.udp-gso`; default on.
    pub segmentation: Option<bool>,
}

/// `tune.quic.*` of client connections and of the process. `None` means "not written"; the compiler applies the
/// defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicTuneSpec {
    /// `tune.quic.listen`; default on.
    pub listen: Option<bool>,
    /// `tune.quic.mem.tx-max`, bytes.
    pub transmit_memory: Option<u64>,
    /// `harden.reject-privileged-ports.quic`; default on.
    pub reject_privileged_ports: Option<bool>,
    /// `tune.quic.fe.max-idle-timeout`, milliseconds; default 30 s, 0: the client's alone.
    pub idle_timeout: Option<u64>,
    /// `tune.quic.fe.cc.max-win-size`, bytes; default 480k.
    pub max_window: Option<u64>,
    /// `tune.quic.fe.sec.glitches-threshold`; default 0: none.
    pub glitches: Option<u32>,
    /// `tune.quic.fe.sec.retry-threshold`; default 100.
    pub retry_threshold: Option<u32>,
    /// `tune.quic.fe.stream.max-concurrent`; default 100.
    pub streams: Option<u32>,
    /// `tune.quic.fe.stream.max-total`; default 0: no limit.
    pub total_streams: Option<u32>,
    /// `tune.quic.fe.stream.rxbuf`, bytes; default 0: the product of streams and `tune.bufsize`.
    pub receive_buffer: Option<u64>,
    /// `tune.quic.fe.stream.data-ratio`, percent of the receive buffer; default 90.
    pub data_ratio: Option<u32>,
    /// `tune.quic.fe.tx.udp-gso`; default on.
    pub segmentation: Option<bool>,
    /// `tune.quic.be.*`.
    pub servers: QuicServerTuneSpec,
}

/// `tune.quic.qlog-dir`: the traces of QUIC connections. Weir only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QlogSpec {
    pub directory: Spanned<String>,
    /// `files`: their maximum number; default 100.
    pub files: Option<u32>,
    /// `size`: the maximum size of one in bytes; default 10m.
    pub size: Option<u64>,
}
