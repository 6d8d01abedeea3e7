//! `http-request auth-request`, an extension of Weir: a server of another backend decides whether a request is allowed. Must never send
//! the request's body, nor let a field of the client pass for one of the server.

use std::pin::pin;
use std::time::Duration;

use conn::client::{Answer, Exchange, Failure as ClientFailure, Message, Timeouts};
use policy::rule::{AuthRequest, Change, Reply};
use rt::Timer;
use wire::http::Head;

use crate::session::Session;
use crate::stream::client::client_abort::{self, unless_left};
use crate::stream::context::RequestContext;
use crate::stream::exchange::side_connection::SideServer;
use crate::stream::reply::ending::{AnswerTiming, Ending};
use crate::stream::request::evaluate::EvalContext;
use crate::stream::request::request_target::origin_form;
use crate::stream::request::rules::request::RequestEnd;
use crate::stream_state::failure::Failure;
use crate::stream_state::{Cause, Outcome, Phase, StreamState};

/// Time for the answer if the backend has no `timeout server`.
const ANSWER: Duration = Duration::from_secs(60);

/// Fields of the request that concern its connection, its body, or another resource than that of the subrequest.
const UNSENT: [&[u8]; 17] = [
    b"connection",
    b"content-length",
    b"expect",
    b"http2-settings",
    b"if-match",
    b"if-modified-since",
    b"if-none-match",
    b"if-range",
    b"if-unmodified-since",
    b"keep-alive",
    b"proxy-connection",
    b"range",
    b"sec-websocket-key",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
];

/// Fields that describe the request to the server. Those of the client are replaced.
const FORWARDED: [&[u8]; 5] =
    [b"x-forwarded-method", b"x-forwarded-proto", b"x-forwarded-host", b"x-forwarded-uri", b"x-forwarded-for"];

/// Fields of an answer that concern its connection or framing.
const UNPASSED: [&[u8]; 7] = [
    b"connection",
    b"content-length",
    b"keep-alive",
    b"proxy-connection",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
];

/// Asks the server, and applies its answer to the request.
///
/// # Errors
/// The request is refused, there is no answer that decides, or the client has disconnected.
pub(super) async fn authorize(context: &mut RequestContext<'_>, rule: &AuthRequest) -> Result<(), RequestEnd<'static>> {
    let session = context.session;
    let most = session.generation().program.global.bufsize;
    let prepared = {
        let state = &mut *context.state.borrow_mut();
        // An answer has to give them, even if the server cannot be asked.
        state.request.fields.retain(|name, _| !rule.is_copied(name));
        message(session, state, rule)
            .and_then(|message| Some((SideServer::choose(session, state, rule.backend)?, message)))
    };
    let mut answer = None;
    if let Some((server, message)) = prepared {
        let mut asked = pin!(ask(&server, &message, most));
        let wait = unless_left(session, &mut context.client.conn, &context.state, |cx, _| asked.as_mut().poll(cx));
        answer = wait.await.map_err(RequestEnd::Failed)?;
        client_abort::note_wait(&context.state);
    }
    match answer.filter(|answer| answer.head.status() < 500) {
        Some(answer) if (200..300).contains(&answer.head.status()) => {
            let state = &mut *context.state.borrow_mut();
            if admit(session, state, rule, &answer.head, most) { Ok(()) } else { undecided(rule) }
        }
        Some(answer) => Err(RequestEnd::Ended(refusal(&answer))),
        None => undecided(rule),
    }
}

/// Applies `on-error`.
fn undecided(rule: &AuthRequest) -> Result<(), RequestEnd<'static>> {
    if rule.allows_on_error {
        return Ok(());
    }
    Err(RequestEnd::Failed(Failure { outcome: Outcome::new(Cause::Proxy, Phase::Request), status: 503, page: true }))
}

