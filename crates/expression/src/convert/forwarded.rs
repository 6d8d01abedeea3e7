//! Converters of the header field `forwarded` (RFC 7239): validation, its parameters, and its nodes.

use super::Converter;
use crate::sample::{Context, Type, Value};
use crate::{Arguments, Kind, Signature};
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Every converter of the family.
pub const TABLE: &[Converter] = &[
    Converter::new(
        "rfc7239_field",
        Signature::new(1, &[Kind::Str]),
        Type::Str,
        Type::Str,
        "Parameter `proto`, `host`, `for` or `by` of a valid Forwarded field.",
        |_, value, arguments| {
            let fields = Fields::read(value.bytes()?)?;
            fields.get(arguments.text(0)?).map(Value::Str)
        },
    ),
    Converter::new(
        "rfc7239_is_valid",
        Signature::NONE,
        Type::Str,
        Type::Bool,
        "Whether a Forwarded field is valid.",
        |_, value, _| Some(Value::Bool(Fields::read(value.bytes()?).is_some())),
    ),
    Converter::new(
        "rfc7239_n2nn",
        Signature::NONE,
        Type::Str,
        Type::Any,
        "Node name: an address, `unknown`, or an obfuscated identifier.",
        |_, value, _| match node(value.bytes()?)?.0 {
            Name::Address(address) => Some(address.into()),
            Name::Text(text) => Some(Value::Str(text)),
        },
    ),
    Converter::new(
        "rfc7239_n2np",
        Signature::NONE,
        Type::Str,
        Type::Any,
        "Node port: a number, or an obfuscated identifier.",
        |_, value, _| match node(value.bytes()?)?.1? {
            Port::Number(number) => Some(Value::Int(i64::from(number))),
            Port::Text(text) => Some(Value::Str(text)),
        },
    ),
    Converter::new(
        "rfc7239_nn",
        Signature::NONE,
        Type::Any,
        Type::Str,
        "Formats an address or a string as a node name.",
        make_name,
    ),
    Converter::new(
        "rfc7239_np",
        Signature::NONE,
        Type::Any,
        Type::Str,
        "Formats a number or a string as a node port.",
        make_port,
    ),
];

/// The parameters of a field, without quotes.
#[derive(Default)]
struct Fields<'a> {
    proto: Option<&'a [u8]>,
    host: Option<&'a [u8]>,
    from: Option<&'a [u8]>,
    by: Option<&'a [u8]>,
}

impl<'a> Fields<'a> {
    /// Parses a field; `None` when it is invalid.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut fields = Self::default();
        let mut rest = bytes;
        loop {
            let end = rest.iter().position(|byte| *byte == b'=')?;
            let (name, behind) = (&rest[..end], &rest[end + 1..]);
            let (value, is_quoted, behind) = value(behind)?;
            let place = match name {
                b"proto" => &mut fields.proto,
                b"host" => &mut fields.host,
                b"for" => &mut fields.from,
                b"by" => &mut fields.by,
                _ => return None,
            };
            let is_right = match name {
                b"proto" => !is_quoted && matches!(value, b"http" | b"https"),
                b"host" => is_host(value) && (is_quoted || !value.is_empty()),
                _ => node(value).is_some(),
            };
            if !is_right || place.replace(value).is_some() {
                return None;
            }
            match behind.split_first() {
                None => return Some(fields),
                Some((b';', behind)) => rest = behind,
                Some(_) => return None,
            }
        }
    }

    fn get(&self, name: &[u8]) -> Option<&'a [u8]> {
        match name {
            b"proto" => self.proto,
            b"host" => self.host,
            b"for" => self.from,
            b"by" => self.by,
            _ => None,
        }
    }
}

/// Parses a value: the value, whether it was quoted, and the rest. An unquoted value is a token.
fn value(bytes: &[u8]) -> Option<(&[u8], bool, &[u8])> {
    if let Some(rest) = bytes.strip_prefix(b"\"") {
        let end = rest.iter().position(|byte| *byte == b'"')?;
        return Some((&rest[..end], true, &rest[end + 1..]));
    }
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let end = bytes.iter().position(|byte| !is_token(byte)).unwrap_or(bytes.len());
    Some((&bytes[..end], false, &bytes[end..]))
}

