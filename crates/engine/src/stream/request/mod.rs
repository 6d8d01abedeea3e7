//! The head of an HTTP request, from its first byte to its dispatch. Must never access a body.

pub(super) mod actions;
mod authorization;
pub(super) mod body;
pub mod budget;
pub mod buffering;
pub(super) mod decompression;
pub mod evaluate;
pub mod forwarded;
pub mod head_limits;
pub mod header_validation;
pub(super) mod outgoing_head;
pub mod password_check;
mod permission;
pub(super) mod request_target;
pub(super) mod request_waits;
pub mod route;
pub mod rules;
pub mod script;
pub(crate) mod spoe;
pub(super) mod switching;
mod undecided;

use std::task::Poll;

use conn::h1::{self, HeadLimits, Scan, UnreadBody, prepared_answer};
use expression::record::Origin;
use policy::program::{Features, Proxy};
use policy::rule::Reply;

use crate::session::Session;
use crate::session::task::StreamTask;
use crate::stream::client::Client;
use crate::stream::client::client_abort::LEFT;
use crate::stream::client::content::{self, Stopped};
use crate::stream::context::RequestContext;
use crate::stream::exchange::dispatch;
use crate::stream::record::{capture_errors, metrics, otel, tracing, tracking};
use crate::stream::reply::{Answer, cut, finish, reply_malformed, reply_unread};
use crate::stream::request::evaluate::EvalContext;
use crate::stream::request::head_limits::head_limits;
use crate::stream::request::request_target::origin_form;
use crate::stream::request::rules::request::RequestEnd;
use crate::stream::{conclude, stages};
use crate::stream_state::{Cause, Outcome, Phase, StreamState};
use crate::worker::SharedStreamState;

/// Result of receiving a request's head.
enum ReceivedRequest {
    Head(UnreadBody),
    Nothing,
    /// The client has disconnected between two requests.
    Silence,
    /// The client has exceeded the limit of glitches.
    Cut,
    Failed {
        outcome: Outcome,
        status: u16,
    },
}

/// Records the time at which the stream began, and its identifier, or the number of requests of its connection before it.
fn note_begin(client: &Client, state: &mut StreamState) {
    state.timings.start = client.since;
    state.info.start_date = client.since_date;
    state.answer.status = -1;
    state.info.first = client.served == 0;
    state.info.client_streams = client.conn.stream_id().unwrap_or(client.served);
    if client.conn.has_received() {
        state.timings.first_byte.get_or_insert_with(rt::now);
    }
}

/// Serves the request that has begun to arrive.
pub async fn serve(session: &StreamTask, client: &mut Client) {
    let (state, begun) = client.begin(session);
    let mut context = RequestContext { session, client, state };
    note_begin(context.client, &mut context.state.borrow_mut());
    let received = receive(&mut context).await;
    if !begun && !matches!(received, ReceivedRequest::Nothing | ReceivedRequest::Silence) {
        context.state.borrow_mut().info.number = session.worker.process.number_stream();
    }
    let body = match received {
        // It began in TCP mode: its rules have run, and the process has counted it.
        ReceivedRequest::Head(body) if begun => {
            metrics::upgraded(session);
            otel::begin(session, &mut context.state.borrow_mut());
            body
        }
        ReceivedRequest::Head(body) => {
            let proxy = session.proxy();
            stages::begun(session, &context.state);
            if !proxy.rules.request_content.is_empty() {
                let Client { conn, timer, .. } = &mut *context.client;
                let (rules, delay) = proxy.rules.on_request_bytes();
                let inspected =
                    rt::boxed(content::http_request(session, conn, timer, &context.state, rules, delay)).await;
                if let Err(stopped) = inspected {
                    return rt::boxed(stop(context, stopped, body)).await;
                }
            }
            let known = &mut *context.state.borrow_mut();
            known.info.inspected = true;
            stages::request_counted(session, known);
            body
        }
        ReceivedRequest::Silence => {
            context.client.drop_connection();
            return session.end(context.state);
        }
        ReceivedRequest::Nothing => return session.end(context.state),
        ReceivedRequest::Cut => return cut(session, context.state, Outcome::new(Cause::Proxy, Phase::Request)),
        ReceivedRequest::Failed { outcome, status } => {
            conclude::learn_destination(session);
            if begun {
                metrics::upgraded(session);
                finish_upgrade(&context.state);
            } else {
                stages::request_counted(session, &mut context.state.borrow_mut());
                // As in HAProxy, a timeout is not an error of the context.client.
                if outcome.cause != Cause::ClientTimeout {
                    tracking::wrong_request(session, &context.state.borrow());
                }
                finish(&context.state, outcome, i32::from(status));
            }
            return rt::boxed(reply_malformed(context, status)).await;
        }
    };
    if session.features().have(OWN_ANSWERS)
        && let Some(own) = own_answer(session, &context.state)
    {
        return rt::boxed(answer_itself(context, own, body)).await;
    }
    let RequestContext { session, client, state } = context;
    dispatch::dispatch(session, client, state, body).await;
}

