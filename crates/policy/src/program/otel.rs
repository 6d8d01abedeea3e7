//! Compiled OpenTelemetry parameters: exporters, traced streams of a frontend, and the scopes of `filter otel`. Must
//! never send anything.

use std::sync::Arc;
use std::time::Duration;

use config::spec::{OtelEvent, OtelStatus};
use expression::Expression;
use expression::condition::Condition;
use expression::log_format::LogFormat;
use wire::otlp::Signal;

/// A name with its values.
pub type NamedValues<T> = (Box<str>, Box<[T]>);

/// The exporter of one signal.
#[derive(Debug, Clone, PartialEq)]
pub struct OtelExporter {
    pub signal: Signal,
    /// URL of the collector.
    pub url: Box<str>,
    /// Header fields of each request.
    pub headers: Box<[(Box<str>, Box<str>)]>,
    /// Resource attributes, `service.name` first.
    pub resource: Box<[(Box<str>, Box<str>)]>,
    /// Name of the instrumentation scope.
    pub scope: Box<str>,
    /// Maximum delay before a batch is sent.
    pub interval: Duration,
    /// Timeout of a request.
    pub timeout: Duration,
    /// Maximum number of queued items.
    pub queue: usize,
    /// Maximum number of items per request.
    pub batch: usize,
}

/// `otel-metrics`: the exported metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct OtelMetrics {
    /// Export interval.
    pub interval: Duration,
    /// Groups of metrics, as indices in [`config::spec::METRIC_SCOPES`]; empty for all of them.
    pub scopes: Box<[usize]>,
    /// Include the counters of protocols.
    pub extra_counters: bool,
    /// Exclude servers in maintenance.
    pub no_maint: bool,
}

/// `otel-trace` of a frontend.
#[derive(Debug, Clone, PartialEq)]
pub struct OtelTrace {
    /// Index in [`super::Program::otel_exporters`].
    pub exporter: usize,
    /// Sampling ratio of traces that start here, as a fraction of 2^63.
    pub share: u64,
    /// Name of a stream's span; `None` for the method.
    pub name: Option<OtelFormat>,
    /// Attributes of a stream's span.
    pub attributes: Box<[(Box<str>, OtelFormat)]>,
}

/// A format that is rendered at the end of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct OtelFormat {
    pub format: LogFormat,
    /// Evaluated like a rule on requests, instead of like a log line.
    pub of_request: bool,
}

/// The exporters of a configuration.
pub type OtelExporters = Box<[Arc<OtelExporter>]>;

#[derive(Debug, PartialEq)]
pub struct OtelFilter {
    pub name: Box<str>,
    /// Index in [`super::Program::otel_exporters`].
    pub exporter: usize,
    /// The sampling decision is that of the parent, if there is one.
    pub parent_based: bool,
    /// Sampling ratio of other traces, as a fraction of 2^63.
    pub share: u64,
    /// `rate-limit`, as a fraction of 2^63.
    pub rate: u64,
    /// `option hard-errors`.
    pub hard_errors: bool,
    /// Names of the spans.
    pub spans: Box<[Box<str>]>,
    pub scopes: Box<[OtelScope]>,
    /// Groups: their names and the indices of their scopes.
    pub groups: Box<[NamedValues<usize>]>,
}

// The parts of an expression are equal to themselves.
impl Eq for OtelFilter {}

/// An `otel-scope`.
#[derive(Debug, PartialEq)]
pub struct OtelScope {
    /// The event that runs the scope.
    pub event: Option<OtelEvent>,
    pub condition: Option<Condition>,
    /// Contexts that are extracted first.
    pub extracts: Box<[OtelCarrier]>,
    /// Spans that are opened or changed.
    pub spans: Box<[OtelSpan]>,
    /// Spans and contexts that are finished.
    pub finish: Box<[OtelFinish]>,
}

/// A span of a scope.
#[derive(Debug, PartialEq)]
pub struct OtelSpan {
    /// Index in the names of spans.
    pub span: usize,
    /// The span is the root of a trace.
    pub root: bool,
    /// The parent of the span.
    pub parent: Option<OtelReference>,
    /// Linked spans or contexts.
    pub links: Box<[OtelReference]>,
    pub attributes: Box<[NamedValues<Expression>]>,
    /// Events, each with one attribute.
    pub events: Box<[OtelSpanEvent]>,
    pub baggage: Box<[NamedValues<Expression>]>,
    /// Status with its description.
    pub status: Option<(OtelStatus, Box<[Expression]>)>,
    /// The carrier that its context is injected into.
    pub inject: Option<OtelCarrier>,
}

#[derive(Debug, PartialEq)]
pub struct OtelSpanEvent {
    pub name: Box<str>,
    /// Key of the attribute.
    pub key: Box<str>,
    /// Parts of the attribute's value.
    pub value: Box<[Expression]>,
}

/// The carrier of a context.
#[derive(Debug, PartialEq, Eq)]
pub struct OtelCarrier {
    pub name: Box<str>,
    /// Names of the fields `traceparent`, `tracestate` and `baggage`, with the prefix; `None` if the context is not in
    /// fields.
    pub fields: Option<[Box<[u8]>; 3]>,
    /// The context is kept with the stream.
    pub kept: bool,
}

/// A reference by name in a scope.
#[derive(Debug, PartialEq, Eq)]
pub enum OtelReference {
    /// The index of a span.
    Span(usize),
    /// An extracted context.
    Context(Box<str>),
}

/// A target of `finish`.
#[derive(Debug, PartialEq, Eq)]
pub enum OtelFinish {
    All,
    /// Spans of the request.
    Request,
    /// Spans of the response.
    Response,
    One(OtelReference),
}
