//! NetScaler's client address header (`doc/netscaler-client-ip-insertion-protocol.txt` of HAProxy): a magic number,
//! followed by the IP and TCP headers of the client's packet. Must never consume a byte after the header.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Bytes before the packet in the old format: magic number and length.
const FIXED_OLD: usize = 8;
/// Bytes before the packet in the format of NetScaler 10.5, which adds another length and a type.
const FIXED_NEW: usize = 12;
/// Length of an IPv4 header without options, in bytes.
const IPV4: usize = 20;
const IPV6: usize = 40;
/// TCP's protocol number in IP headers.
const TCP: u8 = 6;

/// The contents of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientIp {
    /// The client's address.
    pub source: SocketAddr,
    /// The address that the client connected to.
    pub destination: SocketAddr,
    /// Length of the header in bytes.
    pub consumed: usize,
}

/// Why a header is invalid, in the classes of the configuration manual's `fc_err`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// The magic number differs.
    Magic,
    /// The length is smaller than the contents, or larger than the permitted maximum.
    Length,
    /// The packet is not IP or not TCP.
    Protocol,
}

impl fmt::Display for Malformed {
    /// Writes the manual's text (`fc_err_str`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Malformed::Magic => "Received an invalid NetScaler Client IP magic number",
            Malformed::Length => "Truncated NetScaler Client IP header received",
            Malformed::Protocol => "Received an unhandled protocol in the NetScaler Client IP header",
        })
    }
}

impl std::error::Error for Malformed {}

/// Parses the header at the start of `input`; `None` if it is incomplete. Headers longer than `most` bytes are
/// rejected.
///
/// # Errors
/// The header is malformed; the connection should be closed.
pub fn decode(input: &[u8], magic: u32, most: usize) -> Result<Option<ClientIp>, Malformed> {
    if input.iter().zip(magic.to_be_bytes()).any(|(found, expected)| *found != expected) {
        return Err(Malformed::Magic);
    }
    let Some((fixed, rest)) = input.split_first_chunk::<FIXED_OLD>() else { return Ok(None) };
    let Some(first) = rest.first() else { return Ok(None) };
    // A packet begins with the IP version; the new format has a type here, which is less than 4096.
    let (begin, length) = if matches!(first >> 4, 4 | 6) {
        let [.., a, b, c, d] = *fixed;
        (FIXED_OLD, u32::from_be_bytes([a, b, c, d]) as usize)
    } else if first >> 4 == 0 {
        let Some([_, _, high, low]) = rest.first_chunk::<4>() else { return Ok(None) };
        (FIXED_NEW, usize::from(u16::from_be_bytes([*high, *low])))
    } else {
        return Err(Malformed::Protocol);
    };
    let end = begin.checked_add(length).filter(|end| *end <= most).ok_or(Malformed::Length)?;
    let Some(packet) = input.get(begin..end) else { return Ok(None) };
    let (source, destination) = addresses(packet)?;
    Ok(Some(ClientIp { source, destination, consumed: end }))
}

