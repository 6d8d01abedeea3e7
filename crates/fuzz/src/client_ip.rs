//! Any bytes as NetScaler's client address header: no panic, the same result in pieces, no bytes after it consumed.
//!
//! The first byte selects the maximum header length.


use wire::client_ip::decode;

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let [most, input @ ..] = data else { return };
    let (most, magic) = (usize::from(*most) * 8, u32::from_be_bytes(*b"weir"));
    let whole = decode(input, magic, most);
    // Fed byte by byte, the first result is the final one.
    let pieces = (0..=input.len()).map(|end| decode(&input[..end], magic, most)).find(|found| *found != Ok(None));
    assert_eq!(pieces.unwrap_or(Ok(None)), whole);
    if let Ok(Some(found)) = whole {
        assert!(found.consumed <= input.len() && found.consumed <= most);
        assert_eq!(found.source.is_ipv4(), found.destination.is_ipv4());
    }
}
