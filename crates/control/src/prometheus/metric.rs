//! The tables of the metrics, each with its value of `show info` or its column of `show stat`, in HAProxy's order. Must
//! never read a value.

use crate::statistics::{B, F, L, S};

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Counter,
    Gauge,
}

impl Type {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        }
    }
}

/// How values become samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A number; `NaN` if missing.
    Number,
    /// A number, only for proxies in HTTP mode.
    Http,
    /// A number, 0 if an enabled check has none; no sample without a check.
    Code(Check),
    /// Milliseconds, converted to seconds.
    Seconds,
    /// Responses of a status class, in the label `code` of a common metric.
    Class(&'static str),
    /// One sample for each state of the object.
    Status,
    /// One sample for each result of a check.
    Result(Check),
    /// Duration of a check in seconds.
    Duration(Check),
    /// Number of a backend's servers in each state.
    Servers,
    /// Number of a backend's servers by check result.
    Results,
}

/// Selects a check of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    Health,
    Agent,
}

/// A metric of proxies, listeners or servers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Metric {
    /// The column of the statistics.
    pub(super) column: &'static str,
    /// The name after `haproxy_<scope>_`.
    pub(super) name: &'static str,
    pub(super) kind: Type,
    pub(super) shape: Shape,
    /// The kinds of objects that have it, among those that have the column.
    pub(super) kinds: u8,
    /// Description, if the column's does not fit.
    pub(super) help: Option<&'static str>,
}

const ANY: u8 = F | L | S | B;

const fn row(column: &'static str, name: &'static str, kind: Type, shape: Shape) -> Metric {
    Metric { column, name, kind, shape, kinds: ANY, help: None }
}

const fn counter(column: &'static str, name: &'static str) -> Metric {
    row(column, name, Type::Counter, Shape::Number)
}

const fn gauge(column: &'static str, name: &'static str) -> Metric {
    row(column, name, Type::Gauge, Shape::Number)
}

/// A counter for proxies in HTTP mode.
const fn http(column: &'static str, name: &'static str) -> Metric {
    row(column, name, Type::Counter, Shape::Http)
}

const fn class(column: &'static str, code: &'static str) -> Metric {
    row(column, "http_responses_total", Type::Counter, Shape::Class(code))
}

impl Metric {
    const fn of(self, kinds: u8) -> Self {
        Self { kinds, ..self }
    }

    const fn described(self, help: &'static str) -> Self {
        Self { help: Some(help), ..self }
    }
}

/// A column in milliseconds, converted to seconds.
const fn seconds(column: &'static str, name: &'static str, help: &'static str) -> Metric {
    row(column, name, Type::Gauge, Shape::Seconds).described(help)
}

/// Samples by state.
const fn states(column: &'static str, name: &'static str, shape: Shape) -> Metric {
    row(column, name, Type::Gauge, shape)
}

