//! Heads and trailers as fields (RFC 9113, section 8.3; RFC 9114, section 4.3). Must never write a field that is specific
//! to HTTP/1.

use super::field::is_of_connection;
use crate::digits::write_decimal;
use crate::h1::{self, Edits};
use crate::http::{Fields, Framing, Head, Method, Name};

/// The encoder of a field section. Each function returns `None` if there is not enough space.
pub(crate) trait FieldWriter {
    /// Whether Host becomes `:authority` if the target is a path. HAProxy leaves it as it is over HTTP/2. Servers of HTTP/3
    /// that demand `:authority` exist, aioquic's for example.
    const HOST_IS_AUTHORITY: bool;
    /// Writes `:method`; `known` is the same as `text`.
    fn method(&mut self, known: Method, text: &[u8]) -> Option<()>;
    /// Writes `:scheme`.
    fn scheme(&mut self, scheme: &[u8]) -> Option<()>;
    /// Writes `:authority`.
    fn authority(&mut self, authority: &[u8]) -> Option<()>;
    /// Writes `:path`.
    fn path(&mut self, path: &[u8]) -> Option<()>;
    /// Writes `:status`, a number of three digits.
    fn status(&mut self, status: u16) -> Option<()>;
    /// Writes `content-length`.
    fn content_length(&mut self, value: &[u8]) -> Option<()>;
    /// Writes any field. The name must be in lower case.
    fn field(&mut self, name: &[u8], value: &[u8]) -> Option<()>;
}

/// Returns the digits of a status.
#[inline]
pub(crate) fn status_digits(status: u16) -> [u8; 3] {
    [100, 10, 1].map(|unit| b'0' + (status / unit % 10) as u8)
}

/// Writes the fields of trailers. `None`: they do not fit.
#[inline]
pub(crate) fn trailers(trailers: &Fields, writer: &mut impl FieldWriter) -> Option<()> {
    for field in trailers.list.iter().filter(|field| !is_of_connection(field.name)) {
        writer.field(trailers.name_of(field), trailers.value_of(field))?;
    }
    Some(())
}

/// Writes the fields of a request. If its target contains scheme and authority, these become pseudo-headers apart from
/// the path; else the scheme is `https`, and Host is sent as [`FieldWriter::HOST_IS_AUTHORITY`] says. `None`: they do not fit.
#[inline]
pub(crate) fn request<W: FieldWriter>(head: &Head, edits: &Edits<'_>, writer: &mut W) -> Option<()> {
    // Extended CONNECT corresponds to an upgrade in HTTP/1 (RFC 8441, section 5).
    let protocol = if head.upgrade { upgrade(head) } else { None };
    match head.known_method() {
        _ if protocol.is_some() => writer.method(Method::Connect, b"CONNECT")?,
        method => writer.method(method, head.method())?,
    }
    let target = head.target();
    let host = head.fields.known(Name::Host);
    let mut has_authority = true;
    if head.known_method() == Method::Connect {
        writer.authority(target)?;
    } else {
        let parts = AbsoluteTarget::of_head(head);
        writer.scheme(parts.as_ref().map_or(&b"https"[..], |parts| parts.scheme))?;
        let from_host = host.filter(|host| protocol.is_some() || W::HOST_IS_AUTHORITY && !host.is_empty());
        let authority = parts.as_ref().map(|parts| parts.authority).or(from_host);
        has_authority = authority.is_some();
        if let Some(authority) = authority {
            writer.authority(host.unwrap_or(authority))?;
        }
        match parts.map_or(target, |parts| parts.path) {
            b"" if head.known_method() == Method::Options => writer.path(b"*")?,
            b"" => writer.path(b"/")?,
            query @ [b'?', ..] => writer.path(&[b"/", query].concat())?,
            path => writer.path(path)?,
        }
    }
    if let Some(protocol) = protocol {
        writer.field(b":protocol", protocol)?;
    }
    for field in &head.fields.list {
        match field.name {
            name if is_of_connection(name) => {}
            Name::Host if has_authority => {}
            Name::Te if !head.fields.value_of(field).eq_ignore_ascii_case(b"trailers") => {}
            Name::ContentLength => {}
            Name::Other if head.fields.name_of(field) == b"http2-settings" => {}
            Name::Other if protocol.is_some() && head.fields.name_of(field) == b"sec-websocket-key" => {}
            _ => writer.field(head.fields.name_of(field), head.fields.value_of(field))?,
        }
    }
    finish(edits, writer)
}

/// Writes the fields of a response. Of the edits, the framing and the last field apply. `None`: they do not fit.
#[inline]
pub(crate) fn response(head: &Head, edits: &Edits<'_>, writer: &mut impl FieldWriter) -> Option<()> {
    let status = head.status();
    // 101 is sent as 200 when the protocol is switched (RFC 8441, section 5).
    writer.status(if status == 101 { 200 } else { status })?;
    for field in &head.fields.list {
        let value = head.fields.value_of(field);
        match field.name {
            name if is_of_connection(name) => {}
            // A response without a body keeps the length of the omitted one (HEAD, 304).
            Name::ContentLength if edits.framing == Framing::None && status >= 200 && status != 204 => {
                writer.content_length(value)?;
            }
            Name::ContentLength => {}
            Name::Other if status == 101 && head.fields.name_of(field) == b"sec-websocket-accept" => {}
            _ => writer.field(head.fields.name_of(field), value)?,
        }
    }
    let framing = if status == 204 { Framing::None } else { edits.framing };
    finish(&Edits { framing, ..*edits }, writer)
}

/// Returns the protocol of an upgrade request: websocket if it is among those named, else the first one.
fn upgrade(head: &Head) -> Option<&[u8]> {
    let named = || head.all(b"upgrade").flat_map(|value| value.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    let websocket = named().find(|name| name.eq_ignore_ascii_case(b"websocket"));
    websocket.or_else(|| named().next()).filter(|name| h1::is_token(name))
}

/// Writes the fields that are not part of the head.
fn finish(edits: &Edits<'_>, writer: &mut impl FieldWriter) -> Option<()> {
    if let Framing::Length(length) = edits.framing {
        let mut room = [0; 20];
        writer.content_length(write_decimal(length, &mut room))?;
    }
    if let Some((name, value)) = edits.last {
        writer.field(name, value)?;
    }
    Some(())
}

/// A target in absolute form (RFC 9112, section 3.2.2).
struct AbsoluteTarget<'t> {
    scheme: &'t [u8],
    authority: &'t [u8],
    path: &'t [u8],
}

impl<'t> AbsoluteTarget<'t> {
    fn of_head(head: &'t Head) -> Option<Self> {
        match head.target_parts() {
            Some([scheme, authority, path]) => Some(Self { scheme, authority, path }),
            None => Self::of(head.target()),
        }
    }

    #[inline(never)]
    fn of(target: &'t [u8]) -> Option<Self> {
        if matches!(target, [b'/' | b'*', ..]) {
            return None;
        }
        let colon = target.windows(3).position(|part| part == b"://")?;
        let (scheme, rest) = (&target[..colon], &target[colon + 3..]);
        let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        Some(Self { scheme, authority, path })
    }
}
