//! Any bytes as the response of a SOCKS4 proxy: no panic, the same result in pieces, no premature result.


use wire::socks4::{ANSWER, answer};

/// Runs on one input; panics if a property is violated.
pub fn run(input: &[u8]) {
    let whole = answer(input);
    // Fed byte by byte, the first result is the final one.
    let pieces = (0..=input.len()).map(|end| answer(&input[..end])).find(|found| *found != Ok(None));
    assert_eq!(pieces.unwrap_or(Ok(None)), whole);
    assert_eq!(whole == Ok(Some(())), input.len() >= ANSWER && input[0] == 0 && input[1] == 90);
}
