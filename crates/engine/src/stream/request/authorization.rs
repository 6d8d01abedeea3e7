//! `http-request auth-request`, an extension of Weir: a server of another backend decides whether a request is allowed. Must never let
//! a field of the client pass for one of the server's answer.

use std::pin::pin;
use std::time::Duration;

use conn::client::{Answer, Exchange, Failure as ClientFailure, Message, Subject, Timeouts};
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
use crate::stream_state::failure::Failure;
use crate::stream_state::{Cause, Outcome, Phase, StreamState};

/// Time for the answer if the backend has no `timeout server`.
const ANSWER: Duration = Duration::from_secs(60);

/// Why a request is not allowed.
pub(super) enum Unauthorized {
    /// The server has refused it.
    Refused(Ending<'static>),
    /// Nothing has decided, or the client has disconnected.
    Failed(Failure),
}

/// Asks the server, and applies its answer to the request.
///
/// # Errors
/// The request is not allowed.
pub(super) async fn authorize(context: &mut RequestContext<'_>, rule: &AuthRequest) -> Result<(), Unauthorized> {
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
        answer = wait.await.map_err(Unauthorized::Failed)?;
        client_abort::note_wait(&context.state);
    }
    match answer.filter(|answer| answer.head.status() < 500) {
        Some(answer) if (200..300).contains(&answer.head.status()) => {
            let state = &mut *context.state.borrow_mut();
            if admit(session, state, rule, &answer.head, most) { Ok(()) } else { undecided(rule) }
        }
        Some(answer) => Err(Unauthorized::Refused(refusal(&answer))),
        None => undecided(rule),
    }
}

/// Applies `on-error`.
fn undecided(rule: &AuthRequest) -> Result<(), Unauthorized> {
    if rule.allows_on_error {
        return Ok(());
    }
    Err(Unauthorized::Failed(Failure { outcome: Outcome::new(Cause::Proxy, Phase::Request), status: 503, page: true }))
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
    let uri = origin_form(state.request.target());
    let mut target = Vec::new();
    if rule.keeps_target() {
        target.extend_from_slice(uri);
    } else {
        EvalContext::request(session, state).lend(|context| rule.render_target(context, &mut target));
    }
    let subject = Subject {
        method: &rule.method,
        target: &target,
        scheme: if session.is_secure() { "https" } else { "http" },
        uri,
        source: &state.source(session).map(|source| source.to_string()).unwrap_or_default(),
    };
    Message::about(&state.request, &subject)
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
    let status = answer.head.status();
    Ending {
        outcome: Outcome::new(Cause::Proxy, Phase::Request),
        status,
        text: Some(Reply::new(answer.encode())),
        manner: AnswerTiming::Prompt,
        denied: true,
        failed: false,
        challenged: status == 401,
    }
}
