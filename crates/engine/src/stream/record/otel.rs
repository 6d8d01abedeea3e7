//! Spans of a stream (`otel-trace`): one for the stream itself, one for each attempt to reach a server, with attributes by the
//! semantic conventions of OpenTelemetry. Owns the trace context that is sent to servers. Must never wait, nor change other
//! state of a stream.

use base::Moment;
use policy::program::{OtelFormat, OtelTrace, Proxy, ServerAddress};
use wire::otlp::{Kind, Message, SpanContext, SpanHead, Status, Value};
use wire::trace_context::{self, TraceContext};

use crate::session::Session;
use crate::stream::request::evaluate::EvalContext;
use crate::stream_state::trace::{Attempt, StreamTrace};
use crate::stream_state::{Cause, StreamState};
use crate::telemetry::nanoseconds;
use crate::worker::SharedStreamState;

/// Maximum length of an attribute's text, in bytes.
const LONGEST: usize = 4_096;
/// Maximum number of attempts with spans per stream.
const MOST_ATTEMPTS: u32 = 64;

/// Outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptEnd<'a> {
    /// It ended with the stream.
    Stream,
    /// It failed with that `error.type`.
    Failed(&'a str),
    /// The other one of two attempts has won.
    Overtaken,
}

/// Returns a random ID that is not all zero.
pub(crate) fn new_id<const N: usize>() -> [u8; N] {
    let mut id = [0; N];
    for part in id.chunks_mut(8) {
        part.copy_from_slice(&rt::random().to_be_bytes()[..part.len()]);
    }
    id[N - 1] |= u8::from(id == [0; N]);
    id
}

/// Returns the span of a traced stream, sampled or not.
pub fn span(state: &StreamState) -> Option<SpanContext> {
    let context = &state.trace.as_ref()?.context;
    Some(SpanContext { trace_id: context.trace_id, span_id: context.span_id })
}

fn plan(session: &Session) -> Option<&OtelTrace> {
    session.proxy().frontend.as_ref()?.trace.as_deref()
}

/// Starts the trace of a request, or of a session in TCP mode.
#[inline]
pub fn begin(session: &Session, state: &mut StreamState) {
    if let Some(plan) = plan(session) {
        begin_trace(session, state, plan);
    }
}

fn begin_trace(session: &Session, state: &mut StreamState, plan: &OtelTrace) {
    let mut parents = state.request.all(b"traceparent");
    // Several of them count as none (W3C Trace Context, section 3.2.1).
    let parent = parents.next().filter(|_| parents.next().is_none()).and_then(TraceContext::parse);
    let context = match parent {
        Some(parent) => TraceContext { span_id: new_id(), ..parent },
        None => {
            let new = TraceContext { trace_id: new_id(), span_id: new_id(), sampled: false };
            TraceContext { sampled: new.is_chosen(plan.share), ..new }
        }
    };
    let kept = parent.and_then(|_| trace_context::state(state.request.all(b"tracestate")));
    let mut begun = Vec::new();
    if context.sampled {
        write_begun(session, state, &mut Message::new(&mut begun));
    }
    state.trace = Some(Box::new(StreamTrace {
        context,
        parent: parent.map(|parent| parent.span_id),
        state: kept.unwrap_or_default(),
        begun,
        attempt: None,
        rival: None,
        attempts: 0,
    }));
}

fn text(span: &mut Message<'_>, key: &str, text: &[u8]) {
    span.span_attribute(key, Value::Text(&text[..text.len().min(LONGEST)]));
}

fn number(span: &mut Message<'_>, key: &str, number: impl Into<i64>) {
    span.span_attribute(key, Value::Int(number.into()));
}

