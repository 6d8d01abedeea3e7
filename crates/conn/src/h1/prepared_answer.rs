//! Prepared answers: error pages, answers of rules, redirects. Owns the changes to their heads that a client's
//! connection needs. Must never make up an answer.

use std::borrow::Cow;

use wire::h1::{self, ConnectionLine, Edits, HeadLimits, Parse, RequestContext, Scan, Spelling};
use wire::http::{Framing, Head, Version};

/// An answer prepared for a client.
pub struct PreparedAnswer<'t> {
    /// Head and body as sent. Empty if the text is empty: the connection is then just closed.
    pub bytes: Cow<'t, [u8]>,
    /// Whether the connection may be kept after it.
    pub keep: bool,
    /// The status set by rules.
    pub status: Option<u16>,
}

/// Completes a text with a canonical head, which ends at `head`, by the `connection` line that a client with that
/// `version` needs; `bare`: without its body. `room` provides the memory if the text has to be copied.
pub fn complete<'t>(
    text: Cow<'t, [u8]>,
    head: usize,
    version: Version,
    bare: bool,
    keep: bool,
    room: impl FnOnce() -> Vec<u8>,
) -> PreparedAnswer<'t> {
    let line: &[u8] = match (keep, version) {
        (true, Version::Http10) => b"connection: keep-alive\r\n",
        (false, _) => b"connection: close\r\n",
        (true, Version::Http11) => b"",
    };
    if line.is_empty() && !bare {
        return PreparedAnswer { bytes: text, keep, status: None };
    }
    // The empty line follows the `connection` line.
    let (before, behind) = text[..if bare { head } else { text.len() }].split_at(head - 2);
    let mut bytes = room();
    bytes.reserve(before.len() + line.len() + behind.len());
    for part in [before, line, behind] {
        bytes.extend_from_slice(part);
    }
    PreparedAnswer { bytes: bytes.into(), keep, status: None }
}

/// Returns an answer with a plain text as its body.
pub fn plain_text(body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\ncontent-type: text/plain\r\n\r\n{body}").into_bytes()
}

/// Returns the answer to a request whose body has a content coding not among those accepted.
pub fn unsupported_coding(accepted: &str) -> Vec<u8> {
    let body = "<html><body><h1>415 Unsupported Media Type</h1>\nThe content coding of the request is not supported.\n\
                </body></html>\n";
    let length = body.len();
    format!(
        "HTTP/1.1 415 Unsupported Media Type\r\ncontent-length: {length}\r\ncache-control: no-cache\r\n\
         content-type: text/html\r\naccept-encoding: {accepted}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Replaces a text's request for credentials by one for a user name and password in that realm (RFC 7617).
pub fn challenge(text: &[u8], realm: &[u8], proxied: bool) -> Vec<u8> {
    let name: &[u8] = if proxied { b"proxy-authenticate:" } else { b"www-authenticate:" };
    let Some(end) = memchr::memmem::find(text, b"\r\n\r\n") else { return text.to_vec() };
    let mut out = Vec::with_capacity(text.len() + realm.len() + 40);
    let asks = |line: &[u8]| line.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name));
    for line in text[..end + 2].split_inclusive(|byte| *byte == b'\n').filter(|line| !asks(line)) {
        out.extend_from_slice(line);
    }
    out.extend_from_slice(name);
    out.extend_from_slice(b" Basic realm=\"");
    out.extend_from_slice(realm);
    out.extend_from_slice(b"\"\r\n");
    out.extend_from_slice(&text[end + 2..]);
    out
}

/// Returns a redirect to `prefix` and `path`; an empty path is sent as `/`.
pub fn redirect(prefix: &[u8], path: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(128 + prefix.len() + path.len());
    text.extend_from_slice(b"HTTP/1.1 302 Found\r\ncache-control: no-cache\r\ncontent-length: 0\r\nlocation: ");
    text.extend_from_slice(prefix);
    text.extend_from_slice(if path.is_empty() { b"/" } else { path });
    text.extend_from_slice(b"\r\n\r\n");
    text
}

/// The interim answer that asks a client for the body that it announced.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Returns an interim answer with one field (RFC 8297).
pub fn early_hint(name: &[u8], value: &[u8]) -> Vec<u8> {
    early_hints([(name, value)])
}

