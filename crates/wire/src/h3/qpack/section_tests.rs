//! Field sections and instructions: the examples of RFC 9204, its MUSTs, and a model of an encoder.

use proptest::prelude::*;

use super::*;
use crate::fields::field::Capacity;
use crate::fields::{huffman, integer};
use crate::h3::{Error, ErrorCode};

const CAPACITY: Capacity = Capacity { bytes: 1000, fields: 20 };

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    base::hex::decode(&digits).unwrap()
}

/// Decodes a section, and formats its fields; `None`: it is blocked.
fn decode(decoder: &mut Decoder, stream: u64, section: &[u8]) -> Result<Option<String>, SectionError> {
    let mut text = String::new();
    let progress = decoder.decode(stream, section, CAPACITY, |field| {
        let [name, value] = [field.name, field.value].map(|part| String::from_utf8_lossy(part).into_owned());
        text += &format!("{name}: {value}\n");
    })?;
    assert!(progress == Progress::Complete || text.is_empty());
    Ok(Some(text).filter(|_| progress == Progress::Complete))
}

fn decoder(capacity: u32, blocked: u16) -> Decoder {
    Decoder::new(TableLimits { capacity, blocked })
}

/// Returns the output, and removes it.
fn output(decoder: &mut Decoder) -> Vec<u8> {
    let out = decoder.output().to_vec();
    decoder.advance(out.len());
    assert!(decoder.output().is_empty());
    out
}

/// RFC 9204, appendix B.1.
#[test]
fn a_section_of_the_rfc_without_a_table() {
    let mut decoder = decoder(0, 0);
    let section = bytes("0000 510b 2f69 6e64 6578 2e68 746d 6c");
    assert_eq!(decode(&mut decoder, 0, &section), Ok(Some(":path: /index.html\n".to_owned())));
    assert!(output(&mut decoder).is_empty());
}

/// RFC 9204, appendix B.2 to B.5.
#[test]
fn the_exchange_of_the_rfc() {
    let mut decoder = decoder(220, 2);
    // B.2: the section arrives before the insertions.
    assert_eq!(decode(&mut decoder, 4, &bytes("0381 10 11")), Ok(None));
    assert_eq!(decoder.take_unblocked(), None);
    let inserts = "3fbd01 c00f 7777 772e 6578 616d 706c 652e 636f 6d c10c 2f73 616d 706c 652f 7061 7468";
    decoder.read_instructions(&bytes(inserts)).unwrap();
    assert_eq!(decoder.table_size(), 106);
    assert_eq!(decoder.take_unblocked(), Some(4));
    assert_eq!(decoder.take_unblocked(), None);
    let expected = ":authority: www.example.com\n:path: /sample/path\n";
    assert_eq!(decode(&mut decoder, 4, &bytes("0381 10 11")), Ok(Some(expected.to_owned())));
    assert_eq!(output(&mut decoder), [0x84]);
    // B.3
    decoder.read_instructions(&bytes("4a63 7573 746f 6d2d 6b65 790c 6375 7374 6f6d 2d76 616c 7565")).unwrap();
    assert_eq!((decoder.table_size(), output(&mut decoder)), (160, vec![0x01]));
    // B.4: the stream is cancelled.
    assert_eq!(decode(&mut decoder, 8, &bytes("0500 80 c1 81")), Ok(None));
    decoder.cancel(8);
    assert_eq!(output(&mut decoder), [0x48]);
    decoder.read_instructions(&bytes("02")).unwrap();
    assert_eq!((decoder.table_size(), decoder.take_unblocked()), (217, None));
    let expected = ":authority: www.example.com\n:path: /\ncustom-key: custom-value\n";
    assert_eq!(decode(&mut decoder, 12, &bytes("0500 80 c1 81")), Ok(Some(expected.to_owned())));
    assert_eq!(output(&mut decoder), [0x8c]);
    // B.5: the oldest entry is evicted.
    decoder.read_instructions(&bytes("810d 6375 7374 6f6d 2d76 616c 7565 32")).unwrap();
    assert_eq!((decoder.table_size(), output(&mut decoder)), (215, vec![0x01]));
    let expected =
        "custom-key: custom-value2\n:authority: www.example.com\ncustom-key: custom-value\n:path: /sample/path\n";
    assert_eq!(decode(&mut decoder, 16, &bytes("0600 80 81 82 83")), Ok(Some(expected.to_owned())));
    assert_eq!(decode(&mut decoder, 20, &bytes("0600 84")), Err(SectionError::Failed));
}

