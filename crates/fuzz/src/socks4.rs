//! Any bytes as the answer of a SOCKS4 proxy: no panic, the same verdict in pieces, never one before its time.


use wire::socks4::{ANSWER, answer};

/// Runs on one input; panics where a promise is broken.
pub fn run(input: &[u8]) {
    let whole = answer(input);
    // Byte by byte, the first verdict is the only one.
    let pieces = (0..=input.len()).map(|end| answer(&input[..end])).find(|found| *found != Ok(None));
    assert_eq!(pieces.unwrap_or(Ok(None)), whole);
    assert_eq!(whole == Ok(Some(())), input.len() >= ANSWER && input[0] == 0 && input[1] == 90);
}
