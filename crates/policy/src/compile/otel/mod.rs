//! Compiles OpenTelemetry sections: adds the defaults of exporters and compiles the formats of traces. Must never send
//! anything.

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

/// Default service name.
const SERVICE: &str = "weir";
/// Default delay before a batch of spans is sent.
const INTERVAL: Duration = Duration::from_secs(1);
/// Default timeout of a collector (OpenTelemetry, `OTEL_EXPORTER_OTLP_TIMEOUT`).
const TIMEOUT: Duration = Duration::from_secs(10);
/// Default interval of metrics (OpenTelemetry, `OTEL_METRIC_EXPORT_INTERVAL`).
const METRICS_INTERVAL: Duration = Duration::from_secs(60);
/// Default capacity of the queue in items.
const QUEUE: u32 = 8_192;
/// Default number of items per request (OpenTelemetry, `OTEL_BSP_MAX_EXPORT_BATCH_SIZE`).
const BATCH: u32 = 512;

/// Compiles an exporter of one signal.
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
    /// Compiles the exporters: for spans of `otel-trace`, for those of filters, then for log records and metrics. Called after all
    /// logs were compiled.
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

    /// Compiles the exported metrics.
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

    /// Compiles a format that is evaluated at the end of a span, when request and response are still available: it may
    /// use whatever is permitted in log lines, or in rules on requests or responses. `None` if an error was reported.
    fn otel_format(&mut self, keyword: &str, text: &Spanned<String>, names: &SpecNames<'_>) -> Option<OtelFormat> {
        let places = [EvalPlace::Log, EvalPlace::FrontRequestHead, EvalPlace::BackResponseHead];
        let found = places.into_iter().find_map(|place| {
            let format = LogFormat::for_rule(&text.value, Purpose::Text, place, names).ok()?;
            Some(OtelFormat { format, of_request: place == EvalPlace::FrontRequestHead })
        });
        found.or_else(|| Some(OtelFormat { format: self.format(keyword, text, names)?, of_request: false }))
    }

    /// Compiles the tracing of a frontend's streams; `None` if they are not traced.
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
