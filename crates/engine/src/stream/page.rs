//! Error pages as answers within a session. Must never decide which error it is.

use std::borrow::Cow;

use policy::program::{ErrorPages, Page};
use policy::sample::Direction;
use wire::h1::{self, ConnectionLine, Edits, Limits, Parse, RequestContext, Scan, Spelling};
use wire::http::{Framing, Head, Method, Version};

use crate::facts::Facts;
use crate::session::Session;
use crate::stream::answer::text;
use crate::stream::evaluate::View;
use crate::stream::rules::run_after;

/// A page made ready for a client.
pub struct Answer {
    /// Head and body, as they are sent. Empty where the page is: the connection then just ends.
    pub bytes: Vec<u8>,
    /// The connection may go on behind it.
    pub keep: bool,
}

/// The answer to a stream's request: that text with canonical fields, changed by `http-after-response`
/// rules, with the connection lines that this client needs.
pub fn to_stream(session: &Session, facts: &Facts, page: &[u8], keep: bool) -> Answer {
    let spelling = session.proxy().http.client_spelling.as_deref();
    let mut failed = false;
    let edit = |head: &mut Head| failed = run_after(session, facts, head).is_some();
    let bare = facts.wants_head_alone();
    let answer = compose_with(page, (&facts.request, bare), spelling, keep, edit);
    // Where the rules fail, it goes out as it was.
    let answer = match failed {
        true => compose_with(page, (&facts.request, bare), spelling, keep, |_| {}),
        false => answer,
    };
    answer.unwrap_or_else(|| Answer { bytes: page.to_vec(), keep: false })
}

/// The page for a status: the backend's own, else the frontend's, else that of every proxy.
pub fn of<'a>(view: View<'a>, status: u16) -> Cow<'a, [u8]> {
    let (session, facts) = (view.session, view.facts);
    let backend = facts.backend.map(|index| session.worker.proxy(index));
    let own = backend.into_iter().chain([session.proxy()]).find_map(|proxy| proxy.errors.own(status));
    match own {
        None => ErrorPages::standard(status).into(),
        Some(Page::Text(text)) => Cow::Borrowed(&**text),
        Some(Page::Described(answer)) => {
            // As soon as there is an answer of a server, the request is not looked at any more, nor is what the page is to
            // take the place of.
            let answered = facts.timings.response.is_some();
            let direction = if answered { Direction::Response } else { Direction::Request };
            View { direction, response: None, ..view }.lend(|context| match text(answer, context) {
                Some(text) if text.len() <= context.limit => text.into(),
                // It fits in no buffer.
                _ => ErrorPages::standard(500).into(),
            })
        }
    }
}

/// The answer with that status to a request that was understood, which no rule looks at.
pub fn answer(view: View<'_>, status: u16, keep: bool) -> Answer {
    let page = of(view, status);
    let spelling = view.session.proxy().http.client_spelling.as_deref();
    compose(&page, &view.facts.request, spelling, keep)
        .unwrap_or_else(|| Answer { bytes: page.into_owned(), keep: false })
}

/// The answer with that status to what was no request: the page as it is, but for the case of its fields' names.
pub fn refusal(session: &Session, status: u16) -> Vec<u8> {
    let proxy = session.proxy();
    let page = proxy.errors.page(status);
    let head = page.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(0);
    let mut bytes = page.to_vec();
    let mut in_name = false;
    for byte in &mut bytes[..head] {
        match *byte {
            b'\n' => in_name = true,
            b':' => in_name = false,
            _ if in_name => byte.make_ascii_lowercase(),
            _ => {}
        }
    }
    if let Some(spelling) = &proxy.http.client_spelling {
        spelling.apply(&mut bytes[..head]);
    }
    bytes
}

/// `None`: the page is no HTTP answer, so it can only be sent as it is.
pub fn compose(page: &[u8], request: &Head, spelling: Option<&Spelling>, keep: bool) -> Option<Answer> {
    compose_with(page, (request, request.known_method() == Method::Head), spelling, keep, |_| {})
}

/// The same with a change of the head before it is written. `bare`: without its body.
fn compose_with(
    page: &[u8],
    (request, bare): (&Head, bool),
    spelling: Option<&Spelling>,
    keep: bool,
    edit: impl FnOnce(&mut Head),
) -> Option<Answer> {
    let limits = Limits { max_head: page.len(), ..Limits::default() };
    let mut head = Head::new();
    let parsed = h1::parse_response(page, &limits, &RequestContext::default(), &mut Scan::default(), &mut head);
    let Ok(Parse::Complete { consumed }) = parsed else { return None };
    let body = &page[consumed..];
    edit(&mut head);
    let keep = keep && head.version() == Version::Http11 && head.framing != Framing::UntilClose;
    let connection = match (keep, request.version(), head.version()) {
        (true, Version::Http10, _) => ConnectionLine::KeepAlive,
        (false, _, Version::Http11) => ConnectionLine::Close,
        _ => ConnectionLine::Nothing,
    };
    let mut out = rt::large_buffer();
    let edits = Edits { connection, framing: head.framing, version: head.version(), spelling, last: None };
    h1::encode_response(&head, &edits, &mut out).ok()?;
    let mut bytes = out.data().to_vec();
    if !bare {
        bytes.extend_from_slice(body);
    }
    Some(Answer { bytes, keep })
}
