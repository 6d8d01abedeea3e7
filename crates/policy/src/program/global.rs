//! What holds for the whole process (configuration manual, section 3), with the defaults filled in.

use super::{GlobalHttp, LogTarget};
use config::spec::{CloseSpread, GlitchTuneSpec, GlobalCompressionSpec, Http2ErrorsSpec, MultiQueue, RatesSpec};
use expression::key::TokenLimits;
use std::time::Duration;

/// What a peer of HTTP/2 is granted (`tune.h2.*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Http2Limits {
    /// Bytes of payload that a stream may send before it is told of more.
    pub window: u32,
    /// Bytes of payload that may wait on a connection beyond that.
    pub shared_window: u32,
    /// Streams at a time on a connection.
    pub streams: usize,
    /// Streams in all on a connection; 0: no limit.
    pub total: u32,
    /// It is told that it may ask for other protocols.
    pub extends: bool,
    /// Bytes of fields that blocks may refer to.
    pub table_size: usize,
}

/// What is spoken with clients of several streams beside that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamLimits {
    /// Tasks that wait on a worker from which on its clients are granted fewer streams (`rq-load`).
    pub load: Option<u32>,
    /// Streams that they are granted at least then (`min`).
    pub least: usize,
    /// `tune.streams-elasticity`: streams beyond the first of each that connections may have in all; `None`: no limit.
    pub shared: Option<u32>,
    /// `tune.h2.log-errors`.
    pub logged_errors: Http2ErrorsSpec,
}

/// Sizes of a socket's kernel buffers in bytes; `None` leaves the system's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketBuffers {
    /// `tune.rcvbuf.*`.
    pub receive: Option<u32>,
    /// `tune.sndbuf.*`.
    pub send: Option<u32>,
    /// `tune.notsent-lowat.*`: unsent bytes from which a socket counts as full.
    pub unsent: Option<u32>,
}

/// What bounds compression over the whole process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GlobalCompression {
    /// `maxcomprate`: kilobytes a second at the start; the runtime API may change it.
    pub rate: Option<u32>,
    /// `maxcompcpuusage`, percent; 100: no limit.
    pub usage: u32,
    /// `maxzlibmem`, bytes; 0: no limit.
    pub memory: u64,
    /// `tune.comp.maxlevel`, from 1 to 9.
    pub level: u32,
    /// Base-two logarithm of the bytes of history, from 9 to 15.
    pub window: u8,
}

impl GlobalCompression {
    /// With the defaults of what is not written.
    pub(crate) fn of(written: &GlobalCompressionSpec) -> Self {
        Self {
            rate: written.rate,
            usage: written.usage.unwrap_or(100),
            memory: u64::from(written.memory.unwrap_or(0)) << 20,
            level: written.level.unwrap_or(1),
            // With less than 9, the format's own least, nothing can be read.
            window: written.window.unwrap_or(15).clamp(9, 15) as u8,
        }
    }
}