/// Writes the attributes of a request.
fn write_begun(session: &Session, state: &StreamState, span: &mut Message<'_>) {
    text(span, "weir.frontend", session.proxy().name.as_bytes());
    if let Some(client) = session.original_client() {
        text(span, "network.peer.address", client.ip().to_canonical().to_string().as_bytes());
        number(span, "network.peer.port", client.port());
    }
    if !state.info.has_request {
        return text(span, "network.transport", b"tcp");
    }
    let request = &state.request;
    write_method(span, request.method());
    text(span, "url.scheme", if session.is_secure() { b"https" } else { b"http" });
    let origin = crate::stream::request::request_target::origin_form(request.target());
    let (path, query) = match origin.iter().position(|byte| *byte == b'?') {
        Some(at) => (&origin[..at], Some(&origin[at + 1..])),
        None => (origin, None),
    };
    text(span, "url.path", path);
    query.into_iter().for_each(|query| text(span, "url.query", query));
    text(span, "network.protocol.version", version(request.version_text()));
    if let Some(host) = request.host() {
        let (host, port) = split_host(host);
        text(span, "server.address", host);
        port.into_iter().for_each(|port| number(span, "server.port", port));
    }
    if let Some(agent) = request.first(b"user-agent") {
        text(span, "user_agent.original", agent);
    }
}

/// Writes the method. Those of RFC 9110 and RFC 5789 are standard names, others `_OTHER`.
fn write_method(span: &mut Message<'_>, method: &[u8]) {
    const KNOWN: [&[u8]; 9] = [b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"PATCH"];
    if KNOWN.contains(&method) {
        return text(span, "http.request.method", method);
    }
    text(span, "http.request.method", b"_OTHER");
    text(span, "http.request.method_original", method);
}

/// Returns the version number: `1.1`, `2`.
fn version(text: &[u8]) -> &[u8] {
    let number = text.strip_prefix(b"HTTP/").unwrap_or(text);
    number.strip_suffix(b".0").filter(|major| *major != b"1").unwrap_or(number)
}

/// Splits a host from its port, if it has one.
fn split_host(host: &[u8]) -> (&[u8], Option<u16>) {
    let Some(at) = host.iter().rposition(|byte| *byte == b':') else { return (host, None) };
    let port = std::str::from_utf8(&host[at + 1..]).ok().and_then(|port| port.parse().ok());
    match port {
        Some(port) if !host[..at].contains(&b':') || host[..at].ends_with(b"]") => (&host[..at], Some(port)),
        _ => (host, None),
    }
}

/// Sets the context fields of a request; `span_id` is the parent of the receiver's span.
#[cold]
fn put(state: &mut StreamState, span_id: [u8; 8]) {
    let Some(trace) = &state.trace else { return };
    state.request.replace(b"traceparent", &TraceContext { span_id, ..trace.context }.encode());
    if trace.state.is_empty() {
        state.request.remove_all(b"tracestate");
    } else {
        state.request.replace(b"tracestate", &trace.state);
    }
}

/// Sets the context of a request for servers: copies of it are children of the stream's own span.
#[inline]
pub fn prepare(state: &mut StreamState) {
    if let Some(own) = state.trace.as_ref().map(|trace| trace.context.span_id) {
        put(state, own);
    }
}

/// Sets the context of a request that is sent to a server: a child of the attempt's span.
#[inline]
pub fn send(state: &mut StreamState) {
    if let Some(attempt) = state.trace.as_ref().and_then(|trace| trace.attempt.as_ref()) {
        let own = attempt.span_id;
        put(state, own);
    }
}

impl StreamTrace {
    fn attempt(&mut self, server: usize) -> Attempt {
        self.attempts += 1;
        Attempt { span_id: new_id(), server, since: rt::now(), number: self.attempts - 1, won: false }
    }
}

/// Starts the span of an attempt.
#[inline]
pub fn begin_attempt(session: &Session, state: &mut StreamState, server: usize) {
    if state.trace.is_some() {
        begin_known_attempt(session, state, server);
    }
}

#[cold]
fn begin_known_attempt(session: &Session, state: &mut StreamState, server: usize) {
    // The span of a second attempt that has won was started before.
    let known = state.trace.as_mut().and_then(|trace| trace.attempt.as_mut());
    if known.is_some_and(|known| std::mem::take(&mut known.won)) {
        return;
    }
    end_attempt(session, state, AttemptEnd::Failed("retried"));
    if let Some(trace) = &mut state.trace {
        trace.attempt = Some(trace.attempt(server));
    }
}

/// Ends the span of the current attempt, if there is one.
#[inline]
pub fn end_attempt(session: &Session, state: &mut StreamState, ended: AttemptEnd<'_>) {
    if let Some(attempt) = state.trace.as_mut().and_then(|trace| trace.attempt.take()) {
        write_attempt(session, state, &attempt, ended);
    }
}

