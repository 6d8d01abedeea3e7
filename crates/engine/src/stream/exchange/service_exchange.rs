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
use crate::stream::cache::stored_response::StoredResponse;
use crate::stream::cache::{self, cache_hit, validation};
use crate::stream::client::keep_or_close::{continue_or_end, end_after};
use crate::stream::conclude;
use crate::stream::context::RequestContext;
use crate::stream::exchange::forward::{Failed, fail};
use crate::stream::exchange::plan::trailers;
use crate::stream::exchange::started_service::StartedService;
use crate::stream::exchange::{End, Exchange, ServiceProgress, Terms, filter};
use crate::stream::record::tracing;
use crate::stream::reply::{keeps_client, reply_broken, reply_error, reply_refused_unread};
use crate::stream::request::head_limits::head_limits;
use crate::stream::request::{body, outgoing_head};
use crate::stream::server::server_target::Refusal;
use crate::stream_state::failure::Failure;
use crate::stream_state::{Cause, Outcome, Phase, ServiceName};
use crate::worker::SharedStreamState;

/// Outcome of a stream that a service answers, unless an error occurs. Rules and log lines before its end also use it.
const SERVED: Outcome = Outcome::new(Cause::Local, Phase::Request);

/// Failure of a request whose service does not exist, or fails to start.
const UNSERVED: Failure = Failure { outcome: Outcome::new(Cause::Internal, Phase::Request), status: 500, page: true };

/// A service that answers a request.
struct Serving<'a> {
    service: &'a mut dyn Service,
    /// Whether `http-response` rules run on its response.
    ruled: bool,
    /// Progress of its response.
    begun: ServiceProgress,
}

impl<'a> Serving<'a> {
    /// Creates the record of a service whose response has not begun.
    fn new(service: &'a mut dyn Service, ruled: bool) -> Self {
        Self { service, ruled, begun: ServiceProgress::Nothing }
    }
}

/// Serves a request by the service of that number.
pub async fn serve(context: RequestContext<'_>, number: usize, body: UnreadBody) {
    let session = context.session;
    let shared = &session.worker.process;
    let row = shared.services.names().get(number);
    let (shown, ruled) = row.map(|row| (ServiceName::Shared(row.shown.clone()), row.ruled)).unwrap_or_default();
    let start = |state: &SharedStreamState| shared.services.start(number, session, state);
    run(context, shown, ruled, start, body).await;
}

/// Serves a request by a service that was already started.
pub async fn stream(
    context: RequestContext<'_>,
    StartedService { service, shown, ruled }: StartedService,
    body: UnreadBody,
) {
    run(context, shown, ruled, |_| service, body).await;
}

/// Passes the request's head to the filters, then starts the service and serves the request.
async fn run(
    context: RequestContext<'_>,
    shown: ServiceName,
    ruled: bool,
    start: impl FnOnce(&SharedStreamState) -> Option<Box<dyn Service>>,
    body: UnreadBody,
) {
    let refused = if ruled {
        outgoing_head::pass_to_service(context.session, &mut context.client.conn, &context.state).await
    } else {
        None
    };
    let started = match refused {
        Some(refused) => Err(refused),
        None => start(&context.state).ok_or(UNSERVED.into()),
    };
    let mut service = match started {
        Ok(service) => service,
        Err(refused) => return rt::boxed(reply_refused_unread(context, refused, body)).await,
    };
    begin(context.session, &context.state, shown);
    finish(context, Serving::new(&mut *service, ruled), body).await;
}

