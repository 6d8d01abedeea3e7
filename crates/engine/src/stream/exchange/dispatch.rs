//! Forwards a request: backend, link, exchange, reuse or end of both connections. Must never touch a body.

use std::sync::Arc;

use balance::Subject;
use base::buffer::Buffer;
use config::spec::{CloseMode, RetryOn, SpliceSpec};
use conn::carrier::RequestFormat;
use conn::exchange::{Coding, RequestBody, RequestLine};
use conn::flow::{FlowError, Trailers};
use conn::h1::{self, HeadLimits, Spelling, UnreadBody};
use conn::link::Link;
use conn::upstream::Upstream;
use expression::sample::Direction;
use policy::program::{Backend, Features, Proxy, Server};
use policy::rule::SelectedServer;
use wire::http::Head;

use crate::fcgi_request::FcgiParameters;
use crate::filter::Filters;
use crate::service::ejections;
use crate::session::Session;
use crate::stream::client::keep_or_close::{continue_or_end, end_after, leave};
use crate::stream::client::tunnel::{self, Tunnelled};
use crate::stream::client::{Client, tcp_info};
use crate::stream::context::RequestContext;
use crate::stream::exchange::{End, Exchange, ExchangeResult, Terms, fcgi, filter, service_exchange, websocket};
use crate::stream::record::{metrics, otel, tracing};
use crate::stream::reply::ending::{AnswerTiming, Ending};
use crate::stream::reply::{Answer, cut, finish, keeps_client, reply, reply_broken, reply_error, reply_refused};
use crate::stream::request::evaluate::EvalContext;
use crate::stream::request::head_limits::head_limits;
use crate::stream::request::route::{self, Route};
use crate::stream::request::rules::request as request_rules;
use crate::stream::request::{body, outgoing_head};
use crate::stream::server::hedging::Hedge;
use crate::stream::server::link_reuse::keep_link;
use crate::stream::server::private_connections::{self, AuthenticationScope};
use crate::stream::server::server_target::Target;
use crate::stream::server::{connect, observe, persistence};
use crate::stream::stages;
use crate::stream_state::failure::Failure;
use crate::stream_state::{Cause, Outcome, Phase, StreamState};
use crate::worker::{SharedStreamState, Slot};

/// Evaluating the expressions that forwarding needs has exceeded the budget of the request.
const EXHAUSTED: Failure = Failure { outcome: Outcome::new(Cause::Internal, Phase::Request), status: 500, page: true };

/// An internal error of Weir.
const FAULT: Outcome = Outcome::new(Cause::Internal, Phase::Request);

/// The head of the request does not fit in the buffer.
const UNFIT: Failure = Failure { outcome: Outcome::new(Cause::Proxy, Phase::Request), status: 400, page: true };

