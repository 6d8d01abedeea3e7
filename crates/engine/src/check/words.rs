//! What is said about a check that failed, in HAProxy's words as its log and its statistics show them. Must never judge.

use std::io;

use policy::check::{Connect, Expect, Port, Wanted};

use super::run::Course;

/// Bytes of an answer's reason or of a format that are shown at most.
const SHOWN: usize = 120;

/// `ECONNREFUSED returned by OS (Connection refused)`.
pub(super) fn of_system(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let name = match error.kind() {
        io::ErrorKind::ConnectionRefused => "ECONNREFUSED",
        io::ErrorKind::ConnectionReset => "ECONNRESET",
        io::ErrorKind::ConnectionAborted => "ECONNABORTED",
        // HAProxy names both alike; the text tells which one it was.
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "ENETUNREACH",
        io::ErrorKind::TimedOut => "ETIMEDOUT",
        io::ErrorKind::AddrInUse => "EADDRINUSE",
        io::ErrorKind::AddrNotAvailable => "EADDRNOTAVAIL",
        io::ErrorKind::NotFound => "ENOENT",
        io::ErrorKind::PermissionDenied => "EACCES",
        io::ErrorKind::BrokenPipe => "EPIPE",
        _ => return text.to_owned(),
    };
    format!("{name} returned by OS ({text})")
}

/// The same of a connection that the system refused to begin: `General socket error (Network is unreachable)`.
pub(super) fn of_refusal(error: &io::Error) -> String {
    let is_general = matches!(
        error.kind(),
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable | io::ErrorKind::NotFound
    );
    if !is_general {
        return of_system(error);
    }
    let text = error.to_string();
    format!("General socket error ({})", text.split(" (os error").next().unwrap_or_default())
}

/// What failed in a step that opens a connection.
pub(super) fn at_connect(course: &Course<'_>, connect: &Connect, reason: &str) -> String {
    let port = match connect.port {
        Some(Port::Fixed(port)) => format!(" port {port}"),
        Some(Port::Evaluated(_)) => " port (expr)".to_owned(),
        None => String::new(),
    };
    let kind = if course.check.is_http { "http-check" } else { "tcp-check" };
    let comment = course.comment_of(connect.comment.as_deref());
    let comment = comment.map_or_else(String::new, |text| format!(" comment: '{text}'"));
    format!("{reason} at step {} of {kind} (connect{port}){comment}", course.step())
}

/// What did not come in time.
pub(super) fn at_expect(course: &Course<'_>, expect: &Expect) -> String {
    if course.check.is_http {
        return String::new();
    }
    let what = match &expect.wanted {
        Wanted::Bytes { bytes, binary: false } => format!("expect string '{}'", printable(bytes)),
        Wanted::Bytes { .. } => "expect binary".to_owned(),
        Wanted::Pattern { binary: false, .. } => "expect regex".to_owned(),
        Wanted::Pattern { .. } => "expect binary regex".to_owned(),
        _ => "expect log-format string".to_owned(),
    };
    let comment = course.comment_of(expect.comment.as_deref());
    let comment = comment.map_or_else(String::new, |text| format!(" comment: '{text}'"));
    format!(" at step {} of tcp-check ({what}){comment}", course.step())
}

/// What came is not what was waited for.
pub(super) fn mismatch(course: &Course<'_>, expect: &Expect) -> String {
    let verb = if expect.negated { "matched unwanted content" } else { "did not match content" };
    let what = match &expect.wanted {
        Wanted::Bytes { bytes, binary: false } => format!("'{}'", printable(bytes)),
        Wanted::Bytes { .. } => "(binary)".to_owned(),
        Wanted::Pattern { binary: false, .. } => "(regex)".to_owned(),
        Wanted::Pattern { .. } => "(binary regex)".to_owned(),
        _ => "(log-format string)".to_owned(),
    };
    with_comment(course, expect, format!("TCPCHK {verb} {what} at step {}", course.step()))
}

/// Nothing came at all.
pub(super) fn nothing(course: &Course<'_>, expect: &Expect) -> String {
    with_comment(course, expect, format!("TCPCHK got an empty response at step {}", course.step()))
}

/// With the comment behind it.
pub(super) fn with_comment(course: &Course<'_>, expect: &Expect, text: String) -> String {
    match course.comment_of(expect.comment.as_deref()) {
        Some(comment) => format!("{text} comment: {comment}"),
        None => text,
    }
}

/// Bytes from outside as a line of a log may show them.
pub(super) fn printable(bytes: &[u8]) -> String {
    let shown = bytes.iter().take(SHOWN);
    shown.map(|byte| if (0x20..0x7f).contains(byte) && *byte != b'"' { char::from(*byte) } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::{of_refusal, of_system};
    use std::io::Error;

    #[test]
    fn a_system_that_refuses_to_begin_is_told_apart() {
        let rows = [
            (101, "ENETUNREACH returned by OS", "General socket error"),
            (113, "ENETUNREACH returned by OS", "General socket error"),
            (2, "ENOENT returned by OS", "General socket error"),
            (111, "ECONNREFUSED returned by OS", "ECONNREFUSED returned by OS"),
            (99, "EADDRNOTAVAIL returned by OS", "EADDRNOTAVAIL returned by OS"),
        ];
        for (number, later, at_once) in rows {
            let error = Error::from_raw_os_error(number);
            let is = |text: String, name: &str| text.starts_with(&format!("{name} (")) && text.ends_with(')');
            assert!(is(of_system(&error), later), "{number}");
            assert!(is(of_refusal(&error), at_once), "{number}");
        }
    }
}
