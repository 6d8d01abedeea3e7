//! OpenTelemetry: destination of telemetry, traced streams, and the content of the files of `filter otel`. Must never
//! depend on messages of OTLP.

use super::RuleLineSpec;
use crate::span::{Span, Spanned};

/// `otel-exporter`: destination of telemetry, Weir only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtelExporterSpec {
    pub span: Span,
    /// The base URL, to which the path of each signal is added.
    pub url: String,
    /// `header`: header fields of each request.
    pub headers: Vec<(String, String)>,
    /// `service`: `service.name`; `None`: `weir`.
    pub service: Option<String>,
    /// `resource`: further resource attributes.
    pub resource: Vec<(String, String)>,
    /// `interval`, milliseconds: maximum delay of a span before it is sent.
    pub interval: Option<u64>,
    /// `timeout`, milliseconds: maximum response time of the collector.
    pub timeout: Option<u64>,
    /// `queue`: maximum number of queued spans.
    pub queue: Option<u32>,
    /// `batch`: maximum number of spans in a request.
    pub batch: Option<u32>,
}

/// `otel-metrics`: metrics to export, Weir only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtelMetricsSpec {
    pub span: Span,
    /// `interval`, milliseconds between two exports.
    pub interval: Option<u64>,
    /// `scope`: groups of metrics, as indices into [`METRIC_SCOPES`]; empty: all of them.
    pub scopes: Vec<usize>,
    /// `extra-counters`: include counters of protocols.
    pub extra_counters: bool,
    /// `no-maint`: exclude servers in maintenance.
    pub no_maint: bool,
}

/// Groups of metrics, as the service `prometheus-exporter` names them (its parameter `scope`).
pub const METRIC_SCOPES: [&str; 12] = [
    "global",
    "frontend",
    "listener",
    "backend",
    "server",
    "sticktable",
    "resolver",
    "certificate",
    "store",
    "bgp",
    "udp",
    "auth-cache",
];

/// `otel-trace` of a frontend, Weir only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtelTraceSpec {
    pub span: Span,
    /// `sample`, in millionths of a percent.
    pub sample: u32,
    /// `name`: a log format.
    pub name: Option<Spanned<String>>,
    /// `attribute`: names, each with a log format.
    pub attributes: Vec<(String, Spanned<String>)>,
}

/// `sample 100`.
pub const WHOLE_SAMPLE: u32 = 100_000_000;

/// `filter otel` and `filter opentelemetry`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtelFilterSpec {
    pub span: Span,
    /// The word after `filter`.
    pub keyword: &'static str,
    /// `id`; `None`: `otel-filter`.
    pub id: Option<Spanned<String>>,
    /// `config`, as written.
    pub file: Spanned<String>,
    /// The path under which the file is opened.
    pub path: String,
    /// Index in [`super::SectionsSpec::otel_filters`]; `None`: the file was not read, or lacks a required part.
    pub content: Option<usize>,
    /// Groups that rules may run.
    pub groups: Vec<String>,
}

impl OtelFilterSpec {
    /// Returns the name used in the file and in rules.
    pub fn name(&self) -> &str {
        self.id.as_ref().map_or("otel-filter", |id| &id.value)
    }
}

/// Content of the files of a filter.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OtelFileSpec {
    /// The filter's line in the configuration.
    pub span: Span,
    pub name: String,
    /// ACLs of `otel-instrumentation`.
    pub acls: Vec<RuleLineSpec>,
    /// `config`: the file of the pipeline, as written, and its path.
    pub config: Option<(Spanned<String>, String)>,
    /// `groups`.
    pub used_groups: Vec<Spanned<String>>,
    /// `scopes`.
    pub used_scopes: Vec<Spanned<String>>,
    /// `option disabled`.
    pub disabled: bool,
    /// `option hard-errors`.
    pub hard_errors: bool,
    /// `rate-limit`, in millionths of a percent; `None`: all.
    pub rate_limit: Option<u32>,
    /// `otel-scope` sections.
    pub scopes: Vec<OtelScopeSpec>,
    /// `otel-group` sections, and the scopes that they name.
    pub groups: Vec<(Spanned<String>, Vec<Spanned<String>>)>,
    /// Content of the pipeline's file.
    pub pipeline: Option<OtelPipelineSpec>,
}

/// An `otel-scope` section.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OtelScopeSpec {
    pub name: Spanned<String>,
    /// ACLs of this scope.
    pub acls: Vec<RuleLineSpec>,
    /// `extract`.
    pub extracts: Vec<OtelCarrierSpec>,
    /// `span`, each with the keywords that follow it.
    pub spans: Vec<OtelSpanSpec>,
    /// `finish`.
    pub finish: Vec<Spanned<String>>,
    /// `otel-event`, and its condition.
    pub event: Option<(OtelEvent, RuleLineSpec)>,
}

