//! The one internal message head: start line, fields, and what the fields say about the body and the connection.
//!
//! It owns its text, so the buffer it came from is free at once, and it is reused between messages. It never judges:
//! parsers do.

use super::{ConnectionOptions, Fields, Framing, Method, Name, Version};

/// What a part of a head takes on top of its text, by HAProxy's measure.
pub const PART: usize = 8;

/// A stretch of the head's text.
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
/// Connection-specific fields are settled when it is parsed: Keep-Alive, Proxy-Connection and whatever Connection
/// nominates are gone, Connection holds nothing but `upgrade` (and `te`), Content-Length and Transfer-Encoding agree
/// with `framing`. So rules see what the next hop gets.
#[derive(Debug, Clone, Default)]
pub struct Head {
    /// The fields. Most of what they offer is repeated here.
    pub fields: Fields,
    pub(crate) method: Method,
    pub(crate) method_text: Span,
    pub(crate) target: Span,
    pub(crate) reason: Span,
    /// The version as it was written.
    pub(crate) version_text: Span,
    /// The start line as it goes out (CR LF included), while no part of it was changed.
    pub(crate) line: Span,
    pub(crate) status: u16,
    pub(crate) version: Version,
    /// How the end of the body is known.
    pub framing: Framing,
    /// What the Connection field asked for. `close` is also set when the framing was so doubtful that the connection
    /// must not be used again (RFC 9112 section 6.1).
    pub connection: ConnectionOptions,
    /// `Expect: 100-continue` was there.
    pub expect_continue: bool,
    /// An upgrade to another protocol is asked for (request) or granted (101 response): Connection says `upgrade` and
    /// Upgrade is there.
    pub upgrade: bool,
    /// Scheme and authority of the target were put there from what HTTP/2 says apart: HTTP/1 gets the path alone.
    pub(crate) implied_authority: bool,
    /// Where authority and path of the target begin, as long as it is the one that was put together of them.
    pub(super) parts: Option<(u32, u32)>,
    /// Bytes of its body that take room from it ([`Head::share`]).
    pub(super) shared: u32,
    /// The fields that came after its body (RFC 9110, section 6.5), once the whole message was received; `None` without any.
    pub trailers: Option<Box<Fields>>,
}

impl Head {
    /// An empty head; nothing is allocated.
    pub fn new() -> Head {
        Head::default()
    }

