//! Filters (configuration manual, sections 4 and 9) of a proxy's streams, in the order of their
//! declaration. Must never implement a filter.

use super::{OtelFilterSpec, RuleLineSpec, SpoeFilterSpec};
use crate::span::Spanned;

/// The filters of a proxy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FiltersSpec {
    /// `filter` lines.
    pub list: Vec<FilterSpec>,
    /// `filter-sequence request`: names of filters; `None`: as declared.
    pub request: Option<Spanned<Vec<String>>>,
    /// `filter-sequence response`.
    pub response: Option<Spanned<Vec<String>>>,
}

/// One filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterSpec {
    /// `filter bwlim-in` and `filter bwlim-out`.
    Bandwidth(BandwidthSpec),
    /// `filter trace`.
    Trace(TraceSpec),
    /// A filter that needs nothing else of the configuration.
    Plain(PlainFilter),
    /// `filter cache`.
    Cache {
        name: String,
        /// Declared by a line; otherwise implied by a rule with the cache.
        explicit: bool,
    },
    /// `filter fcgi-app`: the position of [`super::ProxySpec::fcgi_app`] among the filters.
    FcgiApp,
    /// `filter comp-req` and `filter comp-res`.
    Compression {
        /// Compresses requests; otherwise responses.
        upload: bool,
        /// Declared by a line; otherwise `compression direction` decides whether it is active.
        explicit: bool,
    },
    /// `filter spoe`.
    Spoe(SpoeFilterSpec),
    /// `filter otel` and `filter opentelemetry`.
    Otel(OtelFilterSpec),
    /// `filter lua.<name>`: registered by a script.
    Script(ScriptFilterSpec),
}

impl FilterSpec {
    /// Returns the word after `filter`.
    pub fn name(&self) -> &str {
        match self {
            Self::Bandwidth(limit) if limit.upload => "bwlim-in",
            Self::Bandwidth(_) => "bwlim-out",
            Self::Trace(_) => "trace",
            Self::Plain(own) => own.name(),
            Self::Cache { .. } => "cache",
            Self::FcgiApp => "fcgi-app",
            Self::Compression { upload: true, .. } => "comp-req",
            Self::Compression { upload: false, .. } => "comp-res",
            Self::Spoe(_) => "spoe",
            Self::Otel(own) => own.keyword,
            Self::Script(own) => &own.name.value,
        }
    }
}

/// A filter whose line refers to nothing else of the configuration: the engine gets what was parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlainFilter {
    /// `filter grpc-web`, Weir only.
    GrpcWeb,
}

impl PlainFilter {
    fn name(&self) -> &'static str {
        match self {
            Self::GrpcWeb => "grpc-web",
        }
    }
}

/// A filter registered by a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptFilterSpec {
    /// The name, including `lua.`.
    pub name: Spanned<String>,
    /// The words after the name.
    pub arguments: Vec<String>,
}

/// `filter bwlim-in` and `filter bwlim-out` (section 9.7).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BandwidthSpec {
    /// The name used by rules.
    pub name: String,
    /// Limits data sent by the client; otherwise data sent to it.
    pub upload: bool,
    /// `default-limit`, bytes per period; above 0.
    pub limit: u32,
    /// `default-period`, milliseconds; above 0.
    pub period: u32,
    /// `min-size`, bytes.
    pub min_size: u32,
    /// The limit applies to all streams with the same key: `limit` is then the option `limit`, and the period is the
    /// table's.
    pub shared: Option<SharedLimitSpec>,
}

/// `key` and `table` of a `bwlim-in` or `bwlim-out` filter, by which streams share a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedLimitSpec {
    /// The words of `key`.
    pub key: RuleLineSpec,
    /// `table`; `None`: the table of the proxy.
    pub table: Option<Spanned<String>>,
}

/// `filter trace` (section 9.1).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceSpec {
    /// `name`.
    pub name: Option<String>,
    /// `quiet`.
    pub quiet: bool,
    /// `random-forwarding`.
    pub random_forwarding: bool,
    /// `max-fwd`, bytes; 0: no limit.
    pub max_forward: u32,
    /// `hexdump`.
    pub hexdump: bool,
}
