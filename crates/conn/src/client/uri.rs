//! An absolute URI of HTTP (RFC 9110, section 4.2), as far as a client needs it: the host to connect to, and the target
//! to request. Must never resolve a name.

use std::net::IpAddr;

/// The parsed URI of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri {
    /// Whether the scheme is `https`.
    pub is_secure: bool,
    /// The host without the brackets of an IPv6 address.
    pub host: String,
    /// The port; the default of the scheme if none is given.
    pub port: u16,
    /// Host and port as given: the `host` field.
    pub authority: String,
    /// Path and query; `/` if there is none.
    pub target: String,
}

impl Uri {
    /// Parses a URI. `None`: it is not an absolute URI of `http` or `https`, or contains a character that is invalid in
    /// a request line.
    pub fn parse(text: &str) -> Option<Self> {
        if text.bytes().any(|byte| byte <= b' ' || byte >= 0x7f) {
            return None;
        }
        let (scheme, rest) = text.split_once("://")?;
        let is_secure = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let (authority, target) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        // User information is not sent (RFC 9110, section 4.2.4); neither is a fragment (section 4.1).
        let authority = authority.rsplit_once('@').map_or(authority, |(_, authority)| authority);
        let target = target.split('#').next().unwrap_or_default();
        let (host, port) = match authority.strip_prefix('[') {
            Some(bracketed) => {
                let (host, behind) = bracketed.split_once(']')?;
                host.parse::<std::net::Ipv6Addr>().ok()?;
                (host, if behind.is_empty() { None } else { Some(behind.strip_prefix(':')?) })
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        let default = if is_secure { 443 } else { 80 };
        let port = match port.filter(|port| !port.is_empty()) {
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                port.parse().ok().filter(|port| *port > 0)?
            }
            Some(_) => return None,
            None => default,
        };
        if host.is_empty() {
            return None;
        }
        let target = match target.as_bytes().first() {
            Some(b'/') => target.to_owned(),
            _ => format!("/{target}"),
        };
        Some(Self { is_secure, host: host.to_owned(), port, authority: authority.to_owned(), target })
    }

    /// The host as an IP address, if it is one.
    pub fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::Uri;

    #[test]
    fn parts_of_a_uri() {
        let parts = |text: &str| {
            Uri::parse(text)
                .map(|uri| format!("{} {} {} {} {}", uri.is_secure, uri.host, uri.port, uri.authority, uri.target))
        };
        let rows = [
            ("http://a", Some("false a 80 a /")),
            ("HTTPS://a:8443/x?y#z", Some("true a 8443 a:8443 /x?y")),
            ("http://a?x", Some("false a 80 a /?x")),
            ("http://u:p@a:/x", Some("false a 80 a: /x")),
            ("http://[::1]:81/", Some("false ::1 81 [::1]:81 /")),
            ("http://[::1]x/", None),
            ("http://[a]/", None),
            ("http://a:0/", None),
            ("http://a:+1/", None),
            ("http://a:65536/", None),
            ("http:///x", None),
            ("ftp://a/", None),
            ("/x", None),
            ("http://a/ b", None),
            ("http://a/\r\nx: y", None),
        ];
        for (text, expected) in rows {
            assert_eq!(parts(text).as_deref(), expected, "{text}");
        }
    }
}
