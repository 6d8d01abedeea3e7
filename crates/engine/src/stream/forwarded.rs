//! Fields that tell servers where a request came from and went to, and what it is called: `option forwarded` (RFC 7239),
//! `option forwardfor`, `option originalto`, `unique-id-header`. Must never look at other fields than those.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use config::spec::ForwardedSpec;
use policy::program::{AddressField, Proxy};
use rt::net::Stream;
use wire::http::{Head, forwarded};

use crate::session::Session;
use crate::stream::evaluate::View;
use crate::worker::SharedFacts;

/// Adds what frontend and backend ask for, in HAProxy's order.
pub fn add(session: &Session, client: &Stream, backend: &Proxy, facts: &SharedFacts) {
    let (front, back) = (&session.proxy().http, &backend.http);
    if let Some(name) = session.proxy().frontend.as_ref().and_then(|own| own.unique_id.as_ref()?.header.as_ref()) {
        let mut facts = facts.borrow_mut();
        let named: Box<[u8]> = View::request(session, client, &facts).unique_id().unwrap_or_default().into();
        facts.request.append(name, &named);
    }
    if let Some(parameters) = &back.forwarded {
        let destination = if parameters.by { session.destination(client) } else { None };
        add_forwarded(parameters, session.client(), destination, &mut facts.borrow_mut().request);
    }
    if front.forwardfor.is_some() || back.forwardfor.is_some() {
        let source = session.source();
        add_address(front.forwardfor.as_ref(), back.forwardfor.as_ref(), source, &mut facts.borrow_mut().request);
    }
    if front.originalto.is_some() || back.originalto.is_some() {
        let destination = session.destination(client).map(|address| address.ip());
        add_address(front.originalto.as_ref(), back.originalto.as_ref(), destination, &mut facts.borrow_mut().request);
    }
}

/// One address in a field; the backend's name for it wins, and it is added unless both would rather not.
fn add_address(front: Option<&AddressField>, back: Option<&AddressField>, address: Option<IpAddr>, request: &mut Head) {
    let Some(chosen) = back.or(front) else { return };
    let Some(address) = address else { return };
    let both = [front, back];
    if both.iter().flatten().any(|rule| is_excepted(rule, address)) {
        return;
    }
    let name = chosen.header.as_bytes();
    if both.iter().flatten().all(|rule| rule.if_none) && request.contains(name) {
        return;
    }
    let mut text = [0_u8; 48];
    let mut cursor = std::io::Cursor::new(&mut text[..]);
    if std::io::Write::write_fmt(&mut cursor, format_args!("{address}")).is_ok() {
        let length = cursor.position() as usize;
        request.append(name, &text[..length]);
    }
}

fn is_excepted(rule: &AddressField, address: IpAddr) -> bool {
    match (rule.except, address) {
        (Some((IpAddr::V4(network), bits)), IpAddr::V4(address)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
            network.to_bits() & mask == address.to_bits() & mask
        }
        (Some((IpAddr::V6(network), bits)), IpAddr::V6(address)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
            network.to_bits() & mask == address.to_bits() & mask
        }
        _ => false,
    }
}

/// Our element goes behind those of others, in the last field there is; if anything in them is not valid, into a field
/// of its own.
fn add_forwarded(
    parameters: &ForwardedSpec,
    source: Option<SocketAddr>,
    destination: Option<SocketAddr>,
    request: &mut Head,
) {
    let element = element(parameters, source, destination, request.host());
    let all_valid = request.all(b"forwarded").all(forwarded::is_valid);
    if all_valid && request.contains(b"forwarded") {
        request.fields.extend_last(b"forwarded", format!(",{element}").as_bytes());
    } else {
        request.append(b"forwarded", element.as_bytes());
    }
}

fn element(
    parameters: &ForwardedSpec,
    source: Option<SocketAddr>,
    destination: Option<SocketAddr>,
    host: Option<&[u8]>,
) -> String {
    let mut parts = Vec::with_capacity(4);
    if parameters.proto {
        parts.push("proto=http".to_owned());
    }
    if parameters.host {
        let host = host.filter(|host| forwarded::is_host(host)).unwrap_or_default();
        parts.push(format!("host=\"{}\"", String::from_utf8_lossy(host)));
    }
    if parameters.by {
        parts.push(format!("by={}", node(destination, parameters.by_port)));
    }
    if parameters.r#for {
        parts.push(format!("for={}", node(source, parameters.for_port)));
    }
    parts.join(";")
}

