//! Parses the head of a response.

use super::charset::{copy_value, is_blank};
use super::error::{ResponseError, StepError, Violation};
use super::parse::{self, HeadLimits, Parse, Scan, StartLine, Walk, line_end, locate};
use super::request::{is_http, is_insecure, is_modern, keep_version, skip_blanks, version_length, write_version};
use super::settle::{self, Coding};
use crate::http::head::Span;
use crate::http::{self, Framing, Head, Name, Version};

/// The properties of the request that determine a response's framing (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestContext {
    /// The request was HEAD.
    pub head: bool,
    /// The request was CONNECT.
    pub connect: bool,
}

/// Parses the head of a response. A 1xx response is complete as well: the caller parses the next response after it.
///
/// A 101 response and a 2xx to CONNECT have [`Framing::None`]: a tunnel follows. The caller checks whether the upgrade
/// was requested.
pub fn parse_response(
    input: &[u8],
    limits: &HeadLimits,
    request: &RequestContext,
    scan: &mut Scan,
    head: &mut Head,
) -> Result<Parse, ResponseError> {
    match parse::walk(input, limits, scan, head, status_line)? {
        Walk::Partial => Ok(Parse::Partial),
        Walk::Done { consumed } => match finish(head, limits, request) {
            Ok(()) if head.fields.overflowed() => {
                Err(ResponseError { violation: Violation::HeadTooLarge, position: 0 })
            }
            Ok(()) => Ok(Parse::Complete { consumed }),
            Err(violation) => Err(ResponseError { violation, position: locate(input, violation) }),
        },
    }
}

/// Parses the status line of most servers: `HTTP/1.1`, a blank, three digits, a blank, a phrase of visible text, CR LF.
/// Returns the offset of its end; `None` for any other line, and nothing has changed then.
#[inline]
fn usual_status_line(input: &[u8], head: &mut Head) -> Option<usize> {
    const CODE: usize = 9;
    const PHRASE: usize = 13;
    let begun = input.first_chunk::<PHRASE>()?;
    let (start, code) = begun.split_first_chunk::<CODE>()?;
    let [hundreds @ b'0'..=b'9', tens @ b'0'..=b'9', units @ b'0'..=b'9', b' '] = code else { return None };
    if start != b"HTTP/1.1 " || input.get(PHRASE).is_none_or(|byte| is_blank(*byte)) {
        return None;
    }
    let room = head.fields.room();
    let length = copy_value(input, room);
    if length <= PHRASE || input.get(length..length + 2)? != b"\r\n" {
        return None;
    }
    *room.get_mut(length..)?.first_chunk_mut::<2>()? = *b"\r\n";
    head.status = u16::from(hundreds - b'0') * 100 + u16::from(tens - b'0') * 10 + u16::from(units - b'0');
    head.version = Version::Http11;
    let begin = head.fields.used() as u32;
    let end = begin + length as u32;
    head.version_text = Span { start: begin, end: begin + 8 };
    head.reason = Span { start: begin + PHRASE as u32, end };
    head.line = Span { start: begin, end: end + 2 };
    head.fields.advance(length + 2);
    Some(length + 2)
}

/// Whether a response whose head is complete violates rules that only `option
/// accept-unsafe-violations-in-http-response` relaxes.
#[cold]
pub fn is_unsafe_response(input: &[u8], limits: &HeadLimits, context: &RequestContext) -> bool {
    let strict = HeadLimits { accept_unsafe: false, ..*limits };
    parse_response(input, &strict, context, &mut Scan::default(), &mut Head::new()).is_err()
}

