//! Span and attempts of a stream that is traced (`otel-trace`). Must never encode a span.

use base::Moment;
use wire::trace_context::TraceContext;

/// Trace state of a stream.
pub struct StreamTrace {
    /// Context of its own span.
    pub(crate) context: TraceContext,
    /// ID of the client's span.
    pub(crate) parent: Option<[u8; 8]>,
    /// `tracestate`.
    pub(crate) state: Vec<u8>,
    /// Encoded attributes that are known at the beginning.
    pub(crate) begun: Vec<u8>,
    /// The current attempt.
    pub(crate) attempt: Option<Attempt>,
    /// The hedged second attempt.
    pub(crate) rival: Option<Attempt>,
    /// Number of attempts so far.
    pub(crate) attempts: u32,
}

/// An attempt to send the request to a server.
pub(crate) struct Attempt {
    pub(crate) span_id: [u8; 8],
    pub(crate) server: usize,
    pub(crate) since: Moment,
    /// Number of attempts before it.
    pub(crate) number: u32,
    /// It was the hedged second attempt and has won: it becomes the stream's attempt next.
    pub(crate) won: bool,
}
