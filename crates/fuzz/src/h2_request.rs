//! HTTP/2 field blocks and their requests: any block that is accepted as a request has the same content when it is
//! encoded as HTTP/1 and parsed again, and no part of it ends a line early.

use wire::h1::{self, Edits, HeadLimits, Parse, Scan};
use wire::h2::{Capacity, Decoder, Outcome, RequestReader};
use wire::http::{Head, Method};

/// Runs on one input, a byte that selects the split into two blocks, followed by these; panics if a property is
/// violated.
pub fn run(data: &[u8]) {
    let Some((cut, blocks)) = data.split_first() else { return };
    let mut decoder = Decoder::new(256);
    let (first, second) = blocks.split_at(usize::from(*cut).min(blocks.len()));
    for block in [first, second] {
        let mut head = Head::new();
        let capacity = Capacity { bytes: 4096, fields: 100 };
        let mut reader = RequestReader::new(&mut head, capacity, true);
        if decoder.decode_fields(block, capacity, |field| reader.field(field)).is_err() {
            return;
        }
        assert!(decoder.table_size() <= 256);
        if reader.finish(true, false) == Ok(Outcome::Request) && head.known_method() != Method::Connect {
            read_again(&head);
        }
    }
}

/// Returns the fields, in order. `te` is normalized, and included once.
fn fields(head: &Head) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut fields = Vec::new();
    for (name, value) in head.fields() {
        if name != b"te" {
            fields.push((name.to_vec(), value.to_vec()));
        } else if fields.iter().all(|(name, _)| name != b"te") {
            fields.push((name.to_vec(), value.to_ascii_lowercase()));
        }
    }
    fields
}

/// Encodes a request as HTTP/1, and parses it again.
pub(crate) fn read_again(head: &Head) {
    let mut text = Vec::new();
    let edits = Edits { framing: head.framing, ..Edits::default() };
    assert!(h1::encode_request(head, &edits, &mut text).is_ok());
    // A WebSocket key is generated later.
    let accept_unsafe = head.upgrade;
    let limits = HeadLimits { max_head: 1 << 20, max_fields: 1 << 14, accept_unsafe, ..HeadLimits::default() };
    let mut again = Head::new();
    let parsed = h1::parse_request(&text, &limits, &mut Scan::default(), &mut again);
    assert_eq!(parsed, Ok(Parse::Complete { consumed: text.len() }), "{}", String::from_utf8_lossy(&text));
    assert_eq!(again.method(), head.method());
    assert_eq!(again.framing, head.framing);
    assert_eq!(fields(&again), fields(head));
}
