//! The plan of a request that is forwarded: properties that all attempts share, the encoding of its head for a server, and the end
//! of an answered request. Must never run an exchange.

use std::sync::Arc;
use std::time::Duration;

use balance::Subject;
use base::buffer::Buffer;
use config::spec::{CloseMode, RetryOn, SpliceSpec};
use conn::carrier::RequestFormat;
use conn::exchange::{Coding, RequestBody, RequestLine};
use conn::flow::{FlowError, Trailers};
use conn::h1::{self, BodyEnd, HeadLimits, Spelling, UnreadBody};
use conn::link::Link;
use expression::sample::Direction;
use policy::program::{Backend, Features, Proxy, Server};
use policy::rule::SelectedServer;
use wire::http::Head;

use crate::fcgi_request::FcgiParameters;
use crate::filter::Filters;
use crate::orders::Orders;
use crate::service::ejections;
use crate::session::Session;
use crate::stream::client::keep_or_close::continue_or_end;
use crate::stream::client::{Client, tcp_info, tunnel};
use crate::stream::context::{RequestContext, Route};
use crate::stream::exchange::{Terms, fcgi, filter, websocket};
use crate::stream::record::tracing;
use crate::stream::reply::keeps_client;
use crate::stream::request::evaluate::EvalContext;
use crate::stream::request::head_limits::head_limits;
use crate::stream::request::{body, outgoing_head};
use crate::stream::server::connect;
use crate::stream::server::link_reuse::keep_link;
use crate::stream::server::private_connections::{self, AuthenticationScope};
use crate::stream::server::server_target::Target;
use crate::stream::stages;
use crate::stream_state::failure::Failure;
use crate::stream_state::{Cause, Outcome, Phase, StreamState};
use crate::worker::{SharedStreamState, Slot};

/// The head of the request does not fit in the buffer.
const UNFIT: Failure = Failure { outcome: Outcome::new(Cause::Proxy, Phase::Request), status: 400, page: true };

/// Properties that all attempts of a request share.
pub(super) struct Plan<'s> {
    pub(super) route: Route<'s>,
    pub(super) filters: Option<Filters>,
    /// SPOE agents are asked once the request has a server (`on-server-session`).
    pub(super) asks_agents: bool,
    /// The server is asked to close the connection after the answer.
    pub(super) close_server: bool,
    /// Hash for load balancing.
    pub(super) hash: Option<u32>,
    /// Result of the rules of the FastCGI application, if the backend has one.
    fcgi: Option<FcgiParameters>,
}

/// Differences of the next attempt from the first one.
#[derive(Default)]
pub(super) struct RetryState {
    /// The slot that it keeps.
    pub(super) held: Option<Slot>,
    /// Only a new connection may be used.
    pub(super) fresh: bool,
    /// The server to avoid.
    pub(super) exclude: Option<usize>,
}

impl<'s> Plan<'s> {
    /// Prepares the request's head for servers, and determines the properties of all attempts.
    pub(super) fn of(context: &RequestContext<'_>, route: Route<'s>) -> Self {
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

    /// Starts the flow of the request's body, or of the data that replaces it.
    ///
    /// # Errors
    /// The received part of the body is malformed.
    pub(super) fn start_body(
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
    pub(super) fn request<'r>(
        &self,
        context: &'r mut RequestContext<'_>,
        up: Option<&'r mut RequestBody>,
        bound: Option<SelectedServer>,
        turn: &RetryState,
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
            body: up,
            timer: &mut context.client.timer,
            prefer: private_connections::preference(context.session, proxy, backend),
            exclude: turn.exclude,
            hash: self.hash,
            bound,
            fresh: turn.fresh,
            first: context.client.served == 0,
            features: self.route.features,
        }
    }

    /// Whether the request's head contains `Connection: close` for the server.
    pub(super) fn says_close(&self) -> bool {
        self.close_server && !self.route.proxy.http.pretend_keepalive
    }

    /// Writes the request's head in front of its body, for the server of the link that was obtained.
    ///
    /// # Errors
    /// The head does not fit in the buffer, or cannot be encoded for an application.
    pub(super) fn write_request(
        &self,
        context: &RequestContext<'_>,
        up: &mut RequestBody,
        target: &Target,
    ) -> Result<(), Failure> {
        if self.route.backend.limits.retry_on.keeps_request() && !up.is_finished() && !up.is_recorded() {
            up.record();
        }
        let format = target.link.carrier.request_format();
        let coding = if format.has_chunks() { Coding::Kept } else { self.keep_body(up) };
        up.set_coding(coding);
        let length = match format {
            RequestFormat::Fcgi => up.known_length(context.state.borrow().request.framing, &context.client.conn),
            RequestFormat::H1 | RequestFormat::H2 | RequestFormat::H3 => None,
        };
        self.write_head(context, target, length, up.head_mut())
    }

