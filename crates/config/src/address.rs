//! Parser of addresses as written (configuration manual, section 2.9): turns text into an [`AddressSpec`]. Must never
//! resolve a name or use a descriptor.

use crate::environment::Environment;
use crate::spec::{AddressSpec, Family, HostSpec, PortSpec, SocketKind};
use crate::text;
use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Maximum length of a UNIX socket's path, in bytes. HAProxy reserves ten of the kernel's 108 bytes for the suffix of
/// its temporary name.
pub const MAX_PATH: usize = 97;
/// Maximum length of an abstract socket's name, in bytes.
pub const MAX_ABSTRACT_NAME: usize = 107;
/// Maximum length of an address after variables are expanded, in bytes.
const MAX_EXPANDED: usize = 4096;

/// Forms of an address that a keyword accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRules {
    /// A port is required and must not be 0 (`bind`).
    pub port_required: bool,
    /// Accepts a port range such as `80-90`.
    pub port_range: bool,
    /// Accepts a port offset such as `+10` or `-10`.
    pub port_offset: bool,
    /// Accepts `fd@n`.
    pub descriptor: bool,
    /// Accepts stream sockets.
    pub stream: bool,
    /// Accepts datagram sockets.
    pub datagram: bool,
    /// Accepts QUIC.
    pub quic: bool,
    /// Socket type of an address without a `stream+`, `dgram+` or `quic+` prefix.
    pub kind: SocketKind,
    /// Accepts `rhttp@`.
    pub reverse: bool,
    /// Accepts `mptcp@`.
    pub multipath: bool,
    /// Accepts `sockpair@n`.
    pub carrier: bool,
}

impl AddressRules {
    /// `bind` outside of proxies.
    pub const BIND: Self = Self {
        port_required: true,
        port_range: true,
        port_offset: false,
        descriptor: true,
        stream: true,
        datagram: false,
        quic: false,
        kind: SocketKind::Stream,
        reverse: false,
        multipath: false,
        carrier: false,
    };
    /// `bind` of a proxy.
    pub const PROXY_BIND: Self = Self { reverse: true, multipath: true, carrier: true, quic: true, ..Self::BIND };
    /// `server` of a proxy.
    pub const PROXY_SERVER: Self = Self { reverse: true, multipath: true, carrier: true, quic: true, ..Self::SERVER };
    /// `server` outside of proxies.
    pub const SERVER: Self = Self {
        port_required: false,
        port_range: false,
        port_offset: true,
        descriptor: false,
        stream: true,
        datagram: true,
        quic: false,
        kind: SocketKind::Stream,
        reverse: false,
        multipath: false,
        carrier: false,
    };
    /// `source`, `usesrc` and `socks4`.
    pub const SOURCE: Self = Self {
        port_required: false,
        port_range: false,
        port_offset: false,
        descriptor: false,
        stream: true,
        datagram: false,
        quic: false,
        kind: SocketKind::Stream,
        reverse: false,
        multipath: false,
        carrier: false,
    };
    /// `dgram-bind`.
    pub const DGRAM_BIND: Self = Self { stream: false, datagram: true, kind: SocketKind::Datagram, ..Self::BIND };
    /// `nameserver`.
    pub const NAMESERVER: Self = Self { port_required: true, descriptor: false, ..Self::LOG };
    /// `log`.
    pub const LOG: Self = Self {
        port_required: false,
        port_range: false,
        port_offset: false,
        descriptor: true,
        stream: true,
        datagram: true,
        quic: false,
        kind: SocketKind::Datagram,
        reverse: false,
        multipath: false,
        carrier: false,
    };
}

