//! Events of sessions and streams for traces (management manual, section 9.3, "trace"): what they are about, and their text. Must
//! never be on the way of a request while nothing is traced.

use config::spec::Mode;
use live::trace::{Event, Level, Subject, events};

use crate::session::Session;
use crate::stream_state::{Cause, StreamState};

/// What an event of a session is about.
fn subject(session: &Session, state: Option<&StreamState>) -> Subject {
    let number = |place: usize| place as u64 + 1;
    let backend = state.and_then(|state| state.backend);
    let server = backend.zip(state.and_then(|state| state.server));
    let frontend = number(session.proxy().index);
    Subject {
        thread: 0,
        // The place of a session is its own while it lasts.
        session: std::ptr::from_ref(session).addr() as u64,
        stream: state.map_or(0, |state| std::ptr::from_ref(state).addr() as u64),
        listener: session.bind().map_or(0, |bind| frontend << 32 | number(bind.index)),
        frontend,
        backend: backend.map_or(0, number),
        server: server.map_or(0, |(backend, server)| number(backend) << 32 | number(server)),
    }
}

/// Client, frontend, backend and server.
fn parties(session: &Session, state: Option<&StreamState>) -> String {
    let client = session.client().map_or_else(|| "unix".to_owned(), |client| client.to_string());
    let mut text = format!("src={client} fe={}", session.proxy().name);
    if let Some(backend) = state.and_then(|state| state.backend).map(|index| session.proxy_at(index)) {
        text.push_str(&format!(" be={}", backend.name));
        let servers = backend.backend.as_ref().map(|backend| &backend.servers);
        let server = servers.zip(state.and_then(|state| state.server)).and_then(|(servers, at)| servers.get(at));
        text.push_str(&server.map(|server| format!(" srv={}", server.name)).unwrap_or_default());
    }
    text
}

/// An event of a session.
#[inline]
pub(crate) fn session(session: &Session, event: &Event, what: &str) {
    let text = || (what.to_owned(), parties(session, None));
    session.worker.trace(event, Level::User, || subject(session, None), text);
}

/// An event of a stream.
#[inline]
pub(crate) fn stream(
    session: &Session,
    state: &StreamState,
    event: &Event,
    level: Level,
    what: impl FnOnce() -> String,
) {
    let text = || (what(), parties(session, Some(state)));
    session.worker.trace(event, level, || subject(session, Some(state)), text);
}

/// The first line of a request.
fn request_line(state: &StreamState) -> String {
    let (method, target) = (state.request.method().escape_ascii(), state.request.target().escape_ascii());
    format!("{method} {target}")
}

/// A request's head was received: the stream begins.
#[inline]
pub(crate) fn request(session: &Session, state: &StreamState) {
    let (event, name) =
        if session.has_several() { (&events::H2_RX_HEADERS, "H2") } else { (&events::H1_RX_HEADERS, "H1") };
    stream(session, state, event, Level::User, || format!("rcvd {name} request headers: {}", request_line(state)));
    stream(session, state, &events::STREAM_NEW, Level::User, || "new stream".to_owned());
}

/// A connection in TCP mode becomes a stream.
#[inline]
pub(crate) fn connection(session: &Session, state: &StreamState) {
    stream(session, state, &events::PT_NEW, Level::User, || "new PT connection".to_owned());
    stream(session, state, &events::STREAM_NEW, Level::User, || "new stream".to_owned());
}

/// A service begins, or has ended.
#[inline]
pub(crate) fn service(session: &Session, state: &StreamState, event: &Event) {
    let name = || format!("{} {}", event.doc, state.service.as_deref().unwrap_or_default());
    stream(session, state, event, Level::User, name);
}

/// What came is no request.
#[cold]
pub(crate) fn refused(session: &Session, state: &StreamState, status: u16) {
    let event = if session.has_several() { &events::H2C_ERR } else { &events::H1C_ERR };
    stream(session, state, event, Level::Error, || format!("invalid request, status {status}"));
}

/// An event of the stream that a service answers, for whoever makes the service.
#[inline]
pub fn trace_stream(session: &Session, state: &StreamState, event: &Event, what: impl FnOnce() -> String) {
    stream(session, state, event, Level::User, what);
}

/// A request goes to a FastCGI application.
#[inline]
pub(crate) fn application(session: &Session, state: &StreamState) {
    let what = || format!("sending FCGI request: {}", request_line(state));
    stream(session, state, &events::FCGI_BEGIN_REQUEST, Level::User, what);
}

/// The answer of a FastCGI application has begun.
#[inline]
pub(crate) fn application_answered(session: &Session, state: &StreamState) {
    let what = || format!("rcvd FCGI response headers: {}", state.response.status());
    stream(session, state, &events::FCGI_RESPONSE_HEADERS, Level::User, what);
}

/// A request was sent to a server.
#[inline]
pub(crate) fn sent(session: &Session, state: &StreamState) {
    stream(session, state, &events::SERVER_STATE, Level::State, || "connected to the server".to_owned());
    stream(session, state, &events::H1_TX_HEADERS, Level::User, || {
        format!("sending request headers: {}", request_line(state))
    });
}

/// A server's answer is no answer.
#[cold]
pub(crate) fn bad_answer(session: &Session, state: &StreamState, of_application: bool) {
    if of_application {
        let what = || "invalid response of the application".to_owned();
        return stream(session, state, &events::FSTRM_ERR, Level::Error, what);
    }
    stream(session, state, &events::H1S_ERR, Level::Error, || "invalid response headers".to_owned());
}

/// An answer goes to the client.
#[inline]
pub(crate) fn answered(session: &Session, state: &StreamState) {
    let (event, name) =
        if session.has_several() { (&events::H2_TX_HEADERS, "H2") } else { (&events::H1_TX_HEADERS, "H1") };
    let what = || format!("sending {name} response headers: {}", state.response.status());
    stream(session, state, event, Level::User, what);
}

/// A stream ends.
#[inline]
pub(crate) fn ended(session: &Session, state: &StreamState) {
    let end = match session.proxy().mode {
        Mode::Http if session.has_several() => &events::H2S_END,
        Mode::Http => &events::H1S_END,
        _ => &events::PT_END,
    };
    stream(session, state, end, Level::State, || "stream terminated".to_owned());
    if !matches!(state.outcome.cause, Cause::Normal | Cause::Local) {
        let what = || format!("stream ends by {:?} in {:?}", state.outcome.cause, state.outcome.phase);
        stream(session, state, &events::STREAM_ERR, Level::Error, what);
    }
    let what = || {
        let (bytes, cause) = (&state.bytes, state.outcome.cause);
        format!(
            "stream released: status={} in={} out={} cause={cause:?}",
            state.status, bytes.bytes_in, bytes.bytes_out
        )
    };
    stream(session, state, &events::STREAM_FREE, Level::User, what);
}
