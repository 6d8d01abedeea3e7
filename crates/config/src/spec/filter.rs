//! Filters (configuration manual, sections 4 and 9): what stands in the way of a proxy's streams, in the order in which it
//! was declared. Must never know what a filter does.

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
    /// `filter grpc-web`, Weir's own.
    GrpcWeb,
    /// `filter cache`.
    Cache {
        /// The cache.
        name: String,
        /// It has a line of its own; else a rule with the cache implies it.
        explicit: bool,
    },
    /// `filter fcgi-app`: the place of [`super::ProxySpec::fcgi_app`] among the filters.
    FcgiApp,
    /// `filter comp-req` and `filter comp-res`.
    Compression {
        /// It compresses requests; else responses.
        upload: bool,
        /// It has a line of its own; else `compression direction` decides whether it compresses.
        explicit: bool,
    },
    /// `filter spoe`.
    Spoe(SpoeFilterSpec),
    /// `filter otel` and `filter opentelemetry`.
    Otel(OtelFilterSpec),
    /// `filter lua.<name>`: one that a script registered.
    Script(ScriptFilterSpec),
}

impl FilterSpec {
    /// The word behind `filter`.
    pub fn name(&self) -> &str {
        match self {
            Self::Bandwidth(limit) if limit.upload => "bwlim-in",
            Self::Bandwidth(_) => "bwlim-out",
            Self::Trace(_) => "trace",
            Self::GrpcWeb => "grpc-web",
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

/// A filter that a script registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptFilterSpec {
    /// Its name, `lua.` included.
    pub name: Spanned<String>,
    /// The words after it.
    pub arguments: Vec<String>,
}

/// `filter bwlim-in` and `filter bwlim-out` (section 9.7).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BandwidthSpec {
    /// The name that rules call it by.
    pub name: String,
    /// It limits what the client sends; else what it gets.
    pub upload: bool,
    /// `default-limit`, bytes in a period; more than zero.
    pub limit: u32,
    /// `default-period`, milliseconds; more than zero.
    pub period: u32,
    /// `min-size`, bytes.
    pub min_size: u32,
    /// The limit is for all streams of a key; `limit` is its `limit`, and the period is the table's.
    pub shared: Option<SharedLimitSpec>,
}

/// What streams share a limit by: `key` and `table` of a `bwlim-in` or `bwlim-out` filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedLimitSpec {
    /// The words of `key`.
    pub key: RuleLineSpec,
    /// `table`; `None`: the one of the proxy.
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
