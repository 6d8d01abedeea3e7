//! Results and errors of the decoders. Their memory use is tested with the other allocations (`tests/allocations.rs`).

use std::io::Write as _;

use super::ContentCoding::{Brotli, Deflate, Gzip, Zstd};
use super::DecodeError::{Malformed, TooLarge, Unsupported};
use super::*;

const ALL: [ContentCoding; 4] = [Gzip, Deflate, Brotli, Zstd];

fn encoded(coding: ContentCoding, text: &[u8]) -> Vec<u8> {
    let level = flate2::Compression::new(9);
    match coding {
        Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        }
        Deflate => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        }
        Brotli => {
            let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22);
            encoder.write_all(text).unwrap();
            encoder.into_inner()
        }
        Zstd => zstd(text, &[zstd_safe::CParameter::ChecksumFlag(true)]),
    }
}

fn zstd(text: &[u8], parameters: &[zstd_safe::CParameter]) -> Vec<u8> {
    let mut encoder = zstd_safe::CCtx::create();
    parameters.iter().for_each(|parameter| assert!(encoder.set_parameter(*parameter).is_ok()));
    let mut out = Vec::with_capacity(zstd_safe::compress_bound(text.len()));
    encoder.compress2(&mut out, text).unwrap();
    out
}

/// A text that compresses a little.
fn text(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * at % 251) as u8 ^ (at >> 8) as u8).collect()
}

#[test]
fn every_text_comes_back_and_none_is_larger_than_it_may_be() {
    for length in [0, 1, 100, PIECE - 1, PIECE, PIECE + 1, 100_000] {
        let text = text(length);
        for first in ALL {
            let once = encoded(first, &text);
            assert_eq!(decode(&[first], &once, length).as_ref(), Ok(&text), "{first:?} {length}");
            if length > 0 {
                assert_eq!(decode(&[first], &once, length - 1), Err(TooLarge), "{first:?} {length}");
            }
            for second in ALL {
                let limit = length.max(once.len());
                let twice = encoded(second, &once);
                assert_eq!(
                    decode(&[first, second], &twice, limit).as_ref(),
                    Ok(&text),
                    "{first:?} {second:?} {length}"
                );
                // Intermediate results are bounded as well.
                assert_eq!(decode(&[first, second], &twice, once.len() - 1), Err(TooLarge), "{first:?} {second:?}");
            }
        }
    }
}

