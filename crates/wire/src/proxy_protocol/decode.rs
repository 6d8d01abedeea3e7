//! Parses a header of either version at the start of a connection. Must never consume a byte after the header; rejects
//! invalid input as early as possible.

use super::{
    Addresses, Command, FIXED_V2, Header, Malformed, SIGNATURE, Tlvs, Transport, UNIX_ADDRESS, Version, kind, text,
};
use base::hash::extend_crc32c;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Result of parsing the first bytes of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParsedHeader {
    /// The header is incomplete.
    Partial,
    /// A complete header.
    Complete {
        header: Header,
        /// Length of the header in bytes.
        consumed: usize,
    },
}

/// Parses the header at the start of `input`. Headers longer than `most` bytes are rejected.
///
/// # Errors
/// The header is malformed; the connection should be closed.
pub fn decode(input: &[u8], most: usize) -> Result<ParsedHeader, Malformed> {
    let complete = if begins_with(input, &SIGNATURE) {
        if input.len() < SIGNATURE.len() { None } else { binary(input, most)? }
    } else if begins_with(input, text::START) {
        if input.len() < text::START.len() { None } else { text::decode(input)? }
    } else {
        return Err(Malformed::NotAHeader);
    };
    Ok(complete.map_or(ParsedHeader::Partial, |(header, consumed)| ParsedHeader::Complete { header, consumed }))
}

/// Whether one of both is a prefix of the other.
fn begins_with(input: &[u8], start: &[u8]) -> bool {
    input.iter().zip(start).all(|(found, expected)| found == expected)
}

/// Parses a header of version 2 (section 2.2). `None` if it is incomplete.
fn binary(input: &[u8], most: usize) -> Result<Option<(Header, usize)>, Malformed> {
    if input.get(SIGNATURE.len()).is_some_and(|byte| byte >> 4 != 2) {
        return Err(Malformed::NotAHeader);
    }
    let Some((fixed, _)) = input.split_first_chunk::<FIXED_V2>() else { return Ok(None) };
    let [.., version_and_command, family_and_transport, high, low] = *fixed;
    let length = FIXED_V2 + usize::from(u16::from_be_bytes([high, low]));
    if length > most {
        return Err(Malformed::TooLong);
    }
    let Some(whole) = input.get(..length) else { return Ok(None) };
    let block = &whole[FIXED_V2..];
    let header = match version_and_command & 0x0f {
        // The address block of command LOCAL is skipped, whatever it contains.
        0 => Header {
            version: Version::V2,
            command: Command::Local,
            transport: Transport::Unspecified,
            addresses: Addresses::Unspecified,
            tlvs: Tlvs::default(),
        },
        1 => proxied(family_and_transport, block, whole)?,
        _ => return Err(Malformed::Invalid),
    };
    Ok(Some((header, length)))
}

fn proxied(family_and_transport: u8, block: &[u8], whole: &[u8]) -> Result<Header, Malformed> {
    let transport = match family_and_transport & 0x0f {
        0 => Transport::Unspecified,
        1 => Transport::Stream,
        2 => Transport::Datagram,
        _ => return Err(Malformed::Invalid),
    };
    let (addresses, rest) = match family_and_transport >> 4 {
        // The length of addresses of an unknown family is unknown, so TLVs after them cannot be located.
        0 => (Some(Addresses::Unspecified), &[][..]),
        1 => split(block, inet4),
        2 => split(block, inet6),
        3 => split(block, unix),
        _ => return Err(Malformed::Invalid),
    };
    let mut addresses = addresses.ok_or(Malformed::Invalid)?;
    // Connections with an unknown transport keep their real addresses.
    if transport == Transport::Unspecified {
        addresses = Addresses::Unspecified;
    }
    let tlvs = Tlvs::new(rest).ok_or(Malformed::Invalid)?;
    if tlvs.iter().any(|tlv| tlv.value.len() > longest(tlv.kind)) {
        return Err(Malformed::Invalid);
    }
    check(&tlvs, whole, whole.len() - rest.len())?;
    Ok(Header { version: Version::V2, command: Command::Proxy, transport, addresses, tlvs })
}

/// Returns the maximum length of a TLV's value in bytes: for a unique ID that of the protocol (section 2.2.5), for an
/// authority that of HAProxy.
fn longest(of: u8) -> usize {
    match of {
        kind::UNIQUE_ID => 128,
        kind::AUTHORITY => 255,
        _ => usize::from(u16::MAX),
    }
}

/// Splits an address block into the addresses and the bytes after them.
fn split<const LENGTH: usize>(block: &[u8], read: fn(&[u8; LENGTH]) -> Addresses) -> (Option<Addresses>, &[u8]) {
    match block.split_first_chunk::<LENGTH>() {
        Some((addresses, rest)) => (Some(read(addresses)), rest),
        None => (None, &[]),
    }
}

fn inet4(block: &[u8; 12]) -> Addresses {
    let [a, b, c, d, e, f, g, h, ports @ ..] = *block;
    inet(Ipv4Addr::new(a, b, c, d).into(), Ipv4Addr::new(e, f, g, h).into(), ports)
}