/// Returns the source and destination of a packet.
fn addresses(packet: &[u8]) -> Result<(SocketAddr, SocketAddr), Malformed> {
    let (source, destination, segment): (IpAddr, IpAddr, _) = match packet.first().map(|first| first >> 4) {
        Some(4) => {
            let header = packet.first_chunk::<IPV4>().ok_or(Malformed::Length)?;
            if header[9] != TCP {
                return Err(Malformed::Protocol);
            }
            let [.., a, b, c, d, e, f, g, h] = *header;
            let length = usize::from(header[0] & 0x0f) * 4;
            let segment = packet.get(length.max(IPV4)..).ok_or(Malformed::Length)?;
            (Ipv4Addr::new(a, b, c, d).into(), Ipv4Addr::new(e, f, g, h).into(), segment)
        }
        Some(6) => {
            let (header, segment) = packet.split_first_chunk::<IPV6>().ok_or(Malformed::Length)?;
            if header[6] != TCP {
                return Err(Malformed::Protocol);
            }
            let (mut source, mut destination) = ([0; 16], [0; 16]);
            source.copy_from_slice(&header[8..24]);
            destination.copy_from_slice(&header[24..]);
            (Ipv6Addr::from(source).into(), Ipv6Addr::from(destination).into(), segment)
        }
        Some(_) => return Err(Malformed::Protocol),
        None => return Err(Malformed::Length),
    };
    let [a, b, c, d] = *segment.first_chunk::<4>().ok_or(Malformed::Length)?;
    let port = |bytes| u16::from_be_bytes(bytes);
    Ok((SocketAddr::new(source, port([a, b])), SocketAddr::new(destination, port([c, d]))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAGIC: u32 = 77;

    /// An IPv4 header of `words` 32-bit words, followed by a TCP header.
    fn packet4(words: u8, protocol: u8) -> Vec<u8> {
        let mut packet = vec![0; usize::from(words) * 4];
        (packet[0], packet[9]) = (0x40 | words, protocol);
        packet[12..20].copy_from_slice(&[10, 1, 2, 3, 192, 168, 0, 1]);
        packet.extend([0x30, 0x39, 0, 80]);
        packet.extend([0; 16]);
        packet
    }

    fn packet6(protocol: u8) -> Vec<u8> {
        let mut packet = vec![0; 40];
        (packet[0], packet[6], packet[23], packet[39]) = (0x60, protocol, 1, 2);
        packet.extend([0x30, 0x39, 0, 80]);
        packet.extend([0; 16]);
        packet
    }

    fn old(packet: &[u8]) -> Vec<u8> {
        [&MAGIC.to_be_bytes(), &(packet.len() as u32).to_be_bytes(), packet].concat()
    }

    fn new(packet: &[u8]) -> Vec<u8> {
        let (total, length) = ((packet.len() + 12) as u32, packet.len() as u16);
        [&MAGIC.to_be_bytes()[..], &total.to_be_bytes(), &[0, 1], &length.to_be_bytes(), packet].concat()
    }

    #[test]
    fn both_forms_and_both_versions_of_ip() {
        for (header, source) in [
            (old(&packet4(5, TCP)), "10.1.2.3:12345"),
            (new(&packet4(5, TCP)), "10.1.2.3:12345"),
            (old(&packet4(7, TCP)), "10.1.2.3:12345"),
            (old(&packet6(TCP)), "[::1]:12345"),
            (new(&packet6(TCP)), "[::1]:12345"),
        ] {
            let with_more = [&header, &b"GET /"[..]].concat();
            let found = decode(&with_more, MAGIC, 1024).unwrap().unwrap();
            assert_eq!((found.source.to_string().as_str(), found.consumed), (source, header.len()));
            assert_eq!(found.destination.port(), 80);
            for end in 0..header.len() {
                assert_eq!(decode(&header[..end], MAGIC, 1024), Ok(None));
            }
        }
    }

    #[test]
    fn what_is_no_header() {
        for (header, expected) in [
            (b"GET /".to_vec(), Malformed::Magic),
            (old(&packet4(5, 17)), Malformed::Protocol),
            (new(&packet6(17)), Malformed::Protocol),
            ([&77_u32.to_be_bytes()[..], &40_u32.to_be_bytes(), &[0x55; 40]].concat(), Malformed::Protocol),
            (old(&packet4(5, TCP)[..22]), Malformed::Length),
            (old(&packet4(15, TCP)[..30]), Malformed::Length),
            (old(&packet6(TCP)[..39]), Malformed::Length),
            (new(&[0x45; 19]), Malformed::Length),
            ([&77_u32.to_be_bytes()[..], &u32::MAX.to_be_bytes(), &[0x45]].concat(), Malformed::Length),
        ] {
            assert_eq!(decode(&header, MAGIC, 1024), Err(expected), "{}", header.escape_ascii());
        }
    }
}
