//! Open spans and contexts of `filter otel` for a stream. Must never open or end one.

use std::sync::Arc;

use policy::program::OtelFilter;
use wire::otlp::Status;
use wire::trace_context::TraceContext;

/// A context that was extracted or stored.
#[derive(Clone)]
pub(crate) struct StoredContext {
    pub(crate) context: TraceContext,
    pub(crate) state: Vec<u8>,
    /// Whether it was received from another process.
    pub(crate) is_remote: bool,
}

/// An open span.
pub(crate) struct Open {
    pub(crate) own: StoredContext,
    pub(crate) parent: Option<StoredContext>,
    pub(crate) is_root: bool,
    /// It was opened by an event of the response.
    pub(crate) of_response: bool,
    pub(crate) start: u64,
    /// Attributes, events and links, encoded.
    pub(crate) rest: Vec<u8>,
    pub(crate) status: (Status, Vec<u8>),
}

/// State of one filter for a stream.
pub(crate) struct FilterSpans {
    pub(crate) filter: Arc<OtelFilter>,
    /// `rate-limit` has admitted the stream, and no error has ended it.
    pub(crate) is_active: bool,
    pub(crate) spans: Vec<Option<Open>>,
    pub(crate) contexts: Vec<(Box<str>, StoredContext)>,
    /// Comma-separated list of `name=value`.
    pub(crate) baggage: Vec<u8>,
    pub(crate) opened: u32,
}

/// State of all filters of a stream.
#[derive(Default)]
pub struct Instrumentation {
    pub(crate) courses: Vec<FilterSpans>,
    /// Fields to be set in the request before it is sent to a server.
    pub(crate) fields: Vec<(Box<[u8]>, Vec<u8>)>,
}
