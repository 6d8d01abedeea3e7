//! Validation of the Forwarded field (RFC 7239), as strict as HAProxy's: only the four parameters of the RFC, each at
//! most once per element. Must never know how the field is used.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Whether a field's value consists of valid elements.
pub fn is_valid(value: &[u8]) -> bool {
    let mut rest = value;
    loop {
        let end = element_end(rest);
        if !is_element(rest[..end].trim_ascii()) {
            return false;
        }
        match rest.get(end + 1..) {
            Some(next) => rest = next,
            None => return true,
        }
    }
}

/// Returns the offset of the comma after the first element, outside of quotes; the end if there is none.
fn element_end(value: &[u8]) -> usize {
    let mut quoted = false;
    let mut escaped = false;
    for (at, byte) in value.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => return at,
            _ => {}
        }
    }
    value.len()
}

/// Whether a text is a valid element: parameters separated by semicolons only.
pub fn is_element(element: &[u8]) -> bool {
    let mut seen = [false; 4];
    element.split(|byte| *byte == b';').all(|parameter| {
        let Some(equals) = memchr::memchr(b'=', parameter) else { return false };
        let (name, value) = (&parameter[..equals], &parameter[equals + 1..]);
        let (index, valid) = match name {
            b"proto" => (0, matches!(value, b"http" | b"https")),
            b"host" => (1, is_host_value(value)),
            b"for" => (2, is_node_value(value)),
            b"by" => (3, is_node_value(value)),
            _ => return false,
        };
        valid && !std::mem::replace(&mut seen[index], true)
    })
}

/// Whether a Host value is permitted in a `host` parameter: a name or an address with an optional port, or empty.
pub fn is_host(text: &[u8]) -> bool {
    if text.is_empty() {
        return true;
    }
    let (name, port) = split_port(text);
    let valid = match name {
        [b'[', inside @ .., b']'] => is_inet6(inside),
        [] => false,
        _ => !name.starts_with(b"-") && !name.ends_with(b"-") && name.iter().all(|byte| is_name(*byte)),
    };
    valid && port.is_none_or(is_port)
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-')
}

/// Returns the text between quotes; `None` if it is not quoted.
fn unquoted(value: &[u8]) -> Option<&[u8]> {
    match value {
        [b'"', inside @ .., b'"'] => Some(inside),
        _ => None,
    }
}

fn is_host_value(value: &[u8]) -> bool {
    match unquoted(value) {
        Some(inside) => is_host(inside),
        None => !value.is_empty() && value.iter().all(|byte| is_name(*byte)) && is_host(value),
    }
}

/// Whether a text is a valid value of `for` and `by`: an IPv4 address, `unknown` or an obfuscated name; in quotes also
/// an IPv6 address and a port.
fn is_node_value(value: &[u8]) -> bool {
    let Some(inside) = unquoted(value) else {
        return is_node_name(value);
    };
    let (name, port) = split_port(inside);
    let named = match name {
        [b'[', address @ .., b']'] => is_inet6(address),
        _ => is_node_name(name),
    };
    named && port.is_none_or(|port| is_port(port) || is_obfuscated(port))
}

fn is_node_name(name: &[u8]) -> bool {
    let inet = || std::str::from_utf8(name).is_ok_and(|name| name.parse::<Ipv4Addr>().is_ok());
    name == b"unknown" || is_obfuscated(name) || inet()
}

fn is_obfuscated(text: &[u8]) -> bool {
    let Some((b'_', rest)) = text.split_first() else { return false };
    !rest.is_empty() && rest.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

fn is_inet6(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b':')
        && std::str::from_utf8(text).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok())
}

/// Splits at the last colon outside of brackets.
fn split_port(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    let from = memchr::memrchr(b']', text).unwrap_or(0);
    match memchr::memrchr(b':', &text[from..]) {
        Some(colon) => (&text[..from + colon], Some(&text[from + colon + 1..])),
        None => (text, None),
    }
}

fn is_port(text: &[u8]) -> bool {
    // At most five digits, so that the sum cannot overflow.
    let digits = (1..=5).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    let number = || text.iter().fold(0_u32, |number, digit| number * 10 + u32::from(digit - b'0'));
    digits && (1..=65_535).contains(&number())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from HAProxy 3.5, except for dashes inside a host name, which it rejects.
    #[test]
    fn elements() {
        let valid = [
            "for=unknown",
            "for=\"unknown\"",
            "for=\"unknown:1\"",
            "for=_a",
            "for=\"_a.b-c_\"",
            "for=\"[::1]\"",
            "for=\"[::1]:80\"",
            "for=\"1.1.1.1:80\"",
            "for=1.1.1.1",
            "for=\"1.1.1.1:_x\"",
            "proto=http",
            "proto=https",
            "host=a",
            "host=\"a\"",
            "host=\"a:1\"",
            "host=\"\"",
            "host=a.b",
            "host=\"[::1]\"",
            "host=unknown",
            "for=1.1.1.1;by=1.1.1.1",
            "host=\"1.1.1.1:8\"",
            "for=\"_a:1\"",
            "for=\"_a:_b\"",
            "host=\"a:080\"",
            "for=\"1.1.1.1:080\"",
            "for=\"[2001:db8::1]:_id\"",
            "host=\"a-b.c\"",
        ];
        let invalid = [
            "",
            "for=unknown:1",
            "for=_",
            "for=[::1]",
            "for=1.1.1.1:80",
            "for=1.1.1",
            "for=\"1.1.1.1:\"",
            "for=\"1.1.1.1:99999\"",
            "for=\"1.1.1.1:65536\"",
            "for=\"1.1.1.1:0\"",
            "for=\"1.1.1.1:_\"",
            "proto=\"http\"",
            "proto=HTTP",
            "proto=ftp",
            "host=a:1",
            "host=\"a:_x\"",
            "host=",
            "host=_a",
            "for=a",
            "For=1.1.1.1",
            "for=1.1.1.1;for=1.1.1.1",
            "for=1.1.1.1 ;by=1.1.1.1",
            "for=1.1.1.1;\tby=1.1.1.1",
            "for=1.1.1.1,by=1.1.1.1",
            "for=1.1.1.1;",
            "for = 1.1.1.1",
            "for=\"1.1.1.1",
            "for=\"1.1.1\\.1\"",
            "x=1",
            "for=1.1.1.1;x=1",
            "for='1.1.1.1'",
            "by=\"[::1%eth0]\"",
            "for=\"::1\"",
            "host=\"a b\"",
            "host=-a",
            "for=_a:1",
            "for=\"_a!b\"",
            "host=a_b",
            "for=\"Unknown\"",
            "host=\"[::ffff:1.2.3.4]\"",
            "for=\"[1.2.3.4]\"",
            "for=\"1.2.3.4:123456\"",
            "for=\"1.2.3.4:99999999999999999999\"",
            "host=\"a:\u{1}\u{4}\0\0\0\0\0\0\0\"",
            "for=\"1.2.3.04\"",
        ];
        for text in valid {
            assert!(is_element(text.as_bytes()), "{text}");
        }
        for text in invalid {
            assert!(!is_element(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn values_are_lists_of_elements() {
        for (text, expected) in [
            ("for=1.1.1.1, for=3.3.3.3", true),
            ("for=\"[::1]:_id\";proto=https , host=\"a\"", true),
            ("bad, for=1.1.1.1", false),
            ("for=1.1.1.1,", false),
            (",for=1.1.1.1", false),
            ("", false),
            ("host=\"a,b\"", false),
            ("for=unknown;ext=1", false),
        ] {
            assert_eq!(is_valid(text.as_bytes()), expected, "{text}");
        }
    }
}
