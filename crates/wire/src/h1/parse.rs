//! The common part of parsing the heads of requests and responses: limits, resumption, and the walk from the start line
//! to the empty line. Each kind has its own start line and its own validation of the complete head.

use super::charset::is_token;
use super::error::{StepError, Violation};
use super::lines::{self, Lines, Rules};
use crate::http::Head;

/// Limits and leniency of head parsing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadLimits {
    /// Maximum number of lines in a head, including the start line (`tune.http.maxhdr`).
    pub max_fields: usize,
    /// Maximum length of a head in bytes (`tune.bufsize` less `tune.maxrewrite`).
    pub max_head: usize,
    /// `option accept-unsafe-violations-in-http-request` or `-response`.
    pub accept_unsafe: bool,
    /// `h1-accept-payload-with-any-method`.
    pub accept_payload_with_any_method: bool,
    /// `h1-do-not-close-on-insecure-transfer-encoding`.
    pub keep_insecure_transfer_encoding: bool,
    /// `option http-use-proxy-header`: Proxy-Connection is kept in requests to a proxy and in the responses to them.
    pub keep_proxy_connection: bool,
}

impl Default for HeadLimits {
    fn default() -> HeadLimits {
        HeadLimits {
            max_fields: 101,
            max_head: 16384 - 1024,
            accept_unsafe: false,
            accept_payload_with_any_method: false,
            keep_insecure_transfer_encoding: false,
            keep_proxy_connection: false,
        }
    }
}

impl HeadLimits {
    pub(super) fn rules(&self) -> Rules {
        Rules { most: self.max_fields, accept_unsafe: self.accept_unsafe }
    }
}

/// The position at which the parsing of a partial head resumes. Each new message needs a new one (`Scan::default()`).
///
/// A line is parsed when it is complete, and scanned for its end only once: the cost of a head received byte by byte is
/// proportional to its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scan {
    /// Offset of the first line that is not parsed yet.
    line: usize,
    /// There is no line end between `line` and this offset.
    seen: usize,
    started: bool,
    /// The method of an incomplete request line is complete.
    past_method: bool,
    dropped: bool,
}

/// How far a head was parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Parse {
    /// More bytes are needed. Call again with the same bytes followed by more.
    Partial,
    /// The head is complete.
    Complete {
        /// Bytes of the input that were consumed.
        consumed: usize,
    },
}

/// Result of parsing a start line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartLine {
    /// The line is incomplete; nothing has changed.
    Partial,
    /// Offset of the fields, after the start line.
    Next(usize),
    /// The line is the complete head (HTTP/0.9); offset of its end.
    Whole(usize),
}

/// Result of [`walk`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Walk {
    Partial,
    /// All lines are parsed; offset of the end of the head.
    Done {
        consumed: usize,
    },
}

/// Walks the lines of a head. `start_line` parses the first one at an offset.
#[inline]
pub(super) fn walk(
    input: &[u8],
    limits: &HeadLimits,
    scan: &mut Scan,
    head: &mut Head,
    start_line: fn(&[u8], usize, bool, &mut Head) -> Result<StartLine, StepError>,
) -> Result<Walk, StepError> {
    if scan.seen == 0 {
        head.clear();
    } else {
        let fresh = input.get(scan.seen..).unwrap_or_default();
        if memchr::memchr(b'\n', fresh).is_none() {
            watch_method(fresh, scan)?;
            return partial(input, limits, scan);
        }
    }
    if !scan.started {
        scan.line = skip_empty_lines(input, scan.line)?;
        if matches!(input.get(scan.line..), None | Some([] | [b'\r'])) {
            return partial(input, limits, scan);
        }
        lines::reserve(input, scan.line, &mut head.fields)?;
        match start_line(input, scan.line, limits.accept_unsafe, head)? {
            StartLine::Partial => {
                scan.past_method |= input[scan.line..].iter().any(|byte| !is_token(*byte));
                return partial(input, limits, scan);
            }
            StartLine::Whole(behind) if behind <= limits.max_head => return Ok(Walk::Done { consumed: behind }),
            StartLine::Whole(_) => return StepError::at(Violation::StartLineTooLong, limits.max_head),
            StartLine::Next(behind) => {
                scan.line = behind;
                scan.started = true;
            }
        }
    }
    match lines::parse_lines(input, scan.line, &limits.rules(), &mut scan.dropped, &mut head.fields)? {
        Lines::End { behind } if behind <= limits.max_head => {
            head.fields.note_parsed();
            Ok(Walk::Done { consumed: behind })
        }
        Lines::End { .. } => StepError::at(Violation::HeadTooLarge, limits.max_head),
        Lines::Partial { line } => {
            scan.line = line;
            partial(input, limits, scan)
        }
    }
}

