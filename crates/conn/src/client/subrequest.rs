//! The messages of a subrequest by which a server decides on a request (`auth-request`): the subrequest from the head of the request, and
//! a refusal for the client. Must never send a body, nor let a field of the client pass for a description of the request.

use base::buffer::Buffer;
use wire::http::{Head, is_same_meta_variable};

use super::{Answer, Message};
use crate::carrier::RequestFormat;
use crate::exchange::RequestLine;

/// Fields of the request that concern its connection, its body, or another resource than that of the subrequest.
const UNSENT: [&[u8]; 17] = [
    b"connection",
    b"content-length",
    b"expect",
    b"http2-settings",
    b"if-match",
    b"if-modified-since",
    b"if-none-match",
    b"if-range",
    b"if-unmodified-since",
    b"keep-alive",
    b"proxy-connection",
    b"range",
    b"sec-websocket-key",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
];

/// Fields that describe the request to the server. Those of the client are replaced.
const FORWARDED: [&[u8]; 6] = [
    b"x-forwarded-method",
    b"x-forwarded-proto",
    b"x-forwarded-host",
    b"x-forwarded-uri",
    b"x-forwarded-for",
    b"x-real-ip",
];

/// Fields of an answer that concern its connection or framing.
const UNPASSED: [&[u8]; 7] = [
    b"connection",
    b"content-length",
    b"keep-alive",
    b"proxy-connection",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
];

/// The description of a request for the server that decides on it.
pub struct Subject<'a> {
    /// Method and target of the subrequest.
    pub method: &'a str,
    pub target: &'a [u8],
    /// Scheme, and path with query, of the request.
    pub scheme: &'a str,
    pub uri: &'a [u8],
    /// The address of the client.
    pub source: &'a str,
    /// The request was received as early data (RFC 8470).
    pub is_early: bool,
    /// Whether a field of the client is not sent.
    pub hides: &'a dyn Fn(&[u8]) -> bool,
}

/// A subrequest, which has no body.
pub struct Subrequest {
    head: Head,
}

impl Subrequest {
    /// Creates the subrequest for a request. `None`: its target is not a path.
    pub fn about(request: &Head, subject: &Subject<'_>) -> Option<Self> {
        let Subject { method, target, scheme, uri, source, is_early, hides } = *subject;
        if target.first() != Some(&b'/') || target.iter().any(|byte| *byte <= b' ' || *byte == 0x7f) {
            return None;
        }
        let mut head = Head::new();
        head.set_method(method.as_bytes());
        head.set_target(target);
        for (name, value) in request.fields() {
            let is_unsent = UNSENT.into_iter().any(|known| known.eq_ignore_ascii_case(name));
            let is_replaced = FORWARDED.into_iter().any(|known| is_same_meta_variable(known, name));
            if !is_unsent && !is_replaced && !hides(name) && !is_of_connection(request, name) {
                head.append(name, value);
            }
        }
        if request.host().is_none() {
            head.append(b"host", b"");
        }
        if is_early && !request.contains(b"early-data") {
            head.append(b"early-data", b"1");
        }
        let host = request.host().unwrap_or_default();
        let source = source.as_bytes();
        let values = [request.method(), scheme.as_bytes(), host, uri, source, source];
        FORWARDED.into_iter().zip(values).for_each(|(name, value)| head.append(name, value));
        (!head.fields.overflowed()).then_some(Self { head })
    }

    /// Encodes it in HTTP/1.1.
    pub fn message(&self) -> Message {
        let head = &self.head;
        let mut bytes = Vec::with_capacity(head.measure());
        for part in [head.method(), b" ", head.target(), b" HTTP/1.1\r\n"] {
            bytes.extend_from_slice(part);
        }
        head.fields().for_each(|(name, value)| push_field(&mut bytes, name, value));
        if !matches!(head.method(), b"GET" | b"OPTIONS" | b"TRACE") {
            push_field(&mut bytes, b"content-length", b"0");
        }
        bytes.extend_from_slice(b"\r\n");
        Message { bytes, is_head: false }
    }

    /// Encodes it for a stream of HTTP/2. `None`: it is too large.
    pub fn frames(&self) -> Option<Buffer> {
        let line = RequestLine { says_close: false, last: None, spelling: None };
        let most = 2 * self.head.measure() + 8 * self.head.field_count() + 1024;
        let mut out = Buffer::with_capacity(most);
        line.encode(RequestFormat::H2, &self.head, &mut out).ok()?;
        Some(out)
    }
}

impl Answer {
    /// Encodes the answer anew for a client, with its fields and its body.
    pub fn encode(&self) -> Vec<u8> {
        let head = &self.head;
        let mut text = format!("HTTP/1.1 {} ", head.status()).into_bytes();
        text.extend_from_slice(head.reason());
        text.extend_from_slice(b"\r\n");
        for (name, value) in head.fields() {
            if !UNPASSED.iter().any(|known| known.eq_ignore_ascii_case(name)) && !is_of_connection(head, name) {
                push_field(&mut text, name, value);
            }
        }
        push_field(&mut text, b"content-length", self.body.len().to_string().as_bytes());
        text.extend_from_slice(b"\r\n");
        text.extend_from_slice(&self.body);
        text
    }
}

