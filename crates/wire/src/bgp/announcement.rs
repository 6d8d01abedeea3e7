//! UPDATE messages that Weir sends: one route each. Must never be longer than a message may be.

use std::net::IpAddr;

use super::header::{self, Kind};
use super::prefix::{Family, Prefix, UNICAST};
use super::two_octets;

/// Flags of an attribute.
const OPTIONAL: u8 = 0x80;
const TRANSITIVE: u8 = 0x40;
const EXTENDED_LENGTH: u8 = 0x10;

const ORIGIN: u8 = 1;
const AS_PATH: u8 = 2;
const NEXT_HOP: u8 = 3;
const MED: u8 = 4;
const LOCAL_PREFERENCE: u8 = 5;
const COMMUNITIES: u8 = 8;
pub(super) const MP_REACH: u8 = 14;
pub(super) const MP_UNREACH: u8 = 15;
const AS4_PATH: u8 = 17;

/// The origin of a route that was configured.
const IGP: u8 = 0;
/// The kind of a segment of an AS path that is in order.
const SEQUENCE: u8 = 2;

/// The attributes of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathAttributes<'a> {
    /// The only AS of the path; `None` within an AS, where the path is empty.
    pub path: Option<u32>,
    /// The path is written with four octets for each AS.
    pub four_octets: bool,
    /// An address of the family of the route.
    pub next_hop: IpAddr,
    pub med: Option<u32>,
    /// Only within an AS.
    pub local_preference: Option<u32>,
    /// At most 255.
    pub communities: &'a [u32],
}

/// Adds a message to `out` that announces a route.
pub fn announce(out: &mut Vec<u8>, prefix: &Prefix, attributes: &PathAttributes<'_>) {
    update(out, |out| {
        if prefix.family() == Family::Ipv6 {
            // RFC 7606: first, so that the route is known even if another attribute is malformed.
            attribute(out, OPTIONAL, MP_REACH, |out| {
                out.extend(family(Family::Ipv6));
                next_hop(out, attributes.next_hop, true);
                out.push(0);
                prefix.encode(out);
            });
        }
        attribute(out, TRANSITIVE, ORIGIN, |out| out.push(IGP));
        attribute(out, TRANSITIVE, AS_PATH, |out| as_path(out, attributes));
        if prefix.family() == Family::Ipv4 {
            attribute(out, TRANSITIVE, NEXT_HOP, |out| next_hop(out, attributes.next_hop, false));
        }
        if let Some(med) = attributes.med {
            attribute(out, OPTIONAL, MED, |out| out.extend(med.to_be_bytes()));
        }
        if let Some(preference) = attributes.local_preference {
            attribute(out, TRANSITIVE, LOCAL_PREFERENCE, |out| out.extend(preference.to_be_bytes()));
        }
        if !attributes.communities.is_empty() {
            attribute(out, OPTIONAL | TRANSITIVE, COMMUNITIES, |out| {
                attributes.communities.iter().for_each(|community| out.extend(community.to_be_bytes()));
            });
        }
        if let Some(number) = attributes.path.filter(|number| !attributes.four_octets && *number > u16::MAX.into()) {
            attribute(out, OPTIONAL | TRANSITIVE, AS4_PATH, |out| {
                out.extend([SEQUENCE, 1]);
                out.extend(number.to_be_bytes());
            });
        }
        if prefix.family() == Family::Ipv4 { Some(*prefix) } else { None }
    });
}

/// Adds a message to `out` that withdraws a route.
pub fn withdraw(out: &mut Vec<u8>, prefix: &Prefix) {
    match prefix.family() {
        Family::Ipv4 => header::encode(out, Kind::Update, |out| {
            sized(out, |out| prefix.encode(out));
            out.extend([0, 0]);
        }),
        Family::Ipv6 => update(out, |out| {
            attribute(out, OPTIONAL, MP_UNREACH, |out| {
                out.extend(family(Family::Ipv6));
                prefix.encode(out);
            });
            None
        }),
    }
}

/// Adds an UPDATE message without withdrawn routes; `attributes` adds the attributes and returns the route after them.
fn update(out: &mut Vec<u8>, attributes: impl FnOnce(&mut Vec<u8>) -> Option<Prefix>) {
    header::encode(out, Kind::Update, |out| {
        out.extend([0, 0]);
        let prefix = sized(out, attributes);
        if let Some(prefix) = prefix {
            prefix.encode(out);
        }
    });
}

/// Adds what `write` adds, after its length in two octets.
fn sized<T>(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let start = out.len();
    out.extend([0, 0]);
    let result = write(out);
    let length = u16::try_from(out.len() - start - 2).unwrap_or(u16::MAX).to_be_bytes();
    out[start..start + 2].copy_from_slice(&length);
    result
}

fn attribute(out: &mut Vec<u8>, flags: u8, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend([flags, kind]);
    sized(out, write);
    let length = out.len() - start - 4;
    match u8::try_from(length) {
        // One octet of length is enough.
        Ok(_) => {
            out.remove(start + 2);
        }
        Err(_) => out[start] |= EXTENDED_LENGTH,
    }
}

fn family(family: Family) -> [u8; 3] {
    let [high, low] = (family as u16).to_be_bytes();
    [high, low, UNICAST]
}

fn next_hop(out: &mut Vec<u8>, address: IpAddr, with_length: bool) {
    let mut put = |octets: &[u8]| {
        if with_length {
            out.push(u8::try_from(octets.len()).unwrap_or(0));
        }
        out.extend(octets);
    };
    match address {
        IpAddr::V4(address) => put(&address.octets()),
        IpAddr::V6(address) => put(&address.octets()),
    }
}

