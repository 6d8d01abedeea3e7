//! Forwards a request that does not stay on the straight path: attempts until one is answered or fails, and the ends of these.
//! Must never touch a body.

use conn::exchange::RequestBody;
use conn::h1::UnreadBody;
use conn::upstream::Upstream;
use policy::program::{Features, Proxy};
use policy::rule::SelectedServer;
use rt::LocalBox;

use crate::service::ejections;
use crate::session::Session;
use crate::stream::client::keep_or_close::{end_after, leave};
use crate::stream::client::tunnel::{self, Tunnelled};
use crate::stream::context::{RequestContext, Route};
use crate::stream::exchange::begun::Begun;
use crate::stream::exchange::plan::{Plan, RetryState, answered, give_back, terms};
use crate::stream::exchange::{End, Exchange, ExchangeResult, filter, service_exchange};
use crate::stream::record::{metrics, otel};
use crate::stream::reply::ending::{AnswerTiming, Ending};
use crate::stream::reply::{Answer, cut, reply, reply_broken, reply_error, reply_refused};
use crate::stream::request::body::Remainder as _;
use crate::stream::request::rules::request as request_rules;
use crate::stream::server::connect::PendingRequest;
use crate::stream::server::hedging::Hedge;
use crate::stream::server::server_target::Target;
use crate::stream::server::{connect, observe, persistence};
use crate::stream_state::failure::{Failure, FilterRejection};
use crate::stream_state::{Cause, Outcome, Phase};
use crate::worker::{SharedStreamState, Slot};

/// Result of an exchange.
struct Exchanged {
    end: End,
    remains: ExchangeResult,
    /// Head and first bytes of the answer that opened a tunnel.
    tunnelled: Option<Box<Tunnelled>>,
    ending: Option<Box<Ending<'static>>>,
}

/// The point from which an attempt continues.
#[derive(Default)]
pub(super) enum Start {
    /// It has not begun.
    #[default]
    Nothing,
    /// It has to wait for a server or a link.
    Pending(LocalBox<PendingRequest>),
    /// It has a server and a link, and its head is not written.
    Placed,
    /// The exchange with the server has begun.
    Exchange(LocalBox<Begun>),
}

/// Evaluating the expressions that forwarding needs has exceeded the budget of the request.
const EXHAUSTED: Failure = Failure { outcome: Outcome::new(Cause::Internal, Phase::Request), status: 500, page: true };

/// An internal error of Weir.
pub(super) const FAULT: Outcome = Outcome::new(Cause::Internal, Phase::Request);

/// Forwards a request from the point that its first attempt has reached, with the server and the link in `place` if it has them.
/// `refused`: the reason for which it is not forwarded.
pub(super) async fn forward(
    mut context: RequestContext<'_>,
    plan: &Plan<'_>,
    refused: Option<FilterRejection>,
    mut start: Start,
    place: &mut Option<Target>,
    body: UnreadBody,
) {
    let Route { proxy, backend, features } = plan.route;
    let mut up = RequestBody::idle();
    if plan.start_body(&mut context, &mut up, body).is_err() {
        return rt::boxed(reply_broken(context)).await;
    }
    let persists = features.have(Features::PERSISTENCE);
    let bound = if persists { persistence::bind_request(&context, proxy, backend) } else { None };
    let exhausted = || context.state.borrow().rules.exhausted.get().then(|| EXHAUSTED.into());
    if let Some(refused) = refused.or_else(exhausted) {
        return rt::boxed(reply_refused(context, refused, up)).await;
    }
    let mut turn = RetryState::default();
    loop {
        let (begun, pending) = match std::mem::take(&mut start) {
            Start::Nothing => {
                let held = turn.held.take();
                (None, plan.request(&mut context, Some(&mut up), bound, &turn).begin(held, place).err())
            }
            Start::Pending(pending) => (None, Some(pending.into_inner())),
            Start::Placed => (None, None),
            Start::Exchange(begun) => (Some(begun), None),
        };
        if let Some(pending) = pending {
            let mut request = plan.request(&mut context, Some(&mut up), bound, &turn);
            let obtained = rt::boxed_with((&mut request, pending), |(request, pending)| request.obtain(pending)).await;
            match obtained {
                Ok(target) => *place = Some(target),
                Err(refusal) => return rt::boxed(service_exchange::refuse(context, refusal, up)).await,
            }
        }
        if plan.asks_agents {
            rt::boxed(plan.tell_agents(&mut context)).await;
        }
        let Some(target) = place else { return cut(context.session, context.state, FAULT) };
        if begun.is_none()
            && let Err(failure) = plan.write_request(&context, &mut up, target)
        {
            context.state.borrow_mut().attempts.counts = place.take().map(|target| target.slot.release());
            return rt::boxed(reply_error(context, failure, up)).await;
        }
        let ended = plan.exchange(&mut context, bound, &mut up, target, begun).await;
        let Some(target) = place.take() else { return cut(context.session, context.state, FAULT) };
        if matches!(ended.end, End::Replay | End::Retry { .. }) && !up.rewind() {
            // The part of the body that was sent is not recorded.
            return cut(context.session, context.state, FAULT);
        }
        turn = match ended.end {
            End::Answered if ended.remains.client_drains => {
                return rt::boxed(plan.answered_early(context, up, target, &ended)).await;
            }
            End::Answered => return plan.answered(context, &mut up, target, &ended),
            End::Replay => RetryState { held: Some(target.abort().slot), fresh: true, exclude: None },
            End::Retry { bad_answer } => {
                again(context.session, proxy, &context.state, target.abort(), bound, bad_answer)
            }
            _ => return rt::boxed(end_apart(context, plan, target, ended, up)).await,
        };
    }
}