/// Error in an address. `Display` writes HAProxy's sentence without the keyword in front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddressError {
    /// The address is empty, possibly because its variables expand to nothing.
    Empty {
        /// The address as written.
        text: String,
    },
    /// A prefix that HAProxy supports and Weir does not support yet.
    NotSupported {
        /// The prefix, including its `@` or `+`.
        prefix: &'static str,
        /// The address as written.
        text: String,
    },
    /// A required port is missing.
    MissingPort {
        /// The address as written.
        text: String,
    },
    /// The port is not a valid number, or is 0 where a port is required.
    InvalidPort {
        /// The port as written.
        port: String,
    },
    /// The port contains a character that is not a digit.
    InvalidPortCharacter {
        found: char,
        /// The port as written.
        port: String,
        /// The address as written.
        text: String,
    },
    /// A port range whose end is below its start.
    InvalidRange {
        /// The range as written.
        range: String,
    },
    /// A port range where a single port is required.
    RangeNotPermitted {
        /// The address as written.
        text: String,
    },
    /// A port offset where none is accepted.
    OffsetNotPermitted {
        /// The address as written.
        text: String,
    },
    /// The host is neither an IP address nor a name.
    InvalidHost {
        host: String,
        /// The address as written.
        text: String,
    },
    /// `fd@` is not followed by a number.
    InvalidDescriptor {
        /// The text after `fd@`.
        number: String,
        /// The address as written.
        text: String,
    },
    /// `fd@` where descriptors are not accepted.
    DescriptorNotPermitted {
        /// The address as written.
        text: String,
    },
    /// A path or name that does not fit into a socket address.
    TooLong {
        /// The address as written.
        text: String,
        /// Maximum length, in bytes.
        max: usize,
    },
    /// `quic+` in front of an address that is not one of IP.
    QuicNeedsIp {
        /// The address as written.
        text: String,
    },
    /// A datagram socket where a stream socket is required, or the reverse.
    KindNotPermitted {
        /// The socket type of the address.
        kind: SocketKind,
        /// The address as written.
        text: String,
    },
}

impl fmt::Display for AddressError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { text } => {
                write!(formatter, "'{text}' resolves to an empty address (environment variable missing?)")
            }
            Self::NotSupported { prefix, text } => {
                write!(formatter, "address prefix '{prefix}' is not supported yet in '{text}'")
            }
            Self::MissingPort { text } => write!(formatter, "missing port specification in '{text}'"),
            Self::InvalidPort { port } => write!(formatter, "invalid port '{port}'"),
            Self::InvalidPortCharacter { found, port, text } => {
                write!(formatter, "invalid character '{found}' in port number '{port}' in '{text}'")
            }
            Self::InvalidRange { range } => write!(formatter, "invalid port range '{range}'"),
            Self::RangeNotPermitted { text } => write!(formatter, "port range not permitted here in '{text}'"),
            Self::OffsetNotPermitted { text } => write!(formatter, "port offset not permitted here in '{text}'"),
            Self::InvalidHost { host, text } => write!(formatter, "invalid address: '{host}' in '{text}'"),
            Self::InvalidDescriptor { number, text } => {
                write!(formatter, "file descriptor '{number}' is not a valid integer in '{text}'")
            }
            Self::DescriptorNotPermitted { text } => {
                write!(formatter, "a file descriptor is not acceptable here in '{text}'")
            }
            Self::TooLong { text, max } => write!(formatter, "socket path '{text}' too long (max {max})"),
            Self::QuicNeedsIp { text } => write!(formatter, "QUIC needs an IPv4 or IPv6 address in '{text}'"),
            Self::KindNotPermitted { kind, text } => {
                let kind = match kind {
                    SocketKind::Stream => "stream",
                    SocketKind::Datagram => "dgram",
                    SocketKind::Quic => "quic",
                };
                write!(formatter, "{kind}-type address not acceptable in '{text}'")
            }
        }
    }
}

impl std::error::Error for AddressError {}

impl AddressError {
    /// Returns a hint that may help to fix the address.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Empty { .. } => "write \"${NAME-default}\", with the quotes, to have a value for a missing variable",
            Self::NotSupported { prefix, .. } if prefix.starts_with("quic") => {
                "QUIC is for the 'bind' and 'server' lines of proxies only"
            }
            Self::NotSupported { .. } => {
                "Weir serves ip, ipv4, ipv6, tcp, udp, unix, abns, abnsz, fd and sockpair so far"
            }
            Self::MissingPort { .. } => "write the port behind a colon, like 127.0.0.1:80, [::1]:80 or :80",
            Self::InvalidHost { text, .. } | Self::InvalidPortCharacter { text, .. } if text.contains("://") => {
                "an address is a host and a port: no scheme belongs before it, and no path behind it"
            }
            Self::InvalidPort { .. } | Self::InvalidPortCharacter { .. } => "a port is a number between 1 and 65535",
            Self::InvalidRange { .. } => "write the lower port first",
            Self::RangeNotPermitted { .. } => "only listening addresses have port ranges",
            Self::OffsetNotPermitted { .. } => "only a server's port can be relative to the port the client came to",
            Self::InvalidHost { host, .. } if host.contains(':') => {
                "put an IPv6 address into brackets, like [2001:db8::1]:80"
            }
            Self::DescriptorNotPermitted { .. } => "descriptors can only be listened on and logged to",
            Self::QuicNeedsIp { .. } => "write quic4@<address>:<port>, quic6@<address>:<port> or quic+fd@<n>",
            Self::TooLong { .. } => "the kernel permits short paths only; a relative path may do",
            _ => return None,
        })
    }
}

