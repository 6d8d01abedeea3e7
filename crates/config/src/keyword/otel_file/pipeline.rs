//! Meaning of the YAML file of a filter: the exporter, the sampler, the processor and the provider of the signal
//! `traces`. Anything that Weir does not support is an error that names it. Must never open anything.

use super::yaml::Node;
use crate::keyword::global::otel::{check_field, check_url};
use crate::keyword::proxy::percent;
use crate::keyword::report::Report;
use crate::span::Span;
use crate::spec::{OtelExporterSpec, OtelPipelineSpec, OtelSampler, WHOLE_SAMPLE};

/// Keys of an exporter that have no effect in Weir.
const IDLE: [&str; 7] = [
    "thread_name",
    "json_bytes_mapping",
    "debug",
    "max_concurrent_requests",
    "max_requests_per_connection",
    "background_thread_wait_for",
    "compression",
];

/// Context for reading values.
struct SettingsReader<'a, 'r> {
    tree: &'a Node,
    at: &'a dyn Fn(usize) -> Span,
    report: &'a mut Report<'r>,
}

impl<'a> SettingsReader<'a, '_> {
    fn wrong(&mut self, line: usize, message: impl std::fmt::Display) {
        self.report.alert((self.at)(line), format!("'filter' : {message}."));
    }

    /// Returns the node that the signal names in a section of the file; reports an error with the name if it does not
    /// exist.
    fn named(&mut self, signal: &'a Node, key: &str) -> Option<&'a Node> {
        let (line, node) = signal.get(key)?;
        let name = node.text().unwrap_or_default();
        let found = self.tree.get(key).and_then(|(_, section)| section.get(name));
        if found.is_none() {
            self.wrong(line, format_args!("'{name}' is not among the '{key}'"));
        }
        found.map(|(_, node)| node)
    }

    /// Parses a number of a section, from 1 to `most`.
    fn number(&mut self, section: &Node, key: &str, most: u64) -> Option<u64> {
        let (line, node) = section.get(key)?;
        let text = node.text().unwrap_or_default();
        let read = text.parse().ok().filter(|number| (1..=most).contains(number));
        if read.is_none() {
            self.wrong(line, format_args!("'{key}' : '{text}' is no number from 1 to {most}"));
        }
        read
    }
}

/// Returns the lines, names and values of a list.
fn pairs(node: &Node) -> Vec<(usize, &str, &str)> {
    let Node::List(items) = node else { return Vec::new() };
    let entries = items.iter().flat_map(|(_, item)| item.entries());
    entries.map(|(key, line, value)| (*line, key.as_str(), value.text().unwrap_or_default())).collect()
}

/// Reads a file; `None` after an error, which has been reported.
pub(super) fn read(
    tree: &Node,
    span: Span,
    at: &dyn Fn(usize) -> Span,
    report: &mut Report<'_>,
) -> Option<OtelPipelineSpec> {
    let mut course = SettingsReader { tree, at, report };
    let Some((_, traces)) = tree.get("signals").and_then(|(_, signals)| signals.get("traces")) else {
        course.wrong(1, "there is no signal 'traces' in 'signals'");
        return None;
    };
    for (name, line, _) in tree.get("signals").map_or(&[][..], |(_, signals)| signals.entries()) {
        if name != "traces" {
            let message = format!("signal '{name}' has no effect: Weir sends what 'otel-scope' says of traces.");
            course.report.warning(at(*line), message);
        }
    }
    let Some((line, _)) = traces.get("exporters") else {
        course.wrong(1, "the signal 'traces' has no 'exporters'");
        return None;
    };
    let written = course.named(traces, "exporters")?;
    let mut exporter = read_exporter(&mut course, written, span, line)?;
    if let Some(processor) = course.named(traces, "processors") {
        let is_single = processor.get("type").is_some_and(|(_, node)| node.text() == Some("single"));
        let batch = course.number(processor, "max_export_batch_size", 10_000);
        let queue = course.number(processor, "max_queue_size", 1_000_000);
        exporter.interval = course.number(processor, "schedule_delay", 3_600_000);
        exporter.batch = if is_single { Some(1) } else { batch.map(|batch| batch as u32) };
        exporter.queue = queue.map(|queue| queue as u32);
    }
    if let Some((_, resources)) = course.named(traces, "providers").and_then(|provider| provider.get("resources")) {
        for (_, name, value) in pairs(resources) {
            match name {
                "service.name" => exporter.service = Some(value.to_owned()),
                _ => exporter.resource.push((name.to_owned(), value.to_owned())),
            }
        }
    }
    let sampler = match course.named(traces, "samplers") {
        Some(written) => read_sampler(&mut course, written)?,
        None => OtelSampler { parent_based: true, share: WHOLE_SAMPLE },
    };
    let scope = traces.get("scope_name").and_then(|(_, node)| node.text()).map(str::to_owned);
    Some(OtelPipelineSpec { exporter, scope, sampler })
}