/// Carrier that a context is injected into or extracted from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OtelCarrierSpec {
    /// The prefix, which names the context; `-`: the fields have the names of W3C Trace Context.
    pub prefix: Spanned<String>,
    /// `use-headers`, the default.
    pub headers: bool,
    /// `use-vars`.
    pub variables: bool,
}

/// A `span`, with the keywords that follow it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OtelSpanSpec {
    pub name: Spanned<String>,
    /// `root`.
    pub root: bool,
    /// `parent`: a span or a context.
    pub parent: Option<Spanned<String>>,
    /// `link`: spans or contexts.
    pub links: Vec<Spanned<String>>,
    /// `attribute`: name and samples.
    pub attributes: Vec<(String, RuleLineSpec)>,
    /// `event`: name, name of the attribute, and samples.
    pub events: Vec<(String, String, RuleLineSpec)>,
    /// `baggage`: name and samples.
    pub baggage: Vec<(String, RuleLineSpec)>,
    /// `status`: code and samples.
    pub status: Option<(OtelStatus, RuleLineSpec)>,
    /// `inject`.
    pub inject: Option<OtelCarrierSpec>,
}

/// `status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OtelStatus {
    #[default]
    Ignore,
    Unset,
    Ok,
    Error,
}

impl OtelStatus {
    /// All codes with their names.
    pub const NAMES: [(&str, Self); 4] =
        [("ignore", Self::Ignore), ("unset", Self::Unset), ("ok", Self::Ok), ("error", Self::Error)];
}

/// Content of the YAML file of a filter.
#[derive(Debug, Clone, PartialEq)]
pub struct OtelPipelineSpec {
    /// Exporter of spans, with the full URL of the signal.
    pub exporter: OtelExporterSpec,
    /// `scope_name`.
    pub scope: Option<String>,
    pub sampler: OtelSampler,
}

/// Selection of recorded traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OtelSampler {
    /// The parent's decision applies if there is one.
    pub parent_based: bool,
    /// The recorded share of the other traces, in millionths of a percent.
    pub share: u32,
}

/// Event at which a scope runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum OtelEvent {
    StreamStart,
    StreamStop,
    BackendSet,
    ClientSessionStart,
    FrontendTcpRequest,
    HttpWaitRequest,
    HttpBodyRequest,
    FrontendHttpRequest,
    SwitchingRulesRequest,
    BackendTcpRequest,
    BackendHttpRequest,
    ProcessServerRulesRequest,
    HttpProcessRequest,
    TcpRdpCookieRequest,
    ProcessStickingRulesRequest,
    HttpHeadersRequest,
    HttpEndRequest,
    ClientSessionEnd,
    ServerUnavailable,
    ServerSessionStart,
    TcpResponse,
    HttpWaitResponse,
    ProcessStoreRulesResponse,
    HttpResponse,
    HttpHeadersResponse,
    HttpEndResponse,
    HttpReply,
    ServerSessionEnd,
}

impl OtelEvent {
    /// All events with their names.
    pub const NAMES: [(&str, Self); 28] = [
        ("on-stream-start", Self::StreamStart),
        ("on-stream-stop", Self::StreamStop),
        ("on-backend-set", Self::BackendSet),
        ("on-client-session-start", Self::ClientSessionStart),
        ("on-frontend-tcp-request", Self::FrontendTcpRequest),
        ("on-http-wait-request", Self::HttpWaitRequest),
        ("on-http-body-request", Self::HttpBodyRequest),
        ("on-frontend-http-request", Self::FrontendHttpRequest),
        ("on-switching-rules-request", Self::SwitchingRulesRequest),
        ("on-backend-tcp-request", Self::BackendTcpRequest),
        ("on-backend-http-request", Self::BackendHttpRequest),
        ("on-process-server-rules-request", Self::ProcessServerRulesRequest),
        ("on-http-process-request", Self::HttpProcessRequest),
        ("on-tcp-rdp-cookie-request", Self::TcpRdpCookieRequest),
        ("on-process-sticking-rules-request", Self::ProcessStickingRulesRequest),
        ("on-http-headers-request", Self::HttpHeadersRequest),
        ("on-http-end-request", Self::HttpEndRequest),
        ("on-client-session-end", Self::ClientSessionEnd),
        ("on-server-unavailable", Self::ServerUnavailable),
        ("on-server-session-start", Self::ServerSessionStart),
        ("on-tcp-response", Self::TcpResponse),
        ("on-http-wait-response", Self::HttpWaitResponse),
        ("on-process-store-rules-response", Self::ProcessStoreRulesResponse),
        ("on-http-response", Self::HttpResponse),
        ("on-http-headers-response", Self::HttpHeadersResponse),
        ("on-http-end-response", Self::HttpEndResponse),
        ("on-http-reply", Self::HttpReply),
        ("on-server-session-end", Self::ServerSessionEnd),
    ];

    /// Returns the event of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, event)| *event)
    }

    /// Whether the event belongs to the response or follows it.
    pub fn is_of_response(self) -> bool {
        self as u8 >= Self::ServerSessionStart as u8 && self != Self::ServerSessionStart
    }
}
