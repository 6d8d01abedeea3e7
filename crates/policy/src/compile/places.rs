//! Where rules are evaluated, by their set and the kind of their proxy. Must never look into a rule.

use config::keyword::rule::{
    HTTP_REQUEST, RuleSets, TCP_REQUEST_CONNECTION, TCP_REQUEST_CONTENT, TCP_REQUEST_SESSION, TCP_RESPONSE_CONTENT,
};
use config::spec::{ProxyKind, ProxySpec};
use expression::sample::EvalPlace;

/// As what messages name the place of a rule: of a proxy of both sides, as the one in its frontend.
pub(super) fn told(place: EvalPlace, written: &ProxySpec) -> EvalPlace {
    if written.kind == ProxyKind::Listen { place.in_front() } else { place }
}

/// Where the rules of a set are evaluated. A proxy of both sides is its own backend from the start: what a backend knows
/// may stand there.
pub(super) fn place(set: RuleSets, kind: ProxyKind) -> EvalPlace {
    match (set, kind) {
        (TCP_REQUEST_CONNECTION, _) => EvalPlace::Connection,
        (TCP_REQUEST_SESSION, _) => EvalPlace::Session,
        (TCP_REQUEST_CONTENT, ProxyKind::Frontend) => EvalPlace::FrontRequestContent,
        (TCP_REQUEST_CONTENT, _) => EvalPlace::BackRequestContent,
        (TCP_RESPONSE_CONTENT, _) => EvalPlace::BackResponseContent,
        (HTTP_REQUEST, ProxyKind::Frontend) => EvalPlace::FrontRequestHead,
        (HTTP_REQUEST, _) => EvalPlace::BackRequestHead,
        (_, ProxyKind::Frontend) => EvalPlace::FrontResponseHead,
        _ => EvalPlace::BackResponseHead,
    }
}
