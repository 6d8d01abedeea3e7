//! Frontends, backends and servers as JSON objects, with the columns of `show stat` and latencies. Must never name a
//! column differently from the table of statistics.

use std::fmt::Write as _;

use live::ServerCounts;
use live::counters::LatencySum;

use super::answer::{Answer, put};
use super::json::{Commas, JsonValue, Quoted, Seconds};
use super::request::DashboardRequest;
use crate::field::Value;
use crate::statistics::{self, B, Column, F, Kind, Object, S};

/// Names of members that are no columns of the statistics: any of them selects all of them.
const STANDING: [&str; 5] = ["state", "reason", "detail", "since", "servers"];

/// The members of an answer's objects.
pub(super) struct Columns {
    columns: Vec<&'static Column>,
    /// The states of servers with their reasons, and their numbers.
    standing: bool,
}

impl Columns {
    /// All columns.
    pub(super) fn all() -> Self {
        Self { columns: statistics::columns().collect(), standing: true }
    }

    /// Returns the columns of these names, in the order of the statistics; unknown names are ignored.
    pub(super) fn named<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Self {
        let wanted = |column: &&Column| names.clone().any(|name| name == column.field.name);
        let standing = names.clone().any(|name| STANDING.contains(&name));
        Self { columns: statistics::columns().filter(wanted).collect(), standing }
    }

    fn asked(asked: &DashboardRequest) -> Self {
        asked.target.parameter("fields").map_or_else(Self::all, |names| Self::named(names.split(',')))
    }
}

/// Members of a sample's objects.
pub(super) const SAMPLED: [&str; 29] = [
    "state",
    "scur",
    "qcur",
    "stot",
    "bin",
    "bout",
    "ereq",
    "econ",
    "eresp",
    "wretr",
    "status",
    "weight",
    "lastchg",
    "check_status",
    "hrsp_1xx",
    "hrsp_2xx",
    "hrsp_3xx",
    "hrsp_4xx",
    "hrsp_5xx",
    "hrsp_other",
    "req_tot",
    "conn_tot",
    "h1req",
    "h2req",
    "h3req",
    "qtime",
    "ctime",
    "rtime",
    "ttime",
];

