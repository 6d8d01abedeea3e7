//! What a stream shows of its server's health (configuration manual, section 5.2, "observe"). Must never decide what follows
//! from that.

use live::health::Symptom;

use crate::check::{Sign, observe};
use crate::facts::{Cause, Facts, Phase};
use crate::session::Session;

/// A server answered with that status.
pub(super) fn answer(session: &Session, facts: &Facts, status: u16) {
    sign(session, facts, Symptom::of_status(status).map_or(Sign::Answered, Sign::Ill));
}

/// An answer did not come as it should have, and the request is sent again.
pub(super) fn bad_answer(session: &Session, facts: &Facts) {
    sign(session, facts, Sign::Ill(Symptom::Read));
}

/// A stream ended.
#[inline]
pub(super) fn end(session: &Session, facts: &Facts) {
    if facts.outcome.phase != Phase::Headers || facts.denied || facts.failed {
        return;
    }
    let symptom = match facts.outcome.cause {
        Cause::Server => Symptom::Read,
        Cause::ServerTimeout => Symptom::Timeout,
        Cause::Proxy => Symptom::Head,
        _ => return,
    };
    sign(session, facts, Sign::Ill(symptom));
}

fn sign(session: &Session, facts: &Facts, sign: Sign) {
    let (Some(proxy), Some(server)) = (facts.backend, facts.server) else { return };
    let proxy = session.proxy_at(proxy);
    if let Some(server) = proxy.backend.as_ref().and_then(|backend| backend.servers.get(server)) {
        observe(&session.worker, proxy, server, sign);
    }
}