    /// Writes the request's head for the server of the link that was obtained. `length`: that of its body, for an application.
    ///
    /// # Errors
    /// As [`Plan::write_request`]; nothing was written.
    pub(super) fn write_head(
        &self,
        context: &RequestContext<'_>,
        target: &Target,
        length: Option<u64>,
        head: &mut Buffer,
    ) -> Result<(), Failure> {
        let Route { proxy, backend, features } = self.route;
        stages::connected(context.session, &context.state, features);
        let format = target.link.carrier.request_format();
        let server = &backend.servers[target.slot.server()];
        if let (RequestFormat::Fcgi, Some(app), Some(prepared)) = (format, &backend.fcgi, &self.fcgi) {
            let state = context.state.borrow();
            tracing::application(context.session, &state);
            let closes = self.says_close();
            fcgi::write_request(context.session, &state, app, prepared, length, closes, head)?;
        } else {
            encode_head(&context.state, proxy, server, format, self.says_close(), head).map_err(|_| UNFIT)?;
        }
        tracing::sent(context.session, &context.state.borrow());
        Ok(())
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
}

/// Returns the hash for load balancing.
fn recognise(session: &Session, backend: &Backend, state: &StreamState, client: &Client) -> Option<u32> {
    let recogniser = backend.recogniser.as_ref()?;
    let request = &state.request;
    let bytes = client.conn.first_payload(request.framing);
    recogniser.hash(&Subject { source: state.source(session), request: Some(request), bytes })
}

/// Whether the server is asked to close the connection after the answer.
fn closes_server(frontend: &Proxy, backend: &Proxy) -> bool {
    backend.close_mode != CloseMode::KeepAlive || frontend.close_mode == CloseMode::ServerClose
}

/// Returns the parameters of an exchange over a link.
pub(super) fn terms(
    session: &Session,
    route: Route<'_>,
    state: &SharedStreamState,
    link: &Link,
    close_server: bool,
) -> Terms {
    let (proxy, Route { proxy: backend_proxy, backend, features }) = (session.proxy(), route);
    let state = &*state.borrow();
    let request = &state.request;
    let orders = features.have(Features::RULES).then(|| state.rules.orders.get());
    let retries = orders.and_then(|orders| orders.retries).unwrap_or(backend.retries);
    let never_retry = orders.is_some_and(|orders| orders.never_retry);
    let has_retries = state.attempts.retries < retries && !never_retry;
    let limits = answer_limits(session, backend_proxy, request);
    let client = orders.map_or(proxy.timeouts.client, |orders| orders.timeouts.client_timeout(proxy));
    Terms {
        client,
        upload: client,
        server: server_timeout(orders, backend_proxy),
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

/// Returns the limits of the head of an answer.
pub(super) fn answer_limits(session: &Session, backend: &Proxy, request: &Head) -> HeadLimits {
    HeadLimits {
        accept_unsafe: backend.http.accept_unsafe_response,
        keep_proxy_connection: session.proxy().http.asks_as_proxy(request),
        ..head_limits(&session.generation().program.global)
    }
}

/// Returns the timeout of a server; `orders`: what rules have set.
pub(super) fn server_timeout(orders: Option<Orders>, backend: &Proxy) -> Option<Duration> {
    orders.map_or(backend.timeouts.server, |orders| orders.timeouts.server_timeout(backend))
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

/// Whether one of both sides has splicing enabled for a direction.
pub fn splices(frontend: &Proxy, backend: &Proxy, direction: impl Fn(&SpliceSpec) -> bool) -> bool {
    [frontend, backend].iter().any(|proxy| proxy.options.splice.auto || direction(&proxy.options.splice))
}

/// Returns the handling of the trailers of one direction.
pub fn trailers(dropped: bool, spelling: Option<&Arc<Spelling>>) -> Trailers {
    match (dropped, spelling) {
        (true, _) => Trailers::Drop,
        (false, Some(spelling)) => Trailers::Spell(Arc::clone(spelling)),
        (false, None) => Trailers::Pass,
    }
}

/// Ends a request whose answer was sent to its client: keeps or closes the link of the server. `end`: the request was read to its
/// end, and the client's connection continues.
pub(super) fn answered(
    context: RequestContext<'_>,
    plan: &Plan<'_>,
    target: Target,
    reusable: bool,
    end: Option<BodyEnd>,
) {
    give_back(context.session, plan, &context.state, target, reusable);
    continue_or_end(context.conclude(), end);
}

/// Keeps or closes the link of a server that has answered, and releases its slot.
pub(super) fn give_back(session: &Session, plan: &Plan<'_>, state: &SharedStreamState, target: Target, reusable: bool) {
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
