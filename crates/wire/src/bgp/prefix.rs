//! Destinations of routes (RFC 4271, section 4.3; RFC 4760, section 5). Must never know the attributes of a route.

use std::fmt;
use std::net::IpAddr;

/// A family of addresses; all of it is unicast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Family {
    Ipv4 = 1,
    Ipv6 = 2,
}

/// `SAFI` of unicast.
pub(super) const UNICAST: u8 = 1;

impl Family {
    /// Returns the family of those numbers (RFC 4760, section 6).
    pub(super) fn of(afi: u16, safi: u8) -> Option<Self> {
        [Self::Ipv4, Self::Ipv6].into_iter().find(|family| *family as u16 == afi && safi == UNICAST)
    }

    /// Returns the family of an address.
    pub fn of_address(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::Ipv4 } else { Self::Ipv6 }
    }

    /// Returns the length of an address in bits.
    pub const fn bits(self) -> u8 {
        match self {
            Self::Ipv4 => 32,
            Self::Ipv6 => 128,
        }
    }
}

/// A network: an address and the number of its leading bits that count. The other bits are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    pub address: IpAddr,
    pub length: u8,
}

impl Prefix {
    /// Returns its family.
    pub fn family(&self) -> Family {
        Family::of_address(self.address)
    }

    /// Adds the prefix to `out`: its length, and as many octets as that needs.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.length);
        let octets = usize::from(self.length).div_ceil(8);
        match self.address {
            IpAddr::V4(address) => out.extend(address.octets().iter().take(octets)),
            IpAddr::V6(address) => out.extend(address.octets().iter().take(octets)),
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// Returns the number of prefixes in a field of an UPDATE message; `None` if it is malformed.
pub(super) fn count(mut field: &[u8], family: Family) -> Option<usize> {
    let mut number = 0;
    while let Some((length, rest)) = field.split_first() {
        if *length > family.bits() {
            return None;
        }
        field = rest.get(usize::from(*length).div_ceil(8)..)?;
        number += 1;
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_take_the_octets_that_their_length_needs() {
        let rows: [(&str, u8, &[u8]); 5] = [
            ("203.0.113.10", 32, &[32, 203, 0, 113, 10]),
            ("203.0.112.0", 20, &[20, 203, 0, 112]),
            ("0.0.0.0", 0, &[0]),
            ("2001:db8::", 32, &[32, 0x20, 0x01, 0x0d, 0xb8]),
            ("2001:db8:8000::", 33, &[33, 0x20, 0x01, 0x0d, 0xb8, 0x80]),
        ];
        for (address, length, expected) in rows {
            let prefix = Prefix { address: address.parse().unwrap(), length };
            let mut out = Vec::new();
            prefix.encode(&mut out);
            assert_eq!(out, expected, "{prefix}");
            assert_eq!(count(&out, prefix.family()), Some(1));
        }
    }

    #[test]
    fn malformed_fields_are_detected() {
        assert_eq!(count(&[], Family::Ipv4), Some(0));
        assert_eq!(count(&[8, 10, 0, 16, 172, 16], Family::Ipv4), Some(3));
        assert_eq!(count(&[33, 1, 2, 3, 4, 5], Family::Ipv4), None);
        assert_eq!(count(&[33, 1, 2, 3, 4, 5], Family::Ipv6), Some(1));
        assert_eq!(count(&[24, 10, 0], Family::Ipv4), None);
        assert_eq!(count(&[129], Family::Ipv6), None);
    }
}
