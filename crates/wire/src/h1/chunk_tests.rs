//! Chunked bodies that HAProxy accepts and rejects, fragmented in every way.

use super::*;
use crate::http::Fields;

/// Decodes a fragmented body; returns the payload, the trailers and the number of bytes left after the end.
fn decode(pieces: &[&[u8]], limits: &HeadLimits) -> Result<(Vec<u8>, String, usize), Violation> {
    let mut decoder = ChunkDecoder::with_limits(limits);
    let mut trailers = Fields::new();
    let mut payload = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        let mut data = piece.to_vec();
        let decoded = decoder.decode_in_place(&mut data, &mut trailers).map_err(|error| {
            assert!(error.position <= piece.len());
            error.violation
        })?;
        payload.extend_from_slice(&data[..decoded.payload]);
        if decoded.state == ChunkState::End {
            assert_eq!(data[decoded.consumed..], piece[decoded.consumed..], "what follows is untouched");
            let rest =
                piece.len() - decoded.consumed + pieces[index + 1..].iter().map(|piece| piece.len()).sum::<usize>();
            let mut text = Vec::new();
            encode_trailers(&trailers, &mut text).expect("a vector has room");
            return Ok((payload, String::from_utf8_lossy(&text).into_owned(), rest));
        }
        assert_eq!(decoded.consumed, piece.len(), "everything before the end is used");
    }
    Err(Violation::Status)
}

/// Checks that a body gives the same result as a whole, in single bytes, and split in two at every offset.
fn check(body: &[u8], expected: Result<(&[u8], &str, usize), Violation>) {
    let expected = expected.map(|(payload, trailers, rest)| (payload.to_vec(), trailers.to_owned(), rest));
    let limits = HeadLimits::default();
    let text = body.escape_ascii().to_string();
    assert_eq!(decode(&[body], &limits), expected, "{text}");
    let bytes: Vec<&[u8]> = body.chunks(1).collect();
    assert_eq!(decode(&bytes, &limits), expected, "{text} byte by byte");
    for cut in 0..body.len() {
        let (first, second) = body.split_at(cut);
        assert_eq!(decode(&[first, second], &limits), expected, "{text} cut at {cut}");
    }
}

