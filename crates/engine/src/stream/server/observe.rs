//! Evidence of a stream for its server's health (configuration manual, section 5.2, "observe"). Must never decide the
//! consequences.

use live::health::Symptom;

use crate::check::{Sign, observe};
use crate::session::Session;
use crate::stream_state::{Cause, Phase, StreamState};

/// Reports that a server answered with that status.
pub(in crate::stream) fn answer(session: &Session, state: &StreamState, status: u16) {
    sign(session, state, Symptom::of_status(status).map_or(Sign::Answered, Sign::Ill));
}

/// Reports an invalid or missing response, after which the request is sent again.
pub(in crate::stream) fn bad_answer(session: &Session, state: &StreamState) {
    sign(session, state, Sign::Ill(Symptom::Read));
}

/// Reports the end of a stream.
#[inline]
pub(in crate::stream) fn end(session: &Session, state: &StreamState) {
    if state.rules.denied || state.rules.failed {
        return;
    }
    let symptom = match (state.outcome.cause, state.outcome.phase) {
        (Cause::Server, Phase::Headers) => Symptom::Read,
        // After the response's head, the timeout is that of a rule (`wait-for-body`).
        (Cause::ServerTimeout, Phase::Headers) if state.timings.response.is_none() => Symptom::Timeout,
        (Cause::Proxy, Phase::Headers) => Symptom::Head,
        // An invalid body counts like an invalid head; a truncated one does not: the network may be the cause.
        (Cause::Proxy, Phase::Data) => Symptom::Body,
        _ => return,
    };
    sign(session, state, Sign::Ill(symptom));
}

fn sign(session: &Session, state: &StreamState, sign: Sign) {
    let (Some(proxy), Some(server)) = (state.route.backend, state.route.server) else { return };
    let proxy = session.proxy_at(proxy);
    if let Some(server) = proxy.backend.as_ref().and_then(|backend| backend.servers.get(server)) {
        observe(&session.worker, proxy, server, sign);
    }
}
