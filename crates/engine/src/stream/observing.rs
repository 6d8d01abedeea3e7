//! What a stream shows of its server's health (configuration manual, section 5.2, "observe"). Must never decide what follows
//! from that.

use live::health::Symptom;

use crate::check::{Sign, observe};
use crate::session::Session;
use crate::stream_state::{Cause, Phase, StreamState};

/// A server answered with that status.
pub(super) fn answer(session: &Session, state: &StreamState, status: u16) {
    sign(session, state, Symptom::of_status(status).map_or(Sign::Answered, Sign::Ill));
}

/// An answer did not come as it should have, and the request is sent again.
pub(super) fn bad_answer(session: &Session, state: &StreamState) {
    sign(session, state, Sign::Ill(Symptom::Read));
}

/// A stream ended.
#[inline]
pub(super) fn end(session: &Session, state: &StreamState) {
    if state.denied || state.failed {
        return;
    }
    let symptom = match (state.outcome.cause, state.outcome.phase) {
        (Cause::Server, Phase::Headers) => Symptom::Read,
        // Once its head is here, who has no patience is a rule (`wait-for-body`).
        (Cause::ServerTimeout, Phase::Headers) if state.timings.response.is_none() => Symptom::Timeout,
        (Cause::Proxy, Phase::Headers) => Symptom::Head,
        // What is no body shows as much as what is no head; one that is cut off may be due to the network.
        (Cause::Proxy, Phase::Data) => Symptom::Body,
        _ => return,
    };
    sign(session, state, Sign::Ill(symptom));
}

fn sign(session: &Session, state: &StreamState, sign: Sign) {
    let (Some(proxy), Some(server)) = (state.backend, state.server) else { return };
    let proxy = session.proxy_at(proxy);
    if let Some(server) = proxy.backend.as_ref().and_then(|backend| backend.servers.get(server)) {
        observe(&session.worker, proxy, server, sign);
    }
}
