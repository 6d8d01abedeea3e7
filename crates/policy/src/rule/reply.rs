//! The text of answers that are given in a server's place: what `redirect`, `return` and `deny` say, and error pages. What
//! is the same for every client is put together once, when the configuration is read. Must never send one.

use super::action::{Answer, Body, Redirect, RedirectKind};
use expression::sample::Context;
use std::borrow::Cow;
use wire::h1::{canonical_head, is_canonical_value};
use wire::http::{reason, target};

/// The text of an answer, head and body.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply<'t> {
    /// All of it. Empty: nothing is sent, the connection is only closed.
    pub text: Cow<'t, [u8]>,
    /// Where its head ends, if that is in the form in which it is sent ([`canonical_head`]).
    pub head: Option<usize>,
}

impl<'t> Reply<'t> {
    /// Of a text, which is looked at once.
    pub fn new(text: impl Into<Cow<'t, [u8]>>) -> Self {
        let text = text.into();
        Self { head: canonical_head(&text), text }
    }

    /// The same with its own text.
    pub fn into_owned(self) -> Reply<'static> {
        Reply { text: Cow::Owned(self.text.into_owned()), head: self.head }
    }

    /// The same text, lent.
    pub fn lend(&self) -> Reply<'_> {
        Reply { text: Cow::Borrowed(&self.text), head: self.head }
    }
}

impl Answer {
    /// The same answer, written now if it says the same to every client.
    pub(super) fn written(self) -> Self {
        let body: &[u8] = match &self.body {
            Body::Default | Body::Page(_) | Body::Written(..) | Body::Format(_) => return self,
            Body::Empty => b"",
            Body::Bytes(bytes) => bytes,
        };
        let mut text = Writer::begin(self.status, Vec::new());
        for (name, format) in &self.fields {
            let Some(value) = format.constant() else { return self };
            text.field_if_any(name, |out| out.extend_from_slice(value));
        }
        let text = Reply::new(self.finish(text, body));
        Self { body: Body::Written(text, body.len()), fields: Vec::new(), content_type: None, ..self }
    }

    /// What the answer says; `None`: it is the proxy's page for its status. `room` is empty memory to write to.
    pub fn reply(&self, context: &Context<'_>, room: Vec<u8>) -> Option<Reply<'_>> {
        let mut rendered = Vec::new();
        let body = match &self.body {
            Body::Default => return None,
            Body::Page(page) => return Some(page.lend()),
            Body::Written(text, _) => return Some(text.lend()),
            Body::Empty => &[],
            Body::Bytes(bytes) => &**bytes,
            Body::Format(format) => {
                format.render_in(context, &mut rendered);
                &rendered
            }
        };
        let mut written = Writer::begin(self.status, room);
        for (name, format) in &self.fields {
            written.field_if_any(name, |out| format.render_in(context, out));
        }
        Some(Reply::new(self.finish(written, body)))
    }

    fn finish(&self, mut written: Writer, body: &[u8]) -> Vec<u8> {
        written.field(b"content-length", |out| number(body.len(), out));
        if let Some(kind) = self.content_type.as_deref().filter(|_| !body.is_empty()) {
            written.field(b"content-type", |out| out.extend_from_slice(kind));
        }
        written.end(body)
    }

    /// How long that is of what it says which is as long as it was when the configuration was read.
    pub fn fixed_length(&self) -> usize {
        match &self.body {
            Body::Page(page) => page.text.len(),
            Body::Written(_, body) => *body,
            Body::Bytes(bytes) => bytes.len(),
            Body::Default | Body::Empty | Body::Format(_) => 0,
        }
    }
}

impl Redirect {
    /// What it says when it says the same to every client.
    pub(super) fn written_once(&self) -> Option<Reply<'static>> {
        if self.kind != RedirectKind::Location || self.keep_query {
            return None;
        }
        let to = self.to.constant()?;
        let cookie = match &self.cookie {
            None => None,
            Some((cookie, _)) => Some(cookie.constant()?),
        };
        let cookie = cookie.map(|cookie| |out: &mut Vec<u8>| out.extend_from_slice(cookie));
        Some(self.write(Vec::new(), |out| out.extend_from_slice(to), cookie))
    }

