//! The stages of a request, in their order, and the recorders that are called at each: counters, tracked entries, spans,
//! traces, log lines, filters. A stage tests once which of them the configuration uses ([`Features`]); unused recorders cost a
//! request nothing else. Must never decide anything.

use config::spec::OtelEvent;
use expression::record::Origin;
use policy::program::{Features, Proxy};

use crate::session::Session;
use crate::stream::conclude;
use crate::stream::exchange::filter;
use crate::stream::record::{instrumentation, metrics, otel, tracing, tracking};
use crate::stream::server::{observe, sticking};
use crate::stream_state::StreamState;
use crate::worker::SharedStreamState;

/// Called when the head of a request is complete; it has `length` bytes.
#[inline]
pub(super) fn head_received(session: &Session, state: &mut StreamState, length: usize) {
    let now = rt::now();
    state.timings.first_byte.get_or_insert(now);
    state.accounting.bytes.bytes_in += length as u64;
    state.timings.request = Some(now);
    state.info.has_request = true;
    tracing::request(session, state);
}

/// Called when a stream begins with a request.
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

/// Called when content rules have accepted a request, or it has ended before: it is counted as a request.
#[inline]
pub(super) fn request_counted(session: &Session, state: &mut StreamState) {
    metrics::request(session);
    tracking::request(session, state);
}

/// Called when a request has its backend, and the features of both proxies. Returns whether the frontend's filters send
/// messages to agents for that event.
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

/// Called before the rules of a frontend are run over a request.
#[inline]
pub(super) fn request_rules_begin(session: &Session, state: &SharedStreamState) {
    if session.features().have(Features::SPANS) {
        instrumentation::fire(session, &state.borrow(), &[OtelEvent::FrontendHttpRequest]);
    }
}

/// Called when a request has a server connection, before its head is encoded.
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

/// Called when the head of a server's response is complete, before its rules.
#[inline]
pub fn answer_received(session: &Session, state: &mut StreamState, status: u16) {
    const USED: Features = Features::SPANS
        .with(Features::FILTERS)
        .with(Features::RULES)
        .with(Features::PERSISTENCE)
        .with(Features::CAPTURES);
    state.timings.response = Some(rt::now());
    state.answer.server_status = Some(status);
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

/// Called when the head of a response, of `head` bytes, is queued for the client.
#[inline]
pub(super) fn answer_begun(session: &Session, state: &SharedStreamState, head: usize) {
    if session.features().have(Features::EARLY_LOG) {
        conclude::log_answer(session, state, head);
    }
}

/// Called when a stream has ended: adds to its counters. Its log line is written later.
#[inline]
pub(super) fn ended(session: &Session, state: &mut StreamState) {
    const USED: Features = Features::SPANS.with(Features::RULES);
    metrics::stream(session, state);
    tracing::ended(session, state);
    observe::end(session, state);
    if state.features.have(USED) {
        record_end(session, state);
    }
}

#[cold]
fn record_end(session: &Session, state: &mut StreamState) {
    otel::conclude(session, state);
    instrumentation::conclude(session, state);
    if session.log().has_expressions() {
        tracking::count_end(session, state);
    } else {
        tracking::conclude(session, state);
    }
}
