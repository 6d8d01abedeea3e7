//! Request fields that describe the origin, the destination and the identity of a request: `option forwarded` (RFC 7239),
//! `option forwardfor`, `option originalto`, `unique-id-header`; and `Early-Data` (RFC 8470). Must never access other fields.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use config::spec::{ForwardedPart, ForwardedSpec};
use expression::Expression;
use expression::sample::Value;
use policy::program::{AddressField, Proxy};
use wire::http::{Head, forwarded};

use crate::session::Session;
use crate::stream::request::evaluate::EvalContext;
use crate::worker::SharedStreamState;

/// Adds the fields that frontend and backend are configured to add, in HAProxy's order.
pub fn add(session: &Session, backend: &Proxy, state: &SharedStreamState) {
    let (front, back) = (&session.proxy().http, &backend.http);
    // A request in early data may be a replay: the server has to be informed.
    if session.tls().is_some_and(tls::HandshakeInfo::is_early) && !state.borrow().request.contains(b"early-data") {
        state.borrow_mut().request.append(b"early-data", b"1");
    }
    if let Some(name) = session.proxy().frontend.as_ref().and_then(|own| own.unique_id.as_ref()?.header.as_ref()) {
        let mut state = state.borrow_mut();
        let named: Box<[u8]> = EvalContext::request(session, &state).unique_id().unwrap_or_default().into();
        state.request.append(name, &named);
    }
    if let Some(parameters) = &back.forwarded {
        let destination = if parameters.by { state.borrow().destination(session) } else { None };
        let own = if back.forwarded_expressions.is_empty() {
            ForwardedParts::default()
        } else {
            let state = state.borrow();
            EvalContext::request(session, &state)
                .lend(|context| ForwardedParts::evaluate(&back.forwarded_expressions, context))
        };
        let client = state.borrow().client(session);
        add_forwarded(parameters, client, destination, &own, &mut state.borrow_mut().request);
    }
    if front.forwardfor.is_some() || back.forwardfor.is_some() {
        let source = state.borrow().source(session);
        add_address(front.forwardfor.as_ref(), back.forwardfor.as_ref(), source, &mut state.borrow_mut().request);
    }
    if front.originalto.is_some() || back.originalto.is_some() {
        let destination = state.borrow().destination(session).map(|address| address.ip());
        add_address(front.originalto.as_ref(), back.originalto.as_ref(), destination, &mut state.borrow_mut().request);
    }
}

/// Adds a field with one address. The backend's field name has precedence; with `if-none` in each of the options, an existing
/// field is kept.
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

/// Appends our element to the last `Forwarded` field; adds a field of its own if the existing ones are not all valid.
fn add_forwarded(
    parameters: &ForwardedSpec,
    source: Option<SocketAddr>,
    destination: Option<SocketAddr>,
    own: &ForwardedParts,
    request: &mut Head,
) {
    let element = element(parameters, source, destination, own, request.host());
    let all_valid = request.all(b"forwarded").all(forwarded::is_valid);
    if all_valid && request.contains(b"forwarded") {
        request.fields.extend_last(b"forwarded", format!(",{element}").as_bytes());
    } else {
        request.append(b"forwarded", element.as_bytes());
    }
}

/// Parts of an element that are set by expressions. `None`: there is no expression; inner `None`: its value is not usable.
#[derive(Default)]
struct ForwardedParts {
    parts: [Option<Option<String>>; ForwardedPart::COUNT],
}

impl ForwardedParts {
    fn evaluate(expressions: &[(ForwardedPart, Expression)], context: &expression::sample::Context<'_>) -> Self {
        let mut own = Self::default();
        for (part, expression) in expressions {
            let value = expression.evaluate(context);
            let name = match value {
                Some(Value::Ipv4(ip)) if *part != ForwardedPart::Host => Some(ip.to_string()),
                Some(Value::Ipv6(ip)) if *part != ForwardedPart::Host => Some(format!("[{ip}]")),
                Some(value) => {
                    let text = value.bytes().or_else(|| context.as_text(value));
                    text.and_then(|text| std::str::from_utf8(text).ok()).map(str::to_owned)
                }
                None => None,
            };
            own.parts[*part as usize] = Some(name.and_then(|name| match part {
                ForwardedPart::Host => Some(name).filter(|name| forwarded::is_host(name.as_bytes())),
                ForwardedPart::By | ForwardedPart::For => node_name(name),
                ForwardedPart::ByPort | ForwardedPart::ForPort => node_port(name),
            }));
        }
        own
    }

    fn get(&self, part: ForwardedPart) -> Option<Option<&str>> {
        self.parts[part as usize].as_ref().map(Option::as_deref)
    }
}

