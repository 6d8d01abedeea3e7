//! Converters of packet headers, such as a saved SYN: Ethernet, IP and TCP. Must never read beyond the bytes given.

use super::Converter;
use crate::sample::{Context, Type, Value};
use crate::{Arguments, Kind, Signature};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const fn row(
    name: &'static str,
    output: Type,
    doc: &'static str,
    eval: for<'a> fn(&Context<'a>, Value<'a>, &'a Arguments) -> Option<Value<'a>>,
) -> Converter {
    Converter::new(name, Signature::NONE, Type::Bin, output, doc, eval)
}

/// Every converter of the family.
pub const TABLE: &[Converter] = &[
    row("eth.data", Type::Bin, "Payload of an Ethernet frame.", |_, value, _| {
        let bytes = value.bytes()?;
        bytes.get(ethernet(bytes)?.length..).filter(|data| !data.is_empty()).map(Value::Bin)
    }),
    row("eth.dst", Type::Bin, "Destination address of an Ethernet frame.", |_, value, _| {
        value.bytes()?.get(..6).map(Value::Bin)
    }),
    row("eth.hdr", Type::Bin, "Header of an Ethernet frame, VLAN tags included.", |_, value, _| {
        let bytes = value.bytes()?;
        bytes.get(..ethernet(bytes)?.length).map(Value::Bin)
    }),
    row("eth.proto", Type::Int, "Protocol number (EtherType) of an Ethernet frame.", |_, value, _| {
        Some(Value::Int(ethernet(value.bytes()?)?.protocol))
    }),
    row("eth.src", Type::Bin, "Source address of an Ethernet frame.", |_, value, _| {
        value.bytes()?.get(6..12).map(Value::Bin)
    }),
    row("eth.vlan", Type::Int, "Last VLAN ID of an Ethernet frame.", |_, value, _| {
        ethernet(value.bytes()?)?.vlan.map(Value::Int)
    }),
    row("ip.data", Type::Bin, "Payload of an IP packet.", |_, value, _| {
        let bytes = value.bytes()?;
        bytes.get(ip(bytes)?.length..).map(Value::Bin)
    }),
    row("ip.df", Type::Int, "1 if the don't-fragment flag of an IP packet is set.", |_, value, _| {
        let bytes = value.bytes()?;
        Some(Value::Int(match bytes.first()? >> 4 {
            4 => i64::from(bytes.get(6).is_some_and(|flags| flags & 0x40 != 0)),
            6 => 1,
            _ => return None,
        }))
    }),
    row("ip.dst", Type::Addr, "Destination address of an IP packet.", |_, value, _| {
        Some(ip(value.bytes()?)?.destination.into())
    }),
    Converter::new(
        "ip.fp",
        Signature::new(0, &[Kind::Int]),
        Type::Bin,
        Type::Bin,
        "Fingerprint of a TCP SYN packet; the sum of 1, 2 and 4 adds TTL, option values and source address.",
        fingerprint,
    ),
    row("ip.hdr", Type::Bin, "Header of an IP packet, with options and extensions.", |_, value, _| {
        let bytes = value.bytes()?;
        bytes.get(..ip(bytes)?.length).map(Value::Bin)
    }),
    row("ip.proto", Type::Int, "Transport protocol number of an IP packet.", |_, value, _| {
        Some(Value::Int(i64::from(ip(value.bytes()?)?.protocol)))
    }),
    row("ip.src", Type::Addr, "Source address of an IP packet.", |_, value, _| Some(ip(value.bytes()?)?.source.into())),
    row("ip.tos", Type::Int, "Type of service of an IP packet.", |_, value, _| {
        service(value.bytes()?).map(|service| Value::Int(i64::from(service)))
    }),
    row("ip.ttl", Type::Int, "TTL or hop limit of an IP packet.", |_, value, _| {
        Some(Value::Int(i64::from(ip(value.bytes()?)?.ttl)))
    }),
    row("ip.ver", Type::Int, "Version of an IP packet: 4 or 6.", |_, value, _| {
        value.bytes()?.first().map(|first| Value::Int(i64::from(first >> 4)))
    }),
    row("tcp.dst", Type::Int, "Destination port of a TCP segment.", |_, value, _| {
        Some(Value::Int(pair(fixed(value.bytes()?)?, 2)))
    }),
    row("tcp.flags", Type::Int, "Flags of a TCP segment.", |_, value, _| {
        Some(Value::Int(i64::from(fixed(value.bytes()?)?[13])))
    }),
    row("tcp.options.mss", Type::Int, "Maximum segment size in the options of a TCP segment, or 0.", |_, value, _| {
        option_number(value, 2, |data| pair(data, 0), 2)
    }),
    row("tcp.options.sack", Type::Int, "1 if a TCP segment has the SACK-permitted option.", |_, value, _| {
        option_number(value, 4, |_| 1, 0)
    }),
    row("tcp.options.tsopt", Type::Int, "1 if a TCP segment has the timestamp option.", |_, value, _| {
        option_number(value, 8, |_| 1, 0)
    }),
    row("tcp.options.tsval", Type::Int, "Timestamp value in the options of a TCP segment, or 0.", |_, value, _| {
        option_number(value, 8, |data| pair(data, 0) << 16 | pair(data, 2), 4)
    }),
    row("tcp.options.wscale", Type::Int, "Window scale in the options of a TCP segment, or 0.", |_, value, _| {
        option_number(value, 3, |data| i64::from(data[0]), 1)
    }),
    row("tcp.options.wsopt", Type::Int, "1 if a TCP segment has the window scale option.", |_, value, _| {
        option_number(value, 3, |_| 1, 0)
    }),
    row("tcp.options_list", Type::Bin, "Kinds of the options of a TCP segment.", |context, value, _| {
        let mut text = context.text(40);
        options(tcp(value.bytes()?)?).for_each(|(kind, _)| text.push(kind));
        text.finish().map(Value::Bin)
    }),
    row("tcp.seq", Type::Int, "Sequence number of a TCP segment.", |_, value, _| {
        let header = fixed(value.bytes()?)?;
        Some(Value::Int(pair(header, 4) << 16 | pair(header, 6)))
    }),
    row("tcp.src", Type::Int, "Source port of a TCP segment.", |_, value, _| {
        Some(Value::Int(pair(fixed(value.bytes()?)?, 0)))
    }),
    row("tcp.win", Type::Int, "Window of a TCP segment, without scaling.", |_, value, _| {
        Some(Value::Int(pair(fixed(value.bytes()?)?, 14)))
    }),
];

