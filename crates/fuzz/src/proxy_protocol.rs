//! Any bytes as a PROXY protocol header: no panic, the same result in pieces, only the header's bytes consumed, and TLV
//! lists with consistent lengths.
//!
//! The first byte selects the maximum header length.


use wire::proxy_protocol::{ParsedHeader, FIXED_V2, LONGEST_V1, Version, decode};

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let [most, input @ ..] = data else { return };
    let most = FIXED_V2 + usize::from(*most) * 8;
    let whole = decode(input, most);
    // Fed byte by byte, the first result is the final one.
    let pieces = (0..=input.len()).map(|end| decode(&input[..end], most)).find(|found| *found != Ok(ParsedHeader::Partial));
    assert_eq!(pieces.unwrap_or(Ok(ParsedHeader::Partial)), whole);
    let Ok(ParsedHeader::Complete { header, consumed }) = whole else { return };
    assert!(consumed <= input.len());
    assert_eq!(decode(&input[..consumed], most), Ok(ParsedHeader::Complete { header: header.clone(), consumed }));
    match header.version {
        Version::V1 => assert!(consumed <= LONGEST_V1 && input[..consumed].ends_with(b"\r\n")),
        Version::V2 => {
            assert!(consumed <= most);
            let list: usize = header.tlvs.iter().map(|tlv| 3 + tlv.value.len()).sum();
            assert_eq!(list, header.tlvs.as_bytes().len());
            assert!(input[..consumed].ends_with(header.tlvs.as_bytes()));
        }
    }
    if let Some(ssl) = header.tlvs.ssl() {
        let list: usize = ssl.iter().map(|tlv| 3 + tlv.value.len()).sum();
        assert_eq!(5 + list, header.tlvs.first(0x20).map_or(0, <[u8]>::len));
    }
}