fn push_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    for part in [name, b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// Whether a field is listed as one of the connection (RFC 9110, section 7.6.1).
fn is_of_connection(head: &Head, name: &[u8]) -> bool {
    let mut options = head.all(b"connection").flat_map(|value| value.split(|byte| *byte == b','));
    options.any(|option| option.trim_ascii().eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes the subrequest for a request with these fields.
    fn about(method: &str, target: &[u8], fields: &[(&str, &str)]) -> Option<String> {
        let mut request = Head::new();
        request.set_method(b"PUT");
        request.set_target(b"/a?b");
        fields.iter().for_each(|(name, value)| request.append(name.as_bytes(), value.as_bytes()));
        let hides = |name: &[u8]| name == b"hidden";
        let (scheme, uri, source) = ("https", b"/a?b", "192.0.2.1");
        let subject = Subject { method, target, scheme, uri, source, is_early: false, hides: &hides };
        Subrequest::about(&request, &subject).map(|asked| String::from_utf8(asked.message().bytes).unwrap())
    }

    #[test]
    fn a_subrequest_has_the_fields_that_concern_its_resource() {
        let described = "x-forwarded-method: PUT\r\nx-forwarded-proto: https\r\nx-forwarded-host: h\r\nx-forwarded-uri: /a?b\r\n\
                         x-forwarded-for: 192.0.2.1\r\nx-real-ip: 192.0.2.1\r\n";
        let rows: &[(&[(&str, &str)], &str)] = &[
            (&[("host", "h"), ("hidden", "1")], "host: h\r\n"),
            (&[("host", "h"), ("cookie", "a"), ("cookie", "b")], "host: h\r\ncookie: a\r\ncookie: b\r\n"),
            (&[("host", "h"), ("connection", "x, y"), ("y", "1"), ("x", "2"), ("z", "3")], "host: h\r\nz: 3\r\n"),
            (
                &[("host", "h"), ("content-length", "5"), ("transfer-encoding", "chunked"), ("expect", "100-continue")],
                "host: h\r\n",
            ),
            (
                &[("host", "h"), ("range", "bytes=0-"), ("if-none-match", "\"e\""), ("x_forwarded-For", "1.1.1.1")],
                "host: h\r\n",
            ),
        ];
        for (fields, expected) in rows {
            let get = about("GET", b"/check", fields);
            assert_eq!(get, Some(format!("GET /check HTTP/1.1\r\n{expected}{described}\r\n")), "{fields:?}");
        }
        let post = about("POST", b"/check", &[("host", "h")]).unwrap();
        assert!(post.ends_with("192.0.2.1\r\ncontent-length: 0\r\n\r\n"), "{post}");
    }

    #[test]
    fn fields_of_the_connection_and_of_the_body_are_not_sent() {
        let names = "content-length expect http2-settings if-match if-modified-since if-none-match if-range if-unmodified-since \
                     keep-alive proxy-connection range sec-websocket-key te trailer transfer-encoding upgrade";
        for name in names.split_whitespace() {
            let sent = about("GET", b"/", &[("host", "h"), (name, "chunked")]).unwrap();
            assert!(!sent.contains(&format!("\r\n{name}: ")), "{sent}");
        }
    }

    #[test]
    fn an_answer_is_framed_anew() {
        let mut head = Head::new();
        head.set_status(403, b"No");
        for name in ["content-length", "keep-alive", "proxy-connection", "trailer", "transfer-encoding", "upgrade"] {
            head.append(name.as_bytes(), b"9");
        }
        for (name, value) in
            [("connection", "x-a"), ("x-a", "1"), ("location", "/"), ("set-cookie", "a"), ("set-cookie", "b")]
        {
            head.append(name.as_bytes(), value.as_bytes());
        }
        let answer = Answer { head, body: b"no".to_vec() };
        let text = "HTTP/1.1 403 No\r\nlocation: /\r\nset-cookie: a\r\nset-cookie: b\r\ncontent-length: 2\r\n\r\nno";
        assert_eq!(String::from_utf8(answer.encode()).unwrap(), text);
    }

    #[test]
    fn a_request_without_a_host_has_an_empty_one() {
        let sent = about("GET", b"/", &[]).unwrap();
        assert!(sent.starts_with("GET / HTTP/1.1\r\nhost: \r\n"), "{sent}");
    }

    #[test]
    fn a_target_is_a_path() {
        for target in ["", "*", "check", "http://h/check", "/a b", "/a\r\nx: y", "/\u{7f}"] {
            assert_eq!(about("GET", target.as_bytes(), &[]), None, "{target}");
        }
    }
}
