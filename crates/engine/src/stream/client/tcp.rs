//! TCP sessions and tunnels: data in both directions until both sides have closed. Must never interpret the data.

use std::time::Duration;

use balance::Subject;
use base::buffer::Buffer;
use config::spec::{BalanceSpec, Mode};
use conn::duplex::Duplex;
use expression::record::{Origin, Timings};
use expression::sample::{Bytes, Direction};
use live::Observation;
use policy::program::{Frontend, MuxProtocol, Proxy};
use policy::rule::Rule;
use policy::services::ServiceRow;
use rt::LocalRc;

use crate::orders::Orders;
use crate::service::ejections;
use crate::session::Session;
use crate::session::task::StreamTask;
use crate::stream::client::content::{self, Continuation};
use crate::stream::client::tcp_transfer::{SilenceLimits, carry};
use crate::stream::client::{Client, byte_service, http, tcp_info};
use crate::stream::conclude;
use crate::stream::context::RequestContext;
use crate::stream::exchange::filter;
use crate::stream::exchange::plan::splices;
use crate::stream::record::{metrics, otel, tracing};
use crate::stream::request::evaluate::EvalContext;
use crate::stream::request::rules::cost;
use crate::stream::server::server_target::{Refusal, Target};
use crate::stream::server::{connect, persistence, sticking};
use crate::stream_state::{Cause, Outcome, Phase};
use crate::worker::SharedStreamState;

/// How a session in TCP mode continued.
enum TcpEnd {
    /// Its data was forwarded to a server until the end.
    Carried,
    /// It was upgraded to HTTP.
    Upgraded,
}

/// Serves a client in TCP mode until its connection ends; the data received so far is in the connection's input. Returns the
/// stream that has to be concluded once the connection is closed.
#[expect(clippy::manual_async_fn, reason = "the arguments of an asynchronous function lie in its future twice")]
pub fn serve<'a>(
    session: &'a LocalRc<StreamTask>,
    client: &'a mut Client,
) -> impl Future<Output = Option<SharedStreamState>> + 'a {
    async move {
        let state = begin(session);
        let inspected = if session.proxy().rules.request_content.is_empty() {
            Ok(false)
        } else {
            let arguments = (session, &mut *client, &state);
            rt::boxed_with(arguments, |(session, client, state)| async move {
                let (rules, delay) = session.proxy().rules.on_request_bytes();
                let state = SharedStreamState::clone(state);
                inspect(&mut RequestContext { session, client, state }, rules, delay).await
            })
            .await
        };
        let ended = match inspected {
            Ok(true) => Ok(TcpEnd::Upgraded),
            Ok(false) => {
                let arguments = (session, &mut *client, &state);
                rt::boxed_with(arguments, |(session, client, state)| async move {
                    let state = SharedStreamState::clone(state);
                    connect_and_carry(&mut RequestContext { session, client, state }).await
                })
                .await
            }
            Err(outcome) => Err(outcome),
        };
        let outcome = match ended {
            // The listening address allows TCP mode only (`proto none`).
            Ok(TcpEnd::Upgraded) if session.protocol() == Some(MuxProtocol::None) => NO_CONNECTION,
            Ok(TcpEnd::Upgraded) => {
                rt::boxed_with((session, client), |(session, client)| http::serve_upgraded(session, client)).await;
                return None;
            }
            Ok(TcpEnd::Carried) => Outcome::default(),
            Err(outcome) => {
                if matches!(outcome.phase, Phase::Queue | Phase::Connect) {
                    take_in(client);
                    client.drop_connection();
                }
                outcome
            }
        };
        {
            let state = &mut *state.borrow_mut();
            state.outcome = outcome;
            tcp_info::part_from_client(session, state);
        }
        Some(state)
    }
}

/// Serves the session by a service.
fn served<'a>(
    context: &'a mut RequestContext<'_>,
    service: Box<ServiceRow>,
) -> rt::Recycled<impl Future<Output = Outcome> + 'a> {
    rt::boxed_with((context, service), |(context, service)| async move { byte_service::serve(context, &service).await })
}

/// Outcome of a stream in TCP mode without a connection of its own, which cannot occur: multiplexed streams are HTTP requests.
const NO_CONNECTION: Outcome = Outcome::new(Cause::Internal, Phase::Request);

/// Reads data that is sent to no server: unread data would cause the connection to be reset, and not closed in order.
fn take_in(client: &mut Client) {
    let Some((stream, input)) = client.conn.bytes() else { return };
    if input.capacity() == 0 {
        *input = rt::buffer();
    }
    let _ = stream.try_read(input);
}

