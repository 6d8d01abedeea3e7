//! Encodes a header of either version (PROXY protocol, section 2). Must never write a partial header: if it does not
//! fit, nothing is written.

use super::{FIXED_V2, SIGNATURE, kind};
use base::buffer::Buffer;
use base::hash::crc32c;
use std::io::Write as _;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Source and destination of the client's connection; `None` if a header cannot express them, as for UNIX sockets.
pub type Ends = Option<(SocketAddr, SocketAddr)>;

/// The header does not fit into the buffer or into the protocol's length fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

/// Appends a header of version 1 (section 2.1).
///
/// # Errors
/// The header does not fit into the buffer.
pub fn encode_v1(ends: Ends, out: &mut Buffer) -> Result<(), TooLong> {
    let mut text = [0_u8; super::LONGEST_V1];
    let mut cursor = std::io::Cursor::new(&mut text[..]);
    let written = match ends.map(|(source, destination)| same_family(source, destination)) {
        None => cursor.write_all(b"PROXY UNKNOWN\r\n"),
        Some((source, destination)) => {
            let family = if source.is_ipv4() { 4 } else { 6 };
            let (from, to) = (source.ip(), destination.ip());
            write!(cursor, "PROXY TCP{family} {from} {to} {} {}\r\n", source.port(), destination.port())
        }
    };
    let length = cursor.position() as usize;
    if written.is_err() || !out.push(&text[..length]) {
        return Err(TooLong);
    }
    Ok(())
}

/// Converts both addresses to the same family: an IPv4 address next to an IPv6 one becomes a mapped address.
fn same_family(source: SocketAddr, destination: SocketAddr) -> (SocketAddr, SocketAddr) {
    if source.is_ipv4() == destination.is_ipv4() {
        return (source, destination);
    }
    (
        SocketAddr::new(as_ipv6(source).into(), source.port()),
        SocketAddr::new(as_ipv6(destination).into(), destination.port()),
    )
}

fn as_ipv6(address: SocketAddr) -> Ipv6Addr {
    match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

/// An encoder of a header of version 2: addresses, then TLVs, then [`Self::finish`], which fills in length and
/// checksum.
#[must_use = "a header without its end has no length"]
pub struct EncoderV2<'a> {
    out: &'a mut Buffer,
    /// Offset of the header.
    start: usize,
    /// Something did not fit.
    overflown: bool,
}

impl<'a> EncoderV2<'a> {
    /// Appends the fixed part and the addresses (section 2.2). Without addresses the command is LOCAL.
    pub fn begin(ends: Ends, out: &'a mut Buffer) -> Self {
        let start = out.len();
        let mut encoder = Self { out, start, overflown: false };
        encoder.put(&SIGNATURE);
        match ends.map(|(source, destination)| same_family(source, destination)) {
            // Command LOCAL, no family.
            None => encoder.put(&[0x20, 0x00, 0, 0]),
            Some((source, destination)) => {
                encoder.put(&[0x21, if source.is_ipv4() { 0x11 } else { 0x21 }, 0, 0]);
                encoder.put_ip(source.ip());
                encoder.put_ip(destination.ip());
                encoder.put(&source.port().to_be_bytes());
                encoder.put(&destination.port().to_be_bytes());
            }
        }
        encoder
    }

    /// Makes it the header of a datagram: the addresses are those of UDP.
    pub fn over_udp(self) -> Self {
        // The byte of family and protocol follows the signature and the command; 0 is unspecified.
        if let Some(family) = self.out.data_mut().get_mut(self.start + SIGNATURE.len() + 1)
            && *family != 0
        {
            *family = *family & 0xf0 | 0x02;
        }
        self
    }

    /// Appends a TLV.
    pub fn field(&mut self, kind: u8, value: &[u8]) {
        match u16::try_from(value.len()) {
            Ok(length) => {
                let [high, low] = length.to_be_bytes();
                self.put(&[kind, high, low]);
                self.put(value);
            }
            Err(_) => self.overflown = true,
        }
    }

