//! Actions that end the evaluation: `allow`, `deny`, `return`, `redirect`, `tarpit`. Must never perform one.

use super::redirect::{self, Redirect};
use super::reply;
use super::{Action, Row, row};
use crate::rule::described::Answer;
use crate::rule::parse::{Parsing, RuleError, Words};
use crate::services::ServiceRow;
use config::keyword::rule::HTTP_REQUEST;
use config::spec::{Mode, MuxProtocol};
use config::suggest::nearest;
use config::text::to_bytes;

/// The actions of this family.
pub(super) const TABLE: &[Row] = &[
    row("allow", |_, _| Ok(last(Final::Allow))),
    row("deny", |words, parsing| {
        let default = if parsing.is_request() { 403 } else { 502 };
        Ok(last(Final::Deny(reply::read_refusal(words, parsing, default)?)))
    }),
    row("return", |words, parsing| Ok(last(Final::Return(reply::read(words, parsing, 200)?)))),
    row("redirect", |words, parsing| Ok(last(Final::Redirect(redirect::read(words, parsing, true)?)))),
    row("tarpit", |words, parsing| Ok(last(Final::Tarpit(reply::read_refusal(words, parsing, 500)?)))),
    row("auth", auth),
    row("use-service", use_service),
];

/// The final action of an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub enum Final {
    /// Skip the remaining rules of the set.
    Allow,
    /// Skip the remaining rules of the set and continue in HTTP mode.
    SwitchMode(Option<MuxProtocol>),
    /// Close the connection without a response.
    Reject,
    /// Send a Retry packet to the client of a QUIC connection.
    SendRetry,
    /// Close the server connection; received data is forwarded.
    Close,
    /// Drop the client connection silently, or with a reset of the given TTL.
    SilentDrop(Option<u8>),
    /// Reject the message.
    Deny(Answer),
    /// Respond to the request directly.
    Return(Answer),
    /// Redirect the client.
    Redirect(Redirect),
    /// Reject the request after `timeout tarpit`.
    Tarpit(Answer),
    /// Request authentication for that realm.
    Challenge(Box<[u8]>),
    /// A service responds to the request.
    Service(ServiceRow),
    /// An action failed: reject the request with that status.
    Fault(u16),
    /// The evaluation exceeded its limit: end the message with an internal error.
    Exhausted,
}

fn last(ending: Final) -> Action {
    Action::Final(Box::new(ending))
}

/// Parses a `redirect` line.
///
/// # Errors
/// The line is invalid.
pub(crate) fn redirect_rule(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    Ok(last(Final::Redirect(redirect::read(words, parsing, false)?)))
}

fn auth(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    let mut realm = parsing.proxy.name.value.as_str();
    if words.peek_text() == "realm" {
        words.take();
        realm = &words.expect("missing realm value.\n")?.text;
    }
    Ok(last(Final::Challenge(to_bytes(realm).into_owned().into())))
}

fn use_service(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    let name = words.expect("'use-service' expects a service name.")?;
    let found = parsing.names.registry().services.find(&name.text);
    if found.is_some_and(|service| service.of_bytes) && parsing.proxy.mode == Mode::Http {
        return Err(RuleError::at(Some(name), "Lua TCP services cannot be used on HTTP proxies"));
    }
    if found.is_some_and(|service| !service.of_bytes) && parsing.set != HTTP_REQUEST && name.text.starts_with("lua.") {
        return Err(RuleError {
            span: Some(name.span),
            ..RuleError::whole("HTTP applets are forbidden from 'tcp-request' rulesets")
        });
    }
    let is_of_bytes = parsing.set != HTTP_REQUEST;
    match found.filter(|service| service.of_bytes == is_of_bytes) {
        Some(service) => Ok(last(Final::Service(service.clone()))),
        None => {
            let fitting = parsing.names.registry().services.iter().filter(|row| row.of_bytes == is_of_bytes);
            let known = nearest(&name.text, fitting.map(|row| &*row.name));
            let hint = known.map(|known| format!("write 'use-service {known}'"));
            Err(RuleError { hint, ..RuleError::at(Some(name), format!("'{}' unknown service name.", name.text)) })
        }
    }
}
