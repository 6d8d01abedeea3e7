//! Numbers and addresses as text, without an allocation. Must never truncate one.

use std::io::Write as _;
use std::net::IpAddr;
use std::ops::Deref;

/// Maximum length: an IPv6 address has up to 39 bytes, a 64-bit number 20.
const MOST: usize = 40;

/// Text of a number or of an IP address.
pub struct ShortText {
    bytes: [u8; MOST],
    length: usize,
}

impl ShortText {
    /// Formats a number in decimal digits.
    pub fn number(number: u64) -> Self {
        let mut text = Self { bytes: [0; MOST], length: 0 };
        text.push_number(number);
        text
    }

    /// Formats an IPv4 address as four numbers, an IPv6 address in its shortest form (RFC 5952).
    pub fn address(address: IpAddr) -> Self {
        let mut text = Self { bytes: [0; MOST], length: 0 };
        match address {
            IpAddr::V4(address) => {
                for (place, part) in address.octets().into_iter().enumerate() {
                    if place > 0 {
                        text.bytes[text.length] = b'.';
                        text.length += 1;
                    }
                    text.push_number(part.into());
                }
            }
            IpAddr::V6(address) => {
                let mut rest = &mut text.bytes[..];
                // No address is longer than `MOST`.
                let _ = write!(rest, "{address}");
                text.length = MOST - rest.len();
            }
        }
        text
    }

    fn push_number(&mut self, number: u64) {
        let end = self.length + number.checked_ilog10().unwrap_or(0) as usize + 1;
        let mut left = number;
        for place in self.bytes[self.length..end].iter_mut().rev() {
            *place = b'0' + (left % 10) as u8;
            left /= 10;
        }
        self.length = end;
    }
}

impl Deref for ShortText {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use super::*;

    #[test]
    fn numbers_are_whole() {
        for number in [0, 1, 9, 10, 99, 100, 65_535, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            assert_eq!(*ShortText::number(number), *number.to_string().as_bytes());
        }
    }

    #[test]
    fn addresses_are_whole() {
        let rows: [IpAddr; 7] = [
            Ipv4Addr::UNSPECIFIED.into(),
            Ipv4Addr::new(10, 0, 255, 1).into(),
            Ipv4Addr::BROADCAST.into(),
            Ipv6Addr::LOCALHOST.into(),
            Ipv4Addr::BROADCAST.to_ipv6_mapped().into(),
            Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 1, 0, 0, 1).into(),
            Ipv6Addr::from(u128::MAX).into(),
        ];
        for address in rows {
            assert_eq!(*ShortText::address(address), *address.to_string().as_bytes());
        }
    }
}
