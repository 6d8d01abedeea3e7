//! The compiled `global` section (configuration manual, section 3), including default values. Must never hold a socket
//! or a counter.

use super::{GlobalHttp, LogTarget, QuicLimits};
use config::spec::{CloseSpread, GlitchTuneSpec, GlobalCompressionSpec, Http2ErrorsSpec, MultiQueue, RatesSpec};
use expression::key::TokenLimits;
use std::time::Duration;

/// HTTP/2 limits for one side (`tune.h2.*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Http2Limits {
    /// Initial flow-control window of a stream in bytes.
    pub window: u32,
    /// Additional bytes of payload that may be buffered per connection.
    pub shared_window: u32,
    /// Maximum number of concurrent streams per connection.
    pub streams: usize,
    /// Maximum total number of streams per connection; 0 for no limit.
    pub total: u32,
    /// Extended CONNECT is advertised.
    pub extends: bool,
    /// Size of the HPACK dynamic table in bytes.
    pub table_size: usize,
}

/// Further limits of multiplexed client connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamLimits {
    /// Number of queued tasks of a worker above which the number of streams of its clients is reduced (`rq-load`).
    pub load: Option<u32>,
    /// Minimum number of streams after that reduction (`min`).
    pub least: usize,
    /// `tune.streams-elasticity`: total number of streams of all connections beyond the first of each; `None` for no
    /// limit.
    pub shared: Option<u32>,
    /// `tune.h2.log-errors`.
    pub logged_errors: Http2ErrorsSpec,
}

/// Sizes of a socket's kernel buffers in bytes; `None` for the system's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketBuffers {
    /// `tune.rcvbuf.*`.
    pub receive: Option<u32>,
    /// `tune.sndbuf.*`.
    pub send: Option<u32>,
    /// `tune.notsent-lowat.*`: number of unsent bytes at which a socket counts as full.
    pub unsent: Option<u32>,
}

/// Limits of compression for the whole process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GlobalCompression {
    /// `maxcomprate`: initial limit in kilobytes per second; the runtime API may change it.
    pub rate: Option<u32>,
    /// `maxcompcpuusage` in percent; 100 for no limit.
    pub usage: u32,
    /// `maxzlibmem` in bytes; 0 for no limit.
    pub memory: u64,
    /// `tune.comp.maxlevel`, 1 to 9.
    pub level: u32,
    /// Base-two logarithm of the window size in bytes, 9 to 15.
    pub window: u8,
}

