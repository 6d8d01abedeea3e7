//! The headers of QUIC packets, as anyone on the path can read them without keys (RFC 8999; RFC 9000, section 17; RFC 9369,
//! section 3.2). Must never decrypt anything.

use crate::h3::varint;

/// Version 1 (RFC 9000).
pub const VERSION_1: u32 = 1;
/// Version 2 (RFC 9369).
pub const VERSION_2: u32 = 0x6b33_43cf;
/// Maximum length of a connection ID of these versions in bytes.
pub const LONGEST_ID: usize = 20;

/// The bit of the first byte that marks a long header.
const LONG: u8 = 0x80;

/// The header at the beginning of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header<'a> {
    Long(LongHeader<'a>),
    /// A short header: the bytes after the first one. The destination ID is at their beginning; its length is not in the packet.
    Short(&'a [u8]),
}

/// A long header, of any version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongHeader<'a> {
    first: u8,
    /// 0: Version Negotiation.
    pub version: u32,
    /// The destination connection ID.
    pub destination: &'a [u8],
    /// The source connection ID.
    pub source: &'a [u8],
    /// The bytes after both.
    rest: &'a [u8],
}

/// Types of packets with a long header, in versions 1 and 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketType {
    Initial,
    ZeroRtt,
    Handshake,
    Retry,
}

/// An Initial packet: bytes that extend to its end, not to that of the datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Initial<'a> {
    pub header: LongHeader<'a>,
    pub packet: &'a [u8],
    /// Offset of the protected packet number.
    pub number_at: usize,
}

/// Splits off a value with a length prefix of one byte.
fn id(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = data.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

/// Splits off a value with a variable-length prefix.
fn content<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(varint::read(rest)?).ok()?;
    let (content, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(content)
}

/// Returns the header at the beginning of a datagram; `None`: it is empty, or ends within the header.
pub fn header(datagram: &[u8]) -> Option<Header<'_>> {
    let (first, rest) = datagram.split_first()?;
    if first & LONG == 0 {
        return Some(Header::Short(rest));
    }
    let (version, rest) = rest.split_first_chunk::<4>()?;
    let (destination, rest) = id(rest)?;
    let (source, rest) = id(rest)?;
    let version = u32::from_be_bytes(*version);
    Some(Header::Long(LongHeader { first: *first, version, destination, source, rest }))
}

impl<'a> LongHeader<'a> {
    /// Returns the type of the packet; `None`: its version is neither 1 nor 2, or one of its IDs is too long.
    pub fn packet_type(&self) -> Option<PacketType> {
        if self.destination.len().max(self.source.len()) > LONGEST_ID {
            return None;
        }
        let number = (self.first >> 4) & 3;
        // Version 2 has the same types in another order.
        let number = match self.version {
            VERSION_1 => number,
            VERSION_2 => number.wrapping_sub(1) & 3,
            _ => return None,
        };
        Some(match number {
            0 => PacketType::Initial,
            1 => PacketType::ZeroRtt,
            2 => PacketType::Handshake,
            _ => PacketType::Retry,
        })
    }
}

