//! Encodes spans (`opentelemetry/proto/trace/v1/trace.proto`): the data known at the start, then attributes, events and
//! links as they occur, and the end. Must never hold more than its bytes.

use super::message::Message;
use super::{Value, attribute};

/// The kind of a span: its side of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// An internal operation.
    #[default]
    Internal = 1,
    /// The server side of a request.
    Server = 2,
    /// The client side of a request.
    Client = 3,
}

/// The status of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Status {
    /// Not set.
    #[default]
    Unset = 0,
    /// Successful, in the judgement of the instrumented application.
    Ok = 1,
    /// Failed.
    Error = 2,
}

/// The identifiers of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanContext {
    pub trace_id: [u8; 16],
    pub span_id: [u8; 8],
}

/// The fields that every span has.
#[derive(Debug, Clone, Copy)]
pub struct SpanHead<'a> {
    pub context: SpanContext,
    /// ID of the parent span.
    pub parent: Option<[u8; 8]>,
    /// The parent is a span of another process.
    pub parent_is_remote: bool,
    /// The `tracestate`.
    pub state: &'a [u8],
    pub name: &'a [u8],
    pub kind: Kind,
    /// Start time in nanoseconds since the UNIX epoch.
    pub start: u64,
    /// End time in nanoseconds since the UNIX epoch.
    pub end: u64,
}

/// An event of a span.
#[derive(Debug, Clone, Copy)]
pub struct SpanEvent<'a> {
    /// Nanoseconds since the UNIX epoch.
    pub time: u64,
    pub name: &'a [u8],
}

/// Flags of a span: sampled, and whether it is known that its parent is remote.
const SAMPLED: u32 = 1;
const HAS_IS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

impl SpanHead<'_> {
    /// Encodes a span; `rest` adds attributes, events, links and the status.
    pub fn write(&self, out: &mut Vec<u8>, rest: impl FnOnce(&mut Message<'_>)) {
        let mut span = Message::new(out);
        span.bytes(1, &self.context.trace_id);
        span.bytes(2, &self.context.span_id);
        span.text(3, self.state);
        span.bytes(4, self.parent.as_ref().map_or(&[], |id| id.as_slice()));
        span.text(5, self.name);
        span.number(6, self.kind as u64);
        span.fixed64(7, self.start);
        span.fixed64(8, self.end.max(self.start));
        rest(&mut span);
        let remote = if self.parent_is_remote { IS_REMOTE } else { 0 };
        span.fixed32(16, SAMPLED | HAS_IS_REMOTE | remote);
    }
}

/// Fields that may be added to a span.
impl Message<'_> {
    /// Appends an attribute of a span.
    pub fn span_attribute(&mut self, key: &str, value: Value<'_>) {
        attribute(self, 9, key, value);
    }

    /// Appends an event of a span, with its attributes.
    pub fn span_event<'v>(&mut self, event: SpanEvent<'_>, attributes: impl Iterator<Item = (&'v str, Value<'v>)>) {
        self.nested(11, |written| {
            written.fixed64(1, event.time);
            written.text(2, event.name);
            attributes.for_each(|(key, value)| attribute(written, 3, key, value));
        });
    }

    /// Appends a link of a span to another one.
    pub fn span_link(&mut self, to: SpanContext) {
        self.nested(13, |written| {
            written.bytes(1, &to.trace_id);
            written.bytes(2, &to.span_id);
        });
    }

    /// Appends the status of a span. A description is only for errors.
    pub fn span_status(&mut self, status: Status, description: &[u8]) {
        if status != Status::Unset {
            self.nested(15, |written| {
                if status == Status::Error {
                    written.text(2, description);
                }
                written.number(3, status as u64);
            });
        }
    }
}