/// Each representation of RFC 9204, section 4.5, with and without Huffman code.
#[test]
fn representations_are_read() {
    let rows = [
        ("0000", ""),
        ("0000 c1 d1 d7", ":path: /\n:method: GET\n:scheme: https\n"),
        ("0000 ff 23", "x-frame-options: sameorigin\n"),
        // The bit N makes no difference.
        ("0000 50 01 61 70 01 62", ":authority: a\n:authority: b\n"),
        ("0000 5f 50 02 4142", "user-agent: AB\n"),
        ("0000 21 78 01 79 31 78 00", "x: y\nx: \n"),
        ("0000 2f 01 25a849e95ba97d7f 89 25a849e95bb8e8b4bf", "custom-key: custom-value\n"),
        // Any base, as long as there is no reference.
        ("00 7f ff ff ff ff ff ff ff ff 3e c1", ":path: /\n"),
    ];
    for (section, expected) in rows {
        let read = decode(&mut decoder(0, 0), 0, &bytes(section));
        assert_eq!(read, Ok(Some(expected.to_owned())), "{section}");
    }
}

/// The MUSTs of RFC 9204 that concern field sections, with the static table alone.
#[test]
fn invalid_sections_are_refused() {
    let rows = [
        // 4.5.1: no prefix, or a part of it.
        "",
        "00",
        "ff",
        "00ff",
        // 4.5.1.1: a count without a table; 4.5.1.2: a negative base.
        "0100",
        "0080",
        "0081",
        // 3.1: no such entry.
        "0000 ff24",
        "0000 5f54 0161",
        "0000 ffff ffff ff0f",
        // 2.2.3: entries of the dynamic table.
        "0000 80",
        "0000 10",
        "0000 40 00",
        "0000 00 00",
        "0005 80",
        "0000 ff ff ff ff ff ff ff ff ff ff",
        // 4.1.2: strings that end early, Huffman codes with wrong padding and EOS.
        "0000 21",
        "0000 2178",
        "0000 2178 02 61",
        "0000 50 05 61",
        "0000 2178 81 00",
        "0000 2178 84 ffffffff",
    ];
    for section in rows {
        let read = decode(&mut decoder(0, 16), 0, &bytes(section));
        assert_eq!(read, Err(SectionError::Failed), "{section}");
    }
    assert_eq!(Error::from(SectionError::Failed), Error::connection(ErrorCode::QpackDecompressionFailed));
    assert_eq!(Error::from(SectionError::Excessive), Error::stream(ErrorCode::QpackDecompressionFailed));
}

/// The MUSTs that concern the dynamic table.
#[test]
fn invalid_references_are_refused() {
    // Three entries, of which two are left: x: 1 was evicted.
    let inserts = "3f 29 41 78 01 31 41 78 01 32 41 78 01 33";
    let rows = [
        ("0400 80 81", Ok(Some("x: 3\nx: 2\n".to_owned()))),
        // 2.2.3: an evicted entry, and one at or above the required count.
        ("0400 82", Err(SectionError::Failed)),
        ("0300 10", Err(SectionError::Failed)),
        ("0381 10", Err(SectionError::Failed)),
        ("0381 11", Ok(Some("x: 2\n".to_owned()))),
        ("0381 12", Err(SectionError::Failed)),
        ("0301 80", Err(SectionError::Failed)),
        ("0301 81", Ok(Some("x: 2\n".to_owned()))),
        // Literals with the names of entries, relative and post-base.
        ("0400 40 01 61 61 01 62", Ok(Some("x: a\nx: b\n".to_owned()))),
        ("0481 00 01 61 08 01 62", Ok(Some("x: a\nx: b\n".to_owned()))),
        ("0400 42 01 61", Err(SectionError::Failed)),
        // 4.5.1.2: a base below zero.
        ("0483 80", Err(SectionError::Failed)),
        // 4.5.1.1: above twice the number of entries.
        ("0600 80", Err(SectionError::Failed)),
        // 2.1.2: a stream that would wait beyond the limit.
        ("0100 80", Err(SectionError::Failed)),
    ];
    for (section, expected) in rows {
        let mut decoder = decoder(72, 0);
        decoder.read_instructions(&bytes(inserts)).unwrap();
        assert_eq!(decode(&mut decoder, 4, &bytes(section)), expected, "{section}");
    }
}

