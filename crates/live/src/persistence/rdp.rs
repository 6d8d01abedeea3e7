//! The token that a terminal server sends to its clients (`persist rdp-cookie`): its own address and port as decimal
//! numbers, the bytes of each in network order. Must never look up a server.

use std::net::{Ipv4Addr, SocketAddr};

/// Returns the server of a token.
pub fn server(token: &[u8]) -> Option<SocketAddr> {
    let mut parts = token.splitn(3, |byte| *byte == b'.');
    let address: u32 = number(parts.next()?)?;
    let port: u16 = number(parts.next()?)?.try_into().ok()?;
    parts.next()?;
    Some((Ipv4Addr::from(address.to_le_bytes()), port.swap_bytes()).into())
}

fn number(digits: &[u8]) -> Option<u32> {
    std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_name_servers() {
        let rows: &[(&str, Option<&str>)] = &[
            ("3640205228.15629.0000", Some("172.31.249.216:3389")),
            ("16777343.15629.0000", Some("127.0.0.1:3389")),
            ("16777343.15629.", Some("127.0.0.1:3389")),
            ("16777343.15629", None),
            ("16777343", None),
            ("", None),
            ("user", None),
            ("+16777343.15629.0000", None),
            ("4294967296.15629.0000", None),
            ("16777343.65536.0000", None),
        ];
        for (token, expected) in rows {
            assert_eq!(server(token.as_bytes()), expected.map(|text| text.parse().expect("address")), "{token}");
        }
    }
}
