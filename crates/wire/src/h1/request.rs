//! Parses the head of a request.

use super::charset::{copy_target, is_blank, is_target, is_token};
use super::error::{RequestError, StepError, Violation};
use super::parse::{self, HeadLimits, Parse, Scan, StartLine, Walk, line_end, locate};
use super::settle::{self, Coding};
use super::target;
use crate::http::head::Span;
use crate::http::{Framing, Head, Method, Name, Version};

/// Parses the head of a request. `input` starts with the first byte of the message at every call. Normalizes and
/// rejects the same syntax as HAProxy (docs/http-syntax.md).
pub fn parse_request(
    input: &[u8],
    limits: &HeadLimits,
    scan: &mut Scan,
    head: &mut Head,
) -> Result<Parse, RequestError> {
    match parse::walk(input, limits, scan, head, request_line)? {
        Walk::Partial => Ok(Parse::Partial),
        Walk::Done { consumed } => match finish(head, limits) {
            Ok(()) if head.fields.overflowed() => Err(RequestError { violation: Violation::HeadTooLarge, position: 0 }),
            Ok(()) => Ok(Parse::Complete { consumed }),
            Err(violation) => Err(RequestError { violation, position: locate(input, violation) }),
        },
    }
}

/// Whether a request whose head is complete violates rules that only `option accept-unsafe-violations-in-http-request`
/// relaxes.
#[cold]
pub fn is_unsafe_request(input: &[u8], limits: &HeadLimits) -> bool {
    let strict = HeadLimits { accept_unsafe: false, ..*limits };
    parse_request(input, &strict, &mut Scan::default(), &mut Head::new()).is_err()
}

fn request_line(input: &[u8], start: usize, accept_unsafe: bool, head: &mut Head) -> Result<StartLine, StepError> {
    match plain_line(&input[start..], head) {
        Some(length) => Ok(StartLine::Next(start + length)),
        None => any_line(input, start, accept_unsafe, head),
    }
}

/// The preface of an HTTP/2 connection (RFC 9113, section 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Parses the line of most requests, which is forwarded unchanged; returns its length. `None` for any other line;
/// nothing has changed then.
#[inline]
fn plain_line(input: &[u8], head: &mut Head) -> Option<usize> {
    const METHOD: &[u8; 4] = b"GET ";
    const VERSION: &[u8; 11] = b" HTTP/1.1\r\n";
    let begin = head.fields.used();
    let (method, from) = input.split_first_chunk()?;
    let (room, to) = head.fields.room().split_first_chunk_mut()?;
    if method != METHOD || from.first() != Some(&b'/') {
        return None;
    }
    *room = *METHOD;
    let length = copy_target(from, to);
    if from[length..].first_chunk() != Some(VERSION) {
        return None;
    }
    *to[length..].first_chunk_mut()? = *VERSION;
    let whole = METHOD.len() + length + VERSION.len();
    head.fields.advance(whole);
    head.method = Method::Get;
    let span = |from: usize, to: usize| Span { start: (begin + from) as u32, end: (begin + to) as u32 };
    head.method_text = span(0, METHOD.len() - 1);
    head.target = span(METHOD.len(), METHOD.len() + length);
    head.version_text = span(METHOD.len() + length + 1, whole - 2);
    head.line = span(0, whole);
    Some(whole)
}

