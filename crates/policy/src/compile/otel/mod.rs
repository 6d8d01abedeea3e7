//! OpenTelemetry: the defaults of exporters are filled in, the formats of traces are compiled. Must never send anything.

mod filter;
#[cfg(test)]
mod tests;

use super::Compiler;
use super::names::SpecNames;
use crate::program::{OtelExporter, OtelExporters, OtelFormat, OtelMetrics, OtelTrace};
use config::diagnostic::Form;
use config::span::Spanned;
use config::spec::{GlobalSpec, OtelExporterSpec, ProxySpec, Spec, WHOLE_SAMPLE};
use expression::log_format::{LogFormat, Purpose};
use expression::sample::EvalPlace;
use std::sync::Arc;
use std::time::Duration;
use wire::otlp::Signal;

/// The name of what is told where none is written.
const SERVICE: &str = "weir";
/// How long a span waits for others.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long a collector may take (OpenTelemetry, `OTEL_EXPORTER_OTLP_TIMEOUT`).
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often metrics are sent (OpenTelemetry, `OTEL_METRIC_EXPORT_INTERVAL`).
const METRICS_INTERVAL: Duration = Duration::from_secs(60);
/// Items that wait.
const QUEUE: u32 = 8_192;
/// Items of a request (OpenTelemetry, `OTEL_BSP_MAX_EXPORT_BATCH_SIZE`).
const BATCH: u32 = 512;

/// An exporter of one kind of telemetry.
fn exporter(written: &OtelExporterSpec, signal: Signal) -> OtelExporter {
    let boxed = |(name, value): &(String, String)| (name.as_str().into(), value.as_str().into());
    let service = written.service.as_deref().unwrap_or(SERVICE);
    let own = [("service.name".into(), service.into())];
    let milliseconds = |written: Option<u64>, usual| written.map_or(usual, Duration::from_millis);
    OtelExporter {
        signal,
        url: format!("{}{}", written.url.trim_end_matches('/'), signal.path()).into(),
        headers: written.headers.iter().map(boxed).collect(),
        resource: own.into_iter().chain(written.resource.iter().map(boxed)).collect(),
        scope: "weir".into(),
        interval: milliseconds(written.interval, INTERVAL),
        timeout: milliseconds(written.timeout, TIMEOUT),
        queue: written.queue.unwrap_or(QUEUE) as usize,
        batch: written.batch.unwrap_or(BATCH) as usize,
    }
}

impl Compiler<'_> {
    /// Where telemetry goes: spans of `otel-trace`, those of filters, then log records and metrics.
    pub(super) fn otel_exporters(&mut self, spec: &Spec) -> OtelExporters {
        let written = spec.global.otel_exporter.as_deref();
        let global = written.map(|written| Arc::new(exporter(written, Signal::Traces)));
        let of_filters = spec.sections.otel_filters.iter().filter_map(|file| file.pipeline.as_ref());
        let of_filters = of_filters.map(|pipeline| {
            let plan = exporter(&pipeline.exporter, Signal::Traces);
            let scope = pipeline.scope.as_deref().map_or(plan.scope.clone(), Into::into);
            Arc::new(OtelExporter { url: pipeline.exporter.url.as_str().into(), scope, ..plan })
        });
        let others = [(Signal::Logs, self.sends_logs), (Signal::Metrics, spec.global.otel_metrics.is_some())];
        let others = others.into_iter().filter(|(_, is_sent)| *is_sent);
        let others = others.filter_map(|(signal, _)| Some(Arc::new(exporter(written?, signal))));
        global.into_iter().chain(of_filters).chain(others).collect()
    }

    /// Which metrics are sent.
    pub(super) fn otel_metrics(&mut self, global: &GlobalSpec) -> Option<OtelMetrics> {
        let written = global.otel_metrics.as_deref()?;
        if global.otel_exporter.is_none() {
            let message = "'otel-metrics' needs an 'otel-exporter' in section 'global'.".to_owned();
            self.alert(written.span, Form::LateParsing, message);
        }
        Some(OtelMetrics {
            interval: written.interval.map_or(METRICS_INTERVAL, Duration::from_millis),
            scopes: written.scopes.as_slice().into(),
            extra_counters: written.extra_counters,
            no_maint: written.no_maint,
        })
    }

    /// A format of a span's end, where requests and answers are still known: it may stand where a line of the log may, or among
    /// the rules on either of them. `None`: it is wrong, which has been said.
    fn otel_format(&mut self, keyword: &str, text: &Spanned<String>, names: &SpecNames<'_>) -> Option<OtelFormat> {
        let places = [EvalPlace::Log, EvalPlace::FrontRequestHead, EvalPlace::BackResponseHead];
        let found = places.into_iter().find_map(|place| {
            let format = LogFormat::for_rule(&text.value, Purpose::Text, place, names).ok()?;
            Some(OtelFormat { format, of_request: place == EvalPlace::FrontRequestHead })
        });
        found.or_else(|| Some(OtelFormat { format: self.format(keyword, text, names)?, of_request: false }))
    }

    /// Which streams of a frontend are traced; `None`: none.
    pub(super) fn otel_trace(&mut self, spec: &Spec, index: usize, written: &ProxySpec) -> Option<Box<OtelTrace>> {
        let trace = written.otel.as_deref()?;
        if spec.global.otel_exporter.is_none() {
            let message = "'otel-trace' needs an 'otel-exporter' in section 'global'.".to_owned();
            self.alert(trace.span, Form::LateParsing, message);
        }
        let names = self.names(spec, Some(index));
        let mut compiled = |keyword: &str, text| self.otel_format(keyword, text, &names);
        let name = trace.name.as_ref().and_then(|text| compiled("otel-trace name", text));
        let attributes = trace
            .attributes
            .iter()
            .filter_map(|(name, text)| Some((name.as_str().into(), compiled("otel-trace attribute", text)?)));
        let attributes = attributes.collect();
        let share = (u128::from(trace.sample) << 63) / u128::from(WHOLE_SAMPLE);
        Some(Box::new(OtelTrace { exporter: 0, share: share as u64, name, attributes }))
    }
}
