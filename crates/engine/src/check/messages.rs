//! Messages of failed checks, in HAProxy's words, for the log and the statistics. Must never judge a result.

use base::hex;
use std::io;

use live::health::{CheckStatus, Report};
use policy::check::{Connect, Content, Expect, ExpectMatch, Port};

use super::running::{Outcome, RunningCheck};

/// Maximum length of a description, in bytes.
const SHOWN: usize = 127;

/// Formats a system error: `ECONNREFUSED returned by OS (Connection refused)`.
pub(super) fn of_system(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let name = match error.kind() {
        io::ErrorKind::ConnectionRefused => "ECONNREFUSED",
        io::ErrorKind::ConnectionReset => "ECONNRESET",
        io::ErrorKind::ConnectionAborted => "ECONNABORTED",
        // HAProxy uses one name for both; the text distinguishes them.
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

/// Formats an error of a connection that the system refused to start: `General socket error (Network is unreachable)`.
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

/// Describes a failed `connect` step.
pub(super) fn at_connect(running: &RunningCheck<'_>, connect: &Connect, reason: &str) -> String {
    if !running.check.is_tcp {
        return reason.to_owned();
    }
    if running.progress.step == 0 {
        return format!("{reason} at initial connection step of tcp-check");
    }
    let port = match connect.port {
        Some(Port::Fixed(port)) => format!(" port {port}"),
        Some(Port::Evaluated(_)) => " port (expr)".to_owned(),
        None => String::new(),
    };
    let comment = running.comment_of(connect.comment.as_deref());
    let comment = comment.map_or_else(String::new, |text| format!(" comment: '{text}'"));
    format!("{reason} at step {} of tcp-check (connect{port}){comment}", running.progress.step)
}

/// Describes the `expect` step at which the check failed.
pub(super) fn at_expect(running: &RunningCheck<'_>, expect: &Expect) -> String {
    if !running.check.is_tcp {
        return String::new();
    }
    let what = match &expect.wanted {
        ExpectMatch::Bytes { bytes, binary: false } => format!("expect string '{}'", printable(bytes)),
        ExpectMatch::Bytes { bytes, .. } => format!("expect binary '{}'", hex::encode_upper(bytes)),
        ExpectMatch::Pattern { binary: false, .. } => "expect regex".to_owned(),
        ExpectMatch::Pattern { .. } => "expect binary regex".to_owned(),
        ExpectMatch::Format(Content::Hex(_)) => "expect log-format binary".to_owned(),
        _ => "expect log-format string".to_owned(),
    };
    let comment = running.comment_of(expect.comment.as_deref());
    let comment = comment.map_or_else(String::new, |text| format!(" comment: '{text}'"));
    format!(" at step {} of tcp-check ({what}){comment}", running.progress.step)
}

/// Describes the `send` step at which the check failed.
pub(super) fn at_send(running: &RunningCheck<'_>, comment: Option<&str>) -> String {
    if !running.check.is_tcp {
        return String::new();
    }
    let comment = running.comment_of(comment).map_or_else(String::new, |text| format!(" comment: '{text}'"));
    format!(" at step {} of tcp-check (send){comment}", running.progress.step)
}

/// Describes a response that does not match.
pub(super) fn mismatch(running: &RunningCheck<'_>, expect: &Expect) -> String {
    let verb = if expect.negated { "matched unwanted content" } else { "did not match content" };
    let what = match &expect.wanted {
        ExpectMatch::Bytes { bytes, binary: false } => format!("'{}'", printable(bytes)),
        ExpectMatch::Bytes { .. } => "(binary)".to_owned(),
        ExpectMatch::Pattern { binary: false, .. } => "(regex)".to_owned(),
        ExpectMatch::Pattern { .. } => "(binary regex)".to_owned(),
        ExpectMatch::Format(Content::Hex(_)) => "(log-format binary)".to_owned(),
        _ => "(log-format string)".to_owned(),
    };
    with_comment(running, expect, format!("TCPCHK {verb} {what} at step {}", running.progress.step))
}

/// Describes an empty response.
pub(super) fn nothing(running: &RunningCheck<'_>, expect: &Expect) -> String {
    with_comment(running, expect, format!("TCPCHK got an empty response at step {}", running.progress.step))
}

/// Appends the step's comment.
pub(super) fn with_comment(running: &RunningCheck<'_>, expect: &Expect, text: String) -> String {
    match running.comment_of(expect.comment.as_deref()) {
        Some(comment) => format!("{text} comment: {comment}"),
        None => text,
    }
}

/// The outcome of a send format whose hexadecimal result is not valid.
pub(super) fn unsendable(running: &RunningCheck<'_>, comment: Option<&str>) -> Outcome {
    let text = format!("tcp-check send : failed to build log-format string at step {}", running.progress.step);
    let info = match running.comment_of(comment) {
        Some(comment) => format!("{text} comment: '{comment}'"),
        None => text,
    };
    Outcome::new(CheckStatus::L7Response, info)
}

/// The outcome of an expect format whose hexadecimal result is not valid.
pub(super) fn unreadable() -> Outcome {
    let info = "Failed to parse hexastring resulting of eval of a log-format string";
    Outcome::new(CheckStatus::L7Response, info.to_owned())
}

/// Formats a result: `reason: Layer7 wrong status, code: 500, info: "Bad", check duration: 1ms`.
pub(crate) fn reason(report: &Report) -> String {
    let mut text = format!("reason: {}", report.status.description());
    if let Some(code) = report.code.filter(|_| report.status.is_application()) {
        text.push_str(&format!(", code: {code}"));
    }
    if !report.info.is_empty() {
        text.push_str(&format!(", info: \"{}\"", encoded(&report.info)));
    }
    // Errors in traffic have no duration.
    if report.status != CheckStatus::Analyzed {
        text.push_str(&format!(", check duration: {}ms", report.took.as_millis()));
    }
    text
}

/// Truncates a text to the maximum length, at a character boundary.
pub(super) fn shortened(mut text: String) -> String {
    text.truncate(base::text::beginning(&text, SHOWN).len());
    text
}

/// Converts received bytes to text, truncated, with replacement characters for invalid UTF-8.
pub(super) fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]).into_owned()
}

/// Escapes a text for a log line: `<0D>`.
pub(super) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if !matches!(byte, b'"' | b'<' | b'>') => out.push(char::from(byte)),
            _ => out.push_str(&format!("<{byte:02X}>")),
        }
    }
    out
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
