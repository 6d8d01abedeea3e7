//! Encodes heads: canonical lines in the order of arrival, with framing and connection fields rebuilt.
//!
//! Whatever the head contains, at most one of content-length and transfer-encoding is written, with the value that
//! [`Edits`] specifies.

use super::Spelling;
use super::settle::{decimal, elements};
use crate::digits::write_decimal;
use crate::http::fields::Field;
use crate::http::head::Span;
use crate::http::{self, Fields, Framing, Head, Name, Version};
use base::Buffer;

/// A buffer that a head is written to.
pub trait Output {
    /// Calls `fill` with the free space, of which it needs at most `most` bytes. `fill` returns the number of bytes
    /// written, or `None` if they do not fit, in which case nothing is written. Returns whether they fit.
    fn write(&mut self, most: usize, fill: impl FnOnce(&mut [u8]) -> Option<usize>) -> bool;
}

impl Output for Buffer {
    #[inline]
    fn write(&mut self, _most: usize, fill: impl FnOnce(&mut [u8]) -> Option<usize>) -> bool {
        match fill(self.spare_mut()) {
            Some(count) => {
                self.advance(count);
                true
            }
            None => false,
        }
    }
}

impl Output for Vec<u8> {
    fn write(&mut self, most: usize, fill: impl FnOnce(&mut [u8]) -> Option<usize>) -> bool {
        let length = self.len();
        self.resize(length + most, 0);
        let count = fill(&mut self[length..]);
        self.truncate(length + count.unwrap_or(0));
        count.is_some()
    }
}

/// The head does not fit; nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow;

/// The Connection field to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConnectionLine<'a> {
    /// No field: the version's default applies.
    #[default]
    Nothing,
    /// `connection: close`.
    Close,
    /// `connection: keep-alive`.
    KeepAlive,
    /// `connection: upgrade` and `upgrade:` with this value. A head that has both already, as parsed heads that request
    /// or grant an upgrade do, keeps its own in their places.
    Upgrade(&'a [u8]),
}

impl ConnectionLine<'_> {
    /// Returns HAProxy's Connection field for a request, and the version to send. Persistence is stated only if it
    /// differs from the version's default, and upgrades keep their own fields. A chunked HTTP/1.0 request is sent as
    /// HTTP/1.1: a server that does not know chunks would take the body for another request (RFC 9112, section 6.1).
    pub fn for_request(request: &Head, keep: bool) -> (Self, Version) {
        match (request.version(), keep) {
            (version, _) if request.upgrade => (ConnectionLine::Nothing, version),
            (Version::Http11, false) => (ConnectionLine::Close, Version::Http11),
            (Version::Http11, true) => (ConnectionLine::Nothing, Version::Http11),
            (Version::Http10, _) if request.framing == Framing::Chunked => (ConnectionLine::Close, Version::Http11),
            (Version::Http10, true) => (ConnectionLine::KeepAlive, Version::Http10),
            (Version::Http10, false) => (ConnectionLine::Nothing, Version::Http10),
        }
    }

    /// Returns HAProxy's Connection field for a response, by the versions of the request and of the response that is
    /// sent.
    pub fn for_response(request: Version, response: Version, keep: bool) -> Self {
        match (request, response, keep) {
            (_, Version::Http11, false) => ConnectionLine::Close,
            (_, Version::Http10, false) | (Version::Http11, Version::Http11, true) => ConnectionLine::Nothing,
            (_, _, true) => ConnectionLine::KeepAlive,
        }
    }
}

/// The parts of a head that are rebuilt instead of copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Edits<'a> {
    /// The Connection field, written after all others.
    pub connection: ConnectionLine<'a>,
    /// The framing fields. A response with [`Framing::None`] keeps its own: they describe a body that is not sent
    /// (HEAD, 304).
    pub framing: Framing,
    /// The version of the start line. A message older than HTTP/1.1 keeps its own version.
    pub version: Version,
    /// A field written last, after the Connection field: a lower-case name and a value.
    pub last: Option<(&'a [u8], &'a [u8])>,
    /// The case of field names; lower case if `None`.
    pub spelling: Option<&'a Spelling>,
}

impl Edits<'_> {
    /// Returns the edits for an interim response (1xx).
    pub fn interim() -> Self {
        Edits::default()
    }
}

/// Encodes a request's head.
pub fn encode_request(head: &Head, edits: &Edits<'_>, out: &mut impl Output) -> Result<(), Overflow> {
    encode(head, edits, true, out)
}

/// Encodes a response's head. A 204 has neither Content-Length nor Transfer-Encoding (RFC 9110, section 8.6; RFC 9112,
/// section 6.1), even if a rule has set that status.
pub fn encode_response(head: &Head, edits: &Edits<'_>, out: &mut impl Output) -> Result<(), Overflow> {
    if head.status() == 204 {
        return encode(head, &Edits { framing: Framing::UntilClose, ..*edits }, false, out);
    }
    encode(head, edits, false, out)
}