/// Serves a request with a stored response.
pub async fn stored(mut context: RequestContext<'_>, stored: Option<StoredResponse>, body: UnreadBody) {
    let refused = outgoing_head::pass_to_service(context.session, &mut context.client.conn, &context.state).await;
    let mut stored = match (stored, refused) {
        (Some(stored), None) => stored,
        (_, refused) => {
            let refused = refused.unwrap_or(UNSERVED.into());
            return rt::boxed(reply_refused_unread(context, refused, body)).await;
        }
    };
    begin(context.session, &context.state, cache::SHOWN);
    match cache_hit::answer(&mut context, &mut stored, &body).await {
        Ok(()) => {
            tracing::service(context.session, &context.state.borrow(), &events::APPLET_FREE);
            context.client.conn.release();
            let client = context.conclude();
            match body.absent() {
                Ok(end) => client.keep(end),
                Err(_) => client.linger(),
            }
        }
        Err(begun) => {
            let arguments = (context, Serving { service: &mut stored, ruled: true, begun }, body);
            rt::boxed_with(arguments, |(context, serving, body)| finish(context, serving, body)).await;
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
async fn finish(context: RequestContext<'_>, serving: Serving<'_>, body: UnreadBody) {
    let proxy = context.session.proxy();
    let known_filters = context.state.borrow().filters.clone();
    let filters = known_filters.clone().filter(|_| serving.ruled);
    if !serving.ruled
        && let Some(filters) = known_filters
    {
        filter::negotiate(context.session, &filters, &context.state);
    }
    let rule = trailers(proxy.http.drop_request_trailers, None);
    let mut up = RequestBody::idle();
    let started = body::start(&mut up, body, Coding::Removed, context.client, &context.state, |up, has_body| {
        filter::install(filters.as_ref(), Direction::Request, up, has_body);
        up.trailers = rule;
    });
    if started.is_err() {
        return reply_broken(context).await;
    }
    answer(context, serving, up).await;
}

/// Returns the service for a request whose server has failed with that status (`stale-if-error`). `None`: there is none, or a
/// part of the response or of the request was already forwarded.
fn fall_back(
    session: &Session,
    state: &SharedStreamState,
    status: i32,
    up: &mut RequestBody,
) -> Option<StartedService> {
    let is_there = u16::try_from(status).is_ok_and(|status| cache::has_fallback(session, &state.borrow(), status));
    if !is_there || !up.rewind() {
        return None;
    }
    up.set_coding(Coding::Removed);
    cache::stale_answer(session, &mut state.borrow_mut(), status)
}

/// Answers a request with a stored response that its server has validated.
pub async fn answer_validated(context: RequestContext<'_>, mut up: RequestBody) {
    let started = validation::answer(context.session, &mut context.state.borrow_mut());
    up.set_coding(Coding::Removed);
    match started {
        Some(started) => take_over(context, started, up).await,
        None => {
            context.conclude();
        }
    }
}

/// Serves a request by a service instead of its server.
async fn take_over(
    context: RequestContext<'_>,
    StartedService { service, shown, ruled }: StartedService,
    up: RequestBody,
) {
    {
        let state = &mut *context.state.borrow_mut();
        (state.route.service, state.outcome) = (Some(shown), SERVED);
    }
    match service {
        Some(mut service) => answer(context, Serving::new(&mut *service, ruled), up).await,
        None => {
            context.conclude();
        }
    }
}

/// Answers a request that got no server.
pub async fn refuse(context: RequestContext<'_>, refusal: Refusal, mut up: RequestBody) {
    match fall_back(context.session, &context.state, refusal.status, &mut up) {
        Some(started) => take_over(context, started, up).await,
        None => reply_error(context, refusal, up).await,
    }
}

/// Ends a request whose exchange with a server has failed.
pub async fn fail_at_server(context: RequestContext<'_>, failed: Failed, mut up: RequestBody) {
    match fall_back(context.session, &context.state, failed.status.into(), &mut up) {
        Some(started) => take_over(context, started, up).await,
        None => fail(context, failed, up).await,
    }
}

/// Forwards the response of a service to the client.
async fn answer(context: RequestContext<'_>, serving: Serving<'_>, mut up: RequestBody) {
    let Serving { service, ruled, begun } = serving;
    let terms = terms(context.session, &context.state, ruled);
    let mut exchange =
        Exchange::new(context.session, context.client, Upstream::Service(service), &context.state, terms, &mut up);
    let end = match exchange.take_up(begun) {
        Some(end) => end,
        None => exchange.run().await,
    };
    let (remains, ending) = (exchange.remains(), exchange.take_ending());
    drop(exchange);
    tracing::service(context.session, &context.state.borrow(), &events::APPLET_FREE);
    match end {
        End::Answered => {
            context.state.borrow_mut().outcome = SERVED;
            let rest = if remains.client_goes_on {
                up.end(&mut context.client.conn)
            } else {
                end_after(context.client, &context.state, up.source_ended())
            };
            continue_or_end(context.conclude(), rest);
        }
        End::Failed { outcome, status, page } => {
            let status = if remains.nothing_sent { status } else { 0 };
            // The outcome remains that of the service if a rule has replaced its response, or if the client has not waited for
            // it.
            let has_left = outcome == Outcome::new(Cause::Client, Phase::Headers);
            let outcome = if ending.is_some() || has_left { SERVED } else { outcome };
            fail(context, Failed { outcome, status, page, ending }, up).await;
        }
        // Occur with servers only.
        End::Tunnel
        | End::Validated
        | End::Replay
        | End::Retry { .. }
        | End::Overdue
        | End::Overtaken
        | End::Silent => {
            context.state.borrow_mut().outcome = Outcome::new(Cause::Internal, Phase::Data);
            context.conclude();
        }
    }
}

fn terms(session: &Session, state: &SharedStreamState, ruled: bool) -> Terms {
    let proxy = session.proxy();
    let state = &*state.borrow();
    let (request, orders) = (&state.request, state.rules.orders.get());
    let client = orders.timeouts.client_timeout(proxy);
    Terms {
        client,
        upload: client,
        abort_on_close: proxy.frontend.as_ref().is_some_and(|frontend| frontend.abortonclose),
        close_client: !keeps_client(session, request),
        ruled,
        ..Terms::of_client(proxy, request, state.features, head_limits(&session.generation().program.global))
    }
}
