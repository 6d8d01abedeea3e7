//! Parses the addresses that scripts connect to. Must never connect.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use engine::resolve::lookup;
use engine::worker::Worker;
use rt::net::Address;
use wire::dns::Name;

/// The target of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// An address.
    Known(Address),
    /// A host name to resolve, and a port.
    Named(String, u16),
}

/// Parses an address; `port` if it is given separately.
///
/// # Errors
/// HAProxy's message.
pub(crate) fn parse(text: &str, port: Option<u16>) -> Result<Target, String> {
    let wrong =
        || format!("connect: cannot parse destination address '{text}{}'", if port.is_some() { ":" } else { "" });
    if let Some(path) = text.strip_prefix("unix@").or_else(|| text.starts_with('/').then_some(text)) {
        return Ok(Target::Known(Address::Unix(PathBuf::from(path))));
    }
    if let Some(name) = text.strip_prefix("abns@") {
        let mut name = name.as_bytes().to_vec();
        name.resize(107, 0);
        return Ok(Target::Known(Address::Abstract(name)));
    }
    let kinds = ["ipv4@", "ipv6@", "tcp@", "tcp4@", "tcp6@"];
    let rest = kinds.iter().find_map(|kind| text.strip_prefix(kind)).unwrap_or(text);
    if rest.contains('@') || rest.is_empty() {
        return Err(wrong());
    }
    // The port follows the last colon.
    if let (None, Some((ip, port))) = (port, rest.rsplit_once(':'))
        && let (Ok(ip), Ok(port)) = (ip.parse::<IpAddr>(), port.parse::<u16>())
        && port > 0
    {
        return Ok(Target::Known(Address::Inet(SocketAddr::new(ip, port))));
    }
    if let Ok(ip) = rest.parse::<IpAddr>() {
        let port = port.ok_or("connect: port missing")?;
        return Ok(Target::Known(Address::Inet(SocketAddr::new(ip, port))));
    }
    if let (Ok(address), None) = (rest.parse::<SocketAddr>(), port) {
        return Ok(Target::Known(Address::Inet(address)));
    }
    let (host, port) = match (rest.rsplit_once(':'), port) {
        (_, Some(port)) => (rest, port),
        (Some((host, port)), None) => (host, port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?),
        (None, None) => return Err("connect: port missing".to_owned()),
    };
    if host.is_empty() || !host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte)) {
        return Err(wrong());
    }
    Ok(Target::Named(host.to_owned(), port))
}

/// Returns the address of a target; `None`: its name does not resolve.
pub(crate) async fn find(worker: &Worker, target: &Target) -> Option<Address> {
    match target {
        Target::Known(address) => Some(address.clone()),
        Target::Named(host, port) => {
            let client = worker.generation().program.http_client.clone();
            let ip = lookup(worker, client.section?, Name::parse(host)?, Some(client.prefers_ipv4), true).await?;
            Some(Address::Inet(SocketAddr::new(ip, *port)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_every_form() {
        let inet = |text: &str| Target::Known(Address::Inet(text.parse().expect("an address")));
        let named = |host: &str, port| Target::Named(host.to_owned(), port);
        let rows = [
            ("127.0.0.1", Some(80), Ok(inet("127.0.0.1:80"))),
            ("127.0.0.1:81", None, Ok(inet("127.0.0.1:81"))),
            ("ipv4@127.0.0.1:81", None, Ok(inet("127.0.0.1:81"))),
            ("::1", Some(80), Ok(inet("[::1]:80"))),
            ("[::1]:80", None, Ok(inet("[::1]:80"))),
            ("::1:80", None, Ok(inet("[::1]:80"))),
            ("tcp4@127.0.0.1:81", None, Ok(inet("127.0.0.1:81"))),
            ("tcp6@::1", Some(80), Ok(inet("[::1]:80"))),
            ("/a/b", None, Ok(Target::Known(Address::Unix("/a/b".into())))),
            ("unix@/a/b", None, Ok(Target::Known(Address::Unix("/a/b".into())))),
            ("example.com", Some(80), Ok(named("example.com", 80))),
            ("example.com:80", None, Ok(named("example.com", 80))),
            ("127.0.0.1", None, Err("connect: port missing")),
            ("foo bar", Some(1), Err("connect: cannot parse destination address 'foo bar:'")),
            ("sockpair@1", None, Err("connect: cannot parse destination address 'sockpair@1'")),
        ];
        for (text, port, expected) in rows {
            assert_eq!(parse(text, port), expected.map_err(str::to_owned), "{text}");
        }
    }
}
