//! A `frontend`, `backend` or `listen` (configuration manual, section 4), with its `defaults` merged in.

use super::{
    BalanceSpec, BindSpec, CapturesSpec, CheckSpec, CompressionSpec, ConnectingDefaultsSpec, EmailAlertSpec,
    ErrorAnswerSpec, ErrorFileSpec, FiltersSpec, HashSpec, HttpSpec, LogFormatSpec, LogLinesSpec, LogSpec,
    OtelTraceSpec, PersistenceSpec, ProxyLimitsSpec, ReceptionSpec, RulesSpec, ServerSpec, Shared, StateFileSpec,
    StatsPageSpec, TableSpec, UdpSpec, UsedCertificateSpec,
};
use crate::span::{Span, Spanned};
use std::net::IpAddr;

/// Kind of the section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyKind {
    Frontend,
    Backend,
    Listen,
}

/// `mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    #[default]
    Tcp,
    Http,
    /// A backend of log servers.
    Log,
    /// A backend of SPOE agents.
    Spop,
    /// Datagrams (`udp-lb`).
    Udp,
}

/// `http-reuse`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HttpReuse {
    Never,
    #[default]
    Safe,
    Aggressive,
    Always,
}

/// Treatment of connections after a response (section 4, "option http-keep-alive" and related options). The effective
/// mode of a request combines the frontend's and the backend's as in the manual's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum CloseMode {
    /// `option http-keep-alive`.
    #[default]
    KeepAlive,
    /// `option http-server-close`.
    ServerClose,
    /// `option httpclose`.
    Close,
}

/// `timeout …`, milliseconds; `None` means not set (no limit).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimeoutsSpec {
    /// `timeout client`.
    pub client: Option<u64>,
    /// `timeout client-fin`.
    pub client_fin: Option<u64>,
    /// `timeout client-hs`.
    pub client_hs: Option<u64>,
    /// `timeout connect`.
    pub connect: Option<u64>,
    /// `timeout http-request`.
    pub http_request: Option<u64>,
    /// `timeout http-keep-alive`.
    pub http_keep_alive: Option<u64>,
    /// `timeout queue`.
    pub queue: Option<u64>,
    /// `timeout server`.
    pub server: Option<u64>,
    /// `timeout server-fin`.
    pub server_fin: Option<u64>,
    /// `timeout stream`.
    pub stream: Option<u64>,
    /// `timeout tarpit`.
    pub tarpit: Option<u64>,
    /// `timeout tunnel`.
    pub tunnel: Option<u64>,
    /// `timeout check`.
    pub check: Option<u64>,
}

/// `option forwardfor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardForSpec {
    /// `except`: network and prefix length.
    pub except: Option<(IpAddr, u8)>,
    /// `header`: the field's name; default `x-forwarded-for`.
    pub header: Option<String>,
    /// `if-none`.
    pub if_none: bool,
}

/// `option splice-auto/-request/-response`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpliceSpec {
    pub auto: bool,
    pub request: bool,
    pub response: bool,
}

/// Boolean options. `None`: not written, the default of the manual applies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OptionsSpec {
    /// `option abortonclose`; the default depends on the mode (see the manual).
    pub abortonclose: Option<bool>,
    /// `option dontlognull`.
    pub dontlognull: bool,
    /// `option redispatch`: interval of retries; `None`: off, 1: every retry, -1: the last one.
    pub redispatch: Option<i32>,
    /// `option splice-*`.
    pub splice: SpliceSpec,
    /// `option clitcpka`.
    pub clitcpka: bool,
    /// `option srvtcpka`.
    pub srvtcpka: bool,
    /// `option nolinger`.
    pub nolinger: bool,
    /// `option idle-close-on-response`.
    pub idle_close_on_response: bool,
    /// `option independent-streams`.
    pub independent_streams: bool,
    /// `option persist`.
    pub persist: bool,
}

