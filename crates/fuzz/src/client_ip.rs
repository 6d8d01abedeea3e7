//! Any bytes as NetScaler's client address header: no panic, the same verdict in pieces, nothing behind it taken.
//!
//! The first byte chooses the longest header.


use wire::client_ip::decode;

/// Runs on one input; panics where a promise is broken.
pub fn run(data: &[u8]) {
    let [most, input @ ..] = data else { return };
    let (most, magic) = (usize::from(*most) * 8, u32::from_be_bytes(*b"weir"));
    let whole = decode(input, magic, most);
    // Byte by byte, the first verdict is the only one.
    let pieces = (0..=input.len()).map(|end| decode(&input[..end], magic, most)).find(|found| *found != Ok(None));
    assert_eq!(pieces.unwrap_or(Ok(None)), whole);
    if let Ok(Some(found)) = whole {
        assert!(found.consumed <= input.len() && found.consumed <= most);
        assert_eq!(found.source.is_ipv4(), found.destination.is_ipv4());
    }
}
