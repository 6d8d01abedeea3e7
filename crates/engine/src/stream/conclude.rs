//! The end of a stream: its state becomes a log line, and is given back. Must never wait.

use base::moment::WallTime;
use config::spec::{LogStep, Mode};
use expression::capture::{CapturePlan, Kept};
use expression::record::{Endpoint, Origin, Record};
use policy::program::{LogMoment, Proxy, Server, ServerAddress};

use crate::service::log::{Shown, Verdict};
use crate::session::Session;
use crate::stream::evaluate::EvalContext;
use crate::stream::{instrumentation, metrics, observing, otel, persistence, tracing, tracking};
use crate::stream_state::{Cause, Outcome, Phase, StreamState};
use crate::worker::SharedStreamState;

/// Ends a stream.
pub fn conclude(session: &Session, state: SharedStreamState) {
    if let Ok(mut known) = state.try_borrow_mut() {
        metrics::stream(session, &mut known);
        tracing::ended(session, &known);
        observing::end(session, &known);
        otel::conclude(session, &mut known);
        instrumentation::conclude(session, &known);
        if session.log().has_expressions() {
            tracking::settle(session, &mut known);
        } else {
            tracking::conclude(session, &mut known);
        }
    }
    if session.is_logged()
        && let Ok(known) = state.try_borrow()
        && !known.logged
        && !(session.proxy().options.dontlognull && is_null(&known))
        && session
            .log()
            .steps()
            .is_none_or(|steps| steps.has(LogStep::Close) || verdict(session, &known) == Verdict::Invalid)
    {
        log(session, &known, Origin::Close);
    }
    session.end(state);
}

/// A request of a client with several streams became no stream: writes its line (`tune.h2.log-errors`).
#[cold]
pub fn log_malformed(session: &Session) {
    // Lines of the default format begin with what is known of a request.
    if !session.is_logged() || session.log().moment() == LogMoment::Request {
        return;
    }
    learn_destination(session);
    let state = session.worker.take_stream_state();
    if let Ok(mut known) = state.try_borrow_mut() {
        let (now, date) = (rt::now(), rt::wall());
        (known.timings.start, known.start_date) = (now, date);
        (known.outcome, known.status) = (Outcome::new(Cause::Proxy, Phase::Request), 0);
        log(session, &known, Origin::SessionError);
    }
    session.worker.keep_stream_state(state);
}

/// Asks where the client has connected to, if lines tell it.
pub fn learn_destination(session: &Session) {
    if session.log().tells_destination() {
        session.destination();
    }
}

/// A step of a stream was made: writes a line if `log-steps` wants one there, or if the format's line is due. That of the
/// default format is, once the request is known; others whose formats tell nothing of the stream's end, or with `option
/// logasap`, once the connection to the server stands (TCP) or the answer's head is there (HTTP).
pub fn log_step(session: &Session, state: &SharedStreamState, origin: Origin) {
    if !session.is_logged() {
        return;
    }
    let route = session.log();
    // The connection may be closed when a later line is written.
    learn_destination(session);
    let steps = route.steps();
    match steps {
        Some(steps) if !steps.has(origin.step()) => return,
        None if due(session.proxy().mode, origin) != Some(route.moment()) => return,
        _ => {}
    }
    let mut state = state.borrow_mut();
    if !state.logged {
        log(session, &state, origin);
        state.logged = steps.is_none();
    }
}

/// The answer's head is about to go to the client: a line that is due with it counts these bytes.
pub fn log_answer(session: &Session, state: &SharedStreamState, head: usize) {
    if !session.is_logged() {
        return;
    }
    state.borrow_mut().bytes.bytes_out += head as u64;
    log_step(session, state, Origin::Response);
    state.borrow_mut().bytes.bytes_out -= head as u64;
}

/// What is due at a step without `log-steps`.
fn due(mode: Mode, origin: Origin) -> Option<LogMoment> {
    match (origin, mode) {
        (Origin::Request, Mode::Http) | (Origin::Accept, Mode::Tcp) => Some(LogMoment::Request),
        (Origin::Response, Mode::Http) | (Origin::Connect, Mode::Tcp) => Some(LogMoment::Answer),
        _ => None,
    }
}