/// Starts the stream of a session in TCP mode.
fn begin(session: &StreamTask) -> SharedStreamState {
    let state = session.begin_without_requests();
    otel::begin(session, &mut state.borrow_mut());
    metrics::tcp(session);
    tracing::connection(session, &state.borrow());
    filter::begin(session, &state);
    conclude::log_step(session, &state, Origin::Accept);
    state
}

/// Runs the content rules of `proxy` over the client's data. Returns whether the session is upgraded to HTTP. A session that is
/// assigned to a service is served here to its end.
#[expect(clippy::manual_async_fn, reason = "the arguments of an asynchronous function lie in its future twice")]
fn inspect<'a>(
    context: &'a mut RequestContext<'_>,
    rules: &'a [Rule],
    delay: Option<Duration>,
) -> impl Future<Output = Result<bool, Outcome>> + 'a {
    async move {
        let Client { conn, timer, .. } = &mut *context.client;
        let (stream, input) = conn.bytes().ok_or(NO_CONNECTION)?;
        let passed = content::request(context.session, stream, input, timer, &context.state, rules, delay).await;
        if passed.is_err() {
            context.client.drop_connection();
        }
        match passed? {
            Continuation::Goes => Ok(false),
            Continuation::Upgraded => Ok(true),
            Continuation::Served(service) => Err(served(context, service).await),
        }
    }
}

/// Returns the hash for load balancing. Reads the data that has already arrived if the algorithm or the persistence uses it,
/// without waiting.
fn recognise(context: &mut RequestContext<'_>, backend: &Proxy) -> Option<u32> {
    let (client, early) = context.client.conn.bytes()?;
    let backend = backend.backend.as_ref()?;
    let reads = matches!(backend.balance, BalanceSpec::RdpCookie { .. }) || backend.persistence.rdp_cookie.is_some();
    if reads {
        if early.capacity() == 0 {
            *early = rt::buffer();
        }
        // The next read returns the end or the error again.
        let _ = client.try_read(early);
    }
    let recogniser = backend.recogniser.as_ref()?;
    recogniser.hash(&Subject {
        source: context.state.borrow().source(context.session),
        request: None,
        bytes: early.data(),
    })
}

/// Returns the index of the proxy that the switching rules choose for a session; `None`: no rule applies, and there is no
/// default.
fn switch(session: &Session, state: &SharedStreamState, own: &Frontend, data: &[u8]) -> Option<usize> {
    if !session.worker.rule_costs.is_on()
        && let Some(target) = own.switch_at_once(|proxy| session.worker.proxy_state(proxy).is_open())
    {
        return Some(target);
    }
    let state = state.borrow();
    let bytes = Bytes::new(data, true);
    let view = EvalContext { bytes, ..EvalContext::request(session, &state) };
    cost::switch(&view, own)
}

/// Returns an error if evaluations for a session have exceeded their cost limit.
fn exhaustion(state: &SharedStreamState) -> Result<(), Outcome> {
    let exhausted = state.borrow().rules.exhausted.take();
    if exhausted { Err(Outcome::new(Cause::Internal, Phase::Request)) } else { Ok(()) }
}

/// Chooses the backend of a session that its rules have accepted. `None`: the backend is in HTTP mode, and the session is
/// upgraded.
async fn choose_backend<'s>(context: &mut RequestContext<'s>) -> Result<Option<&'s Proxy>, Outcome> {
    let frontend = context.session.proxy();
    let target = frontend
        .frontend
        .as_ref()
        .and_then(|own| switch(context.session, &context.state, own, context.client.conn.received()));
    exhaustion(&context.state)?;
    let Some(backend) = target.map(|index| context.session.proxy_at(index)).filter(|proxy| proxy.backend.is_some())
    else {
        return Err(Outcome::new(Cause::Server, Phase::Connect));
    };
    context.state.borrow_mut().choose_backend(backend);
    if backend.mode == Mode::Http {
        return Ok(None);
    }
    if backend.index != frontend.index {
        context.state.borrow().order(Orders::leave_backend);
    }
    metrics::backend(&context.session.worker, backend);
    let asks_agents = filter::choose(context.session, &context.state, backend);
    if backend.index != frontend.index && (asks_agents || !backend.rules.request_content.is_empty()) {
        if let Some(events) = frontend.rules.spoe.as_ref().filter(|events| !events.backend_content.is_empty()) {
            rt::boxed(inspect(context, &events.backend_content, None)).await?;
        }
        let (rules, delay) = backend.rules.on_request_bytes();
        rt::boxed(inspect(context, rules, delay)).await?;
    }
    Ok(Some(backend))
}