#[cold]
fn partial(input: &[u8], limits: &HeadLimits, scan: &mut Scan) -> Result<Walk, StepError> {
    if input.len() >= limits.max_head {
        let violation = if scan.started { Violation::HeadTooLarge } else { Violation::StartLineTooLong };
        return StepError::at(violation, limits.max_head);
    }
    scan.seen = input.len();
    Ok(Walk::Partial)
}

/// Rejects bytes that cannot be HTTP at once, such as a TLS handshake, instead of waiting for the line end or a
/// timeout.
fn watch_method(fresh: &[u8], scan: &mut Scan) -> Result<(), StepError> {
    if scan.started || scan.past_method {
        return Ok(());
    }
    match fresh.iter().position(|byte| !is_token(*byte)) {
        None => Ok(()),
        Some(at) if matches!(fresh[at], b' ' | b'\t' | b'\r' | b'/') => {
            // A blank ends a method, a slash the protocol name of a response.
            scan.past_method = true;
            Ok(())
        }
        Some(at) => StepError::at(Violation::Method, scan.seen + at),
    }
}

/// Skips empty lines before a message (RFC 9112 section 2.2).
fn skip_empty_lines(input: &[u8], mut at: usize) -> Result<usize, StepError> {
    loop {
        match input.get(at) {
            Some(b'\n') => at += 1,
            Some(b'\r') => match input.get(at + 1) {
                Some(b'\n') => at += 2,
                None => return Ok(at),
                Some(_) => return StepError::at(Violation::BareCr, at),
            },
            _ => return Ok(at),
        }
    }
}

/// Returns the offset after a line end at `at`, or `None` if it is incomplete or there is none.
#[inline]
pub(super) fn line_end(input: &[u8], at: usize) -> Result<Option<usize>, StepError> {
    match (input.get(at), input.get(at + 1)) {
        (Some(b'\n'), _) => Ok(Some(at + 1)),
        (Some(b'\r'), Some(b'\n')) => Ok(Some(at + 2)),
        (Some(b'\r'), Some(_)) => StepError::at(Violation::BareCr, at),
        _ => Ok(None),
    }
}

/// Returns the offset of a violation found in the complete head: the first field of the relevant name, else the start.
#[cold]
pub(super) fn locate(input: &[u8], violation: Violation) -> usize {
    let name: &[u8] = match violation {
        Violation::Host | Violation::HostRepeated | Violation::HostMismatch => b"host:",
        Violation::ContentLength | Violation::UnexpectedBody => b"content-length:",
        Violation::TransferEncoding | Violation::TransferCoding => b"transfer-encoding:",
        Violation::ConnectionOptions => b"connection:",
        Violation::WebSocketKey | Violation::SwitchingProtocols => b"upgrade:",
        _ => b"",
    };
    let mut at = skip_empty_lines(input, 0).unwrap_or(0);
    let start = at;
    for line in input[at..].split_inclusive(|byte| *byte == b'\n') {
        if !name.is_empty() && line.len() >= name.len() && line[..name.len()].eq_ignore_ascii_case(name) {
            return at;
        }
        at += line.len();
    }
    start
}
