//! Error pages as answers within a session. Must never decide which error it is.

use std::borrow::Cow;

use policy::program::{ErrorPages, Page};
use policy::rule::Reply;
use policy::sample::Direction;
use wire::h1::{self, ConnectionLine, Edits, Limits, Parse, RequestContext, Scan, Spelling};
use wire::http::{Framing, Head, Version};

use crate::facts::Facts;
use crate::session::Session;
use crate::stream::answer::text;
use crate::stream::evaluate::View;
use crate::stream::rules::{has_rules_after, run_after};

/// An answer made ready for a client.
pub struct Answer<'t> {
    /// Head and body, as they are sent. Empty where the text is: the connection then just ends.
    pub bytes: Cow<'t, [u8]>,
    /// The connection may go on behind it.
    pub keep: bool,
    /// The status that `http-after-response` rules have given it.
    pub status: Option<u16>,
}

impl Answer<'_> {
    /// It was sent: its memory is used again.
    pub fn end(self, session: &Session) {
        if let Cow::Owned(bytes) = self.bytes {
            session.worker.keep_text(bytes);
        }
    }
}

/// The answer to a stream's request: that text with canonical fields, changed by `http-after-response`
/// rules, with the connection lines that this client needs.
pub fn to_stream<'t>(session: &Session, facts: &Facts, reply: Reply<'t>, keep: bool) -> Answer<'t> {
    let spelling = session.proxy().http.client_spelling.as_deref();
    let bare = facts.wants_head_alone();
    if let Some(head) = reply.head
        && spelling.is_none()
        && !has_rules_after(session, facts)
    {
        let room = || session.worker.take_text();
        return complete(reply.text, head, (facts.request.version(), bare), keep, room);
    }
    let mut failed = false;
    let edit = |head: &mut Head| {
        failed = run_after(session, facts, head).is_some();
        !facts.opens_tunnel(head.status())
    };
    let answer = compose(&reply.text, (&facts.request, bare), spelling, keep, edit);
    // Where the rules fail, it goes out as it was.
    let answer = match failed {
        true => compose(&reply.text, (&facts.request, bare), spelling, keep, |_| true),
        false => answer,
    };
    answer.unwrap_or(Answer { bytes: reply.text, keep: false, status: None })
}

/// A text with a canonical head, which ends at `head`, with the connection line that a client with that `version` needs;
/// `bare`: without its body. Where it has to be written anew, `room` has the memory.
fn complete<'t>(
    text: Cow<'t, [u8]>,
    head: usize,
    (version, bare): (Version, bool),
    keep: bool,
    room: impl FnOnce() -> Vec<u8>,
) -> Answer<'t> {
    let line: &[u8] = match (keep, version) {
        (true, Version::Http10) => b"connection: keep-alive\r\n",
        (false, _) => b"connection: close\r\n",
        (true, Version::Http11) => b"",
    };
    if line.is_empty() && !bare {
        return Answer { bytes: text, keep, status: None };
    }
    // The empty line stands behind that one.
    let (before, behind) = text[..if bare { head } else { text.len() }].split_at(head - 2);
    let mut bytes = room();
    bytes.reserve(before.len() + line.len() + behind.len());
    for part in [before, line, behind] {
        bytes.extend_from_slice(part);
    }
    Answer { bytes: bytes.into(), keep, status: None }
}

