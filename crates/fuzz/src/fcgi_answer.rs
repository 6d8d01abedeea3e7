//! Any bytes as the output of a FastCGI application, split in any way: no panic, the same pieces for every split, and
//! the same output if the whole response is available at once.

use base::Buffer;
use wire::fcgi::{Decoder, Piece, ProtocolStatus, Values, take_whole};

/// The content of records, independent of how they were split.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    output: Vec<u8>,
    ends: usize,
    errors: Vec<Vec<u8>>,
    ended: Vec<ProtocolStatus>,
    limits: Option<(Option<u32>, Option<bool>)>,
    malformed: bool,
}

/// Decodes pieces of `piece` bytes, with space for `most` bytes of output.
fn decode(decoder: &Decoder, input: &[u8], piece: usize, most: usize) -> Said {
    let (mut decoder, mut said, mut error) = (decoder.clone(), Said::default(), Vec::new());
    let mut values = Values::default();
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
                Some(Piece::Values { data, whole }) => values.take(data, whole),
                None if data.is_empty() || used == 0 => break,
                None => {}
            }
            if data.is_empty() {
                break;
            }
        }
        assert!(data.is_empty(), "there is room for some output");
    }
    said.limits = values.is_whole().then(|| (values.max_requests(), values.shares_connections()));
    said
}

/// Runs on one input; panics if a property is violated.
pub fn run(input: &[u8]) {
    for decoder in [Decoder::default(), Decoder::for_several()] {
        let whole = decode(&decoder, input, input.len().max(1), usize::MAX);
        for (piece, most) in [(1, 1), (7, 3), (64, usize::MAX)] {
            let cut = decode(&decoder, input, piece, most);
            assert_eq!(cut.malformed, whole.malformed);
            if !whole.malformed {
                assert_eq!(cut, whole);
            }
        }
    }
    let mut output = Buffer::with_capacity(input.len());
    if take_whole(input, &mut output).is_some() {
        let said = decode(&Decoder::default(), input, input.len(), usize::MAX);
        let output = output.data().to_vec();
        let expected = Said { output, ends: said.ends, ended: vec![ProtocolStatus::Complete], ..Said::default() };
        assert_eq!(said, expected);
    }
}