/// All metrics in the order of the columns, which is the order of the output in every scope.
#[rustfmt::skip]
pub(super) const METRICS: &[Metric] = &[
    gauge("qcur", "current_queue"),
    gauge("qmax", "max_queue"),
    gauge("scur", "current_sessions"),
    gauge("smax", "max_sessions"),
    gauge("slim", "limit_sessions"),
    counter("stot", "sessions_total"),
    counter("bin", "bytes_in_total"),
    counter("bout", "bytes_out_total"),
    counter("dreq", "requests_denied_total"),
    counter("dresp", "responses_denied_total"),
    counter("ereq", "request_errors_total"),
    counter("econ", "connection_errors_total"),
    counter("eresp", "response_errors_total"),
    counter("wretr", "retry_warnings_total"),
    counter("wredis", "redispatch_warnings_total"),
    states("status", "status", Shape::Status).described("Current status of the service, per state label value."),
    gauge("weight", "weight"),
    gauge("act", "active").of(S),
    gauge("act", "active_servers").of(B),
    gauge("bck", "backup").of(S),
    gauge("bck", "backup_servers").of(B),
    counter("chkfail", "check_failures_total"),
    counter("chkdown", "check_up_down_total"),
    gauge("lastchg", "check_last_change_seconds"),
    counter("downtime", "downtime_seconds_total"),
    gauge("qlimit", "queue_limit"),
    gauge("throttle", "current_throttle"),
    counter("lbtot", "loadbalanced_total"),
    gauge("rate", "current_session_rate"),
    gauge("rate_lim", "limit_session_rate"),
    gauge("rate_max", "max_session_rate"),
    states("check_status", "check_status", Shape::Result(Check::Health)).described("Status of last health check, per state label value."),
    states("check_code", "check_code", Shape::Code(Check::Health)).described("layer5-7 code, if available of the last health check."),
    states("check_duration", "check_duration_seconds", Shape::Duration(Check::Health)).described("Total duration of the latest server health check, in seconds."),
    class("hrsp_1xx", "1xx"),
    class("hrsp_2xx", "2xx"),
    class("hrsp_3xx", "3xx"),
    class("hrsp_4xx", "4xx"),
    class("hrsp_5xx", "5xx"),
    class("hrsp_other", "other"),
    row("req_rate_max", "http_requests_rate_max", Type::Gauge, Shape::Http),
    http("req_tot", "http_requests_total"),
    counter("cli_abrt", "client_aborts_total"),
    counter("srv_abrt", "server_aborts_total"),
    http("comp_in", "http_comp_bytes_in_total"),
    http("comp_out", "http_comp_bytes_out_total"),
    http("comp_byp", "http_comp_bytes_bypassed_total"),
    http("comp_rsp", "http_comp_responses_total"),
    gauge("lastsess", "last_session_seconds"),
    seconds("qtime", "queue_time_average_seconds", "Avg. queue time for last 1024 successful connections."),
    seconds("ctime", "connect_time_average_seconds", "Avg. connect time for last 1024 successful connections."),
    seconds("rtime", "response_time_average_seconds", "Avg. response time for last 1024 successful connections."),
    seconds("ttime", "total_time_average_seconds", "Avg. total time for last 1024 successful connections."),
    states("agent_status", "agent_status", Shape::Result(Check::Agent)).described("Status of last agent check, per state label value."),
    states("agent_code", "agent_code", Shape::Code(Check::Agent)),
    states("agent_duration", "agent_duration_seconds", Shape::Duration(Check::Agent)).described("Total duration of the latest server agent check, in seconds."),
    gauge("conn_rate_max", "connections_rate_max"),
    counter("conn_tot", "connections_total"),
    http("intercepted", "intercepted_requests_total"),
    counter("dcon", "denied_connections_total"),
    counter("dses", "denied_sessions_total"),
    counter("wrew", "failed_header_rewriting_total"),
    counter("connect", "connection_attempts_total"),
    counter("reuse", "connection_reuses_total"),
    http("cache_lookups", "http_cache_lookups_total"),
    http("cache_hits", "http_cache_hits_total"),
    gauge("srv_icur", "idle_connections_current"),
    gauge("src_ilim", "idle_connections_limit"),
    seconds("qtime_max", "max_queue_time_seconds", "Maximum observed time spent in the queue"),
    seconds("ctime_max", "max_connect_time_seconds", "Maximum observed time spent waiting for a connection to complete"),
    seconds("rtime_max", "max_response_time_seconds", "Maximum observed time spent waiting for a server response"),
    seconds("ttime_max", "max_total_time_seconds", "Maximum observed total request+response time (request+queue+connect+response+processing)"),
    counter("eint", "internal_errors_total"),
    gauge("idle_conn_cur", "unsafe_idle_connections_current"),
    gauge("safe_conn_cur", "safe_idle_connections_current"),
    gauge("used_conn_cur", "used_connections_current"),
    gauge("need_conn_est", "need_connections_current"),
    gauge("uweight", "uweight"),
    states("agg_server_status", "agg_server_status", Shape::Servers),
    states("agg_server_check_status", "agg_server_check_status", Shape::Servers),
    states("agg_check_status", "agg_check_status", Shape::Results),
    gauge("priv_idle_cur", "private_idle_connections_current"),
    counter("reqbin", "req_bytes_in_total"),
    counter("reqbout", "req_bytes_out_total"),
    counter("resbin", "res_bytes_in_total"),
    counter("resbout", "res_bytes_out_total"),
    http("cache_hint_hits", "http_cache_hint_hits_total"),
];

/// A metric of the process: the value of `show info`, its name after `haproxy_process_`, its type. A text value becomes
/// the label `label`.
pub(super) struct ProcessMetric {
    pub(super) value: &'static str,
    pub(super) name: &'static str,
    pub(super) kind: Type,
    pub(super) label: &'static str,
}

const fn total(value: &'static str, name: &'static str) -> ProcessMetric {
    ProcessMetric { value, name, kind: Type::Counter, label: "" }
}

const fn level(value: &'static str, name: &'static str) -> ProcessMetric {
    ProcessMetric { value, name, kind: Type::Gauge, label: "" }
}

const fn text(value: &'static str, name: &'static str, label: &'static str) -> ProcessMetric {
    ProcessMetric { value, name, kind: Type::Gauge, label }
}

