//! Answers that rules describe: `deny`, `return`, `redirect` and their kin. Must never decide that there is one.

use policy::rule::{Answer, Body, Final, Redirect, RedirectKind};
use policy::sample::{Context, Direction};
use wire::http::{Head, reason};

use crate::facts::{Cause, Outcome, Phase};
use crate::stream::evaluate::View;
use crate::stream::page;
use crate::stream::redirect::path;

/// What a rule makes of a message.
pub struct Ending {
    /// How it is logged.
    pub outcome: Outcome,
    /// The answer's status; 0: none is given, and the connection ends.
    pub status: u16,
    /// The whole answer as text; `None`: the proxy's page for that status.
    pub page: Option<Vec<u8>>,
    /// How it comes.
    pub manner: Manner,
    /// A rule has refused the message.
    pub denied: bool,
    /// A rule could not do what it had to.
    pub failed: bool,
    /// A rule asks the client who it is.
    pub challenged: bool,
}

impl Ending {
    /// An answer of a server that does not pass: the client gets the proxy's page for that status.
    pub fn refused(status: u16) -> Self {
        let outcome = Outcome::new(Cause::Proxy, Phase::Headers);
        Self { outcome, status, page: None, manner: Manner::Prompt, denied: true, failed: false, challenged: false }
    }
}

/// How an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// At once.
    Prompt,
    /// After `timeout tarpit`.
    Late,
    /// Not at all: the connection ends.
    Never,
    /// Not at all, and the client is not told either; or by a reset that lives so many hops.
    Silent(Option<u8>),
}

/// What a rule that ended the evaluation means for the message that was looked at.
pub fn ending(view: View<'_>, ended: &Final) -> Ending {
    let phase = if view.direction == Direction::Request { Phase::Request } else { Phase::Headers };
    let answered = |cause, status, page, manner| {
        let phase = if manner == Manner::Late { Phase::Tarpit } else { phase };
        let denied = cause == Cause::Proxy;
        Ending { outcome: Outcome::new(cause, phase), status, page, manner, denied, failed: false, challenged: false }
    };
    view.lend(|context| match ended {
        Final::Allow | Final::SwitchMode => answered(Cause::Normal, 200, None, Manner::Prompt),
        Final::Deny(answer) => {
            with_page(answer, context, |status, page| answered(Cause::Proxy, status, page, Manner::Prompt))
        }
        Final::Return(answer) => {
            with_page(answer, context, |status, page| answered(Cause::Local, status, page, Manner::Prompt))
        }
        Final::Redirect(redirect) => match location(redirect, context) {
            page if page.len() <= context.limit => answered(Cause::Local, redirect.code, Some(page), Manner::Prompt),
            _ => answered(Cause::Internal, 500, None, Manner::Prompt),
        },
        Final::Tarpit(answer) => {
            with_page(answer, context, |status, page| answered(Cause::Proxy, status, page, Manner::Late))
        }
        Final::Reject | Final::Close => answered(Cause::Proxy, 0, None, Manner::Never),
        Final::SilentDrop(hops) => answered(Cause::Proxy, 0, None, Manner::Silent(*hops)),
        Final::Challenge(realm) => {
            let proxied = view.session.proxy().http.asks_as_proxy(&view.facts.request);
            let status = if proxied { 407 } else { 401 };
            let page = Some(challenge(&page::of(view, status), realm, proxied));
            Ending { challenged: true, ..answered(Cause::Local, status, page, Manner::Prompt) }
        }
        Final::Fault(status) => {
            Ending { denied: false, failed: *status == 500, ..answered(Cause::Proxy, *status, None, Manner::Prompt) }
        }
    })
}