/// Encodes the end of a chunked body: the last chunk, the trailers and the empty line.
pub fn encode_trailers(trailers: &Fields, out: &mut impl Output) -> Result<(), Overflow> {
    let written = out.write(trailers.used() + 5, |room| {
        let mut writer = Writer { room, at: 0, run: Span::default(), fields: trailers };
        writer.put(b"0\r\n")?;
        for field in &trailers.list {
            writer.keep(field)?;
        }
        writer.finish()
    });
    if written { Ok(()) } else { Err(Overflow) }
}

#[inline]
fn encode(head: &Head, edits: &Edits<'_>, is_request: bool, out: &mut impl Output) -> Result<(), Overflow> {
    if head.fields.overflowed() {
        return Err(Overflow);
    }
    if edits.last.is_none() && edits.spelling.is_none() && is_sent_as_parsed(head, edits) {
        return encode_as_parsed(head, out);
    }
    let upgrade = if let ConnectionLine::Upgrade(value) = edits.connection { value.len() } else { 0 };
    let last = edits.last.map_or(0, |(name, value)| name.len() + value.len() + 4);
    let most = head.fields.used() + upgrade + last + 160;
    let written = out.write(most, |room| {
        let mut writer = Writer { room: &mut *room, at: 0, run: Span::default(), fields: &head.fields };
        write_head(head, edits, is_request, &mut writer)?;
        if let Some((name, value)) = edits.last {
            write_last(name, value, &mut writer)?;
        }
        let length = writer.finish()?;
        if let Some(spelling) = edits.spelling {
            spelling.apply(&mut room[..length]);
        }
        Some(length)
    });
    if written { Ok(()) } else { Err(Overflow) }
}

/// Encodes a head whose text is sent as it was parsed.
#[inline]
fn encode_as_parsed(head: &Head, out: &mut impl Output) -> Result<(), Overflow> {
    let text = head.fields.slice(head.line.start, head.fields.used() as u32);
    let whole = text.len() + 2;
    let written = out.write(whole, |room| {
        let (lines, end) = room.get_mut(..whole)?.split_at_mut(text.len());
        lines.copy_from_slice(text);
        end.copy_from_slice(b"\r\n");
        Some(whole)
    });
    if written { Ok(()) } else { Err(Overflow) }
}

/// Whether start line and fields are sent as they were parsed. Connection then contains options that are forwarded.
#[inline]
fn is_sent_as_parsed(head: &Head, edits: &Edits<'_>) -> bool {
    !head.line.is_empty()
        && head.fields.are_as_parsed(head.line.end)
        && head.version == edits.version
        && head.received_framing == edits.framing
        && edits.connection == ConnectionLine::Nothing
}

fn write_head(head: &Head, edits: &Edits<'_>, is_request: bool, writer: &mut Writer<'_>) -> Option<()> {
    if !head.line.is_empty() && head.version == edits.version {
        writer.run = head.line;
    } else {
        write_start_line(head, edits.version, is_request, writer)?;
    }
    write_fields(head, edits, is_request, writer)
}

fn write_start_line(head: &Head, new_version: Version, is_request: bool, writer: &mut Writer<'_>) -> Option<()> {
    let version: &[u8] = match new_version {
        Version::Http11 => b"HTTP/1.1",
        Version::Http10 if head.version == Version::Http10 => head.version_text(),
        Version::Http10 => b"HTTP/1.0",
    };
    if is_request {
        writer.put(head.method())?;
        writer.put(b" ")?;
        writer.put(head.target_on_wire())?;
        writer.put(b" ")?;
        writer.put(version)?;
    } else {
        let status = head.status();
        let mut digits = [0; 20];
        let digits = write_decimal(u64::from(status), &mut digits);
        writer.put(version)?;
        writer.put(&b" 00"[..1 + 3_usize.saturating_sub(digits.len()).min(2)])?;
        writer.put(digits)?;
        writer.put(b" ")?;
        writer.put(if head.reason().is_empty() { http::reason(status).as_bytes() } else { head.reason() })?;
    }
    writer.put(b"\r\n")?;
    let is_newer = new_version == Version::Http11 && head.version == Version::Http10;
    if is_request && is_newer && !head.fields.names.has(Name::Host) {
        // A request without a host (RFC 9112, section 3.2).
        writer.put(b"host: \r\n")?;
    }
    Some(())
}

