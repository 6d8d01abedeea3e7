//! Spans (`opentelemetry/proto/trace/v1/trace.proto`): what is known when one begins, then attributes, events and links as they
//! come, and its end. Must never hold more than its bytes.

use super::message::Message;
use super::{Value, attribute};

/// Which side of a call a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// Neither.
    #[default]
    Internal = 1,
    /// It serves a request.
    Server = 2,
    /// It sends a request.
    Client = 3,
}

/// How a span ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Status {
    /// Nothing is said.
    #[default]
    Unset = 0,
    /// Well, as whoever owns the span judges.
    Ok = 1,
    /// With an error.
    Error = 2,
}

/// The names of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanContext {
    /// Of its trace.
    pub trace_id: [u8; 16],
    /// Its own.
    pub span_id: [u8; 8],
}

/// What every span has.
#[derive(Debug, Clone, Copy)]
pub struct SpanHead<'a> {
    /// Its names.
    pub context: SpanContext,
    /// The span that it belongs to.
    pub parent: Option<[u8; 8]>,
    /// The parent is a span of another process.
    pub parent_is_remote: bool,
    /// `tracestate`.
    pub state: &'a [u8],
    /// The name.
    pub name: &'a [u8],
    /// Which side of a call it is.
    pub kind: Kind,
    /// Nanoseconds since the UNIX epoch.
    pub start: u64,
    /// The same for its end.
    pub end: u64,
}

/// Something that happened during a span.
#[derive(Debug, Clone, Copy)]
pub struct SpanEvent<'a> {
    /// Nanoseconds since the UNIX epoch.
    pub time: u64,
    /// The name.
    pub name: &'a [u8],
}

/// The flags of a span: it is sampled, and whether its parent is remote is known.
const SAMPLED: u32 = 1;
const HAS_IS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

impl SpanHead<'_> {
    /// Writes a span; `rest` adds attributes, events and links to it, and says how it ended.
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

/// What may be added to a span.
impl Message<'_> {
    /// An attribute of a span.
    pub fn span_attribute(&mut self, key: &str, value: Value<'_>) {
        attribute(self, 9, key, value);
    }

    /// An event of a span, with its attributes.
    pub fn span_event<'v>(&mut self, event: SpanEvent<'_>, attributes: impl Iterator<Item = (&'v str, Value<'v>)>) {
        self.nested(11, |written| {
            written.fixed64(1, event.time);
            written.text(2, event.name);
            attributes.for_each(|(key, value)| attribute(written, 3, key, value));
        });
    }

    /// A link of a span to another one.
    pub fn span_link(&mut self, to: SpanContext) {
        self.nested(13, |written| {
            written.bytes(1, &to.trace_id);
            written.bytes(2, &to.span_id);
        });
    }

    /// How a span ended. A description is for errors alone.
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