/// A rule wants a line now, by its own profile if it has one (`do-log`).
pub fn log_now(view: EvalContext<'_>, step: LogStep, profile: Option<usize>) {
    let EvalContext { session, state, .. } = view;
    if !session.is_logged() {
        return;
    }
    let (logger, route) = (&session.worker.logger, session.log());
    let level = match state.orders.get().log_level {
        Some(None) => return,
        Some(level) => level,
        None => None,
    };
    if route.tells_identifier() {
        let _ = view.unique_id();
    }
    learn_destination(session);
    let before_stream = matches!(step, LogStep::TcpRequestConnection | LogStep::TcpRequestSession);
    with_record(session, state, |record| {
        let mut record = Record { origin: Origin::Rule(step), ..*record };
        if before_stream {
            (record.status, record.termination) = (0, *b"PR--");
        } else if state.status < 0 {
            record.status = state.server_status.map_or(record.status, i32::from);
        }
        if step == LogStep::TcpRequestContent {
            record.method = b"";
        }
        view.lend(|context| {
            logger.traffic(
                route,
                Verdict::Normal,
                &record,
                Shown { level, context: Some(context), profile, span: otel::span(state) },
            );
        });
    });
}

/// Whether something went wrong (`option dontlog-normal`, `option log-separate-errors`).
fn verdict(session: &Session, state: &StreamState) -> Verdict {
    let http = session.proxy().mode == Mode::Http;
    // What a rule has refused before it was known as a request was no invalid one.
    if http && !state.has_request && !state.denied {
        return Verdict::Invalid;
    }
    if is_normal(session, state) { Verdict::Normal } else { Verdict::Failed }
}

/// Whether nothing went wrong with a stream so far.
pub fn is_normal(session: &Session, state: &StreamState) -> bool {
    let ended_well = matches!(state.outcome.cause, Cause::Normal | Cause::Local);
    let is_error = session.is_http() && state.status >= 500;
    ended_well && state.attempts.retries == 0 && !state.attempts.redispatched && !is_error
}

/// A connection on which nothing was transferred (`option dontlognull`).
fn is_null(state: &StreamState) -> bool {
    state.bytes.bytes_in == 0 && state.bytes.bytes_out == 0 && state.timings.first_byte.is_none()
}

fn log(session: &Session, state: &StreamState, origin: Origin) {
    let level = match state.orders.get().log_level {
        Some(None) => return,
        Some(level) => level,
        None => None,
    };
    let (logger, route, verdict) = (&session.worker.logger, session.log(), verdict(session, state));
    if verdict != Verdict::Invalid && route.tells_identifier() {
        let _ = EvalContext::log(session, state).unique_id();
    }
    let origin = if verdict == Verdict::Invalid { Origin::SessionError } else { origin };
    with_record(session, state, |record| {
        let mut record = Record { origin, ..*record };
        match origin {
            // Nothing is known of the request there.
            Origin::Accept => {
                (record.method, record.status, record.timers.request) = (b"", 0, -1);
                record.bytes_from_client = 0;
            }
            // Rules have yet to look at it.
            Origin::Request => (record.timers.request, record.bytes_from_client) = (-1, 0),
            // There is no stream that could have captured anything.
            Origin::SessionError => {
                (record.request_captures, record.response_captures) = (&[], &[]);
                record.timers.idle = record.timers.idle.max(0);
            }
            _ => {}
        }
        let shown = Shown { level, span: otel::span(state), ..Shown::default() };
        if route.has_expressions() {
            EvalContext::log(session, state).lend(|context| {
                logger.traffic(route, verdict, &record, Shown { context: Some(context), ..shown });
            });
        } else {
            logger.traffic(route, verdict, &record, shown);
        }
    });
}