/// Forwards a request to its backend, and the answer to the client. The parts of the context are parameters of their own: a future
/// that begins with a struct is copied as a whole, all of its kilobyte, when its caller stores it.
pub async fn dispatch(session: &Session, client: &mut Client, state: SharedStreamState, body: UnreadBody) {
    let context = RequestContext { session, client, state };
    let (route, mut context, body) = match route::at_once(&context) {
        Some(route) => (route, context, body),
        None => match route::boxed(context, body).await {
            Some(routed) => routed,
            None => return,
        },
    };
    if context.client.is_withdrawn {
        return withdraw(context);
    }
    let refused = match outgoing_head::change(context.session, route.features) {
        true => outgoing_head::pass(context.session, &mut context.client.conn, &context.state, route.proxy).await,
        false => None,
    };
    let plan = Plan::of(&context, route);
    let mut up = RequestBody::idle();
    if plan.start_body(&mut context, &mut up, body).is_err() {
        return rt::boxed(reply_broken(context)).await;
    }
    let persists = route.features.have(Features::PERSISTENCE);
    let bound = if persists { persistence::bind_request(&context, route.proxy, route.backend) } else { None };
    let exhausted = || context.state.borrow().rules.exhausted.get().then(|| EXHAUSTED.into());
    if let Some(refused) = refused.or_else(exhausted) {
        return rt::boxed(reply_refused(context, refused, up)).await;
    }
    let (mut turn, mut place) = (RetryState { held: None, fresh: false, exclude: None }, None);
    loop {
        let mut request = plan.request(&mut context, &mut up, bound, &mut turn);
        if let Err(begun) = request.begin(turn.held.take(), &mut place) {
            let obtained = rt::boxed_with((&mut request, begun), |(request, begun)| request.obtain(begun)).await;
            match obtained {
                Ok(target) => place = Some(target),
                Err(refusal) => return rt::boxed(service_exchange::refuse(context, refusal, up)).await,
            }
        }
        if plan.asks_agents {
            rt::boxed(plan.tell_agents(&mut context)).await;
        }
        let Some(target) = &mut place else { return cut(context.session, context.state, FAULT) };
        if let Err(failure) = plan.write_head(&context, &mut up, target) {
            context.state.borrow_mut().attempts.counts = place.take().map(|target| target.slot.release());
            return rt::boxed(reply_error(context, failure, up)).await;
        }
        tracing::sent(context.session, &context.state.borrow());
        let ended = plan.exchange(&mut context, bound, &mut up, target).await;
        let Some(target) = place.take() else { return cut(context.session, context.state, FAULT) };
        if matches!(ended.end, End::Replay | End::Retry { .. }) && !up.rewind() {
            // The part of the body that was sent is not recorded.
            return cut(context.session, context.state, FAULT);
        }
        match ended.end {
            End::Answered | End::Validated => {
                let Some(context) = answered(context, &plan, &mut up, target, &ended) else { return };
                return rt::boxed(service_exchange::answer_validated(context, up)).await;
            }
            End::Replay => turn = RetryState { held: Some(target.abort().slot), fresh: true, exclude: None },
            End::Retry { bad_answer } => {
                turn = again(context.session, route.proxy, &context.state, target.abort(), bound, bad_answer);
            }
            End::Silent | End::Overdue | End::Overtaken => {
                drop(target.abort());
                return end_silently(context);
            }
            End::Tunnel | End::Failed { .. } => {
                return rt::boxed(end_apart(context, plan.route.proxy, target.abort(), ended, up)).await;
            }
        }
    }
}

/// Ends a request whose exchange has opened a tunnel, or has failed.
async fn end_apart(context: RequestContext<'_>, proxy: &Proxy, target: Target, ended: Exchanged, up: RequestBody) {
    if ended.end == End::Tunnel {
        let tunnelled = ended.tunnelled.map(|tunnelled| *tunnelled).unwrap_or_default();
        return tunnel::carry(context, proxy, target, tunnelled).await;
    }
    let Target { slot, link } = target;
    drop(link);
    let failed = note_failure(context.session, proxy, &context.state, slot, ended);
    service_exchange::fail_at_server(context, failed, up).await;
}

/// Ends a request that its client has reset before it was evaluated. As in HAProxy, it has no server.
#[cold]
fn withdraw(context: RequestContext<'_>) {
    finish(
        &context.state,
        Outcome::new(Cause::Client, Phase::Request),
        if context.client.conn.was_whole() { -1 } else { 400 },
    );
    context.conclude();
}

/// Ends a request without an answer to the client.
fn end_silently(context: RequestContext<'_>) {
    metrics::bytes(context.session, &mut context.state.borrow_mut());
    context.session.end(context.state);
    leave(context.client, Outcome::default(), true);
}

/// Properties that all attempts of a request share.
struct Plan<'s> {
    route: Route<'s>,
    filters: Option<Filters>,
    /// SPOE agents are asked once the request has a server (`on-server-session`).
    asks_agents: bool,
    /// The server is asked to close the connection after the answer.
    close_server: bool,
    /// Hash for load balancing.
    hash: Option<u32>,
    /// Result of the rules of the FastCGI application, if the backend has one.
    fcgi: Option<FcgiParameters>,
}

/// Differences of the next attempt from the first one.
struct RetryState {
    /// The slot that it keeps.
    held: Option<Slot>,
    /// Only a new connection may be used.
    fresh: bool,
    /// The server to avoid.
    exclude: Option<usize>,
}