/// Returns the hash for load balancing, of the configured key if there is one.
fn hash(context: &mut RequestContext<'_>, backend: &Proxy) -> Option<u32> {
    match backend.backend.as_ref().and_then(|own| Some((own, own.hash_key.as_ref()?))) {
        None => recognise(context, backend),
        Some((own, key)) => {
            let known = context.state.borrow();
            let bytes = Bytes::new(context.client.conn.received(), true);
            connect::hash_of_key(EvalContext { bytes, ..EvalContext::request(context.session, &known) }, own, key)
        }
    }
}

/// Returns the messages to agents that precede the rules over the server's data.
fn asked_before_answers<'s>(frontend: &'s Proxy, backend: &'s Proxy) -> Vec<&'s [Rule]> {
    let differs = frontend.index != backend.index;
    let of_frontend = frontend.rules.spoe.as_ref();
    let of_backend = backend.rules.spoe.as_ref().filter(|_| differs);
    let sessions = [of_frontend, of_backend].into_iter().flatten().map(|events| &*events.server_session);
    let answers = of_frontend.filter(|_| differs).map(|events| &*events.answers);
    sessions.chain(answers).filter(|rules| !rules.is_empty()).collect()
}

async fn connect_and_carry(context: &mut RequestContext<'_>) -> Result<TcpEnd, Outcome> {
    let frontend = context.session.proxy();
    let Some(backend) = choose_backend(context).await? else { return Ok(TcpEnd::Upgraded) };
    let hash = hash(context, backend);
    let Client { conn, timer, .. } = context.client;
    let bound = persistence::bind_session(context.session, &context.state, backend, conn.received());
    exhaustion(&context.state)?;
    let mut request = connect::Request {
        session: context.session,
        state: &context.state,
        proxy: backend,
        client: &mut *conn,
        waits_for_bytes: true,
        body: None,
        timer,
        prefer: None,
        exclude: None,
        hash,
        bound,
        fresh: true,
        first: true,
        features: context.state.borrow().features,
    };
    let Target { slot, mut link } = request.place().await.map_err(|Refusal { outcome, .. }| outcome)?;
    conclude::log_step(context.session, &context.state, Origin::Connect);
    sticking::remember(context.session, &context.state.borrow());
    let client_input = conn.take_received();
    let outcome = match Duplex::new(client_input, Buffer::empty(), Buffer::empty()) {
        Ok(mut duplex) => {
            if splices(frontend, backend, |splice| splice.request) {
                duplex.up.splice();
            }
            if splices(frontend, backend, |splice| splice.response) {
                duplex.down.splice();
            }
            let filters = context.state.borrow().filters.clone();
            filter::install(filters.as_ref(), Direction::Request, &mut duplex.up, true);
            let mut answers = Ok(true);
            let before = asked_before_answers(frontend, backend);
            if backend.rules.response_content.is_empty() && before.is_empty() {
                // The server's data is not waited for.
                sticking::answer_bytes(context.session, &context.state.borrow(), &[]);
            } else {
                let (client, _) = conn.bytes().ok_or(NO_CONNECTION)?;
                let server = link.carrier.transport().ok_or(NO_CONNECTION)?;
                let ends = content::Ends { client, server, timer };
                answers =
                    rt::boxed(content::response(context.session, ends, &mut duplex, &context.state, &before, backend))
                        .await;
            }
            filter::install_both(filters.as_ref(), &mut duplex);
            let limits = SilenceLimits::of_tunnel(frontend, backend);
            match answers {
                Ok(true) => carry(context, duplex, &mut link.carrier, &limits).await,
                Ok(false) => Outcome::default(),
                Err(outcome) => outcome,
            }
        }
        Err(_) => Outcome::new(Cause::Internal, Phase::Data),
    };
    tcp_info::part_from_server(context.session, &mut context.state.borrow_mut(), link.carrier.socket());
    drop(link);
    let observe = || observation(&context.state.borrow().timings, outcome);
    ejections::observe(&context.session.worker, backend, slot.server(), observe);
    context.state.borrow_mut().attempts.counts = Some(slot.release());
    if outcome == Outcome::default() { Ok(TcpEnd::Carried) } else { Err(outcome) }
}

/// Returns what a connection shows of its server: the time that connecting took, and whether the server has failed.
fn observation(timings: &Timings, outcome: Outcome) -> Observation {
    let took = timings.queued.zip(timings.connected).map(|(begun, connected)| connected.saturating_since(begun));
    Observation { took, failed: ejections::is_servers_fault(outcome) }
}
