//! Networks (section 7.1.6): an address with a mask, and the comparison of addresses of both families.

use crate::sample::embedded_ipv4;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address with a mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// IPv4: the masked address and the mask.
    V4(u32, u32),
    /// IPv6: the masked address and the mask.
    V6(u128, u128),
}

impl Network {
    /// Parses `192.0.2.1`, `192.0.2.0/24`, `10.12/8`, `192.0.2.0/255.255.255.0`, `2001:db8::/32`. `None`: invalid.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, mask) = text.split_once('/').map_or((text, None), |(address, mask)| (address, Some(mask)));
        if let Some(address) = short_ipv4(address) {
            let mask = match mask {
                None => u32::MAX,
                Some(mask) => match mask.parse::<u32>() {
                    Ok(bits @ 0..=32) => u32::MAX.checked_shl(32 - bits).unwrap_or(0),
                    Ok(_) => return None,
                    Err(_) => u32::from(mask.parse::<Ipv4Addr>().ok()?),
                },
            };
            return Some(Self::V4(u32::from(address) & mask, mask));
        }
        let address: Ipv6Addr = address.parse().ok()?;
        let bits: u32 = mask.map_or(Some(128), |mask| mask.parse().ok()).filter(|bits| *bits <= 128)?;
        let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
        Some(Self::V6(u128::from(address) & mask, mask))
    }

    /// Whether the network contains the address.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (*self, address) {
            (Self::V4(network, mask), IpAddr::V4(address)) => u32::from(address) & mask == network,
            (Self::V4(network, mask), IpAddr::V6(address)) => {
                embedded_ipv4(address).is_some_and(|address| u32::from(address) & mask == network)
            }
            (Self::V6(network, mask), IpAddr::V6(address)) => u128::from(address) & mask == network,
            (Self::V6(network, mask), IpAddr::V4(address)) => u128::from(address.to_ipv6_mapped()) & mask == network,
        }
    }
}

/// Parses an IPv4 address with omitted parts: the last number is the last byte, zeroes fill the gap (the manual's
/// table).
fn short_ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut parts = [0_u8; 4];
    let numbers: Vec<&str> = text.split('.').collect();
    if numbers.len() > 4 {
        return None;
    }
    let last = numbers.len() - 1;
    for (index, number) in numbers.iter().enumerate() {
        if number.is_empty() || number.len() > 3 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let at = if index == last { 3 } else { index };
        parts[at] = number.parse().ok()?;
    }
    Some(Ipv4Addr::from(parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_of_the_manuals_table() {
        let rows = [
            ("192.168.0.1", "192.168.0.1", true),
            ("192.168.1", "192.168.0.1", true),
            ("10.12", "10.0.0.12", true),
            ("127.1", "127.0.0.1", true),
            ("192.168.1/22", "192.168.3.255", true),
            ("192.168.1/22", "192.168.4.0", false),
            ("10.12/8", "10.255.0.1", true),
            ("10.0.0.0/255.0.0.0", "10.1.2.3", true),
            ("2001:db8::/32", "2001:db8:1::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("192.0.2.0/24", "::ffff:192.0.2.7", true),
            ("192.0.2.0/24", "2002:c000:0207::", true),
            ("192.0.2.0/24", "2002:c000:0207::1", true),
            ("192.0.2.0/24", "2001:db8::1", false),
            ("::ffff:0:0/96", "192.0.2.7", true),
            ("0.0.0.0/0", "8.8.8.8", true),
        ];
        for (network, address, expected) in rows {
            let parsed = Network::parse(network).unwrap_or_else(|| panic!("{network}"));
            assert_eq!(parsed.contains(address.parse().expect("an address")), expected, "{network} {address}");
        }
        for wrong in [
            "",
            "a",
            "1.2.3.4.5",
            "1.2.3.4/33",
            "1.2.3.256",
            "::1/129",
            "1.2.3.4,5",
            "+3.0.0.0/8",
            "0x1.2.3.4",
            "1.2.3.+4",
        ] {
            assert_eq!(Network::parse(wrong), None, "{wrong}");
        }
    }
}
