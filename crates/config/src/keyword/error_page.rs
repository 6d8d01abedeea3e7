//! Files of `errorfile`: reads one and checks that it is a complete HTTP response that fits into a buffer. Must never
//! change it.

use super::ReadContext;
use super::argument::leading_number;
use super::report::Report;
use crate::diagnostic::Severity;
use crate::document::Line;
use crate::span::Span;
use crate::spec::ErrorFileSpec;

/// Statuses that a proxy can generate itself.
const STATUSES: &[u16] =
    &[200, 400, 401, 403, 404, 405, 407, 408, 410, 413, 414, 421, 422, 425, 429, 431, 500, 501, 502, 503, 504];

/// Whether a proxy can generate a response with that status.
pub(crate) fn is_status(status: u16) -> bool {
    STATUSES.contains(&status)
}

/// Parses the status in the word at `at`.
pub(crate) fn status(line: &Line, at: usize, report: &mut Report<'_>) -> Option<u16> {
    let (number, _) = leading_number(line.text(at));
    let found = u16::try_from(number).ok().filter(|status| is_status(*status));
    if found.is_none() {
        report.alert(line.span(at), format!("{} : status code '{number}' not handled.", line.keyword()));
    }
    found
}

/// Parses `errorfile <status> <file>` of a proxy or of an `http-errors` section.
pub(crate) fn line(line: &Line, around: ReadContext<'_>, report: &mut Report<'_>) -> Option<ErrorFileSpec> {
    let status = status(line, 1, report)?;
    let path = line.text(2).to_owned();
    match read(&path, line.span(2), around) {
        Ok(content) => Some(ErrorFileSpec { status, path, content }),
        Err(problem) => {
            if let Some(warning) = problem.warning {
                report.late(Severity::Warning, line.span(2), warning);
            }
            report.alert(line.span(2), format!("errorfile : {}", problem.message));
            None
        }
    }
}

/// Reason why a file cannot be used.
#[derive(Debug, PartialEq, Eq)]
struct Problem {
    /// Warning reported before the message, as in HAProxy.
    warning: Option<String>,
    /// HAProxy's sentence after `errorfile : `.
    message: String,
}

impl Problem {
    fn new(message: String) -> Self {
        Self { warning: None, message }
    }
}

/// Reads a file. An empty file is valid: the connection is then closed without a response.
fn read(path: &str, span: Span, around: ReadContext<'_>) -> Result<Vec<u8>, Problem> {
    let bufsize = around.bufsize;
    let limit = u64::from(bufsize);
    let content = around.read_file(path, span, limit + 1).map_err(|error| {
        let verb = if error.kind() == std::io::ErrorKind::NotFound { "opening" } else { "reading" };
        Problem::new(format!("error {verb} file '{path}'."))
    })?;
    if content.len() as u64 > limit {
        return Err(Problem {
            warning: Some(format!("custom error message file '{path}' larger than {bufsize} bytes. Truncating.")),
            message: format!("'{path}': unable to add payload into the HTX message"),
        });
    }
    match check(&content) {
        Ok(()) => Ok(content),
        Err(message) => Err(Problem::new(format!("'{path}': {message}"))),
    }
}

/// Returns HAProxy's sentence about content that is not a valid HTTP response.
pub fn fault(content: &[u8]) -> Option<String> {
    check(content).err()
}

/// Checks that the content is an HTTP response: status line, fields, a body of the announced length.
fn check(content: &[u8]) -> Result<(), String> {
    if content.is_empty() {
        return Ok(());
    }
    let unable = |offset: usize| format!("unable to parse headers (error offset: {offset})");
    let status = status_of(content).ok_or_else(|| unable(0))?;
    let (head, body) = split(content).ok_or("unable to parse headers (error offset: -2)")?;
    if status < 200 {
        return Err(format!("invalid http status code for an error message ({status})"));
    }
    let mut length = None;
    let mut offset = 0;
    for (index, raw) in head.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let line = raw.trim_ascii_end();
        if index > 0 && !line.is_empty() {
            let (name, value) = field(line).map_err(|at| unable(offset + at))?;
            if name.eq_ignore_ascii_case(b"transfer-encoding") {
                return Err("chunk-encoded payload not supported".into());
            }
            if name.eq_ignore_ascii_case(b"content-length") {
                length = std::str::from_utf8(value).ok().and_then(|value| value.parse::<usize>().ok());
            }
        }
        offset += raw.len();
    }
    if status == 204 || status == 304 {
        return if body.is_empty() { Ok(()) } else { Err("message payload not expected".into()) };
    }
    match length {
        Some(length) if length != body.len() => {
            Err(format!("payload size does not match the announced content-length ({} != {length})", body.len()))
        }
        _ => Ok(()),
    }
}

fn status_of(content: &[u8]) -> Option<u16> {
    let rest = content.strip_prefix(b"HTTP/")?;
    let [major, b'.', minor, b' ', digits @ ..] = rest else { return None };
    if !major.is_ascii_digit() || !minor.is_ascii_digit() {
        return None;
    }
    let digits = digits.get(..3)?;
    std::str::from_utf8(digits).ok()?.parse().ok().filter(|_| digits.iter().all(u8::is_ascii_digit))
}

/// Splits the content into the head without its empty line, and the body.
fn split(content: &[u8]) -> Option<(&[u8], &[u8])> {
    (0..content.len()).find_map(|at| {
        let rest = &content[at..];
        let body = [&b"\r\n\r\n"[..], b"\n\n", b"\n\r\n"].iter().find_map(|end| rest.strip_prefix(*end))?;
        Some((&content[..at], body))
    })
}

fn field(line: &[u8]) -> Result<(&[u8], &[u8]), usize> {
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let end = line.iter().position(|byte| !token(byte)).ok_or(line.len())?;
    if end == 0 || line[end] != b':' {
        return Err(end);
    }
    Ok((&line[..end], line[end + 1..].trim_ascii()))
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn answers_are_checked() {
        let rows: &[(&str, Result<(), &str>)] = &[
            ("", Ok(())),
            ("HTTP/1.0 503 x\r\n\r\n", Ok(())),
            ("HTTP/1.0 503\r\n\r\n", Ok(())),
            ("HTTP/1.0 503 x\n\nabc", Ok(())),
            ("HTTP/1.0 404 x\r\n\r\nabc", Ok(())),
            ("HTTP/1.1 503 x\r\nContent-Length: 3\r\n\r\nabc", Ok(())),
            (
                "HTTP/1.0 503 x\r\nContent-Length: 5\r\n\r\nabc",
                Err("payload size does not match the announced content-length (3 != 5)"),
            ),
            ("hello", Err("unable to parse headers (error offset: 0)")),
            ("HTTP/1.0 503 x\r\nFoo: bar\r\n", Err("unable to parse headers (error offset: -2)")),
            ("HTTP/1.0 503 x\r\nFoo : bar\r\n\r\n", Err("unable to parse headers (error offset: 19)")),
            ("HTTP/1.0 100 x\r\n\r\n", Err("invalid http status code for an error message (100)")),
            ("HTTP/1.0 304 x\r\n\r\nabc", Err("message payload not expected")),
            (
                "HTTP/1.1 503 x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                Err("chunk-encoded payload not supported"),
            ),
        ];
        for (text, expected) in rows {
            assert_eq!(check(text.as_bytes()), expected.map_err(str::to_owned), "{text:?}");
        }
    }
}
