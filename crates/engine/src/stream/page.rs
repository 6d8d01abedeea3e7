//! Error pages as answers within a session. Must never decide which error it is.

use std::borrow::Cow;

use conn::h1::prepared::{self, Prepared};
use expression::sample::Direction;
use policy::program::{ErrorPages, Page};
use policy::rule::Reply;
use wire::http::Head;

use crate::session::Session;
use crate::stream::answer::text;
use crate::stream::evaluate::EvalContext;
use crate::stream::rules::{has_rules_after, run_after};
use crate::stream_state::StreamState;

/// The answer to a stream's request: that text with canonical fields, changed by `http-after-response`
/// rules, with the connection lines that this client needs.
pub fn to_stream<'t>(session: &Session, state: &StreamState, reply: Reply<'t>, keep: bool) -> Prepared<'t> {
    let spelling = session.proxy().http.client_spelling.as_deref();
    let bare = state.wants_head_alone();
    if let Some(head) = reply.head
        && spelling.is_none()
        && !has_rules_after(session, state)
    {
        let room = || session.worker.take_text();
        return prepared::complete(reply.text, head, (state.request.version(), bare), keep, room);
    }
    let mut failed = false;
    let edit = |head: &mut Head| {
        failed = run_after(session, state, head).is_some();
        !state.opens_tunnel(head.status())
    };
    let answer = prepared::compose(&reply.text, (&state.request, bare), spelling, keep, edit);
    // Where the rules fail, it goes out as it was.
    let answer = match failed {
        true => prepared::compose(&reply.text, (&state.request, bare), spelling, keep, |_| true),
        false => answer,
    };
    answer.unwrap_or(Prepared { bytes: reply.text, keep: false, status: None })
}

/// The page for a status: the backend's own, else the frontend's, else that of every proxy. The session is that of the
/// view.
pub fn of<'s>(session: &'s Session, view: EvalContext<'_>, status: u16) -> Reply<'s> {
    let backend = view.state.backend.map(|index| session.proxy_at(index));
    let own = backend.into_iter().chain([session.proxy()]).find_map(|proxy| proxy.errors.own(status));
    match own {
        None => ErrorPages::standard(status).lend(),
        Some(Page::Text(text)) => text.lend(),
        Some(Page::Described(answer)) => {
            // As soon as there is an answer of a server, the request is not looked at any more, nor is what the page is to
            // take the place of.
            let answered = view.state.timings.response.is_some();
            let direction = if answered { Direction::Response } else { Direction::Request };
            // What the page is the answer to counts no more; the page itself may cost too much as well.
            view.state.exhausted.set(false);
            match text(EvalContext { direction, response: None, ..view }, answer) {
                _ if view.state.exhausted.get() => ErrorPages::standard(500).lend(),
                Some(reply) if reply.text.len() <= session.generation().program.global.bufsize => reply,
                // It fits in no buffer.
                _ => ErrorPages::standard(500).lend(),
            }
        }
    }
}

/// The answer with that status to what was no request: the page as it is, but for the case of its fields' names.
pub fn refusal(session: &Session, status: u16) -> Vec<u8> {
    let proxy = session.proxy();
    let mut bytes = prepared::lowercase_names(proxy.errors.page(status));
    if let Some(spelling) = &proxy.http.client_spelling {
        prepared::spell_names(&mut bytes, spelling);
    }
    bytes
}

/// An answer was sent: its memory is used again.
pub fn keep_text(session: &Session, answer: Prepared<'_>) {
    if let Cow::Owned(bytes) = answer.bytes {
        session.worker.keep_text(bytes);
    }
}