fn status_line(input: &[u8], start: usize, accept_unsafe: bool, head: &mut Head) -> Result<StartLine, StepError> {
    if let Some(length) = usual_status_line(&input[start..], head) {
        return Ok(StartLine::Next(start + length));
    }
    let rest = &input[start..];
    let usual = rest.starts_with(b"HTTP/1.1 ");
    let length = if usual { 8 } else { version_length(rest) };
    let version = &rest[..length];
    if !usual
        && !accept_unsafe
        && !is_http(version)
        && (length < rest.len() || !b"HTTP/".starts_with(&version[..length.min(5)]))
    {
        return StepError::at(Violation::Version, start);
    }
    match rest.get(length) {
        None => return Ok(StartLine::Partial),
        Some(b' ' | b'\t') if length > 0 => {}
        Some(_) => return StepError::at(Violation::Version, start + length),
    }
    let digits = skip_blanks(input, start + length);
    let code = input[digits..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let after = digits + code;
    match input.get(after) {
        None => return Ok(StartLine::Partial),
        Some(b' ' | b'\t' | b'\r' | b'\n') if code == 3 || (accept_unsafe && code > 0) => {}
        Some(_) => return StepError::at(Violation::Status, after),
    }
    let Some(status) = settle::decimal(&input[digits..after]).and_then(|code| u16::try_from(code).ok()) else {
        return StepError::at(Violation::Status, digits);
    };
    let reason = skip_blanks(input, after);
    let Some(found) = memchr::memchr3(b'\r', b'\n', 0, &input[reason..]) else { return Ok(StartLine::Partial) };
    let end = reason + found;
    if input[end] == 0 {
        return StepError::at(Violation::Reason, end);
    }
    let Some(behind) = line_end(input, end)? else { return Ok(StartLine::Partial) };
    head.status = status;
    head.version = if usual || is_modern(version) { Version::Http11 } else { Version::Http10 };
    let begin = head.fields.used() as u32;
    write_version(head, version);
    head.fields.write_raw(b" ");
    head.fields.write_raw(&input[digits..after]);
    head.fields.write_raw(b" ");
    let reason_start = head.fields.used() as u32;
    let phrase = &input[reason..end];
    head.fields.write_raw(if phrase.is_empty() { http::reason(status).as_bytes() } else { phrase });
    head.reason = Span { start: reason_start, end: head.fields.used() as u32 };
    head.fields.write_raw(b"\r\n");
    head.line = Span { start: begin, end: head.fields.used() as u32 };
    if !usual {
        keep_version(head, version);
    }
    Ok(StartLine::Next(behind))
}

/// Validates the complete head.
fn finish(head: &mut Head, limits: &HeadLimits, request: &RequestContext) -> Result<(), Violation> {
    let length = settle::content_length(&mut head.fields)?;
    let coding = settle::transfer_encoding(&mut head.fields, limits.accept_unsafe)?;
    let (connection, upgrade) = settle::connection(&mut head.fields, false, limits.keep_proxy_connection)?;
    head.connection = connection;
    if coding == Coding::Chunked {
        if length.is_some() {
            head.fields.remove_known(Name::ContentLength);
        }
        head.connection.close |= is_insecure(head.version, length, limits);
    }
    if coding == Coding::Empty {
        head.fields.remove_known(Name::ContentLength);
    }
    let tunnel = request.connect && (200..300).contains(&head.status);
    if tunnel || head.status == 204 || (100..200).contains(&head.status) {
        // A length is not permitted (RFC 9110 section 8.6).
        head.fields.remove_known(Name::ContentLength);
        head.fields.remove_known(Name::TransferEncoding);
    }
    if head.status == 101 {
        head.upgrade = upgrade;
        if !upgrade {
            return Err(Violation::SwitchingProtocols);
        }
    }
    let bodiless = tunnel || request.head || matches!(head.status, 100..200 | 204 | 304);
    head.framing = match (bodiless, coding, length) {
        (true, ..) => Framing::None,
        (false, Coding::Chunked, _) => Framing::Chunked,
        (false, Coding::Absent, Some(length)) => Framing::Length(length),
        (false, ..) => Framing::UntilClose,
    };
    head.received_framing = head.framing;
    Ok(())
}
