//! The filters of a proxy, ready to be attached to streams (configuration manual, section 9). Must never hold what belongs
//! to one stream.

use super::OtelFilter;
use config::spec::CompressionAlgorithm;
use expression::Expression;
use std::sync::Arc;
use std::time::Duration;

/// The filters of a proxy and the orders in which they see both directions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filters {
    /// Streams have filters from their beginning: some are declared, or rules may attach some to a response. A cache's that a rule
    /// implies is attached where it stores.
    pub are_wanted: bool,
    /// As declared.
    pub list: Box<[Filter]>,
    /// Those that tell a collector, as declared.
    pub otel: Box<[Arc<OtelFilter>]>,
    /// Which of them see what goes to the server, in this order.
    pub request: Box<[usize]>,
    /// Which of them see what goes to the client, in this order.
    pub response: Box<[usize]>,
}

/// One filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// `filter bwlim-in` and `filter bwlim-out`.
    Bandwidth(Bandwidth),
    /// The same for all streams of a key.
    SharedBandwidth(Arc<SharedBandwidth>),
    /// `filter trace`.
    Trace(Arc<Trace>),
    /// `filter grpc-web`.
    GrpcWeb,
    /// `filter cache`.
    Cache(CacheFilter),
    /// `filter fcgi-app`: a place among the others.
    FcgiApp,
    /// `filter comp-req` and `filter comp-res`.
    Compression(CompressionFilter),
    /// `filter spoe`: what it asks an agent is asked by rules.
    Spoe,
    /// `filter otel`: what it tells is in [`Filters::otel`].
    Otel,
    /// One that a script registered.
    Script(Arc<ScriptFilter>),
}

/// A filter that a script registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptFilter {
    /// The number that it was registered by.
    pub number: usize,
    /// Its name, without `lua.`.
    pub name: Box<str>,
    /// The words of its line.
    pub arguments: Box<[Box<str>]>,
}

/// A filter that stores responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheFilter {
    /// Index of the cache.
    pub cache: usize,
    /// A rule implies it: it sees responses before all other filters do.
    pub first: bool,
}

/// A filter that compresses one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressionFilter {
    /// It compresses requests; else responses.
    pub upload: bool,
    /// Without it, it is there for its place among the filters alone (`compression direction`).
    pub enabled: bool,
}

/// What `compression` lines say. Of a frontend and a backend, each setting is the backend's, if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compression {
    /// Algorithms for responses, the last one written first: of two with one coding, that one is used.
    pub algorithms: Box<[CompressionAlgorithm]>,
    /// The algorithm for requests.
    pub request_algorithm: Option<CompressionAlgorithm>,
    /// Beginnings of the media types of responses, in lower case; none: all.
    pub types: Box<[Box<str>]>,
    /// The same of requests.
    pub request_types: Box<[Box<str>]>,
    /// Bytes that a response has at least; 0: not written.
    pub least: u64,
    /// The same of requests.
    pub request_least: u64,
    /// Servers are not asked for codings.
    pub offload: bool,
}

/// A limit of bandwidth for each stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bandwidth {
    /// It limits what the client sends; else what it gets.
    pub upload: bool,
    /// Bytes in a period, where the rule that enables it says nothing else.
    pub limit: u64,
    /// That period, likewise.
    pub period: Duration,
    /// Bytes that go on at once at least, where so many are there.
    pub min_size: u64,
}

/// A limit of bandwidth for all streams of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedBandwidth {
    /// It limits what clients send; else what they get.
    pub upload: bool,
    /// Bytes in a period of the table's rate, where the rule that enables it says nothing else.
    pub limit: u64,
    /// Bytes that go on at once at least, where so many are there.
    pub min_size: u64,
    /// Index of the table that counts them.
    pub table: usize,
    /// The key.
    pub key: Expression,
}

/// A filter that tells what it sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Its name and its proxy's.
    pub label: Box<str>,
    /// It tells nothing.
    pub quiet: bool,
    /// It lets a random share of the data go on at a time.
    pub random_forwarding: bool,
    /// Bytes that it lets go on at once at most.
    pub most: Option<usize>,
    /// It shows the data.
    pub hexdump: bool,
}