/// Result of an exchange.
struct Exchanged {
    end: End,
    remains: ExchangeResult,
    /// Head and first bytes of the answer that opened a tunnel.
    tunnelled: Option<Box<Tunnelled>>,
    ending: Option<Box<Ending<'static>>>,
}

impl<'s> Plan<'s> {
    /// Prepares the request's head for servers, and determines the properties of all attempts.
    fn of(context: &RequestContext<'_>, route: Route<'s>) -> Self {
        let Route { proxy, backend, features } = route;
        let filters = if features.have(Features::FILTERS.with(Features::RULES)) {
            context.state.borrow().filters.clone()
        } else {
            None
        };
        let mut asks_agents = false;
        if let Some(filters) = &filters {
            filter::request_head(context.session, filters, &context.state);
            asks_agents = [context.session.proxy(), proxy].iter().any(|proxy| proxy.rules.spoe.is_some());
        }
        let fcgi = if features.have(Features::FCGI) { fcgi::prepare(context, backend) } else { None };
        if context.state.borrow().request.upgrade {
            websocket::add_key(&mut context.state.borrow_mut().request);
        }
        let close_server = closes_server(context.session.proxy(), proxy)
            || outgoing_head::asks_for_a_last_one(&context.state.borrow().request);
        context.state.borrow().rules.exhausted.set(false);
        let hash = match &backend.hash_key {
            None => recognise(context.session, backend, &context.state.borrow(), context.client),
            Some(key) => {
                let known = context.state.borrow();
                let view = EvalContext::request(context.session, &known).behind(context.client.conn.behind());
                connect::hash_of_key(view, backend, key)
            }
        };
        Self { route, filters, asks_agents, close_server, hash, fcgi }
    }

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

    /// Starts the flow of the request's body, or of the data that replaces it.
    ///
    /// # Errors
    /// The received part of the body is malformed.
    fn start_body(
        &self,
        context: &mut RequestContext<'_>,
        up: &mut RequestBody,
        body: UnreadBody,
    ) -> Result<(), FlowError> {
        let proxy = self.route.proxy;
        body::start(up, body, Coding::Kept, context.client, &context.state, |up, has_body| {
            filter::install(self.filters.as_ref(), Direction::Request, up, has_body);
            up.trailers = trailers(proxy.http.drop_request_trailers, proxy.http.server_spelling.as_ref());
        })?;
        if self.route.features.have(Features::SPLICING)
            && splices(context.session.proxy(), proxy, |splice| splice.request)
        {
            up.splice();
        }
        if tunnel::is_asked(&context.state.borrow().request) {
            up.open_tunnel();
        }
        Ok(())
    }