fn read_exporter(
    course: &mut SettingsReader<'_, '_>,
    written: &Node,
    span: Span,
    at: usize,
) -> Option<OtelExporterSpec> {
    let (line, kind) = written.get("type").map_or((at, ""), |(line, node)| (line, node.text().unwrap_or_default()));
    if kind != "otlp_http" {
        course.wrong(line, format_args!("exporters of type '{kind}' are not supported by Weir, only 'otlp_http' is"));
        return None;
    }
    let mut exporter = OtelExporterSpec {
        span,
        url: "http://localhost:4318/v1/traces".to_owned(),
        headers: Vec::new(),
        service: None,
        resource: Vec::new(),
        interval: None,
        timeout: course.number(written, "timeout", 3_600).map(|seconds| seconds * 1_000),
        queue: None,
        batch: None,
    };
    for (key, line, value) in written.entries() {
        let (line, text) = (*line, value.text().unwrap_or_default());
        match key.as_str() {
            "type" | "timeout" => {}
            "endpoint" => match check_url(text) {
                Ok(()) => exporter.url = text.to_owned(),
                Err(why) => course.wrong(line, format_args!("'endpoint' : '{text}' {why}")),
            },
            "http_headers" => {
                for (line, name, value) in pairs(value) {
                    match check_field(name, value) {
                        Ok(()) => exporter.headers.push((name.to_ascii_lowercase(), value.to_owned())),
                        Err(why) => course.wrong(line, format_args!("'http_headers' : {why}")),
                    }
                }
            }
            "content_type" if text == "protobuf" => {}
            "content_type" => {
                let message = format!("'content_type' : Weir sends protobuf in the place of '{text}'.");
                course.report.warning((course.at)(line), message);
            }
            "compression" if !matches!(text, "" | "none") => {
                course.wrong(line, format_args!("'compression {text}' is not supported by Weir"));
            }
            "ssl_insecure_skip_verify" if text == "false" || exporter.url.starts_with("http:") => {}
            name if name.starts_with("ssl_") && !text.is_empty() => course.wrong(
                line,
                format_args!(
                    "'{name}' is not supported by Weir: certificates are those of 'httpclient.ssl.*' in 'global'"
                ),
            ),
            name if IDLE.contains(&name) || name.starts_with("ssl_") => {}
            name => course.wrong(line, format_args!("unknown key '{name}' of an exporter")),
        }
    }
    Some(exporter)
}

fn read_sampler(course: &mut SettingsReader<'_, '_>, written: &Node) -> Option<OtelSampler> {
    let text = |key: &str| written.get(key).map_or((1, ""), |(line, node)| (line, node.text().unwrap_or_default()));
    let (line, kind) = text("type");
    // The delegate of a sampler is the type of another one, or its name.
    let (delegate_line, delegate) = text("delegate");
    let share = |course: &mut SettingsReader<'_, '_>, kind: &str, line: usize, of: &Node| match kind {
        "always_on" => Some(WHOLE_SAMPLE),
        "always_off" => Some(0),
        "trace_id_ratio_based" => {
            let ratio = of.get("ratio").and_then(|(_, node)| node.text()).unwrap_or("1");
            let found = ratio.parse::<f64>().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
            if found.is_none() {
                course.wrong(line, format_args!("'ratio' : '{ratio}' is no number from 0 to 1"));
            }
            found.and_then(|ratio| percent(&format!("{:.6}", ratio * 100.0)))
        }
        _ => {
            course.wrong(line, format_args!("unknown sampler '{kind}'"));
            None
        }
    };
    if kind != "parent_based" {
        return Some(OtelSampler { parent_based: false, share: share(course, kind, line, written)? });
    }
    let other = course.tree.get("samplers").and_then(|(_, samplers)| samplers.get(delegate));
    let (kind, of) = match other {
        Some((_, node)) => (node.get("type").and_then(|(_, node)| node.text()).unwrap_or_default(), node),
        None if delegate.is_empty() => ("always_on", written),
        None => (delegate, written),
    };
    Some(OtelSampler { parent_based: true, share: share(course, kind, delegate_line, of)? })
}
