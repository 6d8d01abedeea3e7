//! What a listening address and its frontend say about sockets and connections (configuration manual, section 5.1).

use config::spec::{KeepAliveSpec, MuxProtocol};
use std::time::Duration;

/// What a `bind` line says about its sockets and what comes in through them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Listening {
    /// What is set on the sockets, and where they are opened.
    pub socket: SocketOptions,
    /// `proto`: what clients speak; `None`: what they begin with.
    pub protocol: Option<MuxProtocol>,
    /// `idle-ping`: how often the client of an idle connection is asked whether it is there.
    pub idle_ping: Option<Duration>,
    /// `nbconn`: connections that a line of reverse HTTP keeps up.
    pub connections: u32,
    /// What comes before the client's first bytes.
    pub header: ExpectedHeader,
    /// `thread`: the workers that serve its connections, in order, from 0; `None`: all of them.
    pub threads: Option<Box<[usize]>>,
    /// `label`.
    pub label: Option<Box<str>>,
    /// `guid-prefix` with the address's number on its line.
    pub guid: Option<Box<str>>,
}

/// Options of a listening socket. Everything but namespace, user and group is about TCP and says nothing elsewhere.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SocketOptions {
    /// `interface`.
    pub interface: Option<Box<str>>,
    /// `namespace`.
    pub namespace: Option<Box<str>>,
    /// `transparent`.
    pub transparent: bool,
    /// `mptcp@`: by MPTCP where the kernel has it.
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
    /// `user`, `uid` of a UNIX socket.
    pub user: Option<u32>,
    /// `group`, `gid` of a UNIX socket.
    pub group: Option<u32>,
}

/// `mss`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Segments {
    /// As the system does.
    #[default]
    Default,
    /// Of this size at most, in both directions.
    Announced(u32),
    /// By so many bytes smaller than the client would take.
    ReducedBy(u32),
}

/// What a balancer in front puts before the client's first bytes. With both, NetScaler's header comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExpectedHeader {
    /// `accept-netscaler-cip`: with this magic number.
    pub netscaler: Option<u32>,
    /// `accept-proxy`.
    pub proxy: bool,
}

impl ExpectedHeader {
    /// Whether there is any.
    pub fn is_some(self) -> bool {
        self.proxy || self.netscaler.is_some()
    }
}

/// What a frontend says about the connections that it takes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reception {
    /// `option clitcpka` with its fine settings; `None`: no probes.
    pub keep_alive: Option<KeepAliveSpec>,
    /// `option tcp-smart-accept`; on in HTTP mode where nothing was written.
    pub smart_accept: bool,
    /// `option socket-stats`.
    pub socket_stats: bool,
}
