//! What a listening address is besides its address: socket options, owner, the header it expects (configuration manual,
//! section 5.1).

use super::{AccountSpec, ThreadsSpec};
use crate::span::Spanned;

/// What is spoken with clients of a listening address, or with a server (`proto`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MuxProtocol {
    /// `none`: bytes.
    None,
    /// `h1`.
    Http1,
    /// `h2`.
    Http2,
    /// `fcgi`: with servers alone.
    Fcgi,
    /// `spop`: with servers alone.
    Spop,
}

impl MuxProtocol {
    /// Its name on a line.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Http1 => "h1",
            Self::Http2 => "h2",
            Self::Fcgi => "fcgi",
            Self::Spop => "spop",
        }
    }
}

/// Options of a `bind` line about its sockets and what comes in through them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ListeningSpec {
    /// `proto`.
    pub protocol: Option<MuxProtocol>,
    /// `accept-proxy`.
    pub accept_proxy: bool,
    /// `accept-netscaler-cip`: the magic number that sender and receiver agreed on.
    pub netscaler_cip: Option<u32>,
    /// `interface`.
    pub interface: Option<String>,
    /// `namespace`.
    pub namespace: Option<String>,
    /// `transparent`.
    pub transparent: bool,
    /// `tfo`.
    pub fast_open: bool,
    /// `mss`: from 1 the size to announce, below 0 by how much to reduce what clients announce.
    pub mss: Option<i32>,
    /// `tcp-ut` in milliseconds.
    pub user_timeout: Option<u64>,
    /// `tcp-md5sig`: the password.
    pub md5_password: Option<String>,
    /// `tcp-ss`: 1 keeps the IP header of the first packet and what is above it, 2 the one below as well.
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
    /// `nbconn`: connections of a reverse HTTP listener.
    pub connections: Option<u32>,
}

/// `unix-bind` (section 3.1): what holds for every UNIX listening socket that says nothing else.
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

/// `clitcpka-*` and `srvtcpka-*`: fine settings of TCP keep-alive; `None` leaves one to the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeepAliveSpec {
    /// `clitcpka-cnt`: probes without an answer before the connection is dropped.
    pub count: Option<u32>,
    /// `clitcpka-idle` in seconds.
    pub idle: Option<u32>,
    /// `clitcpka-intvl` in seconds.
    pub interval: Option<u32>,
}

/// How many sockets an address gets (`shards`, `tune.listener.default-shards`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShardsSpec {
    /// So many, but no more than there are threads.
    Number(u32),
    /// `by-thread`: one a thread.
    ByThread,
    /// `by-group`: one a thread group.
    ByGroup,
}

/// `tune.listener.multi-queue`: which thread gets a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MultiQueue {
    /// `on`: one that has little to do.
    #[default]
    On,
    /// `fair`: one after the other.
    Fair,
    /// `off`: the one that accepted it.
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

/// What a frontend says about the connections that it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReceptionSpec {
    /// `clitcpka-*`.
    pub keep_alive: KeepAliveSpec,
    /// `option tcp-smart-accept`; default on in HTTP mode.
    pub smart_accept: Option<bool>,
    /// `option socket-stats`.
    pub socket_stats: bool,
}
