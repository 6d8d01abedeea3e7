//! MySQL: the server's greeting, the login of a user without a password, and its answer. Must never send a password.

use super::{Judgement, line};
use config::spec::MysqlVersion;

/// Command number 1, behind the login: good-bye.
const QUIT: [u8; 5] = [1, 0, 0, 0, 1];

/// What a user without a password says, and good-bye.
pub(super) fn login(user: &str, version: MysqlVersion) -> Vec<u8> {
    const PLUGIN: &[u8] = b"mysql_native_password\0";
    let mut body = Vec::new();
    match version {
        // Capabilities: long passwords, and that transactions are known.
        MysqlVersion::Pre41 => body.extend_from_slice(&[0x00, 0x80, 0x00, 0x00, 0x01]),
        // Then those of the newer protocol; the longest packet; the character set; nothing.
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
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes();
    let mut packets = vec![length[0], length[1], length[2], 1];
    packets.extend_from_slice(&body);
    packets.extend_from_slice(&QUIT);
    packets
}

/// What is in a packet, once all of it is there.
fn packet(received: &[u8]) -> Option<&[u8]> {
    let (header, body) = received.split_at_checked(4)?;
    let length = usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16;
    body.get(..length).filter(|body| !body.is_empty())
}

/// A packet that tells of an error: its number, and words.
fn error(body: &[u8]) -> Option<Judgement> {
    match body {
        [0xff, low, high, text @ ..] => {
            Some(Judgement::wrong(i64::from(u16::from_le_bytes([*low, *high])), line(text)))
        }
        _ => None,
    }
}

/// The server's version, or why it wants to know nothing of us.
pub(super) fn greeting(received: &[u8], complete: bool) -> Judgement {
    match packet(received) {
        None if !complete => Judgement::Wait,
        None if received.is_empty() => Judgement::Nothing,
        None => Judgement::invalid(""),
        Some(body) => error(body).unwrap_or_else(|| Judgement::passed(&line(&body[1..]))),
    }
}

/// What it says to the user, behind its greeting if that is still there (the packet numbered 0): anything but an error.
pub(super) fn reply(received: &[u8], complete: bool) -> Judgement {
    let greets = received.get(3) == Some(&0);
    let behind = if greets { packet(received).map_or(&[][..], |body| &received[4 + body.len()..]) } else { received };
    match packet(behind) {
        None if !complete => Judgement::Wait,
        None => Judgement::invalid(""),
        Some(body) => error(body).unwrap_or(Judgement::Passed { code: 0, info: None }),
    }
}