/// Whether a text is valid as an obfuscated identifier or port (RFC 7239, section 6.3), without its leading underscore.
fn is_hidden(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// Returns a text as an obfuscated identifier, with a leading underscore. `None`: it contains other characters.
fn hidden(text: String) -> Option<String> {
    match text.strip_prefix('_') {
        Some(rest) if is_hidden(rest) => Some(text),
        _ => is_hidden(&text).then(|| format!("_{text}")),
    }
}

/// Returns a text as a node name: an address, `unknown`, or an obfuscated identifier.
fn node_name(text: String) -> Option<String> {
    let bracketed = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_address = text.parse::<Ipv4Addr>().is_ok() || bracketed.is_some_and(|ip| ip.parse::<Ipv6Addr>().is_ok());
    if is_address || text == UNKNOWN { Some(text) } else { hidden(text) }
}

/// Returns a text as a node port: a number from 1 to 65535, or an obfuscated port.
fn node_port(text: String) -> Option<String> {
    let digits = !text.is_empty() && text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits && text.parse::<u16>().is_ok_and(|port| port > 0) { Some(text) } else { hidden(text) }
}

fn element(
    parameters: &ForwardedSpec,
    source: Option<SocketAddr>,
    destination: Option<SocketAddr>,
    own: &ForwardedParts,
    host: Option<&[u8]>,
) -> String {
    let mut parts = Vec::with_capacity(4);
    if parameters.proto {
        parts.push("proto=http".to_owned());
    }
    if parameters.host {
        let host = match own.get(ForwardedPart::Host) {
            Some(host) => host.unwrap_or_default().into(),
            None => String::from_utf8_lossy(host.filter(|host| forwarded::is_host(host)).unwrap_or_default()),
        };
        parts.push(format!("host=\"{host}\""));
    }
    if parameters.by {
        let port = parameters.by_port.then(|| own.get(ForwardedPart::ByPort));
        parts.push(format!("by={}", node(destination, own.get(ForwardedPart::By), port)));
    }
    if parameters.r#for {
        let port = parameters.for_port.then(|| own.get(ForwardedPart::ForPort));
        parts.push(format!("for={}", node(source, own.get(ForwardedPart::For), port)));
    }
    parts.join(";")
}

/// Node name of an unknown node.
const UNKNOWN: &str = "unknown";

/// Encodes a node (RFC 7239, section 6), in quotes if it contains a colon, or may contain one. `name` and `port` from
/// expressions have precedence over those of the address.
fn node(address: Option<SocketAddr>, name: Option<Option<&str>>, port: Option<Option<Option<&str>>>) -> String {
    let name: Cow<'_, str> = match (name, address.map(|address| address.ip())) {
        (Some(name), _) => name.unwrap_or(UNKNOWN).into(),
        (None, Some(IpAddr::V4(ip))) => ip.to_string().into(),
        (None, Some(IpAddr::V6(ip))) => format!("[{ip}]").into(),
        (None, None) => UNKNOWN.into(),
    };
    let port: Option<Option<Cow<'_, str>>> = port.map(|own| match own {
        Some(own) => own.map(Cow::from),
        None => address.map(|address| address.port().to_string().into()),
    });
    match port {
        Some(Some(port)) => format!("\"{name}:{port}\""),
        Some(None) => format!("\"{name}\""),
        None if name.starts_with('[') => format!("\"{name}\""),
        None => name.into_owned(),
    }
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
            let (source, destination) = (address(*source), address(*destination));
            assert_eq!(element(parameters, source, destination, &ForwardedParts::default(), host), *expected);
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
            add_forwarded(&usual, None, None, &ForwardedParts::default(), &mut request);
            let found: Vec<&[u8]> = request.all(b"forwarded").collect();
            assert_eq!(found, after.iter().map(|value| value.as_bytes()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn names_and_ports_of_nodes_are_hidden_where_they_are_none() {
        for (text, name) in [
            ("1.2.3.4", Some("1.2.3.4")),
            ("[::1]", Some("[::1]")),
            ("::1", None),
            ("_abc", Some("_abc")),
            ("abc.d-e_f", Some("_abc.d-e_f")),
            ("unknown", Some("unknown")),
            ("UNKNOWN", Some("_UNKNOWN")),
            ("_", Some("__")),
            ("1.2.3", Some("_1.2.3")),
            ("a b", None),
            ("1.2.3.4:5", None),
            ("", None),
        ] {
            assert_eq!(node_name(text.to_owned()).as_deref(), name, "{text}");
        }
        for (text, port) in [
            ("80", Some("80")),
            ("080", Some("080")),
            ("65535", Some("65535")),
            ("65536", Some("_65536")),
            ("0", Some("_0")),
            ("-1", Some("_-1")),
            ("_p", Some("_p")),
            ("p", Some("_p")),
            ("a b", None),
            ("", None),
        ] {
            assert_eq!(node_port(text.to_owned()).as_deref(), port, "{text}");
        }
    }
}