/// Ends the span of the current attempt: its connection could not be established.
pub fn fail_attempt(session: &Session, state: &SharedStreamState, cause: Cause) {
    let why = if cause == Cause::ServerTimeout { "timeout" } else { "connection_error" };
    end_attempt(session, &mut state.borrow_mut(), AttemptEnd::Failed(why));
}

/// Starts the span of a second, concurrent attempt, before the request's head is encoded for it.
pub fn begin_rival(state: &mut StreamState, server: usize) {
    if let Some(trace) = &mut state.trace {
        let rival = trace.attempt(server);
        let own = rival.span_id;
        trace.rival = Some(rival);
        put(state, own);
    }
}

/// Replaces the first attempt by the second one, which has won.
pub fn overtake(session: &Session, state: &mut StreamState) {
    if let Some(rival) = state.trace.as_mut().and_then(|trace| trace.rival.take()) {
        end_attempt(session, state, AttemptEnd::Overtaken);
        if let Some(trace) = &mut state.trace {
            trace.attempt = Some(Attempt { won: true, ..rival });
        }
    }
}

fn push(session: &Session, item: Vec<u8>) {
    if let Some(channel) = plan(session).and_then(|plan| session.generation().channels.get(plan.exporter)) {
        channel.push(session.worker.id, item);
    }
}

/// Converts a time of the stream to nanoseconds since the epoch.
fn at(state: &StreamState, moment: Moment) -> u64 {
    nanoseconds(state.info.start_date.saturating_add(moment.saturating_since(state.timings.start)))
}

fn write_attempt(session: &Session, state: &StreamState, attempt: &Attempt, ended: AttemptEnd<'_>) {
    let Some(trace) = state.trace.as_ref().filter(|trace| trace.context.sampled) else { return };
    if attempt.number >= MOST_ATTEMPTS {
        return;
    }
    let is_http = state.info.has_request;
    let backend = state.route.backend.map(|index| session.proxy_at(index));
    let name = backend.map_or(&*session.proxy().name, |backend| &backend.name);
    let head = SpanHead {
        context: SpanContext { trace_id: trace.context.trace_id, span_id: attempt.span_id },
        parent: Some(trace.context.span_id),
        parent_is_remote: false,
        state: &trace.state,
        name: if is_http { state.request.method() } else { name.as_bytes() },
        kind: Kind::Client,
        start: at(state, attempt.since),
        end: at(state, rt::now()),
    };
    let mut out = Vec::new();
    head.write(&mut out, |span| {
        backend.into_iter().for_each(|backend| write_server(session, state, backend, attempt, span));
        if is_http {
            write_method(span, state.request.method());
            write_url(state, span);
        }
        if attempt.number > 0 && is_http {
            number(span, "http.request.resend_count", attempt.number);
        }
        let answered = state.answer.server_status.filter(|_| ended != AttemptEnd::Overtaken);
        answered.into_iter().for_each(|status| number(span, "http.response.status_code", status));
        let status = answered.filter(|status| *status >= 400).map(|status| status.to_string());
        let termination = termination(state);
        let error = match ended {
            AttemptEnd::Failed(why) => Some(why),
            AttemptEnd::Overtaken => None,
            AttemptEnd::Stream if status.is_some() => status.as_deref(),
            AttemptEnd::Stream => Some(&*termination).filter(|_| fails(state)),
        };
        if ended == AttemptEnd::Overtaken {
            span.span_attribute("weir.overtaken", Value::Bool(true));
        }
        error.into_iter().for_each(|error| text(span, "error.type", error.as_bytes()));
        span.span_status(if error.is_some() { Status::Error } else { Status::Unset }, b"");
    });
    push(session, out);
}

fn write_server(session: &Session, state: &StreamState, backend: &Proxy, attempt: &Attempt, span: &mut Message<'_>) {
    text(span, "weir.backend", backend.name.as_bytes());
    let Some(server) = backend.server(attempt.server) else { return };
    text(span, "weir.server", server.name.as_bytes());
    if let ServerAddress::Inet { ip, port } = &*session.worker.process.outgoing.address(server) {
        let offered = state.known_destination(session).map_or(0, |address| address.port());
        let (address, port) = (ip.to_string(), port.resolve(offered));
        for key in ["server.address", "network.peer.address"] {
            text(span, key, address.as_bytes());
        }
        for key in ["server.port", "network.peer.port"] {
            number(span, key, port);
        }
    }
}