/// The name of a kind of object.
const fn kind(kind: &Kind<'_>) -> &'static str {
    match kind {
        Kind::Frontend => "frontend",
        Kind::Backend => "backend",
        Kind::Server(_) => "server",
        Kind::Listener(_) => "listener",
    }
}

/// Writes latencies of the last seconds in milliseconds; nothing if there are none.
pub(super) fn latency(sum: &LatencySum, out: &mut String) {
    for (name, per_mille) in [("p50", 500), ("p95", 950), ("p99", 990)] {
        if let Some(time) = sum.quantile(per_mille) {
            put(out, format_args!(",\"{name}\":{time:.3}"));
        }
    }
}

/// Sums over the objects of an answer.
#[derive(Default)]
pub(super) struct Sums {
    pub(super) latencies: LatencySum,
    pub(super) servers: ServerCounts,
}

/// Writes an object. Returns its latencies, and the numbers of its servers if they were written.
pub(super) fn write(object: &Object<'_>, columns: &Columns, out: &mut String) -> Sums {
    let name = object.name();
    put(
        out,
        format_args!(
            "{{\"kind\":\"{}\",\"proxy\":{},\"name\":{}",
            kind(&object.kind),
            Quoted(&object.proxy.name),
            Quoted(&name)
        ),
    );
    for column in &columns.columns {
        let value = column.of(object);
        if value != Value::None {
            put(out, format_args!(",\"{}\":{}", column.field.name, JsonValue(&value)));
        }
    }
    let servers = if columns.standing { standing(object, out) } else { ServerCounts::default() };
    stalls(object, out);
    unused(object, out);
    for (count, sum) in statistics::flow_counts(object) {
        put(out, format_args!(",\"{}\":{sum}", count.member));
    }
    let latencies = object.sum.latencies(object.now);
    latency(&latencies, out);
    out.push('}');
    Sums { latencies, servers }
}

/// Writes the state of a server with its reason, or a backend's numbers of servers by state, which it returns.
fn standing(object: &Object<'_>, out: &mut String) -> ServerCounts {
    if let Some(counts) = object.server_counts() {
        out.push_str(",\"servers\":");
        write_counts(&counts, out);
        return counts;
    }
    let Some(standing) = object.standing() else { return ServerCounts::default() };
    put(out, format_args!(",\"state\":\"{}\"", standing.state));
    for (name, text) in [("reason", &standing.reason), ("detail", &standing.detail)] {
        if !text.is_empty() {
            put(out, format_args!(",\"{name}\":{}", Quoted(text)));
        }
    }
    if let Some(since) = standing.since {
        put(out, format_args!(",\"since\":{}", Seconds(since)));
    }
    ServerCounts::default()
}

/// Writes numbers of servers by state.
pub(super) fn write_counts(counts: &ServerCounts, out: &mut String) {
    let ServerCounts { usable, down, maintenance, drain } = counts;
    let total = counts.total();
    put(
        out,
        format_args!(
            "{{\"total\":{total},\"usable\":{usable},\"down\":{down},\"maint\":{maintenance},\"drain\":{drain}}}"
        ),
    );
}

/// Writes how often payload waited for an HTTP/2 window; nothing if never. HAProxy has no such columns.
fn stalls(object: &Object<'_>, out: &mut String) {
    if !matches!(object.kind, Kind::Frontend | Kind::Backend) {
        return;
    }
    for (name, waits) in [
        ("h2_stream_stalls", object.http2(|counters| &counters.stream_stalls)),
        ("h2_connection_stalls", object.http2(|counters| &counters.connection_stalls)),
    ] {
        if waits != Value::U64(0) {
            put(out, format_args!(",\"{name}\":{}", JsonValue(&waits)));
        }
    }
}

/// Writes how many connections of a frontend ended before their first byte; nothing if none. HAProxy has no such column.
fn unused(object: &Object<'_>, out: &mut String) {
    let Kind::Frontend = object.kind else { return };
    let unused = object.worker.process.counters.unused_connections(object.proxy.index);
    if unused > 0 {
        put(out, format_args!(",\"unused_connections\":{unused}"));
    }
}

/// Writes every object of the given kinds, with `prefix` before the first.
pub(super) async fn each(
    asked: &DashboardRequest,
    answer: &mut Answer,
    kinds: u8,
    wanted: impl Fn(&str) -> bool,
    mut write: impl FnMut(&Object<'_>, &mut String),
) {
    let (program, mut text) = (&asked.generation.program, String::new());
    let mut at = 0;
    while let Some(proxy) = program.proxies.get(at) {
        at += 1;
        if !asked.shows(proxy) || !wanted(&proxy.name) {
            continue;
        }
        let front = proxy.frontend.as_ref().filter(|_| kinds & F != 0).map(|_| Kind::Frontend);
        let back = proxy.backend.as_ref().filter(|_| kinds & B != 0).map(|_| Kind::Backend);
        for kind in front.into_iter().chain(back) {
            text.clear();
            write(&Object::new(&asked.worker, program, proxy, kind, false), &mut text);
            answer.push(&text);
            answer.relieve().await;
        }
        let servers = proxy.backend.as_ref().map(|back| &back.servers).filter(|_| kinds & S != 0);
        let places = servers.map_or(0, |servers| servers.places());
        for place in 0..places {
            let Some(server) = servers.and_then(|servers| servers.get(place).filter(|_| servers.is_present(place)))
            else {
                continue;
            };
            text.clear();
            write(&Object::new(&asked.worker, program, proxy, Kind::Server(server), false), &mut text);
            answer.push(&text);
            answer.relieve().await;
        }
    }
}

/// `proxies`: frontends and backends.
pub(super) async fn proxies(asked: DashboardRequest, answer: Answer) {
    list(asked, answer, "proxies", F | B, "proxy").await;
}

/// `servers`.
pub(super) async fn servers(asked: DashboardRequest, answer: Answer) {
    list(asked, answer, "servers", S, "backend").await;
}

async fn list(asked: DashboardRequest, mut answer: Answer, title: &str, kinds: u8, filter: &str) {
    let columns = Columns::asked(&asked);
    let only = asked.target.parameter(filter).map(str::to_owned);
    answer.begin_json();
    let _ = write!(answer, "{{\"{title}\":[");
    let mut commas = Commas::default();
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    each(&asked, &mut answer, kinds, wanted, |object, out| {
        out.push_str(commas.next());
        write(object, &columns, out);
    })
    .await;
    answer.push("]}\n");
}