/// The MUSTs of RFC 9204, section 4.3.
#[test]
fn invalid_instructions_are_refused() {
    let rows = [
        // 4.3.1: above the advertised capacity.
        "3f 46",
        "3f ff ff ff ff ff ff ff ff ff 7f",
        // 3.2.2: an entry larger than the capacity, which is zero at first; also before it is complete.
        "41 78 01 31",
        "c0 00",
        "3f 02 41 78 01 31",
        "3f 45 41 78 44",
        "3f 45 5f 30",
        "3f 45 41 78 7f 00 61",
        // 3.2.2: larger only after decoding.
        "3f 01 61 1f 00",
        // 2.2.3: no such entry, in both tables.
        "3f 45 80 00",
        "3f 45 00",
        "3f 45 ff 24 00",
        "3f 45 41 78 00 81 00",
        "3f 45 41 78 00 01",
        // 4.1.2: strings.
        "3f 45 41 78 81 00",
        "3f 45 61 00 00",
    ];
    for instructions in rows {
        let mut whole = decoder(100, 0);
        let error = Err(Error::connection(ErrorCode::QpackEncoderStreamError));
        assert_eq!(whole.read_instructions(&bytes(instructions)), error, "{instructions}");
        let mut pieces = decoder(100, 0);
        let read = bytes(instructions).iter().try_for_each(|byte| pieces.read_instructions(&[*byte]));
        assert_eq!(read, error, "{instructions}");
    }
    // With the static table alone, only a capacity of zero is valid.
    assert_eq!(decoder(0, 0).read_instructions(&[0x20]), Ok(()));
    assert!(decoder(0, 0).read_instructions(&[0x21]).is_err());
}

/// RFC 9204, section 4.4: nothing was inserted, so that only cancellations are valid.
#[test]
fn acknowledgments_of_nothing_are_refused() {
    let error = Err(Error::connection(ErrorCode::QpackDecoderStreamError));
    let rows = [
        ("40 44 7f 80 01", Ok(())),
        // Streams of 62 bits, and one more.
        ("7f c0 ff ff ff ff ff ff ff 3f 40", Ok(())),
        ("7f c1 ff ff ff ff ff ff ff 3f", error),
        ("80", error),
        ("ff 00", error),
        // An increment of zero, and one above what was sent.
        ("00", error),
        ("01", error),
        ("3f 00", error),
        ("7f ff ff ff ff ff ff ff ff ff 01", error),
        ("7f 80 80 80 80 80 80 80 80 80", error),
    ];
    for (instructions, expected) in rows {
        let bytes = bytes(instructions);
        assert_eq!(AcknowledgmentReader::default().read(&bytes), expected, "{instructions}");
        let mut pieces = AcknowledgmentReader::default();
        assert_eq!(bytes.iter().try_for_each(|byte| pieces.read(&[*byte])), expected, "{instructions}");
    }
}

