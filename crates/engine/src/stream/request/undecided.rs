//! Requests on which no server has decided (`auth-request`): their variables and a message name the server and the reason. Must never
//! decide on a request.

use config::spec::LogLevel;
use policy::rule::AuthRequest;

use crate::session::Session;
use crate::stream::request::evaluate::EvalContext;
use crate::stream_state::StreamState;

/// The reason why there is no decision.
pub(super) struct Undecided {
    /// Index of the server that was asked.
    server: Option<usize>,
    why: String,
}

impl Undecided {
    pub(super) fn new(server: impl Into<Option<usize>>, why: impl ToString) -> Self {
        Self { server: server.into(), why: why.to_string() }
    }
}

/// Sets the variables of the request, and logs a message in the log of the backend, at most one a second.
pub(super) fn report(session: &Session, state: &mut StreamState, rule: &AuthRequest, undecided: &Undecided) {
    let (worker, proxy) = (&session.worker, session.proxy_at(rule.backend));
    let server = undecided.server.and_then(|index| proxy.server(index));
    let name = format!("{}/{}", proxy.name, server.map_or("<NOSRV>", |server| &*server.name));
    EvalContext::request(session, state).lend(|context| rule.set_failure(context, &name, &undecided.why));
    let Some(others) = worker.proxy_state(rule.backend).note_undecided(rt::now()) else { return };
    let who = if server.is_some() { format!("Server {name}") } else { format!("Backend {}", proxy.name) };
    let more = if others > 0 { format!(" ({others} more since the last message)") } else { String::new() };
    let (own, why) = (&session.proxy().name, &undecided.why);
    let text = format!("{who} has not decided on a request of {own}, reason: {why}{more}.");
    worker.announce(proxy.index, LogLevel::Err, &text);
}
