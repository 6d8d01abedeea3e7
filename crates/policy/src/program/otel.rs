//! OpenTelemetry, ready to run: where telemetry is sent, and which streams of a frontend are traced. Must never send anything.

use std::sync::Arc;
use std::time::Duration;

use expression::log_format::LogFormat;
use wire::otlp::Signal;

/// Where the telemetry of one signal goes.
#[derive(Debug, Clone, PartialEq)]
pub struct OtelExporter {
    /// What is sent.
    pub signal: Signal,
    /// Where it is sent.
    pub url: Box<str>,
    /// Fields of each request.
    pub headers: Box<[(Box<str>, Box<str>)]>,
    /// Attributes of what is told, `service.name` first.
    pub resource: Box<[(Box<str>, Box<str>)]>,
    /// What has made it.
    pub scope: Box<str>,
    /// How long something waits for company at most.
    pub interval: Duration,
    /// How long a collector may take to answer.
    pub timeout: Duration,
    /// How much waits at most: spans, records or metrics.
    pub queue: usize,
    /// How much a request has at most.
    pub batch: usize,
}

/// `otel-trace` of a frontend.
#[derive(Debug, Clone, PartialEq)]
pub struct OtelTrace {
    /// Its place among [`super::Program::otel_exporters`].
    pub exporter: usize,
    /// The share of the traces that begin here and are recorded, of 2^63.
    pub share: u64,
    /// How a span of a stream is called; `None`: by the method.
    pub name: Option<OtelFormat>,
    /// Attributes of that span.
    pub attributes: Box<[(Box<str>, OtelFormat)]>,
}

/// A format that is rendered when a stream has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct OtelFormat {
    /// The format.
    pub format: LogFormat,
    /// It asks for what rules on requests see; else for what the log sees.
    pub of_request: bool,
}

/// The exporters of a configuration.
pub type OtelExporters = Box<[Arc<OtelExporter>]>;
