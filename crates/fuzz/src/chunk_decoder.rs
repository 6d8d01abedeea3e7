//! Any bytes as a chunked body: no panic, the same result in pieces, and the same payload as a slow and simple parser
//! returns.
//!
//! The first byte selects the size of the pieces.


use wire::h1::{ChunkDecoder, ChunkState, Violation, encode_trailers};
use wire::http::Fields;

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let [step, input @ ..] = data else { return };
    let whole = decode(input, input.len().max(1));
    let pieces = decode(input, usize::from(*step).max(1));
    assert_eq!(whole, pieces);
    let model = read(input);
    match whole {
        Ok(DecodedBody { payload, end: Some((consumed, _)) }) => {
            let (read, trailers) = model.expect("the body ends");
            assert_eq!(payload, read);
            assert!(consumed > trailers && consumed <= input.len());
        }
        Ok(DecodedBody { payload, end: None }) => {
            // The chunks may be complete and the trailers not.
            if let Some((read, _)) = model {
                assert_eq!(payload, read);
            }
        }
        Err(violation) => {
            let in_trailers = !matches!(
                violation,
                Violation::ChunkSize
                    | Violation::ChunkTooLarge
                    | Violation::ChunkExtension
                    | Violation::ChunkEnd
                    | Violation::BareLf
                    | Violation::BareCr
            );
            assert!(model.is_none() || in_trailers || violation == Violation::BareCr, "{violation:?}");
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct DecodedBody {
    payload: Vec<u8>,
    /// Number of bytes consumed, and the trailers.
    end: Option<(usize, Vec<u8>)>,
}

fn decode(input: &[u8], step: usize) -> Result<DecodedBody, Violation> {
    let mut decoder = ChunkDecoder::new();
    let mut trailers = Fields::new();
    let mut payload = Vec::new();
    let mut used = 0;
    for piece in input.chunks(step) {
        let mut data = piece.to_vec();
        let decoded = decoder.decode_in_place(&mut data, &mut trailers).map_err(|error| {
            assert!(error.position <= piece.len());
            error.violation
        })?;
        assert!(decoded.payload <= decoded.consumed);
        payload.extend_from_slice(&data[..decoded.payload]);
        used += decoded.consumed;
        assert_eq!(data[decoded.consumed..], piece[decoded.consumed..]);
        if decoded.state == ChunkState::End {
            let mut text = Vec::new();
            encode_trailers(&trailers, &mut text).expect("a vector has room");
            return Ok(DecodedBody { payload, end: Some((used, text)) });
        }
        assert_eq!(decoded.consumed, piece.len());
    }
    Ok(DecodedBody { payload, end: None })
}

/// Returns the payload, and the start of the trailers; `None` if the chunks are malformed or incomplete.
fn read(input: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut payload = Vec::new();
    let mut at = 0;
    loop {
        let length = input[at..].windows(2).position(|bytes| bytes == b"\r\n")?;
        let size = read_line(&input[at..at + length])?;
        at += length + 2;
        if size == 0 {
            return Some((payload, at));
        }
        let size = usize::try_from(size).ok()?;
        payload.extend_from_slice(input.get(at..at.checked_add(size)?)?);
        at += size;
        if input.get(at..at + 2)? != b"\r\n" {
            return None;
        }
        at += 2;
    }
}

fn read_line(line: &[u8]) -> Option<u64> {
    let text = line.iter().map(|byte| char::from(*byte)).collect::<String>();
    let (size, extension) = text.split_once(';').map_or((text.as_str(), None), |(size, rest)| (size, Some(rest)));
    let digits = size.trim_end_matches([' ', '\t']);
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut quoted = false;
    let mut escaped = false;
    for letter in extension.unwrap_or_default().chars() {
        if letter != '\t' && letter.is_ascii_control() {
            return None;
        }
        (quoted, escaped) = match (quoted, escaped, letter) {
            (true, true, _) => (true, false),
            (true, false, '\\') => (true, true),
            (false, _, '\\') => return None,
            (_, _, '"') => (!quoted, false),
            _ => (quoted, false),
        };
    }
    let significant = digits.trim_start_matches('0');
    if quoted || significant.len() > 13 {
        return None;
    }
    Some(u64::from_str_radix(significant, 16).unwrap_or(0))
}
