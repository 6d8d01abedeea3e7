//! Shared by tests above the runtime: scripted peers and virtual time. Everything here runs on a simulated worker, in
//! the script of a simulation; nothing here may take real time, and nothing knows the program under test.
//!
//! A script that waits in vain panics with the line of the test that waited.

#![cfg(feature = "tests")]

mod chunks;
mod journal;
mod peer;
mod readers;
mod scope;
mod service;
mod time;

pub use chunks::{Chunked, decode_chunks, encode_chunks};
pub use journal::{Journal, line_matches};
pub use peer::{Peer, PeerOptions};
pub use readers::{READERS, Reader, Remainder, RequestSpan};
pub use scope::Scope;
pub use service::Service;
pub use time::{LATE_AT_MOST, PATIENCE, Stopwatch, both, sleep, within};

/// Returns bytes that differ by position and by seed.
pub fn text(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
