//! The `global` section (configuration manual, section 3).

use crate::document::Word;

use super::{
    DnsFamilies, GlobalChecksSpec, GlobalCompressionSpec, GlobalHttpSpec, GlobalTlsSpec, HttpClientSpec, KeptSpec,
    LifetimeSpec, ListenerTuneSpec, LogSpec, LuaSpec, MachineSpec, OtelExporterSpec, OtelMetricsSpec, ProcessorsSpec,
    QlogSpec, QuicTuneSpec, RatesSpec, RightsSpec, RuntimeSpec, TokensSpec, UnixBindSpec,
};

/// Settings of the `global` sections. `None` always means "not written".
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GlobalSpec {
    /// `maxconn`: maximum number of connections of the process.
    pub maxconn: Option<u32>,
    /// `maxconnrate` and related limits.
    pub rates: RatesSpec,
    /// Limits of compression.
    pub compression: GlobalCompressionSpec,
    pub tls: GlobalTlsSpec,
    /// `maxpipes`.
    pub maxpipes: Option<u32>,
    /// `nbthread`.
    pub nbthread: Option<u32>,
    /// Thread groups and processors.
    pub processors: ProcessorsSpec,
    /// Interaction of the running process with the machine.
    pub machine: MachineSpec,
    /// Privileges that the process drops before it serves.
    pub rights: RightsSpec,
    /// `daemon`.
    pub daemon: bool,
    /// Encrypted tokens that may be decrypted.
    pub tokens: TokensSpec,
    /// `pidfile`.
    pub pidfile: Option<String>,
    /// Files that a process passes on to its successor.
    pub kept: KeptSpec,
    /// `quiet`.
    pub quiet: bool,
    /// `zero-warning`.
    pub zero_warning: bool,
    /// `ulimit-n`.
    pub ulimit_n: Option<u64>,
    /// `fd-hard-limit`.
    pub fd_hard_limit: Option<u64>,
    /// `strict-limits`; default on.
    pub strict_limits: Option<bool>,
    /// `hard-stop-after` in milliseconds.
    pub hard_stop_after: Option<u64>,
    /// Scheduling of health checks.
    pub checks: GlobalChecksSpec,
    /// `grace` in milliseconds.
    pub grace: Option<u64>,
    /// Master, workers and soft stop.
    pub lifetime: LifetimeSpec,
    /// `log` lines.
    pub logs: Vec<LogSpec>,
    /// `log-tag`.
    pub log_tag: Option<String>,
    /// `log-send-hostname`: `Some(None)` means the host's own name.
    pub log_send_hostname: Option<Option<String>>,
    /// `localpeer`, which also sets `HAPROXY_LOCALPEER`.
    pub localpeer: Option<String>,
    /// `description`.
    pub description: Option<String>,
    /// `node`.
    pub node: Option<String>,
    /// `cluster-secret`.
    pub cluster_secret: Option<String>,
    /// `anonkey`; 0: no key.
    pub anonymous_key: Option<u32>,
    /// `nosplice`.
    pub nosplice: bool,
    /// `dns-accept-family`.
    pub dns_families: DnsFamilies,
    /// `unix-bind`.
    pub unix_bind: UnixBindSpec,
    /// `expose-deprecated-directives`.
    pub expose_deprecated: bool,
    /// `expose-experimental-directives`.
    pub expose_experimental: bool,
    /// The runtime API.
    pub runtime: RuntimeSpec,
    /// `set-var` and `set-var-fmt`, in order.
    pub variables: Vec<SetVariableSpec>,
    /// The internal HTTP client.
    pub http_client: HttpClientSpec,
    /// Destination of telemetry.
    pub otel_exporter: Option<Box<OtelExporterSpec>>,
    /// Metrics that are exported.
    pub otel_metrics: Option<Box<OtelMetricsSpec>>,
    pub lua: LuaSpec,
    /// HTTP settings of all proxies.
    pub http: GlobalHttpSpec,
    /// The `tune.*` keywords that have an effect.
    pub tune: TuneSpec,
}

/// A variable of the process that is set at startup.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SetVariableSpec {
    /// The variable, including its scope.
    pub name: Word,
    /// The value is a format (`set-var-fmt`), not an expression.
    pub is_format: bool,
    /// The words after the name.
    pub value: Vec<Word>,
}

/// `tune.vars.*-max-size`, bytes; `None`: no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VariablesTuneSpec {
    /// All scopes.
    pub global: Option<u64>,
    /// Process scope, including all scopes in it.
    pub process: Option<u64>,
    /// Session scope, including the scopes in it.
    pub session: Option<u64>,
    /// Transaction scope, including the scopes in it.
    pub transaction: Option<u64>,
    /// Request scope and response scope.
    pub message: Option<u64>,
    /// Check scope.
    pub check: Option<u64>,
}

/// Defaults that are discarded after startup, so that objects added at run time cannot inherit from them
/// (`tune.defaults.purge`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PurgeSpec {
    /// `proxies`: `defaults` sections.
    pub sections: bool,
    /// `servers`: settings of `default-server` lines.
    pub servers: bool,
}