fn is_host(host: &[u8]) -> bool {
    let (name, port) = match host.iter().rposition(|byte| matches!(byte, b':' | b']')) {
        Some(at) if host[at] == b':' => (&host[..at], &host[at + 1..]),
        _ => (host, &[][..]),
    };
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=%".contains(byte);
    let is_right = match name.strip_prefix(b"[").and_then(|name| name.strip_suffix(b"]")) {
        Some(address) => parse::<Ipv6Addr>(address).is_some(),
        None => name.iter().all(is_name),
    };
    is_right && port.iter().all(u8::is_ascii_digit)
}

fn parse<T: std::str::FromStr>(bytes: &[u8]) -> Option<T> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

enum Name<'a> {
    Address(IpAddr),
    Text(&'a [u8]),
}

enum Port<'a> {
    Number(u16),
    Text(&'a [u8]),
}

/// Parses `name[:port]`.
fn node(bytes: &[u8]) -> Option<(Name<'_>, Option<Port<'_>>)> {
    if let Some(rest) = bytes.strip_prefix(b"[") {
        let end = rest.iter().position(|byte| *byte == b']')?;
        let name = Name::Address(IpAddr::V6(parse(&rest[..end])?));
        return Some((name, port(&rest[end + 1..])?));
    }
    let end = bytes.iter().position(|byte| *byte == b':').unwrap_or(bytes.len());
    let name = match &bytes[..end] {
        text @ b"unknown" => Name::Text(text),
        text @ [b'_', ..] => Name::Text(is_hidden(text).then_some(text)?),
        text => Name::Address(IpAddr::V4(parse::<Ipv4Addr>(text)?)),
    };
    Some((name, port(&bytes[end..])?))
}

/// Parses `:port`, or nothing.
fn port(bytes: &[u8]) -> Option<Option<Port<'_>>> {
    match bytes {
        [] => Some(None),
        [b':', text @ ..] if text.starts_with(b"_") => Some(Some(Port::Text(is_hidden(text).then_some(text)?))),
        [b':', digits @ ..] if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => {
            parse::<u16>(digits).filter(|port| *port > 0).map(|port| Some(Port::Number(port)))
        }
        _ => None,
    }
}

/// Whether it is an obfuscated identifier: `_` and at least one character.
fn is_hidden(text: &[u8]) -> bool {
    text.len() > 1 && text.iter().all(is_hiding)
}

fn is_hiding(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

fn make_name<'a>(context: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    match value {
        Value::Ipv4(_) => context.as_text(value).map(Value::Str),
        Value::Ipv6(address) => {
            let mut text = context.text(48);
            write!(text, "[{address}]").ok()?;
            text.finish().map(Value::Str)
        }
        other => match context.as_text(other)? {
            [] => Some(Value::Str(b"unknown")),
            text => hide(context, text),
        },
    }
}

fn make_port<'a>(context: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    match value {
        Value::Int(number) => context.as_text(Value::Int(i64::from(number as u32))).map(Value::Str),
        other => hide(context, context.as_text(other)?),
    }
}