impl GlobalCompression {
    /// Compiles the limits, including default values.
    pub(crate) fn of(written: &GlobalCompressionSpec) -> Self {
        Self {
            rate: written.rate,
            usage: written.usage.unwrap_or(100),
            memory: u64::from(written.memory.unwrap_or(0)) << 20,
            level: written.level.unwrap_or(1),
            // The format's minimum is 9; smaller windows cannot be decompressed.
            window: written.window.unwrap_or(15).clamp(9, 15) as u8,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Global {
    /// `maxconn` of the process; computed from the file descriptors if not specified.
    pub maxconn: u32,
    /// `maxconn` was computed, which is reported at startup.
    pub maxconn_is_automatic: bool,
    /// `maxconnrate`, `maxsessrate`, `maxsslrate`.
    pub rates: RatesSpec,
    pub compression: GlobalCompression,
    /// `maxsslconn`: maximum number of TLS connections of both sides; 0 for no limit.
    pub max_tls_connections: u32,
    /// Set if `maxconn` or `maxsslconn` exceeds the memory (`-m`): the message with which startup fails.
    pub excess: Option<Box<str>>,
    /// `maxpipes`: number of pipes for splicing; a quarter of `maxconn` by default.
    pub maxpipes: usize,
    /// The required limit of file descriptors: `ulimit-n`, or the computed number.
    pub descriptors: u64,
    /// `strict-limits`: startup fails if the limit cannot be raised.
    pub strict_limits: bool,
    /// `nbthread`; the number of usable processors by default.
    pub nbthread: u32,
    /// `tune.bufsize` in bytes.
    pub bufsize: usize,
    /// `tune.bufsize.large` in bytes.
    pub large_bufsize: Option<usize>,
    /// `tune.maxrewrite` in bytes.
    pub maxrewrite: usize,
    /// `tune.http.maxhdr`: maximum number of fields in a head.
    pub maxhdr: usize,
    /// HTTP/2 limits of clients.
    pub http2: Http2Limits,
    /// HTTP/2 limits of servers.
    pub http2_servers: Http2Limits,
    /// QUIC limits of clients.
    pub quic: QuicLimits,
    /// Further limits of client streams.
    pub streams: StreamLimits,
    /// Thresholds of protocol glitches.
    pub glitches: GlitchTuneSpec,
    /// `tune.http.logurilen` in bytes.
    pub logurilen: usize,
    pub http: GlobalHttp,
    /// Permitted algorithms for the decryption of tokens.
    pub tokens: TokenLimits,
    /// `tune.max-rules-at-once`: maximum number of content rules evaluated in a row; `u32::MAX` for no limit.
    pub max_rules_at_once: u32,
    /// `tune.eval.max-time`: maximum processor time of the evaluations of one request.
    pub evaluation_time: Duration,
    /// `tune.maxaccept`: maximum number of connections that a worker accepts in a row; `usize::MAX` for no limit.
    pub maxaccept: usize,
    /// `tune.listener.multi-queue`: the distribution of connections to workers.
    pub multi_queue: MultiQueue,
    /// `tune.maxpollevents`: maximum number of kernel events per event-loop iteration.
    pub maxpollevents: usize,
    /// `tune.idle-pool.shared`: whether workers share idle connections.
    pub idle_pool_shared: bool,
    /// Number of used file descriptors at which no connection is added to an idle pool (`tune.pool-low-fd-ratio`).
    pub pool_low_descriptors: u64,
    /// Number of used file descriptors at which idle connections are closed when a new one is needed
    /// (`tune.pool-high-fd-ratio`).
    pub pool_high_descriptors: u64,
    /// Socket buffers of client connections.
    pub client_buffers: SocketBuffers,
    /// Socket buffers of server connections.
    pub server_buffers: SocketBuffers,
    /// `tune.rcvbuf.frontend`: kernel receive buffer of datagram and QUIC listeners in bytes.
    pub datagram_receive_buffer: Option<u32>,
    /// `tune.sndbuf.backend`: kernel send buffer of datagram sockets in bytes.
    pub datagram_send_buffer: Option<u32>,
    /// `tune.pipesize` in bytes.
    pub pipesize: Option<u32>,
    /// `nosplice`.
    pub nosplice: bool,
    /// `harden.reject-privileged-ports.tcp`: reject clients with a source port below 1024.
    pub reject_privileged_ports: bool,
    /// `tune.vars.*`.
    pub variables: expression::variable::VariableSizes,
    /// `hard-stop-after`.
    pub hard_stop_after: Option<Duration>,
    /// `spread-checks`: maximum random deviation of check intervals in percent.
    pub spread_checks: u32,
    /// `max-spread-checks`.
    pub max_spread_checks: Option<Duration>,
    /// `pp2-never-send-local`.
    pub checks_are_proxied: bool,
    /// `grace`.
    pub grace: Option<Duration>,
    /// `close-spread-time`.
    pub close_spread: CloseSpread,
    /// `log` lines of the section itself, for events of the process.
    pub logs: Vec<LogTarget>,
    /// `log-tag`; `None` for the program's name.
    pub log_tag: Option<Box<str>>,
    /// `log-send-hostname`: `Some(None)` for the host's own name.
    pub log_send_hostname: Option<Option<Box<str>>>,
    /// `node`.
    pub node: Option<Box<str>>,
    /// `anonkey`; 0 if not set.
    pub anonymous_key: u32,
    /// `profiling.tasks on`: workers measure the cost of tasks.
    pub measure_tasks: bool,
    /// `profiling.rules on`: workers measure the cost of rules.
    pub measure_rules: bool,
    /// `shm-stats-file`.
    pub shared_counters: Option<SharedCounters>,
}

/// Shared memory for counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedCounters {
    /// The name as configured.
    pub name: Box<str>,
    /// Maximum number of objects.
    pub max_objects: u32,
}