fn as_path(out: &mut Vec<u8>, attributes: &PathAttributes<'_>) {
    let Some(number) = attributes.path else { return };
    out.extend([SEQUENCE, 1]);
    if attributes.four_octets {
        out.extend(number.to_be_bytes());
    } else {
        out.extend(two_octets(number).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bgp::{LONGEST, UpdateContent, decode};

    const V4: Prefix = Prefix { address: IpAddr::V4(std::net::Ipv4Addr::new(203, 0, 113, 10)), length: 32 };

    fn v6() -> Prefix {
        Prefix { address: "2001:db8::10".parse().unwrap(), length: 128 }
    }

    fn plain(next_hop: &str) -> PathAttributes<'static> {
        PathAttributes {
            path: Some(65_001),
            four_octets: true,
            next_hop: next_hop.parse().unwrap(),
            med: None,
            local_preference: None,
            communities: &[],
        }
    }

    /// Returns the body of the message that announces a route, which is valid.
    fn body(prefix: &Prefix, attributes: &PathAttributes<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        announce(&mut out, prefix, attributes);
        let frame = decode(&out).unwrap().unwrap();
        assert_eq!((frame.kind, frame.length), (Kind::Update, out.len()));
        let content = UpdateContent { announced: 1, withdrawn: 0, is_faulty: false };
        assert_eq!(UpdateContent::parse(frame.body), Ok(content));
        frame.body.to_vec()
    }

    #[test]
    fn routes_to_another_as_carry_one_as() {
        let expected = [
            &[0, 0, 0, 20][..],
            &[0x40, 1, 1, 0, 0x40, 2, 6, 2, 1, 0, 0, 0xfd, 0xe9],
            &[0x40, 3, 4, 10, 0, 0, 1],
            &[32, 203, 0, 113, 10],
        ];
        assert_eq!(body(&V4, &plain("10.0.0.1")), expected.concat());
    }

    #[test]
    fn routes_within_an_as_carry_a_preference_and_no_path() {
        let attributes = PathAttributes {
            path: None,
            med: Some(5),
            local_preference: Some(200),
            communities: &[0xfde8_0001, 0xffff_ff01],
            ..plain("10.0.0.1")
        };
        let expected = [
            &[0, 0, 0, 39][..],
            &[0x40, 1, 1, 0, 0x40, 2, 0, 0x40, 3, 4, 10, 0, 0, 1],
            &[0x80, 4, 4, 0, 0, 0, 5, 0x40, 5, 4, 0, 0, 0, 200],
            &[0xc0, 8, 8, 0xfd, 0xe8, 0, 1, 0xff, 0xff, 0xff, 1],
            &[32, 203, 0, 113, 10],
        ];
        assert_eq!(body(&V4, &attributes), expected.concat());
    }

    #[test]
    fn old_speakers_get_two_octets_and_the_rest_beside() {
        let attributes = PathAttributes { path: Some(4_200_000_001), four_octets: false, ..plain("10.0.0.1") };
        let expected = [
            &[0, 0, 0, 27][..],
            &[0x40, 1, 1, 0, 0x40, 2, 4, 2, 1, 0x5b, 0xa0, 0x40, 3, 4, 10, 0, 0, 1],
            &[0xc0, 17, 6, 2, 1, 0xfa, 0x56, 0xea, 0x01],
            &[32, 203, 0, 113, 10],
        ];
        assert_eq!(body(&V4, &attributes), expected.concat());
        let small = PathAttributes { four_octets: false, ..plain("10.0.0.1") };
        assert_eq!(&body(&V4, &small)[8..15], [0x40, 2, 4, 2, 1, 0xfd, 0xe9]);
        assert_eq!(body(&V4, &small)[2..4], [0, 18], "no other attribute is needed");
    }

    #[test]
    fn ipv6_is_an_attribute() {
        let next_hop: std::net::Ipv6Addr = "2001:db8::1".parse().unwrap();
        let expected = [
            &[0, 0, 0, 54, 0x80, 14, 38, 0, 2, 1, 16][..],
            &next_hop.octets(),
            &[0, 128, 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10],
            &[0x40, 1, 1, 0, 0x40, 2, 6, 2, 1, 0, 0, 0xfd, 0xe9],
        ];
        assert_eq!(body(&v6(), &plain("2001:db8::1")), expected.concat());
    }

    #[test]
    fn routes_are_withdrawn() {
        let mut out = Vec::new();
        withdraw(&mut out, &V4);
        assert_eq!(&out[16..], [0, 28, 2, 0, 5, 32, 203, 0, 113, 10, 0, 0]);
        out.clear();
        withdraw(&mut out, &v6());
        assert_eq!(&out[16..30], [0, 46, 2, 0, 0, 0, 23, 0x80, 15, 20, 0, 2, 1, 128]);
        let content = UpdateContent { announced: 0, withdrawn: 1, is_faulty: false };
        assert_eq!(UpdateContent::parse(&out[19..]), Ok(content));
    }

    #[test]
    fn the_longest_list_of_communities_fits() {
        let communities = [7; 255];
        let body = body(&v6(), &PathAttributes { communities: &communities, ..plain("2001:db8::1") });
        assert!(body.len() < LONGEST / 2);
        assert!(body.windows(4).any(|bytes| bytes == [0xd0, 8, 3, 0xfc]));
    }
}