fn hide<'a>(context: &Context<'a>, text: &[u8]) -> Option<Value<'a>> {
    if text.is_empty() || !text.iter().all(is_hiding) {
        return None;
    }
    let mut hidden = context.text(text.len() + 1);
    hidden.push(b'_');
    hidden.extend(text);
    hidden.finish().map(Value::Str)
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn fields_are_judged() {
        let right = [
            "proto=https;host=\"haproxy.org:80\";for=\"127.0.0.1:9999\"",
            "for=127.0.0.1;proto=http",
            "for=\"[::1]:8080\";by=\"[ab:cd:ff:ff:ff:ff:ff:ff]:9998\"",
            "for=_abc;by=\"_name:_port\"",
            "for=\"unknown:80\"",
            "for=\"127.0.0.1\"",
            "for=\"127.0.0.1:_x\"",
            "for=\"[::1]\"",
            "for=_a-b.c_d",
            "host=haproxy.org",
            "host=\"\"",
            "host=\"[::1]:80\"",
            "proto=https",
            "for=\"_a:80\"",
            "for=\"127.0.0.1:000080\"",
        ];
        let wrong = [
            "For=unknown;PROTO=http",
            "for=127.0.0.1, for=1.2.3.4",
            "proto=custom",
            "for=127.0.0.1;",
            ";for=127.0.0.1",
            "for=127.0.0.1;for=1.1.1.1",
            "for=127.0.0.1:80",
            "for=\"127.0.0.1:99999\"",
            "for=\"127.0.0.1:\"",
            "for=\"::1\"",
            "for=[::1]",
            "for=\"[::1]x\"",
            "for=\"[127.0.0.1]\"",
            "for=",
            "for=\"\"",
            "for=_",
            "for=_a/b",
            "for=abc",
            "for=\"127.0.0.1",
            "host=haproxy.org:80",
            "host=\"hap roxy\"",
            "host=\"a:x\"",
            "proto=HTTP",
            "proto=\"http\"",
            "secret=abc",
            " for=127.0.0.1",
            "for=127.0.0.1 ",
            "for = 127.0.0.1",
            "for=127.0.0.1; proto=http",
            "",
            "for",
            "for=UNKNOWN",
            "for=unknown:80",
            "for=\"_a:_\"",
            "for=\"127.0.0.1:0\"",
            "for=127.0.0.1,proto=http",
        ];
        for (list, expected) in [(&right[..], "1"), (&wrong, "0")] {
            for text in list {
                let text = format!("str('{text}'),rfc7239_is_valid");
                assert_eq!(Scene::default().eval(&text), expected, "{text}");
            }
        }
    }

    #[test]
    fn parameters_and_nodes_are_read() {
        check_rows(
            &Scene::default(),
            &[
                ("str('proto=https;host=\"haproxy.org:80\"'),rfc7239_field(host)", "haproxy.org:80"),
                ("str('proto=https;for=\"1.1.1.1:_x\"'),rfc7239_field(for)", "1.1.1.1:_x"),
                ("str('proto=https'),rfc7239_field(by)", "<none>"),
                ("str('proto=https'),rfc7239_field(foo)", "<none>"),
                ("str('for=127.0.0.1;x=y;by=1.1.1.1'),rfc7239_field(by)", "<none>"),
                ("str(127.0.0.1:9999),rfc7239_n2nn", "127.0.0.1"),
                ("str([ab:cd:ff:ff:ff:ff:ff:ff]:9998),rfc7239_n2nn", "ab:cd:ff:ff:ff:ff:ff:ff"),
                ("str(_name:_port),rfc7239_n2nn", "_name"),
                ("str(unknown:80),rfc7239_n2nn", "unknown"),
                ("str(abc),rfc7239_n2nn", "<none>"),
                ("str(::1),rfc7239_n2nn", "<none>"),
                ("str(),rfc7239_n2nn", "<none>"),
                ("str(127.0.0.1:9999),rfc7239_n2np", "9999"),
                ("str(_name:_port),rfc7239_n2np", "_port"),
                ("str(127.0.0.1),rfc7239_n2np", "<none>"),
                ("str(127.0.0.1:65536),rfc7239_n2np", "<none>"),
                ("str(127.0.0.1:0),rfc7239_n2np", "<none>"),
                ("ipv6(::1),rfc7239_nn", "[::1]"),
                ("ipv4(1.2.3.4),rfc7239_nn", "1.2.3.4"),
                ("str(test),rfc7239_nn", "_test"),
                ("str(),rfc7239_nn", "unknown"),
                ("str(te/st),rfc7239_nn", "<none>"),
                ("int(5),rfc7239_nn", "_5"),
                ("int(12),rfc7239_np", "12"),
                ("int(-1),rfc7239_np", "4294967295"),
                ("str(12),rfc7239_np", "_12"),
                ("str(),rfc7239_np", "<none>"),
            ],
        );
    }
}
