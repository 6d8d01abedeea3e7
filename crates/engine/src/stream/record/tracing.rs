//! Events of sessions and streams for traces (management manual, section 9.3, "trace"): their subject and their text. Must
//! never cost a request more than one check per event while nothing is traced.

use config::spec::Mode;
use conn::quic::CloseCode;
use live::trace::{Event, Level, Subject, events};

use crate::session::Session;
use crate::stream_state::{Cause, StreamState};

/// Returns the subject of an event of a session, or of its stream.
fn subject(session: &Session, state: Option<&StreamState>) -> Subject {
    let number = |place: usize| place as u64 + 1;
    let backend = state.and_then(|state| state.route.backend);
    let server = backend.zip(state.and_then(|state| state.route.server));
    let frontend = number(session.proxy().index);
    Subject {
        thread: 0,
        // The address of a session is unique during its lifetime.
        session: std::ptr::from_ref(session).addr() as u64,
        stream: state.map_or(0, |state| std::ptr::from_ref(state).addr() as u64),
        listener: session.bind().map_or(0, |bind| frontend << 32 | number(bind.index)),
        frontend,
        backend: backend.map_or(0, number),
        server: server.map_or(0, |(backend, server)| number(backend) << 32 | number(server)),
    }
}

/// Returns the names of client, frontend, backend and server.
fn parties(session: &Session, state: Option<&StreamState>) -> String {
    let client = session.client().map_or_else(|| "unix".to_owned(), |client| client.to_string());
    let mut text = format!("src={client} fe={}", session.proxy().name);
    if let Some(backend) = state.and_then(|state| state.route.backend).map(|index| session.proxy_at(index)) {
        text.push_str(&format!(" be={}", backend.name));
        let servers = backend.backend.as_ref().map(|backend| &backend.servers);
        let server = servers.zip(state.and_then(|state| state.route.server)).and_then(|(servers, at)| servers.get(at));
        text.push_str(&server.map(|server| format!(" srv={}", server.name)).unwrap_or_default());
    }
    text
}

/// Traces an event of a session.
#[inline]
pub(crate) fn session(session: &Session, event: &Event, what: &str) {
    let text = || (what.to_owned(), parties(session, None));
    session.worker.trace(event, Level::User, || subject(session, None), text);
}

/// Traces that a client has closed its QUIC connection.
#[inline]
pub(crate) fn closed(session: &Session, code: CloseCode) {
    let text = || {
        let what = match code {
            CloseCode::Transport(code) => format!("QUIC connection closed by the client: transport error {code:#x}"),
            CloseCode::Application(code) => {
                format!("QUIC connection closed by the client: application error {code:#x}")
            }
        };
        (what, parties(session, None))
    };
    session.worker.trace(&events::QUIC_CLOSE, Level::User, || subject(session, None), text);
}

/// Traces an event of a stream.
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

/// Returns method and target of a request.
fn request_line(state: &StreamState) -> String {
    let (method, target) = (state.request.method().escape_ascii(), state.request.target().escape_ascii());
    format!("{method} {target}")
}

/// Traces that a request's head was received, with which the stream begins.
#[inline]
pub(crate) fn request(session: &Session, state: &StreamState) {
    let (event, name) = match session.protocol_facts().major {
        3 => (&events::H3_RX_HEADERS, "H3"),
        2 => (&events::H2_RX_HEADERS, "H2"),
        _ => (&events::H1_RX_HEADERS, "H1"),
    };
    if session.protocol_facts().major == 3 {
        stream(session, state, &events::H3S_NEW, Level::State, || "new H3 stream".to_owned());
    }
    stream(session, state, event, Level::User, || format!("rcvd {name} request headers: {}", request_line(state)));
    stream(session, state, &events::STREAM_NEW, Level::User, || "new stream".to_owned());
}

/// Traces that a stream in TCP mode begins.
#[inline]
pub(crate) fn connection(session: &Session, state: &StreamState) {
    stream(session, state, &events::PT_NEW, Level::User, || "new PT connection".to_owned());
    stream(session, state, &events::STREAM_NEW, Level::User, || "new stream".to_owned());
}

/// Traces the start or the end of a service.
#[inline]
pub(crate) fn service(session: &Session, state: &StreamState, event: &Event) {
    let name = || format!("{} {}", event.doc, state.route.service.as_deref().unwrap_or_default());
    stream(session, state, event, Level::User, name);
}

/// Traces an invalid request.
#[cold]
pub(crate) fn refused(session: &Session, state: &StreamState, status: u16) {
    let event = match session.protocol_facts().major {
        3 => &events::QCM_PROTOCOL_ERR,
        2 => &events::H2C_ERR,
        _ => &events::H1C_ERR,
    };
    stream(session, state, event, Level::Error, || format!("invalid request, status {status}"));
}

/// Traces an event of a stream that a service answers; for implementations of services.
#[inline]
pub fn trace_stream(session: &Session, state: &StreamState, event: &Event, what: impl FnOnce() -> String) {
    stream(session, state, event, Level::User, what);
}

/// Traces a request that is sent to a FastCGI application.
#[inline]
pub(crate) fn application(session: &Session, state: &StreamState) {
    let what = || format!("sending FCGI request: {}", request_line(state));
    stream(session, state, &events::FCGI_BEGIN_REQUEST, Level::User, what);
}

/// Traces the response head of a FastCGI application.
#[inline]
pub(crate) fn application_answered(session: &Session, state: &StreamState) {
    let what = || format!("rcvd FCGI response headers: {}", state.response.status());
    stream(session, state, &events::FCGI_RESPONSE_HEADERS, Level::User, what);
}

/// Traces that a request was sent to a server.
#[inline]
pub(crate) fn sent(session: &Session, state: &StreamState) {
    stream(session, state, &events::SERVER_STATE, Level::State, || "connected to the server".to_owned());
    stream(session, state, &events::H1_TX_HEADERS, Level::User, || {
        format!("sending request headers: {}", request_line(state))
    });
}

/// Traces an invalid response of a server.
#[cold]
pub(crate) fn bad_answer(session: &Session, state: &StreamState, of_application: bool) {
    if of_application {
        let what = || "invalid response of the application".to_owned();
        return stream(session, state, &events::FSTRM_ERR, Level::Error, what);
    }
    stream(session, state, &events::H1S_ERR, Level::Error, || "invalid response headers".to_owned());
}

/// Traces that a response is sent to the client.
#[inline]
pub(crate) fn answered(session: &Session, state: &StreamState) {
    let (event, name) = match session.protocol_facts().major {
        3 => (&events::H3_TX_HEADERS, "H3"),
        2 => (&events::H2_TX_HEADERS, "H2"),
        _ => (&events::H1_TX_HEADERS, "H1"),
    };
    let what = || format!("sending {name} response headers: {}", state.response.status());
    stream(session, state, event, Level::User, what);
}

/// Traces the end of a stream.
#[inline]
pub(crate) fn ended(session: &Session, state: &StreamState) {
    let end = match session.proxy().mode {
        Mode::Http if session.protocol_facts().major == 3 => &events::H3S_END,
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
        let (bytes, cause) = (&state.accounting.bytes, state.outcome.cause);
        format!(
            "stream released: status={} in={} out={} cause={cause:?}",
            state.answer.status, bytes.bytes_in, bytes.bytes_out
        )
    };
    stream(session, state, &events::STREAM_FREE, Level::User, what);
}
