//! Any bytes as `traceparent` and `tracestate` fields: no panic, contexts round-trip, and a forwarded list is forwarded
//! unchanged the next time.

use wire::trace_context::{LENGTH, TraceContext, state};

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    if let Some(context) = TraceContext::parse(data) {
        let text = context.encode();
        assert_eq!(text.len(), LENGTH);
        assert_eq!(TraceContext::parse(&text), Some(context));
        assert!(context.trace_id != [0; 16] && context.span_id != [0; 8]);
    }
    if let Some(joined) = state(data.split(|byte| *byte == b'\n')) {
        assert!(joined.len() <= 512);
        assert_eq!(state([&*joined].into_iter()), Some(joined.clone()));
    }
}
