//! OpenTelemetry, ready to run: where telemetry is sent, which streams of a frontend are traced, and the scopes of `filter otel`.
//! Must never send anything.

use std::sync::Arc;
use std::time::Duration;

use config::spec::{OtelEvent, OtelStatus};
use expression::Expression;
use expression::condition::Condition;
use expression::log_format::LogFormat;
use wire::otlp::Signal;

/// A name and what stands under it.
pub type Named<T> = (Box<str>, Box<[T]>);

/// Where telemetry of one kind goes.
#[derive(Debug, Clone, PartialEq)]
pub struct OtelExporter {
    /// The kind.
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
    /// Items that wait at most.
    pub queue: usize,
    /// Items in a request at most.
    pub batch: usize,
}

/// `otel-metrics`: which metrics are sent.
#[derive(Debug, Clone, PartialEq)]
pub struct OtelMetrics {
    /// How often.
    pub interval: Duration,
    /// Groups of metrics, by their places in [`config::spec::METRIC_SCOPES`]; none: all of them.
    pub scopes: Box<[usize]>,
    /// What protocols count of themselves, too.
    pub extra_counters: bool,
    /// No servers in maintenance.
    pub no_maint: bool,
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

/// A `filter otel`.
#[derive(Debug, PartialEq)]
pub struct OtelFilter {
    /// Its name.
    pub name: Box<str>,
    /// Its place among [`super::Program::otel_exporters`].
    pub exporter: usize,
    /// The parent decides whether a trace is recorded, where there is one.
    pub parent_based: bool,
    /// The share of the other traces that is recorded, of 2^63.
    pub share: u64,
    /// `rate-limit`, of 2^63.
    pub rate: u64,
    /// `option hard-errors`.
    pub hard_errors: bool,
    /// The names of its spans.
    pub spans: Box<[Box<str>]>,
    /// Its scopes.
    pub scopes: Box<[OtelScope]>,
    /// Groups: their names, and the places of their scopes.
    pub groups: Box<[Named<usize>]>,
}

// What an expression is made of is equal to itself.
impl Eq for OtelFilter {}

/// An `otel-scope`.
#[derive(Debug, PartialEq)]
pub struct OtelScope {
    /// When it runs by itself.
    pub event: Option<OtelEvent>,
    /// Whether it runs.
    pub condition: Option<Condition>,
    /// Contexts that are read first.
    pub extracts: Box<[OtelCarrier]>,
    /// Spans that are opened or changed.
    pub spans: Box<[OtelSpan]>,
    /// What is finished then.
    pub finish: Box<[OtelFinish]>,
}

/// A span of a scope.
#[derive(Debug, PartialEq)]
pub struct OtelSpan {
    /// Its place among the names of spans.
    pub span: usize,
    /// A trace begins with it.
    pub root: bool,
    /// What it belongs to.
    pub parent: Option<OtelReference>,
    /// What it refers to.
    pub links: Box<[OtelReference]>,
    /// Attributes.
    pub attributes: Box<[Named<Expression>]>,
    /// Events, each with one attribute.
    pub events: Box<[OtelSpanEvent]>,
    /// Baggage.
    pub baggage: Box<[Named<Expression>]>,
    /// How it ends.
    pub status: Option<(OtelStatus, Box<[Expression]>)>,
    /// Where its context is written to.
    pub inject: Option<OtelCarrier>,
}

/// An event of a span.
#[derive(Debug, PartialEq)]
pub struct OtelSpanEvent {
    /// Its name.
    pub name: Box<str>,
    /// The name of its attribute.
    pub key: Box<str>,
    /// What that is put together of.
    pub value: Box<[Expression]>,
}

/// Where a context is.
#[derive(Debug, PartialEq, Eq)]
pub struct OtelCarrier {
    /// Its name.
    pub name: Box<str>,
    /// Fields `traceparent`, `tracestate` and `baggage`, with the prefix; none: it is not in fields.
    pub fields: Option<[Box<[u8]>; 3]>,
    /// It is kept with the stream.
    pub kept: bool,
}

/// What a name of a scope means.
#[derive(Debug, PartialEq, Eq)]
pub enum OtelReference {
    /// A span, by its place.
    Span(usize),
    /// A context that was read.
    Context(Box<str>),
}

/// What is finished.
#[derive(Debug, PartialEq, Eq)]
pub enum OtelFinish {
    /// Every span.
    All,
    /// Those of the request.
    Request,
    /// Those of the response.
    Response,
    /// A span or a context.
    One(OtelReference),
}