/// Returns the Initial packets of a datagram of version 1 or 2, which other packets may precede or follow (RFC 9000, section 12.2).
pub fn initials(datagram: &[u8]) -> impl Iterator<Item = Initial<'_>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        // Each step consumes a packet.
        loop {
            let Some(Header::Long(header)) = self::header(rest) else { return None };
            let kind = header.packet_type().filter(|kind| *kind != PacketType::Retry)?;
            let mut after = header.rest;
            if kind == PacketType::Initial {
                content(&mut after)?;
            }
            let length = usize::try_from(varint::read(&mut after)?).ok()?;
            let number_at = rest.len() - after.len();
            let (packet, behind) = rest.split_at_checked(number_at.checked_add(length)?)?;
            rest = behind;
            if kind == PacketType::Initial {
                return Some(Initial { header, packet, number_at });
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(first: u8, version: u32, ids: [&[u8]; 2], rest: &[u8]) -> Vec<u8> {
        let [destination, source] = ids.map(|id| [&[id.len() as u8][..], id].concat());
        [&[first][..], &version.to_be_bytes(), &destination, &source, rest].concat()
    }

    fn read(datagram: &[u8]) -> LongHeader<'_> {
        match header(datagram) {
            Some(Header::Long(header)) => header,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn headers_of_all_versions_are_read() {
        let datagram = long(0xc0, 0x1a2a_3a4a, [&[7; 30], b"source"], b"rest");
        let found = read(&datagram);
        assert_eq!((found.version, found.destination, found.source), (0x1a2a_3a4a, &[7; 30][..], &b"source"[..]));
        assert_eq!(found.packet_type(), None);
        let whole = datagram.len() - 4;
        assert!((0..whole).all(|cut| header(&datagram[..cut]).is_none()) && header(&datagram[..whole]).is_some());
        assert_eq!(header(&[0x43, 1, 2]), Some(Header::Short(&[1, 2])));
        assert_eq!(header(&[0x03]), Some(Header::Short(&[])));
    }

    #[test]
    fn packet_types_of_both_versions() {
        use PacketType::*;
        let rows = [
            (0xc0, VERSION_1, Some(Initial)),
            (0xdf, VERSION_1, Some(ZeroRtt)),
            (0xe1, VERSION_1, Some(Handshake)),
            (0xf0, VERSION_1, Some(Retry)),
            // The fixed bit may be 0 (RFC 9287).
            (0x80, VERSION_1, Some(Initial)),
            (0xd0, VERSION_2, Some(Initial)),
            (0xe0, VERSION_2, Some(ZeroRtt)),
            (0xf0, VERSION_2, Some(Handshake)),
            (0xc0, VERSION_2, Some(Retry)),
            (0xc0, 0, None),
            (0xc0, 0xff00_001d, None),
        ];
        for (first, version, expected) in rows {
            let datagram = long(first, version, [&[1; 8], &[2; 20]], b"");
            assert_eq!(read(&datagram).packet_type(), expected, "{first:x} {version:x}");
        }
        assert_eq!(read(&long(0xc0, VERSION_1, [&[1; 21], b""], b"")).packet_type(), None);
        assert_eq!(read(&long(0xc0, VERSION_1, [&[1; 8], &[1; 21]], b"")).packet_type(), None);
    }

    #[test]
    fn initial_packets_are_found_among_others() {
        let token = [&[0x40, 3][..], b"tok", &[5], b"12345"].concat();
        let initial = long(0xc0, VERSION_1, [&[1; 8], b""], &token);
        let early = long(0xd0, VERSION_1, [&[1; 8], b""], &[0x40, 4, 9, 9, 9, 9]);
        let short = [0x40, 1, 2, 3];
        let datagram = [&early[..], &initial, &initial, &short].concat();
        let found: Vec<_> = initials(&datagram).collect();
        assert_eq!(found.len(), 2);
        for found in &found {
            assert_eq!((found.packet, &found.packet[found.number_at..]), (&initial[..], &b"12345"[..]));
        }
        assert_eq!(initials(&early).count(), 0);
        assert_eq!(initials(&initial[..initial.len() - 1]).count(), 0);
        assert_eq!(initials(&long(0xf0, VERSION_1, [&[1; 8], b""], &token)).count(), 0);
        assert_eq!(initials(&long(0xd0, VERSION_2, [&[1; 8], b""], &token)).count(), 1);
    }

    /// Lengths beyond the datagram, up to the largest integer.
    #[test]
    fn hostile_lengths_are_refused() {
        for token in [
            &[0x7f, 0xff][..],
            &[0xff; 8],
            &[1],
            &[0, 0x7f, 0xff],
            &[0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        ] {
            assert_eq!(initials(&long(0xc0, VERSION_1, [&[1; 8], b""], token)).count(), 0, "{token:x?}");
        }
    }
}
