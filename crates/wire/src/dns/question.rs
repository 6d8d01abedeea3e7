//! Encodes DNS queries. Must never choose the query ID.

use super::{INTERNET, Kind, Name};

/// The header flag RD: recursion desired.
const RECURSION: u16 = 0x0100;
/// The pseudo-record OPT, which advertises the maximum UDP payload (RFC 6891).
const OPTIONS: u16 = 41;

/// Encodes a query with the ID `id`; `payload` is the maximum length of a response over UDP, in bytes.
pub fn question(id: u16, name: &Name, kind: Kind, payload: u16) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(super::HEADER + name.bytes().len() + 15);
    // One question and one additional record.
    for number in [id, RECURSION, 1, 0, 0, 1] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.extend(name.bytes());
    for number in [kind.number(), INTERNET] {
        bytes.extend(number.to_be_bytes());
    }
    // The OPT record: its name is the root, its class the payload size, its time to live holds flags.
    bytes.push(0);
    for number in [OPTIONS, payload, 0, 0, 0] {
        bytes.extend(number.to_be_bytes());
    }
    bytes
}