/// The `global` section.
#[derive(Debug, Clone, PartialEq)]
pub struct Global {
    /// `maxconn`: connections of the process; worked out from the descriptors where nothing was written.
    pub maxconn: u32,
    /// Whether it was worked out: worth a notice at the start.
    pub maxconn_is_automatic: bool,
    /// `maxconnrate`, `maxsessrate`, `maxsslrate`.
    pub rates: RatesSpec,
    /// What bounds compression.
    pub compression: GlobalCompression,
    /// `maxsslconn`: connections by TLS of both sides; 0: no limit.
    pub max_tls_connections: u32,
    /// `maxconn` or `maxsslconn` is more than the memory (`-m`) has room for: why the process cannot start.
    pub excess: Option<Box<str>>,
    /// `maxpipes`: pipes for splicing; a quarter of `maxconn` where nothing was written.
    pub maxpipes: usize,
    /// The number of descriptors that the process needs for that, or `ulimit-n`: what its limit is to be raised to.
    pub descriptors: u64,
    /// `strict-limits`: refuse to start when the limit cannot be raised.
    pub strict_limits: bool,
    /// `nbthread`; every usable processor where nothing was written.
    pub nbthread: u32,
    /// `tune.bufsize`, bytes.
    pub bufsize: usize,
    /// `tune.bufsize.large`, bytes.
    pub large_bufsize: Option<usize>,
    /// `tune.maxrewrite`, bytes.
    pub maxrewrite: usize,
    /// `tune.http.maxhdr`, fields of a head.
    pub maxhdr: usize,
    /// What clients of HTTP/2 are granted.
    pub http2: Http2Limits,
    /// What servers of HTTP/2 are granted.
    pub http2_servers: Http2Limits,
    /// What bounds streams of clients beyond that.
    pub streams: StreamLimits,
    /// What follows from glitches.
    pub glitches: GlitchTuneSpec,
    /// `tune.http.logurilen`, bytes.
    pub logurilen: usize,
    /// What holds for HTTP.
    pub http: GlobalHttp,
    /// Which encrypted tokens are decrypted.
    pub tokens: TokenLimits,
    /// `tune.max-rules-at-once`: content rules that are evaluated in a row; `u32::MAX` for "no limit".
    pub max_rules_at_once: u32,
    /// `tune.eval.max-time`: processor time that the evaluations of one request may take.
    pub evaluation_time: Duration,
    /// `tune.maxaccept`: connections that a worker accepts in a row; `usize::MAX` for "no limit".
    pub maxaccept: usize,
    /// `tune.listener.multi-queue`: which worker gets a connection.
    pub multi_queue: MultiQueue,
    /// `tune.maxpollevents`: events that are taken from the kernel in one turn.
    pub maxpollevents: usize,
    /// `tune.idle-pool.shared`: whether a worker may take another one's idle connections.
    pub idle_pool_shared: bool,
    /// From this many descriptors in use on, no connection is put into an idle pool (`tune.pool-low-fd-ratio`).
    pub pool_low_descriptors: u64,
    /// From this many descriptors in use on, idle connections are closed when a new one is needed
    /// (`tune.pool-high-fd-ratio`).
    pub pool_high_descriptors: u64,
    /// Buffers of connections from clients.
    pub client_buffers: SocketBuffers,
    /// Buffers of connections to servers.
    pub server_buffers: SocketBuffers,
    /// `tune.rcvbuf.frontend`: the kernel's receive buffer of datagram listening sockets, bytes.
    pub datagram_receive_buffer: Option<u32>,
    /// `tune.sndbuf.backend`: the kernel's send buffer of datagram sockets, bytes.
    pub datagram_send_buffer: Option<u32>,
    /// `tune.pipesize`, bytes.
    pub pipesize: Option<u32>,
    /// `nosplice`.
    pub nosplice: bool,
    /// `harden.reject-privileged-ports.tcp`: clients with a source port below 1024 are not served.
    pub reject_privileged_ports: bool,
    /// `tune.vars.*`.
    pub variables: expression::variable::VariableSizes,
    /// `hard-stop-after`.
    pub hard_stop_after: Option<Duration>,
    /// `spread-checks`: per cent of an interval that is added or taken away.
    pub spread_checks: u32,
    /// `max-spread-checks`.
    pub max_spread_checks: Option<Duration>,
    /// `pp2-never-send-local`.
    pub checks_are_proxied: bool,
    /// `grace`.
    pub grace: Option<Duration>,
    /// `close-spread-time`.
    pub close_spread: CloseSpread,
    /// `log` lines of the section itself: what the process has to say about its own life.
    pub logs: Vec<LogTarget>,
    /// `log-tag`; `None`: the program's name.
    pub log_tag: Option<Box<str>>,
    /// `log-send-hostname`: `Some(None)` means the host's own name.
    pub log_send_hostname: Option<Option<Box<str>>>,
    /// `node`.
    pub node: Option<Box<str>>,
    /// `anonkey`; 0: none.
    pub anonymous_key: u32,
    /// `profiling.tasks on`: workers measure what tasks cost.
    pub measure_tasks: bool,
    /// `profiling.rules on`: workers measure what rules cost.
    pub measure_rules: bool,
    /// `shm-stats-file`.
    pub shared_counters: Option<SharedCounters>,
}

/// Shared memory that keeps counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedCounters {
    /// Its name as written.
    pub name: Box<str>,
    /// Objects that fit into it.
    pub max_objects: u32,
}