    /// What it says. `room` is empty memory to write to.
    pub fn reply(&self, context: &Context<'_>, room: Vec<u8>) -> Reply<'_> {
        let cookie = self.cookie.as_ref().map(|(cookie, _)| |out: &mut Vec<u8>| cookie.render_in(context, out));
        self.write(room, |out| self.write_location(context, out), cookie)
    }

    fn write(
        &self,
        room: Vec<u8>,
        location: impl FnOnce(&mut Vec<u8>),
        cookie: Option<impl FnOnce(&mut Vec<u8>)>,
    ) -> Reply<'static> {
        let mut written = Writer::begin(self.code, room);
        written.field(b"content-length", |out| out.push(b'0'));
        let mut canonical = written.field(b"location", location);
        if matches!(self.code, 302 | 303 | 307) {
            written.field(b"cache-control", |out| out.extend_from_slice(b"no-cache"));
        }
        if let (Some(cookie), Some((_, cleared))) = (cookie, &self.cookie) {
            canonical &= written.field(b"set-cookie", |out| {
                cookie(out);
                out.extend_from_slice(if *cleared { b"; path=/; Max-Age=0;" } else { b"; path=/;" });
            });
        }
        let text = written.end(b"");
        Reply { head: canonical.then_some(text.len()), text: text.into() }
    }

    /// Where it sends the client.
    fn write_location(&self, context: &Context<'_>, to: &mut Vec<u8>) {
        let (target, host) = context
            .request
            .map_or((&b""[..], &b""[..]), |request| (request.target(), request.host().unwrap_or_default()));
        let path = target::path(target).map(|at| &target[at..]);
        let start = to.len();
        self.to.render_in(context, to);
        match self.kind {
            RedirectKind::Location => {
                let query = memchr::memchr(b'?', target).map(|at| &target[at + 1..]);
                if let Some(query) = query.filter(|query| self.keep_query && !query.is_empty()) {
                    let location = &to[start..];
                    match memchr::memchr(b'?', location) {
                        None => to.push(b'?'),
                        Some(at) if at + 1 == location.len() => {}
                        Some(_) => to.push(b'&'),
                    }
                    to.extend_from_slice(query);
                }
            }
            RedirectKind::Prefix => {
                // A prefix of "/" alone adds nothing.
                if &to[start..] == b"/" {
                    to.truncate(start);
                }
                self.append_path(path.unwrap_or_default(), to);
            }
            RedirectKind::Scheme => {
                to.extend_from_slice(b"://");
                to.extend_from_slice(host);
                self.append_path(path.filter(|path| !path.is_empty()).unwrap_or(b"/"), to);
            }
        }
    }

    fn append_path(&self, path: &[u8], to: &mut Vec<u8>) {
        let query = if self.drop_query { memchr::memchr(b'?', path) } else { None };
        let path = &path[..query.unwrap_or(path.len())];
        to.extend_from_slice(path);
        if self.append_slash && !path.is_empty() && !path.ends_with(b"/") {
            to.push(b'/');
        }
    }
}

/// The text of an answer while it is written.
struct Writer(Vec<u8>);

impl Writer {
    /// Its first line.
    fn begin(status: u16, mut text: Vec<u8>) -> Self {
        text.extend_from_slice(b"HTTP/1.1 ");
        number(usize::from(status), &mut text);
        text.push(b' ');
        text.extend_from_slice(reason(status).as_bytes());
        text.extend_from_slice(b"\r\n");
        Self(text)
    }

