//! Encodes log records (`opentelemetry/proto/logs/v1/logs.proto`). Must never decide which are exported.

use super::message::Message;
use super::{SpanContext, Value, any_value, attribute};

#[derive(Debug, Clone, Copy)]
pub struct LogRecord<'a> {
    /// Nanoseconds since the UNIX epoch.
    pub time: u64,
    /// Severity number, from 1 (`TRACE`) to 24 (`FATAL4`).
    pub severity: u8,
    /// The source's name of the severity.
    pub severity_text: &'a str,
    /// The event name; empty if none.
    pub event: &'a str,
    /// The body of the record.
    pub body: Value<'a>,
    /// The span that the record belongs to.
    pub span: Option<SpanContext>,
}

impl LogRecord<'_> {
    /// Encodes the record with its attributes.
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