#[test]
fn what_is_taken() {
    let none = "0\r\n\r\n";
    let cases: &[(&[u8], &[u8], &str, usize)] = &[
        (b"3\r\nabc\r\n0\r\n\r\n", b"abc", none, 0),
        (b"0\r\n\r\nGET /", b"", none, 5),
        (b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", b"abc", none, 0),
        (b"0000000000000000000000003\r\nabc\r\n000\r\n\r\n", b"abc", none, 0),
        (b"a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", b"01234567890123456789", none, 0),
        (b"3 \t\r\nabc\r\n0 \r\n\r\n", b"abc", none, 0),
        (b"3;a=b\r\nabc\r\n0;x\r\n\r\n", b"abc", none, 0),
        (b"3 ; a = \"b;\\\"\r\t\"", b"", "", 0),
        (b"3;\r\nabc\r\n0\r\n\r\n", b"abc", none, 0),
        (b"3;a=\"b;c\";d=\"\\\"\"\r\nabc\r\n0\r\n\r\n", b"abc", none, 0),
        (b"3;a\xe9b\t\r\nabc\r\n0\r\n\r\n", b"abc", none, 0),
        (b"3\r\nabc\r\n0\r\nA: b\r\n\r\n", b"abc", "0\r\na: b\r\n\r\n", 0),
        (b"3\r\nabc\r\n0\r\nA: b\nC:d\n\nrest", b"abc", "0\r\na: b\r\nc: d\r\n\r\n", 4),
        (b"0\r\nA: b\r\n c\r\n\r\n", b"", "0\r\na: b   c\r\n\r\n", 0),
        (b"0\r\n\n", b"", none, 0),
        (
            b"0\r\nHost: a\r\nContent-Length: 5\r\nX: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"",
            "0\r\nx: 1\r\n\r\n",
            0,
        ),
    ];
    for (body, payload, trailers, rest) in cases {
        if trailers.is_empty() {
            check(body, Err(Violation::ChunkExtension));
        } else {
            check(body, Ok((payload, trailers, *rest)));
        }
    }
}

#[test]
fn what_is_refused() {
    use Violation::*;
    let cases: &[(&[u8], Violation)] = &[
        (b"\r\nabc\r\n0\r\n\r\n", ChunkSize),
        (b";\r\nabc\r\n0\r\n\r\n", ChunkSize),
        (b"g\r\n", ChunkSize),
        (b"+3\r\nabc", ChunkSize),
        (b"-3\r\nabc", ChunkSize),
        (b"0x3\r\nabc", ChunkSize),
        (b"0_3\r\nabc", ChunkSize),
        (b" 3\r\nabc", ChunkSize),
        (b"3 3\r\nabc", ChunkSize),
        (b"3\nabc\n0\n\n", BareLf),
        (b"3\r\nabc\r\n0\n\r\n", BareLf),
        (b"10000000000000\r\nabc", ChunkTooLarge),
        (b"ffffffffffffffff\r\nabc", ChunkTooLarge),
        (b"10000000000000003\r\nabc", ChunkTooLarge),
        (b"3;a\rb\r\nabc", BareCr),
        (b"3\rabc", BareCr),
        (b"3;a\nabc", ChunkExtension),
        (b"3;a\0b\r\nabc", ChunkExtension),
        (b"3;a\x7fb\r\nabc", ChunkExtension),
        (b"3;a=\"b\r\nabc", ChunkExtension),
        (b"3;a=\"b\\\r\nabc", ChunkExtension),
        (b"3;a\\\"\r\nabc", ChunkExtension),
        (b"3\r\nabcX0\r\n\r\n", ChunkEnd),
        (b"3\r\nabc\n0\r\n\r\n", ChunkEnd),
        (b"3\r\nabc\rX0\r\n\r\n", ChunkEnd),
        (b"3\r\nabcd\r\n0\r\n\r\n", ChunkEnd),
        (b"0\r\nA : b\r\n\r\n", NameCharacter),
        (b"0\r\n: b\r\n\r\n", EmptyName),
        (b"0\r\nA\r\n\r\n", NoColon),
        (b"0\r\nA: b\0\r\n\r\n", ValueCharacter),
        (b"0\r\n A: b\r\n\r\n", LeadingSpace),
        (b"0\r\nA: b\rc\r\n\r\n", BareCr),
        (b"0\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", ContentLength),
        (b"0\r\nTransfer-Encoding: foo\r\n\r\n", TransferEncoding),
        (b"0\r\nHost: a\r\nHost: b\r\n\r\n", HostRepeated),
    ];
    for (body, violation) in cases {
        check(body, Err(*violation));
    }
}

#[test]
fn the_largest_chunk() {
    let mut decoder = ChunkDecoder::new();
    let mut data = *b"fffffffffffff\r\nabc";
    let decoded = decoder.decode_in_place(&mut data, &mut Fields::new()).unwrap();
    assert_eq!((decoded.payload, decoded.state), (3, ChunkState::More));
    assert_eq!(decoder.remaining_in_chunk(), (1 << 52) - 1 - 3);
}

#[test]
fn lines_may_not_outweigh_what_they_carry() {
    let limits = HeadLimits::default();
    let long = [b"3;".to_vec(), vec![b'x'; 15_000], b"\r\nabc\r\n0\r\n\r\n".to_vec()].concat();
    assert!(decode(&[&long], &limits).is_ok());
    let longer = [b"3;".to_vec(), vec![b'x'; 17_000], b"\r\nabc\r\n0\r\n\r\n".to_vec()].concat();
    assert_eq!(decode(&[&longer], &limits), Err(Violation::ChunkOverhead));
    assert_eq!(decode(&[&vec![b'0'; 17_000]], &limits), Err(Violation::ChunkOverhead));
    let many = b"1;abcdefghijklmnopqrstuvwxyz\r\na\r\n".repeat(2_000);
    assert_eq!(decode(&[&many], &limits), Err(Violation::ChunkOverhead));
    let usual = [b"1\r\na\r\n".repeat(10_000), b"0\r\n\r\n".to_vec()].concat();
    assert_eq!(decode(&[&usual], &limits).unwrap().0.len(), 10_000);
}

#[test]
fn trailers_are_bounded_like_heads() {
    let limits = HeadLimits { max_head: 1_000, max_fields: 11, ..HeadLimits::default() };
    let trailers = |count: usize| [b"0\r\n".to_vec(), b"a: b\r\n".repeat(count), b"\r\n".to_vec()].concat();
    assert!(decode(&[&trailers(10)], &limits).is_ok());
    assert_eq!(decode(&[&trailers(11)], &limits), Err(Violation::TooManyFields));
    let long = [b"0\r\nA: ".to_vec(), vec![b'x'; 2_000], b"\r\n\r\n".to_vec()].concat();
    assert_eq!(decode(&[&long], &limits), Err(Violation::TrailersTooLarge));
    let bytes: Vec<&[u8]> = long.chunks(1).collect();
    assert_eq!(decode(&bytes, &limits), Err(Violation::TrailersTooLarge));
}

#[test]
fn sizes_are_written_in_capital_digits() {
    let cases: [(u64, &[u8]); 4] =
        [(1, b"1\r\n"), (10, b"A\r\n"), (4096, b"1000\r\n"), (u64::MAX, b"FFFFFFFFFFFFFFFF\r\n")];
    for (length, line) in cases {
        assert_eq!(chunk_header(length, &mut [0; 18]), line);
    }
}

#[test]
fn payload_may_be_left_out_and_nothing_else() {
    let mut decoder = ChunkDecoder::new();
    assert_eq!(decoder.skip(5), 0, "there is no chunk");
    let decode = |decoder: &mut ChunkDecoder, text: &[u8]| {
        decoder.decode_in_place(&mut text.to_vec(), &mut Fields::new()).map(|decoded| (decoded.payload, decoded.state))
    };
    assert_eq!(decode(&mut decoder, b"a\r\nxyz"), Ok((3, ChunkState::More)));
    assert_eq!((decoder.skip(4), decoder.remaining_in_chunk()), (4, 3));
    assert_eq!((decoder.skip(100), decoder.remaining_in_chunk()), (3, 0));
    assert_eq!(decode(&mut decoder, b"\r\n0\r\n\r\n"), Ok((0, ChunkState::End)));
}

/// Any range of a body's payload is skipped, the rest decoded: state and payload are those of the whole.
#[test]
fn what_is_skipped_and_what_is_decoded_make_the_whole() {
    const BODY: &[u8] = b"5;x=y\r\nabcde\r\n1\r\nf\r\n8\r\nghijklmn\r\n0\r\nA: b\r\n\r\n";
    const PAYLOAD: &[u8] = b"abcdefghijklmn";
    for first in 0..BODY.len() {
        for most in [1, 2, 3, 8, 100] {
            let (mut decoder, mut trailers) = (ChunkDecoder::new(), Fields::new());
            let (mut payload, mut at, mut step) = (Vec::new(), 0, first);
            loop {
                let upto = (at + step).min(BODY.len());
                let mut piece = BODY[at..upto].to_vec();
                let decoded = decoder.decode_in_place(&mut piece, &mut trailers).unwrap();
                payload.extend_from_slice(&piece[..decoded.payload]);
                (at, step) = (upto, 1);
                if decoded.state == ChunkState::End {
                    break;
                }
                let before = decoder.remaining_in_chunk();
                let skipped = decoder.skip(most);
                assert_eq!(skipped, most.min(before));
                assert_eq!(decoder.remaining_in_chunk(), before - skipped);
                payload.extend_from_slice(&BODY[at..at + skipped as usize]);
                at += skipped as usize;
            }
            assert_eq!((&payload[..], at), (PAYLOAD, BODY.len()), "from {first}, {most} at a time");
            let mut text = Vec::new();
            encode_trailers(&trailers, &mut text).unwrap();
            assert_eq!(text, b"0\r\na: b\r\n\r\n");
        }
    }
}