    /// A field with a name in lower case, and with spaces for what could end its line. Tells whether its value is
    /// canonical.
    fn field(&mut self, name: &[u8], value: impl FnOnce(&mut Vec<u8>)) -> bool {
        let Self(text) = self;
        text.extend_from_slice(name);
        text.extend_from_slice(b": ");
        let start = text.len();
        value(text);
        let mut canonical = is_canonical_value(&text[start..]);
        if !canonical {
            text[start..].iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n' | 0)).for_each(|byte| *byte = b' ');
            canonical = is_canonical_value(&text[start..]);
        }
        text.extend_from_slice(b"\r\n");
        canonical
    }

    /// The same, left out where it has no value.
    fn field_if_any(&mut self, name: &[u8], value: impl FnOnce(&mut Vec<u8>)) {
        let (start, mut none) = (self.0.len(), true);
        self.field(name, |out| {
            let before = out.len();
            value(out);
            none = out.len() == before;
        });
        if none {
            self.0.truncate(start);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Text;
    use crate::running::tests::Scene;

    #[test]
    fn what_could_end_a_line_does_not() {
        let mut text = Writer::begin(302, Vec::new());
        assert!(!text.field(b"x-a", |out| out.extend_from_slice(b"a\r\nb: c\0")));
        assert!(!text.field(b"empty", |_| ()));
        text.field_if_any(b"none", |_| ());
        assert!(text.field(b"n", |out| [0, 7, 1_234_567_890].into_iter().for_each(|value| number(value, out))));
        let expected = b"HTTP/1.1 302 Found\r\nx-a: a  b: c \r\nempty: \r\nn: 071234567890\r\n\r\nbody";
        assert_eq!(text.end(b"body"), expected);
    }

    fn redirect(kind: RedirectKind, to: &str, cookie: Option<(&str, bool)>, code: u16) -> Redirect {
        let text = |text: &str| Text::Literal(text.as_bytes().into());
        Redirect {
            kind,
            to: text(to),
            code,
            drop_query: false,
            append_slash: false,
            keep_query: false,
            ignore_empty: false,
            cookie: cookie.map(|(value, cleared)| (text(value), cleared)),
            written: None,
        }
    }

    #[test]
    fn what_is_written_once_says_what_would_be_put_together() {
        use RedirectKind::{Location, Prefix};
        let redirects = [
            (redirect(Location, "/a", None, 302), true),
            (redirect(Location, "", None, 301), true),
            (redirect(Location, "/a b\nc", Some(("k=v", true)), 308), true),
            (redirect(Location, "/\u{e9}", Some(("k=v", false)), 303), true),
            (Redirect { keep_query: true, ..redirect(Location, "/a", None, 302) }, false),
            (redirect(Prefix, "/a", None, 302), false),
        ];
        let scene = Scene::request("GET", "/x?y", &[]);
        for (redirect, once) in redirects {
            let written = redirect.written_once();
            assert_eq!(written.is_some(), once, "{redirect:?}");
            let put_together = scene.with(|context| redirect.reply(context, Vec::new()));
            assert_eq!(put_together, Reply::new(put_together.text.clone()), "the end of its head is known");
            assert!(written.is_none_or(|written| written == put_together), "{redirect:?}");
        }
        for body in [Body::Empty, Body::Bytes(b"hello"[..].into())] {
            let answer = Answer { status: 418, content_type: Some(b"text/plain"[..].into()), body, fields: Vec::new() };
            let put_together = scene.with(|context| answer.reply(context, Vec::new()).map(Reply::into_owned));
            let written = answer.clone().written();
            assert!(matches!(written.body, Body::Written(..)) && written.fixed_length() == answer.fixed_length());
            assert_eq!(scene.with(|context| written.reply(context, Vec::new()).map(Reply::into_owned)), put_together);
        }
    }

    #[test]
    fn a_line_end_in_the_middle_of_a_value_leaves_it_canonical() {
        let mut text = Writer::begin(302, Vec::new());
        assert!(text.field(b"location", |out| out.extend_from_slice(b"/a\nb")));
        assert!(canonical_head(&text.end(b"")).is_none(), "that has no length");
    }
}