/// The metrics of the process, in HAProxy's order.
#[rustfmt::skip]
pub(super) const PROCESS: &[ProcessMetric] = &[
    level("Nbthread", "nbthread"),
    level("Nbproc", "nbproc"),
    level("Process_num", "relative_process_id"),
    level("Uptime_sec", "uptime_seconds"),
    total("PoolFailed", "pool_failures_total"),
    level("Ulimit-n", "max_fds"),
    level("Maxsock", "max_sockets"),
    level("Maxconn", "max_connections"),
    level("Hard_maxconn", "hard_max_connections"),
    level("CurrConns", "current_connections"),
    total("CumConns", "connections_total"),
    total("CumReq", "requests_total"),
    level("MaxSslConns", "max_ssl_connections"),
    level("CurrSslConns", "current_ssl_connections"),
    total("CumSslConns", "ssl_connections_total"),
    level("Maxpipes", "max_pipes"),
    total("PipesUsed", "pipes_used_total"),
    total("PipesFree", "pipes_free_total"),
    level("ConnRate", "current_connection_rate"),
    level("ConnRateLimit", "limit_connection_rate"),
    level("MaxConnRate", "max_connection_rate"),
    level("SessRate", "current_session_rate"),
    level("SessRateLimit", "limit_session_rate"),
    level("MaxSessRate", "max_session_rate"),
    level("SslRate", "current_ssl_rate"),
    level("SslRateLimit", "limit_ssl_rate"),
    level("MaxSslRate", "max_ssl_rate"),
    level("SslFrontendKeyRate", "current_frontend_ssl_key_rate"),
    level("SslFrontendMaxKeyRate", "max_frontend_ssl_key_rate"),
    level("SslFrontendSessionReuse_pct", "frontend_ssl_reuse"),
    level("SslBackendKeyRate", "current_backend_ssl_key_rate"),
    level("SslBackendMaxKeyRate", "max_backend_ssl_key_rate"),
    total("SslCacheLookups", "ssl_cache_lookups_total"),
    total("SslCacheMisses", "ssl_cache_misses_total"),
    total("CompressBpsIn", "http_comp_bytes_in_total"),
    total("CompressBpsOut", "http_comp_bytes_out_total"),
    level("CompressBpsRateLim", "limit_http_comp"),
    level("ZlibMemUsage", "current_zlib_memory"),
    level("MaxZlibMemUsage", "max_zlib_memory"),
    level("Tasks", "current_tasks"),
    level("Run_queue", "current_run_queue"),
    level("Idle_pct", "idle_time_percent"),
    text("node", "node", "node"),
    text("description", "description", "desc"),
    level("Stopping", "stopping"),
    level("Jobs", "jobs"),
    level("Unstoppable Jobs", "unstoppable_jobs"),
    level("Listeners", "listeners"),
    level("ActivePeers", "active_peers"),
    level("ConnectedPeers", "connected_peers"),
    total("DroppedLogs", "dropped_logs_total"),
    level("BusyPolling", "busy_polling_enabled"),
    total("FailedResolutions", "failed_resolutions"),
    total("FailedScripts", "failed_scripts"),
    total("TotalBytesOut", "bytes_out_total"),
    total("TotalSplicedBytesOut", "spliced_bytes_out_total"),
    level("BytesOutRate", "bytes_out_rate"),
    total("CumRecvLogs", "recv_logs_total"),
    text("Build info", "build_info", "version"),
    level("Memmax_bytes", "max_memory_bytes"),
    level("PoolAlloc_bytes", "pool_allocated_bytes"),
    level("PoolUsed_bytes", "pool_used_bytes"),
    level("Start_time_sec", "start_time_seconds"),
    total("TotalWarnings", "total_warnings"),
    level("PatternsAdded", "patterns_added_total"),
    level("PatternsFreed", "patterns_freed_total"),
    level("NbThreadGroups", "nb_thread_groups"),
];

/// Metrics of stick tables: the name after `haproxy_sticktable_`, and the description.
pub(super) const TABLES: [(&str, &str); 3] = [
    ("size", "Stick table size."),
    ("used", "Number of entries used in this stick table."),
    (
        "local_updates",
        "Cumulative number of updates that this process made to the stick table. It is an unsigned 32-bit number and wraps after 4294967295.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{columns, process};

    #[test]
    fn every_metric_is_made_of_a_value_that_exists_and_has_a_name_of_its_own() {
        for metric in METRICS {
            let column = columns().find(|column| column.field.name == metric.column).expect(metric.column);
            assert!(column.at.any() & metric.kinds != 0, "{}", metric.column);
        }
        for metric in PROCESS {
            assert!(process::ROWS.iter().any(|row| row.field.name == metric.value), "{}", metric.value);
        }
        for (at, metric) in METRICS.iter().enumerate() {
            let is_same = |other: &Metric| other.name == metric.name && other.kinds & metric.kinds != 0;
            let is_class = matches!(metric.shape, Shape::Class(_));
            assert!(is_class || !METRICS[at + 1..].iter().any(is_same), "{}", metric.name);
        }
    }
}
