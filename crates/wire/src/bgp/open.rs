//! OPEN messages (RFC 4271, section 4.2) and their capabilities (RFC 5492). Must never decide whether a router is the expected
//! one.

use std::net::Ipv4Addr;

use super::header::{self, Kind};
use super::prefix::{Family, UNICAST};
use super::{ErrorCode, Notification, two_octets};

const VERSION: u8 = 4;
/// The optional parameter that contains capabilities.
const CAPABILITIES: u8 = 2;
/// The type of an optional parameter that marks the extended format (RFC 9072).
const EXTENDED: u8 = 255;

const MULTIPROTOCOL: u8 = 1;
const ROUTE_REFRESH: u8 = 2;
const FOUR_OCTETS: u8 = 65;

/// The capabilities of a speaker, as far as Weir acts on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities {
    /// The speaker names the families that it exchanges (RFC 4760).
    pub is_multiprotocol: bool,
    /// IPv4 is one of the families that are named.
    pub ipv4: bool,
    /// IPv6 is one of the families that are named.
    pub ipv6: bool,
    /// AS numbers of four octets, with the speaker's own (RFC 6793).
    pub four_octets: Option<u32>,
    /// Route refresh (RFC 2918).
    pub route_refresh: bool,
}

impl Capabilities {
    /// Returns everything that Weir supports.
    pub fn own(local_as: u32) -> Self {
        Self { is_multiprotocol: true, ipv4: true, ipv6: true, four_octets: Some(local_as), route_refresh: true }
    }

    /// Whether routes of that family may be sent. A speaker that names no family exchanges IPv4.
    pub fn exchanges(&self, family: Family) -> bool {
        match family {
            Family::Ipv4 => self.ipv4 || !self.is_multiprotocol,
            Family::Ipv6 => self.ipv6,
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        for family in [(self.ipv4, Family::Ipv4), (self.ipv6, Family::Ipv6)].into_iter().filter(|row| row.0) {
            let [high, low] = (family.1 as u16).to_be_bytes();
            out.extend([MULTIPROTOCOL, 4, high, low, 0, UNICAST]);
        }
        if self.route_refresh {
            out.extend([ROUTE_REFRESH, 0]);
        }
        if let Some(number) = self.four_octets {
            out.extend([FOUR_OCTETS, 4]);
            out.extend(number.to_be_bytes());
        }
    }

    /// Parses the value of a parameter. Unknown capabilities are ignored.
    fn parse(&mut self, mut value: &[u8]) -> Option<()> {
        while let [code, length, rest @ ..] = value {
            let (content, rest) = rest.split_at_checked(usize::from(*length))?;
            match (*code, content) {
                (MULTIPROTOCOL, &[high, low, _, safi]) => {
                    self.is_multiprotocol = true;
                    match Family::of(u16::from_be_bytes([high, low]), safi) {
                        Some(Family::Ipv4) => self.ipv4 = true,
                        Some(Family::Ipv6) => self.ipv6 = true,
                        None => {}
                    }
                }
                (ROUTE_REFRESH, []) => self.route_refresh = true,
                (FOUR_OCTETS, &[a, b, c, d]) => self.four_octets = Some(u32::from_be_bytes([a, b, c, d])),
                (MULTIPROTOCOL | ROUTE_REFRESH | FOUR_OCTETS, _) => return None,
                _ => {}
            }
            value = rest;
        }
        value.is_empty().then_some(())
    }
}

/// An OPEN message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// The AS number: that of the capability, otherwise the field of two octets.
    pub number: u32,
    /// Proposed hold time in seconds.
    pub hold_time: u16,
    pub router_id: Ipv4Addr,
    /// `None`: the message has no optional parameter.
    pub capabilities: Option<Capabilities>,
}

impl Open {
    /// Adds the message to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        header::encode(out, Kind::Open, |out| {
            out.push(VERSION);
            out.extend(two_octets(self.number).to_be_bytes());
            out.extend(self.hold_time.to_be_bytes());
            out.extend(self.router_id.octets());
            let mut value = Vec::new();
            if let Some(capabilities) = &self.capabilities {
                capabilities.encode(&mut value);
            }
            // At most 20 octets.
            let length = u8::try_from(value.len()).unwrap_or(0);
            match length {
                0 => out.push(0),
                _ => out.extend([length + 2, CAPABILITIES, length]),
            }
            out.extend(value);
        });
    }

    /// Parses the body of a message.
    ///
    /// # Errors
    /// The message with which the session has to end.
    pub fn parse(body: &[u8]) -> Result<Self, Notification> {
        let unspecific = || Notification::from(ErrorCode::OPEN_UNSPECIFIC);
        let (fixed, parameters) = body.split_first_chunk::<10>().ok_or_else(unspecific)?;
        let [version, as_high, as_low, hold_high, hold_low, a, b, c, d, length] = *fixed;
        if version != VERSION {
            let supported = u16::from(VERSION).to_be_bytes();
            return Err(Notification::new(ErrorCode::UNSUPPORTED_VERSION, &supported));
        }
        let router_id = Ipv4Addr::new(a, b, c, d);
        if router_id.is_unspecified() {
            return Err(ErrorCode::BAD_IDENTIFIER.into());
        }
        let capabilities = parameters_of(length, parameters)?;
        let two_octets = u32::from(u16::from_be_bytes([as_high, as_low]));
        Ok(Self {
            number: capabilities.and_then(|known| known.four_octets).unwrap_or(two_octets),
            hold_time: u16::from_be_bytes([hold_high, hold_low]),
            router_id,
            capabilities,
        })
    }
}