#[test]
fn streams_wait_for_their_insertions() {
    let mut decoder = decoder(1000, 2);
    decoder.read_instructions(&bytes("3f e1 06")).unwrap();
    // Required counts of 1, 3 and 2.
    assert_eq!(decode(&mut decoder, 0, &bytes("0200 80")), Ok(None));
    assert_eq!(decode(&mut decoder, 4, &bytes("0400 80")), Ok(None));
    // A stream is counted once.
    assert_eq!(decode(&mut decoder, 4, &bytes("0400 80")), Ok(None));
    assert_eq!(decode(&mut decoder, 8, &bytes("0300 80")), Err(SectionError::Failed));
    decoder.read_instructions(&bytes("41 78 01 31")).unwrap();
    assert_eq!((decoder.take_unblocked(), decoder.take_unblocked()), (Some(0), None));
    assert_eq!(decode(&mut decoder, 0, &bytes("0200 80")), Ok(Some("x: 1\n".to_owned())));
    assert_eq!(decode(&mut decoder, 8, &bytes("0300 80")), Ok(None));
    decoder.cancel(8);
    decoder.read_instructions(&bytes("41 78 01 32 41 78 01 33")).unwrap();
    assert_eq!((decoder.take_unblocked(), decoder.take_unblocked()), (Some(4), None));
    assert_eq!(decode(&mut decoder, 4, &bytes("0400 80")), Ok(Some("x: 3\n".to_owned())));
    // Each acknowledged section counts as the insertions that it needed.
    assert_eq!(output(&mut decoder), [0x80, 0x48, 0x84]);
}

/// One entry, referenced by every byte of a section.
#[test]
fn a_section_is_not_read_beyond_its_bound() {
    let mut decoder = decoder(4096, 0);
    let mut inserts = bytes("3f e1 1f 41 78 7f");
    integer_after_prefix(3900 - 127, &mut inserts);
    inserts.extend([b'v'; 3900]);
    decoder.read_instructions(&inserts).unwrap();
    let capacity = Capacity { bytes: 4096, fields: 20 };
    for reference in [&[0x80][..], &[0x40, 0]] {
        let mut section = vec![2, 0];
        section.extend(reference.repeat(1000));
        let mut fields = 0;
        assert_eq!(decoder.decode(0, &section, capacity, |_| fields += 1), Err(SectionError::Excessive));
        assert!(fields <= 4 * 20, "{fields}");
    }
}

fn integer_after_prefix(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(0x80 | (value & 0x7f) as u8);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A peer that does not read the decoder stream costs no more memory.
#[test]
fn output_is_bounded() {
    let mut decoder = decoder(1000, 0);
    for stream in 0..100_000 {
        decoder.cancel(stream);
    }
    assert!(decoder.output().len() < 8200);
    decoder.advance(1);
    assert!(decoder.output().len() > 8000);
}

/// A model of an encoder: inserts, and refers to what it has inserted.
#[derive(Debug, Clone)]
enum Action {
    Insert { name: usize, value: Vec<u8>, is_huffman: bool },
    Duplicate(usize),
    Section(Vec<usize>),
}

fn action() -> impl Strategy<Value = Action> {
    let value = proptest::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        (0_usize..110, value, any::<bool>()).prop_map(|(name, value, is_huffman)| Action::Insert {
            name,
            value,
            is_huffman
        }),
        (0_usize..4).prop_map(Action::Duplicate),
        proptest::collection::vec(0_usize..12, 0..6).prop_map(Action::Section),
    ]
}

fn push_string(text: &[u8], is_huffman: bool, prefix: u32, kind: u8, out: &mut Vec<u8>) {
    if is_huffman {
        let mut coded = vec![0; huffman::encoded_length(text)];
        huffman::encode(text, &mut coded).unwrap();
        integer::push(coded.len() as u64, prefix, kind | 1 << prefix, out);
        out.extend(coded);
    } else {
        integer::push(text.len() as u64, prefix, kind, out);
        out.extend_from_slice(text);
    }
}

/// Names and values.
type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// The output of an encoder: the bytes of its stream, and sections with the fields that they contain.
struct Sent {
    instructions: Vec<u8>,
    sections: Vec<(Vec<u8>, Entries)>,
}

const TABLE: usize = 400;

