//! `http-request auth-request`, an extension of Weir: a server of another backend decides whether a request is allowed. Must never let
//! a field of the client pass for one of the server's answer.

use std::borrow::Cow;
use std::pin::pin;
use std::time::Duration;

use conn::client::{Answer, Exchange, Failure as ClientFailure, Subject, Subrequest, Timeouts, ask_on_stream};
use conn::upstream::Upstream;
use policy::rule::{AuthRequest, Reply};
use rt::Timer;
use wire::http::target::behind_authority;

use crate::session::Session;
use crate::stream::client::client_abort::{self, unless_left};
use crate::stream::context::RequestContext;
use crate::stream::exchange::side_connection::{Assigned, SideLink, SideServer, Unconnected};
use crate::stream::reply::ending::{AnswerTiming, Ending};
use crate::stream::request::evaluate::EvalContext;
use crate::stream::request::permission::{Storing, admit, withdraw};
use crate::stream::request::undecided::{self, Undecided};
use crate::stream_state::failure::Failure;
use crate::stream_state::{Cause, Outcome, Phase, StreamState};
use crate::worker::SharedStreamState;

/// Time for the answer if the backend has no `timeout server`.
const ANSWER: Duration = Duration::from_secs(60);

/// Message about an answer whose fields do not fit.
const NO_ROOM: &str = "the request has no room for its fields";

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
    let (assigned, message, storing) = {
        let state = &mut *context.state.borrow_mut();
        let (message, storing) = (message(session, state, rule), Storing::begin(session, state, rule));
        withdraw(session, state, rule);
        // What the client has sent does not decide by `on-error`.
        let Some(message) = message else { return Err(failed(400)) };
        (SideServer::assign(session, state, rule.backend), message, storing)
    };
    let asked = {
        let asking = Asking { session, state: &context.state, backend: rule.backend, message: &message, most };
        let mut asked = pin!(asking.ask(assigned));
        let wait = unless_left(session, &mut context.client.conn, &context.state, |cx, _| asked.as_mut().poll(cx));
        wait.await.map_err(Unauthorized::Failed)?
    };
    client_abort::note_wait(&context.state);
    match asked {
        Ok((answer, _)) if (300..500).contains(&answer.head.status()) => Err(Unauthorized::Refused(refusal(&answer))),
        Ok((answer, server)) if (200..300).contains(&answer.head.status()) => {
            let state = &mut *context.state.borrow_mut();
            if admit(session, state, rule, &answer.head.fields) {
                if let Some(storing) = storing {
                    storing.store(rule, &answer.head);
                }
                return Ok(());
            }
            withdraw(session, state, rule);
            undecided::report(session, state, rule, &Undecided::new(server, NO_ROOM));
            undecided(rule)
        }
        // Other numbers have no meaning (RFC 9110, section 15).
        Ok((_, server)) => {
            let failed = Undecided::new(server, "its answer has an invalid status");
            undecided::report(session, &mut context.state.borrow_mut(), rule, &failed);
            undecided(rule)
        }
        Err(failed) => {
            undecided::report(session, &mut context.state.borrow_mut(), rule, &failed);
            undecided(rule)
        }
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

/// A subrequest that is to be sent.
struct Asking<'a> {
    session: &'a Session,
    state: &'a SharedStreamState,
    /// Index of the backend's proxy.
    backend: usize,
    message: &'a Subrequest,
    /// Maximum length of the answer's body.
    most: usize,
}

impl Asking<'_> {
    /// Waits for a server if none has a free slot, sends the subrequest, and reads the answer. Returns the answer, whose status is
    /// below 500, and the index of the server.
    async fn ask(&self, assigned: Result<Assigned, Unconnected>) -> Result<(Answer, usize), Undecided> {
        let unasked = |why: Unconnected| Undecided::new(None, why);
        let server = match assigned.map_err(unasked)? {
            Assigned::Chosen(server) => server,
            Assigned::Queued(ticket) => {
                let slot = SideServer::wait(self.session, self.backend, ticket).await.map_err(unasked)?;
                let index = slot.server();
                let server = SideServer::of_slot(self.session, &self.state.borrow(), self.backend, slot, false);
                server.ok_or_else(|| Undecided::new(index, Unconnected::Unfit))?
            }
        };
        let answer = self.send(&server).await.map_err(|why| Undecided::new(server.index(), why))?;
        match answer.head.status() {
            status @ 500.. => Err(Undecided::new(server.index(), format!("status {status}"))),
            _ => Ok((answer, server.index())),
        }
    }

    /// Sends the subrequest, and reads the answer. A connection that was idle may have been closed, and one of HTTP/2 may end before it
    /// takes the subrequest: it is then sent once more.
    async fn send(&self, server: &SideServer) -> Result<Answer, String> {
        let mut timer = Timer::new();
        let limit = server.proxy().timeouts.server.unwrap_or(ANSWER);
        let mut is_fresh = false;
        loop {
            let link = server.attach(self.session, &mut timer, is_fresh).await.map_err(|why| why.to_string())?;
            let by = rt::now() + limit;
            let (why, may_repeat) = match link {
                SideLink::Own(stream, connection) => {
                    match Exchange::over(stream, &self.message.message(), Timeouts::Until(by)).await {
                        Ok(exchange) => {
                            let whole = exchange.whole_with_connection(self.most).await;
                            let (answer, stream) = whole.map_err(|why| why.to_string())?;
                            if let Some(stream) = stream {
                                server.keep(stream, connection);
                            }
                            return Ok(answer);
                        }
                        Err(why) => {
                            let has_ended = matches!(why, ClientFailure::Closed | ClientFailure::Broken(_));
                            (why, connection.was_idle && has_ended)
                        }
                    }
                }
                SideLink::Shared { mut carrier, was_idle } => {
                    let frames = self.message.frames().ok_or("the subrequest is too large")?;
                    match ask_on_stream(&mut carrier, frames, by, self.most).await {
                        Ok(answer) => return Ok(answer),
                        Err(why) => {
                            let has_ended = was_idle && matches!(why, ClientFailure::Closed);
                            (why, has_ended || Upstream::of(&mut carrier).is_refused())
                        }
                    }
                }
            };
            if is_fresh || !may_repeat {
                return Err(why.to_string());
            }
            is_fresh = true;
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
fn message(session: &Session, state: &StreamState, rule: &AuthRequest) -> Option<Subrequest> {
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
    Subrequest::about(&state.request, &subject)
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
