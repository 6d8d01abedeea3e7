//! Error pages as responses to streams. Must never choose the status.

use std::borrow::Cow;

use conn::h1::prepared_answer::{self, PreparedAnswer};
use expression::sample::Direction;
use policy::program::{ErrorPages, Page};
use policy::rule::Reply;
use wire::http::Head;

use crate::session::Session;
use crate::stream::reply::answer::text;
use crate::stream::request::evaluate::EvalContext;
use crate::stream::request::rules::{has_rules_after, run_after};
use crate::stream_state::StreamState;

/// Prepares a response: that text with canonical fields, changed by `http-after-response` rules, with the connection fields
/// that this client needs.
pub fn to_stream<'t>(session: &Session, state: &StreamState, reply: Reply<'t>, keep: bool) -> PreparedAnswer<'t> {
    let spelling = session.proxy().http.client_spelling.as_deref();
    let bare = state.wants_head_alone();
    if let Some(head) = reply.head
        && spelling.is_none()
        && !has_rules_after(session, state)
    {
        let room = || session.worker.take_text();
        return prepared_answer::complete(reply.text, head, state.request.version(), bare, keep, room);
    }
    let mut failed = false;
    let edit = |head: &mut Head| {
        failed = run_after(session, state, head).is_some();
        !state.opens_tunnel(head.status())
    };
    let answer = prepared_answer::compose(&reply.text, &state.request, bare, spelling, keep, edit);
    // If the rules fail, the text is sent unchanged.
    let answer = match failed {
        true => prepared_answer::compose(&reply.text, &state.request, bare, spelling, keep, |_| true),
        false => answer,
    };
    answer.unwrap_or(PreparedAnswer { bytes: reply.text, keep: false, status: None })
}

/// Returns the page for a status: the backend's own, otherwise the frontend's, otherwise the standard page. `view` belongs to
/// the session.
pub fn of<'s>(session: &'s Session, view: EvalContext<'_>, status: u16) -> Reply<'s> {
    let backend = view.state.route.backend.map(|index| session.proxy_at(index));
    let own = backend.into_iter().chain([session.proxy()]).find_map(|proxy| proxy.errors.own(status));
    match own {
        None => ErrorPages::standard(status).lend(),
        Some(Page::Text(text)) => text.lend(),
        Some(Page::Described(answer)) => {
            // Once a server has responded, the page's expressions can read neither the request nor the response that the page
            // replaces.
            let answered = view.state.timings.response.is_some();
            let direction = if answered { Direction::Response } else { Direction::Request };
            // The failed evaluation is reset; that of the page may exceed the limit as well.
            view.state.rules.exhausted.set(false);
            match text(EvalContext { direction, response: None, ..view }, answer) {
                _ if view.state.rules.exhausted.get() => ErrorPages::standard(500).lend(),
                Some(reply) if reply.text.len() <= session.generation().program.global.bufsize => reply,
                // The page exceeds the buffer size.
                _ => ErrorPages::standard(500).lend(),
            }
        }
    }
}

/// Returns the answer with that status to data that was not a request: the page unchanged, except for the case of its field
/// names.
pub fn refusal(session: &Session, status: u16) -> Vec<u8> {
    let proxy = session.proxy();
    let mut bytes = prepared_answer::lowercase_names(proxy.errors.page(status));
    if let Some(spelling) = &proxy.http.client_spelling {
        prepared_answer::spell_names(&mut bytes, spelling);
    }
    bytes
}

/// Recycles the memory of an answer that was sent.
pub fn keep_text(session: &Session, answer: PreparedAnswer<'_>) {
    if let Cow::Owned(bytes) = answer.bytes {
        session.worker.keep_text(bytes);
    }
}