/// Two bytes as a number. The caller has checked the bounds.
fn pair(bytes: &[u8], at: usize) -> i64 {
    i64::from(bytes[at]) << 8 | i64::from(bytes[at + 1])
}

struct Ethernet {
    length: usize,
    protocol: i64,
    vlan: Option<i64>,
}

fn ethernet(bytes: &[u8]) -> Option<Ethernet> {
    const VLAN: i64 = 0x8100;
    let mut vlan = None;
    let mut at = 12;
    loop {
        bytes.get(at..at + 2)?;
        let protocol = pair(bytes, at);
        if protocol != VLAN {
            return Some(Ethernet { length: at + 2, protocol, vlan });
        }
        bytes.get(at + 2..at + 4)?;
        vlan = Some(pair(bytes, at + 2) & 0xfff);
        at += 4;
    }
}

struct Ip {
    /// Length of the header in bytes, with options and extensions.
    length: usize,
    protocol: u8,
    source: IpAddr,
    destination: IpAddr,
    ttl: u8,
    has_options: bool,
}

fn service(bytes: &[u8]) -> Option<u8> {
    let (first, second) = (bytes.first()?, bytes.get(1)?);
    match first >> 4 {
        4 => Some(*second),
        6 => Some(first << 4 | second >> 4),
        _ => None,
    }
}

fn ip(bytes: &[u8]) -> Option<Ip> {
    match bytes.first()? >> 4 {
        4 => {
            let header: &[u8; 20] = bytes.first_chunk()?;
            let length = usize::from(header[0] & 15) * 4;
            let address =
                |at: usize| IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]));
            (length >= 20 && length <= bytes.len()).then_some(Ip {
                length,
                protocol: header[9],
                source: address(12),
                destination: address(16),
                ttl: header[8],
                has_options: length > 20,
            })
        }
        6 => {
            let header: &[u8; 40] = bytes.first_chunk()?;
            let (protocol, length) = behind_extensions(bytes, header[6])?;
            let address = |at: usize| {
                let octets: [u8; 16] = header[at..at + 16].try_into().unwrap_or_default();
                IpAddr::V6(Ipv6Addr::from(octets))
            };
            Some(Ip {
                length,
                protocol,
                source: address(8),
                destination: address(24),
                ttl: header[7],
                has_options: length > 40,
            })
        }
        _ => None,
    }
}

