//! Columns of the statistics, first part: load, responses, errors. In HAProxy's order, which programs rely on. Must
//! never count anything.

use live::health::{CheckStatus, Health};

use super::column::{Column, ColumnObjects, column};
use super::object::{B, F, L, S};
use crate::field::Value;

/// Columns 0 to 50.
pub(crate) const COLUMNS: &[Column] = &[
    column("pxname", "KNSV", "Proxy name", ColumnObjects::both(F | L | S | B), |o| Value::text(&*o.proxy.name)),
    column("svname", "KNSV", "Server name", ColumnObjects::both(F | L | S | B), |o| Value::text(o.name())),
    column("qcur", "MGPV", "Number of current queued connections", ColumnObjects::both(S | B), |o| {
        o.number(o.queued())
    }),
    column(
        "qmax",
        "MMPV",
        "Highest value of queued connections encountered since process started",
        ColumnObjects::both(S | B),
        |o| o.peak(|t| &t.most_queued),
    ),
    column(
        "scur",
        "MGPV",
        "Number of current sessions on the frontend, backend or server",
        ColumnObjects::both(F | L | S | B),
        |o| o.number(o.current()),
    ),
    column(
        "smax",
        "MMPV",
        "Highest value of current sessions encountered since process started",
        ColumnObjects::both(F | L | S | B),
        |o| o.peak(|t| &t.most_sessions),
    ),
    column(
        "slim",
        "CLPV",
        "Frontend/listener/server's maxconn, backend's fullconn",
        ColumnObjects::both(F | L | S | B),
        |o| o.limit(),
    ),
    column("stot", "MCPP", "Total number of sessions since process started", ColumnObjects::both(F | L | S | B), |o| {
        o.count(|t| &t.sessions)
    }),
    column(
        "bin",
        "MCPP",
        "Total number of request bytes since process started",
        ColumnObjects::both(F | L | S | B),
        |o| o.count(|t| &t.bytes_in),
    ),
    column(
        "bout",
        "MCPP",
        "Total number of response bytes since process started",
        ColumnObjects::both(F | L | S | B),
        |o| o.count(|t| &t.received),
    ),
    column(
        "dreq",
        "MCPP",
        "Total number of denied requests since process started",
        ColumnObjects::both(F | L | B),
        |o| o.count(|t| &t.denied_requests),
    ),
    column(
        "dresp",
        "MCPP",
        "Total number of denied responses since process started",
        ColumnObjects::both(F | L | S | B),
        |o| o.count(|t| &t.denied_responses),
    ),
    column("ereq", "MCPP", "Total number of invalid requests since process started", ColumnObjects::both(F | L), |o| {
        o.count(|t| &t.request_errors)
    }),
    column(
        "econ",
        "MCPP",
        "Total number of failed connections to server since the worker process started",
        ColumnObjects::both(S | B),
        |o| o.count(|t| &t.connect_errors),
    ),
    column(
        "eresp",
        "MCPP",
        "Total number of invalid responses since the worker process started",
        ColumnObjects::both(S | B),
        |o| o.count(|t| &t.response_errors),
    ),
    column(
        "wretr",
        "MCPP",
        "Total number of server connection retries since the worker process started",
        ColumnObjects::both(S | B),
        |o| o.count(|t| &t.retries),
    ),
    column(
        "wredis",
        "MCPP",
        "Total number of server redispatches due to connection failures since the worker process started",
        ColumnObjects::both(S | B),
        |o| o.count(|t| &t.redispatches),
    ),
    column(
        "status",
        "SGPV",
        "Frontend/listen status: OPEN/WAITING/FULL/STOP; backend: UP/DOWN; server: last check status",
        ColumnObjects::both(F | L | S | B),
        |o| Value::text(o.status()),
    ),
    column(
        "weight",
        "MaPV",
        "Server's effective weight, or sum of active servers' effective weights for a backend",
        ColumnObjects::both(S | B),
        |o| o.number(o.weight(|one| one.effective_weight)),
    ),
    column(
        "act",
        "SGPV",
        "Total number of active UP servers with a non-zero weight",
        ColumnObjects::both(S | B),
        |o| o.number(o.usable(false)),
    ),
    column(
        "bck",
        "SGPV",
        "Total number of backup UP servers with a non-zero weight",
        ColumnObjects::both(S | B),
        |o| o.number(o.usable(true)),
    ),
    column(
        "chkfail",
        "MCPP",
        "Total number of failed individual health checks per server/backend, since the worker process started",
        ColumnObjects::both(S),
        |o| o.of_health(|health| Value::U64(health.failed())),
    ),
    column(
        "chkdown",
        "MCPP",
        "Total number of failed checks causing UP to DOWN server transitions, per server/backend, since the worker process started",
        ColumnObjects::both(S | B),
        |o| o.downs(),
    ),
    column(
        "lastchg",
        "MAPP",
        "How long ago the last server state changed, in seconds",
        ColumnObjects::both(S | B),
        |o| o.number(o.since_change()),
    ),
    column(
        "downtime",
        "MCPV",
        "Total time spent in DOWN state, for server or backend",
        ColumnObjects::both(S | B),
        |o| o.downtime(),
    ),
    column(
        "qlimit",
        "CGSV",
        "Limit on the number of connections in queue, for servers only (maxqueue argument)",
        ColumnObjects::both(S),
        |o| o.queue_limit(),
    ),
    column("pid", "KGPV", "Relative worker process number (1)", ColumnObjects::both(F | L | S | B), |o| o.number(1)),
    column(
        "iid",
        "KGSV",
        "Frontend or Backend numeric identifier ('id' setting)",
        ColumnObjects::both(F | L | S | B),
        |o| o.number(o.proxy.id),
    ),
    column("sid", "KGSV", "Server numeric identifier ('id' setting)", ColumnObjects::both(F | L | S | B), |o| {
        o.number(o.id())
    }),
    column(
        "throttle",
        "MaPV",
        "Throttling ratio applied to a server's maxconn and weight during the slowstart period (0 to 100%)",
        ColumnObjects::both(S),
        |o| o.throttle(),
    ),
    column(
        "lbtot",
        "MCPP",
        "Total number of requests routed by load balancing since the worker process started (ignores queue pop and stickiness)",
        ColumnObjects::both(S | B),
        |o| o.count(|t| &t.balanced),
    ),
    column(
        "tracked",
        "CNSV",
        "Name of the other server this server tracks for its state",
        ColumnObjects::both(S),
        |o| o.tracked(),
    ),
    column(
        "type",
        "CGSV",
        "Type of the object (Listener, Frontend, Backend, Server)",
        ColumnObjects::both(F | L | S | B),
        |o| o.number(o.kind.number()),
    ),
    column(
        "rate",
        "MRPP",
        "Total number of sessions processed by this object over the last second (sessions for listeners/frontends, requests for backends/servers)",
        ColumnObjects::both(F | S | B),
        |o| o.rate(|t| &t.session_rate),
    ),
    column(
        "rate_lim",
        "CLPV",
        "Limit on the number of sessions accepted in a second (frontend only, 'rate-limit sessions' setting)",
        ColumnObjects::both(F),
        |o| o.rate_limit(),
    ),
    column(
        "rate_max",
        "MMPV",
        "Highest value of sessions per second observed since the worker process started",
        ColumnObjects::both(F | S | B),
        |o| o.most(|t| &t.session_rate),
    ),
    column(
        "check_status",
        "MOPV",
        "Status report of the server's latest health check, prefixed with '*' if a check is currently in progress",
        ColumnObjects::both(S),
        |o| o.of_check(|health| Value::text(in_progress(health))),
    ),
    column(
        "check_code",
        "MOPV",
        "HTTP/SMTP/LDAP status code reported by the latest server health check",
        ColumnObjects::both(S),
        |o| o.of_check(code),
    ),
    column(
        "check_duration",
        "MDPV",
        "Total duration of the latest server health check, in milliseconds",
        ColumnObjects::both(S),
        |o| o.of_check(duration),
    ),
    column(
        "hrsp_1xx",
        "MCPP",
        "Total number of HTTP responses with status 100-199 returned by this object since the worker process started",
        ColumnObjects::http(F | S | B),
        |o| o.count(|t| &t.answers[1]),
    ),
    column(
        "hrsp_2xx",
        "MCPP",
        "Total number of HTTP responses with status 200-299 returned by this object since the worker process started",
        ColumnObjects::http(F | S | B),
        |o| o.count(|t| &t.answers[2]),
    ),
    column(
        "hrsp_3xx",
        "MCPP",
        "Total number of HTTP responses with status 300-399 returned by this object since the worker process started",
        ColumnObjects::http(F | S | B),
        |o| o.count(|t| &t.answers[3]),
    ),
    column(
        "hrsp_4xx",
        "MCPP",
        "Total number of HTTP responses with status 400-499 returned by this object since the worker process started",
        ColumnObjects::http(F | S | B),
        |o| o.count(|t| &t.answers[4]),
    ),
    column(
        "hrsp_5xx",
        "MCPP",
        "Total number of HTTP responses with status 500-599 returned by this object since the worker process started",
        ColumnObjects::http(F | S | B),
        |o| o.count(|t| &t.answers[5]),
    ),
    column(
        "hrsp_other",
        "MCPP",
        "Total number of HTTP responses with status <100, >599 returned by this object since the worker process started (error -1 included)",
        ColumnObjects::http(F | S | B),
        |o| o.count(|t| &t.answers[0]),
    ),
    column(
        "hanafail",
        "MCPP",
        "Total number of failed checks caused by an 'on-error' directive after an 'observe' condition matched",
        ColumnObjects::both(S),
        |o| o.analyzed(),
    ),
    column(
        "req_rate",
        "MRPP",
        "Number of HTTP requests processed over the last second on this object",
        ColumnObjects::both(F),
        |o| o.rate(|t| &t.request_rate),
    ),
    column(
        "req_rate_max",
        "MMPV",
        "Highest value of http requests observed since the worker process started",
        ColumnObjects::both(F),
        |o| o.most(|t| &t.request_rate),
    ),
    column(
        "req_tot",
        "MCPP",
        "Total number of HTTP requests processed by this object since the worker process started",
        ColumnObjects { http: F | S | B, tcp: F },
        |o| o.requests(),
    ),
    column(
        "cli_abrt",
        "MCPP",
        "Total number of requests or connections aborted by the client since the worker process started",
        ColumnObjects::both(S | B),
        |o| o.count(|t| &t.client_aborts),
    ),
    column(
        "srv_abrt",
        "MCPP",
        "Total number of requests or connections aborted by the server since the worker process started",
        ColumnObjects::both(S | B),
        |o| o.count(|t| &t.server_aborts),
    ),
];

/// Returns the name of the last status, with `* ` while a check is running.
pub(crate) fn in_progress(health: &Health) -> String {
    format!("{}{}", if health.is_running() { "* " } else { "" }, health.last().status.name())
}

/// Returns the code of the last check.
pub(crate) fn code(health: &Health) -> Value {
    let code = health.last().code.filter(|_| health.last().status.is_application());
    code.map_or(Value::None, |code| Value::U32(u32::try_from(code).unwrap_or(0)))
}

/// Returns the duration of the last check in milliseconds; nothing before the first.
pub(crate) fn duration(health: &Health) -> Value {
    match health.last().status {
        CheckStatus::Unknown | CheckStatus::Initializing => Value::None,
        _ => Value::U64(u64::try_from(health.last().took.as_millis()).unwrap_or(u64::MAX)),
    }
}