    /// Returns the context that gets a server and a link to it.
    fn request<'r>(
        &self,
        context: &'r mut RequestContext<'_>,
        up: &'r mut RequestBody,
        bound: Option<SelectedServer>,
        turn: &mut RetryState,
    ) -> connect::Request<'r>
    where
        's: 'r,
    {
        let Route { proxy, backend, .. } = self.route;
        connect::Request {
            session: context.session,
            state: &context.state,
            proxy,
            client: &mut context.client.conn,
            waits_for_bytes: false,
            body: Some(up),
            timer: &mut context.client.timer,
            prefer: private_connections::preference(context.session, proxy, backend),
            exclude: turn.exclude.take(),
            hash: self.hash,
            bound,
            fresh: turn.fresh,
            first: context.client.served == 0,
            features: self.route.features,
        }
    }

    /// Whether the request's head contains `Connection: close` for the server.
    fn says_close(&self) -> bool {
        self.close_server && !self.route.proxy.http.pretend_keepalive
    }

    /// Writes the request's head for the server of the link that was obtained.
    ///
    /// # Errors
    /// The head does not fit in the buffer, or cannot be encoded for an application.
    fn write_head(&self, context: &RequestContext<'_>, up: &mut RequestBody, target: &Target) -> Result<(), Failure> {
        let Route { proxy, backend, features } = self.route;
        stages::connected(context.session, &context.state, features);
        if backend.limits.retry_on.keeps_request() && !up.is_finished() && !up.is_recorded() {
            up.record();
        }
        let format = target.link.carrier.request_format();
        let coding = if format.has_chunks() { Coding::Kept } else { self.keep_body(up) };
        up.set_coding(coding);
        let server = &backend.servers[target.slot.server()];
        if let (RequestFormat::Fcgi, Some(app), Some(prepared)) = (format, &backend.fcgi, &self.fcgi) {
            let state = context.state.borrow();
            let length = up.known_length(state.request.framing, &context.client.conn);
            tracing::application(context.session, &state);
            return fcgi::write_request(
                context.session,
                &state,
                app,
                prepared,
                length,
                self.says_close(),
                up.head_mut(),
            );
        }
        encode_head(&context.state, proxy, server, format, self.says_close(), up.head_mut()).map_err(|_| UNFIT)
    }

    /// Records the body: a server may refuse the request while it is being sent (RFC 9113, section 8.7).
    fn keep_body(&self, up: &mut RequestBody) -> Coding {
        let limits = &self.route.backend.limits;
        let may_retry = limits.retry_on.contains(RetryOn::CONN_FAILURE) && !limits.never_retry;
        if may_retry && up.has_body() && !up.is_finished() && !up.is_recorded() {
            up.record();
        }
        Coding::Removed
    }

    /// Runs one exchange with the server of `target`. A hedged attempt that wins replaces its server and link.
    async fn exchange(
        &self,
        context: &mut RequestContext<'_>,
        bound: Option<SelectedServer>,
        up: &mut RequestBody,
        target: &mut Target,
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
                upstream.extend(!terms.has_body);
            }
            let mut exchange = Exchange::new(context.session, context.client, upstream, &context.state, terms, up);
            if let Some(input) = overtaking.take() {
                exchange.resume(input);
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

/// Returns the hash for load balancing.
fn recognise(session: &Session, backend: &Backend, state: &StreamState, client: &Client) -> Option<u32> {
    let recogniser = backend.recogniser.as_ref()?;
    let request = &state.request;
    let bytes = client.conn.first_payload(request.framing);
    recogniser.hash(&Subject { source: state.source(session), request: Some(request), bytes })
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

/// Keeps or closes the link of a server that has answered. The stream ends if the answer was sent to the client;
/// otherwise its context is returned, because something else answers the request.
fn answered<'s>(
    context: RequestContext<'s>,
    plan: &Plan<'_>,
    up: &mut RequestBody,
    target: Target,
    ended: &Exchanged,
) -> Option<RequestContext<'s>> {
    if ended.end == End::Validated {
        give_back(context.session, plan, &context.state, target, ended.remains.link_is_reusable);
        return Some(context);
    }
    // The request was read to its end, and the client's connection continues.
    let end = if ended.remains.client_goes_on {
        up.end(&mut context.client.conn)
    } else {
        end_after(context.client, &context.state, up)
    };
    give_back(context.session, plan, &context.state, target, ended.remains.link_is_reusable);
    continue_or_end(context.conclude(), end);
    None
}

/// Keeps or closes the link of a server that has answered, and releases its slot.
fn give_back(session: &Session, plan: &Plan<'_>, state: &SharedStreamState, target: Target, reusable: bool) {
    let Target { slot, mut link } = target;
    let Route { proxy, backend, features } = plan.route;
    if features.have(Features::WATCHED_RESPONSES) {
        ejections::observe(&session.worker, proxy, slot.server(), || ejections::of_answer(&state.borrow()));
        if backend.limits.hedge.is_some() && !state.borrow().attempts.hedge_won {
            session.worker.proxy_state(proxy.index).note_latency(|| ejections::took(&state.borrow()), rt::now());
        }
    }
    let asked = AuthenticationScope::by(&state.borrow());
    private_connections::note(session, asked);
    tcp_info::part_from_server(session, &mut state.borrow_mut(), link.carrier.socket());
    if reusable && link.carrier.may_follow() {
        // A shared connection does not become private: a request with authentication opens a connection of its own.
        link.private |= asked == AuthenticationScope::Connection && link.carrier.descriptor().is_some();
        keep_link(session, state, backend, &slot, link);
    } else {
        if plan.close_server {
            // The server was asked to close: nothing is lost if Weir closes first, and no port remains in TIME_WAIT.
            link.carrier.set_linger_zero();
        }
        drop(link);
    }
    state.borrow_mut().attempts.counts = Some(slot.release());
}