/// Writes `url.full` of the request to the server.
fn write_url(state: &StreamState, span: &mut Message<'_>) {
    let target = state.request.target();
    let mut url = Vec::new();
    if target.starts_with(b"/") {
        url.extend_from_slice(if state.attempts.server_tls.is_some() { b"https://" } else { b"http://" });
        url.extend_from_slice(state.request.host().unwrap_or_default());
    }
    url.extend_from_slice(target);
    text(span, "url.full", &url);
}

/// Returns the termination state as in log lines.
fn termination(state: &StreamState) -> String {
    state.termination().iter().map(|letter| char::from(*letter)).collect()
}

/// Whether a stream has failed, regardless of its status.
fn fails(state: &StreamState) -> bool {
    !matches!(state.outcome.cause, Cause::Normal | Cause::Local)
}

/// Writes the spans of a stream that has ended.
#[inline]
pub fn conclude(session: &Session, state: &mut StreamState) {
    if state.trace.is_some() {
        conclude_trace(session, state);
    }
}

fn conclude_trace(session: &Session, state: &mut StreamState) {
    end_attempt(session, state, AttemptEnd::Stream);
    if let Some(rival) = state.trace.as_mut().and_then(|trace| trace.rival.take()) {
        write_attempt(session, state, &rival, AttemptEnd::Overtaken);
    }
    let Some(trace) = state.trace.take().filter(|trace| trace.context.sampled) else { return };
    let (Some(plan), state) = (plan(session), &*state) else { return };
    let rendered = |plan: &OtelFormat| {
        let mut made = Vec::new();
        let view =
            if plan.of_request { EvalContext::request(session, state) } else { EvalContext::log(session, state) };
        view.lend(|context| plan.format.render_in(context, &mut made));
        made
    };
    let captures = state.captures.borrow();
    let method = captures.line.as_ref().map_or(state.request.method(), |(method, _)| method).to_vec();
    drop(captures);
    let name = match &plan.name {
        Some(format) => rendered(format),
        None if state.info.has_request => method,
        None => session.proxy().name.as_bytes().to_vec(),
    };
    let head = SpanHead {
        context: SpanContext { trace_id: trace.context.trace_id, span_id: trace.context.span_id },
        parent: trace.parent,
        parent_is_remote: trace.parent.is_some(),
        state: &trace.state,
        name: &name[..name.len().min(LONGEST)],
        kind: Kind::Server,
        start: at(state, state.timings.first_byte.unwrap_or(state.timings.start)),
        end: at(state, rt::now()),
    };
    let mut out = Vec::new();
    head.write(&mut out, |span| {
        span.raw(&trace.begun);
        write_end(session, state, span);
        let attributes = plan.attributes.iter().map(|(key, format)| (key, rendered(format)));
        attributes.filter(|(_, value)| !value.is_empty()).for_each(|(key, value)| text(span, key, &value));
    });
    push(session, out);
}

/// Writes the attributes that are known at the end of a stream.
fn write_end(session: &Session, state: &StreamState, span: &mut Message<'_>) {
    if let Some(client) = state.client(session) {
        text(span, "client.address", client.ip().to_canonical().to_string().as_bytes());
    }
    if let Some(backend) = state.route.backend.map(|index| session.proxy_at(index)) {
        text(span, "weir.backend", backend.name.as_bytes());
        if let Some(server) = state.route.server.and_then(|server| backend.server(server)) {
            text(span, "weir.server", server.name.as_bytes());
        }
    }
    let termination = termination(state);
    text(span, "weir.termination_state", termination.as_bytes());
    let status = u16::try_from(state.answer.status).ok().filter(|status| *status > 0 && state.info.has_request);
    status.into_iter().for_each(|status| number(span, "http.response.status_code", status));
    let error = match status {
        Some(status) if status >= 500 => Some(status.to_string()),
        _ if fails(state) => Some(termination),
        _ => None,
    };
    if let Some(error) = &error {
        text(span, "error.type", error.as_bytes());
        span.span_status(Status::Error, b"");
    }
}
