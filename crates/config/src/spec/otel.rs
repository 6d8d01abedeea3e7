//! OpenTelemetry: where telemetry is sent, and which streams are traced. Must never know a message of OTLP.

use crate::span::{Span, Spanned};

/// Where telemetry goes: `otel-exporter`, which is Weir's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtelExporterSpec {
    /// The line.
    pub span: Span,
    /// The address that the path of each signal is added to.
    pub url: String,
    /// `header`: fields of each request.
    pub headers: Vec<(String, String)>,
    /// `service`: `service.name`; `None`: `weir`.
    pub service: Option<String>,
    /// `resource`: further attributes of what is told.
    pub resource: Vec<(String, String)>,
    /// `interval`, milliseconds: how long a span waits for others at most.
    pub interval: Option<u64>,
    /// `timeout`, milliseconds: how long a collector may take to answer.
    pub timeout: Option<u64>,
    /// `queue`: spans that wait at most.
    pub queue: Option<u32>,
    /// `batch`: spans in a request at most.
    pub batch: Option<u32>,
}

/// `otel-trace` of a frontend, which is Weir's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtelTraceSpec {
    /// The line.
    pub span: Span,
    /// `sample`, millionths of a percent.
    pub sample: u32,
    /// `name`: a log format.
    pub name: Option<Spanned<String>>,
    /// `attribute`: names, and a log format for each.
    pub attributes: Vec<(String, Spanned<String>)>,
}

/// `sample 100`.
pub const WHOLE_SAMPLE: u32 = 100_000_000;
