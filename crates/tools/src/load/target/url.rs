//! URLs, as far as a load needs them. Must never guess: unsupported syntax is rejected.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// The parts of an `http` or `https` URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// The URL as written.
    pub written: String,
    /// Name or address, without the brackets of IPv6.
    pub host: String,
    /// The scheme is `https`.
    pub secure: bool,
    /// Default 80 or 443.
    pub port: u16,
    /// Host and port as written: the value of the Host field.
    pub authority: String,
    /// Path and query, at least `/`.
    pub path: String,
}

/// Resolves a name to the one address that is used for the whole run.
pub type Resolve<'a> = &'a dyn Fn(&str, u16) -> io::Result<SocketAddr>;

impl Url {
    /// Parses `[http[s]://]host[:port][/path][?query]`; a fragment is not sent.
    ///
    /// # Errors
    /// The error, and the URL.
    pub fn parse(written: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("'{written}' is no URL that can be asked for: {why}");
        if let Some(byte) = written.bytes().find(|byte| *byte <= b' ' || *byte >= 0x7f) {
            let shown = byte.escape_ascii();
            return Err(wrong(&format!("the byte '{shown}' has to be percent-encoded")));
        }
        let (secure, rest) = match written.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            // A query may contain one: host/path?url=http://x
            Some((scheme, _)) if !scheme.contains(['/', '?']) => {
                return Err(wrong("only http:// and https:// are known"));
            }
            _ => (false, written),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(wrong("a user is not taken: send it with -H 'Authorization: ...'"));
        }
        let (host, port) = split(authority, if secure { 443 } else { 80 })
            .ok_or_else(|| wrong("it should say host, host:port or [IPv6]:port"))?;
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { written: written.to_owned(), host, secure, port, authority: authority.to_owned(), path })
    }
}

/// Splits an authority into host and port.
fn split(authority: &str, usual: u16) -> Option<(String, u16)> {
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (address, behind) = rest.split_once(']')?;
        address.parse::<std::net::Ipv6Addr>().ok()?;
        (address, if behind.is_empty() { None } else { Some(behind.strip_prefix(':')?) })
    } else {
        match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        }
    };
    let port = match port {
        None => usual,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse().ok().filter(|port| *port > 0)?
        }
        Some(_) => return None,
    };
    // Characters of a Host field; names have at most 253 characters.
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':' | b'%' | b'~');
    let fits = !host.is_empty() && host.len() <= 253 && host.bytes().all(known);
    fits.then(|| (host.to_owned(), port))
}

/// Resolves a name with the system's resolver, to its first address.
///
/// # Errors
/// The name has no address.
pub fn resolve(host: &str, port: u16) -> io::Result<SocketAddr> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(SocketAddr::new(address, port));
    }
    let mut found = (host, port).to_socket_addrs()?;
    found.next().ok_or_else(|| io::Error::other("it has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        const GOOD: &[(&str, &str, u16, &str, &str)] = &[
            ("http://a/", "a", 80, "a", "/"),
            ("HTTP://a:8080", "a", 8080, "a:8080", "/"),
            ("127.0.0.1:80/x?y", "127.0.0.1", 80, "127.0.0.1:80", "/x?y"),
            ("http://[::1]:81/?s=1k", "::1", 81, "[::1]:81", "/?s=1k"),
            ("[::1]", "::1", 80, "[::1]", "/"),
            ("http://a?q=/#part", "a", 80, "a", "/?q=/"),
            ("a/b?url=http://c", "a", 80, "a", "/b?url=http://c"),
        ];
        for (written, host, port, authority, path) in GOOD {
            let url = Url::parse(written).expect(written);
            assert_eq!(
                (url.host.as_str(), url.port, url.authority.as_str(), url.path.as_str()),
                (*host, *port, *authority, *path)
            );
        }
    }

    #[test]
    fn https_has_a_port_of_its_own() {
        let parts = |written| Url::parse(written).map(|url| (url.secure, url.port)).expect(written);
        assert_eq!(parts("https://a/"), (true, 443));
        assert_eq!(parts("HTTPS://a:8443/"), (true, 8443));
        assert_eq!(parts("http://a/"), (false, 80));
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for written in [
            "",
            "http://",
            "http:///x",
            "ftp://a",
            "http://a:0",
            "http://a:65536",
            "http://a:x",
            "http://[::1",
            "http://[::1]x",
            "http://[a]",
            "http://a b",
            "http://a/\r\nx",
            "http://u@a",
            "http://::1/",
            "http://é/",
            ":80",
            "http://a:+1/",
        ] {
            assert!(Url::parse(written).is_err(), "{written}");
        }
    }

    #[test]
    fn addresses_need_nobody_to_resolve_them() {
        assert_eq!(resolve("::1", 80).expect("an address").to_string(), "[::1]:80");
        assert_eq!(resolve("192.0.2.1", 81).expect("an address").to_string(), "192.0.2.1:81");
    }
}
