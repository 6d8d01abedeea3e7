//! The client side of SOCKS version 4: the CONNECT request to a proxy and its reply. Must never consume a byte after
//! the reply.

use std::net::SocketAddrV4;

/// Length of a request in bytes.
pub const REQUEST: usize = 16;

/// Length of a reply in bytes.
pub const ANSWER: usize = 8;

/// The user ID: HAProxy's, since proxies may have rules for it.
const USER: &[u8; 8] = b"HAProxy\0";

/// Returns the request to connect to `destination`.
pub fn request(destination: SocketAddrV4) -> [u8; REQUEST] {
    let mut bytes = [0; REQUEST];
    let [high, low] = destination.port().to_be_bytes();
    let [a, b, c, d] = destination.ip().octets();
    // Version 4, command CONNECT.
    bytes[..8].copy_from_slice(&[4, 1, high, low, a, b, c, d]);
    bytes[8..].copy_from_slice(USER);
    bytes
}

/// Why a proxy did not connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Socks4Error {
    /// The reply is not one of version 4.
    NotAnAnswer,
    /// The reply's code: 91 to 93, or another value.
    Code(u8),
}

/// Parses the reply; `None` if it is incomplete. Errors are detected before it is complete.
///
/// # Errors
/// The proxy rejected the request, or the reply is invalid.
pub fn answer(input: &[u8]) -> Result<Option<()>, Socks4Error> {
    const GRANTED: u8 = 90;
    match input {
        [first, ..] if *first != 0 => Err(Socks4Error::NotAnAnswer),
        [_, code, ..] if *code != GRANTED => Err(Socks4Error::Code(*code)),
        _ => Ok((input.len() >= ANSWER).then_some(())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_those_of_haproxy() {
        let bytes = request("127.0.0.1:80".parse().expect("address"));
        assert_eq!(bytes, *b"\x04\x01\x00\x50\x7f\x00\x00\x01HAProxy\0");
    }

    #[test]
    fn answers() {
        let granted = [0, 90, 1, 2, 3, 4, 5, 6, 7];
        for length in 0..ANSWER {
            assert_eq!(answer(&granted[..length]), Ok(None), "{length}");
        }
        assert_eq!(answer(&granted[..ANSWER]), Ok(Some(())));
        assert_eq!(answer(&granted), Ok(Some(())));
        assert_eq!(answer(&[4]), Err(Socks4Error::NotAnAnswer));
        assert_eq!(answer(b"HTTP/1.1"), Err(Socks4Error::NotAnAnswer));
        for code in (0..=255).filter(|code| *code != 90) {
            assert_eq!(answer(&[0, code]), Err(Socks4Error::Code(code)));
        }
    }
}
