//! Values of dynamic cookies: a hash of a backend's key and a server's address. Must never be called for servers
//! without an internet address.

use std::net::{IpAddr, SocketAddr};

/// Computes the value of a server at that address as HAProxy does: other balancers with the same key select the same
/// server.
pub fn value(key: &[u8], address: SocketAddr) -> Box<[u8]> {
    let mut text = key.to_vec();
    match address.ip() {
        IpAddr::V4(ip) => text.extend_from_slice(&ip.octets()),
        IpAddr::V6(ip) => text.extend_from_slice(&ip.octets()),
    }
    text.extend_from_slice(&u32::from(address.port()).to_be_bytes());
    format!("{:016x}", xxhash_rust::xxh64::xxh64(&text, 0)).into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As displayed by HAProxy 3.5.
    #[test]
    fn values_are_those_of_haproxy() {
        for (key, address, expected) in [
            ("mykey", "127.0.0.1:80", "772c9713f296ce0f"),
            ("mykey", "127.0.0.2:443", "c1aee253f126593b"),
            ("mykey", "[::1]:80", "2aac8d266f18e3f3"),
            ("mykey", "127.0.0.5:81", "02223e17c7022127"),
            ("other", "127.0.0.5:81", "1d3f39fc71cd4863"),
            ("other", "[::1]:80", "fc207756aec6f6f5"),
        ] {
            let found = value(key.as_bytes(), address.parse().expect("address"));
            assert_eq!(String::from_utf8_lossy(&found), expected, "{address}");
        }
    }
}