/// RFC 7239, section 6: quotes around whatever has a colon in it, or might have.
fn node(address: Option<SocketAddr>, with_port: bool) -> String {
    let Some(address) = address else { return if with_port { "\"unknown\"" } else { "unknown" }.to_owned() };
    let mut text = String::with_capacity(56);
    // Writing to a string cannot fail.
    let _ = match (address.ip(), with_port) {
        (IpAddr::V4(ip), false) => write!(text, "{ip}"),
        (IpAddr::V4(ip), true) => write!(text, "\"{ip}:{}\"", address.port()),
        (IpAddr::V6(ip), false) => write!(text, "\"[{ip}]\""),
        (IpAddr::V6(ip), true) => write!(text, "\"[{ip}]:{}\"", address.port()),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excepted_networks() {
        for (network, bits, client, wanted) in [
            ("127.0.0.0", 8, "127.1.2.3", true),
            ("127.0.0.0", 8, "128.0.0.1", false),
            ("10.1.2.3", 32, "10.1.2.3", true),
            ("10.1.2.3", 32, "10.1.2.2", false),
            ("0.0.0.0", 0, "9.9.9.9", true),
            ("2001:db8::", 32, "2001:db8:1::1", true),
            ("2001:db8::", 32, "2001:db9::1", false),
            ("::", 0, "::1", true),
            ("0.0.0.0", 0, "::1", false),
        ] {
            let except = Some((network.parse().expect("network"), bits));
            let rule = AddressField { except, header: "x-forwarded-for".into(), if_none: false };
            assert_eq!(is_excepted(&rule, client.parse().expect("client")), wanted, "{network}/{bits} {client}");
        }
    }

    const ALL: ForwardedSpec =
        ForwardedSpec { proto: true, host: true, by: true, by_port: true, r#for: true, for_port: true };

    #[test]
    fn elements_as_haproxy_writes_them() {
        let usual = ForwardedSpec { proto: true, r#for: true, ..ForwardedSpec::default() };
        let nodes = ForwardedSpec { by: true, r#for: true, ..ForwardedSpec::default() };
        /// Parameters, source, destination, Host, and the element.
        type Row = (ForwardedSpec, Option<&'static str>, Option<&'static str>, Option<&'static str>, &'static str);
        let rows: &[Row] = &[
            (usual, Some("10.0.0.1:5"), None, None, "proto=http;for=10.0.0.1"),
            (usual, None, None, None, "proto=http;for=unknown"),
            (nodes, Some("[2001:db8::1]:5"), Some("10.0.0.2:80"), None, "by=10.0.0.2;for=\"[2001:db8::1]\""),
            (
                ALL,
                Some("[::1]:5"),
                Some("10.0.0.2:80"),
                Some("a.b:8080"),
                "proto=http;host=\"a.b:8080\";by=\"10.0.0.2:80\";for=\"[::1]:5\"",
            ),
            (ALL, None, None, Some("a\"b"), "proto=http;host=\"\";by=\"unknown\";for=\"unknown\""),
            (ForwardedSpec { by_port: true, ..ForwardedSpec::default() }, None, None, None, ""),
        ];
        for (parameters, source, destination, host, expected) in rows {
            let address = |text: Option<&str>| text.map(|text| text.parse().expect("address"));
            let host = host.map(str::as_bytes);
            assert_eq!(element(parameters, address(*source), address(*destination), host), *expected);
        }
    }

    #[test]
    fn elements_of_others_stay_in_front() {
        let usual = ForwardedSpec { proto: true, ..ForwardedSpec::default() };
        let rows: &[(&[&str], &[&str])] = &[
            (&[], &["proto=http"]),
            (&["for=1.1.1.1"], &["for=1.1.1.1,proto=http"]),
            (&["for=1.1.1.1", "for=2.2.2.2"], &["for=1.1.1.1", "for=2.2.2.2,proto=http"]),
            (&["nonsense", "for=2.2.2.2"], &["nonsense", "for=2.2.2.2", "proto=http"]),
            (&[""], &["", "proto=http"]),
        ];
        for (before, after) in rows {
            let mut request = Head::new();
            before.iter().for_each(|value| request.append(b"forwarded", value.as_bytes()));
            add_forwarded(&usual, None, None, &mut request);
            let found: Vec<&[u8]> = request.all(b"forwarded").collect();
            assert_eq!(found, after.iter().map(|value| value.as_bytes()).collect::<Vec<_>>());
        }
    }
}