fn any_line(input: &[u8], start: usize, accept_unsafe: bool, head: &mut Head) -> Result<StartLine, StepError> {
    let fields = &mut head.fields;
    let begin = fields.used();
    let rest = &input[start..];
    let method = token_length(rest);
    match rest.get(method) {
        None => return Ok(StartLine::Partial),
        Some(b' ' | b'\t') if method > 0 => {}
        Some(b'\r' | b'\n') if method > 0 => return StepError::at(Violation::StartLine, start + method),
        Some(_) => return StepError::at(Violation::Method, start + method),
    }
    fields.write_raw(&rest[..method]);
    fields.write_raw(b" ");
    let target_start = fields.used();
    let mut at = skip_blanks(input, start + method);
    loop {
        let count = copy_target(&input[at..], fields.room());
        fields.advance(count);
        at += count;
        match input.get(at) {
            Some(byte) if is_target(*byte, accept_unsafe) => {
                fields.write_raw(&[*byte]);
                at += 1;
            }
            Some(b' ' | b'\t' | b'\r' | b'\n') if fields.used() > target_start => break,
            Some(b'\r' | b'\n') => return StepError::at(Violation::StartLine, at),
            Some(_) => return StepError::at(Violation::TargetCharacter, at),
            None => {
                fields.rewind(begin);
                return Ok(StartLine::Partial);
            }
        }
    }
    let target_end = fields.used();
    let Some((version, behind)) = parse_version(input, skip_blanks(input, at), accept_unsafe)? else {
        head.fields.rewind(begin);
        return Ok(StartLine::Partial);
    };
    let name = &rest[..method];
    head.method = Method::from_text(name);
    head.method_text = Span { start: begin as u32, end: (begin + method) as u32 };
    head.target = Span { start: target_start as u32, end: target_end as u32 };
    let Some(version) = version else {
        // HTTP/0.9: the line is the request.
        if head.method != Method::Get {
            return StepError::at(Violation::StartLine, at);
        }
        finish_line(head, b"HTTP/1.0", begin);
        return Ok(StartLine::Whole(behind));
    };
    if name == b"PRI" {
        // Reserved for the preface of HTTP/2, which is an error of its own.
        return match PREFACE.starts_with(&input[..input.len().min(PREFACE.len())]) {
            true if input.len() < PREFACE.len() => {
                head.fields.rewind(begin);
                Ok(StartLine::Partial)
            }
            true => StepError::at(Violation::Http2Preface, start),
            false => StepError::at(Violation::StartLine, start),
        };
    }
    finish_line(head, version, begin);
    Ok(StartLine::Next(behind))
}

fn token_length(text: &[u8]) -> usize {
    text.iter().position(|byte| !is_token(*byte)).unwrap_or(text.len())
}

/// Writes the version to be sent, ends the line and records the received version.
#[inline]
fn finish_line(head: &mut Head, version: &[u8], begin: usize) {
    if version == b"HTTP/1.1" {
        let start = head.fields.used() as u32 + 1;
        head.fields.write_raw(b" HTTP/1.1\r\n");
        head.version_text = Span { start, end: start + 8 };
        head.line = Span { start: begin as u32, end: start + 10 };
        return;
    }
    head.version = if is_modern(version) { Version::Http11 } else { Version::Http10 };
    head.fields.write_raw(b" ");
    write_version(head, version);
    head.fields.write_raw(b"\r\n");
    head.line = Span { start: begin as u32, end: head.fields.used() as u32 };
    keep_version(head, version);
}

/// Writes the version to be sent: versions after HTTP/1.1 are replaced with it, older ones are kept.
pub(super) fn write_version(head: &mut Head, version: &[u8]) {
    let start = head.fields.used() as u32;
    head.fields.write_raw(if head.version == Version::Http11 { b"HTTP/1.1" } else { version });
    head.version_text = Span { start, end: head.fields.used() as u32 };
}

/// Records a received version that is sent as another one.
pub(super) fn keep_version(head: &mut Head, version: &[u8]) {
    if head.text(head.version_text) != version {
        head.version_text = head.write(version);
    }
}

/// Parses the version at `at` up to the line end. `None` if incomplete; the inner `None` if there is no version and
/// that is accepted.
#[allow(clippy::type_complexity)]
fn parse_version(input: &[u8], at: usize, accept_unsafe: bool) -> Result<Option<(Option<&[u8]>, usize)>, StepError> {
    let rest = &input[at.min(input.len())..];
    if rest.starts_with(b"HTTP/1.1\r\n") {
        return Ok(Some((Some(&rest[..8]), at + 10)));
    }
    let length = version_length(rest);
    match rest.get(length) {
        None => return Ok(None),
        Some(b'\r' | b'\n') => {}
        Some(_) => return StepError::at(Violation::Version, at + length),
    }
    let Some(behind) = line_end(input, at + length)? else { return Ok(None) };
    if length == 0 {
        return if accept_unsafe { Ok(Some((None, behind))) } else { StepError::at(Violation::StartLine, at) };
    }
    let version = &rest[..length];
    if accept_unsafe || is_http(version) {
        Ok(Some((Some(version), behind)))
    } else {
        StepError::at(Violation::Version, at)
    }
}

