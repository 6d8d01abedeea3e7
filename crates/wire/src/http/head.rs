//! The internal representation of a message head: start line, fields, framing and connection options.
//!
//! A head owns its text, so that the input buffer can be released at once, and is reused between messages. It must
//! never validate: parsers do.

use super::{ConnectionOptions, Fields, Framing, Method, Name, Version};

/// Overhead of each part of a head beyond its text, as HAProxy accounts for it.
pub const PART: usize = 8;

/// A range of the head's text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    pub(crate) fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// The head of a request or a response.
///
/// Connection-specific fields are resolved when the head is parsed: Keep-Alive, Proxy-Connection and the fields that
/// Connection nominates are removed, Connection contains only `upgrade` (and `te`), Content-Length and
/// Transfer-Encoding agree with `framing`. Rules therefore see the fields that the next hop receives.
#[derive(Debug, Clone, Default)]
pub struct Head {
    /// The fields. Most of their methods are also methods of the head.
    pub fields: Fields,
    pub(crate) method: Method,
    pub(crate) method_text: Span,
    pub(crate) target: Span,
    pub(crate) reason: Span,
    /// The version as received.
    pub(crate) version_text: Span,
    /// The start line as it is sent (including CR LF), as long as no part of it was changed.
    pub(crate) line: Span,
    pub(crate) status: u16,
    pub(crate) version: Version,
    /// How the end of the body is determined.
    pub framing: Framing,
    /// The framing that the fields describe, as received.
    pub(crate) received_framing: Framing,
    /// The options of the Connection field. `close` is also set if the framing was ambiguous, so that the connection
    /// must not be reused (RFC 9112 section 6.1).
    pub connection: ConnectionOptions,
    /// The request has `Expect: 100-continue`.
    pub expect_continue: bool,
    /// An upgrade to another protocol is requested, or granted (101 response): Connection contains `upgrade`, and there
    /// is an Upgrade field.
    pub upgrade: bool,
    /// Scheme and authority of the target come from HTTP/2 pseudo-headers: HTTP/1 servers receive only the path.
    pub(crate) implied_authority: bool,
    /// Offsets of authority and path in the text, as long as the target is the one composed of them.
    pub(super) parts: Option<(u32, u32)>,
    /// Bytes of the body that reduce the space for the head ([`Head::share`]).
    pub(super) shared: u32,
    /// The trailers (RFC 9110, section 6.5), once the complete message is received; `None` if there are none.
    pub trailers: Option<Box<Fields>>,
}

impl Head {
    /// Creates an empty head; does not allocate.
    pub fn new() -> Head {
        Head::default()
    }

    /// Removes the message and keeps the capacity.
    #[inline]
    pub fn clear(&mut self) {
        self.fields.clear();
        self.method = Method::default();
        self.method_text = Span::default();
        self.target = Span::default();
        self.reason = Span::default();
        self.version_text = Span::default();
        self.line = Span::default();
        self.status = 0;
        self.version = Version::default();
        self.framing = Framing::default();
        self.received_framing = Framing::default();
        self.connection = ConnectionOptions::default();
        self.expect_continue = false;
        self.upgrade = false;
        self.implied_authority = false;
        self.parts = None;
        self.shared = 0;
        self.trailers = None;
    }

    /// The method of a request, as received.
    #[inline]
    pub fn method(&self) -> &[u8] {
        self.text(self.method_text)
    }

    /// The method of a request as an enumeration.
    #[inline]
    pub fn known_method(&self) -> Method {
        self.method
    }

    /// The target of a request, normalized.
    #[inline]
    pub fn target(&self) -> &[u8] {
        self.text(self.target)
    }

    /// The status code of a response.
    #[inline]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The reason phrase of a response, may be empty.
    pub fn reason(&self) -> &[u8] {
        self.text(self.reason)
    }

    /// The version of the sender: versions after HTTP/1.1 count as that, earlier ones as HTTP/1.0.
    #[inline]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The version as received, for logs: `HTTP/1.1`.
    pub fn version_text(&self) -> &[u8] {
        match (self.version_text.is_empty(), self.version) {
            (false, _) => self.text(self.version_text),
            (true, Version::Http10) => b"HTTP/1.0",
            (true, Version::Http11) => b"HTTP/1.1",
        }
    }

    /// Whether the sender keeps the connection open for another message, by its version and its Connection field
    /// (RFC 9112 section 9.3).
    pub fn keeps_alive(&self) -> bool {
        match self.version {
            Version::Http11 => !self.connection.close,
            Version::Http10 => self.connection.keep_alive && !self.connection.close,
        }
    }

    /// Whether a Connection field contains `close`. Parsing moves the sender's options to `connection`, so such a field
    /// was added by a rule; callers check it before they write their own connection options.
    pub fn asks_to_close(&self) -> bool {
        self.fields.known(Name::Connection).is_some()
            && self
                .fields
                .list
                .iter()
                .filter(|field| field.name == Name::Connection)
                .flat_map(|field| self.fields.value_of(field).split(|byte| *byte == b','))
                .any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
    }