/// Meaning of an address prefix.
#[derive(Debug, Clone, Copy)]
enum Scheme {
    Inet(Family),
    Multipath(Family),
    Unix,
    Abstract { unpadded: bool },
    Descriptor,
    Carrier,
}

type Prefix = (&'static str, Option<SocketKind>, Scheme);

/// The prefixes of sections 2.9.1 and 2.9.3.
const PREFIXES: &[Prefix] = &[
    ("ip@", None, Scheme::Inet(Family::Unspecified)),
    ("ipv4@", None, Scheme::Inet(Family::V4)),
    ("ipv6@", None, Scheme::Inet(Family::V6)),
    ("tcp@", Some(SocketKind::Stream), Scheme::Inet(Family::Unspecified)),
    ("tcp4@", Some(SocketKind::Stream), Scheme::Inet(Family::V4)),
    ("tcp6@", Some(SocketKind::Stream), Scheme::Inet(Family::V6)),
    ("mptcp@", Some(SocketKind::Stream), Scheme::Multipath(Family::Unspecified)),
    ("mptcp4@", Some(SocketKind::Stream), Scheme::Multipath(Family::V4)),
    ("mptcp6@", Some(SocketKind::Stream), Scheme::Multipath(Family::V6)),
    ("udp@", Some(SocketKind::Datagram), Scheme::Inet(Family::Unspecified)),
    ("udp4@", Some(SocketKind::Datagram), Scheme::Inet(Family::V4)),
    ("udp6@", Some(SocketKind::Datagram), Scheme::Inet(Family::V6)),
    ("quic4@", Some(SocketKind::Quic), Scheme::Inet(Family::V4)),
    ("quic6@", Some(SocketKind::Quic), Scheme::Inet(Family::V6)),
    ("unix@", None, Scheme::Unix),
    ("uxst@", Some(SocketKind::Stream), Scheme::Unix),
    ("uxdg@", Some(SocketKind::Datagram), Scheme::Unix),
    ("abns@", None, Scheme::Abstract { unpadded: false }),
    ("abnsz@", None, Scheme::Abstract { unpadded: true }),
    ("fd@", None, Scheme::Descriptor),
    ("sockpair@", Some(SocketKind::Stream), Scheme::Carrier),
];

/// Prefixes that HAProxy supports and Weir does not support yet; those of MPTCP and QUIC where the rules do not permit
/// them.
const NOT_YET: &[&str] = &["quic4@", "quic6@", "mptcp@", "mptcp4@", "mptcp6@", "rhttp@"];

/// Splits a comma-separated list of addresses, as in `bind`: returns each with the offset of its first byte.
pub fn split_list(list: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut offset = 0;
    list.split(',').map(move |part| {
        let start = offset;
        offset += part.len() + 1;
        (start, part)
    })
}

/// Parses one address. Variables are expanded even where quotes are missing, as HAProxy does in addresses.
///
/// # Errors
/// The text is not an address, or not one that the rules permit.
pub fn parse(written: &str, rules: &AddressRules, environment: &Environment) -> Result<AddressSpec, AddressError> {
    let text = || written.to_owned();
    let expanded = expand(written, environment);
    if expanded.is_empty() {
        return Err(AddressError::Empty { text: text() });
    }
    let (kind, address) = strip_kind(&expanded, rules.kind);
    if rules.reverse
        && let Some(server) = address.strip_prefix("rhttp@")
    {
        return Ok(AddressSpec::Reverse { server: server.to_owned() });
    }
    if let Some(prefix) = unsupported_prefix(kind, address, rules) {
        return Err(AddressError::NotSupported { prefix, text: text() });
    }
    let (kind, scheme, rest) = match PREFIXES.iter().find_map(|row| address.strip_prefix(row.0).map(|rest| (row, rest)))
    {
        Some((&(_, forced, scheme), rest)) => (forced.unwrap_or(kind), scheme, rest),
        None if address.starts_with('/') => (kind, Scheme::Unix, address),
        None => (kind, Scheme::Inet(Family::Unspecified), address),
    };
    let spec = match scheme {
        Scheme::Inet(family) => inet(rest, family, false, kind, rules, written)?,
        Scheme::Multipath(family) => inet(rest, family, true, kind, rules, written)?,
        Scheme::Unix => AddressSpec::Unix { path: fitting(rest, MAX_PATH, written)?, kind },
        Scheme::Abstract { unpadded } => {
            AddressSpec::Abstract { name: fitting(rest, MAX_ABSTRACT_NAME, written)?, unpadded, kind }
        }
        Scheme::Descriptor => {
            AddressSpec::Descriptor { fd: descriptor(rest, rules.descriptor, written)?, kind, is_carrier: false }
        }
        Scheme::Carrier => {
            AddressSpec::Descriptor { fd: descriptor(rest, rules.carrier, written)?, kind, is_carrier: true }
        }
    };
    let permitted = match kind {
        SocketKind::Stream => rules.stream,
        SocketKind::Datagram => rules.datagram,
        SocketKind::Quic if !spec.is_quic() => return Err(AddressError::QuicNeedsIp { text: text() }),
        SocketKind::Quic => rules.quic,
    };
    if permitted { Ok(spec) } else { Err(AddressError::KindNotPermitted { kind, text: text() }) }
}

/// Returns the prefix of an address that the rules do not permit and Weir does not support yet.
fn unsupported_prefix(kind: SocketKind, address: &str, rules: &AddressRules) -> Option<&'static str> {
    if kind == SocketKind::Quic && !rules.quic {
        return Some("quic+");
    }
    let is_permitted = |prefix: &str| match prefix {
        "quic4@" | "quic6@" => rules.quic,
        "rhttp@" => rules.reverse,
        _ => rules.multipath,
    };
    NOT_YET.iter().copied().find(|prefix| address.starts_with(prefix) && !is_permitted(prefix))
}

