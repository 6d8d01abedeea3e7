//! The filters of a proxy (configuration manual, section 9). Must never hold state of a stream.

use super::OtelFilter;
use config::spec::{CompressionAlgorithm, PlainFilter};
use expression::Expression;
use std::sync::Arc;
use std::time::Duration;

/// The filters of a proxy and their order for each direction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filters {
    /// Streams have filters from the start: some are declared, or rules may add some to a response. A cache filter that
    /// a rule implies is added when the rule stores a response.
    pub are_wanted: bool,
    /// The filters, as declared.
    pub list: Box<[Filter]>,
    /// The OpenTelemetry filters, as declared.
    pub otel: Box<[Arc<OtelFilter>]>,
    /// Indices of the filters for data to the server, in order.
    pub request: Box<[usize]>,
    /// Indices of the filters for data to the client, in order.
    pub response: Box<[usize]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// `filter bwlim-in` and `filter bwlim-out`.
    Bandwidth(Bandwidth),
    /// A bandwidth limit that is shared by all streams of a key.
    SharedBandwidth(Arc<SharedBandwidth>),
    /// `filter trace`.
    Trace(Arc<Trace>),
    /// A filter that needs nothing else of the configuration.
    Plain(PlainFilter),
    /// `filter cache`.
    Cache(CacheFilter),
    /// `filter fcgi-app`: only a position in the order.
    FcgiApp,
    /// `filter comp-req` and `filter comp-res`.
    Compression(CompressionFilter),
    /// `filter spoe`: its messages are sent by rules.
    Spoe,
    /// `filter otel`: its definition is in [`Filters::otel`].
    Otel,
    /// A filter registered by a script.
    Script(Arc<ScriptFilter>),
}

/// A filter registered by a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptFilter {
    /// Registration number.
    pub number: usize,
    /// Name without `lua.`.
    pub name: Box<str>,
    /// The words of its line.
    pub arguments: Box<[Box<str>]>,
}

/// A filter that stores responses in a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheFilter {
    /// Index in [`super::Program::caches`].
    pub cache: usize,
    /// Implied by a rule: it processes responses before all other filters.
    pub first: bool,
}

/// A filter that compresses one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressionFilter {
    /// Whether it compresses requests instead of responses.
    pub upload: bool,
    /// If false, it is only a position in the order (`compression direction`).
    pub enabled: bool,
}

/// The `compression` parameters. Of a frontend and a backend, each parameter is that of the backend if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compression {
    /// Algorithms for responses, in reverse order of configuration: of two with the same coding, the first one here is
    /// used.
    pub algorithms: Box<[CompressionAlgorithm]>,
    /// The algorithm for requests.
    pub request_algorithm: Option<CompressionAlgorithm>,
    /// Prefixes of the media types of responses, in lower case; empty for all types.
    pub types: Box<[Box<str>]>,
    /// Prefixes of the media types of requests, in lower case; empty for all types.
    pub request_types: Box<[Box<str>]>,
    /// Minimum length of a response in bytes; 0 if not specified.
    pub least: u64,
    /// Minimum length of a request's body in bytes; 0 if not specified.
    pub request_least: u64,
    /// Remove Accept-Encoding from requests to servers.
    pub offload: bool,
}

/// A bandwidth limit per stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bandwidth {
    /// Whether it limits data from the client instead of data to it.
    pub upload: bool,
    /// Default limit in bytes per period.
    pub limit: u64,
    /// Default period.
    pub period: Duration,
    /// Minimum number of bytes forwarded at once, if available.
    pub min_size: u64,
}

/// A bandwidth limit for all streams of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedBandwidth {
    /// Whether it limits data from clients instead of data to them.
    pub upload: bool,
    /// Default limit in bytes per period of the table's rate.
    pub limit: u64,
    /// Minimum number of bytes forwarded at once, if available.
    pub min_size: u64,
    /// Index of the stick table with the rate.
    pub table: usize,
    pub key: Expression,
}

/// A `filter trace`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// The name of the filter and of its proxy.
    pub label: Box<str>,
    /// Print nothing.
    pub quiet: bool,
    /// Forward a random part of the data at a time.
    pub random_forwarding: bool,
    /// Maximum number of bytes forwarded at once.
    pub most: Option<usize>,
    /// Print the data.
    pub hexdump: bool,
}