/// `tune.h2.*` (configuration manual, section 3.2).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Http2TuneSpec {
    /// `tune.h2.initial-window-size`, bytes.
    pub window: Option<u32>,
    /// `tune.h2.fe.initial-window-size`, bytes; defaults to that of both sides.
    pub client_window: Option<u32>,
    /// `tune.h2.be.initial-window-size`, bytes; defaults to that of both sides.
    pub server_window: Option<u32>,
    /// `tune.h2.be.max-concurrent-streams`; defaults to that of both sides.
    pub server_streams: Option<u32>,
    /// `tune.h2.fe.rxbuf`, bytes; default 100 buffers.
    pub client_buffers: Option<u32>,
    /// `tune.h2.be.rxbuf`, bytes; default 100 buffers.
    pub server_buffers: Option<u32>,
    /// `tune.h2.max-concurrent-streams`; default 100, 0 for no limit.
    pub streams: Option<u32>,
    /// `tune.h2.fe.max-concurrent-streams`; defaults to that of both sides.
    pub client_streams: Option<u32>,
    /// `tune.h2.fe.max-total-streams`; 0 for no limit.
    pub total_streams: Option<u32>,
    /// `h2-workaround-bogus-websocket-clients`.
    pub conceals_websockets: bool,
    /// `tune.h2.header-table-size`, bytes; default 4096.
    pub table_size: Option<u32>,
    /// `rq-load` of `tune.h2.fe.max-concurrent-streams`.
    pub streams_load: StreamsLoadSpec,
    /// `min` of `tune.h2.fe.max-concurrent-streams`; default 1.
    pub least_streams: Option<u32>,
    /// `tune.h2.log-errors`.
    pub logged_errors: Http2ErrorsSpec,
}

/// Number of runnable tasks of a thread above which clients are granted fewer streams (`rq-load`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamsLoadSpec {
    /// No such limit.
    #[default]
    Ignore,
    /// `tune.runqueue-depth`.
    Auto,
    /// This number.
    Tasks(u32),
}

/// HTTP/2 errors of clients that are logged (`tune.h2.log-errors`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Http2ErrorsSpec {
    /// None.
    None,
    /// Connection errors.
    Connection,
    /// Connection and stream errors.
    #[default]
    Stream,
}

/// Limits of glitches: thresholds per connection, 0 for none (`tune.*.glitches-threshold`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GlitchTuneSpec {
    /// `tune.h1.fe.glitches-threshold`.
    pub http1_clients: u32,
    /// `tune.h1.be.glitches-threshold`.
    pub http1_servers: u32,
    /// `tune.h2.fe.glitches-threshold`; a budget applies if not written.
    pub http2_clients: Option<u32>,
    /// `tune.h2.be.glitches-threshold`; without it there is a budget.
    pub http2_servers: Option<u32>,
    /// `tune.glitches.kill.cpu-usage`, percent.
    pub usage: u32,
}

/// `tune.*` (configuration manual, section 3.2). `None` means "not written"; the compiler applies the defaults.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TuneSpec {
    /// `tune.bufsize`, bytes; default 16384.
    pub bufsize: Option<u32>,
    /// `tune.bufsize.large`, bytes; no such buffers exist if not written.
    pub large_bufsize: Option<u32>,
    /// `tune.maxrewrite`, bytes; default 1024.
    pub maxrewrite: Option<u32>,
    /// `tune.http.maxhdr`: maximum number of fields of a head; default 101.
    pub http_maxhdr: Option<u32>,
    /// `tune.h2.*`.
    pub http2: Http2TuneSpec,
    /// `tune.quic.*`.
    pub quic: QuicTuneSpec,
    /// `tune.quic.qlog-dir`; no traces are written if it is not.
    pub qlog: Option<QlogSpec>,
    /// `tune.*.glitches-threshold`, `tune.glitches.kill.cpu-usage`.
    pub glitches: GlitchTuneSpec,
    /// `tune.streams-elasticity`, percent; 0: the number of streams does not depend on the number of connections.
    pub streams_elasticity: u32,
    /// `tune.stick-counters`; default 3.
    pub stick_counters: Option<u32>,
    /// `tune.http.logurilen`, bytes; default 1024.
    pub http_logurilen: Option<u32>,
    /// `tune.http.cookielen`: maximum length of a captured cookie, in bytes; default 63.
    pub http_cookielen: Option<u32>,
    /// `tune.max-rules-at-once`: number of rules of a set that are evaluated before yielding; default 50, 0: no limit.
    pub max_rules_at_once: Option<u32>,
    /// `tune.eval.max-time`, milliseconds; default 500.
    pub evaluation_time: Option<u64>,
    /// `tune.maxaccept`: maximum number of consecutive accepts; -1 means no limit.
    pub maxaccept: Option<i32>,
    /// `tune.idle-pool.shared`; default on.
    pub idle_pool_shared: Option<bool>,
    /// `tune.pool-low-fd-ratio`, percent; default 20.
    pub pool_low_fd_ratio: Option<u32>,
    /// `tune.pool-high-fd-ratio`, percent; default 25.
    pub pool_high_fd_ratio: Option<u32>,
    /// `tune.rcvbuf.client`, bytes.
    pub rcvbuf_client: Option<u32>,
    /// `tune.rcvbuf.server`, bytes.
    pub rcvbuf_server: Option<u32>,
    /// `tune.rcvbuf.frontend`, bytes.
    pub rcvbuf_frontend: Option<u32>,
    /// `tune.sndbuf.client`, bytes.
    pub sndbuf_client: Option<u32>,
    /// `tune.sndbuf.server`, bytes.
    pub sndbuf_server: Option<u32>,
    /// `tune.sndbuf.frontend`, bytes.
    pub sndbuf_frontend: Option<u32>,
    /// `tune.sndbuf.backend`, bytes.
    pub sndbuf_backend: Option<u32>,
    /// `tune.pipesize`, bytes.
    pub pipesize: Option<u32>,
    /// `tune.peers.max-updates-at-once`.
    pub peers_max_updates: Option<u32>,
    /// `tune.maxpollevents`.
    pub maxpollevents: Option<u32>,
    /// `tune.defaults.purge`.
    pub purge: PurgeSpec,
    /// `tune.listener.*`.
    pub listener: ListenerTuneSpec,
    /// `tune.vars.*`.
    pub variables: VariablesTuneSpec,
}
