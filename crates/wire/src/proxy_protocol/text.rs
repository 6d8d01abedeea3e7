//! Version 1: a line of text (section 2.1). Must never accept a line that deviates from the specification.

use super::{Addresses, Command, Header, LONGEST_V1, Malformed, Tlvs, Transport, Version};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The prefix of every line.
pub(super) const START: &[u8] = b"PROXY ";

/// Parses a line that begins with [`START`]. `None` if its end is missing.
pub(super) fn decode(input: &[u8]) -> Result<Option<(Header, usize)>, Malformed> {
    let window = &input[..input.len().min(LONGEST_V1)];
    let Some(line_feed) = window.iter().position(|byte| *byte == b'\n') else {
        // A line without an end within the maximum length is invalid.
        return if window.len() < LONGEST_V1 { Ok(None) } else { Err(Malformed::Invalid) };
    };
    let line = window[START.len()..line_feed].strip_suffix(b"\r").ok_or(Malformed::Invalid)?;
    let (transport, addresses) = addresses(line)?;
    let tlvs = Tlvs::default();
    let header = Header { version: Version::V1, command: Command::Proxy, transport, addresses, tlvs };
    Ok(Some((header, line_feed + 1)))
}

fn addresses(line: &[u8]) -> Result<(Transport, Addresses), Malformed> {
    // Everything after UNKNOWN has to be ignored, text or not.
    if line == b"UNKNOWN" || line.starts_with(b"UNKNOWN ") {
        return Ok((Transport::Unspecified, Addresses::Unspecified));
    }
    let line = std::str::from_utf8(line).map_err(|_| Malformed::Invalid)?;
    let mut words = line.split(' ');
    let parse: fn(&str) -> Option<IpAddr> = match words.next() {
        Some("TCP4") => |word| word.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        Some("TCP6") => |word| word.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        _ => return Err(Malformed::Protocol),
    };
    let mut read = || {
        let (source, destination) = (parse(words.next()?)?, parse(words.next()?)?);
        let (source_port, destination_port) = (port(words.next()?)?, port(words.next()?)?);
        let source = SocketAddr::new(source, source_port);
        let destination = SocketAddr::new(destination, destination_port);
        words.next().is_none().then_some(Addresses::Inet { source, destination })
    };
    read().map(|addresses| (Transport::Stream, addresses)).ok_or(Malformed::Invalid)
}

/// Parses a decimal number without a sign or leading zeros.
fn port(word: &str) -> Option<u16> {
    let canonical = word.bytes().all(|byte| byte.is_ascii_digit()) && (word == "0" || !word.starts_with('0'));
    if canonical { word.parse().ok() } else { None }
}
