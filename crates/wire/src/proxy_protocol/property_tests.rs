//! Arbitrary bytes as a header: fragmentation does not change the result, and no byte after the header is consumed.

use super::{FIXED_V2, LONGEST_V1, ParsedHeader, SIGNATURE, Version, decode};
use proptest::prelude::*;

/// Bytes that often begin like a header.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let tail = || prop::collection::vec(any::<u8>(), 0..80);
    let list = prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..6)), 0..4);
    let text = "PROXY (TCP4|TCP6|UNKNOWN|UDP4)( [0-9a-f.:]{1,12}){0,4}\r?\n?";
    prop_oneof![
        tail(),
        (text, tail()).prop_map(|(line, tail)| [line.as_bytes(), &tail].concat()),
        (prop::sample::select(vec![0x20_u8, 0x21, 0x22, 0x11]), any::<u8>(), any::<u8>(), tail()).prop_map(
            |(command, family, length, tail)| { [&SIGNATURE[..], &[command, family, 0, length], &tail].concat() }
        ),
        (list, tail()).prop_map(|(list, tail)| {
            let list: Vec<u8> = list
                .into_iter()
                .flat_map(|(kind, value)| [&[kind, 0, value.len() as u8], &value[..]].concat())
                .collect();
            let length = (12 + list.len()) as u8;
            [&SIGNATURE[..], &[0x21, 0x11, 0, length], &[7; 12], &list, &tail].concat()
        }),
    ]
}

proptest! {
    #[test]
    fn pieces_and_the_whole_agree(input in bytes(), most in FIXED_V2..200) {
        let whole = decode(&input, most);
        let first = (0..=input.len()).map(|end| decode(&input[..end], most)).find(|found| *found != Ok(ParsedHeader::Partial));
        prop_assert_eq!(&first.unwrap_or(Ok(ParsedHeader::Partial)), &whole);
        let Ok(ParsedHeader::Complete { header, consumed }) = whole else { return Ok(()) };
        let again = decode(&input[..consumed], most);
        prop_assert_eq!(again, Ok(ParsedHeader::Complete { header: header.clone(), consumed }));
        match header.version {
            Version::V1 => prop_assert!(consumed <= LONGEST_V1 && input[..consumed].ends_with(b"\r\n")),
            Version::V2 => {
                prop_assert!(consumed <= most && input[..consumed].ends_with(header.tlvs.as_bytes()));
                let list: usize = header.tlvs.iter().map(|tlv| 3 + tlv.value.len()).sum();
                prop_assert_eq!(list, header.tlvs.as_bytes().len());
            }
        }
    }
}
