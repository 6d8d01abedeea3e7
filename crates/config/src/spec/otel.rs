//! OpenTelemetry: where telemetry is sent, which streams are traced, and what the files of `filter otel` say. Must never know a
//! message of OTLP.

use super::RuleLineSpec;
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

/// `otel-metrics`: which metrics are sent, which is Weir's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtelMetricsSpec {
    /// The line.
    pub span: Span,
    /// `interval`, milliseconds: how often they are sent.
    pub interval: Option<u64>,
    /// `scope`: groups of metrics, by their places in [`METRIC_SCOPES`]; none: all of them.
    pub scopes: Vec<usize>,
    /// `extra-counters`: what protocols count of themselves, too.
    pub extra_counters: bool,
    /// `no-maint`: no servers in maintenance.
    pub no_maint: bool,
}

/// Groups of metrics, as the service `prometheus-exporter` names them (its parameter `scope`).
pub const METRIC_SCOPES: [&str; 7] = ["global", "frontend", "listener", "backend", "server", "sticktable", "resolver"];

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

/// `filter otel` and `filter opentelemetry`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtelFilterSpec {
    /// The line.
    pub span: Span,
    /// The word behind `filter`.
    pub keyword: &'static str,
    /// `id`; `None`: `otel-filter`.
    pub id: Option<Spanned<String>>,
    /// `config`, as written.
    pub file: Spanned<String>,
    /// The path under which the file is opened.
    pub path: String,
    /// Its place in [`super::SectionsSpec::otel_filters`]; `None`: the file was not read, or lacks what it has to have.
    pub content: Option<usize>,
    /// Groups that rules may run.
    pub groups: Vec<String>,
}

impl OtelFilterSpec {
    /// Its name, which the file and rules know it by.
    pub fn name(&self) -> &str {
        self.id.as_ref().map_or("otel-filter", |id| &id.value)
    }
}

/// What the files of a filter say.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OtelFileSpec {
    /// Its line in the configuration.
    pub span: Span,
    /// The filter's name.
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
    /// `rate-limit`, millionths of a percent; `None`: all.
    pub rate_limit: Option<u32>,
    /// `otel-scope` sections.
    pub scopes: Vec<OtelScopeSpec>,
    /// `otel-group` sections, and the scopes that they name.
    pub groups: Vec<(Spanned<String>, Vec<Spanned<String>>)>,
    /// What the file of the pipeline says.
    pub pipeline: Option<OtelPipelineSpec>,
}

/// An `otel-scope` section.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OtelScopeSpec {
    /// Its name.
    pub name: Spanned<String>,
    /// ACLs of its own.
    pub acls: Vec<RuleLineSpec>,
    /// `extract`.
    pub extracts: Vec<OtelCarrierSpec>,
    /// `span`, with what follows each.
    pub spans: Vec<OtelSpanSpec>,
    /// `finish`.
    pub finish: Vec<Spanned<String>>,
    /// `otel-event`, and the condition behind it.
    pub event: Option<(OtelEvent, RuleLineSpec)>,
}

/// Where a context is written to or read from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OtelCarrierSpec {
    /// The prefix, which names the context; `-`: the fields have the names of the W3C.
    pub prefix: Spanned<String>,
    /// `use-headers`, or nothing.
    pub headers: bool,
    /// `use-vars`.
    pub variables: bool,
}

/// A `span`, with the keywords that follow it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OtelSpanSpec {
    /// Its name.
    pub name: Spanned<String>,
    /// `root`.
    pub root: bool,
    /// `parent`: a span or a context.
    pub parent: Option<Spanned<String>>,
    /// `link`: spans or contexts.
    pub links: Vec<Spanned<String>>,
    /// `attribute`: the name, then samples.
    pub attributes: Vec<(String, RuleLineSpec)>,
    /// `event`: the name and the attribute's, then samples.
    pub events: Vec<(String, String, RuleLineSpec)>,
    /// `baggage`: the name, then samples.
    pub baggage: Vec<(String, RuleLineSpec)>,
    /// `status`: the code, then samples.
    pub status: Option<(OtelStatus, RuleLineSpec)>,
    /// `inject`.
    pub inject: Option<OtelCarrierSpec>,
}

/// `status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum OtelStatus {
    #[default]
    Ignore,
    Unset,
    Ok,
    Error,
}

impl OtelStatus {
    /// Every code by its name.
    pub const NAMES: [(&str, Self); 4] =
        [("ignore", Self::Ignore), ("unset", Self::Unset), ("ok", Self::Ok), ("error", Self::Error)];
}

/// What the YAML file of a filter says.
#[derive(Debug, Clone, PartialEq)]
pub struct OtelPipelineSpec {
    /// Where spans go: the address of the signal itself.
    pub exporter: OtelExporterSpec,
    /// `scope_name`.
    pub scope: Option<String>,
    /// Which traces are recorded.
    pub sampler: OtelSampler,
}

/// Which traces are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OtelSampler {
    /// The parent decides where there is one.
    pub parent_based: bool,
    /// The share of the others that is recorded, millionths of a percent.
    pub share: u32,
}

/// When a scope runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
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
    /// Every event by its name.
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

    /// By its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, event)| *event)
    }

    /// Whether it belongs to the response, or to what comes once there is one.
    pub fn is_of_response(self) -> bool {
        self as u8 >= Self::ServerSessionStart as u8 && self != Self::ServerSessionStart
    }
}
