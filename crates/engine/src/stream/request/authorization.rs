//! `http-request auth-request`, an extension of Weir: a server of another backend decides whether a request is allowed. Must never let
//! a field of the client pass for one of the server's answer.

use std::borrow::Cow;
use std::pin::pin;
use std::time::Duration;

use conn::client::{Answer, Exchange, Failure as ClientFailure, Message, Subject, Timeouts};
use policy::rule::{AuthRequest, Reply};
use rt::Timer;
use wire::http::target::behind_authority;

use crate::session::Session;
use crate::stream::client::client_abort::{self, unless_left};
use crate::stream::context::RequestContext;
use crate::stream::exchange::side_connection::SideServer;
use crate::stream::reply::ending::{AnswerTiming, Ending};
use crate::stream::request::evaluate::EvalContext;
use crate::stream::request::permission::{Storing, admit, withdraw};
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
    let (server, message, storing) = {
        let state = &mut *context.state.borrow_mut();
        let (message, storing) = (message(session, state, rule), Storing::begin(session, state, rule));
        withdraw(session, state, rule);
        // What the client has sent does not decide by `on-error`.
        let Some(message) = message else { return Err(failed(400)) };
        (SideServer::choose(session, state, rule.backend), message, storing)
    };
    let mut answer = None;
    if let Some(server) = server {
        let mut asked = pin!(ask(&server, &message, most));
        let wait = unless_left(session, &mut context.client.conn, &context.state, |cx, _| asked.as_mut().poll(cx));
        answer = wait.await.map_err(Unauthorized::Failed)?;
        client_abort::note_wait(&context.state);
    }
    match answer.filter(|answer| answer.head.status() < 500) {
        Some(answer) if (200..300).contains(&answer.head.status()) => {
            let state = &mut *context.state.borrow_mut();
            if admit(session, state, rule, &answer.head.fields) {
                if let Some(storing) = storing {
                    storing.store(rule, &answer.head);
                }
                return Ok(());
            }
            withdraw(session, state, rule);
            undecided(rule)
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
    Err(failed(503))
}

fn failed(status: i32) -> Unauthorized {
    Unauthorized::Failed(Failure { outcome: Outcome::new(Cause::Proxy, Phase::Request), status, page: true })
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

/// Returns path and query of a request, and the target of its subrequest without `path`. A target that is no path is sent as `/`.
fn targets(target: &[u8]) -> (Cow<'_, [u8]>, Cow<'_, [u8]>) {
    let uri: Cow<'_, [u8]> = match behind_authority(target) {
        Some(at) if target[at..].starts_with(b"/") => target[at..].into(),
        Some(at) => [b"/", &target[at..]].concat().into(),
        None => return (target.into(), b"/".into()),
    };
    (uri.clone(), uri)
}

/// Returns the subrequest. `None`: its target is not valid.
fn message(session: &Session, state: &StreamState, rule: &AuthRequest) -> Option<Message> {
    let (uri, mut target) = targets(state.request.target());
    if !rule.keeps_target() {
        target.to_mut().clear();
        EvalContext::request(session, state).lend(|context| rule.render_target(context, target.to_mut()));
    }
    // The server checks credentials, also if it gives others.
    let is_credential =
        |name: &[u8]| [&b"authorization"[..], b"cookie"].iter().any(|known| known.eq_ignore_ascii_case(name));
    let hides = |name: &[u8]| rule.is_copied(name) && !is_credential(name);
    let subject = Subject {
        method: &rule.method,
        target: &target,
        scheme: if session.is_secure() { "https" } else { "http" },
        uri: &uri,
        is_early: session.tls().is_some_and(tls::HandshakeInfo::is_early),
        hides: &hides,
        source: &state.source(session).map(|source| source.to_string()).unwrap_or_default(),
    };
    Message::about(&state.request, &subject)
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

#[cfg(test)]
mod tests {
    use super::targets;

    #[test]
    fn the_server_judges_the_path_that_is_served() {
        let rows = [
            ("/a?b", "/a?b", "/a?b"),
            ("http://h/a?b", "/a?b", "/a?b"),
            ("http://h", "/", "/"),
            ("http://h?page=admin&x=/public", "/?page=admin&x=/public", "/?page=admin&x=/public"),
            ("*", "*", "/"),
            ("h:443", "h:443", "/"),
        ];
        for (target, uri, asked) in rows {
            let found = targets(target.as_bytes());
            assert_eq!((&*found.0, &*found.1), (uri.as_bytes(), asked.as_bytes()), "{target}");
        }
    }
}