fn inet6(block: &[u8; 36]) -> Addresses {
    let (mut source, mut destination, mut ports) = ([0; 16], [0; 16], [0; 4]);
    source.copy_from_slice(&block[..16]);
    destination.copy_from_slice(&block[16..32]);
    ports.copy_from_slice(&block[32..]);
    inet(Ipv6Addr::from(source).into(), Ipv6Addr::from(destination).into(), ports)
}

fn inet(source: IpAddr, destination: IpAddr, [a, b, c, d]: [u8; 4]) -> Addresses {
    Addresses::Inet {
        source: SocketAddr::new(source, u16::from_be_bytes([a, b])),
        destination: SocketAddr::new(destination, u16::from_be_bytes([c, d])),
    }
}

fn unix(block: &[u8; 2 * UNIX_ADDRESS]) -> Addresses {
    let (mut source, mut destination) = (Box::new([0; UNIX_ADDRESS]), Box::new([0; UNIX_ADDRESS]));
    source.copy_from_slice(&block[..UNIX_ADDRESS]);
    destination.copy_from_slice(&block[UNIX_ADDRESS..]);
    Addresses::Unix { source, destination }
}

/// Verifies the checksum of the header (section 2.2.3). `list_at` is the offset of the TLVs in `whole`.
fn check(tlvs: &Tlvs, whole: &[u8], list_at: usize) -> Result<(), Malformed> {
    let mut at = list_at;
    for tlv in tlvs.iter() {
        let (value_at, end) = (at + 3, at + 3 + tlv.value.len());
        if tlv.kind == kind::CRC32C {
            let told = <[u8; 4]>::try_from(tlv.value).map_err(|_| Malformed::Invalid)?;
            let sum = [&whole[..value_at], &[0; 4], &whole[end..]].into_iter().fold(0, extend_crc32c);
            // A second checksum would be part of the bytes that the first one covers: one pass is enough.
            return if sum == u32::from_be_bytes(told) { Ok(()) } else { Err(Malformed::Checksum) };
        }
        at = end;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::hash::crc32c;

    /// Maximum length of a header in the tests.
    const MOST: usize = 1024;

    fn v2(version_and_command: u8, family: u8, block: &[u8]) -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend([version_and_command, family]);
        bytes.extend((block.len() as u16).to_be_bytes());
        bytes.extend(block);
        bytes
    }

    /// Returns the addresses or the error.
    fn read(input: &[u8]) -> Result<Option<(String, String)>, Malformed> {
        match decode(input, MOST)? {
            ParsedHeader::Complete { header, consumed } if consumed == input.len() => {
                Ok(header.inet().map(|(source, destination)| (source.to_string(), destination.to_string())))
            }
            other => panic!("{other:?}"),
        }
    }

    const INET4: &[u8] = b"\x0a\x01\x02\x03\xc0\xa8\0\x01\x30\x39\0\x50";

    #[test]
    fn headers_that_are_fine() {
        let own = None;
        let told = |source: &str, destination: &str| Some((source.to_owned(), destination.to_owned()));
        let mut inet6 = [0; 36];
        (inet6[15], inet6[31], inet6[33], inet6[35]) = (1, 2, 80, 81);
        let with_list = [INET4, b"\x01\0\x02h2\x04\0\0"].concat();
        for (input, expected) in [
            (b"PROXY TCP4 10.1.2.3 192.168.0.1 12345 80\r\n".to_vec(), told("10.1.2.3:12345", "192.168.0.1:80")),
            (b"PROXY TCP6 ::1 2001:DB8::7 0 65535\r\n".to_vec(), told("[::1]:0", "[2001:db8::7]:65535")),
            (b"PROXY UNKNOWN\r\n".to_vec(), own.clone()),
            (b"PROXY UNKNOWN ffff::1 and \xff anything \r 1 2\r\n".to_vec(), own.clone()),
            (v2(0x21, 0x11, INET4), told("10.1.2.3:12345", "192.168.0.1:80")),
            (v2(0x21, 0x12, INET4), told("10.1.2.3:12345", "192.168.0.1:80")),
            (v2(0x21, 0x21, &inet6), told("[::1]:80", "[::2]:81")),
            (v2(0x21, 0x11, &with_list), told("10.1.2.3:12345", "192.168.0.1:80")),
            (v2(0x21, 0x10, INET4), own.clone()),
            (v2(0x21, 0x31, &[b'a'; 216]), own.clone()),
            (v2(0x21, 0x00, b""), own.clone()),
            (v2(0x21, 0x00, b"whatever"), own.clone()),
            (v2(0x20, 0x00, b""), own.clone()),
            (v2(0x20, 0x11, INET4), own.clone()),
            (v2(0x20, 0xff, b"\x01\0\xff"), own),
        ] {
            assert_eq!(read(&input), Ok(expected), "{}", input.escape_ascii());
        }
    }

    #[test]
    fn headers_that_are_not() {
        use Malformed::*;
        let spill = [INET4, b"\x01\0\x03h2"].concat();
        for (input, expected) in [
            (b"GET / HTTP/1.1\r\n".to_vec(), NotAHeader),
            (b"PROXYTCP4".to_vec(), NotAHeader),
            (b"\r\n\r\n\0\r\nQUIT\r".to_vec(), NotAHeader),
            (b"PROXY TCP4 10.1.2.3 192.168.0.1 12345 80\n".to_vec(), Invalid),
            (b"PROXY TCP4 10.1.2.3 192.168.0.1 12345 080\r\n".to_vec(), Invalid),
            (b"PROXY TCP4 10.1.2.3 192.168.0.1 12345 65536\r\n".to_vec(), Invalid),
            (b"PROXY TCP4 10.1.2.3 192.168.0.1 12345 +80\r\n".to_vec(), Invalid),
            (b"PROXY TCP4 10.1.2.3 192.168.0.1 12345 80 \r\n".to_vec(), Invalid),
            (b"PROXY TCP4  10.1.2.3 192.168.0.1 12345 80\r\n".to_vec(), Invalid),
            (b"PROXY TCP4 10.1.2.03 192.168.0.1 12345 80\r\n".to_vec(), Invalid),
            (b"PROXY TCP4 10.1.2 192.168.0.1 12345 80\r\n".to_vec(), Invalid),
            (b"PROXY TCP4 ::1 ::2 12345 80\r\n".to_vec(), Invalid),
            (b"PROXY TCP4 10.1.2.3 192.168.0.1 12345\r\n".to_vec(), Invalid),
            (b"PROXY UDP4 10.1.2.3 192.168.0.1 12345 80\r\n".to_vec(), Protocol),
            (b"PROXY UNKNOWNS\r\n".to_vec(), Protocol),
            (b"PROXY UNKNOWN\n".to_vec(), Invalid),
            ([b"PROXY UNKNOWN ".to_vec(), vec![b'a'; 93]].concat(), Invalid),
            (v2(0x11, 0x11, INET4), NotAHeader),
            (v2(0x22, 0x11, INET4), Invalid),
            (v2(0x21, 0x13, INET4), Invalid),
            (v2(0x21, 0x41, INET4), Invalid),
            (v2(0x21, 0x11, &INET4[1..]), Invalid),
            (v2(0x21, 0x21, INET4), Invalid),
            (v2(0x21, 0x31, &[0; 215]), Invalid),
            (v2(0x21, 0x11, &spill), Invalid),
            (v2(0x21, 0x11, &[0; MOST]), TooLong),
            (v2(0x20, 0x00, &[0; MOST]), TooLong),
        ] {
            assert_eq!(read(&input), Err(expected), "{}", input.escape_ascii());
        }
    }

    #[test]
    fn identifiers_and_names_have_a_longest() {
        for (of, longest) in [(kind::UNIQUE_ID, 128_u16), (kind::AUTHORITY, 255), (kind::NOOP, 600)] {
            let header = |length: u16| {
                let value = vec![b'a'; length.into()];
                v2(0x21, 0x11, &[INET4, &[of], &length.to_be_bytes(), &value].concat())
            };
            assert!(read(&header(longest)).is_ok(), "{of}");
            if of != kind::NOOP {
                assert_eq!(read(&header(longest + 1)), Err(Malformed::Invalid), "{of}");
            }
        }
    }

    #[test]
    fn nothing_behind_a_header_is_taken_and_every_piece_of_one_is_waited_for() {
        for header in [
            b"PROXY TCP4 10.1.2.3 192.168.0.1 12345 80\r\n".to_vec(),
            b"PROXY UNKNOWN\r\n".to_vec(),
            v2(0x21, 0x11, &[INET4, b"\x01\0\x02h2"].concat()),
            v2(0x20, 0x00, b""),
        ] {
            for end in 0..header.len() {
                assert_eq!(decode(&header[..end], MOST), Ok(ParsedHeader::Partial));
            }
            let with_more = [&header, &b"GET /\r\n"[..]].concat();
            let decoded = decode(&with_more, MOST).unwrap();
            assert!(matches!(decoded, ParsedHeader::Complete { consumed, .. } if consumed == header.len()));
        }
    }

    #[test]
    fn a_checksum_has_to_be_right() {
        let block = [INET4, b"\x04\0\x01x\x03\0\x04\0\0\0\0\x01\0\x02h2"].concat();
        let mut header = v2(0x21, 0x11, &block);
        assert_eq!(read(&header), Err(Malformed::Checksum));
        let (at, sum) = (FIXED_V2 + 12 + 4 + 3, crc32c(&header));
        header[at..at + 4].copy_from_slice(&sum.to_be_bytes());
        assert!(read(&header).is_ok());
        *header.last_mut().unwrap() ^= 1;
        assert_eq!(read(&header), Err(Malformed::Checksum));
        assert_eq!(read(&v2(0x21, 0x11, &[INET4, b"\x03\0\x01x"].concat())), Err(Malformed::Invalid));
    }
}
