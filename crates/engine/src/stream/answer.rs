//! Answers that rules describe: `deny`, `return`, `redirect` and their kin. Must never decide that there is one.

use policy::rule::{Answer, Body, Final, Redirect, RedirectKind};
use policy::sample::{Context, Direction};
use wire::http::reason;

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
    let mut page = Page::begin(answer.status, body.len());
    for (name, format) in &answer.fields {
        // A field of nothing is left out.
        page.field_with(name, |out| {
            let before = out.len();
            format.render_in(context, out);
            out.len() > before
        });
    }
    page.field(b"content-length", |out| number(body.len(), out));
    if let Some(kind) = answer.content_type.as_deref().filter(|_| !body.is_empty()) {
        page.field(b"content-type", |out| out.extend_from_slice(kind));
    }
    Some(page.end(&body))
}

/// The text of an answer while it is written.
struct Page(Vec<u8>);

impl Page {
    /// Its first line, and room for that much of a body.
    fn begin(status: u16, body: usize) -> Self {
        let mut text = Vec::with_capacity(256 + body);
        text.extend_from_slice(b"HTTP/1.1 ");
        number(usize::from(status), &mut text);
        text.push(b' ');
        text.extend_from_slice(reason(status).as_bytes());
        text.extend_from_slice(b"\r\n");
        Self(text)
    }

    /// A field: its name in lower case, and what could end its line as spaces.
    fn field(&mut self, name: &[u8], value: impl FnOnce(&mut Vec<u8>)) {
        self.field_with(name, |out| {
            value(out);
            true
        });
    }

    /// The same, left out where `value` says so.
    fn field_with(&mut self, name: &[u8], value: impl FnOnce(&mut Vec<u8>) -> bool) {
        let Self(text) = self;
        let start = text.len();
        text.extend_from_slice(name);
        text[start..].make_ascii_lowercase();
        text.extend_from_slice(b": ");
        if !value(text) {
            text.truncate(start);
            return;
        }
        let line = &mut text[start..];
        if memchr::memchr3(b'\r', b'\n', 0, line).is_some() {
            line.iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n' | 0)).for_each(|byte| *byte = b' ');
        }
        text.extend_from_slice(b"\r\n");
    }

    fn end(self, body: &[u8]) -> Vec<u8> {
        let Self(mut text) = self;
        text.extend_from_slice(b"\r\n");
        text.extend_from_slice(body);
        text
    }
}

/// A number in digits.
fn number(number: usize, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut first = digits.len();
    let mut rest = number;
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[first..]);
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
    let mut page = Page::begin(redirect.code, 0);
    page.field(b"content-length", |out| out.push(b'0'));
    page.field(b"location", |out| write_location(redirect, context, out));
    if matches!(redirect.code, 302 | 303 | 307) {
        page.field(b"cache-control", |out| out.extend_from_slice(b"no-cache"));
    }
    if let Some((cookie, cleared)) = &redirect.cookie {
        page.field(b"set-cookie", |out| {
            cookie.render_in(context, out);
            out.extend_from_slice(if *cleared { b"; path=/; Max-Age=0;" } else { b"; path=/;" });
        });
    }
    page.end(b"")
}

/// Where a redirect sends the client.
fn write_location(redirect: &Redirect, context: &Context<'_>, to: &mut Vec<u8>) {
    let (target, host) =
        context.request.map_or((&b""[..], &b""[..]), |request| (request.target(), request.host().unwrap_or_default()));
    let start = to.len();
    redirect.to.render_in(context, to);
    match redirect.kind {
        RedirectKind::Location => {
            let query = target.iter().position(|byte| *byte == b'?').map(|at| &target[at + 1..]);
            if let Some(query) = query.filter(|_| redirect.keep_query) {
                to.push(if to[start..].contains(&b'?') { b'&' } else { b'?' });
                to.extend_from_slice(query);
            }
        }
        RedirectKind::Prefix => {
            // A prefix of "/" alone adds nothing.
            if &to[start..] == b"/" {
                to.truncate(start);
            }
            append_path(redirect, path(target).unwrap_or_default(), to);
        }
        RedirectKind::Scheme => {
            to.extend_from_slice(b"://");
            to.extend_from_slice(host);
            append_path(redirect, path(target).filter(|path| !path.is_empty()).unwrap_or(b"/"), to);
        }
    }
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
    use super::{Page, challenge, number};

    #[test]
    fn what_could_end_a_line_does_not() {
        let mut page = Page::begin(302, 0);
        page.field(b"X-A", |out| out.extend_from_slice(b"a\r\nb: c\0"));
        page.field(b"empty", |_| ());
        page.field_with(b"none", |_| false);
        page.field(b"n", |out| [0, 7, 1_234_567_890].into_iter().for_each(|value| number(value, out)));
        let expected = b"HTTP/1.1 302 Found\r\nx-a: a  b: c \r\nempty: \r\nn: 071234567890\r\n\r\nbody";
        assert_eq!(page.end(b"body"), expected);
    }

    #[test]
    fn a_challenge_takes_the_place_of_others() {
        let page = b"HTTP/1.1 401 x\r\nA: b\r\nWWW-Authenticate: Digest\r\ncontent-length: 2\r\n\r\nok";
        let expected = b"HTTP/1.1 401 x\r\nA: b\r\ncontent-length: 2\r\nwww-authenticate: Basic realm=\"r\"\r\n\r\nok";
        assert_eq!(challenge(page, b"r", false), expected);
        assert_eq!(challenge(b"none", b"r", true), b"none");
    }
}
