//! The stages of a request, in their order, and the recorders that are called at each: counters, tracked entries, spans,
//! traces, log lines, filters. A stage tests once which of them the configuration uses ([`Features`]); recorders that it does
//! not use cost a request nothing else. Must never decide anything.

use config::spec::OtelEvent;
use expression::record::Origin;
use policy::program::{Features, Proxy};

use crate::session::Session;
use crate::stream::{conclude, filter, instrumentation, metrics, observing, otel, sticking, tracing, tracking};
use crate::stream_state::StreamState;
use crate::worker::SharedStreamState;

/// The head of a request is complete: `length` bytes.
#[inline]
pub(super) fn head_received(session: &Session, state: &mut StreamState, length: usize) {
    let now = rt::now();
    state.timings.first_byte.get_or_insert(now);
    state.bytes.bytes_in += length as u64;
    state.timings.request = Some(now);
    state.has_request = true;
    tracing::request(session, state);
}

/// A stream begins with a request.
#[inline]
pub(super) fn begun(session: &Session, state: &SharedStreamState) {
    const USED: Features = Features::SPANS.with(Features::FILTERS).with(Features::EARLY_LOG);
    if session.features().have(USED) {
        record_begin(session, state);
    }
}

#[cold]
fn record_begin(session: &Session, state: &SharedStreamState) {
    otel::begin(session, &mut state.borrow_mut());
    filter::begin(session, state);
    instrumentation::begin(session, &state.borrow());
    conclude::log_step(session, state, Origin::Accept);
}

/// Rules on bytes have let a request pass, or it has ended before: it counts as one.
#[inline]
pub(super) fn request_counted(session: &Session, state: &mut StreamState) {
    metrics::request(session);
    tracking::request(session, state);
}

/// A request has its backend, and the features of both proxies. Returns whether the frontend's filters ask agents about that.
#[inline]
pub(super) fn routed(session: &Session, state: &SharedStreamState, backend: &Proxy, features: Features) -> bool {
    metrics::backend(&session.worker, backend);
    features.have(Features::SPANS.with(Features::FILTERS)) && record_route(session, state, backend)
}

#[cold]
fn record_route(session: &Session, state: &SharedStreamState, backend: &Proxy) -> bool {
    let asks_agents = filter::choose(session, state, backend);
    instrumentation::route(session, &state.borrow());
    asks_agents
}

/// The rules of a frontend are about to look at a request.
#[inline]
pub(super) fn request_rules_begin(session: &Session, state: &SharedStreamState) {
    if session.features().have(Features::SPANS) {
        instrumentation::fire(session, &state.borrow(), &[OtelEvent::FrontendHttpRequest]);
    }
}

/// A request has a link to a server: its head is about to be written.
#[inline]
pub(super) fn connected(session: &Session, state: &SharedStreamState, features: Features) {
    const USED: Features = Features::SPANS.with(Features::EARLY_LOG).with(Features::PERSISTENCE);
    if features.have(USED) {
        record_connection(session, state);
    }
}

#[cold]
fn record_connection(session: &Session, state: &SharedStreamState) {
    conclude::log_step(session, state, Origin::Connect);
    sticking::remember(session, &state.borrow());
    otel::send(&mut state.borrow_mut());
    instrumentation::send(session, state);
}

/// The head of a server's answer is complete, and rules are about to look at it.
#[inline]
pub fn answer_received(session: &Session, state: &mut StreamState, status: u16) {
    const USED: Features = Features::SPANS
        .with(Features::FILTERS)
        .with(Features::RULES)
        .with(Features::PERSISTENCE)
        .with(Features::CAPTURES);
    state.timings.response = Some(rt::now());
    state.server_status = Some(status);
    if state.features.have(USED) {
        record_answer(session, state, status);
    }
}

#[cold]
fn record_answer(session: &Session, state: &mut StreamState, status: u16) {
    filter::judge(state);
    tracking::answer(session, state, status);
    sticking::answer(session, state);
    if let Some(plan) = session.proxy().frontend.as_ref().and_then(|frontend| frontend.captures.as_ref()) {
        state.captures.borrow_mut().take_response(plan, &state.response);
    }
    instrumentation::answer(session, state);
}

/// The head of an answer is queued for the client: `head` bytes.
#[inline]
pub(super) fn answer_begun(session: &Session, state: &SharedStreamState, head: usize) {
    if session.features().have(Features::EARLY_LOG) {
        conclude::log_answer(session, state, head);
    }
}

/// A stream has ended: its counters are settled. Its log line is written later.
#[inline]
pub(super) fn ended(session: &Session, state: &mut StreamState) {
    const USED: Features = Features::SPANS.with(Features::RULES);
    metrics::stream(session, state);
    tracing::ended(session, state);
    observing::end(session, state);
    if state.features.have(USED) {
        record_end(session, state);
    }
}

#[cold]
fn record_end(session: &Session, state: &mut StreamState) {
    otel::conclude(session, state);
    instrumentation::conclude(session, state);
    if session.log().has_expressions() {
        tracking::settle(session, state);
    } else {
        tracking::conclude(session, state);
    }
}
