//! Parses numbers and addresses in messages as HAProxy does. Must never depend on where they are from.

use super::Value;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Parses the number at the start of a text, in 32 bits: 0 without digits; wraps on overflow.
pub fn number(text: &[u8]) -> i64 {
    let (negative, digits) = text.strip_prefix(b"-").map_or((false, text), |digits| (true, digits));
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0_i32, |number, digit| number.wrapping_mul(10).wrapping_add(i32::from(digit - b'0')));
    i64::from(if negative { number.wrapping_neg() } else { number })
}

/// Parses the IPv4 address at the start of a text; returns the rest as well. Leading zeroes are allowed.
pub fn ipv4(text: &[u8]) -> Option<(Ipv4Addr, &[u8])> {
    let (mut octets, mut rest) = ([0; 4], text);
    for (index, octet) in octets.iter_mut().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix(b".")?;
        }
        let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        *octet = decimal(&rest[..length]).and_then(|part| u8::try_from(part).ok())?;
        rest = &rest[length..];
    }
    Some((Ipv4Addr::from(octets), rest))
}

/// Parses an address in the form of RFC 7239: IPv4 with or without a port, IPv6 with or without brackets.
pub fn address(text: &[u8]) -> Option<Value<'static>> {
    if let Some((address, rest)) = ipv4(text) {
        let port = rest.strip_prefix(b":").and_then(decimal).filter(|port| *port <= u32::from(u16::MAX));
        return (rest.is_empty() || port.is_some()).then_some(Value::Ipv4(address));
    }
    let bare = text.strip_prefix(b"[").map_or(Some(text), |text| text.strip_suffix(b"]"))?;
    std::str::from_utf8(bare).ok()?.parse::<Ipv6Addr>().ok().map(Value::Ipv6)
}

/// Parses a number of digits only; saturates on overflow.
fn decimal(text: &[u8]) -> Option<u32> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let digits = text.iter().map(|digit| u32::from(digit - b'0'));
    is_number.then(|| digits.fold(0_u32, |number, digit| number.saturating_mul(10).saturating_add(digit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_and_end_at_the_first_other_character() {
        let rows = [
            ("12a", 12),
            ("0x1f", 0),
            ("-7", -7),
            ("- 5", 0),
            ("+5", 0),
            ("", 0),
            ("-", 0),
            ("007", 7),
            ("3000000000", -1_294_967_296),
            ("-3000000000", 1_294_967_296),
            ("99999999999999999999", 1_661_992_959),
        ];
        for (text, expected) in rows {
            assert_eq!(number(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn addresses_are_those_of_forwarded_fields() {
        let rows = [
            ("1.2.3.4", Some("1.2.3.4")),
            ("0001.2.3.04", Some("1.2.3.4")),
            ("1.2.3.4:0", Some("1.2.3.4")),
            ("1.2.3.4:00080", Some("1.2.3.4")),
            ("1.2.3.4:", None),
            ("1.2.3.4:65536", None),
            ("1.2.3.4:80x", None),
            ("1.2.3.256", None),
            ("1.2.3", None),
            ("1.2.3.4.5", None),
            ("\"1.2.3.4\"", None),
            ("[1.2.3.4]", None),
            ("::2", Some("::2")),
            ("[fe80::1]", Some("fe80::1")),
            ("[::1]:5", None),
            ("[::1", None),
            ("fe80::1%25eth0", None),
            ("::ffff:1.2.3.4", Some("::ffff:1.2.3.4")),
            ("_hid:80", None),
            ("", None),
        ];
        for (text, expected) in rows {
            let found = address(text.as_bytes()).and_then(|value| value.address()).map(|found| found.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
