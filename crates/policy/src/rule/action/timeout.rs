//! `set-timeout`: overrides a timeout for the request. Must never know where it is applied.

use super::{Action, Period, Row, row};
use crate::rule::parse::{Parsing, RuleError, Words};
use config::spec::ProxyKind;

/// The actions of this family.
pub(super) const TABLE: &[Row] = &[row("set-timeout", set_timeout)];

/// A timeout that a rule may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeoutKind {
    Client,
    Connect,
    Queue,
    Server,
    Tarpit,
    Tunnel,
}

fn set_timeout(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    const USAGE: &str = "expects exactly 2 arguments";
    let word = words.expect(USAGE)?;
    if words.peek().is_none() {
        return Err(RuleError::new(USAGE));
    }
    let name = word.text.as_str();
    let kind = match name {
        "client" => TimeoutKind::Client,
        "connect" => TimeoutKind::Connect,
        "queue" => TimeoutKind::Queue,
        "server" => TimeoutKind::Server,
        "tarpit" => TimeoutKind::Tarpit,
        "tunnel" => TimeoutKind::Tunnel,
        other => {
            let message = format!(
                "'set-timeout' rule supports 'client'/'connect'/'queue'/'server'/'tarpit'/'tunnel' (got '{other}')"
            );
            return Err(RuleError::at(Some(word), message));
        }
    };
    let missing = match (kind, parsing.proxy.kind) {
        (TimeoutKind::Tarpit, _) => None,
        (TimeoutKind::Client, ProxyKind::Backend) => Some("frontend"),
        (TimeoutKind::Client, _) => None,
        (_, ProxyKind::Frontend) => Some("backend"),
        _ => None,
    };
    if let Some(side) = missing {
        let message = format!("'{}' has no {side} capability", parsing.proxy.name.value);
        return Err(RuleError::at(Some(word), message));
    }
    Ok(Action::SetTimeout(kind, Period::read(words, parsing, &format!("set-timeout {name}"))?))
}