    /// The value of Host.
    #[inline]
    pub fn host(&self) -> Option<&[u8]> {
        self.fields.known(Name::Host)
    }

    /// Returns all fields in order: lower-case name and value.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter()
    }

    /// The number of fields.
    pub fn field_count(&self) -> usize {
        self.fields.len()
    }

    /// Returns the value of the first field with a lower-case name.
    pub fn first(&self, name: &[u8]) -> Option<&[u8]> {
        self.fields.first(name)
    }

    /// Returns the values of all fields with a lower-case name, in order.
    pub fn all<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.fields.all(name)
    }

    /// Whether there is a field with a lower-case name.
    pub fn contains(&self, name: &[u8]) -> bool {
        self.fields.contains(name)
    }

    /// Appends a field.
    pub fn append(&mut self, name: &[u8], value: &[u8]) {
        self.fields.append(name, value);
    }

    /// Inserts a field before all others.
    pub fn prepend(&mut self, name: &[u8], value: &[u8]) {
        self.fields.prepend(name, value);
    }

    /// Changes the framing to a body of `length` bytes. The field is the last one.
    pub fn frame_with_length(&mut self, length: u64) {
        self.fields.remove_known(super::Name::TransferEncoding);
        self.fields.remove_known(super::Name::ContentLength);
        self.framing = Framing::Length(length);
        self.append(b"content-length", length.to_string().as_bytes());
    }

    /// Changes the framing to chunks, for bodies whose length is no longer known. A new Transfer-Encoding is the last
    /// field.
    pub fn frame_in_chunks(&mut self) {
        if self.framing != Framing::Chunked {
            self.framing = Framing::Chunked;
            self.fields.remove_known(super::Name::ContentLength);
            self.append(b"transfer-encoding", b"chunked");
        }
    }

    /// Removes all fields with a lower-case name and returns their number.
    pub fn remove_all(&mut self, name: &[u8]) -> usize {
        self.fields.remove_all(name)
    }

    /// Replaces the value of the first field with that name and removes the others; appends the field if there is none.
    pub fn replace(&mut self, name: &[u8], value: &[u8]) {
        self.fields.replace(name, value);
    }

    /// The space that the head occupies as HAProxy accounts for it: 8 bytes for each part beyond its text, 28 for the
    /// start line and its version, 40 for the message.
    pub fn measure(&self) -> usize {
        let fields: usize = self.fields().map(|(name, value)| name.len() + value.len()).sum();
        let status = if self.status == 0 { 0 } else { self.status.ilog10() as usize + 1 };
        let line = self.method().len() + self.target().len() + status + self.reason().len();
        // 20 for the start line, 8 for the version, 1 for the end; two parts more than fields; 40 for the message.
        20 + 8 + 1 + line + fields + PART * (self.field_count() + 2) + 40
    }

    /// Accounts for `behind` bytes of the body that were received with the head in one buffer of `size` bytes, of which
    /// `reserve` are reserved for rewriting: these bytes are not available for changes of the head. Applies only once,
    /// before the first change.
    pub fn share(&mut self, behind: usize, size: usize, reserve: usize) {
        if self.shared == 0 && behind > 0 {
            let most = size.saturating_sub(reserve).saturating_sub(self.measure());
            self.shared = u32::try_from(behind.min(most)).unwrap_or(u32::MAX);
        }
    }

    /// Whether the head stays within `room` bytes, as HAProxy accounts for them, after `removed` bytes are removed and
    /// `added` bytes are added.
    #[inline]
    pub fn has_room(&self, removed: usize, added: usize, room: usize) -> bool {
        let room = room.saturating_sub(self.shared as usize);
        // The total of written text is an upper bound; the exact size is computed only if that exceeds the limit.
        self.fields.written() + PART * (self.field_count() + 2) + 80 + added <= room
            || self.measure().saturating_sub(removed) + added <= room
    }

    /// Changes the method of a request. Spaces and control characters are removed; if nothing is left, the method does
    /// not change.
    pub fn set_method(&mut self, method: &[u8]) {
        if !method.iter().all(u8::is_ascii_graphic) {
            let visible: Vec<u8> = method.iter().copied().filter(u8::is_ascii_graphic).collect();
            return self.set_method(&visible);
        }
        if !method.is_empty() {
            self.method = Method::from_text(method);
            self.method_text = self.write(method);
            self.line = Span::default();
        }
    }

    /// Sets the method of a request, which must be a token.
    pub(crate) fn set_checked_method(&mut self, method: &[u8]) {
        self.method = Method::from_text(method);
        self.method_text =
            self.fields.write_parts(&[method]).map_or(Span::default(), |(start, end)| Span { start, end });
        self.line = Span::default();
    }

    /// Changes the target of a request. Spaces and control characters, which would end it, are percent-encoded. An
    /// empty target changes nothing.
    pub fn set_target(&mut self, target: &[u8]) {
        let ends = |byte: &u8| *byte <= b' ' || *byte == 0x7f;
        if target.is_empty() {
            return;
        }
        self.target = if target.iter().any(ends) {
            let mut encoded = Vec::with_capacity(target.len() + 16);
            for byte in target {
                if ends(byte) {
                    encoded.push(b'%');
                    encoded.extend_from_slice(&base::hex::upper(*byte));
                } else {
                    encoded.push(*byte);
                }
            }
            self.write(&encoded)
        } else {
            self.write(target)
        };
        self.parts = None;
        self.line = Span::default();
    }

    /// Changes the target of a request to one that is sent as given, even if the request has a separate authority.
    pub fn set_uri(&mut self, uri: &[u8]) {
        self.set_target(uri);
        self.implied_authority &= uri.is_empty();
    }

    /// Changes the target of a request to the given parts, which must not contain spaces or control characters.
    pub(crate) fn set_target_parts(&mut self, scheme: &[u8], authority: &[u8], path: &[u8]) {
        let written = self.fields.write_parts(&[scheme, b"://", authority, path]);
        self.target = written.map_or(Span::default(), |(start, end)| Span { start, end });
        let before = |part: &[u8]| self.target.end.saturating_sub(part.len() as u32);
        let path_at = before(path);
        self.parts = written.map(|_| (path_at.saturating_sub(authority.len() as u32), path_at));
        self.line = Span::default();
    }

    /// Returns scheme, authority and path of a target that was composed of them.
    pub(crate) fn target_parts(&self) -> Option<[&[u8]; 3]> {
        let (authority, path) = self.parts?;
        let Span { start, end } = self.target;
        let text = |start, end| self.fields.slice(start, end);
        Some([text(start, authority.saturating_sub(3)), text(authority, path), text(path, end)])
    }

    /// Changes the status and the reason phrase of a response.
    pub fn set_status(&mut self, status: u16, reason: &[u8]) {
        self.status = status;
        self.reason = if reason.is_empty() { Span::default() } else { self.write(reason) };
        self.line = Span::default();
    }

    /// Turns a response that starts another protocol on a stream into that of HTTP/1: `101` with the upgrade to
    /// `protocol` (RFC 8441, section 5).
    pub fn switch_protocols(&mut self, protocol: &[u8]) {
        self.set_status(101, b"");
        self.append(b"connection", b"upgrade");
        self.append(b"upgrade", protocol);
        (self.upgrade, self.framing) = (true, Framing::None);
    }

    /// Sets the effective version, and the text of the sender's version, which must be free of control characters.
    pub(crate) fn set_version(&mut self, version: Version, text: &[u8]) {
        self.version = version;
        self.version_text =
            self.fields.write_parts(&[text]).map_or(Span::default(), |(start, end)| Span { start, end });
    }

    /// Returns the target of a request as it is sent to an HTTP/1 server.
    pub fn target_on_wire(&self) -> &[u8] {
        let target = self.target();
        if let Some([_, _, path]) = self.target_parts()
            && self.implied_authority
        {
            return path;
        }
        match super::target::path(target) {
            Some(path) if self.implied_authority && path < target.len() => &target[path..],
            _ => target,
        }
    }

    #[inline]
    pub(crate) fn text(&self, span: Span) -> &[u8] {
        self.fields.slice(span.start, span.end)
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Span {
        self.fields.write_text(bytes).map_or(Span::default(), |(start, end)| Span { start, end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_built_by_hand() {
        let mut head = Head::new();
        head.set_status(503, b"Service Unavailable");
        head.append(b"Cache-Control", b"no-cache");
        assert_eq!((head.status(), head.reason()), (503, &b"Service Unavailable"[..]));
        assert_eq!(head.version_text(), b"HTTP/1.1");
        head.set_method(b"HEAD");
        head.set_target(b"/x");
        assert_eq!((head.method(), head.known_method(), head.target()), (&b"HEAD"[..], Method::Head, &b"/x"[..]));
        head.clear();
        assert_eq!((head.method(), head.target(), head.status(), head.field_count()), (&b""[..], &b""[..], 0, 0));
    }

    #[test]
    fn no_part_of_a_start_line_can_end_it() {
        let mut head = Head::new();
        head.set_method(b"GE T\r\n");
        head.set_target(b"/a b\r\nX: y");
        head.set_status(200, b"a\r\nb");
        assert_eq!((head.method(), head.target()), (&b"GET"[..], &b"/a%20b%0D%0AX:%20y"[..]));
        assert_eq!(head.reason(), b"a  b");
        head.set_method(b" ");
        head.set_target(b"");
        assert_eq!((head.method(), head.target()), (&b"GET"[..], &b"/a%20b%0D%0AX:%20y"[..]));
    }

    #[test]
    fn persistence_follows_version_and_options() {
        let mut head = Head::new();
        assert!(head.keeps_alive());
        head.connection.close = true;
        assert!(!head.keeps_alive());
        head.version = Version::Http10;
        assert!(!head.keeps_alive());
        head.connection = ConnectionOptions { keep_alive: true, ..ConnectionOptions::default() };
        assert!(head.keeps_alive());
        head.connection.close = true;
        assert!(!head.keeps_alive());
    }
}
