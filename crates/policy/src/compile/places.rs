//! Where rules are evaluated, by their set and the kind of their proxy. Must never look into a rule.

use config::keyword::rule::{
    HTTP_REQUEST, RuleSets, TCP_REQUEST_CONNECTION, TCP_REQUEST_CONTENT, TCP_REQUEST_SESSION, TCP_RESPONSE_CONTENT,
};
use config::spec::{ProxyKind, ProxySpec};
use expression::sample::Place;

/// As what messages name the place of a rule: of a proxy of both sides, as the one in its frontend.
pub(super) fn told(place: Place, written: &ProxySpec) -> Place {
    if written.kind == ProxyKind::Listen { place.in_front() } else { place }
}

/// Where the rules of a set are evaluated. A proxy of both sides is its own backend from the start: what a backend knows
/// may stand there.
pub(super) fn place(set: RuleSets, kind: ProxyKind) -> Place {
    match (set, kind) {
        (TCP_REQUEST_CONNECTION, _) => Place::Connection,
        (TCP_REQUEST_SESSION, _) => Place::Session,
        (TCP_REQUEST_CONTENT, ProxyKind::Frontend) => Place::FrontRequestContent,
        (TCP_REQUEST_CONTENT, _) => Place::BackRequestContent,
        (TCP_RESPONSE_CONTENT, _) => Place::BackResponseContent,
        (HTTP_REQUEST, ProxyKind::Frontend) => Place::FrontRequestHead,
        (HTTP_REQUEST, _) => Place::BackRequestHead,
        (_, ProxyKind::Frontend) => Place::FrontResponseHead,
        _ => Place::BackResponseHead,
    }
}