/// Sends the subrequest, and reads the answer. A connection that was idle may have been closed: the subrequest is then sent once more.
/// `None`: there is no usable answer in time.
async fn ask(server: &SideServer, message: &Message, most: usize) -> Option<Answer> {
    let mut timer = Timer::new();
    let limit = server.proxy().timeouts.server.unwrap_or(ANSWER);
    let mut is_fresh = false;
    loop {
        let (stream, connection) = server.connect(&mut timer, is_fresh).await?;
        let patience = Timeouts::Until(rt::now() + limit);
        match Exchange::over(stream, message, patience).await {
            Ok(exchange) => {
                let (answer, stream) = exchange.whole_with_connection(most).await.ok()?;
                if let Some(stream) = stream {
                    server.keep(stream, connection);
                }
                return Some(answer);
            }
            Err(ClientFailure::Closed | ClientFailure::Broken(_)) if connection.was_idle => is_fresh = true,
            Err(_) => return None,
        }
    }
}

/// Returns the subrequest. `None`: its target is not valid.
fn message(session: &Session, state: &StreamState, rule: &AuthRequest) -> Option<Message> {
    let request = &state.request;
    let uri = origin_form(request.target());
    let mut target = Vec::new();
    if rule.keeps_target() {
        target.extend_from_slice(uri);
    } else {
        EvalContext::request(session, state).lend(|context| rule.render_target(context, &mut target));
    }
    if target.first() != Some(&b'/') || target.iter().any(|byte| *byte <= b' ' || *byte == 0x7f) {
        return None;
    }
    let mut bytes = Vec::with_capacity(target.len() + request.measure());
    for part in [rule.method.as_bytes(), b" ", &target, b" HTTP/1.1\r\n"] {
        bytes.extend_from_slice(part);
    }
    let mut add = |name: &[u8], value: &[u8]| {
        for part in [name, b": ", value, b"\r\n"] {
            bytes.extend_from_slice(part);
        }
    };
    for (name, value) in request.fields() {
        let is = |known: &[u8]| known.eq_ignore_ascii_case(name);
        if !UNSENT.into_iter().any(is) && !FORWARDED.into_iter().any(is) && !is_of_connection(request, name) {
            add(name, value);
        }
    }
    let source = state.source(session).map(|source| source.to_string()).unwrap_or_default();
    let scheme: &[u8] = if session.is_secure() { b"https" } else { b"http" };
    let host = request.host().unwrap_or_default();
    for (name, value) in FORWARDED.into_iter().zip([request.method(), scheme, host, uri, source.as_bytes()]) {
        add(name, value);
    }
    if !matches!(&*rule.method, "GET" | "OPTIONS" | "TRACE") {
        add(b"content-length", b"0");
    }
    bytes.extend_from_slice(b"\r\n");
    Some(Message { bytes, is_head: false })
}

/// Whether a field is listed as one of the connection (RFC 9110, section 7.6.1).
fn is_of_connection(head: &Head, name: &[u8]) -> bool {
    let mut options = head.all(b"connection").flat_map(|value| value.split(|byte| *byte == b','));
    options.any(|option| option.trim_ascii().eq_ignore_ascii_case(name))
}

/// Copies fields of the answer to the request, and sets the variables. Returns false if the request has no room for them.
fn admit(session: &Session, state: &mut StreamState, rule: &AuthRequest, answer: &Head, room: usize) -> bool {
    for name in rule.copies() {
        for value in answer.all(name) {
            if Change::Add(name, value).apply(&mut state.request, room).is_err() {
                return false;
            }
        }
    }
    EvalContext::request(session, state).lend(|context| rule.set_variables(context, |name| answer.first(name)));
    true
}

/// Passes the answer of a server that does not allow the request on to the client.
fn refusal(answer: &Answer) -> Ending<'static> {
    let head = &answer.head;
    let status = head.status();
    let mut text = format!("HTTP/1.1 {status} ").into_bytes();
    text.extend_from_slice(head.reason());
    text.extend_from_slice(b"\r\n");
    for (name, value) in head.fields() {
        if !UNPASSED.iter().any(|known| known.eq_ignore_ascii_case(name)) && !is_of_connection(head, name) {
            for part in [name, b": ", value, b"\r\n"] {
                text.extend_from_slice(part);
            }
        }
    }
    text.extend_from_slice(format!("content-length: {}\r\n\r\n", answer.body.len()).as_bytes());
    text.extend_from_slice(&answer.body);
    Ending {
        outcome: Outcome::new(Cause::Proxy, Phase::Request),
        status,
        text: Some(Reply::new(text)),
        manner: AnswerTiming::Prompt,
        denied: true,
        failed: false,
        challenged: status == 401,
    }
}
