//! A request that a service of the process answers: the exchange with the service, and its end. Must never generate a response
//! itself.

use conn::exchange::{Coding, RequestBody};
use conn::h1::UnreadBody;
use conn::service::Service;
use conn::upstream::Upstream;
use expression::record::Origin;
use expression::sample::Direction;
use live::trace::events;

use crate::session::Session;
use crate::stream::client::Client;
use crate::stream::departure::{depart, end_after};
use crate::stream::dispatch::{Failed, fail, trailers};
use crate::stream::ending::Ending;
use crate::stream::exchange::{Begun, End, Exchange, Terms};
use crate::stream::head_limits::head_limits;
use crate::stream::reply::{keeps_client, reply_broken, reply_error, reply_refused_unread};
use crate::stream::server_target::Refusal;
use crate::stream::started_service::Started;
use crate::stream::stored::Stored;
use crate::stream::{body, cache, conclude, filter, heads, hits, tracing, validation};
use crate::stream_state::failure::Failure;
use crate::stream_state::{Cause, Outcome, Phase, ServiceName};
use crate::worker::SharedStreamState;

/// Outcome of a stream that a service answers, unless an error occurs. Rules and log lines before its end also use it.
const SERVED: Outcome = Outcome::new(Cause::Local, Phase::Request);

/// Failure of a request whose service does not exist, or fails to start.
const UNSERVED: Failure = Failure { outcome: Outcome::new(Cause::Internal, Phase::Request), status: 500, page: true };

/// Serves a request by the service of that number.
pub async fn serve(session: &Session, client: &mut Client, state: SharedStreamState, number: usize, body: UnreadBody) {
    let shared = &session.worker.process;
    let row = shared.services.names().get(number);
    let (shown, ruled) = row.map(|row| (ServiceName::Shared(row.shown.clone()), row.ruled)).unwrap_or_default();
    let start = |state: &SharedStreamState| shared.services.start(number, session, state);
    run(session, client, state, (shown, ruled, start), body).await;
}

/// Serves a request by a service that was already started.
pub async fn stream(
    session: &Session,
    client: &mut Client,
    state: SharedStreamState,
    Started { service, shown, ruled }: Started,
    body: UnreadBody,
) {
    run(session, client, state, (shown, ruled, |_: &SharedStreamState| service), body).await;
}

/// Passes the request's head to the filters, then starts the service and serves the request.
async fn run(
    session: &Session,
    client: &mut Client,
    state: SharedStreamState,
    (shown, ruled, start): (ServiceName, bool, impl FnOnce(&SharedStreamState) -> Option<Box<dyn Service>>),
    body: UnreadBody,
) {
    let refused = if ruled { heads::pass_to_service(session, &mut client.conn, &state).await } else { None };
    let started = match refused {
        Some(refused) => Err(refused),
        None => start(&state).ok_or(UNSERVED.into()),
    };
    let mut service = match started {
        Ok(service) => service,
        Err(refused) => return rt::boxed(reply_refused_unread(session, client, state, refused, body)).await,
    };
    begin(session, &state, shown);
    finish(session, client, state, (&mut *service, ruled, Begun::Nothing), body).await;
}

/// Serves a request with a stored response.
pub async fn stored(
    session: &Session,
    client: &mut Client,
    state: SharedStreamState,
    stored: Option<Stored>,
    body: UnreadBody,
) {
    let refused = heads::pass_to_service(session, &mut client.conn, &state).await;
    let mut stored = match (stored, refused) {
        (Some(stored), None) => stored,
        (_, refused) => {
            let refused = refused.unwrap_or(UNSERVED.into());
            return rt::boxed(reply_refused_unread(session, client, state, refused, body)).await;
        }
    };
    begin(session, &state, cache::SHOWN);
    match hits::answer(session, client, &state, &mut stored, &body).await {
        Ok(()) => {
            tracing::service(session, &state.borrow(), &events::APPLET_FREE);
            client.conn.release();
            conclude::conclude(session, state);
            match body.absent() {
                Ok(end) => client.keep(end),
                Err(_) => client.linger(),
            }
        }
        Err(begun) => {
            let arguments = (session, client, state, (&mut stored, begun), body);
            rt::boxed_with(arguments, |(session, client, state, (stored, begun), body)| {
                finish(session, client, state, (stored, true, begun), body)
            })
            .await;
        }
    }
}

/// Records the start of a service.
fn begin(session: &Session, state: &SharedStreamState, shown: ServiceName) {
    {
        let state = &mut *state.borrow_mut();
        state.route.service = Some(shown);
        (state.timings.queued, state.timings.connected) = (Some(rt::now()), Some(rt::now()));
        state.outcome = SERVED;
        tracing::service(session, state, &events::APPLET_NEW);
    }
    conclude::log_step(session, state, Origin::Connect);
}

/// Forwards the response of a service to the client, starting at the state of `begun`.
async fn finish(
    session: &Session,
    client: &mut Client,
    state: SharedStreamState,
    (service, ruled, begun): (&mut dyn Service, bool, Begun),
    body: UnreadBody,
) {
    let proxy = session.proxy();
    let known_filters = state.borrow().filters.clone();
    let filters = known_filters.clone().filter(|_| ruled);
    if !ruled && let Some(filters) = known_filters {
        filter::negotiate(session, &filters, &state);
    }
    let rule = trailers(proxy.http.drop_request_trailers, None);
    let mut up = RequestBody::idle();
    let started = body::start(&mut up, (body, Coding::Removed), client, &state, |up, has_body| {
        filter::install(filters.as_ref(), Direction::Request, up, has_body);
        up.trailers = rule;
    });
    if started.is_err() {
        return reply_broken(session, client, state).await;
    }
    answer(session, client, state, (service, ruled, begun), up).await;
}

