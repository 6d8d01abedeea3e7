//! Any bytes as `traceparent` and `tracestate` fields: no panic, what is written is read as the same, and a list that was passed on
//! once is passed on unchanged.

use wire::trace_context::{LENGTH, TraceContext, state};

/// Runs on one input; panics where a promise is broken.
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
