//! Compares HPACK with two other implementations: each side decodes the blocks of the other, and both decode a mutated
//! block to the same fields, or this side rejects it.

#![allow(clippy::unwrap_used, reason = "tests")]

use fluke_hpack::Decoder as Fluke;
use httlib_hpack::{Decoder as Httlib, Encoder};
use proptest::prelude::*;
use weir_wire::h2::{Decoder, FrameHeader, HEADER_LENGTH, encode_trailers};
use weir_wire::http::Fields;

type Field = (Vec<u8>, Vec<u8>);

/// Representations of a literal: Huffman-coded or plain name and value; indexed, not indexed, or never indexed.
const FLAGS: [u8; 9] = [0, 1, 2, 3, 4, 7, 8, 11, 4 | 0x10];

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) }
}

/// Names of the static table, some that repeat, and arbitrary ones.
fn name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::sample::select(vec!["cookie", "x-a", "x-b", "content-type", "via", ":path", "accept-encoding"])
            .prop_map(|name| name.as_bytes().to_vec()),
        "[a-z0-9-]{1,40}".prop_map(String::into_bytes),
    ]
}

/// Text and arbitrary bytes, sometimes more than the table holds.
fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => "[ -~]{0,60}".prop_map(String::into_bytes),
        2 => proptest::collection::vec(any::<u8>(), 0..80),
        1 => proptest::collection::vec(any::<u8>(), 100..5000),
    ]
}

fn fields() -> impl Strategy<Value = Vec<(Field, u8)>> {
    proptest::collection::vec(((name(), value()), proptest::sample::select(FLAGS.to_vec())), 0..12)
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Option<Vec<Field>> {
    let mut found = Vec::new();
    decoder.decode(block, 100_000, |name, value| found.push((name.to_vec(), value.to_vec()))).ok()?;
    Some(found)
}

proptest! {
    #![proptest_config(config(200))]

    /// Several blocks of one connection, with changes of the table size.
    #[test]
    fn what_others_write_is_read(blocks in proptest::collection::vec((fields(), 0_u32..4097, any::<bool>()), 1..6)) {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::new(4096));
        for (fields, size, resizes) in blocks {
            let mut block = Vec::new();
            if resizes {
                encoder.update_max_dynamic_size(size, &mut block).unwrap();
            }
            for ((name, value), flags) in &fields {
                encoder.encode((name.clone(), value.clone(), *flags), &mut block).unwrap();
            }
            let expected: Vec<Field> = fields.into_iter().map(|(field, _)| field).collect();
            prop_assert_eq!(decode(&mut decoder, &block), Some(expected));
        }
    }

    #[test]
    fn what_is_written_others_read(blocks in proptest::collection::vec(fields(), 1..4)) {
        let (mut fluke, mut httlib) = (Fluke::new(), Httlib::default());
        for mut fields in blocks {
            // Bytes that would end a line become blanks in every head.
            let values = fields.iter_mut().flat_map(|((_, value), _)| value);
            values.filter(|byte| matches!(byte, b'\r' | b'\n' | 0)).for_each(|byte| *byte = b' ');
            let mut trailers = Fields::new();
            fields.iter().for_each(|((name, value), _)| trailers.append(name, value));
            let mut frames = Vec::new();
            encode_trailers(1, &trailers, &mut frames).unwrap();
            let (mut block, mut rest) = (Vec::new(), &frames[..]);
            while let Some(header) = FrameHeader::parse(rest) {
                block.extend_from_slice(&rest[HEADER_LENGTH..][..header.length]);
                rest = &rest[HEADER_LENGTH + header.length..];
            }
            let expected: Vec<Field> = fields.into_iter().map(|(field, _)| field).collect();
            prop_assert_eq!(fluke.decode(&block).unwrap(), expected.clone());
            let mut found = Vec::new();
            httlib.decode(&mut block, &mut found).unwrap();
            let found: Vec<Field> = found.into_iter().map(|(name, value, _)| (name, value)).collect();
            prop_assert_eq!(found, expected);
        }
    }

    /// A mutated block: if this side decodes it, the other one decodes the same.
    #[test]
    fn what_is_changed_means_the_same_or_nothing(
        fields in fields(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
        cuts in any::<bool>(),
    ) {
        let mut encoder = Encoder::default();
        let mut block = Vec::new();
        for ((name, value), flags) in fields {
            encoder.encode((name, value, flags), &mut block).unwrap();
        }
        prop_assume!(!block.is_empty());
        for (place, byte) in changes {
            let place = place.index(block.len());
            block[place] = byte;
        }
        if cuts {
            block.truncate(cut.index(block.len()));
        }
        let mut fluke = Fluke::new();
        fluke.set_max_allowed_table_size(4096);
        // The other implementation rejects blocks without a field.
        if let Some(found) = decode(&mut Decoder::new(4096), &block).filter(|found| !found.is_empty()) {
            prop_assert_eq!(fluke.decode(&block).ok(), Some(found), "{:x?}", block);
        }
    }

    /// The same for arbitrary bytes.
    #[test]
    fn noise_means_the_same_or_nothing(block in proptest::collection::vec(any::<u8>(), 0..40)) {
        let mut fluke = Fluke::new();
        fluke.set_max_allowed_table_size(4096);
        // The other implementation rejects blocks without a field.
        if let Some(found) = decode(&mut Decoder::new(4096), &block).filter(|found| !found.is_empty()) {
            prop_assert_eq!(fluke.decode(&block).ok(), Some(found), "{:x?}", block);
        }
    }
}
