//! The `global` section (configuration manual, section 3).

use crate::document::Word;

use super::{
    DnsFamilies, GlobalChecksSpec, GlobalCompressionSpec, GlobalHttpSpec, GlobalTlsSpec, HttpClientSpec, KeptSpec,
    LifetimeSpec, ListenerTuneSpec, LogSpec, LuaSpec, MachineSpec, OtelExporterSpec, OtelMetricsSpec, ProcessorsSpec,
    RatesSpec, RightsSpec, RuntimeSpec, TokensSpec, UnixBindSpec,
};

/// What the `global` sections say. `None` everywhere means "not written".
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GlobalSpec {
    /// `maxconn`: connections of the process.
    pub maxconn: Option<u32>,
    /// `maxconnrate` and its kin.
    pub rates: RatesSpec,
    /// What bounds compression.
    pub compression: GlobalCompressionSpec,
    /// TLS.
    pub tls: GlobalTlsSpec,
    /// `maxpipes`.
    pub maxpipes: Option<u32>,
    /// `nbthread`.
    pub nbthread: Option<u32>,
    /// Thread groups and processors.
    pub processors: ProcessorsSpec,
    /// How the process deals with the machine while it runs.
    pub machine: MachineSpec,
    /// What the process gives up before it serves.
    pub rights: RightsSpec,
    /// `daemon`.
    pub daemon: bool,
    /// Which encrypted tokens are decrypted.
    pub tokens: TokensSpec,
    /// `pidfile`.
    pub pidfile: Option<String>,
    /// Files that outlive the process.
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
    /// When the checks of all servers come.
    pub checks: GlobalChecksSpec,
    /// `grace` in milliseconds.
    pub grace: Option<u64>,
    /// The master, its workers, the manner of a soft stop.
    pub lifetime: LifetimeSpec,
    /// `log` lines.
    pub logs: Vec<LogSpec>,
    /// `log-tag`.
    pub log_tag: Option<String>,
    /// `log-send-hostname`: `Some(None)` means the host's own name.
    pub log_send_hostname: Option<Option<String>>,
    /// `localpeer`, which also sets `HAPROXY_LOCALPEER`.
    pub localpeer: Option<String>,
    /// `description`, `node`.
    pub description: Option<String>,
    /// `node`.
    pub node: Option<String>,
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
    /// Where telemetry goes.
    pub otel_exporter: Option<Box<OtelExporterSpec>>,
    /// Which metrics are sent there.
    pub otel_metrics: Option<Box<OtelMetricsSpec>>,
    /// Lua.
    pub lua: LuaSpec,
    /// What holds for HTTP everywhere.
    pub http: GlobalHttpSpec,
    /// The `tune.*` keywords that have an effect.
    pub tune: TuneSpec,
}

/// A variable of the process that has a value from the start.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SetVariableSpec {
    /// The variable, scope included.
    pub name: Word,
    /// It is set to what a format gives, not an expression.
    pub is_format: bool,
    /// What stands behind the name.
    pub value: Vec<Word>,
}

/// `tune.vars.*-max-size`, bytes; `None`: no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VariablesTuneSpec {
    /// Of all scopes.
    pub global: Option<u64>,
    /// Of the process and everything in it.
    pub process: Option<u64>,
    /// Of a session and what is in it.
    pub session: Option<u64>,
    /// Of a transaction and what is in it.
    pub transaction: Option<u64>,
    /// Of a request, and of a response.
    pub message: Option<u64>,
    /// Of a health check.
    pub check: Option<u64>,
}

/// What nothing that is added while the process runs can start from (`tune.defaults.purge`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PurgeSpec {
    /// `proxies`: `defaults` sections.
    pub sections: bool,
    /// `servers`: what `default-server` lines say.
    pub servers: bool,
}

/// `tune.h2.*` (configuration manual, section 3.2).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Http2TuneSpec {
    /// `tune.h2.initial-window-size`, bytes.
    pub window: Option<u32>,
    /// `tune.h2.fe.initial-window-size`, bytes; default that of both sides.
    pub client_window: Option<u32>,
    /// `tune.h2.be.initial-window-size`, bytes; default that of both sides.
    pub server_window: Option<u32>,
    /// `tune.h2.be.max-concurrent-streams`; default that of both sides.
    pub server_streams: Option<u32>,
    /// `tune.h2.fe.rxbuf`, bytes; default 100 buffers.
    pub client_buffers: Option<u32>,
    /// `tune.h2.be.rxbuf`, bytes; default 100 buffers.
    pub server_buffers: Option<u32>,
    /// `tune.h2.max-concurrent-streams`; default 100, 0 for no limit.
    pub streams: Option<u32>,
    /// `tune.h2.fe.max-concurrent-streams`; default that of both sides.
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

/// Tasks that wait on a thread from which on clients are granted fewer streams (`rq-load`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamsLoadSpec {
    /// They do not count.
    #[default]
    Ignore,
    /// `tune.runqueue-depth`.
    Auto,
    /// So many.
    Tasks(u32),
}

/// Errors of clients of HTTP/2 that are logged (`tune.h2.log-errors`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Http2ErrorsSpec {
    /// None.
    None,
    /// Those that end the connection.
    Connection,
    /// Those that end a stream as well.
    #[default]
    Stream,
}

/// What follows from glitches: thresholds of connections, 0 for none (`tune.*.glitches-threshold`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GlitchTuneSpec {
    /// `tune.h1.fe.glitches-threshold`.
    pub http1_clients: u32,
    /// `tune.h1.be.glitches-threshold`.
    pub http1_servers: u32,
    /// `tune.h2.fe.glitches-threshold`; without it there is a budget.
    pub http2_clients: Option<u32>,
    /// `tune.h2.be.glitches-threshold`; without it there is a budget.
    pub http2_servers: Option<u32>,
    /// `tune.glitches.kill.cpu-usage`, percent.
    pub usage: u32,
}

/// `tune.*` (configuration manual, section 3.2). `None` means "not written"; defaults are the compiler's.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TuneSpec {
    /// `tune.bufsize`, bytes; default 16384.
    pub bufsize: Option<u32>,
    /// `tune.bufsize.large`, bytes; without it there are no such buffers.
    pub large_bufsize: Option<u32>,
    /// `tune.maxrewrite`, bytes; default 1024.
    pub maxrewrite: Option<u32>,
    /// `tune.http.maxhdr`, fields of a head; default 101.
    pub http_maxhdr: Option<u32>,
    /// `tune.h2.*`.
    pub http2: Http2TuneSpec,
    /// `tune.*.glitches-threshold`, `tune.glitches.kill.cpu-usage`.
    pub glitches: GlitchTuneSpec,
    /// `tune.streams-elasticity`, percent; 0: streams are not bound to the number of connections.
    pub streams_elasticity: u32,
    /// `tune.stick-counters`; default 3.
    pub stick_counters: Option<u32>,
    /// `tune.http.logurilen`, bytes; default 1024.
    pub http_logurilen: Option<u32>,
    /// `tune.http.cookielen`, bytes of a captured cookie; default 63.
    pub http_cookielen: Option<u32>,
    /// `tune.max-rules-at-once`: rules of a set that are evaluated before others get their turn; default 50, 0: no limit.
    pub max_rules_at_once: Option<u32>,
    /// `tune.eval.max-time`, milliseconds; default 500.
    pub evaluation_time: Option<u64>,
    /// `tune.maxaccept`: connections accepted in a row; -1 means no limit.
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
