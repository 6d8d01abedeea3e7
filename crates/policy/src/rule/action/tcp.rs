//! Actions on connections: accepting and rejecting, expected headers, source and destination. Must never perform one.

use super::{Action, Final, Row, row};
use crate::rule::parse::{Parsing, RuleError, Words};
use config::spec::{MuxProtocol, ProxyKind};
use expression::Expression;
use expression::sample::{Context, Type, Value, cast};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The actions of this family.
pub(super) const TABLE: &[Row] = &[
    row("accept", |_, _| ending(Final::Allow)),
    row("reject", |_, _| ending(Final::Reject)),
    row("dgram-drop", |_, _| ending(Final::SilentDrop(None))),
    row("send-retry", |_, _| ending(Final::SendRetry)),
    row("close", |_, _| ending(Final::Close)),
    row("silent-drop", silent_drop),
    row("switch-mode", switch_mode),
    row("set-src", |words, parsing| set_end(words, parsing, End::Source)),
    row("set-src-port", |words, parsing| set_end(words, parsing, End::SourcePort)),
    row("set-dst", |words, parsing| set_end(words, parsing, End::Destination)),
    row("set-dst-port", |words, parsing| set_end(words, parsing, End::DestinationPort)),
    row("expect-netscaler-cip", |words, _| expect(words, Expected::NetScaler)),
    row("expect-proxy", |words, _| expect(words, Expected::Proxy)),
];

/// The part of a connection's addresses that a rule changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// `set-src`.
    Source,
    /// `set-src-port`.
    SourcePort,
    /// `set-dst`.
    Destination,
    /// `set-dst-port`.
    DestinationPort,
}

/// A header that is expected before the client's first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    Proxy,
    /// NetScaler's client address, with the magic number of the `bind` line.
    NetScaler,
}

impl End {
    /// Whether it is the client's address or port.
    pub fn is_source(self) -> bool {
        matches!(self, Self::Source | Self::SourcePort)
    }

    /// Returns the changed address. `None` if it does not change.
    pub fn change<'a>(self, context: &Context<'a>, expression: &'a Expression) -> Option<SocketAddr> {
        let probes = context.probes;
        let current = if self.is_source() { probes.source() } else { probes.destination() };
        let value = expression.evaluate(context)?;
        match self {
            Self::Source | Self::Destination => {
                let ip = match cast(value.kind(), Type::Addr)?(context, value)? {
                    Value::Ipv4(address) => IpAddr::V4(address),
                    Value::Ipv6(address) => IpAddr::V6(address),
                    _ => return None,
                };
                // The port is kept if the address family does not change.
                let port =
                    current.filter(|current| current.is_ipv4() == ip.is_ipv4()).map_or(0, |current| current.port());
                Some((ip, port).into())
            }
            Self::SourcePort | Self::DestinationPort => {
                let port = cast(value.kind(), Type::Int)?(context, value)?.integer()? as u16;
                let ip = current.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |current| current.ip());
                Some((ip, port).into())
            }
        }
    }
}

fn ending(ending: Final) -> Result<Action, RuleError> {
    Ok(Action::Final(Box::new(ending)))
}

fn silent_drop(words: &mut Words<'_>, _: &Parsing<'_>) -> Result<Action, RuleError> {
    if words.peek_text() != "rst-ttl" {
        return ending(Final::SilentDrop(None));
    }
    words.take();
    let word = words.expect("missing rst-ttl value\n")?;
    let hops = word.text.parse().ok().filter(|hops| *hops > 0);
    let hops = hops.ok_or_else(|| RuleError::at(Some(word), "valid rst-ttl values are [1-255]\n"))?;
    ending(Final::SilentDrop(Some(hops)))
}

/// Parses `switch-mode http [proto <name>]`.
fn switch_mode(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    let what = "'tcp-request switch-mode'";
    if parsing.proxy.kind == ProxyKind::Backend {
        let name = &parsing.proxy.name.value;
        let message = format!("{what} not allowed because backend '{name}' has no frontend capability");
        return Err(RuleError::new(message));
    }
    let mode = words.expect(&format!("{what} expects a mode as argument."))?;
    if mode.text != "http" {
        return Err(RuleError::at(Some(mode), format!("{what} expects a valid mode (got '{}').", mode.text)));
    }
    if words.peek_text() == "proto" {
        words.take();
        let protocol = words.expect(&format!("{what}: 'proto' expects a protocol as argument."))?;
        match protocol.text.as_str() {
            "h1" => return ending(Final::SwitchMode(Some(MuxProtocol::Http1))),
            "h2" => return ending(Final::SwitchMode(Some(MuxProtocol::Http2))),
            other => {
                let message = format!("{what}: 'proto' expects a valid MUX protocol, if specified (got '{other}')");
                return Err(RuleError::at(Some(protocol), message));
            }
        }
    }
    ending(Final::SwitchMode(None))
}

fn set_end(words: &mut Words<'_>, parsing: &Parsing<'_>, end: End) -> Result<Action, RuleError> {
    Ok(Action::SetEnd(end, parsing.expression(words)?))
}

fn expect(words: &mut Words<'_>, expected: Expected) -> Result<Action, RuleError> {
    let word = words.take();
    match word.map(|word| word.text.as_str()) {
        Some("layer4") => Ok(Action::Expect(expected)),
        other => Err(RuleError::at(
            word,
            format!(
                "'tcp-request connection {}' only supports 'layer4' (got '{}')",
                words.action(),
                other.unwrap_or("")
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::End;
    use crate::running::tests::{FewNames, Scene};
    use expression::Expression;
    use expression::sample::EvalPlace;

    #[test]
    fn ends_change() {
        // The client is 192.0.2.1:1000, its destination 203.0.113.9:80.
        let rows = [
            (End::Source, "ipv4(10.0.0.1)", Some("10.0.0.1:1000")),
            (End::Source, "ipv6(::1)", Some("[::1]:0")),
            (End::Source, "str(10.0.0.2)", Some("10.0.0.2:1000")),
            (End::Source, "str(x)", None),
            (End::SourcePort, "int(77)", Some("192.0.2.1:77")),
            (End::SourcePort, "str(78)", Some("192.0.2.1:78")),
            (End::Destination, "str(::2)", Some("[::2]:0")),
            (End::DestinationPort, "int(8080)", Some("203.0.113.9:8080")),
        ];
        for (end, text, wanted) in rows {
            let expression = Expression::parse_all(text, EvalPlace::FrontRequestContent, &FewNames).unwrap();
            let found = Scene::default().with(|context| end.change(context, &expression));
            assert_eq!(found.map(|found| found.to_string()).as_deref(), wanted, "{end:?} {text}");
        }
    }
}