    /// Appends the TLV about the client's TLS (section 2.2.6): bits of [`super::ssl_client`], the verification result
    /// of its certificate, and the TLVs that `inside` writes with [`EncoderV2::field`], of [`super::ssl_kind`].
    pub fn ssl(&mut self, client: u8, verify: u32, inside: impl FnOnce(&mut Self)) {
        self.put(&[kind::SSL, 0, 0, client]);
        let at = self.out.len();
        self.put(&verify.to_be_bytes());
        inside(self);
        // The length includes the first byte of the value, which precedes `at`.
        match u16::try_from(self.out.len().saturating_sub(at) + 1) {
            Ok(length) if !self.overflown => {
                self.out.data_mut()[at - 3..at - 1].copy_from_slice(&length.to_be_bytes());
            }
            _ => self.overflown = true,
        }
    }

    /// Completes the header: fills in the length, and the checksum if requested (section 2.2.3). `behind` writes the
    /// TLVs that follow the checksum.
    ///
    /// # Errors
    /// The header does not fit; the buffer is unchanged.
    pub fn finish(mut self, checksum: bool, behind: impl FnOnce(&mut Self)) -> Result<(), TooLong> {
        let mut sum_at = None;
        if checksum {
            self.field(kind::CRC32C, &[0; 4]);
            sum_at = self.out.len().checked_sub(4);
        }
        behind(&mut self);
        let header = &mut self.out.data_mut()[self.start..];
        let length = u16::try_from(header.len().saturating_sub(FIXED_V2));
        let (false, Ok(length)) = (self.overflown, length) else {
            self.out.truncate(self.start);
            return Err(TooLong);
        };
        header[FIXED_V2 - 2..FIXED_V2].copy_from_slice(&length.to_be_bytes());
        if let Some(at) = sum_at {
            let sum = crc32c(header).to_be_bytes();
            let at = at - self.start;
            header[at..at + sum.len()].copy_from_slice(&sum);
        }
        Ok(())
    }

