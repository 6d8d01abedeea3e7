//! The recorders of a stream: counters, stick table entries, spans, traces, and the values of its log line. Must never change a
//! message or the course of a stream.

pub(super) mod capture_errors;
pub mod instrumentation;
pub(super) mod log_values;
pub mod metrics;
pub mod otel;
pub(crate) mod tracing;
pub(super) mod tracked;
pub mod tracking;
