//! Redis, SMTP and PostgreSQL: protocols whose responses begin with letters or digits. Must never parse beyond them.

use super::{Judgement, line};

/// Evaluates a Redis reply; any line except `+PONG` is the error message.
pub(super) fn redis(received: &[u8], complete: bool) -> Judgement {
    if received.starts_with(b"+PONG\r\n") {
        return Judgement::passed("Redis server is ok");
    }
    if !complete && !received.contains(&b'\n') {
        return Judgement::Wait;
    }
    Judgement::wrong(0, line(received))
}

/// Parses an SMTP reply: its code, the separator and the text after it.
fn reply(received: &[u8]) -> Option<(i64, u8, String)> {
    let (code, rest) = received.split_at_checked(3)?;
    let code = std::str::from_utf8(code).ok().filter(|code| code.bytes().all(|byte| byte.is_ascii_digit()))?;
    let separator = *rest.first()?;
    Some((code.parse().ok()?, separator, line(rest.get(1..).unwrap_or_default())))
}

/// Evaluates an SMTP greeting, which is one line.
pub(super) fn smtp_greeting(received: &[u8], complete: bool) -> Judgement {
    if !complete && !received.contains(&b'\n') {
        return Judgement::Wait;
    }
    match reply(received) {
        Some((code @ 200..300, b' ' | b'\r', _)) => Judgement::Passed { code, info: None },
        Some((code, b' ' | b'\r', text)) => Judgement::wrong(code, text),
        _ => Judgement::invalid(line(received)),
    }
}

/// Evaluates an SMTP reply of one or several lines, of which the last one has no dash after its code. `last` marks the
/// final reply of the check.
pub(super) fn smtp_reply(received: &[u8], complete: bool, last: bool) -> Judgement {
    let mut lines = received.split_inclusive(|byte| *byte == b'\n');
    let ends = |line: &&[u8]| line.ends_with(b"\n") && line.get(3) != Some(&b'-');
    let is_whole = received.split_inclusive(|byte| *byte == b'\n').any(|line| ends(&line));
    if !complete && !is_whole {
        return Judgement::Wait;
    }
    match lines.next().and_then(reply) {
        Some((code @ 200..300, _, text)) => Judgement::Passed { code, info: last.then_some(text) },
        Some((code, _, text)) => Judgement::wrong(code, text),
        None => Judgement::wrong(0, ""),
    }
}

/// Returns the startup message of a PostgreSQL client.
pub(super) fn startup(user: &str) -> Vec<u8> {
    let mut message = vec![0, 0, 0, 0, 0, 3, 0, 0];
    message.extend_from_slice(b"user\0");
    message.extend_from_slice(user.as_bytes());
    message.extend_from_slice(b"\0\0");
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    message[..4].copy_from_slice(&length.to_be_bytes());
    message
}

/// Evaluates PostgreSQL's response: an authentication request or an error.
pub(super) fn postgres(received: &[u8], complete: bool) -> Judgement {
    if received.first() == Some(&b'E') {
        return match received.get(6..).filter(|text| complete || text.contains(&0)) {
            Some(text) => Judgement::invalid(line(text)),
            None if complete => Judgement::invalid(""),
            None => Judgement::Wait,
        };
    }
    if received.len() < 9 && !complete {
        return Judgement::Wait;
    }
    // `R`, a length below 256, an authentication type: those used over plain connections.
    match received {
        [b'R', 0, 0, 0, _, 0, 0, 0, 0 | 2..=7 | 9 | 10, ..] => Judgement::passed("PostgreSQL server is ok"),
        _ => Judgement::wrong(0, "PostgreSQL unknown error"),
    }
}