/// Returns an interim answer with these fields (RFC 8297).
pub fn early_hints<'f>(fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])>) -> Vec<u8> {
    let mut head = Head::new();
    fields.into_iter().for_each(|(name, value)| head.append(name, value));
    let mut out = b"HTTP/1.1 103 Early Hints\r\n".to_vec();
    for (name, value) in head.fields() {
        out.extend_from_slice(name);
        out.extend_from_slice(b": ");
        // Characters that would end the line early are replaced by a space.
        out.extend(value.iter().map(|byte| if matches!(byte, b'\r' | b'\n' | 0) { b' ' } else { *byte }));
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out
}

/// Returns a text with field names in lower case.
pub fn lowercase_names(text: &[u8]) -> Vec<u8> {
    let head = head_length(text);
    let mut bytes = text.to_vec();
    let mut in_name = false;
    for byte in &mut bytes[..head] {
        match *byte {
            b'\n' => in_name = true,
            b':' => in_name = false,
            _ if in_name => byte.make_ascii_lowercase(),
            _ => {}
        }
    }
    bytes
}

/// Applies a spelling to the field names of a text whose names are in lower case.
pub fn spell_names(text: &mut [u8], spelling: &Spelling) {
    let head = head_length(text);
    spelling.apply(&mut text[..head]);
}

/// The number of bytes before the empty line that ends the head; 0 if there is none.
fn head_length(text: &[u8]) -> usize {
    memchr::memmem::find(text, b"\r\n\r\n").unwrap_or(0)
}

/// Returns a page with the `connection` line that this client needs; `bare`: without its body. `edit` may change the
/// head before it is encoded, and returns whether the connection may be kept then. `None`: the page is no HTTP answer,
/// so it can only be sent unchanged.
pub fn compose(
    page: &[u8],
    request: &Head,
    bare: bool,
    spelling: Option<&Spelling>,
    keep: bool,
    edit: impl FnOnce(&mut Head) -> bool,
) -> Option<PreparedAnswer<'static>> {
    let limits = HeadLimits { max_head: page.len(), ..HeadLimits::default() };
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
    Some(PreparedAnswer { bytes: bytes.into(), keep, status: Some(head.status()).filter(|status| *status != before) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::http::error_pages;

    fn request(version: &str, method: &str) -> Head {
        let (mut head, mut scan) = (Head::new(), Scan::default());
        let text = format!("{method} / HTTP/{version}\r\nhost: a\r\n\r\n");
        assert!(h1::parse_request(text.as_bytes(), &HeadLimits::default(), &mut scan, &mut head).is_ok());
        head
    }

    /// Compares both ways for every client; returns whether the short one was taken.
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
            let whole = compose(page, &request, method == "HEAD", None, keep, |_| true).unwrap();
            let short = complete(page.into(), head, request.version(), method == "HEAD", keep, Vec::new);
            let texts = [&whole, &short].map(|answer| String::from_utf8_lossy(&answer.bytes).into_owned());
            assert_eq!(texts[0], texts[1], "{version} {method} {keep}");
            assert_eq!(whole.keep, short.keep, "{version} {method} {keep}");
        }
        true
    }

    #[test]
    fn what_needs_no_parsing_comes_out_as_if_it_had_been_parsed() {
        for page in error_pages::PAGES {
            compare(&page.message());
        }
        assert!(compare(&error_pages::page(403).unwrap().message()), "the usual pages are taken as they are");
        assert!(compare(
            b"HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: /a?b c\r\ncache-control: no-cache\r\n\r\n"
        ));
        assert!(compare(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nset-cookie: a=b; path=/;\r\n\r\nok"));
        assert!(compare(b"HTTP/1.1 401 Who\r\nwww-authenticate: Basic realm=\"r\"\r\ncontent-length: 12\r\n\r\nshort"));
    }

    #[test]
    fn a_challenge_takes_the_place_of_others() {
        let page = b"HTTP/1.1 401 x\r\nA: b\r\nWWW-Authenticate: Digest\r\ncontent-length: 2\r\n\r\nok";
        let expected = b"HTTP/1.1 401 x\r\nA: b\r\ncontent-length: 2\r\nwww-authenticate: Basic realm=\"r\"\r\n\r\nok";
        assert_eq!(challenge(page, b"r", false), expected);
        assert_eq!(challenge(b"none", b"r", true), b"none");
    }
}