/// The status and the text of an answer. In the place of one that was put together and fits in no buffer comes the proxy's
/// page for an internal error.
fn with_page(answer: &Answer, context: &Context<'_>, answered: impl FnOnce(u16, Option<Vec<u8>>) -> Ending) -> Ending {
    // What comes from the configuration is as large as it was when that was read.
    let fixed = match &answer.body {
        Body::Page(page) => page.len(),
        Body::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    match text(answer, context) {
        Some(page) if page.len() - fixed > context.limit => answered(500, None),
        page => answered(answer.status, page),
    }
}

/// The text of an answer; `None`: it is the proxy's page.
pub fn text(answer: &Answer, context: &Context<'_>) -> Option<Vec<u8>> {
    let body = match &answer.body {
        Body::Default => return None,
        Body::Page(page) => return Some(page.to_vec()),
        Body::Empty => Vec::new(),
        Body::Bytes(bytes) => bytes.to_vec(),
        Body::Format(format) => {
            let mut body = Vec::new();
            format.render_in(context, &mut body);
            body
        }
    };
    let mut fields = Head::new();
    for (name, format) in &answer.fields {
        let mut value = Vec::new();
        format.render_in(context, &mut value);
        // A field of nothing is left out.
        if !value.is_empty() {
            fields.append(name, &value);
        }
    }
    fields.append(b"content-length", body.len().to_string().as_bytes());
    if let Some(kind) = answer.content_type.as_deref().filter(|_| !body.is_empty()) {
        fields.append(b"content-type", kind);
    }
    Some(compose(answer.status, &fields, &body))
}

fn compose(status: u16, fields: &Head, body: &[u8]) -> Vec<u8> {
    let mut page = Vec::with_capacity(128 + body.len());
    page.extend_from_slice(format!("HTTP/1.1 {status} {}\r\n", reason(status)).as_bytes());
    for (name, value) in fields.fields() {
        page.extend_from_slice(name);
        page.extend_from_slice(b": ");
        page.extend_from_slice(value);
        page.extend_from_slice(b"\r\n");
    }
    page.extend_from_slice(b"\r\n");
    page.extend_from_slice(body);
    page
}

/// A page that asks for a name and a password, in the place of what it asks for itself.
fn challenge(page: &[u8], realm: &[u8], proxied: bool) -> Vec<u8> {
    let name: &[u8] = if proxied { b"proxy-authenticate:" } else { b"www-authenticate:" };
    let Some(end) = memchr::memmem::find(page, b"\r\n\r\n") else { return page.to_vec() };
    let mut out = Vec::with_capacity(page.len() + realm.len() + 40);
    let asks = |line: &[u8]| line.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name));
    for line in page[..end + 2].split_inclusive(|byte| *byte == b'\n').filter(|line| !asks(line)) {
        out.extend_from_slice(line);
    }
    out.extend_from_slice(name);
    out.extend_from_slice(b" Basic realm=\"");
    out.extend_from_slice(realm);
    out.extend_from_slice(b"\"\r\n");
    out.extend_from_slice(&page[end + 2..]);
    out
}

/// The text of a redirect.
fn location(redirect: &Redirect, context: &Context<'_>) -> Vec<u8> {
    let (target, host) =
        context.request.map_or((&b""[..], &b""[..]), |request| (request.target(), request.host().unwrap_or_default()));
    let mut to = Vec::new();
    redirect.to.render_in(context, &mut to);
    match redirect.kind {
        RedirectKind::Location => {
            let query = target.iter().position(|byte| *byte == b'?').map(|at| &target[at + 1..]);
            if let Some(query) = query.filter(|_| redirect.keep_query) {
                to.push(if to.contains(&b'?') { b'&' } else { b'?' });
                to.extend_from_slice(query);
            }
        }
        RedirectKind::Prefix => {
            // A prefix of "/" alone adds nothing.
            if to == b"/" {
                to.clear();
            }
            append_path(redirect, path(target).unwrap_or_default(), &mut to);
        }
        RedirectKind::Scheme => {
            to.extend_from_slice(b"://");
            to.extend_from_slice(host);
            append_path(redirect, path(target).filter(|path| !path.is_empty()).unwrap_or(b"/"), &mut to);
        }
    }
    let mut fields = Head::new();
    fields.append(b"content-length", b"0");
    fields.append(b"location", &to);
    if matches!(redirect.code, 302 | 303 | 307) {
        fields.append(b"cache-control", b"no-cache");
    }
    if let Some((cookie, cleared)) = &redirect.cookie {
        let mut value = Vec::new();
        cookie.render_in(context, &mut value);
        value.extend_from_slice(if *cleared { b"; path=/; Max-Age=0;" } else { b"; path=/;" });
        fields.append(b"set-cookie", &value);
    }
    compose(redirect.code, &fields, b"")
}

fn append_path(redirect: &Redirect, path: &[u8], to: &mut Vec<u8>) {
    let query = path.iter().position(|byte| *byte == b'?').unwrap_or(path.len());
    let path = if redirect.drop_query { &path[..query] } else { path };
    to.extend_from_slice(path);
    if redirect.append_slash && !path.is_empty() && !path.ends_with(b"/") {
        to.push(b'/');
    }
}

#[cfg(test)]
mod tests {
    use super::challenge;

    #[test]
    fn a_challenge_takes_the_place_of_others() {
        let page = b"HTTP/1.1 401 x\r\nA: b\r\nWWW-Authenticate: Digest\r\ncontent-length: 2\r\n\r\nok";
        let expected = b"HTTP/1.1 401 x\r\nA: b\r\ncontent-length: 2\r\nwww-authenticate: Basic realm=\"r\"\r\n\r\nok";
        assert_eq!(challenge(page, b"r", false), expected);
        assert_eq!(challenge(b"none", b"r", true), b"none");
    }
}
