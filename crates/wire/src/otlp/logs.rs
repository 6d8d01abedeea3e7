//! Log records (`opentelemetry/proto/logs/v1/logs.proto`). Must never decide which are told.

use super::message::Message;
use super::{SpanContext, Value, any_value, attribute};

/// A log record.
#[derive(Debug, Clone, Copy)]
pub struct LogRecord<'a> {
    /// Nanoseconds since the UNIX epoch.
    pub time: u64,
    /// From 1, `trace`, to 24, `fatal4`.
    pub severity: u8,
    /// How its source calls that.
    pub severity_text: &'a str,
    /// The name of the event that it tells of; empty: none.
    pub event: &'a str,
    /// What it says.
    pub body: Value<'a>,
    /// The span that it belongs to.
    pub span: Option<SpanContext>,
}

impl LogRecord<'_> {
    /// Writes it, with attributes.
    pub fn write<'v>(&self, out: &mut Vec<u8>, attributes: impl Iterator<Item = (&'v str, Value<'v>)>) {
        let mut record = Message::new(out);
        record.fixed64(1, self.time);
        record.number(2, u64::from(self.severity));
        record.text(3, self.severity_text.as_bytes());
        record.nested(5, |any| any_value(any, self.body));
        attributes.for_each(|(key, value)| attribute(&mut record, 6, key, value));
        if let Some(span) = self.span {
            record.fixed32(8, 1);
            record.bytes(9, &span.trace_id);
            record.bytes(10, &span.span_id);
        }
        record.fixed64(11, self.time);
        record.text(12, self.event.as_bytes());
    }
}