/// Features by which a frontend answers a request before its rules, or records it.
const OWN_ANSWERS: Features =
    Features::CAPTURES.with(Features::MONITORING).with(Features::PROOFS).with(Features::EARLY_LOG);

/// A response of a frontend before its rules.
enum OwnAnswer {
    /// Response to a monitoring request.
    Monitoring,
    /// Key authorization for an ACME challenge.
    Proof(Reply<'static>),
}

/// Captures values of a request, and returns the response of the frontend itself, if there is one.
#[cold]
fn own_answer(session: &Session, state: &SharedStreamState) -> Option<OwnAnswer> {
    if let Some(plan) = session.proxy().frontend.as_ref().and_then(|frontend| frontend.captures.as_ref()) {
        let state = state.borrow();
        state.captures.borrow_mut().take_request(plan, &state.request);
    }
    if is_monitor(session.proxy(), state) {
        return Some(OwnAnswer::Monitoring);
    }
    let proof = proof(session, state);
    if proof.is_none() {
        conclude::log_step(session, state, Origin::Request);
    }
    proof.map(OwnAnswer::Proof)
}

/// Answers a request before the rules of its frontend.
async fn answer_itself(context: RequestContext<'_>, own: OwnAnswer, body: UnreadBody) {
    match own {
        OwnAnswer::Monitoring => monitor(context, body).await,
        OwnAnswer::Proof(text) => reply_unread(context, Answer::new(200, Some(text)), body).await,
    }
}

/// Ends a request that content rules have rejected.
async fn stop(context: RequestContext<'_>, stopped: Stopped, body: UnreadBody) {
    match stopped {
        Stopped::Cut(outcome) => {
            context.client.drop_connection();
            // Content rules run before the request counts as received.
            context.state.borrow_mut().forget_request();
            cut(context.session, context.state, outcome);
        }
        Stopped::Ended(ending) => end(context, RequestEnd::Ended(*ending), body).await,
        Stopped::Left => end(context, RequestEnd::Failed(LEFT), body).await,
    }
}

/// Ends a request before its HTTP rules.
async fn end(context: RequestContext<'_>, over: RequestEnd<'_>, body: UnreadBody) {
    context.state.borrow_mut().info.inspected = true;
    stages::request_counted(context.session, &mut context.state.borrow_mut());
    rules::request::end(context, over, body).await;
}

/// Reads and parses until the head is complete.
async fn receive(context: &mut RequestContext<'_>) -> ReceivedRequest {
    let http = &context.session.proxy().http;
    let limits = HeadLimits {
        accept_unsafe: http.accept_unsafe_request,
        keep_proxy_connection: http.use_proxy_header,
        ..head_limits(&context.session.generation().program.global)
    };
    let mut scan = Scan::default();
    let timeouts = &context.session.proxy().timeouts;
    // The time of the first request begins at the accept, that of others at their first byte.
    let begin = if context.client.served == 0 { context.client.ready } else { rt::now() };
    let deadline = timeouts.request().map(|limit| begin + limit);
    let mut armed = false;
    std::future::poll_fn(|cx| {
        let received = context.client.conn.poll_head(cx, &limits, &mut scan, &mut context.state.borrow_mut().request);
        let silent = !context.client.conn.has_received() && (context.client.served > 0 || http.ignore_probes);
        match received {
            Poll::Ready(h1::ReadResult::Head { glitch: true, .. }) if record_glitch(context.session) => {
                Poll::Ready(ReceivedRequest::Cut)
            }
            Poll::Ready(h1::ReadResult::Head { body, length, .. }) => {
                stages::head_received(context.session, &mut context.state.borrow_mut(), length);
                Poll::Ready(ReceivedRequest::Head(body))
            }
            Poll::Ready(h1::ReadResult::Invalid { status, fault }) => {
                if let Some(fault) = fault {
                    capture_errors::request(context.session, fault, context.client.conn.received());
                }
                Poll::Ready(refuse(context.session, &context.state, status))
            }
            Poll::Ready(h1::ReadResult::Closed) if silent => Poll::Ready(ReceivedRequest::Silence),
            Poll::Ready(h1::ReadResult::Closed) => {
                let outcome = Outcome::new(Cause::Client, Phase::Request);
                Poll::Ready(ReceivedRequest::Failed { outcome, status: 400 })
            }
            Poll::Pending => {
                if context.client.conn.has_received() {
                    context.state.borrow_mut().timings.first_byte.get_or_insert(rt::now());
                }
                if !armed {
                    armed = true;
                    context.client.timer.arm(deadline);
                }
                context.client.timer.poll_expired(cx).map(|()| {
                    if silent {
                        return ReceivedRequest::Nothing;
                    }
                    let outcome = Outcome::new(Cause::ClientTimeout, Phase::Request);
                    ReceivedRequest::Failed { outcome, status: 408 }
                })
            }
        }
    })
    .await
}

/// Records invalid data in place of a request.
#[cold]
fn refuse(session: &Session, state: &SharedStreamState, status: u16) -> ReceivedRequest {
    if !session.has_several() {
        tracking::glitches(session, 1);
    }
    let state = &mut *state.borrow_mut();
    state.timings.first_byte.get_or_insert(rt::now());
    tracing::refused(session, state, status);
    ReceivedRequest::Failed { outcome: Outcome::new(Cause::Proxy, Phase::Request), status }
}

/// Counts a glitch: a request that is accepted only by an option. Returns whether the client has exceeded the limit.
#[cold]
fn record_glitch(session: &Session) -> bool {
    tracking::glitches(session, 1);
    tracking::reaches_glitch_limit(session)
}

/// Ends a connection that does not begin with an expected protocol. As in HAProxy, it is not counted as a request, and the
/// client gets no response.
pub fn refuse_silently(session: &StreamTask, client: &mut Client) {
    let (state, begun) = client.begin(session);
    note_begin(client, &mut state.borrow_mut());
    conclude::learn_destination(session);
    if begun {
        finish_upgrade(&state);
    } else {
        state.borrow_mut().info.number = session.worker.process.number_stream();
        finish(&state, Outcome::new(Cause::Proxy, Phase::Request), 0);
    }
    conclude::conclude(session, state);
}

/// Ends a stream that began in TCP mode and was not followed by a request: it is logged as rejected by the proxy, regardless of
/// the page sent to the client.
fn finish_upgrade(state: &SharedStreamState) {
    state.borrow_mut().route.backend = None;
    finish(state, Outcome::new(Cause::Proxy, Phase::Request), 0);
}

/// Ends a new connection whose client sent nothing in time.
pub async fn expired(session: &StreamTask, client: &mut Client) {
    let (state, begun) = client.begin(session);
    conclude::learn_destination(session);
    if begun {
        finish_upgrade(&state);
    } else {
        {
            let state = &mut *state.borrow_mut();
            state.info.number = session.worker.process.number_stream();
            state.timings.start = client.since;
            state.info.start_date = client.since_date;
        }
        stages::request_counted(session, &mut state.borrow_mut());
        finish(&state, Outcome::new(Cause::ClientTimeout, Phase::Request), 408);
    }
    reply_malformed(RequestContext { session, client, state }, 408).await;
}

/// Compares a URI that begins with a slash with the path and query of the target, others with the whole target.
fn is_monitor(proxy: &Proxy, state: &SharedStreamState) -> bool {
    let Some(uri) = &proxy.monitor_uri else { return false };
    let request = &state.borrow().request;
    let target = if uri.starts_with(b"/") { origin_form(request.target()) } else { request.target() };
    target == &**uri
}

/// Path of ACME challenges (RFC 8555, section 8.3).
const PROOFS: &[u8] = b"/.well-known/acme-challenge/";

/// Returns the response to an ACME server that validates a challenge of a certificate that Weir maintains.
fn proof(session: &Session, state: &SharedStreamState) -> Option<Reply<'static>> {
    let acme = &session.worker.process.upkeep.acme;
    if !acme.is_asked() {
        return None;
    }
    let state = state.borrow();
    let token = origin_form(state.request.target()).strip_prefix(PROOFS)?;
    let body = acme.answer(token, state.request.host())?;
    Some(Reply::new(prepared_answer::plain_text(&body)))
}

/// Answers a monitoring request; it is not logged.
async fn monitor(context: RequestContext<'_>, body: UnreadBody) {
    let status = {
        let state = context.state.borrow();
        let proxy = context.session.proxy();
        let view = EvalContext::request(context.session, &state);
        let fails = !proxy.monitor_fail.is_empty()
            && view.lend(|context| proxy.monitor_fail.iter().any(|condition| condition.holds(context)));
        if fails { 503 } else { 200 }
    };
    metrics::monitored(context.session, status);
    reply_unread(context, Answer { logged: false, ..Answer::new(status, None) }, body).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_compared_by_its_path() {
        for (target, path) in [
            ("/alive", "/alive"),
            ("/alive?x=http://y", "/alive?x=http://y"),
            ("http://a.example/alive", "/alive"),
            ("https://a.example:8443/alive?x", "/alive?x"),
            ("http://a.example", "/"),
            ("*", "*"),
            ("a.example:443", "a.example:443"),
        ] {
            assert_eq!(origin_form(target.as_bytes()), path.as_bytes(), "{target}");
        }
    }
}
