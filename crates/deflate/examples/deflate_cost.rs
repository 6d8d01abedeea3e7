//! Compares the cost of the encoder with that of zlib-rs at level 2: CPU time and size of compressed files, fed in
//! pieces. Owns nothing of the product.
//!
//! `cargo run --release -p weir-deflate --example deflate_cost [--piece BYTES] FILE...`

use std::time::Instant;

use flate2::{Compress, Compression, FlushCompress};
use weir_deflate::{Encoder, Flush, Format};

const ROUNDS: usize = 400;

fn ours(encoder: &mut Encoder, text: &[u8], piece: usize, output: &mut [u8]) -> usize {
    encoder.reset();
    let (mut made, mut left) = (0, text);
    while !left.is_empty() {
        let (now, later) = left.split_at(left.len().min(piece));
        let flush = if later.is_empty() { Flush::End } else { Flush::Now };
        made += encoder.encode(now, &mut output[made..], flush).made;
        left = later;
    }
    made
}

fn theirs(encoder: &mut Compress, text: &[u8], piece: usize, output: &mut [u8]) -> usize {
    encoder.reset();
    let mut left = text;
    while !left.is_empty() {
        let (now, later) = left.split_at(left.len().min(piece));
        let flush = if later.is_empty() { FlushCompress::Finish } else { FlushCompress::Sync };
        let made = encoder.total_out() as usize;
        encoder.compress(now, &mut output[made..], flush).expect("it encodes");
        left = later;
    }
    encoder.total_out() as usize
}

/// Returns the time of a call in seconds, averaged over several.
fn seconds(times: usize, mut encode: impl FnMut() -> usize) -> f64 {
    let start = Instant::now();
    for _ in 0..times {
        encode();
    }
    start.elapsed().as_secs_f64() / times as f64
}

#[allow(clippy::print_stdout, reason = "a program that prints")]
fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut piece = 15_360;
    if arguments.first().is_some_and(|first| first == "--piece") {
        piece = arguments[1].parse().expect("a number");
        arguments.drain(..2);
    }
    let mut encoder = Encoder::new(Format::Gzip, 15);
    let mut other = Compress::new_gzip(Compression::new(2), 15);
    for path in arguments {
        let text = std::fs::read(&path).expect("a file");
        let mut output = vec![0; text.len() + text.len() / 100 + 1000];
        let size = ours(&mut encoder, &text, piece, &mut output);
        let mut back = vec![0; text.len()];
        let mut decoder = flate2::Decompress::new_gzip(15);
        decoder.decompress(&output[..size], &mut back, flate2::FlushDecompress::Finish).expect("it decodes");
        assert_eq!(back, text);
        let other_size = theirs(&mut other, &text, piece, &mut output);
        let (mut best, mut other_best) = (f64::MAX, f64::MAX);
        let times = (100_000 / text.len()).max(1);
        // Alternately, so that both run under the same conditions.
        for _ in 0..ROUNDS {
            best = best.min(seconds(times, || ours(&mut encoder, &text, piece, &mut output)));
            other_best = other_best.min(seconds(times, || theirs(&mut other, &text, piece, &mut output)));
        }
        let speed = |seconds: f64| text.len() as f64 / seconds / 1e6;
        println!(
            "{path}: {:.0} MB/s, {size} bytes; zlib-rs {:.0} MB/s, {other_size} bytes; {:.2} times as fast, {:.3} of the size",
            speed(best),
            speed(other_best),
            other_best / best,
            size as f64 / other_size as f64
        );
    }
}