/// One proxy.
#[derive(Debug, Clone, PartialEq)]
pub struct ProxySpec {
    /// First line of the section.
    pub span: Span,
    /// Kind of the section.
    pub kind: ProxyKind,
    pub name: Spanned<String>,
    /// `id`, or its position counted from 2, as in HAProxy.
    pub id: u32,
    /// `id` was written.
    pub id_is_written: bool,
    /// `mode`.
    pub mode: Mode,
    /// Accepts connections in TCP mode, some of which are upgraded to HTTP: by a rule, or by a backend in HTTP mode.
    pub upgrades: bool,
    /// `disabled`.
    pub disabled: bool,
    /// `description`.
    pub description: Option<String>,
    /// `bind` lines; empty for a backend.
    pub binds: Vec<BindSpec>,
    /// `ssl-f-use` lines.
    pub used_certificates: Vec<UsedCertificateSpec>,
    /// `server` lines; empty for a frontend.
    pub servers: Vec<ServerSpec>,
    /// `maxconn` of the frontend side.
    pub maxconn: Option<u32>,
    /// `backlog`.
    pub backlog: Option<u32>,
    /// `fullconn`.
    pub fullconn: Option<u32>,
    /// Queues, rates and retries.
    pub limits: Shared<ProxyLimitsSpec>,
    /// `balance`.
    pub balance: BalanceSpec,
    /// `hash-type` and its kin.
    pub hash: Shared<HashSpec>,
    /// `option allbackups`.
    pub allbackups: bool,
    /// `be-unpublished`: rules that select this backend are skipped.
    pub unpublished: bool,
    /// Initial values of servers added at run time: the `default-server` without a name, whose name is empty here too,
    /// if there is one, and the named ones. Their addresses are not used.
    pub default_servers: Vec<ServerSpec>,
    /// `default-server for-added`, Weir's own: servers added at run time begin with those without a name.
    pub added_defaults: Option<Span>,
    /// Servers added by the runtime API.
    pub added: Vec<ServerSpec>,
    /// `guid`.
    pub guid: Option<Spanned<String>>,
    /// `default_backend`.
    pub default_backend: Option<Spanned<String>>,
    /// ACLs, rules, `use_backend`.
    pub rules: Shared<RulesSpec>,
    /// `filter` and `filter-sequence`.
    pub filters: Shared<FiltersSpec>,
    /// `use-fcgi-app`, or the `fcgi-app` of a `filter` line.
    pub fcgi_app: Option<Spanned<String>>,
    /// `compression …`.
    pub compression: Shared<CompressionSpec>,
    /// `capture …`: parts of requests and responses that are logged.
    pub captures: Shared<CapturesSpec>,
    /// `timeout …`.
    pub timeouts: Shared<TimeoutsSpec>,
    /// `retries`; default 3.
    pub retries: u32,
    /// `http-reuse`.
    pub http_reuse: HttpReuse,
    /// `option http-keep-alive` and related options.
    pub close_mode: CloseMode,
    /// `option forwardfor`.
    pub forwardfor: Option<ForwardForSpec>,
    /// The other options about HTTP.
    pub http: Shared<HttpSpec>,
    /// `monitor-uri`.
    pub monitor_uri: Option<String>,
    /// The statistics page.
    pub stats: Option<Box<StatsPageSpec>>,
    /// `errorfile`, one per status: the last one written.
    pub error_files: Vec<ErrorFileSpec>,
    /// `http-error`, in file order.
    pub error_answers: Vec<ErrorAnswerSpec>,
    /// Boolean options.
    pub options: OptionsSpec,
    /// Settings of client connections: `clitcpka-*`, `option tcp-smart-accept`, `option socket-stats`.
    pub reception: Shared<ReceptionSpec>,
    /// `log` lines; a `log global` brings the global ones in.
    pub logs: Vec<LogSpec>,
    /// `option httplog` and related options.
    pub log_format: LogFormatSpec,
    /// Other log settings: `log-steps`, `error-log-format`, `unique-id-format`, and others.
    pub log_lines: Shared<LogLinesSpec>,
    /// `log-tag`.
    pub log_tag: Option<String>,
    /// `otel-trace`.
    pub otel: Option<Box<OtelTraceSpec>>,
    /// How connections to its servers are made.
    pub connecting: Shared<ConnectingDefaultsSpec>,
    /// Health check method of its servers.
    pub check: Shared<CheckSpec>,
    /// `email-alert`.
    pub email_alert: Shared<EmailAlertSpec>,
    /// `stick-table`.
    pub stick_table: Option<TableSpec>,
    /// Persistence settings other than rules: `cookie`, `dynamic-cookie-key`, `persist rdp-cookie`.
    pub persistence: Shared<PersistenceSpec>,
    /// Settings of a `udp-lb` section; `None`: it is another one.
    pub udp: Option<Box<UdpSpec>>,
    /// Where its servers' saved states are.
    pub state: Shared<StateFileSpec>,
}