/// Returns the service for a request whose server has failed with that status (`stale-if-error`). `None`: there is none, or a
/// part of the response or of the request was already forwarded.
fn fall_back(session: &Session, state: &SharedStreamState, status: i32, up: &mut RequestBody) -> Option<Started> {
    let is_there = u16::try_from(status).is_ok_and(|status| cache::has_fallback(session, &state.borrow(), status));
    if !is_there || !up.rewind() {
        return None;
    }
    up.set_coding(Coding::Removed);
    cache::stale_answer(session, &mut state.borrow_mut(), status)
}

/// Answers a request with a stored response that its server has validated.
pub async fn answer_validated(
    session: &Session,
    client: &mut Client,
    (state, mut up): (SharedStreamState, RequestBody),
) {
    let started = validation::answer(session, &mut state.borrow_mut());
    up.set_coding(Coding::Removed);
    match started {
        Some(started) => take_over(session, client, state, started, up).await,
        None => conclude::conclude(session, state),
    }
}

/// Serves a request by a service instead of its server.
async fn take_over(
    session: &Session,
    client: &mut Client,
    state: SharedStreamState,
    Started { service, shown, ruled }: Started,
    up: RequestBody,
) {
    {
        let state = &mut *state.borrow_mut();
        (state.route.service, state.outcome) = (Some(shown), SERVED);
    }
    match service {
        Some(mut service) => answer(session, client, state, (&mut *service, ruled, Begun::Nothing), up).await,
        None => conclude::conclude(session, state),
    }
}

/// Answers a request that got no server.
pub async fn refuse(
    session: &Session,
    client: &mut Client,
    state: SharedStreamState,
    refusal: Refusal,
    mut up: RequestBody,
) {
    match fall_back(session, &state, refusal.status, &mut up) {
        Some(started) => take_over(session, client, state, started, up).await,
        None => reply_error(session, client, state, refusal, up).await,
    }
}

/// Ends a request whose exchange with a server has failed.
pub async fn fail_at_server(
    session: &Session,
    client: &mut Client,
    state: SharedStreamState,
    failed: (Failed, Option<Box<Ending<'static>>>),
    mut up: RequestBody,
) {
    match fall_back(session, &state, failed.0.status.into(), &mut up) {
        Some(started) => take_over(session, client, state, started, up).await,
        None => fail(session, client, state, failed, up).await,
    }
}

/// Forwards the response of a service to the client.
async fn answer(
    session: &Session,
    client: &mut Client,
    state: SharedStreamState,
    (service, ruled, begun): (&mut dyn Service, bool, Begun),
    mut up: RequestBody,
) {
    let terms = terms(session, &state, ruled);
    let mut exchange = Exchange::new(session, client, Upstream::Service(&mut *service), &state, terms, &mut up);
    let end = match exchange.take_up(begun) {
        Some(end) => end,
        None => exchange.run().await,
    };
    let (remains, ending) = (exchange.remains(), exchange.take_ending());
    drop(exchange);
    tracing::service(session, &state.borrow(), &events::APPLET_FREE);
    match end {
        End::Answered => {
            state.borrow_mut().outcome = SERVED;
            let rest = if remains.client_goes_on { up.end(&mut client.conn) } else { end_after(client, &state, &up) };
            conclude::conclude(session, state);
            depart(client, rest);
        }
        End::Failed { outcome, status, page } => {
            let status = if remains.nothing_sent { status } else { 0 };
            // The outcome remains that of the service if a rule has replaced its response, or if the client has not waited for
            // it.
            let has_left = outcome == Outcome::new(Cause::Client, Phase::Headers);
            let outcome = if ending.is_some() || has_left { SERVED } else { outcome };
            fail(session, client, state, (Failed { outcome, status, page }, ending), up).await;
        }
        // Occur with servers only.
        End::Tunnel
        | End::Validated
        | End::Replay
        | End::Retry { .. }
        | End::Overdue
        | End::Overtaken
        | End::Silent => {
            state.borrow_mut().outcome = Outcome::new(Cause::Internal, Phase::Data);
            conclude::conclude(session, state);
        }
    }
}

fn terms(session: &Session, state: &SharedStreamState, ruled: bool) -> Terms {
    let proxy = session.proxy();
    let state = &*state.borrow();
    let (request, orders) = (&state.request, state.rules.orders.get());
    Terms {
        client: orders.timeouts.client.or(proxy.timeouts.client),
        // A service has no timeout.
        server: None,
        splice_response: false,
        abort_on_close: proxy.frontend.as_ref().is_some_and(|frontend| frontend.abortonclose),
        close_client: !keeps_client(session, request),
        close_server: false,
        reused: false,
        replayable: false,
        independent_client: proxy.options.independent_streams,
        independent_server: false,
        has_body: request.framing.has_body(),
        retry_on: config::spec::RetryOn::NONE,
        may_retry: false,
        hedge_at: None,
        backend: proxy.index,
        ruled,
        features: state.features,
        logs_errors: false,
        limits: head_limits(&session.generation().program.global),
    }
}