/// Ends a request whose exchange has ended without an answer that was sent.
async fn end_apart(context: RequestContext<'_>, plan: &Plan<'_>, target: Target, ended: Exchanged, up: RequestBody) {
    match ended.end {
        End::Validated => {
            let reusable = ended.remains.link_is_reusable;
            give_back(context.session, plan, &context.state, target, reusable);
            service_exchange::answer_validated(context, up).await;
        }
        End::Silent | End::Overdue | End::Overtaken => {
            drop(target.abort());
            end_silently(context);
        }
        End::Tunnel => {
            let tunnelled = ended.tunnelled.map(|tunnelled| *tunnelled).unwrap_or_default();
            tunnel::carry(context, plan.route.proxy, target.abort(), tunnelled).await;
        }
        End::Failed { .. } | End::Answered | End::Replay | End::Retry { .. } => {
            let Target { slot, link } = target.abort();
            drop(link);
            let failed = note_failure(context.session, plan.route.proxy, &context.state, slot, ended);
            service_exchange::fail_at_server(context, failed, up).await;
        }
    }
}

/// Ends a request without an answer to the client.
fn end_silently(context: RequestContext<'_>) {
    metrics::bytes(context.session, &mut context.state.borrow_mut());
    context.session.end(context.state);
    leave(context.client, Outcome::default(), true);
}

impl Plan<'_> {
    /// Asks the agents of both sides about a request that now has a server.
    async fn tell_agents(&self, context: &mut RequestContext<'_>) {
        let frontend = context.session.proxy();
        let backend = Some(self.route.proxy).filter(|proxy| proxy.index != frontend.index);
        for proxy in [Some(frontend), backend].into_iter().flatten() {
            let Some(events) = &proxy.rules.spoe else { continue };
            // An agent cannot end the request.
            let _ = request_rules::rule(context, &events.server_session).await;
        }
    }

    /// Ends a request whose answer was sent to its client.
    fn answered(&self, context: RequestContext<'_>, up: &mut RequestBody, target: Target, ended: &Exchanged) {
        // The request was read to its end, and the client's connection continues.
        let end = if ended.remains.client_goes_on {
            up.end(&mut context.client.conn)
        } else {
            end_after(context.client, &context.state, up.source_ended())
        };
        answered(context, self, target, ended.remains.link_is_reusable, end);
    }

    /// Ends a request that its server has answered and needs no more of: the rest is read and dropped once the server is released.
    async fn answered_early(&self, context: RequestContext<'_>, up: RequestBody, target: Target, ended: &Exchanged) {
        let session = context.session;
        give_back(session, self, &context.state, target, ended.remains.link_is_reusable);
        let client = context.conclude();
        let end = if client.conn.is_connection() { up.read(session, client).await } else { None };
        match end {
            Some(end) => client.keep(end),
            None => client.linger(),
        }
    }

    /// Runs one exchange with the server of `target`, from the point that it has reached. A hedged attempt that wins replaces its server and link.
    async fn exchange(
        &self,
        context: &mut RequestContext<'_>,
        bound: Option<SelectedServer>,
        up: &mut RequestBody,
        target: &mut Target,
        mut begun: Option<LocalBox<Begun>>,
    ) -> Exchanged {
        let Route { proxy, backend, .. } = self.route;
        let mut terms = terms(context.session, self.route, &context.state, &target.link, self.close_server);
        let hedge = Hedge {
            session: context.session,
            state: &context.state,
            proxy,
            backend,
            hash: self.hash,
            says_close: self.says_close(),
        };
        terms.hedge_at = hedge.due(bound);
        let mut overtaking = None;
        loop {
            let Target { slot, link } = &mut *target;
            let mut upstream = Upstream::of(&mut link.carrier);
            if context.state.borrow().request.upgrade {
                if context.client.conn.is_session() {
                    upstream.begin_session();
                } else {
                    upstream.extend(!terms.has_body);
                }
            }
            let mut exchange = Exchange::new(context.session, context.client, upstream, &context.state, terms, up);
            if let Some(input) = overtaking.take() {
                exchange.resume(input);
            }
            if let Some(begun) = begun.take() {
                exchange.go_on(begun.into_inner());
            }
            let mut end = exchange.run().await;
            if end == End::Overdue {
                let current = slot.server();
                end = rt::boxed_with((&hedge, &mut exchange), |(hedge, exchange)| hedge.race(exchange, current)).await;
            }
            let won = if end == End::Overtaken { exchange.take_winner() } else { None };
            let tunnelled = (end == End::Tunnel).then(|| Box::new(exchange.take_tunnel()));
            let Some(won) = won else {
                return Exchanged { end, remains: exchange.remains(), tunnelled, ending: exchange.take_ending() };
            };
            drop(exchange);
            let input = hedge.overtake(context.client, target, won);
            (terms.hedge_at, terms.reused, overtaking) = (None, target.link.answers > 0, Some(input));
        }
    }
}

