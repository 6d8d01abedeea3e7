//! Any bytes as a message to encode: another implementation decodes the same bytes, and after each flush all input so
//! far.
//!
//! The first byte selects the format, the second one the window, the third one the space for the output. The rest is a
//! list of pieces: a byte of flags, one of length, one of repetitions, and their bytes.

use flate2::{Decompress, FlushDecompress, Status};
use ::deflate::{Encoder, Flush, Format};

/// Maximum size of a message in bytes.
const MOST: usize = 200_000;

/// See the module.
///
/// # Panics
/// If a property is violated.
pub fn run(data: &[u8]) {
    let Some(([format, window, space], mut rest)) = data.split_first_chunk::<3>() else { return };
    let window = 8 + window % 8;
    let (format, mut decoder) = match format % 3 {
        0 => (Format::Gzip, Decompress::new_gzip(window.max(9))),
        1 => (Format::Zlib, Decompress::new_with_window_bits(true, window.max(9))),
        _ => (Format::Raw, Decompress::new_with_window_bits(false, window.max(9))),
    };
    let mut encoder = Encoder::new(format, window);
    let (mut text, mut plain) = (Vec::new(), Vec::new());
    while let Some(([flags, length, times], after)) = rest.split_first_chunk::<3>() {
        let (part, after) = after.split_at(after.len().min(usize::from(*length)));
        rest = after;
        let piece = part.repeat(1 + usize::from(*times));
        if text.len() + piece.len() > MOST {
            break;
        }
        text.extend_from_slice(&piece);
        encoder.set_compresses(flags & 2 == 0);
        let flush = if flags & 1 == 0 { Flush::Later } else { Flush::Now };
        encode(&mut encoder, &piece, flush, usize::from(*space), &mut decoder, &mut plain);
        assert!(flush == Flush::Later || plain == text, "a flush");
    }
    let finished = encode(&mut encoder, &[], Flush::End, usize::from(*space), &mut decoder, &mut plain);
    assert!(finished && plain == text, "the end");
}

/// Encodes a piece and decodes the output; returns whether the decoder has found the end.
fn encode(
    encoder: &mut Encoder,
    mut piece: &[u8],
    flush: Flush,
    space: usize,
    decoder: &mut Decompress,
    plain: &mut Vec<u8>,
) -> bool {
    let mut coded = [0; 256];
    let mut decoded = [0; 200];
    loop {
        let done = encoder.encode(piece, &mut coded[..1 + space], flush);
        piece = &piece[done.taken..];
        let mut coded = &coded[..done.made];
        loop {
            let before = (decoder.total_in(), decoder.total_out());
            let status = decoder.decompress(coded, &mut decoded, FlushDecompress::Sync).expect("sound data");
            coded = &coded[(decoder.total_in() - before.0) as usize..];
            let made = (decoder.total_out() - before.1) as usize;
            plain.extend_from_slice(&decoded[..made]);
            if status == Status::StreamEnd {
                assert!(done.finished && coded.is_empty(), "the decoder's end is the encoder's");
                return true;
            }
            if made < decoded.len() && coded.is_empty() {
                break;
            }
        }
        if done.made <= space && !done.finished && flush != Flush::End {
            assert!(piece.is_empty(), "all is taken where there is space");
            return false;
        }
        assert!(!done.finished, "a decoder does not wait behind the end");
        assert!(done.made > 0, "a step forward");
    }
}