#[test]
fn what_is_cut_off_or_followed_by_something_is_malformed() {
    let text = text(3000);
    for coding in ALL {
        let whole = encoded(coding, &text);
        for end in 0..whole.len() {
            assert_eq!(decode(&[coding], &whole[..end], 10_000), Err(Malformed), "{coding:?} {end}");
        }
        for behind in [&b"x"[..], b"\0", b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", b"\x1f\x8b", b"\x28\xb5\x2f\xfd"]
        {
            assert_eq!(decode(&[coding], &[&whole, behind].concat(), 10_000), Err(Malformed), "{coding:?} {behind:?}");
        }
    }
}

/// Brotli has no checksum: there, a changed bit may produce another text.
#[test]
fn a_changed_bit_is_found_by_the_checksum() {
    let text = text(500);
    for coding in [Gzip, Deflate, Zstd] {
        let whole = encoded(coding, &text);
        // Time, flags and system of a gzip header are not covered by a checksum.
        let head = if coding == Gzip { 10 } else { 0 };
        for at in head..whole.len() {
            for bit in 0..8 {
                let mut changed = whole.clone();
                changed[at] ^= 1 << bit;
                let found = decode(&[coding], &changed, 10_000);
                assert!(found.is_err() || found.as_ref() == Ok(&text), "{coding:?} {at} {bit}");
            }
        }
        let mut sum = whole.clone();
        let last = sum.len() - if coding == Gzip { 5 } else { 1 };
        sum[last] ^= 1;
        assert_eq!(decode(&[coding], &sum, 10_000), Err(Malformed), "{coding:?}");
    }
}

#[test]
fn members_and_frames_are_one_text_up_to_a_number() {
    let (one, two) = (encoded(Gzip, b"one "), encoded(Gzip, b"two"));
    assert_eq!(decode(&[Gzip], &[&*one, &two].concat(), 7), Ok(b"one two".to_vec()));
    assert_eq!(decode(&[Gzip], &[&*one, &two].concat(), 6), Err(TooLarge));
    assert_eq!(decode(&[Gzip], &one.repeat(MOST_MEMBERS), 1000), Ok(b"one ".repeat(MOST_MEMBERS)));
    assert_eq!(decode(&[Gzip], &one.repeat(MOST_MEMBERS + 1), 1000), Err(Malformed));
    let (one, two) = (encoded(Zstd, b"one "), encoded(Zstd, b"two"));
    let skipped = b"\x50\x2a\x4d\x18\x03\0\0\0abc";
    assert_eq!(decode(&[Zstd], &[&*one, skipped, &two].concat(), 7), Ok(b"one two".to_vec()));
    assert_eq!(decode(&[Zstd], &[&*one, skipped, &two].concat(), 6), Err(TooLarge));
    for coding in [Deflate, Brotli] {
        let one = encoded(coding, b"one ");
        assert_eq!(decode(&[coding], &one.repeat(2), 100), Err(Malformed), "{coding:?}");
    }
}

#[test]
fn deflate_alone_is_taken_for_deflate() {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(b"hello").unwrap();
    assert_eq!(decode(&[Deflate], &encoder.finish().unwrap(), 5), Ok(b"hello".to_vec()));
    for broken in [&b""[..], b"\x78", b"\x78\x9c", b"\x78\x20", b"hello", &[0xff; 50]] {
        assert_eq!(decode(&[Deflate], broken, 1000), Err(Malformed), "{broken:?}");
    }
}

/// A window is only a claim of its frame: no memory is allocated for it, and it is no reason to reject the text.
#[test]
fn windows_of_any_size_that_is_allowed_are_bounded_by_the_result() {
    let zeros = vec![0; 10_000_000];
    for window in [10, 23, 27, 30] {
        let bomb = zstd(&zeros, &[zstd_safe::CParameter::WindowLog(window)]);
        assert!(bomb.len() < 100_000, "{}", bomb.len());
        assert_eq!(decode(&[Zstd], &bomb, 16_384), Err(TooLarge), "{window}");
    }
    // A frame with a window of 1 GB and no content size: magic number, descriptor, window, one raw block of two bytes.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa0, 0x11, 0x00, 0x00, b'o', b'k'];
    assert_eq!(decode(&[Zstd], &frame, 2), Ok(b"ok".to_vec()));
    // A window above the maximum of Brotli's RFC.
    let mut large =
        brotli::enc::BrotliEncoderParams { quality: 5, lgwin: 28, large_window: true, ..Default::default() };
    large.size_hint = 5;
    let mut out = Vec::new();
    brotli::BrotliCompress(&mut &b"hello"[..], &mut out, &large).unwrap();
    assert_eq!(decode(&[Brotli], &out, 100), Err(Malformed));
}

#[test]
fn names_of_codings() {
    let read = |values: &[&str]| codings(values.iter().map(|value| value.as_bytes()));
    type Row<'a> = (&'a [&'a str], Result<&'a [ContentCoding], DecodeError>);
    let rows: &[Row<'_>] = &[
        (&[], Ok(&[])),
        (&["identity"], Ok(&[])),
        (&["", " , "], Ok(&[])),
        (&["gzip"], Ok(&[Gzip])),
        (&["X-GZip"], Ok(&[Gzip])),
        (&["deflate , br", "zstd"], Ok(&[Deflate, Brotli, Zstd])),
        (&["gzip, identity, gzip"], Ok(&[Gzip, Gzip])),
        (&["gzip, gzip, gzip, gzip"], Err(Unsupported)),
        (&["compress"], Err(Unsupported)),
        (&["gzip;q=1"], Err(Unsupported)),
        (&["gzip", "none"], Err(Unsupported)),
    ];
    for (values, expected) in rows {
        assert_eq!(read(values).as_deref().map_err(|error| *error), *expected, "{values:?}");
    }
}
