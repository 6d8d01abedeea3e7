//! The one internal message head: start line, fields, and what the fields say about the body and the connection.
//!
//! It owns its text, so the buffer it came from is free at once, and it is reused between messages. It never judges: parsers do.

use super::{ConnectionOptions, Fields, Framing, Method, Version};

/// A stretch of the head's text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// The head of a request or a response.
#[derive(Debug, Clone, Default)]
pub struct Head {
    pub(crate) fields: Fields,
    pub(crate) method: Method,
    pub(crate) method_text: Span,
    pub(crate) target: Span,
    pub(crate) reason: Span,
    pub(crate) status: u16,
    pub(crate) version: Version,
    /// How the end of the body is known.
    pub framing: Framing,
    /// What the Connection field asked for.
    pub connection: ConnectionOptions,
    /// `Expect: 100-continue` was there.
    pub expect_continue: bool,
    /// An upgrade to another protocol is asked for (request) or granted (101 response): Connection says `upgrade` and Upgrade is there.
    pub upgrade: bool,
}

impl Head {
    /// An empty head; nothing is allocated.
    pub fn new() -> Head {
        Head::default()
    }

    /// Forgets the message and keeps the capacity.
    pub fn clear(&mut self) {
        let mut fields = std::mem::take(&mut self.fields);
        fields.clear();
        *self = Head { fields, ..Head::default() };
    }

    /// A request's method as it was written.
    pub fn method(&self) -> &[u8] {
        self.text(self.method_text)
    }

    /// The method, recognised.
    pub fn known_method(&self) -> Method {
        self.method
    }

    /// A request's target.
    pub fn target(&self) -> &[u8] {
        self.text(self.target)
    }

    /// A response's status code.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// A response's reason phrase, perhaps empty.
    pub fn reason(&self) -> &[u8] {
        self.text(self.reason)
    }

    /// The version that the sender spoke.
    pub fn version(&self) -> Version {
        self.version
    }

    /// All fields in order: lower-case name and value.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter()
    }

    /// How many fields there are.
    pub fn field_count(&self) -> usize {
        self.fields.len()
    }

    /// The value of the first field of that lower-case name.
    pub fn first(&self, name: &[u8]) -> Option<&[u8]> {
        self.fields.first(name)
    }

    /// The values of every field of that lower-case name, in order.
    pub fn all<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.fields.all(name)
    }

    /// Whether a field of that lower-case name is there.
    pub fn contains(&self, name: &[u8]) -> bool {
        self.fields.contains(name)
    }

    /// Adds a field behind all others.
    pub fn append(&mut self, name: &[u8], value: &[u8]) {
        self.fields.append(name, value);
    }

    /// Adds a field before all others.
    pub fn prepend(&mut self, name: &[u8], value: &[u8]) {
        self.fields.prepend(name, value);
    }

    /// Removes every field of that lower-case name and tells how many there were.
    pub fn remove_all(&mut self, name: &[u8]) -> usize {
        self.fields.remove_all(name)
    }

    /// Gives the first field of that name a new value in its place and removes the others; appends it when there was none.
    pub fn replace(&mut self, name: &[u8], value: &[u8]) {
        self.fields.replace(name, value);
    }

    /// Changes a request's method.
    pub fn set_method(&mut self, method: &[u8]) {
        self.method = Method::from_text(method);
        self.method_text = self.write(method);
    }

    /// Changes a request's target.
    pub fn set_target(&mut self, target: &[u8]) {
        self.target = self.write(target);
    }

    /// Changes a response's status and reason.
    pub fn set_status(&mut self, status: u16, reason: &[u8]) {
        self.status = status;
        self.reason = self.write(reason);
    }

    /// Changes the version.
    pub fn set_version(&mut self, version: Version) {
        self.version = version;
    }

    fn text(&self, span: Span) -> &[u8] {
        self.fields.text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    fn write(&mut self, bytes: &[u8]) -> Span {
        let start = self.fields.text.len() as u32;
        self.fields.text.extend_from_slice(bytes);
        Span { start, end: self.fields.text.len() as u32 }
    }
}
