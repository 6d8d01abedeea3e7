//! Any bytes as what a FastCGI application says, cut in any way: no panic, and the same pieces however the bytes are cut.

use wire::fcgi::{Decoder, Piece, ProtocolStatus};

/// What records say, without the places at which they were cut.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    output: Vec<u8>,
    ends: usize,
    errors: Vec<Vec<u8>>,
    ended: Vec<ProtocolStatus>,
    malformed: bool,
}

/// Decodes pieces of so many bytes, with so much room for output.
fn decode(input: &[u8], piece: usize, most: usize) -> Said {
    let (mut decoder, mut said, mut error) = (Decoder::default(), Said::default(), Vec::new());
    for mut data in input.chunks(piece) {
        loop {
            let Ok((used, found)) = decoder.next(data, most) else {
                said.malformed = true;
                return said;
            };
            assert!(used <= data.len());
            data = &data[used..];
            match found {
                Some(Piece::Output(bytes)) => {
                    assert!(bytes.len() <= most);
                    said.output.extend_from_slice(bytes);
                }
                Some(Piece::OutputEnded) => said.ends += 1,
                Some(Piece::Error { data, whole }) => {
                    error.extend_from_slice(data);
                    if whole {
                        said.errors.push(std::mem::take(&mut error));
                    }
                }
                Some(Piece::Ended(status)) => said.ended.push(status),
                None if data.is_empty() || used == 0 => break,
                None => {}
            }
            if data.is_empty() {
                break;
            }
        }
        assert!(data.is_empty(), "there is room for some output");
    }
    said
}

/// Runs on one input; panics where a promise is broken.
pub fn run(input: &[u8]) {
    let whole = decode(input, input.len().max(1), usize::MAX);
    for (piece, most) in [(1, 1), (7, 3), (64, usize::MAX)] {
        let cut = decode(input, piece, most);
        assert_eq!(cut.malformed, whole.malformed);
        if !whole.malformed {
            assert_eq!(cut, whole);
        }
    }
}