/// Returns the protocol after the extension headers of IPv6, and its offset.
fn behind_extensions(bytes: &[u8], first: u8) -> Option<(u8, usize)> {
    let (mut protocol, mut at) = (first, 40);
    loop {
        let length = |unit: usize, more: usize| Some((usize::from(*bytes.get(at + 1)?) + more) * unit);
        let length = match protocol {
            // Hop-by-hop options, routing, destination options.
            0 | 43 | 60 => length(8, 1)?,
            // Fragment header.
            44 => 8,
            // Authentication header.
            51 => length(4, 2)?,
            _ => return Some((protocol, at)),
        };
        protocol = *bytes.get(at)?;
        at += length;
        if at > bytes.len() {
            return None;
        }
    }
}

/// The fixed part of a TCP header.
fn fixed(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(..20)
}

/// A TCP header with its options.
fn tcp(bytes: &[u8]) -> Option<&[u8]> {
    let length = usize::from(bytes.get(12)? >> 4) * 4;
    bytes.get(..length).filter(|header| header.len() >= 20)
}

/// The options of a TCP header: kind and data. Padding has no data.
fn options(header: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = &header[20..];
    std::iter::from_fn(move || {
        let (kind, behind) = rest.split_first()?;
        match kind {
            0 => None,
            1 => {
                rest = behind;
                Some((1, &[][..]))
            }
            kind => {
                let length = usize::from(*behind.first()?).checked_sub(2)?;
                let (data, behind) = behind[1..].split_at_checked(length)?;
                rest = behind;
                Some((*kind, data))
            }
        }
    })
}

/// Reads a number from the data of an option with at least `least` bytes; 0 without the option.
fn option_number<'a>(value: Value<'a>, wanted: u8, read: fn(&[u8]) -> i64, least: usize) -> Option<Value<'a>> {
    let mut options = options(tcp(value.bytes()?)?);
    let data = options.find_map(|(kind, data)| (kind == wanted && data.len() >= least).then_some(data));
    Some(Value::Int(data.map_or(0, read)))
}

