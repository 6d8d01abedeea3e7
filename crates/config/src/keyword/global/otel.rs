//! Export of telemetry (Weir only).

use super::{GlobalContext, GlobalKeyword, supported};
use crate::diagnostic::Diagnostic;
use crate::document::Line;
use crate::spec::{METRIC_SCOPES, OtelExporterSpec, OtelMetricsSpec};
use crate::suggest;
use crate::units;

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    supported(
        "otel-exporter",
        "<url> [service <name>] [resource <name> <value>]... [header <name> <value>]... [interval <time>] [timeout <time>] \
         [queue <items>] [batch <items>]",
        "OpenTelemetry collector of `otel-trace`, `log otel@` and `otel-metrics`. Weir's own.",
        exporter,
    ),
    supported(
        "otel-metrics",
        "[interval <time>] [scope <name>]... [extra-counters] [no-maint]",
        "Sends the metrics of the service `prometheus-exporter` to the collector of `otel-exporter`. Weir's own.",
        metrics,
    ),
];

const OPTIONS: [&str; 7] = ["service", "resource", "header", "interval", "timeout", "queue", "batch"];

fn exporter(context: &mut GlobalContext<'_>, line: &Line) {
    if context.spec.otel_exporter.is_some() {
        return context.report.alert(line.span(0), "'otel-exporter' already specified. Continuing.");
    }
    let url = line.text(1);
    if let Err(why) = check_url(url) {
        return context.report.alert(line.span(1), format!("'otel-exporter' : '{url}' {why}."));
    }
    let mut spec = OtelExporterSpec {
        span: line.whole(),
        url: url.to_owned(),
        headers: Vec::new(),
        service: None,
        resource: Vec::new(),
        interval: None,
        timeout: None,
        queue: None,
        batch: None,
    };
    let mut at = 2;
    while at < line.words.len() {
        match option(&mut spec, line, at) {
            Ok(used) => at += used,
            Err((place, message)) => {
                let mut found = Diagnostic::alert(line.span(place), message);
                if place == at {
                    found.hint = suggest::nearest(line.text(at), OPTIONS).map(|known| format!("write '{known}'"));
                }
                return context.report.push(found);
            }
        }
    }
    context.spec.otel_exporter = Some(Box::new(spec));
}

/// Parses the option at a word: returns its number of words, or the wrong word and the reason.
fn option(spec: &mut OtelExporterSpec, line: &Line, at: usize) -> Result<usize, (usize, String)> {
    let (name, first, second) = (line.text(at), line.text(at + 1), line.text(at + 2));
    let words = match name {
        "resource" | "header" => 3,
        name if OPTIONS.contains(&name) => 2,
        _ => return Err((at, format!("'otel-exporter' : unknown option '{name}'"))),
    };
    if line.words.len() < at + words {
        return Err((at + words - 1, format!("'otel-exporter' : missing argument for '{name}'.")));
    }
    let wrong = |why: String| (at + 1, format!("'otel-exporter {name}' : {why}."));
    match name {
        "service" => spec.service = Some(first.to_owned()),
        "resource" => spec.resource.push((first.to_owned(), second.to_owned())),
        "header" => {
            check_field(first, second).map_err(wrong)?;
            spec.headers.push((first.to_ascii_lowercase(), second.to_owned()));
        }
        "interval" => spec.interval = Some(time(first).map_err(wrong)?),
        "timeout" => spec.timeout = Some(time(first).map_err(wrong)?),
        "queue" => spec.queue = Some(count(first, 1_000_000).map_err(wrong)?),
        _ => spec.batch = Some(count(first, 10_000).map_err(wrong)?),
    }
    Ok(words)
}

const METRICS_OPTIONS: [&str; 4] = ["interval", "scope", "extra-counters", "no-maint"];

fn metrics(context: &mut GlobalContext<'_>, line: &Line) {
    if context.spec.otel_metrics.is_some() {
        return context.report.alert(line.span(0), "'otel-metrics' already specified. Continuing.");
    }
    let mut spec = OtelMetricsSpec {
        span: line.whole(),
        interval: None,
        scopes: Vec::new(),
        extra_counters: false,
        no_maint: false,
    };
    let mut at = 1;
    while at < line.words.len() {
        match metrics_option(&mut spec, line, at) {
            Ok(used) => at += used,
            Err((place, message, known)) => {
                let mut found = Diagnostic::alert(line.span(place), message);
                found.hint =
                    suggest::nearest(line.text(place), known.iter().copied()).map(|known| format!("write '{known}'"));
                return context.report.push(found);
            }
        }
    }
    context.spec.otel_metrics = Some(Box::new(spec));
}