/// What a log format would tell of the stream at this moment.
pub fn with_record(session: &Session, state: &StreamState, use_record: impl FnOnce(&Record<'_>)) {
    let worker = &session.worker;
    let proxy = session.proxy();
    let backend = state.backend.map(|index| session.proxy_at(index));
    // A denied request has no server, nor one that its client left unfinished; what is shown is the one that its cookie
    // leads to.
    let unfinished = state.outcome.cause == Cause::Client && state.outcome.phase == Phase::Request;
    let shown = state.server.or_else(|| state.persistence.server.filter(|_| state.denied || unfinished));
    let server = backend.unwrap_or(proxy).backend.as_ref().zip(shown);
    let server = server.and_then(|(backend, index)| backend.servers.get(index));
    let live = &worker.process.live;
    let counts = state.attempts.counts.or_else(|| backend.map(|proxy| live.proxies[proxy.index].counts(state.server)));
    let counts = counts.unwrap_or_default();
    let client =
        state.client(session).map_or_else(|| Endpoint::Unix(session.bind().map_or(0, |bind| bind.id)), Endpoint::Inet);
    let captures = state.captures.borrow();
    // What was no request has none.
    let shows_captures = state.has_request || proxy.mode != Mode::Http;
    let request_captures =
        if shows_captures { padded(&captures.request, proxy, |plan| plan.request.len()) } else { Vec::new() };
    let response_captures = padded(&captures.response, proxy, |plan| plan.response.len());
    let (method, target) = match &captures.line {
        Some((method, target)) => (&**method, &**target),
        None => (state.request.method(), state.request.target()),
    };
    let [cause, phase] = state.termination();
    let own = || Some(proxy).filter(|_| state.has_request);
    let [presented, returned] = persistence::letters(backend.or_else(own), &state.persistence);
    let record = Record {
        client,
        destination: state.known_destination(session).map_or(Endpoint::Absent, Endpoint::Inet),
        frontend: &proxy.name,
        tls_frontend: session.is_secure(),
        tls_cipher: session.tls().and_then(|own| Some(tls::provider::suite_name(own.suite?))),
        tls_version: session.tls().and_then(tls::HandshakeInfo::version_name),
        backend_source: state.attempts.backend_source,
        server_address: server.map_or(Endpoint::Absent, |server| server_address(session, state, server)),
        backend: backend.map_or(&proxy.name, |backend| &backend.name),
        server: server.map_or(state.service.as_deref().unwrap_or("<NOSRV>"), |server| &server.name),
        request_date: request_date(state),
        timers: state.timings.timers(rt::now()),
        status: state.status,
        // As HAProxy: what a compressed answer was before.
        bytes_to_client: if state.compression.is_some() { state.bytes.received } else { state.bytes.bytes_out },
        bytes_from_client: state.bytes.bytes_in,
        termination: [cause, phase, presented, returned],
        method: if state.has_request { method } else { b"" },
        target: if state.has_request { target } else { b"" },
        version: state.request.version_text(),
        actconn: live.process.actconn(),
        feconn: live.proxies[session.frontend].feconn(),
        beconn: counts.beconn,
        srv_conn: counts.srv_conn,
        unique_id: state.unique_id.get().map(|name| &**name),
        request_counter: state.number,
        retries: state.attempts.retries,
        redispatched: state.attempts.redispatched,
        server_queue: state.attempts.server_queue,
        backend_queue: state.attempts.backend_queue,
        request_captures: &request_captures,
        response_captures: &response_captures,
        request_cookie: captures.cookie.get(),
        response_cookie: captures.set_cookie.get(),
        ..worker.logger.record(session.log(), session.accept_date())
    };
    use_record(&record);
}

/// What slots hold, as many as there are.
fn padded<'k>(kept: &'k [Kept], proxy: &Proxy, slots: impl FnOnce(&CapturePlan) -> usize) -> Vec<Option<&'k [u8]>> {
    let slots = proxy.frontend.as_ref().and_then(|frontend| frontend.captures.as_ref()).map_or(0, slots);
    (0..slots).map(|index| kept.get(index).and_then(Kept::get)).collect()
}

/// Where the server is.
fn server_address(session: &Session, state: &StreamState, server: &Server) -> Endpoint {
    match &*session.worker.process.outgoing.address(server) {
        ServerAddress::Inet { ip, port } => {
            let destination = state.known_destination(session).map_or(0, |address| address.port());
            Endpoint::Inet((*ip, port.resolve(destination)).into())
        }
        ServerAddress::Unix(_)
        | ServerAddress::Abstract(_)
        | ServerAddress::Carrier(_)
        | ServerAddress::Reversed
        | ServerAddress::Unresolved { .. } => Endpoint::Unix(0),
    }
}

/// When the request's first byte came; the start where none did.
fn request_date(state: &StreamState) -> WallTime {
    match state.timings.first_byte {
        Some(first) => state.start_date.saturating_add(first.saturating_since(state.timings.start)),
        None => state.start_date,
    }
}
