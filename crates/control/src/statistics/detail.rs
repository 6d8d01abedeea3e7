//! Columns of the statistics, second part: health, times, settings, connections. In HAProxy's order, which programs
//! rely on. Must never count anything.

use super::column::{Column, ColumnObjects, column};
use super::load::{code, duration, in_progress};
use super::object::{B, F, L, S};
use crate::field::Value;

/// Columns 51 to 103.
pub(crate) const COLUMNS: &[Column] = &[
    column(
        "comp_in",
        "MCPP",
        "Total number of bytes submitted to the HTTP compressor for this object since the worker process started",
        ColumnObjects::both(F | B),
        |o| o.content(|counters| &counters.compressor_in),
    ),
    column(
        "comp_out",
        "MCPP",
        "Total number of bytes emitted by the HTTP compressor for this object since the worker process started",
        ColumnObjects::both(F | B),
        |o| o.content(|counters| &counters.compressor_out),
    ),
    column(
        "comp_byp",
        "MCPP",
        "Total number of bytes that bypassed HTTP compression for this object since the worker process started (CPU/memory/bandwidth limitation)",
        ColumnObjects::both(F | B),
        |o| o.content(|counters| &counters.compressor_bypassed),
    ),
    column(
        "comp_rsp",
        "MCPP",
        "Total number of HTTP responses that were compressed for this object since the worker process started",
        ColumnObjects::both(F | B),
        |o| o.content(|counters| &counters.compressed),
    ),
    column(
        "lastsess",
        "MAPP",
        "How long ago some traffic was seen on this object on this worker process, in seconds",
        ColumnObjects::both(S | B),
        |o| o.last_session(),
    ),
    column(
        "last_chk",
        "MOPV",
        "Short description of the latest health check report for this server (see also check_desc)",
        ColumnObjects::both(S),
        |o| o.of_check(|health| Value::text(on_one_line(&health.last().info))),
    ),
    column(
        "last_agt",
        "MOPV",
        "Short description of the latest agent check report for this server (see also agent_desc)",
        ColumnObjects::both(S),
        |o| o.of_agent(|agent| Value::text(on_one_line(&agent.last().info))),
    ),
    column(
        "qtime",
        "MaPV",
        "Time spent in the queue, in milliseconds, averaged over the 1024 last requests (backend/server)",
        ColumnObjects::both(S | B),
        |o| o.average(0),
    ),
    column(
        "ctime",
        "MaPV",
        "Time spent waiting for a connection to complete, in milliseconds, averaged over the 1024 last requests (backend/server)",
        ColumnObjects::both(S | B),
        |o| o.average(1),
    ),
    column(
        "rtime",
        "MaPV",
        "Time spent waiting for a server response, in milliseconds, averaged over the 1024 last requests (backend/server)",
        ColumnObjects::both(S | B),
        |o| o.average(2),
    ),
    column(
        "ttime",
        "MaPV",
        "Total request+response time (request+queue+connect+response+processing), in milliseconds, averaged over the 1024 last requests (backend/server)",
        ColumnObjects::both(S | B),
        |o| o.average(3),
    ),
    column(
        "agent_status",
        "MOPV",
        "Status report of the server's latest agent check, prefixed with '*' if a check is currently in progress",
        ColumnObjects::both(S),
        |o| o.of_agent(|agent| Value::text(in_progress(agent))),
    ),
    column(
        "agent_code",
        "MOPV",
        "Status code reported by the latest server agent check",
        ColumnObjects::both(S),
        |o| o.of_agent(code),
    ),
    column(
        "agent_duration",
        "MDPV",
        "Total duration of the latest server agent check, in milliseconds",
        ColumnObjects::both(S),
        |o| o.of_agent(duration),
    ),
    column(
        "check_desc",
        "MOPV",
        "Textual description of the latest health check report for this server",
        ColumnObjects::both(S),
        |o| o.of_check(|health| Value::text(health.last().status.description().to_owned())),
    ),
    column(
        "agent_desc",
        "MOPV",
        "Textual description of the latest agent check report for this server",
        ColumnObjects::both(S),
        |o| o.of_agent(|agent| Value::text(agent.last().status.description().to_owned())),
    ),
    column(
        "check_rise",
        "CGSV",
        "Number of successful health checks before declaring a server UP (server 'rise' setting)",
        ColumnObjects::both(S),
        |o| o.of_check(|health| Value::U32(health.thresholds().0)),
    ),
    column(
        "check_fall",
        "CGSV",
        "Number of failed health checks before declaring a server DOWN (server 'fall' setting)",
        ColumnObjects::both(S),
        |o| o.of_check(|health| Value::U32(health.thresholds().1)),
    ),
    column(
        "check_health",
        "CGSV",
        "Current server health check level (0..fall-1=DOWN, fall..rise-1=UP)",
        ColumnObjects::both(S),
        |o| o.of_check(|health| Value::U32(health.level())),
    ),
    column(
        "agent_rise",
        "CGSV",
        "Number of successful agent checks before declaring a server UP (server 'rise' setting)",
        ColumnObjects::both(S),
        |o| o.of_agent(|agent| Value::U32(agent.thresholds().0)),
    ),
    column(
        "agent_fall",
        "CGSV",
        "Number of failed agent checks before declaring a server DOWN (server 'fall' setting)",
        ColumnObjects::both(S),
        |o| o.of_agent(|agent| Value::U32(agent.thresholds().1)),
    ),
    column(
        "agent_health",
        "CGSV",
        "Current server agent check level (0..fall-1=DOWN, fall..rise-1=UP)",
        ColumnObjects::both(S),
        |o| o.of_agent(|agent| Value::U32(agent.level())),
    ),
    column(
        "addr",
        "CGSV",
        "Server's address:port, shown only if show-legends is set, or at levels oper/admin for the CLI",
        ColumnObjects::both(L | S),
        |o| o.address(),
    ),
    column(
        "cookie",
        "CNSV",
        "Backend's cookie name or Server's cookie value, shown only if show-legends is set, or at levels oper/admin for the CLI",
        ColumnObjects::both(S | B),
        |o| o.cookie(),
    ),
    column("mode", "CGSV", "'mode' setting (tcp/http/health/cli/spop)", ColumnObjects::both(F | L | S | B), |o| {
        Value::text(o.mode())
    }),
    column(
        "algo",
        "CGSV",
        "Backend's load balancing algorithm, shown only if show-legends is set, or at levels oper/admin for the CLI",
        ColumnObjects::both(B),
        |o| o.algorithm(),
    ),
    column(
        "conn_rate",
        "MRPP",
        "Number of new connections accepted over the last second on the frontend for this worker process",
        ColumnObjects::both(F),
        |o| o.rate(|t| &t.connection_rate),
    ),
    column(
        "conn_rate_max",
        "MMPV",
        "Highest value of connections per second observed since the worker process started",
        ColumnObjects::both(F),
        |o| o.most(|t| &t.connection_rate),
    ),
    column(
        "conn_tot",
        "MCPP",
        "Total number of new connections accepted on this frontend since the worker process started",
        ColumnObjects::both(F | L),
        |o| o.count(|t| &t.connections),
    ),
    column(
        "intercepted",
        "MCPP",
        "Total number of HTTP requests intercepted on the frontend (redirects/stats/services) since the worker process started",
        ColumnObjects::http(F),
        |o| o.count(|t| &t.intercepted),
    ),
    column(
        "dcon",
        "MCPP",
        "Total number of incoming connections blocked on a listener/frontend by a tcp-request connection rule since the worker process started",
        ColumnObjects::both(F | L),
        |o| o.count(|t| &t.denied_connections),
    ),
    column(
        "dses",
        "MCPP",
        "Total number of incoming sessions blocked on a listener/frontend by a tcp-request connection rule since the worker process started",
        ColumnObjects::both(F | L),
        |o| o.count(|t| &t.denied_sessions),
    ),
    column(
        "wrew",
        "MCPP",
        "Total number of failed HTTP header rewrites since the worker process started",
        ColumnObjects::both(F | L | S | B),
        |o| o.count(|t| &t.failed_rewrites),
    ),
    column(
        "connect",
        "MCPP",
        "Total number of outgoing connection attempts on this backend/server since the worker process started",
        ColumnObjects::both(S | B),
        |o| o.count(|t| &t.connects),
    ),
    column(
        "reuse",
        "MCPP",
        "Total number of reused connection on this backend/server since the worker process started",
        ColumnObjects::both(S | B),
        |o| o.count(|t| &t.reuses),
    ),
    column(
        "cache_lookups",
        "MCPP",
        "Total number of HTTP requests looked up in the cache on this frontend/backend since the worker process started",
        ColumnObjects::http(F | B),
        |o| o.content(|counters| &counters.cache_lookups),
    ),
    column(
        "cache_hits",
        "MCPP",
        "Total number of HTTP requests not found in the cache on this frontend/backend since the worker process started",
        ColumnObjects::http(F | B),
        |o| o.content(|counters| &counters.cache_hits),
    ),
    column(
        "srv_icur",
        "MGPV",
        "Current number of idle connections available for reuse on this server",
        ColumnObjects::both(S),
        |o| o.number(o.idle()),
    ),
    column(
        "src_ilim",
        "CLPV",
        "Limit on the number of available idle connections on this server (server 'pool_max_conn' directive)",
        ColumnObjects::both(S),
        |o| o.idle_limit(),
    ),
    column(
        "qtime_max",
        "MMPV",
        "Maximum observed time spent in the queue, in milliseconds (backend/server)",
        ColumnObjects::both(S | B),
        |o| o.peak(|t| &t.longest[0]),
    ),
    column(
        "ctime_max",
        "MMPV",
        "Maximum observed time spent waiting for a connection to complete, in milliseconds (backend/server)",
        ColumnObjects::both(S | B),
        |o| o.peak(|t| &t.longest[1]),
    ),
    column(
        "rtime_max",
        "MMPV",
        "Maximum observed time spent waiting for a server response, in milliseconds (backend/server)",
        ColumnObjects::both(S | B),
        |o| o.peak(|t| &t.longest[2]),
    ),
    column(
        "ttime_max",
        "MMPV",
        "Maximum observed total request+response time (request+queue+connect+response+processing), in milliseconds (backend/server)",
        ColumnObjects::both(S | B),
        |o| o.peak(|t| &t.longest[3]),
    ),
    column(
        "eint",
        "MCPP",
        "Total number of internal errors since process started",
        ColumnObjects::both(F | L | S | B),
        |o| o.count(|t| &t.internal_errors),
    ),
    column("idle_conn_cur", "MGPV", "Current number of unsafe idle connections", ColumnObjects::both(S), |_| {
        Value::U32(0)
    }),
    column("safe_conn_cur", "MGPV", "Current number of safe idle connections", ColumnObjects::both(S), |o| {
        o.number(o.idle())
    }),
    column("used_conn_cur", "MGPV", "Current number of connections in use", ColumnObjects::both(S), |o| {
        o.number(o.current())
    }),
    column("need_conn_est", "MGPV", "Estimated needed number of connections", ColumnObjects::both(S), |o| {
        o.number(o.current())
    }),
    column(
        "uweight",
        "MaPV",
        "Server's user weight, or sum of active servers' user weights for a backend",
        ColumnObjects::both(S | B),
        |o| o.number(o.weight(|one| one.weight)),
    ),
    column(
        "agg_server_status",
        "MGPV",
        "Backend's aggregated gauge of servers' status",
        ColumnObjects::both(B),
        |_| Value::U32(0),
    ),
    column(
        "agg_server_check_status",
        "MGPV",
        "[DEPRECATED] Backend's aggregated gauge of servers' status",
        ColumnObjects::both(B),
        |_| Value::U32(0),
    ),
    column(
        "agg_check_status",
        "MGPV",
        "Backend's aggregated gauge of servers' state check status",
        ColumnObjects::both(B),
        |_| Value::U32(0),
    ),
    column("srid", "MCPV", "Server id revision, to prevent server id reuse mixups", ColumnObjects::both(S), |_| {
        Value::U32(0)
    }),
];

/// Replaces line ends in a text, so that it fits in a column.
fn on_one_line(text: &str) -> String {
    text.replace('\r', "").replace('\n', " ")
}
