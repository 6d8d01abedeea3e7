//! What parsing a request's and a response's head have in common: limits, resuming, and the walk from start line to the
//! empty line. Each kind brings its own start line and its own judgement of the whole.

use super::charset::is_token;
use super::error::{Broken, Violation};
use super::lines::{self, Lines, Rules};
use crate::http::Head;

/// What a head may be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadLimits {
    /// Lines in a head, the start line included (`tune.http.maxhdr`).
    pub max_fields: usize,
    /// Bytes in a head (`tune.bufsize` less `tune.maxrewrite`).
    pub max_head: usize,
    /// `option accept-unsafe-violations-in-http-request` or `-response`.
    pub accept_unsafe: bool,
    /// `h1-accept-payload-with-any-method`.
    pub accept_payload_with_any_method: bool,
    /// `h1-do-not-close-on-insecure-transfer-encoding`.
    pub keep_insecure_transfer_encoding: bool,
    /// `option http-use-proxy-header`: Proxy-Connection stays in requests to a proxy, and in the answers to them.
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

/// Where the parsing of a partial head goes on. A new one (`Scan::default()`) belongs to each new message.
///
/// A line is parsed when it is complete, and searched for its end once: a head that comes byte by byte costs time in
/// proportion to its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scan {
    /// Where the first line that was not parsed yet starts.
    line: usize,
    /// No line ends in between `line` and here.
    seen: usize,
    started: bool,
    /// The method of a request line that is not complete was seen whole.
    past_method: bool,
    dropped: bool,
}

/// How far a head got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Parse {
    /// More bytes are needed. Call again with the same bytes and more behind them.
    Partial,
    /// The head is complete.
    Complete {
        /// Bytes of the input that it took.
        consumed: usize,
    },
}

/// How a start line came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartLine {
    /// It is not complete, and nothing has changed.
    Partial,
    /// Fields start behind it.
    Next(usize),
    /// It was the whole head (HTTP/0.9).
    Whole(usize),
}

/// How far the walk got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Walk {
    Partial,
    /// All lines are parsed; the head ends there.
    Done {
        consumed: usize,
    },
}

/// Walks over a head's lines. `start_line` parses the first one at a position.
#[inline]
pub(super) fn walk(
    input: &[u8],
    limits: &HeadLimits,
    scan: &mut Scan,
    head: &mut Head,
    start_line: fn(&[u8], usize, bool, &mut Head) -> Result<StartLine, Broken>,
) -> Result<Walk, Broken> {
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
            StartLine::Whole(_) => return Broken::at(Violation::StartLineTooLong, limits.max_head),
            StartLine::Next(behind) => {
                scan.line = behind;
                scan.started = true;
            }
        }
    }
    match lines::parse_lines(input, scan.line, &limits.rules(), &mut scan.dropped, &mut head.fields)? {
        Lines::End { behind } if behind <= limits.max_head => Ok(Walk::Done { consumed: behind }),
        Lines::End { .. } => Broken::at(Violation::HeadTooLarge, limits.max_head),
        Lines::Partial { line } => {
            scan.line = line;
            partial(input, limits, scan)
        }
    }
}

#[cold]
fn partial(input: &[u8], limits: &HeadLimits, scan: &mut Scan) -> Result<Walk, Broken> {
    if input.len() >= limits.max_head {
        let violation = if scan.started { Violation::HeadTooLarge } else { Violation::StartLineTooLong };
        return Broken::at(violation, limits.max_head);
    }
    scan.seen = input.len();
    Ok(Walk::Partial)
}

/// What cannot be HTTP is refused at once, not when its line ends or time is up: a TLS handshake, for one.
fn watch_method(fresh: &[u8], scan: &mut Scan) -> Result<(), Broken> {
    if scan.started || scan.past_method {
        return Ok(());
    }
    match fresh.iter().position(|byte| !is_token(*byte)) {
        None => Ok(()),
        Some(at) if matches!(fresh[at], b' ' | b'\t' | b'\r' | b'/') => {
            // A blank ends a method, a slash the name of a response's version.
            scan.past_method = true;
            Ok(())
        }
        Some(at) => Broken::at(Violation::Method, scan.seen + at),
    }
}

/// Empty lines before a message are skipped (RFC 9112 section 2.2).
fn skip_empty_lines(input: &[u8], mut at: usize) -> Result<usize, Broken> {
    loop {
        match input.get(at) {
            Some(b'\n') => at += 1,
            Some(b'\r') => match input.get(at + 1) {
                Some(b'\n') => at += 2,
                None => return Ok(at),
                Some(_) => return Broken::at(Violation::BareCr, at),
            },
            _ => return Ok(at),
        }
    }
}

/// The end of a line at `at`: `Some(behind)`, or `None` when it has not come.
#[inline]
pub(super) fn line_end(input: &[u8], at: usize) -> Result<Option<usize>, Broken> {
    match (input.get(at), input.get(at + 1)) {
        (Some(b'\n'), _) => Ok(Some(at + 1)),
        (Some(b'\r'), Some(b'\n')) => Ok(Some(at + 2)),
        (Some(b'\r'), Some(_)) => Broken::at(Violation::BareCr, at),
        _ => Ok(None),
    }
}

/// Where a violation that was found in the whole head stands: at the first field of that name, else at the beginning.
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
