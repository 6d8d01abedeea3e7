//! OTLP (opentelemetry-proto 1.x): telemetry as Protocol Buffers for collectors. A span, a log record or a metric is
//! encoded on its own and added to a request later. Must never decide what is exported.

mod answer;
mod logs;
mod message;
mod metrics;
mod request;
mod trace;

pub use answer::{PartialSuccess, partial_success};
pub use logs::LogRecord;
pub use message::Message;
pub use metrics::{Metric, Point, Shape};
pub use request::{Scope, Signal, request};
pub use trace::{Kind, SpanContext, SpanEvent, SpanHead, Status};

/// The value of an attribute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Text. Invalid UTF-8 is replaced by U+FFFD: a collector would reject the request otherwise.
    Text(&'a [u8]),
    Int(i64),
    Bool(bool),
}

/// Appends a `KeyValue` as a field of a message.
pub fn attribute(out: &mut Message<'_>, field: u32, key: &str, value: Value<'_>) {
    out.nested(field, |pair| {
        pair.text(1, key.as_bytes());
        pair.nested(2, |any| any_value(any, value));
    });
}

/// Encodes an `AnyValue`.
fn any_value(any: &mut Message<'_>, value: Value<'_>) {
    match value {
        // Members of a `oneof` are always encoded, even an empty text.
        Value::Text(text) => any.present_text(1, text),
        Value::Bool(flag) => any.present_number(2, u64::from(flag)),
        Value::Int(number) => any.present_number(3, number as u64),
    }
}

#[cfg(test)]
mod decoder;
#[cfg(test)]
mod tests;
