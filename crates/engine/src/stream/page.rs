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
use crate::stream::rules::{has_rules_after, run_after};

/// A page made ready for a client.
pub struct Answer {
    /// Head and body, as they are sent. Empty where the page is: the connection then just ends.
    pub bytes: Vec<u8>,
    /// The connection may go on behind it.
    pub keep: bool,
}

/// The answer to a stream's request: that text with canonical fields, changed by `http-after-response`
/// rules, with the connection lines that this client needs.
pub fn to_stream(session: &Session, facts: &Facts, page: Cow<'_, [u8]>, keep: bool) -> Answer {
    let spelling = session.proxy().http.client_spelling.as_deref();
    let bare = facts.wants_head_alone();
    if spelling.is_none()
        && !has_rules_after(session, facts)
        && let Some(head) = canonical_head(&page)
    {
        return complete(page.into_owned(), head, (facts.request.version(), bare), keep);
    }
    let mut failed = false;
    let edit = |head: &mut Head| failed = run_after(session, facts, head).is_some();
    let answer = compose_with(&page, (&facts.request, bare), spelling, keep, edit);
    // Where the rules fail, it goes out as it was.
    let answer = match failed {
        true => compose_with(&page, (&facts.request, bare), spelling, keep, |_| {}),
        false => answer,
    };
    answer.unwrap_or_else(|| Answer { bytes: page.into_owned(), keep: false })
}

/// Where the head of a page ends whose lines are already what they would become if they were parsed and written anew;
/// `None`: that is not certain. It is for texts that we have put together ourselves, so it knows what is in them and no
/// more.
fn canonical_head(page: &[u8]) -> Option<usize> {
    /// Fields that it looks at.
    const MOST: usize = 32;
    let line = |from: usize| {
        let end = from + memchr::memchr(b'\r', page.get(from..)?)?;
        (page.get(end + 1) == Some(&b'\n')).then_some((&page[from..end], end + 2))
    };
    let is_text = |text: &[u8]| {
        !text.is_empty()
            && text.iter().all(|byte| matches!(byte, b' '..=b'~'))
            && !text.starts_with(b" ")
            && !text.ends_with(b" ")
    };
    let (start, mut at) = line(0)?;
    let (status, reason) = start.strip_prefix(b"HTTP/1.1 ")?.split_at_checked(4)?;
    // Those that have no body are framed in another way.
    let usual =
        matches!(status, [b'2'..=b'5', b'0'..=b'9', b'0'..=b'9', b' ']) && status != b"204 " && status != b"304 ";
    if !usual || !is_text(reason) {
        return None;
    }
    let mut framed = false;
    for _ in 0..MOST {
        let (field, next) = line(at)?;
        at = next;
        if field.is_empty() {
            return framed.then_some(at);
        }
        let colon = memchr::memchr(b':', field)?;
        let (name, value) = (&field[..colon], field[colon + 1..].strip_prefix(b" ")?);
        if !is_text(value) {
            return None;
        }
        match name {
            b"content-length" => {
                let digits = value.len() < 10 && value.iter().all(u8::is_ascii_digit);
                if framed || !digits || value.len() > 1 && value.starts_with(b"0") {
                    return None;
                }
                framed = true;
            }
            b"location"
            | b"cache-control"
            | b"content-type"
            | b"set-cookie"
            | b"www-authenticate"
            | b"proxy-authenticate"
            | b"retry-after" => {}
            _ => return None,
        }
    }
    None
}

/// Such a page with the connection line that a client with that `version` needs; `bare`: without its body.
fn complete(mut bytes: Vec<u8>, head: usize, (version, bare): (Version, bool), keep: bool) -> Answer {
    let line: &[u8] = match (keep, version) {
        (true, Version::Http10) => b"connection: keep-alive\r\n",
        (false, _) => b"connection: close\r\n",
        (true, Version::Http11) => b"",
    };
    if bare {
        bytes.truncate(head);
    }
    if !line.is_empty() {
        let end = head - 2;
        bytes.splice(end..end, line.iter().copied());
    }
    Answer { bytes, keep }
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
    let mut bytes = Vec::new();
    let edits = Edits { connection, framing: head.framing, version: head.version(), spelling, last: None };
    h1::encode_response(&head, &edits, &mut bytes).ok()?;
    if !bare {
        bytes.extend_from_slice(body);
    }
    Some(Answer { bytes, keep })
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
        let Some(head) = canonical_head(page) else { return false };
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
            let whole = compose(page, &request, None, keep).unwrap();
            let short = complete(page.to_vec(), head, (request.version(), method == "HEAD"), keep);
            let texts = [&whole, &short].map(|answer| String::from_utf8_lossy(&answer.bytes).into_owned());
            assert_eq!(texts[0], texts[1], "{version} {method} {keep}");
            assert_eq!(whole.keep, short.keep, "{version} {method} {keep}");
        }
        true
    }

    #[test]
    fn what_needs_no_parsing_comes_out_as_if_it_had_been_parsed() {
        for status in 200..=599 {
            compare(ErrorPages::standard(status));
        }
        assert!(compare(ErrorPages::standard(403)), "the usual pages are taken as they are");
        assert!(compare(
            b"HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: /a?b c\r\ncache-control: no-cache\r\n\r\n"
        ));
        assert!(compare(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nset-cookie: a=b; path=/;\r\n\r\nok"));
        assert!(compare(b"HTTP/1.1 401 Who\r\nwww-authenticate: Basic realm=\"r\"\r\ncontent-length: 12\r\n\r\nshort"));
    }

    #[test]
    fn what_is_not_certain_is_parsed() {
        for head in [
            "HTTP/1.1 302 Found\r\nlocation: /",
            "HTTP/1.0 302 Found\r\ncontent-length: 0",
            "HTTP/1.1 204 None\r\ncontent-length: 0",
            "HTTP/1.1 304 Same\r\ncontent-length: 0",
            "HTTP/1.1 101 Go\r\ncontent-length: 0",
            "HTTP/1.1 302 \r\ncontent-length: 0",
            "HTTP/1.1 302\r\ncontent-length: 0",
            "HTTP/1.1 302  Found\r\ncontent-length: 0",
            "HTTP/1.1 302 Found\r\nContent-Length: 0",
            "HTTP/1.1 302 Found\r\ncontent-length: 00",
            "HTTP/1.1 302 Found\r\ncontent-length: 1x",
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\ncontent-length: 0",
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: ",
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation:/",
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: /a ",
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: \t/",
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: /\u{7f}",
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: /\u{e9}",
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: /\rx: y",
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: /\nx: y",
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nconnection: keep-alive",
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\ntransfer-encoding: chunked",
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nx-own: 1",
        ] {
            let page = format!("{head}\r\n\r\n");
            assert_eq!(canonical_head(page.as_bytes()), None, "{head}");
            assert_eq!(canonical_head(head.as_bytes()), None, "{head}");
        }
        assert_eq!(canonical_head(b""), None);
    }
}
