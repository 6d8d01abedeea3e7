//! MySQL: the server's handshake, the login of a user without a password, and the response. Must never send a password.

use super::{Judgement, line};
use config::spec::MysqlVersion;

/// The command COM_QUIT, with its packet header.
const QUIT: [u8; 5] = [1, 0, 0, 0, 1];

/// The command COM_QUERY.
const QUERY: u8 = 3;

/// The first byte of a request for another authentication method.
const OTHER_METHOD: u8 = 0xfe;

/// Appends a packet.
fn push_packet(number: u8, body: &[&[u8]], packets: &mut Vec<u8>) {
    let length: usize = body.iter().map(|part| part.len()).sum();
    let length = u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
    packets.extend_from_slice(&[length[0], length[1], length[2], number]);
    body.iter().for_each(|part| packets.extend_from_slice(part));
}

/// Returns the login packet of a user without a password, followed by COM_QUERY if there is a statement, and COM_QUIT.
pub(super) fn login(user: &str, version: MysqlVersion, query: Option<&str>) -> Vec<u8> {
    const PLUGIN: &[u8] = b"mysql_native_password\0";
    let mut body = Vec::new();
    match version {
        // Capabilities: long passwords and transactions.
        MysqlVersion::Pre41 => body.extend_from_slice(&[0x00, 0x80, 0x00, 0x00, 0x01]),
        // With the capabilities of protocol 4.1, the maximum packet length, the character set and padding.
        MysqlVersion::Post41 | MysqlVersion::Post80 => {
            let plugins = if version == MysqlVersion::Post80 { 0x08 } else { 0x00 };
            body.extend_from_slice(&[0x00, 0x82, plugins, 0x00, 0x00, 0x80, 0x00, 0x01, 0x21]);
            body.extend_from_slice(&[0; 23]);
        }
    }
    body.extend_from_slice(user.as_bytes());
    body.extend_from_slice(&[0, 0]);
    if version == MysqlVersion::Post80 {
        body.extend_from_slice(PLUGIN);
    }
    let mut packets = Vec::new();
    push_packet(1, &[&body], &mut packets);
    if let Some(query) = query {
        push_packet(0, &[&[QUERY], query.as_bytes()], &mut packets);
    }
    packets.extend_from_slice(&QUIT);
    packets
}

/// Returns the payload of a complete packet.
fn packet(received: &[u8]) -> Option<&[u8]> {
    let (header, body) = received.split_at_checked(4)?;
    let length = usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16;
    body.get(..length).filter(|body| !body.is_empty())
}

/// Parses an error packet: its number and message.
fn error(body: &[u8]) -> Option<Judgement> {
    match body {
        [0xff, low, high, text @ ..] => {
            Some(Judgement::wrong(i64::from(u16::from_le_bytes([*low, *high])), line(text)))
        }
        _ => None,
    }
}

/// Evaluates the handshake: the server's version, or an error.
pub(super) fn greeting(received: &[u8], complete: bool) -> Judgement {
    match packet(received) {
        None if !complete => Judgement::Wait,
        None if received.is_empty() => Judgement::Nothing,
        None => Judgement::invalid(""),
        Some(body) => error(body).unwrap_or_else(|| Judgement::passed(&line(&body[1..]))),
    }
}

/// Evaluates the response to the login: anything except an error passes. The handshake (packet number 0) before it is
/// skipped if present.
pub(super) fn reply(received: &[u8], complete: bool) -> Judgement {
    match packet(behind_greeting(received)) {
        None if !complete => Judgement::Wait,
        None => Judgement::invalid(""),
        Some(body) => error(body).unwrap_or(Judgement::Passed { code: 0, info: None }),
    }
}

/// Returns the bytes after the handshake, if that is present.
fn behind_greeting(received: &[u8]) -> &[u8] {
    let greets = received.get(3) == Some(&0);
    if greets { packet(received).map_or(&[][..], |body| &received[4 + body.len()..]) } else { received }
}

/// Evaluates the responses to the login and to a statement: errors fail. A login that asks for more fails as well: the statement
/// was sent after it already.
pub(super) fn result(received: &[u8], complete: bool) -> Judgement {
    let login = behind_greeting(received);
    match packet(login) {
        None if !complete => Judgement::Wait,
        None => Judgement::invalid(""),
        Some([OTHER_METHOD, ..]) => Judgement::wrong(0, "The server asks for another authentication method"),
        Some(body) => error(body).unwrap_or_else(|| match packet(&login[4 + body.len()..]) {
            None if !complete => Judgement::Wait,
            None => Judgement::invalid("No answer to the statement"),
            Some(body) => error(body).unwrap_or(Judgement::Passed { code: 0, info: None }),
        }),
    }
}