/// Strips the socket type prefixes of section 2.9.2.
fn strip_kind(address: &str, default: SocketKind) -> (SocketKind, &str) {
    if let Some(rest) = address.strip_prefix("stream+") {
        (SocketKind::Stream, rest)
    } else if let Some(rest) = address.strip_prefix("dgram+") {
        (SocketKind::Datagram, rest)
    } else if let Some(rest) = address.strip_prefix("quic+") {
        (SocketKind::Quic, rest)
    } else {
        (default, address)
    }
}

fn fitting(name: &str, max: usize, written: &str) -> Result<String, AddressError> {
    if text::to_bytes(name).len() > max {
        return Err(AddressError::TooLong { text: written.to_owned(), max });
    }
    Ok(name.to_owned())
}

fn descriptor(number: &str, is_permitted: bool, written: &str) -> Result<i32, AddressError> {
    let text = || written.to_owned();
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let fd = number.parse().ok().filter(|_| digits);
    let fd = fd.ok_or_else(|| AddressError::InvalidDescriptor { number: number.to_owned(), text: text() })?;
    if is_permitted { Ok(fd) } else { Err(AddressError::DescriptorNotPermitted { text: text() }) }
}

fn inet(
    address: &str,
    family: Family,
    multipath: bool,
    kind: SocketKind,
    rules: &AddressRules,
    written: &str,
) -> Result<AddressSpec, AddressError> {
    // The last colon starts the port, unless it is inside brackets: `::1:80` is port 80 of ::1.
    let (host, port) = match address.rfind([':', ']']) {
        Some(at) if address.as_bytes().get(at) == Some(&b':') => (&address[..at], &address[at + 1..]),
        _ => (address, ""),
    };
    let port = port_spec(port, rules, written)?;
    let (host, family) = host_spec(host, family, written)?;
    Ok(AddressSpec::Inet { host, family, port, kind, multipath })
}

