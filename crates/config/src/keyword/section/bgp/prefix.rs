//! Prefixes as written: an address, a slash, a number of bits. Must never resolve a name.

use crate::spec::BgpPrefixSpec;
use std::net::IpAddr;

use super::values::{Fault, digits};

/// Parses a prefix. A single address is one of all its bits.
pub(super) fn parse(text: &str) -> Result<BgpPrefixSpec, Fault> {
    let allowed = || "allowed: an address with its number of bits, as in '203.0.113.10/32' or '2001:db8::10/128'";
    let invalid = || (format!("invalid prefix '{text}'."), allowed().to_owned());
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| invalid())?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let length = match length {
        Some(length) => digits(length).filter(|length| *length <= bits).ok_or_else(invalid)?,
        None => bits,
    };
    let network = network(address, length);
    if network != address {
        let message = format!("bits after the first {length} are set in '{text}'.");
        return Err((message, format!("write '{network}/{length}'")));
    }
    if address.is_multicast() || (address.is_loopback() && length == bits) {
        return Err((format!("'{text}' is not routed."), allowed().to_owned()));
    }
    Ok(BgpPrefixSpec { address, length })
}

/// Clears all bits of an address after the first `length`.
fn network(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}
