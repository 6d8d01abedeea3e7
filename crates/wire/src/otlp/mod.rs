//! OTLP (opentelemetry-proto 1.x): telemetry as the messages of Protocol Buffers that collectors take. A span, a log record or
//! a metric is encoded on its own, and put into a request later. Must never decide what is told.

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

/// What an attribute is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Text. What is no UTF-8 is replaced by U+FFFD: a collector refuses the request otherwise.
    Text(&'a [u8]),
    /// A number.
    Int(i64),
    /// A truth value.
    Bool(bool),
}

/// Writes a `KeyValue` as that field of a message.
pub fn attribute(out: &mut Message<'_>, field: u32, key: &str, value: Value<'_>) {
    out.nested(field, |pair| {
        pair.text(1, key.as_bytes());
        pair.nested(2, |any| any_value(any, value));
    });
}

/// Writes an `AnyValue`.
fn any_value(any: &mut Message<'_>, value: Value<'_>) {
    match value {
        // An empty text is one: the member of a choice is always written.
        Value::Text(text) => any.present_text(1, text),
        Value::Bool(flag) => any.present_number(2, u64::from(flag)),
        Value::Int(number) => any.present_number(3, number as u64),
    }
}

#[cfg(test)]
mod decoder;
#[cfg(test)]
mod tests;