fn port_spec(port: &str, rules: &AddressRules, written: &str) -> Result<PortSpec, AddressError> {
    let text = || written.to_owned();
    if port.is_empty() {
        return if rules.port_required { Err(AddressError::MissingPort { text: text() }) } else { Ok(PortSpec::None) };
    }
    if let Some(digits) = port.strip_prefix(['+', '-']) {
        if !rules.port_offset {
            return Err(AddressError::OffsetNotPermitted { text: text() });
        }
        let offset = i32::from(if digits.is_empty() { 0 } else { port_number(digits, 0, written)? });
        return Ok(PortSpec::Offset(if port.starts_with('-') { -offset } else { offset }));
    }
    let lowest = u16::from(rules.port_required);
    match port.split_once('-') {
        None => Ok(PortSpec::Exact(port_number(port, lowest, written)?)),
        Some(_) if !rules.port_range => Err(AddressError::RangeNotPermitted { text: text() }),
        Some((first, last)) => {
            let (low, high) = (port_number(first, lowest, written)?, port_number(last, lowest, written)?);
            match low.cmp(&high) {
                std::cmp::Ordering::Less => Ok(PortSpec::Range(low, high)),
                std::cmp::Ordering::Equal => Ok(PortSpec::Exact(low)),
                std::cmp::Ordering::Greater => Err(AddressError::InvalidRange { range: port.to_owned() }),
            }
        }
    }
}

fn port_number(port: &str, lowest: u16, written: &str) -> Result<u16, AddressError> {
    if let Some(found) = port.chars().find(|found| !found.is_ascii_digit()) {
        return Err(AddressError::InvalidPortCharacter { found, port: port.to_owned(), text: written.to_owned() });
    }
    let number = port.parse().ok().filter(|&number| number >= lowest);
    number.ok_or_else(|| AddressError::InvalidPort { port: port.to_owned() })
}

fn host_spec(host: &str, family: Family, written: &str) -> Result<(HostSpec, Family), AddressError> {
    if host.is_empty() || host == "*" {
        return Ok((HostSpec::Any, family));
    }
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let literal: Option<IpAddr> = bare.unwrap_or(host).parse().ok();
    let fits = |ip: IpAddr| match family {
        Family::Unspecified => true,
        Family::V4 => ip.is_ipv4(),
        Family::V6 => ip.is_ipv6(),
    };
    match literal {
        Some(ip) if !fits(ip) => {}
        Some(IpAddr::V4(ip)) if ip == Ipv4Addr::UNSPECIFIED => return Ok((HostSpec::Any, family)),
        Some(IpAddr::V6(ip)) if ip == Ipv6Addr::UNSPECIFIED => return Ok((HostSpec::Any, Family::V6)),
        Some(ip) => return Ok((HostSpec::Ip(ip), family)),
        None if is_name(host) => return Ok((HostSpec::Name(host.to_owned()), family)),
        None => {}
    }
    Err(AddressError::InvalidHost { host: host.to_owned(), text: written.to_owned() })
}

/// Whether the host can be passed to a resolver: bytes of a host name, within the maximum length.
fn is_name(host: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    host.len() <= 255 && host.bytes().all(fine) && host.bytes().any(|byte| byte.is_ascii_alphanumeric())
}

/// Replaces `$NAME` and `${NAME}`; unset variables expand to nothing.
fn expand<'a>(text: &'a str, environment: &Environment) -> Cow<'a, str> {
    if !text.contains('$') {
        return Cow::Borrowed(text);
    }
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        expanded.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let braced = rest.strip_prefix('{');
        let name_from = braced.unwrap_or(rest);
        let end = name_from.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name_from.len());
        let (name, behind) = name_from.split_at(end);
        expanded.push_str(environment.get(name).unwrap_or_default());
        rest = if braced.is_some() { behind.strip_prefix('}').unwrap_or(behind) } else { behind };
        if expanded.len() > MAX_EXPANDED {
            break;
        }
    }
    expanded.push_str(rest);
    Cow::Owned(expanded)
}

#[cfg(test)]
mod tests;
