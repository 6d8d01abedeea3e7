//! A TLS ClientHello: for any input, the parts found are within it, and the result for a complete ClientHello does not
//! depend on the bytes after it, nor on its split into records.

use wire::client_hello::{Recognition, Hello, Message, extension, message, sslv2, version};

/// Returns the bytes of the first message.
fn whole(data: &[u8]) -> Option<Vec<u8>> {
    match message(data) {
        Recognition::Whole(Message::Contiguous(message)) => Some(message.to_vec()),
        Recognition::Whole(Message::Fragmented(fragments)) => {
            let message = fragments.pieces().collect::<Vec<_>>().concat();
            assert_eq!(message.len(), fragments.length());
            Some(message)
        }
        _ => None,
    }
}

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let _ = (sslv2(data), version(data));
    let Some(found) = whole(data) else { return };
    assert!(found.len() < data.len());
    let mut longer = data.to_vec();
    longer.extend_from_slice(b"more");
    assert_eq!(whole(&longer).as_ref(), Some(&found));
    // The same message, split into records of lengths taken from its own bytes.
    let (mut records, mut rest) = (Vec::new(), &found[..]);
    while let Some(first) = rest.first() {
        let (piece, next) = rest.split_at(rest.len().min(1 + usize::from(*first)));
        records.extend([0x16, 3, 1, (piece.len() >> 8) as u8, piece.len() as u8]);
        records.extend_from_slice(piece);
        rest = next;
    }
    assert_eq!(whole(&records).as_ref(), Some(&found));
    let Some(client) = Hello::of(&found).and_then(|hello| hello.client()) else { return };
    for part in [client.server_name(), client.protocols().next(), client.numbers(extension::SUPPORTED_GROUPS)] {
        assert!(part.is_none_or(|part| part.len() < found.len()));
    }
    assert!(client.key_share_groups().count() <= found.len() / 4);
}
