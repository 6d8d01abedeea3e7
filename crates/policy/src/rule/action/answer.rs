//! Actions that end the evaluation: `allow`, `deny`, `return`, `redirect`, `tarpit`.

use super::redirect::{self, Redirect};
use super::reply::{self, Answer};
use super::{Action, Row, row};
use crate::rule::parse::{Parsing, RuleError, Words};
use crate::services::ServiceRow;
use config::keyword::rule::HTTP_REQUEST;
use config::spec::{Mode, MuxProtocol};
use config::suggest::nearest;
use config::text::to_bytes;

/// Every action of the family.
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

/// How an evaluation ends.
#[derive(Debug, Clone, PartialEq)]
pub enum Final {
    /// No further rule of the set counts.
    Allow,
    /// No further rule of the set counts, and the connection goes on in HTTP mode.
    SwitchMode(Option<MuxProtocol>),
    /// The connection is closed without an answer.
    Reject,
    /// The connection to the server is closed; what has come goes on.
    Close,
    /// The client is forgotten without being told; or told by a reset that lives so many hops.
    SilentDrop(Option<u8>),
    /// The message is refused.
    Deny(Answer),
    /// The request is answered on the spot.
    Return(Answer),
    /// The client is sent elsewhere.
    Redirect(Redirect),
    /// The request is refused after `timeout tarpit`.
    Tarpit(Answer),
    /// The client is asked who it is, for that realm.
    Challenge(Box<[u8]>),
    /// A service answers the request.
    Service(ServiceRow),
    /// What a rule was to do failed: the request is refused with that status.
    Fault(u16),
    /// To evaluate the rules cost more than it may: the message ends with an internal error.
    Exhausted,
}

fn last(ending: Final) -> Action {
    Action::Final(Box::new(ending))
}

/// Reads the line of the keyword `redirect`.
///
/// # Errors
/// What is wrong with it.
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