/// Whether one of both sides has splicing enabled for a direction.
pub fn splices(frontend: &Proxy, backend: &Proxy, direction: impl Fn(&SpliceSpec) -> bool) -> bool {
    [frontend, backend].iter().any(|proxy| proxy.options.splice.auto || direction(&proxy.options.splice))
}

/// Whether the server is asked to close the connection after the answer.
fn closes_server(frontend: &Proxy, backend: &Proxy) -> bool {
    backend.close_mode != CloseMode::KeepAlive || frontend.close_mode == CloseMode::ServerClose
}

fn terms(session: &Session, route: Route<'_>, state: &SharedStreamState, link: &Link, close_server: bool) -> Terms {
    let (proxy, Route { proxy: backend_proxy, backend, features }) = (session.proxy(), route);
    let state = &*state.borrow();
    let request = &state.request;
    let orders = features.have(Features::RULES).then(|| state.rules.orders.get());
    let retries = orders.and_then(|orders| orders.retries).unwrap_or(backend.retries);
    let never_retry = orders.is_some_and(|orders| orders.never_retry);
    let has_retries = state.attempts.retries < retries && !never_retry;
    let limits = HeadLimits {
        accept_unsafe: backend_proxy.http.accept_unsafe_response,
        keep_proxy_connection: proxy.http.asks_as_proxy(request),
        ..head_limits(&session.generation().program.global)
    };
    Terms {
        client: orders.map_or(proxy.timeouts.client, |orders| orders.timeouts.client_timeout(proxy)),
        server: orders.map_or(backend_proxy.timeouts.server, |orders| orders.timeouts.server_timeout(backend_proxy)),
        splice_response: features.have(Features::SPLICING) && splices(proxy, backend_proxy, |splice| splice.response),
        abort_on_close: backend.abortonclose,
        close_client: !keeps_client(session, request),
        close_server,
        reused: link.answers > 0,
        // Failures after which the request may be sent again, after its previous attempts.
        retry_on: if has_retries { backend.limits.retry_on } else { RetryOn::NONE },
        may_retry: has_retries && backend.limits.retry_on.contains(RetryOn::CONN_FAILURE),
        replayable: is_replayable(request) && !backend.limits.never_retry && !never_retry,
        backend: backend_proxy.index,
        ruled: true,
        logs_errors: features.have(Features::FCGI) && backend.fcgi.as_ref().is_some_and(|app| app.logs_errors),
        independent_server: backend_proxy.options.independent_streams,
        ..Terms::of_client(proxy, request, features, limits)
    }
}

/// Whether the request is idempotent (RFC 9110, section 9.2.2), and nothing but its head was sent.
fn is_replayable(request: &Head) -> bool {
    request.known_method().is_idempotent() && !request.framing.has_body()
}

/// Writes the head of the request for a server.
///
/// # Errors
/// The head does not fit in the buffer.
pub fn encode_head(
    state: &SharedStreamState,
    backend: &Proxy,
    server: &Server,
    format: RequestFormat,
    says_close: bool,
    head: &mut Buffer,
) -> Result<(), h1::Overflow> {
    let own = RequestLine {
        says_close,
        last: backend.http.send_name_header.as_deref().map(|name| (name, server.name.as_bytes())),
        spelling: backend.http.server_spelling.as_deref(),
    };
    own.encode(format, &state.borrow().request, head)
}

/// Returns the handling of the trailers of one direction.
pub fn trailers(dropped: bool, spelling: Option<&Arc<Spelling>>) -> Trailers {
    match (dropped, spelling) {
        (true, _) => Trailers::Drop,
        (false, Some(spelling)) => Trailers::Spell(Arc::clone(spelling)),
        (false, None) => Trailers::Pass,
    }
}