/// The page for a status: the backend's own, else the frontend's, else that of every proxy. The session is that of the
/// view.
pub fn of<'s>(session: &'s Session, view: View<'_>, status: u16) -> Reply<'s> {
    let backend = view.facts.backend.map(|index| session.worker.proxy(index));
    let own = backend.into_iter().chain([session.proxy()]).find_map(|proxy| proxy.errors.own(status));
    match own {
        None => ErrorPages::standard(status).lend(),
        Some(Page::Text(text)) => text.lend(),
        Some(Page::Described(answer)) => {
            // As soon as there is an answer of a server, the request is not looked at any more, nor is what the page is to
            // take the place of.
            let answered = view.facts.timings.response.is_some();
            let direction = if answered { Direction::Response } else { Direction::Request };
            // What the page is the answer to counts no more; the page itself may cost too much as well.
            view.facts.exhausted.set(false);
            match text(View { direction, response: None, ..view }, answer) {
                _ if view.facts.exhausted.get() => ErrorPages::standard(500).lend(),
                Some(reply) if reply.text.len() <= session.worker.shared.program.global.bufsize => reply,
                // It fits in no buffer.
                _ => ErrorPages::standard(500).lend(),
            }
        }
    }
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

/// A page with the connection line that this client needs; `bare`: without its body. `edit` may change the head before it
/// is written, and returns whether the connection may go on then. `None`: the page is no HTTP answer, so it can only be
/// sent as it is.
fn compose(
    page: &[u8],
    (request, bare): (&Head, bool),
    spelling: Option<&Spelling>,
    keep: bool,
    edit: impl FnOnce(&mut Head) -> bool,
) -> Option<Answer<'static>> {
    let limits = Limits { max_head: page.len(), ..Limits::default() };
    let mut head = Head::new();
    let parsed = h1::parse_response(page, &limits, &RequestContext::default(), &mut Scan::default(), &mut head);
    let Ok(Parse::Complete { consumed }) = parsed else { return None };
    let (body, before) = (&page[consumed..], head.status());
    let may_go_on = edit(&mut head);
    let closes = head.connection.close || head.asks_to_close();
    let keep = keep && may_go_on && head.version() == Version::Http11 && head.framing != Framing::UntilClose && !closes;
    let connection = ConnectionLine::for_response(request.version(), head.version(), keep);
    let mut bytes = Vec::new();
    let edits = Edits { connection, framing: head.framing, version: head.version(), spelling, last: None };
    h1::encode_response(&head, &edits, &mut bytes).ok()?;
    if !bare && !matches!(head.status(), 204 | 304) {
        bytes.extend_from_slice(body);
    }
    Some(Answer { bytes: bytes.into(), keep, status: Some(head.status()).filter(|status| *status != before) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(version: &str, method: &str) -> Head {
        let (mut head, mut scan) = (Head::new(), Scan::default());
        let text = format!("{method} / HTTP/{version}\r\nhost: a\r\n\r\n");
        assert!(h1::parse_request(text.as_bytes(), &Limits::default(), &mut scan, &mut head).is_ok());
        head
    }

    /// Both ways, for every client; tells whether the short one was taken.
    fn compare(page: &[u8]) -> bool {
        let Some(head) = h1::canonical_head(page) else { return false };
        for (version, method, keep) in [
            ("1.1", "GET", true),
            ("1.1", "GET", false),
            ("1.1", "HEAD", true),
            ("1.1", "HEAD", false),
            ("1.0", "GET", true),
            ("1.0", "GET", false),
            ("1.0", "HEAD", true),
        ] {
            let request = request(version, method);
            let whole = compose(page, (&request, method == "HEAD"), None, keep, |_| true).unwrap();
            let short = complete(page.into(), head, (request.version(), method == "HEAD"), keep, Vec::new);
            let texts = [&whole, &short].map(|answer| String::from_utf8_lossy(&answer.bytes).into_owned());
            assert_eq!(texts[0], texts[1], "{version} {method} {keep}");
            assert_eq!(whole.keep, short.keep, "{version} {method} {keep}");
        }
        true
    }

    #[test]
    fn what_needs_no_parsing_comes_out_as_if_it_had_been_parsed() {
        for status in 200..=599 {
            compare(&ErrorPages::standard(status).text);
        }
        assert!(compare(&ErrorPages::standard(403).text), "the usual pages are taken as they are");
        assert!(compare(
            b"HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: /a?b c\r\ncache-control: no-cache\r\n\r\n"
        ));
        assert!(compare(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nset-cookie: a=b; path=/;\r\n\r\nok"));
        assert!(compare(b"HTTP/1.1 401 Who\r\nwww-authenticate: Basic realm=\"r\"\r\ncontent-length: 12\r\n\r\nshort"));
    }
}
