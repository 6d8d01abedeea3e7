//! Round trips: the output is decoded by another implementation, for any input, split into any pieces, with any flushes
//! and output sizes. Must never access an encoder's internals.

use flate2::{Decompress, FlushDecompress, Status};
use proptest::prelude::*;

use crate::{Encoder, Flush, Format, Progress};

const FORMATS: [Format; 3] = [Format::Gzip, Format::Zlib, Format::Raw];

/// Decodes in output pieces smaller than any window, so that a distance beyond the window is detected.
struct Decoder {
    state: Decompress,
    plain: Vec<u8>,
    finished: bool,
}

impl Decoder {
    fn new(format: Format, window: u8) -> Self {
        let window = window.max(9);
        let state = match format {
            Format::Gzip => Decompress::new_gzip(window),
            Format::Zlib => Decompress::new_with_window_bits(true, window),
            Format::Raw => Decompress::new_with_window_bits(false, window),
        };
        Self { state, plain: Vec::new(), finished: false }
    }

    fn decode(&mut self, mut coded: &[u8]) {
        let mut space = [0; 100];
        loop {
            let before = (self.state.total_in(), self.state.total_out());
            let status = self.state.decompress(coded, &mut space, FlushDecompress::Sync).expect("it is sound");
            coded = &coded[(self.state.total_in() - before.0) as usize..];
            let made = (self.state.total_out() - before.1) as usize;
            self.plain.extend_from_slice(&space[..made]);
            self.finished |= status == Status::StreamEnd;
            if self.finished || made < space.len() && coded.is_empty() {
                assert!(coded.is_empty(), "nothing follows the end");
                return;
            }
        }
    }
}

/// Encodes one piece into buffers of these sizes, in rotation.
fn piece(encoder: &mut Encoder, mut input: &[u8], flush: Flush, sizes: &[usize]) -> Vec<u8> {
    let mut out = Vec::new();
    for size in sizes.iter().cycle() {
        let mut space = vec![0xAA; *size];
        let Progress { taken, made, finished } = encoder.encode(input, &mut space, flush);
        input = &input[taken..];
        out.extend_from_slice(&space[..made]);
        if finished || made < *size && flush != Flush::End {
            assert!(input.is_empty());
            assert_eq!(finished, flush == Flush::End);
            break;
        }
        assert!(made > 0 && out.len() < 1 << 20, "no step forward");
    }
    out
}

fn whole(encoder: &mut Encoder, input: &[u8]) -> Vec<u8> {
    piece(encoder, input, Flush::End, &[input.len() + 1000])
}

/// Returns pseudo-random bytes, equal for equal seeds.
fn noise(length: usize, mut seed: u64) -> Vec<u8> {
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as u8
    };
    (0..length).map(|_| next()).collect()
}

fn words(length: usize, seed: u64) -> Vec<u8> {
    let all = ["the ", "compression ", "of ", "a ", "page ", "window", "\n", "12", "345", "<p>"];
    let mut text = Vec::new();
    for byte in noise(length, seed) {
        text.extend_from_slice(all[usize::from(byte) % all.len()].as_bytes());
    }
    text.truncate(length);
    text
}

/// Texts at the limits of a match, a window, a block, or a code.
fn hard() -> Vec<Vec<u8>> {
    let mut all = vec![
        Vec::new(),
        b"a".to_vec(),
        b"abcabcabc".to_vec(),
        vec![0; 100_000],
        noise(100_000, 1),
        words(200_000, 2),
        (0..=255).cycle().take(70_000).collect(),
        noise(70_000, 3).into_iter().map(|byte| byte % 2).collect(),
        noise(70_000, 4).into_iter().map(|byte| if byte < 250 { 0 } else { byte }).collect(),
    ];
    for period in (1..300).step_by(7).chain([257, 258, 259]) {
        all.push(noise(period, 5).into_iter().cycle().take(3000).collect());
    }
    for distance in (9..=15).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + 1]) {
        let mut text = noise(distance, 6);
        text.extend_from_within(..distance.min(600));
        text.extend(noise(50, 7));
        all.push(text);
    }
    for length in [1, 2, 3, 4, 5, 511, 512, 24 * 1024 - 1, 24 * 1024, 24 * 1024 + 1, 65_535, 65_536] {
        all.push(words(length, 8));
        all.push(noise(length, 9));
    }
    // Symbol frequencies that make an unlimited code as long as possible.
    let (mut one, mut two) = (1, 1);
    let mut text = Vec::new();
    for symbol in 0..20_u8 {
        (0..one).for_each(|number: usize| text.extend([symbol, (number % 251) as u8]));
        (one, two) = (two, one + two);
    }
    all.push(text);
    all
}

#[test]
fn hard_inputs_come_back_from_every_format_and_window() {
    for (number, text) in hard().iter().enumerate() {
        for (format, window) in FORMATS.into_iter().flat_map(|format| (8..=15).map(move |window| (format, window))) {
            if window != 15 && number % 3 != usize::from(window) % 3 {
                continue;
            }
            let coded = whole(&mut Encoder::new(format, window), text);
            let mut decoder = Decoder::new(format, window);
            decoder.decode(&coded);
            assert!(decoder.finished && decoder.plain == *text, "{number} {format:?} {window}");
            let most = text.len() + 5 * (text.len() / (24 * 1024) + 1) + 18;
            assert!(coded.len() <= most, "{number}: {} bytes of {}", coded.len(), text.len());
        }
    }
}

