//! Any bytes as a body with content codings: no panic, no result above its limit, and the same result with any larger
//! limit.
//!
//! The first byte selects the codings, the second one the limit.

use engine::decoding::{ContentCoding, DecodeError, codings, decode};

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    const CODINGS: [ContentCoding; 4] =
        [ContentCoding::Gzip, ContentCoding::Deflate, ContentCoding::Brotli, ContentCoding::Zstd];
    let [choice, bound, body @ ..] = data else { return };
    if let Ok(found) = codings(body.split(|byte| *byte == b'\n')) {
        assert!(found.len() <= 3);
    }
    let named = [choice & 3, choice >> 2 & 3].map(|number| CODINGS[usize::from(number)]);
    let applied = if choice & 0x10 == 0 { &named[..1] } else { &named[..] };
    let limit = usize::from(*bound) * 64;
    let result = decode(applied, body, limit);
    let more = decode(applied, body, limit + 4096);
    match result {
        Ok(result) => {
            assert!(result.len() <= limit);
            assert_eq!(more, Ok(result));
        }
        Err(DecodeError::Malformed) => assert!(more.is_err(), "a larger bound mends nothing"),
        Err(DecodeError::TooLarge) => {}
        Err(DecodeError::Unsupported) => unreachable!("all are known"),
    }
}