    /// Forgets the message and keeps the capacity.
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
        self.connection = ConnectionOptions::default();
        self.expect_continue = false;
        self.upgrade = false;
        self.implied_authority = false;
        self.parts = None;
        self.shared = 0;
        self.trailers = None;
    }

    /// A request's method as it was written.
    #[inline]
    pub fn method(&self) -> &[u8] {
        self.text(self.method_text)
    }

    /// The method, recognised.
    #[inline]
    pub fn known_method(&self) -> Method {
        self.method
    }

    /// A request's target, normalised.
    #[inline]
    pub fn target(&self) -> &[u8] {
        self.text(self.target)
    }

    /// A response's status code.
    #[inline]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// A response's reason phrase, perhaps empty.
    pub fn reason(&self) -> &[u8] {
        self.text(self.reason)
    }

    /// The version that the sender spoke: anything after HTTP/1.1 counts as that, anything before as HTTP/1.0.
    #[inline]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The version as it was written, for logs: `HTTP/1.1`.
    pub fn version_text(&self) -> &[u8] {
        match (self.version_text.is_empty(), self.version) {
            (false, _) => self.text(self.version_text),
            (true, Version::Http10) => b"HTTP/1.0",
            (true, Version::Http11) => b"HTTP/1.1",
        }
    }

    /// Whether the sender means to use the connection for another message, by its version and its Connection field
    /// (RFC 9112 section 9.3).
    pub fn keeps_alive(&self) -> bool {
        match self.version {
            Version::Http11 => !self.connection.close,
            Version::Http10 => self.connection.keep_alive && !self.connection.close,
        }
    }

    /// Whether a Connection field says `close`. When the head was parsed its own options went to `connection`, so this is
    /// what rules have added since; the sender of the head asks before it writes its own connection options.
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

    /// Host's value.
    #[inline]
    pub fn host(&self) -> Option<&[u8]> {
        self.fields.known(Name::Host)
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

    /// Has the message say a body of that length, whatever it said before. The field is the last one.
    pub fn frame_with_length(&mut self, length: u64) {
        self.fields.remove_known(super::Name::TransferEncoding);
        self.fields.remove_known(super::Name::ContentLength);
        self.framing = Framing::Length(length);
        self.append(b"content-length", length.to_string().as_bytes());
    }

    /// Has the body go on in chunks, because its length is not known any more. The field that says so is the last one, unless there is
    /// one already.
    pub fn frame_in_chunks(&mut self) {
        if self.framing != Framing::Chunked {
            self.framing = Framing::Chunked;
            self.fields.remove_known(super::Name::ContentLength);
            self.append(b"transfer-encoding", b"chunked");
        }
    }

    /// Removes every field of that lower-case name and tells how many there were.
    pub fn remove_all(&mut self, name: &[u8]) -> usize {
        self.fields.remove_all(name)
    }

    /// Gives the first field of that name a new value in its place and removes the others; appends it when there was
    /// none.
    pub fn replace(&mut self, name: &[u8], value: &[u8]) {
        self.fields.replace(name, value);
    }

    /// The room that the head takes by HAProxy's measure: 8 bytes for each part on top of its text, 28 for the start line
    /// and its version, 40 for the message.
    pub fn measure(&self) -> usize {
        let fields: usize = self.fields().map(|(name, value)| name.len() + value.len()).sum();
        let status = if self.status == 0 { 0 } else { self.status.ilog10() as usize + 1 };
        let line = self.method().len() + self.target().len() + status + self.reason().len();
        // 20 for the start line, 8 for the version, 1 for the end; two parts more than fields; 40 in all.
        20 + 8 + 1 + line + fields + PART * (self.field_count() + 2) + 40
    }

    /// So many bytes of the body came in one buffer of `size` bytes with it, of which `reserve` are kept for rewriting:
    /// what they take of the buffer, changes of the head do not get. Counts once, before the first change.
    pub fn share(&mut self, behind: usize, size: usize, reserve: usize) {
        if self.shared == 0 && behind > 0 {
            let most = size.saturating_sub(reserve).saturating_sub(self.measure());
            self.shared = u32::try_from(behind.min(most)).unwrap_or(u32::MAX);
        }
    }

    /// Whether it stays within `room` by that measure when so many bytes of it go and so many come.
    #[inline]
    pub fn has_room(&self, removed: usize, added: usize, room: usize) -> bool {
        let room = room.saturating_sub(self.shared as usize);
        // Nothing is measured that all the text that was ever written could not exceed.
        self.fields.written() + PART * (self.field_count() + 2) + 80 + added <= room
            || self.measure().saturating_sub(removed) + added <= room
    }

    /// Changes a request's method. Spaces and control characters in it are left out; nothing changes when nothing is
    /// left.
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

    /// Changes a request's target. Spaces and control characters in it are percent-encoded: they would end it. Nothing
    /// changes when it is empty.
    pub fn set_target(&mut self, target: &[u8]) {
        let ends = |byte: &u8| *byte <= b' ' || *byte == 0x7f;
        if target.is_empty() {
            return;
        }
        self.target = if target.iter().any(ends) {
            let mut encoded = Vec::with_capacity(target.len() + 16);
            for byte in target {
                if ends(byte) {
                    encoded.extend_from_slice(format!("%{byte:02X}").as_bytes());
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

    /// Changes a request's target to one that goes on as it is written, also where the request names its host apart from its path.
    pub fn set_uri(&mut self, uri: &[u8]) {
        self.set_target(uri);
        self.implied_authority &= uri.is_empty();
    }

    /// Changes a request's target to these parts, none of which has a space or a control character.
    pub(crate) fn set_target_parts(&mut self, scheme: &[u8], authority: &[u8], path: &[u8]) {
        let written = self.fields.write_parts(&[scheme, b"://", authority, path]);
        self.target = written.map_or(Span::default(), |(start, end)| Span { start, end });
        let before = |part: &[u8]| self.target.end.saturating_sub(part.len() as u32);
        let path_at = before(path);
        self.parts = written.map(|_| (path_at.saturating_sub(authority.len() as u32), path_at));
        self.line = Span::default();
    }

    /// Scheme, authority and path of a target that was put together of them.
    pub(crate) fn target_parts(&self) -> Option<[&[u8]; 3]> {
        let (authority, path) = self.parts?;
        let Span { start, end } = self.target;
        let text = |start, end| self.fields.slice(start, end);
        Some([text(start, authority.saturating_sub(3)), text(authority, path), text(path, end)])
    }

    /// Changes a response's status and reason.
    pub fn set_status(&mut self, status: u16, reason: &[u8]) {
        self.status = status;
        self.reason = if reason.is_empty() { Span::default() } else { self.write(reason) };
        self.line = Span::default();
    }

    /// An answer by which another protocol begins on a stream, as HTTP/1 has it: `101` with the upgrade to `protocol` (RFC
    /// 8441, section 5).
    pub fn switch_protocols(&mut self, protocol: &[u8]) {
        self.set_status(101, b"");
        self.append(b"connection", b"upgrade");
        self.append(b"upgrade", protocol);
        (self.upgrade, self.framing) = (true, Framing::None);
    }

    /// The version that counts, and how the sender names its own, in characters that are harmless.
    pub(crate) fn set_version(&mut self, version: Version, text: &[u8]) {
        self.version = version;
        self.version_text =
            self.fields.write_parts(&[text]).map_or(Span::default(), |(start, end)| Span { start, end });
    }

    /// A request's target as a server of HTTP/1 gets it.
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