fn fingerprint<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let bytes = value.bytes()?;
    let mode = arguments.int(0).unwrap_or(0);
    let (ip, service) = (ip(bytes)?, service(bytes)?);
    let is_v6 = ip.source.is_ipv6();
    let segment = bytes.get(ip.length..)?;
    let header = (ip.protocol == 6).then(|| tcp(segment))??;
    let flags = header[13];
    let mut of_host = u8::from(is_v6) << 7;
    of_host |= u8::from(is_v6 || bytes[6] & 0x40 != 0) << 6;
    of_host |= match ip.ttl {
        0..=32 => 0,
        33..=64 => 1,
        65..=128 => 2,
        129.. => 3,
    } << 4;
    of_host |= u8::from(ip.has_options) << 3;
    of_host |= u8::from(segment.len() > header.len()) << 2;
    of_host |= (flags >> 7 & 1) << 1 | flags >> 6 & 1;
    let (mut scale, mut longest, mut present) = (0, [0, 0], 0_u8);
    for (kind, data) in options(header) {
        match (kind, data) {
            (2, [high, low, ..]) => longest = [*high, *low],
            (3, [shift, ..]) => scale = (shift + u8::from(*shift < u8::MAX)).min(15),
            _ => {}
        }
        present |= match kind {
            2..=8 => 1 << (kind - 2),
            9.. => 0x80,
            _ => 0,
        };
    }
    let mut text = context.text(65);
    text.extend(&[service, of_host, header[12] & 0xf0 | scale, header[14], header[15]]);
    text.extend(&longest);
    text.push(present);
    if mode & 1 != 0 {
        text.push(ip.ttl);
    }
    if mode & 2 != 0 {
        options(header).for_each(|(kind, _)| text.push(kind));
    }
    if mode & 4 != 0 {
        match ip.source {
            IpAddr::V4(address) => text.extend(&address.octets()),
            IpAddr::V6(address) => text.extend(&address.octets()),
        }
    }
    text.finish().map(Value::Bin)
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::Scene;

    const TCP: &str = "aabb1f900000000500000000a002ffd7fe3000000204ffd70402080a0a0b0c0d0000000001030307";
    const PLAIN_TCP: &str = "00501f9000000005000000005002ffc4fe300000";

    #[track_caller]
    fn check(rows: &[(&str, &str, &str)]) {
        let v4 = format!("4510003c00004000400600007f0000017f000001{TCP}");
        let v6 = format!("60123456002806400000000000000000000000000000000100000000000000000000000000000002{TCP}");
        let extended =
            "6012345600300040000000000000000000000000000000010000000000000000000000000000000206000104000000000050";
        for (packet, converters, expected) in rows {
            let bytes = match *packet {
                "eth" => format!("0102030405060a0b0c0d0e0f0800{v4}"),
                "vlan" => format!("0102030405060a0b0c0d0e0f8100007b0800{v4}"),
                "v4" => v4.clone(),
                "v6" => v6.clone(),
                "extended" => extended.to_owned(),
                "tcp" => TCP.to_owned(),
                "plain" => PLAIN_TCP.to_owned(),
                other => other.to_owned(),
            };
            let text = format!("bin({bytes}),{converters}");
            let expected = expected.replace("V4", &v4).replace("TCP", TCP);
            assert_eq!(Scene::default().eval(&text), expected, "{packet} {converters}");
        }
    }

    #[test]
    fn frames_are_read() {
        check(&[
            ("eth", "eth.data", "V4"),
            ("eth", "eth.dst", "010203040506"),
            ("eth", "eth.src", "0a0b0c0d0e0f"),
            ("eth", "eth.hdr", "0102030405060a0b0c0d0e0f0800"),
            ("eth", "eth.proto", "2048"),
            ("eth", "eth.vlan", "<none>"),
            ("vlan", "eth.data", "V4"),
            ("vlan", "eth.hdr", "0102030405060a0b0c0d0e0f8100007b0800"),
            ("vlan", "eth.proto", "2048"),
            ("vlan", "eth.vlan", "123"),
            ("0102030405", "eth.dst", "<none>"),
            ("010203040506", "eth.src", "<none>"),
            ("010203040506", "eth.hdr", "<none>"),
            ("0102030405060a0b0c0d0e0f0800", "eth.data", "<none>"),
            ("0102030405060a0b0c0d0e0f88a8007b8100007c0800aa", "eth.vlan", "<none>"),
        ]);
    }

    #[test]
    fn packets_are_read() {
        check(&[
            ("v4", "ip.ver", "4"),
            ("v4", "ip.src", "127.0.0.1"),
            ("v4", "ip.dst", "127.0.0.1"),
            ("v4", "ip.tos", "16"),
            ("v4", "ip.ttl", "64"),
            ("v4", "ip.df", "1"),
            ("v4", "ip.proto", "6"),
            ("v4", "ip.hdr", "4510003c00004000400600007f0000017f000001"),
            ("v4", "ip.data", "TCP"),
            ("v4", "ip.fp", "1050a8ffd7ffd747"),
            ("v4", "ip.fp(7)", "1050a8ffd7ffd7474002040801037f000001"),
            ("v4", "ip.fp(8)", "1050a8ffd7ffd747"),
            ("v6", "ip.ver", "6"),
            ("v6", "ip.src", "::1"),
            ("v6", "ip.dst", "::2"),
            ("v6", "ip.tos", "1"),
            ("v6", "ip.ttl", "64"),
            ("v6", "ip.df", "1"),
            ("v6", "ip.data", "TCP"),
            ("v6", "ip.fp(5)", "01d0a8ffd7ffd7474000000000000000000000000000000001"),
            ("extended", "ip.proto", "6"),
            ("extended", "ip.data", "0050"),
            ("55", "ip.ver", "5"),
            ("45", "ip.src", "<none>"),
            ("4510", "ip.tos", "16"),
            ("451000280000", "ip.df", "0"),
            ("451000280000200040", "ip.ttl", "<none>"),
        ]);
    }

    #[test]
    fn segments_are_read() {
        check(&[
            ("tcp", "tcp.src", "43707"),
            ("tcp", "tcp.dst", "8080"),
            ("tcp", "tcp.seq", "5"),
            ("tcp", "tcp.flags", "2"),
            ("tcp", "tcp.win", "65495"),
            ("tcp", "tcp.options.mss", "65495"),
            ("tcp", "tcp.options.sack", "1"),
            ("tcp", "tcp.options.tsopt", "1"),
            ("tcp", "tcp.options.tsval", "168496141"),
            ("tcp", "tcp.options.wscale", "7"),
            ("tcp", "tcp.options.wsopt", "1"),
            ("tcp", "tcp.options_list", "0204080103"),
            ("plain", "tcp.options.mss", "0"),
            ("plain", "tcp.options.tsval", "0"),
            ("plain", "tcp.options_list", ""),
            ("00501f90", "tcp.dst", "<none>"),
            // If a header claims options that are missing, the fixed part can still be read.
            ("00501f900000000500000000f002ffd700000000", "tcp.win", "65495"),
            ("00501f900000000500000000f002ffd700000000", "tcp.options_list", "<none>"),
            ("00501f9000000005000000005002", "tcp.flags", "<none>"),
        ]);
    }
}
