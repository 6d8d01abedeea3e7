//! Settings of a listening socket besides its address: socket options, owner, expected headers (configuration manual,
//! section 5.1).

use super::{AccountSpec, QuicBindSpec, ThreadsSpec};
use crate::span::Spanned;

/// Protocol of a listening address's clients, or of a server (`proto`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MuxProtocol {
    /// `none`: raw bytes.
    None,
    /// `h1`.
    Http1,
    /// `h2`.
    Http2,
    /// `quic`: HTTP/3 over QUIC.
    Quic,
    /// `qmux`: HTTP/3 over QMux.
    Qmux,
    /// `fcgi`: servers only.
    Fcgi,
    /// `spop`: servers only.
    Spop,
}

impl MuxProtocol {
    /// Returns the name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Http1 => "h1",
            Self::Http2 => "h2",
            Self::Quic => "quic",
            Self::Qmux => "qmux",
            Self::Fcgi => "fcgi",
            Self::Spop => "spop",
        }
    }
}

/// Options of a `bind` line about its sockets and their connections.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ListeningSpec {
    /// `proto`.
    pub protocol: Option<MuxProtocol>,
    /// `accept-proxy`.
    pub accept_proxy: bool,
    /// `accept-netscaler-cip`: the magic number shared by sender and receiver.
    pub netscaler_cip: Option<u32>,
    /// `interface`.
    pub interface: Option<String>,
    /// `namespace`.
    pub namespace: Option<String>,
    /// `transparent`.
    pub transparent: bool,
    /// `tfo`.
    pub fast_open: bool,
    /// `mss`: if positive, the size to announce; if negative, the reduction of the size that clients announce.
    pub mss: Option<i32>,
    /// `tcp-ut` in milliseconds.
    pub user_timeout: Option<u64>,
    /// `tcp-md5sig`: the password.
    pub md5_password: Option<String>,
    /// `tcp-ss`: 1 saves the first packet from the IP header on, 2 includes the link layer header.
    pub save_syn: Option<u8>,
    /// `cc`: the algorithm.
    pub congestion_control: Option<String>,
    /// `user`, `uid` of a UNIX socket.
    pub user: Option<Spanned<AccountSpec>>,
    /// `group`, `gid` of a UNIX socket.
    pub group: Option<Spanned<AccountSpec>>,
    /// `thread`.
    pub threads: Option<ThreadsSpec>,
    /// `label`.
    pub label: Option<String>,
    /// `guid-prefix`.
    pub guid_prefix: Option<String>,
    /// `idle-ping` in milliseconds.
    pub idle_ping: Option<u64>,
    /// `nbconn`: number of connections of a reverse HTTP listener.
    pub connections: Option<u32>,
    /// `quic-*`.
    pub quic: QuicBindSpec,
}

/// `unix-bind` (section 3.1): defaults of all UNIX listening sockets.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UnixBindSpec {
    /// `prefix`, put in front of every path.
    pub prefix: Option<String>,
    /// `mode`: permission bits.
    pub mode: Option<u32>,
    /// `user`, `uid`.
    pub user: Option<Spanned<AccountSpec>>,
    /// `group`, `gid`.
    pub group: Option<Spanned<AccountSpec>>,
}

/// `clitcpka-*` and `srvtcpka-*`: parameters of TCP keep-alive; `None` selects the system's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeepAliveSpec {
    /// `clitcpka-cnt`: number of unanswered probes before the connection is dropped.
    pub count: Option<u32>,
    /// `clitcpka-idle` in seconds.
    pub idle: Option<u32>,
    /// `clitcpka-intvl` in seconds.
    pub interval: Option<u32>,
}

/// Number of sockets of an address (`shards`, `tune.listener.default-shards`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShardsSpec {
    /// This number, limited to the number of threads.
    Number(u32),
    /// `by-thread`: one per thread.
    ByThread,
    /// `by-group`: one per thread group.
    ByGroup,
}

/// `tune.listener.multi-queue`: thread that processes a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MultiQueue {
    /// `on`: a thread with low load.
    #[default]
    On,
    /// `fair`: round robin.
    Fair,
    /// `off`: the thread that accepted it.
    Off,
}

/// `tune.listener.*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListenerTuneSpec {
    /// `tune.listener.default-shards`; default by group.
    pub default_shards: Option<ShardsSpec>,
    /// `tune.listener.multi-queue`.
    pub multi_queue: MultiQueue,
}

/// Settings of a frontend's client connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReceptionSpec {
    /// `clitcpka-*`.
    pub keep_alive: KeepAliveSpec,
    /// `option tcp-smart-accept`; default on in HTTP mode.
    pub smart_accept: Option<bool>,
    /// `option socket-stats`.
    pub socket_stats: bool,
}