#[test]
fn blocks_are_written_in_the_shortest_way() {
    // The first byte contains the final-block flag and the block type.
    let rows: &[(&[u8], u8)] = &[
        (b"", 1),
        (b"a", 1),
        (b"hello, hello, hello", 1),
        (&noise(40, 1), 1),
        (&noise(400, 1), 0),
        (&noise(5000, 1), 0),
        (&words(5000, 1), 2),
        (&[b'x'; 300], 1),
    ];
    for (text, kind) in rows {
        let coded = whole(&mut Encoder::new(Format::Raw, 15), text);
        assert_eq!((coded[0] & 1, coded[0] >> 1 & 3), (1, *kind), "{} bytes", text.len());
    }
}

#[test]
fn headers_say_what_follows() {
    let rows: &[(Format, u8, &[u8])] = &[
        (Format::Gzip, 15, &[0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 4, 3]),
        (Format::Zlib, 15, &[0x78, 0x01]),
        (Format::Zlib, 9, &[0x18, 0x19]),
        (Format::Zlib, 8, &[0x18, 0x19]),
    ];
    for (format, window, header) in rows {
        assert!(whole(&mut Encoder::new(*format, *window), b"x").starts_with(header), "{format:?} {window}");
    }
}

#[test]
fn an_empty_flush_writes_nothing() {
    let mut encoder = Encoder::new(Format::Gzip, 15);
    let nothing = Progress { taken: 0, made: 0, finished: false };
    let mut space = [0; 100];
    assert_eq!(encoder.encode(&[], &mut space, Flush::Now), nothing);
    let flushed = encoder.encode(b"abc", &mut space, Flush::Now);
    assert!(space[..flushed.made].ends_with(&[0, 0, 0xFF, 0xFF]));
    assert_eq!(encoder.encode(&[], &mut space, Flush::Now), nothing);
}

#[test]
fn an_encoder_that_is_used_again_is_as_a_new_one() {
    let mut used = Encoder::new(Format::Gzip, 15);
    for round in 0..60 {
        let text = words(1 + round * 2477 % 50_000, round as u64 / 3);
        assert!(whole(&mut used, &text) == whole(&mut Encoder::new(Format::Gzip, 15), &text), "{round}");
        used.reset();
        if round % 2 == 0 {
            used.encode(&words(round * 991, 77), &mut [0; 500], Flush::Now);
            used.set_compresses(false);
            used.reset();
        }
    }
}

#[test]
fn blocks_are_stored_while_nothing_is_to_be_compressed() {
    let mut encoder = Encoder::new(Format::Gzip, 15);
    let mut decoder = Decoder::new(Format::Gzip, 15);
    let text = words(60_000, 1);
    for (number, part) in text.chunks(1000).enumerate() {
        encoder.set_compresses(number / 10 % 2 == 0);
        let coded = piece(&mut encoder, part, Flush::Now, &[3000]);
        assert_eq!(coded.len() > 1000, number / 10 % 2 == 1, "{number}");
        decoder.decode(&coded);
    }
    decoder.decode(&piece(&mut encoder, &[], Flush::End, &[100]));
    assert!(decoder.finished && decoder.plain == text);
}

fn flushes() -> impl Strategy<Value = Flush> {
    prop_oneof![Just(Flush::Later), Just(Flush::Now)]
}

/// Texts of various kinds: any bytes, few different bytes, repeated parts.
fn texts() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..3000),
        proptest::collection::vec(0..3_u8, 0..3000),
        (0..50_000_usize, any::<u64>()).prop_map(|(length, seed)| words(length, seed)),
        (proptest::collection::vec(any::<u8>(), 1..400), 1..400_usize).prop_map(|(part, times)| part.repeat(times)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// After a flush all input can be decoded.
    #[test]
    fn pieces_come_back(
        pieces in proptest::collection::vec((texts(), flushes(), any::<bool>()), 0..8),
        sizes in proptest::collection::vec(prop_oneof![1..20_usize, 1..3000_usize, Just(16_384)], 1..5),
        format in 0..3_usize,
        window in 8..=15_u8,
    ) {
        let format = FORMATS[format];
        let mut encoder = Encoder::new(format, window);
        let mut decoder = Decoder::new(format, window);
        let mut text = Vec::new();
        for (input, flush, compresses) in pieces {
            encoder.set_compresses(compresses);
            text.extend_from_slice(&input);
            decoder.decode(&piece(&mut encoder, &input, flush, &sizes));
            prop_assert!(flush == Flush::Later || decoder.plain == text);
        }
        decoder.decode(&piece(&mut encoder, &[], Flush::End, &sizes));
        prop_assert!(decoder.finished && decoder.plain == text);
        let ended = encoder.encode(b"more", &mut [0; 10], Flush::End);
        prop_assert_eq!(ended, Progress { taken: 0, made: 0, finished: true });
    }
}