/// Records that an exchange with a server has failed, and releases the server's slot.
fn note_failure(session: &Session, proxy: &Proxy, state: &SharedStreamState, slot: Slot, ended: Exchanged) -> Failed {
    let End::Failed { outcome, status, page } = ended.end else {
        return Failed { outcome: Outcome::new(Cause::Internal, Phase::Data), status: 0, page: false, ending: None };
    };
    if ejections::is_servers_fault(outcome) {
        ejections::observe(&session.worker, proxy, slot.server(), || ejections::FAILED);
    }
    state.borrow_mut().attempts.counts = Some(slot.release());
    let status = if ended.remains.nothing_sent { status } else { 0 };
    Failed { outcome, status, page, ending: ended.ending }
}

/// How an exchange failed.
pub struct Failed {
    /// Outcome for the log.
    pub outcome: Outcome,
    /// The status of the answer; 0: a part of an answer was sent, or none is to be sent.
    pub status: u16,
    /// The client gets the page for that status, or the answer with which a rule has replaced it.
    pub page: bool,
    /// The answer of a rule.
    pub ending: Option<Box<Ending<'static>>>,
}

/// Ends a request whose exchange has failed.
pub async fn fail(context: RequestContext<'_>, failed: Failed, up: RequestBody) {
    let Failed { outcome, status, page, ending } = failed;
    context.state.borrow_mut().outcome = outcome;
    if status > 0 {
        context.state.borrow_mut().answer.status = i32::from(status);
        if page {
            let text = ending.and_then(|ending| ending.text);
            return reply(context, Answer::new(status, text), up).await;
        }
    }
    let client = context.conclude();
    if ending.is_some_and(|ending| matches!(ending.manner, AnswerTiming::Silent(_))) {
        return;
    }
    leave(client, outcome, up.source_ended());
}

/// Prepares a retry (`retry-on`) with the same server, whose slot it keeps, or after a redispatch with another one.
fn again(
    session: &Session,
    proxy: &Proxy,
    state: &SharedStreamState,
    target: Target,
    bound: Option<SelectedServer>,
    bad_answer: bool,
) -> RetryState {
    let Target { slot, link } = target;
    drop(link);
    filter::restart(state);
    let kept = |slot| RetryState { held: Some(slot), fresh: true, exclude: None };
    let Some(backend) = &proxy.backend else { return kept(slot) };
    let count = |step| metrics::step(&session.worker, proxy, backend.servers.get(slot.server()), step);
    let state = &mut *state.borrow_mut();
    if bad_answer {
        observe::bad_answer(session, state);
    }
    otel::end_attempt(session, state, otel::AttemptEnd::Failed(if bad_answer { "bad_answer" } else { "retried" }));
    state.forget_answer();
    state.attempts.retries += 1;
    count(metrics::ServerEvent::Retry);
    ejections::observe(&session.worker, proxy, slot.server(), || ejections::FAILED);
    if bad_answer {
        count(metrics::ServerEvent::BadAnswer);
    }
    if connect::goes_elsewhere(backend, state, bound) {
        count(metrics::ServerEvent::Redispatch);
        RetryState { held: None, fresh: true, exclude: Some(slot.server()) }
    } else {
        kept(slot)
    }
}