fn write_fields(head: &Head, edits: &Edits<'_>, is_request: bool, writer: &mut Writer<'_>) -> Option<()> {
    let names = head.fields.names;
    let mut framed = false;
    let mut connection_upgrade = false;
    if names.has(Name::ContentLength) || names.has(Name::TransferEncoding) || names.has(Name::Connection) {
        for field in &head.fields.list {
            match field.name {
                Name::ContentLength | Name::TransferEncoding => {
                    if keeps_framing(&head.fields, field, edits, is_request, framed) {
                        framed = true;
                        writer.keep(field)?;
                    }
                }
                Name::Connection => connection_upgrade |= write_options(&head.fields, field, writer)?,
                _ => writer.keep(field)?,
            }
        }
    } else {
        for field in &head.fields.list {
            writer.keep(field)?;
        }
    }
    match edits.framing {
        Framing::Length(length) if !framed => {
            let mut room = [0; 20];
            writer.put(b"content-length: ")?;
            writer.put(write_decimal(length, &mut room))?;
            writer.put(b"\r\n")?;
        }
        Framing::Chunked if !framed => writer.put(b"transfer-encoding: chunked\r\n")?,
        _ => {}
    }
    match edits.connection {
        ConnectionLine::Nothing => Some(()),
        ConnectionLine::Close => writer.put(b"connection: close\r\n"),
        ConnectionLine::KeepAlive => writer.put(b"connection: keep-alive\r\n"),
        ConnectionLine::Upgrade(value) => {
            if !connection_upgrade {
                writer.put(b"connection: upgrade\r\n")?;
            }
            if !names.has(Name::Upgrade) || head.fields.known(Name::Upgrade).is_none() {
                writer.put(b"upgrade: ")?;
                writer.put(value)?;
                writer.put(b"\r\n")?;
            }
            Some(())
        }
    }
}

/// Writes a field that is not one of the head's. Fields that contain CR, LF or NUL are dropped.
#[cold]
fn write_last(name: &[u8], value: &[u8], writer: &mut Writer<'_>) -> Option<()> {
    if name.iter().chain(value).any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        return Some(());
    }
    for part in [name, b": ", value, b"\r\n"] {
        writer.put(part)?;
    }
    Some(())
}

/// Whether a content-length or transfer-encoding field can be kept: it has the required value and is the first one.
fn keeps_framing(fields: &Fields, field: &Field, edits: &Edits<'_>, is_request: bool, framed: bool) -> bool {
    let value = fields.value_of(field);
    let is_length = field.name == Name::ContentLength;
    !framed
        && match edits.framing {
            Framing::Length(length) => is_length && decimal(value) == Some(length),
            Framing::Chunked => !is_length && value == b"chunked",
            Framing::None => !is_request && (decimal(value).is_some() || (!is_length && value == b"chunked")),
            Framing::UntilClose => false,
        }
}

/// Writes a Connection field without `close` and `keep-alive`, which the encoder decides; returns whether it contains
/// `upgrade`.
fn write_options(fields: &Fields, field: &Field, writer: &mut Writer<'_>) -> Option<bool> {
    let decided =
        |element: &[u8]| element.eq_ignore_ascii_case(b"close") || element.eq_ignore_ascii_case(b"keep-alive");
    let value = fields.value_of(field);
    let upgrade = elements(value).any(|element| element.eq_ignore_ascii_case(b"upgrade"));
    if !elements(value).any(decided) {
        writer.keep(field)?;
        return Some(upgrade);
    }
    let mut any = false;
    for element in elements(value).filter(|element| !element.is_empty() && !decided(element)) {
        writer.put(if any { b"," } else { b"connection: " })?;
        writer.put(element)?;
        any = true;
    }
    if any {
        writer.put(b"\r\n")?;
    }
    Some(upgrade)
}

/// Writes into a slice; lines that are adjacent in the head's text are copied together.
struct Writer<'a> {
    room: &'a mut [u8],
    at: usize,
    /// Range of text to copy, not yet written.
    run: Span,
    fields: &'a Fields,
}

impl Writer<'_> {
    #[inline]
    fn keep(&mut self, field: &Field) -> Option<()> {
        if field.start != self.run.end {
            self.flush()?;
            self.run.start = field.start;
        }
        self.run.end = field.line_end();
        Some(())
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Option<()> {
        if !self.run.is_empty() {
            self.flush()?;
        }
        self.copy(bytes)
    }

    #[inline]
    fn flush(&mut self) -> Option<()> {
        let fields = self.fields;
        let run = std::mem::take(&mut self.run);
        self.copy(fields.slice(run.start, run.end))
    }

    #[inline]
    fn copy(&mut self, bytes: &[u8]) -> Option<()> {
        let room = self.room.get_mut(self.at..self.at + bytes.len())?;
        room.copy_from_slice(bytes);
        self.at += bytes.len();
        Some(())
    }

    #[inline]
    fn finish(mut self) -> Option<usize> {
        self.put(b"\r\n")?;
        Some(self.at)
    }
}
