//! Reports results of requests to the outlier detection (`eject-outliers`), logs ejections, and ends them. Must never decide what
//! a failure is.

use std::time::Duration;

use config::spec::LogLevel;
use live::timeline::{Author, TimelineKind};
use live::{Ejection, Observation, Reason};
use policy::program::{Proxy, Server};

use crate::stream_state::{Cause, Outcome, StreamState};
use crate::timeline;
use crate::worker::Worker;

use super::slow_start;

/// Returns the response time of the server that responded, and whether its status counts as a failure.
pub fn of_answer(state: &StreamState) -> Observation {
    // 501 and 505 are no failures of the server: it does not support a method or a version.
    let failed = matches!(state.answer.status, 500 | 502..=504 | 506..=599);
    Observation { took: took(state), failed }
}

/// Returns the time to the first response byte of the server that responded.
pub fn took(state: &StreamState) -> Option<Duration> {
    // Time spent on previous attempts is not counted.
    let is_second = state.attempts.retries > 0 || state.attempts.hedge_won;
    let begun = if is_second { state.timings.connected } else { state.timings.queued };
    begun.zip(state.timings.response).map(|(begun, answered)| answered.saturating_since(begun))
}

/// A failed request without a response.
pub const FAILED: Observation = Observation { took: None, failed: true };

/// Whether a stream ended through its server's fault.
pub fn is_servers_fault(outcome: Outcome) -> bool {
    matches!(outcome.cause, Cause::Server | Cause::ServerTimeout)
}

/// Reports the result of a request to a server, if its backend uses them.
#[inline]
pub fn observe(worker: &Worker, proxy: &Proxy, server: usize, seen: impl FnOnce() -> Observation) {
    if proxy.backend.as_ref().is_some_and(|backend| backend.heeds_answers()) {
        note(worker, proxy, server, seen());
    }
}

fn note(worker: &Worker, proxy: &Proxy, server: usize, seen: Observation) {
    let proxy_state = &worker.process.live.proxies[proxy.index];
    let Some(ejection) = proxy_state.heed(server, seen, rt::now()) else { return };
    if let Some(server) = proxy.server(server) {
        let text = sentence(proxy, server, &ejection, proxy_state.queued(None).0);
        worker.announce(proxy.index, LogLevel::Alert, &text);
        timeline::server(&worker.process, TimelineKind::ServerEjected, Author::Traffic, proxy, server, || text);
    }
    rt::spawn(rt::Class::Normal, rt::NO_TAG, come_back(proxy.index, server, ejection));
}

fn sentence(proxy: &Proxy, server: &Server, ejection: &Ejection, waiting: u32) -> String {
    let reason = match ejection.reason {
        Reason::Errors { failed, of } => format!("{failed} of its last {of} requests failed"),
        Reason::Latency { mean, others } => {
            format!("its answers take {}ms, those of the others {}ms", mean.as_millis(), others.as_millis())
        }
    };
    format!(
        "Server {}/{} is ejected for {}s: {reason}. {} servers ejected, {} left. {waiting} remaining in queue.",
        proxy.name,
        server.name,
        ejection.period.as_secs_f64(),
        ejection.ejected,
        ejection.left,
    )
}

/// Ends an ejection when its time is over.
async fn come_back(proxy: usize, server: usize, ejection: Ejection) {
    rt::sleep_until(ejection.until).await;
    let Some(worker) = rt::local::<Worker>() else { return };
    let proxy_state = &worker.process.live.proxies[proxy];
    if !proxy_state.end_ejection(server, ejection.until, rt::now()) {
        return;
    }
    let generation = worker.generation();
    let named = generation.proxy(proxy);
    if let Some(server) = named.server(server) {
        let text = format!("Server {}/{} is back: its ejection is over.", named.name, server.name);
        worker.announce(proxy, LogLevel::Notice, &text);
        timeline::server(&worker.process, TimelineKind::ServerRestored, Author::Process, named, server, || text);
    }
    slow_start::watch(std::sync::Arc::clone(proxy_state));
}