    fn put_ip(&mut self, ip: IpAddr) {
        match ip {
            IpAddr::V4(ip) => self.put(&ip.octets()),
            IpAddr::V6(ip) => self.put(&ip.octets()),
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.overflown |= self.overflown || !self.out.push(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Command, ParsedHeader, Tlv, decode};
    use super::*;

    fn ends(source: &str, destination: &str) -> Ends {
        Some((source.parse().expect("source"), destination.parse().expect("destination")))
    }

    fn hex(bytes: &[u8]) -> String {
        base::hex::encode_lower(bytes)
    }

    #[test]
    fn lines_are_those_of_haproxy() {
        for (ends, line) in [
            (ends("127.0.0.1:57118", "127.0.0.1:18201"), "PROXY TCP4 127.0.0.1 127.0.0.1 57118 18201\r\n"),
            (ends("[::1]:42540", "[::1]:18201"), "PROXY TCP6 ::1 ::1 42540 18201\r\n"),
            (
                ends("[::ffff:127.0.0.1]:53512", "[::ffff:127.0.0.1]:18207"),
                "PROXY TCP6 ::ffff:127.0.0.1 ::ffff:127.0.0.1 53512 18207\r\n",
            ),
            (ends("10.0.0.1:1", "[2001:db8::1]:2"), "PROXY TCP6 ::ffff:10.0.0.1 2001:db8::1 1 2\r\n"),
            (None, "PROXY UNKNOWN\r\n"),
        ] {
            let mut out = Buffer::with_capacity(200);
            assert_eq!(encode_v1(ends, &mut out), Ok(()));
            assert_eq!(out.data(), line.as_bytes());
        }
    }

    #[test]
    fn binary_headers_are_those_of_haproxy() {
        let signature = "0d0a0d0a000d0a515549540a";
        let inet = ends("127.0.0.1:47450", "127.0.0.1:18203");
        let text = b"hello-127.0.0.1-v2c";
        type Row<'a> = (Ends, bool, &'a [(u8, &'a [u8])], &'a str);
        let rows: &[Row<'_>] = &[
            (ends("127.0.0.1:44772", "127.0.0.1:18202"), false, &[], "2111000c7f0000017f000001aee4471a"),
            (
                ends("[::1]:40774", "[::1]:18202"),
                false,
                &[],
                "212100240000000000000000000000000000000100000000000000000000000000000001\
                 9f46471a",
            ),
            (None, false, &[], "20000000"),
            (
                inet,
                true,
                &[(0xe1, text), (0xe2, b"")],
                "2111002c7f0000017f000001b95a471be1001368656c6c6f2d3132372e302e302e312d763263e20000030004",
            ),
        ];
        for (ends, checksum, fields, expected) in rows {
            let mut out = Buffer::with_capacity(200);
            let mut encoder = EncoderV2::begin(*ends, &mut out);
            fields.iter().for_each(|(kind, value)| encoder.field(*kind, value));
            assert_eq!(encoder.finish(*checksum, |_| {}), Ok(()));
            let found = hex(out.data());
            // The last word is the checksum, which the decoder verifies.
            assert!(found.starts_with(&format!("{signature}{}", expected.replace(' ', ""))), "{found}");
        }
    }

    /// The TLVs of a client with TLS and of one without.
    #[test]
    fn lists_inside_the_list_have_their_length() {
        let mut out = Buffer::with_capacity(200);
        let mut encoder = EncoderV2::begin(None, &mut out);
        encoder.ssl(1, 18, |encoder| {
            encoder.field(0x21, b"TLSv1.3");
            encoder.field(0x22, b"a");
        });
        encoder.ssl(0, 0, |_| {});
        assert_eq!(encoder.finish(false, |_| {}), Ok(()));
        // The header has 30 bytes, the first list 19, the second one five.
        let expected = "2000001e 2000130100000012 210007544c5376312e33 22000161 2000050000000000";
        assert_eq!(hex(&out.data()[12..]), expected.replace(' ', ""));
        for room in 16..out.len() {
            let mut out = Buffer::with_capacity(room);
            let mut encoder = EncoderV2::begin(None, &mut out);
            encoder.ssl(1, 18, |encoder| encoder.field(0x21, &vec![b'x'; room]));
            assert_eq!(encoder.finish(false, |_| {}), Err(TooLong));
        }
    }

    /// Recorded from HAProxy 3.5 with `proxy-v2-options crc32c,unique-id` and two TLVs.
    #[test]
    fn the_checksum_is_that_of_haproxy() {
        let mut out = Buffer::with_capacity(200);
        let mut encoder = EncoderV2::begin(ends("127.0.0.1:47450", "127.0.0.1:18203"), &mut out);
        encoder.field(0xe1, b"hello-127.0.0.1-v2c");
        encoder.field(0xe2, b"");
        assert_eq!(encoder.finish(true, |encoder| encoder.field(kind::UNIQUE_ID, b"")), Ok(()));
        assert!(hex(out.data()).ends_with("030004954188 1a050000".replace(' ', "").as_str()), "{}", hex(out.data()));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let ends = ends("[2001:db8::7]:1000", "192.0.2.1:80");
        for checksum in [false, true] {
            let mut out = Buffer::with_capacity(400);
            assert!(out.push(b"before"));
            let mut encoder = EncoderV2::begin(ends, &mut out);
            encoder.field(0xe0, &[7; 100]);
            assert_eq!(encoder.finish(checksum, |_| {}), Ok(()));
            let bytes = &out.data()[6..];
            let Ok(ParsedHeader::Complete { header, consumed }) = decode(bytes, 400) else { panic!("{}", hex(bytes)) };
            assert_eq!((header.command, consumed), (Command::Proxy, bytes.len()));
            let (source, destination) = header.inet().expect("ends");
            assert_eq!((source.to_string(), destination.to_string()).0, "[2001:db8::7]:1000");
            assert_eq!(destination.to_string(), "[::ffff:192.0.2.1]:80");
            assert_eq!(header.tlvs.iter().next(), Some(Tlv { kind: 0xe0, value: &[7; 100] }));
        }
    }

    #[test]
    fn what_does_not_fit_is_not_written() {
        let ends = ends("127.0.0.1:1", "127.0.0.1:2");
        for room in 0..60 {
            let mut out = Buffer::with_capacity(room);
            let mut encoder = EncoderV2::begin(ends, &mut out);
            encoder.field(1, &[0; 20]);
            let fits = encoder.finish(true, |_| {}).is_ok();
            assert_eq!((fits, out.len()), if room < 58 { (false, 0) } else { (true, 58) }, "{room}");
        }
        let mut out = Buffer::with_capacity(200_000);
        let mut encoder = EncoderV2::begin(ends, &mut out);
        encoder.field(1, &[0; 40_000]);
        encoder.field(2, &[0; 40_000]);
        assert_eq!(encoder.finish(false, |_| {}), Err(TooLong));
        let mut encoder = EncoderV2::begin(ends, &mut out);
        encoder.field(1, &[0; 70_000]);
        assert_eq!(encoder.finish(false, |_| {}), Err(TooLong));
        assert!(out.is_empty());
    }
}
