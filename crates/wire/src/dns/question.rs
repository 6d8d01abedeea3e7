//! Writes questions. Must never choose the number that one is known by.

use super::{INTERNET, Kind, Name};

/// Asks for recursion.
const RECURSION: u16 = 0x0100;
/// The pseudo-record that tells how long an answer may be (RFC 6891).
const OPTIONS: u16 = 41;

/// A question: `id` is what its answer is known by, `payload` how long an answer over UDP may be.
pub fn question(id: u16, name: &Name, kind: Kind, payload: u16) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(super::HEADER + name.bytes().len() + 15);
    // One question, and one additional record.
    for number in [id, RECURSION, 1, 0, 0, 1] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.extend(name.bytes());
    for number in [kind.number(), INTERNET] {
        bytes.extend(number.to_be_bytes());
    }
    // Its name is the root; its class is the length; its time to live are flags.
    bytes.push(0);
    for number in [OPTIONS, payload, 0, 0, 0] {
        bytes.extend(number.to_be_bytes());
    }
    bytes
}
