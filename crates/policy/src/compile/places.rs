//! The places where rules are evaluated, by rule set and kind of proxy. Must never look into a rule.

use config::keyword::rule::{
    HTTP_REQUEST, QUIC_INITIAL, RuleSets, TCP_REQUEST_CONNECTION, TCP_REQUEST_CONTENT, TCP_REQUEST_SESSION,
    TCP_RESPONSE_CONTENT,
};
use config::spec::{ProxyKind, ProxySpec};
use expression::sample::EvalPlace;

/// Returns the place as named in messages: for a `listen` proxy, that of its frontend.
pub(super) fn named_place(place: EvalPlace, written: &ProxySpec) -> EvalPlace {
    if written.kind == ProxyKind::Listen { place.in_front() } else { place }
}

/// Returns the place where the rules of a set are evaluated. A `listen` proxy is its own backend from the start, so its
/// rules may use backend fetches.
pub(super) fn place(set: RuleSets, kind: ProxyKind) -> EvalPlace {
    match (set, kind) {
        (QUIC_INITIAL | TCP_REQUEST_CONNECTION, _) => EvalPlace::Connection,
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

/// The rule set whose messages quote three words of a line.
pub(super) const QUIC: &str = "quic-initial";

/// Whether a rule of that name is one on a connection or on its bytes, as messages distinguish them.
pub(super) fn is_of_transport(what: &str) -> bool {
    what.starts_with("tcp-") || what.starts_with(QUIC)
}