fn encode(actions: &[Action]) -> Sent {
    let mut table: Entries = Vec::new();
    let mut sent = Sent { instructions: Vec::new(), sections: Vec::new() };
    integer::push(TABLE as u64, 5, 0x20, &mut sent.instructions);
    // The entries that fit, from the newest one.
    let alive = |table: &[(Vec<u8>, Vec<u8>)]| {
        let mut size = 0;
        table
            .iter()
            .rev()
            .take_while(|(name, value)| {
                size += name.len() + value.len() + 32;
                size <= TABLE
            })
            .count()
    };
    for action in actions {
        match action {
            Action::Insert { name, value, is_huffman } => {
                let name_text = if let Some(entry) = static_table::get(*name) {
                    integer::push(*name as u64, 6, 0xc0, &mut sent.instructions);
                    entry.name.to_vec()
                } else if let Some(age) = name.checked_sub(99).filter(|age| *age < alive(&table)) {
                    integer::push(age as u64, 6, 0x80, &mut sent.instructions);
                    table[table.len() - 1 - age].0.clone()
                } else {
                    let text = format!("x-{name}").into_bytes();
                    push_string(&text, *is_huffman, 5, 0x40, &mut sent.instructions);
                    text
                };
                push_string(value, *is_huffman, 7, 0, &mut sent.instructions);
                table.push((name_text, value.clone()));
            }
            Action::Duplicate(age) if *age < alive(&table) => {
                integer::push(*age as u64, 5, 0, &mut sent.instructions);
                table.push(table[table.len() - 1 - age].clone());
            }
            Action::Duplicate(_) => {}
            Action::Section(ages) => {
                let ages: Vec<usize> = ages.iter().copied().filter(|age| *age < alive(&table)).collect();
                let required = ages.iter().min().map_or(0, |age| table.len() - age);
                let base = required / 2;
                let mut section = Vec::new();
                let range = 2 * (TABLE / 32);
                integer::push(if required == 0 { 0 } else { required % range + 1 } as u64, 8, 0, &mut section);
                match required.checked_sub(base + 1) {
                    Some(below) => integer::push(below as u64, 7, 0x80, &mut section),
                    None => integer::push(0, 7, 0, &mut section),
                }
                let mut fields = Vec::new();
                for age in ages {
                    let index = table.len() - 1 - age;
                    match index.checked_sub(base) {
                        Some(after) => integer::push(after as u64, 4, 0x10, &mut section),
                        None => integer::push((base - 1 - index) as u64, 6, 0x80, &mut section),
                    }
                    fields.push(table[index].clone());
                }
                sent.sections.push((section, fields));
            }
        }
    }
    sent
}

proptest! {
    /// Instructions in any pieces lead to the same table: the last section, decoded at the end, has its fields.
    #[test]
    fn tables_are_consistent(
        actions in proptest::collection::vec(action(), 1..40),
        step in 1_usize..30,
        last in proptest::collection::vec(0_usize..12, 1..6),
    ) {
        let mut actions = actions;
        actions.push(Action::Section(last));
        let sent = encode(&actions);
        for step in [step, usize::MAX] {
            let mut decoder = decoder(TABLE as u32, 1);
            for piece in sent.instructions.chunks(step.min(sent.instructions.len())) {
                prop_assert_eq!(decoder.read_instructions(piece), Ok(()));
                prop_assert!(decoder.table_size() <= TABLE && decoder.held() < 4 * TABLE);
            }
            prop_assert_eq!(decoder.held(), 0);
            let (section, expected) = sent.sections.last().unwrap();
            let mut fields = Vec::new();
            let progress = decoder.decode(4, section, Capacity { bytes: 4000, fields: 100 }, |field| {
                fields.push((field.name.to_vec(), field.value.to_vec()));
            });
            prop_assert_eq!(progress, Ok(Progress::Complete));
            prop_assert_eq!(&fields, expected);
        }
    }

    #[test]
    fn no_input_panics(
        inserts in proptest::collection::vec(any::<u8>(), 0..60),
        section in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut decoder = decoder(100, 1);
        let mut instructions = vec![0x3f, 0x45];
        instructions.extend(inserts);
        let _ = decoder.read_instructions(&instructions);
        let _ = decode(&mut decoder, 0, &section);
    }
}
