//! The history of the process, of frontends and of backends, by columns. Must never hold its lock while a client reads.

use base::WallTime;
use live::history::{CAPACITY, History, HistoryKind, INTERVAL, MOST_SERIES, Sample, SeriesSamples, Span};

use super::answer::{Answer, put};
use super::json::{Commas, Quoted, Seconds};
use super::request::DashboardRequest;

/// Objects that have a column.
#[derive(Clone, Copy, PartialEq)]
enum Objects {
    All,
    /// Backends and the process.
    WithServers,
}

/// A column: its name, its objects, and the value that a sample has.
struct HistoryColumn {
    name: &'static str,
    objects: Objects,
    /// `None`: no value.
    value: fn(&Sample) -> Option<f64>,
    decimals: usize,
}

const fn count(name: &'static str, value: fn(&Sample) -> Option<f64>) -> HistoryColumn {
    HistoryColumn { name, objects: Objects::All, value, decimals: 0 }
}

const fn of_servers(name: &'static str, value: fn(&Sample) -> Option<f64>) -> HistoryColumn {
    HistoryColumn { name, objects: Objects::WithServers, value, decimals: 0 }
}

const fn latency(name: &'static str, value: fn(&Sample) -> Option<f64>) -> HistoryColumn {
    HistoryColumn { name, objects: Objects::All, value, decimals: 3 }
}

const COLUMNS: &[HistoryColumn] = &[
    count("requests", |sample| Some(sample.requests.into())),
    count("errors_4xx", |sample| Some(sample.client_errors.into())),
    count("errors_5xx", |sample| Some(sample.server_errors.into())),
    count("errors", |sample| Some(sample.failures.into())),
    count("bytes_in", |sample| Some(sample.bytes_in.into())),
    count("bytes_out", |sample| Some(sample.bytes_out.into())),
    count("sessions", |sample| Some(sample.current_sessions.into())),
    count("sessions_new", |sample| Some(sample.sessions.into())),
    count("connections", |sample| Some(sample.connections.into())),
    of_servers("queue", |sample| Some(sample.queue.into())),
    latency("p50", |sample| sample.latency(0)),
    latency("p95", |sample| sample.latency(1)),
    latency("p99", |sample| sample.latency(2)),
    of_servers("servers_usable", |sample| Some(sample.servers_usable.into())),
    of_servers("servers_down", |sample| Some(sample.servers_down.into())),
];

/// Values of `kind`.
const KINDS: [(&str, HistoryKind); 3] =
    [("process", HistoryKind::Process), ("frontend", HistoryKind::Frontend), ("backend", HistoryKind::Backend)];

/// Parses a time: seconds since the Unix epoch, with up to nine decimals.
fn time(text: &str) -> Option<WallTime> {
    let (seconds, decimals) = text.split_once('.').unwrap_or((text, ""));
    let are_digits = decimals.len() <= 9 && decimals.bytes().all(|byte| byte.is_ascii_digit());
    let nanos = format!("{decimals:0<9}").parse().ok().filter(|_| are_digits)?;
    Some(WallTime { seconds: seconds.parse().ok()?, nanos })
}

/// `history`.
pub(super) async fn show(asked: DashboardRequest, mut answer: Answer) {
    let name = asked.target.parameter("kind").unwrap_or("process");
    let Some((name, kind)) = KINDS.into_iter().find(|(known, _)| *known == name) else {
        return answer.refuse(400, "'kind' is process, frontend or backend");
    };
    let since = match asked.target.parameter("since").map(time) {
        Some(None) => return answer.refuse(400, "'since' is a time in seconds"),
        Some(Some(since)) => since,
        None => WallTime { seconds: i64::MIN, nanos: 0 },
    };
    let fields = asked.target.parameter("fields");
    let is_wanted = |column: &&HistoryColumn| {
        let has_it = column.objects == Objects::All || kind != HistoryKind::Frontend;
        has_it && fields.is_none_or(|fields| fields.split(',').any(|field| field == column.name))
    };
    let columns: Vec<&HistoryColumn> = COLUMNS.iter().filter(is_wanted).collect();
    let history = asked.worker.process.service::<History>();
    let span = history.span(since);
    answer.begin_json();
    answer.push(&head(&span));
    let mut commas = Commas::default();
    for (index, proxy) in history.objects(kind) {
        if !is_shown(&asked, kind, index, &proxy) {
            continue;
        }
        let Some(samples) = history.samples(kind, index, &span) else { continue };
        let mut text = format!("{}{{\"kind\":\"{name}\",\"proxy\":{},\"first\":", commas.next(), Quoted(&proxy));
        put(&mut text, format_args!("{},\"columns\":{{", samples.first));
        answer.push(&text);
        let mut inner = Commas::default();
        for column in &columns {
            answer.push(inner.next());
            answer.push(&values(column, &samples));
            answer.relieve().await;
        }
        answer.push("}}");
    }
    answer.push("]}\n");
}

/// Whether a series is shown: it is requested, and it is of a proxy in `stats scope`.
fn is_shown(asked: &DashboardRequest, kind: HistoryKind, index: usize, name: &str) -> bool {
    let wanted = asked.target.parameter("proxy");
    match kind {
        HistoryKind::Process => asked.shows_all(),
        HistoryKind::Frontend | HistoryKind::Backend => {
            let proxy = asked.generation.program.proxies.get(index);
            let is_same = proxy.is_some_and(|proxy| asked.shows(proxy) && proxy.name.starts_with(name));
            is_same && proxy.is_some_and(|proxy| wanted.is_none_or(|wanted| *wanted == *proxy.name))
        }
    }
}

/// Returns the members before the series.
fn head(span: &Span) -> String {
    let mut text = String::new();
    let newest = span.intervals.last().map_or(WallTime::default(), |interval| interval.end);
    put(
        &mut text,
        format_args!(
            "{{\"interval_s\":{},\"capacity\":{CAPACITY},\"most_series\":{MOST_SERIES},\"time\":{},\"times\":[",
            INTERVAL.as_secs(),
            Seconds(newest)
        ),
    );
    let mut commas = Commas::default();
    for interval in &span.intervals {
        put(&mut text, format_args!("{}{}", commas.next(), Seconds(interval.end)));
    }
    text.push_str("],\"seconds\":[");
    let mut commas = Commas::default();
    for interval in &span.intervals {
        put(&mut text, format_args!("{}{:.3}", commas.next(), interval.length.as_secs_f64()));
    }
    text.push_str("],\"series\":[");
    text
}

/// Returns a column as a member.
fn values(column: &HistoryColumn, samples: &SeriesSamples) -> String {
    let mut text = format!("\"{}\":[", column.name);
    let mut commas = Commas::default();
    for sample in &samples.samples {
        let comma = commas.next();
        match (column.value)(sample) {
            Some(value) => put(&mut text, format_args!("{comma}{value:.*}", column.decimals)),
            None => put(&mut text, format_args!("{comma}null")),
        }
    }
    text.push(']');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed() {
        let at = |seconds, nanos| Some(WallTime { seconds, nanos });
        for (text, parsed) in [
            ("1764430590.001", at(1_764_430_590, 1_000_000)),
            ("7", at(7, 0)),
            ("7.", at(7, 0)),
            ("7.000000001", at(7, 1)),
            ("7.0000000001", None),
            ("7.x", None),
            ("", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(time(text), parsed, "{text}");
        }
    }
}