/// Parses the option at a word: returns its number of words, or the wrong word, the reason and the valid values.
fn metrics_option<'a>(
    spec: &mut OtelMetricsSpec,
    line: &Line,
    at: usize,
) -> Result<usize, (usize, String, &'a [&'static str])> {
    let (name, value) = (line.text(at), line.text(at + 1));
    if matches!(name, "interval" | "scope") && value.is_empty() {
        return Err((at, format!("'otel-metrics' : missing argument for '{name}'."), &[]));
    }
    match name {
        "interval" => {
            let read = time(value).map_err(|why| (at + 1, format!("'otel-metrics interval' : {why}."), &[][..]))?;
            spec.interval = Some(read);
        }
        "scope" => match METRIC_SCOPES.iter().position(|known| *known == value) {
            Some(place) => spec.scopes.push(place),
            None => return Err((at + 1, format!("'otel-metrics scope' : unknown scope '{value}'."), &METRIC_SCOPES)),
        },
        "extra-counters" => spec.extra_counters = true,
        "no-maint" => spec.no_maint = true,
        _ => return Err((at, format!("'otel-metrics' : unknown option '{name}'"), &METRICS_OPTIONS)),
    }
    Ok(if matches!(name, "interval" | "scope") { 2 } else { 1 })
}

fn time(text: &str) -> Result<u64, String> {
    let read = units::milliseconds(text).ok().filter(|time| time.value > 0 && time.leftover.is_none());
    read.map(|time| time.value).ok_or_else(|| format!("'{text}' is no time above zero"))
}

fn count(text: &str, most: u32) -> Result<u32, String> {
    let read = text.parse().ok().filter(|count| (1..=most).contains(count));
    read.ok_or_else(|| format!("'{text}' is no number from 1 to {most}"))
}

/// Checks that a header field can be sent by the internal HTTP client.
pub(crate) fn check_field(name: &str, value: &str) -> Result<(), String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(format!("'{name}' is no name of a header field"));
    }
    if ["host", "content-length", "content-type", "transfer-encoding", "connection"]
        .iter()
        .any(|own| name.eq_ignore_ascii_case(own))
    {
        return Err(format!("the field '{name}' is Weir's to write"));
    }
    if value.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err(format!("the value of '{name}' has a character that no field may have"));
    }
    Ok(())
}

/// Checks that a URL is accepted by the internal HTTP client (`conn::client::Uri`).
pub(crate) fn check_url(url: &str) -> Result<(), &'static str> {
    let Some((scheme, rest)) = url.split_once("://") else { return Err("is no URL of http or https") };
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return Err("is no URL of http or https");
    }
    if url.bytes().any(|byte| byte <= b' ' || byte >= 0x7f) {
        return Err("has a character that no URL may have");
    }
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let (host, port) = match authority.strip_prefix('[') {
        Some(bracketed) => match bracketed.split_once(']') {
            Some((host, rest)) if host.parse::<std::net::Ipv6Addr>().is_ok() => (host, rest.strip_prefix(':')),
            _ => return Err("has no valid IPv6 address"),
        },
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    if host.is_empty() || host.contains('@') || port.is_some_and(|port| !is_port(port)) {
        return Err("has no host, or no valid port");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_collectors_are_judged() {
        for (url, is_good) in [
            ("http://collector:4318", true),
            ("https://[::1]:4318/base", true),
            ("HTTP://127.0.0.1", true),
            ("http://127.0.0.1/a?b", true),
            ("", false),
            ("collector:4318", false),
            ("grpc://collector:4317", false),
            ("http://", false),
            ("http://:4318", false),
            ("http://a:0", false),
            ("http://a:x", false),
            ("http://a:65536", false),
            ("http://u@a", false),
            ("http://[::1", false),
            ("http://[zz]", false),
            ("http://a b", false),
        ] {
            assert_eq!(check_url(url).is_ok(), is_good, "{url}");
        }
    }
}
