//! The values of a stream for log formats. Must never write a line.

use base::moment::WallTime;
use config::spec::Mode;
use expression::capture::{CapturePlan, CapturedText};
use expression::record::{Endpoint, Record};
use live::persistence::{Cookie, Persistence};
use policy::program::{Proxy, Server, ServerAddress};

use crate::session::Session;
use crate::stream_state::{Cause, Phase, StreamState};

/// Whether a stream has had no error, retry or redispatch so far.
pub fn is_normal(session: &Session, state: &StreamState) -> bool {
    let ended_well = matches!(state.outcome.cause, Cause::Normal | Cause::Local);
    let is_error = session.is_http() && state.answer.status >= 500;
    ended_well && state.attempts.retries == 0 && !state.attempts.redispatched && !is_error
}

/// Passes the current values of the stream for log formats to `use_record`.
pub fn with_record(session: &Session, state: &StreamState, use_record: impl FnOnce(&Record<'_>)) {
    let worker = &session.worker;
    let proxy = session.proxy();
    let backend = state.route.backend.map(|index| session.proxy_at(index));
    // A denied request, and one that its client left incomplete, have no server; the one of its cookie is shown.
    let unfinished = state.outcome.cause == Cause::Client && state.outcome.phase == Phase::Request;
    let shown =
        state.route.server.or_else(|| state.route.persistence.server.filter(|_| state.rules.denied || unfinished));
    let server = backend.unwrap_or(proxy).backend.as_ref().zip(shown);
    let server = server.and_then(|(backend, index)| backend.servers.get(index));
    let live = &worker.process.live;
    let counts =
        state.attempts.counts.or_else(|| backend.map(|proxy| live.proxies[proxy.index].counts(state.route.server)));
    let counts = counts.unwrap_or_default();
    let client =
        state.client(session).map_or_else(|| Endpoint::Unix(session.bind().map_or(0, |bind| bind.id)), Endpoint::Inet);
    let captures = state.captures.borrow();
    // Data that was not a request has no captures.
    let shows_captures = state.info.has_request || proxy.mode != Mode::Http;
    let request_captures =
        if shows_captures { padded(&captures.request, proxy, |plan| plan.request.len()) } else { Vec::new() };
    let response_captures = padded(&captures.response, proxy, |plan| plan.response.len());
    let (method, target) = match &captures.line {
        Some((method, target)) => (&**method, &**target),
        None => (state.request.method(), state.request.target()),
    };
    let [cause, phase] = state.termination();
    let own = || Some(proxy).filter(|_| state.info.has_request);
    let [presented, returned] = letters(backend.or_else(own), &state.route.persistence);
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
        server: server.map_or(state.route.service.as_deref().unwrap_or("<NOSRV>"), |server| &server.name),
        request_date: request_date(state),
        timers: state.timings.timers(rt::now()),
        status: state.answer.status,
        // As in HAProxy: the bytes before compression.
        bytes_to_client: if state.answer.compression.is_some() {
            state.accounting.bytes.received
        } else {
            state.accounting.bytes.bytes_out
        },
        bytes_from_client: state.accounting.bytes.bytes_in,
        termination: [cause, phase, presented, returned],
        method: if state.info.has_request { method } else { b"" },
        target: if state.info.has_request { target } else { b"" },
        version: state.request.version_text(),
        actconn: live.process.actconn(),
        feconn: live.proxies[session.frontend].feconn(),
        beconn: counts.beconn,
        srv_conn: counts.srv_conn,
        unique_id: state.info.unique_id.get().map(|name| &**name),
        request_counter: state.info.number,
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

/// Returns the captured values, one for each declared capture.
fn padded<'k>(
    kept: &'k [CapturedText],
    proxy: &Proxy,
    slots: impl FnOnce(&CapturePlan) -> usize,
) -> Vec<Option<&'k [u8]>> {
    let slots = proxy.frontend.as_ref().and_then(|frontend| frontend.captures.as_ref()).map_or(0, slots);
    (0..slots).map(|index| kept.get(index).and_then(CapturedText::get)).collect()
}

/// Returns the server's address.
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

/// Returns the time of the request's first byte; the stream's start if there was none.
fn request_date(state: &StreamState) -> WallTime {
    match state.timings.first_byte {
        Some(first) => state.info.start_date.saturating_add(first.saturating_since(state.timings.start)),
        None => state.info.start_date,
    }
}

/// Returns the last two characters of the termination state.
fn letters(proxy: Option<&Proxy>, kept: &Persistence) -> [u8; 2] {
    let cookie = proxy.and_then(|proxy| proxy.backend.as_ref()).and_then(|backend| backend.persistence.cookie.as_ref());
    match cookie.is_some_and(Cookie::is_told) {
        true => [kept.presented.letter(), kept.returned.letter()],
        false => *b"--",
    }
}