/// Parses the optional parameters, in either format; `length` is the octet before them.
fn parameters_of(length: u8, bytes: &[u8]) -> Result<Option<Capabilities>, Notification> {
    let unspecific = || Notification::from(ErrorCode::OPEN_UNSPECIFIC);
    let (is_extended, mut rest) = match bytes {
        [EXTENDED, high, low, rest @ ..] if length != 0 => {
            (usize::from(u16::from_be_bytes([*high, *low])) == rest.len(), rest)
        }
        _ => (false, bytes),
    };
    if !is_extended {
        rest = bytes;
        if rest.len() != usize::from(length) {
            return Err(unspecific());
        }
    }
    let mut found = None;
    while let Some((kind, after)) = rest.split_first() {
        let (size, after) = if is_extended {
            let (size, after) = after.split_first_chunk::<2>().ok_or_else(unspecific)?;
            (usize::from(u16::from_be_bytes(*size)), after)
        } else {
            let (size, after) = after.split_first().ok_or_else(unspecific)?;
            (usize::from(*size), after)
        };
        let (value, after) = after.split_at_checked(size).ok_or_else(unspecific)?;
        if *kind != CAPABILITIES {
            return Err(Notification::new(ErrorCode::UNSUPPORTED_PARAMETER, &[*kind]));
        }
        found.get_or_insert_with(Capabilities::default).parse(value).ok_or_else(unspecific)?;
        rest = after;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: [u8; 4] = [10, 0, 0, 1];

    /// The body of a message from AS 65001 with a hold time of 9 s and these parameters.
    fn body(parameters: &[u8]) -> Vec<u8> {
        let mut body = vec![4, 0xfd, 0xe9, 0, 9];
        body.extend(ID);
        body.push(parameters.len() as u8);
        body.extend(parameters);
        body
    }

    #[test]
    fn a_message_names_what_weir_supports() {
        let open = Open {
            number: 4_200_000_001,
            hold_time: 9,
            router_id: ID.into(),
            capabilities: Some(Capabilities::own(4_200_000_001)),
        };
        let mut out = Vec::new();
        open.encode(&mut out);
        let mut expected = vec![0xff; 16];
        expected.extend([0, 51, 1, 4, 0x5b, 0xa0, 0, 9, 10, 0, 0, 1, 22, 2, 20]);
        expected.extend([1, 4, 0, 1, 0, 1, 1, 4, 0, 2, 0, 1, 2, 0, 65, 4, 0xfa, 0x56, 0xea, 0x01]);
        assert_eq!(out, expected);
        assert_eq!(Open::parse(&out[19..]), Ok(open));
        let plain = Open { number: 65_001, hold_time: 9, router_id: ID.into(), capabilities: None };
        out.clear();
        plain.encode(&mut out);
        assert_eq!(&out[19..], body(&[]));
        assert_eq!(Open::parse(&out[19..]), Ok(plain));
    }

    #[test]
    fn capabilities_are_read_in_every_form() {
        let own = Capabilities::own(65_001);
        let separate = [2, 6, 1, 4, 0, 1, 0, 1, 2, 6, 1, 4, 0, 2, 0, 1, 2, 2, 2, 0, 2, 6, 65, 4, 0, 0, 0xfd, 0xe9];
        let unknown = [2, 6, 1, 4, 0, 25, 0, 70, 2, 5, 128, 1, 7, 70, 0];
        let extended = [255, 0, 9, 2, 0, 6, 1, 4, 0, 2, 0, 1];
        let ipv6 = Capabilities { is_multiprotocol: true, ipv6: true, ..Capabilities::default() };
        let other = Capabilities { is_multiprotocol: true, ..Capabilities::default() };
        let rows: [(&[u8], Option<Capabilities>); 5] = [
            (&separate, Some(own)),
            (&unknown, Some(other)),
            (&extended, Some(ipv6)),
            (&[2, 0], Some(Capabilities::default())),
            (&[], None),
        ];
        for (parameters, expected) in rows {
            let found = Open::parse(&body(parameters)).map(|open| open.capabilities);
            assert_eq!(found, Ok(expected), "{parameters:?}");
        }
        let exchanges = |known: Capabilities| [Family::Ipv4, Family::Ipv6].map(|family| known.exchanges(family));
        assert_eq!(exchanges(Capabilities::default()), [true, false]);
        assert_eq!(exchanges(ipv6), [false, true]);
        assert_eq!(exchanges(other), [false, false]);
    }

    #[test]
    fn faults_have_their_codes() {
        let mut old = body(&[]);
        old[0] = 3;
        let mut nameless = body(&[]);
        nameless[5..9].fill(0);
        let mut short = body(&[2, 2, 2, 0]);
        short.pop();
        let rows: [(Vec<u8>, u8, &[u8]); 9] = [
            (old, 1, &[0, 4]),
            (nameless, 3, &[]),
            (short, 0, &[]),
            (body(&[1, 0]), 4, &[1]),
            (body(&[2, 3, 1, 4, 0]), 0, &[]),
            (body(&[2, 4, 65, 2, 0, 1]), 0, &[]),
            (body(&[2, 1, 1]), 0, &[]),
            (body(&[2]), 0, &[]),
            (body(&[2, 9, 1]), 0, &[]),
        ];
        for (body, subcode, data) in rows {
            let expected = Notification::new(ErrorCode { code: 2, subcode }, data);
            assert_eq!(Open::parse(&body), Err(expected), "{body:?}");
        }
        assert_eq!(Open::parse(&[4, 0]), Err(ErrorCode::OPEN_UNSPECIFIC.into()));
    }
}