/// Returns the number of leading bytes that may be part of a version: digits, capital letters, points and slashes.
pub(super) fn version_length(text: &[u8]) -> usize {
    text.iter().take_while(|byte| matches!(byte, b'.'..=b'9' | b'A'..=b'Z')).count()
}

/// Whether the version is `HTTP/`, a digit, a point and a digit.
pub(super) fn is_http(version: &[u8]) -> bool {
    matches!(version, [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'])
}

/// Whether the version is HTTP/1.1 or later, whatever the protocol's name: of eight bytes the sixth and the last are
/// compared, as in HAProxy, so that `HTTP/A.B` is sent as HTTP/1.1.
pub(super) fn is_modern(version: &[u8]) -> bool {
    matches!(version, [_, _, _, _, _, major, _, minor] if (*major, *minor) >= (b'1', b'1'))
}

pub(super) fn skip_blanks(input: &[u8], mut at: usize) -> usize {
    while input.get(at).is_some_and(|byte| is_blank(*byte)) {
        at += 1;
    }
    at
}

/// Validates the complete head.
fn finish(head: &mut Head, limits: &HeadLimits) -> Result<(), Violation> {
    target::normalize(head, limits.accept_unsafe)?;
    if !head.fields.names.has_beside(Name::Host, Name::Trailer) {
        return Ok(());
    }
    let length = settle::content_length(&mut head.fields)?;
    // The unsafe option does not apply to the Transfer-Encoding of requests, since that would permit request smuggling.
    let coding = settle::transfer_encoding(&mut head.fields, false)?;
    let to_proxy = limits.keep_proxy_connection && !matches!(head.target(), [b'/' | b'*', ..]);
    (head.connection, head.upgrade) = settle::connection(&mut head.fields, true, to_proxy)?;
    if let Some(value) = head.fields.known(Name::Expect) {
        head.expect_continue = value.eq_ignore_ascii_case(b"100-continue");
    }
    if head.upgrade && !limits.accept_unsafe {
        check_web_socket(head)?;
    }
    head.framing = match (coding, length) {
        (Coding::Chunked, _) => {
            if length.is_some() {
                head.fields.remove_known(Name::ContentLength);
            }
            head.connection.close |= is_insecure(head.version, length, limits);
            Framing::Chunked
        }
        (_, Some(length)) => Framing::Length(length),
        (_, None) => Framing::None,
    };
    head.received_framing = head.framing;
    if head.method == Method::Connect {
        if head.framing.has_body() {
            return Err(Violation::ConnectBody);
        }
        head.fields.remove_known(Name::ContentLength);
        head.framing = Framing::None;
    }
    let odd = matches!(head.method, Method::Get | Method::Head | Method::Delete) && head.version == Version::Http10;
    if odd && head.framing.has_body() && !limits.accept_payload_with_any_method {
        return Err(Violation::UnexpectedBody);
    }
    Ok(())
}

/// Whether the connection has to be closed after a message with both a length and chunks, or with chunks in HTTP/1.0
/// (RFC 9112 section 6.1), unless all agents are known to accept it.
pub(super) fn is_insecure(version: Version, length: Option<u64>, limits: &HeadLimits) -> bool {
    version == Version::Http10 || (length.is_some() && !limits.keep_insecure_transfer_encoding)
}

fn check_web_socket(head: &Head) -> Result<(), Violation> {
    let asked = head
        .all(b"upgrade")
        .any(|value| settle::elements(value).any(|element| element.eq_ignore_ascii_case(b"websocket")));
    if asked && head.first(b"sec-websocket-key").is_none_or(|key| key.len() != 24) {
        return Err(Violation::WebSocketKey);
    }
    Ok(())
}
