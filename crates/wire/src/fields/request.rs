//! Builds the head of a request from its fields (RFC 9113, section 8; RFC 9114, section 4). Owns the rules for malformed
//! requests; must never accept a byte that would have another meaning in HTTP/1.

use super::SectionVersion;
use super::field::{Capacity, HeaderField, KnownName, Malformed, is_of_connection, is_value, trim};
use crate::http::{Framing, Head, Method, Name, Version};
use crate::{byte_class, h1};

/// Builds the head of a request field by field.
pub struct RequestReader<'h> {
    head: &'h mut Head,
    pseudo: Pseudo,
    /// The values of the Cookie fields, joined.
    cookies: Vec<u8>,
    capacity: Capacity,
    version: SectionVersion,
    /// Extended CONNECT was advertised to the client (RFC 8441, section 3; RFC 9220).
    extends: bool,
    malformed: bool,
    too_large: bool,
    too_many: bool,
    /// A regular field was read: pseudo-headers are not permitted after it.
    has_fields: bool,
}

/// The pseudo-header fields.
#[derive(Default)]
struct Pseudo {
    text: Text,
    method: Part,
    scheme: Part,
    authority: Part,
    path: Part,
    protocol: Part,
}

/// The value of a pseudo-header field: its range in their text.
#[derive(Clone, Copy, Default)]
struct Part {
    start: u32,
    end: u32,
    is_there: bool,
    /// It is an entry of a static table, so that it is valid.
    is_known: bool,
}

/// Number of bytes of pseudo-headers that are stored inline.
const INLINE: usize = 256;

/// A text with inline storage for short ones.
struct Text {
    inline: [u8; INLINE],
    used: usize,
    /// The complete text, once it exceeds the inline storage.
    long: Vec<u8>,
}

impl Default for Text {
    fn default() -> Self {
        Self { inline: [0; INLINE], used: 0, long: Vec::new() }
    }
}

impl Text {
    /// Appends a value. Returns the offsets of its start and its end.
    #[inline]
    fn push(&mut self, bytes: &[u8]) -> [u32; 2] {
        let (start, end) = (self.used, self.used + bytes.len());
        match self.inline.get_mut(start..end) {
            Some(place) if self.long.is_empty() => place.copy_from_slice(bytes),
            _ => self.push_long(start, bytes),
        }
        self.used = end;
        // The bytes of a block are limited far below.
        [start as u32, end as u32]
    }

    #[cold]
    fn push_long(&mut self, start: usize, bytes: &[u8]) {
        if self.long.is_empty() {
            self.long.extend_from_slice(&self.inline[..start]);
        }
        self.long.extend_from_slice(bytes);
    }

    #[inline]
    fn get(&self, part: Part) -> &[u8] {
        let all = if self.long.is_empty() { &self.inline[..] } else { &self.long };
        all.get(part.start as usize..part.end as usize).unwrap_or_default()
    }
}

impl Pseudo {
    #[inline]
    fn get(&self, part: Part) -> Option<&[u8]> {
        part.is_there.then(|| self.text.get(part))
    }

    /// Whether the method is not a token, or that of the connection preface; or the scheme is invalid.
    #[inline]
    fn has_invalid_part(&self) -> bool {
        let is_unknown = |part: &Part| part.is_there && !part.is_known;
        let is_invalid_method = |method: &[u8]| method == b"PRI" || !h1::is_token(method);
        Some(self.method).filter(is_unknown).is_some_and(|method| is_invalid_method(self.text.get(method)))
            || Some(self.scheme).filter(is_unknown).is_some_and(|scheme| !is_scheme(self.text.get(scheme)))
    }
}

/// Result of reading a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A valid request.
    Request,
    /// The head exceeds the capacity in bytes (status 431).
    TooLarge,
    /// The head has too many fields (status 400).
    TooMany,
    /// The method is not a token, or that of the connection preface; or the scheme is invalid (status 400).
    Invalid,
}

impl<'h> RequestReader<'h> {
    /// Starts with an empty head of HTTP/2; `capacity` limits its fields. `extends`: extended CONNECT was advertised
    /// (RFC 8441, section 3).
    pub fn new(head: &'h mut Head, capacity: Capacity, extends: bool) -> Self {
        Self::of(SectionVersion::Http2, head, capacity, extends)
    }

    /// Starts with an empty head of a version.
    #[inline]
    pub(crate) fn of(version: SectionVersion, head: &'h mut Head, capacity: Capacity, extends: bool) -> Self {
        head.clear();
        Self {
            head,
            pseudo: Pseudo::default(),
            cookies: Vec::new(),
            capacity,
            version,
            extends,
            malformed: false,
            too_large: false,
            too_many: false,
            has_fields: false,
        }
    }

    /// Adds the next field. Errors are reported at the end, since the rest of the block has to be decoded in any case.
    pub fn field(&mut self, field: &HeaderField<'_>) {
        self.too_large = self.too_large || !self.capacity.take_bytes(field.name, field.value);
        if self.malformed || self.too_large || self.too_many {
            return;
        }
        self.malformed = if field.is_pseudo() {
            self.has_fields || !self.pseudo_header(field)
        } else {
            self.has_fields = true;
            !self.plain(field)
        };
    }

    #[inline]
    fn pseudo_header(&mut self, field: &HeaderField<'_>) -> bool {
        let pseudo = &mut self.pseudo;
        let place = match (field.known, field.name) {
            (KnownName::Authority, _) => &mut pseudo.authority,
            (KnownName::Method, _) => &mut pseudo.method,
            (KnownName::Path, _) => &mut pseudo.path,
            (KnownName::Scheme, _) => &mut pseudo.scheme,
            (KnownName::Unknown, b":method") => &mut pseudo.method,
            (KnownName::Unknown, b":scheme") => &mut pseudo.scheme,
            (KnownName::Unknown, b":authority") => &mut pseudo.authority,
            (KnownName::Unknown, b":path") => &mut pseudo.path,
            (KnownName::Unknown, b":protocol") if self.extends => &mut pseudo.protocol,
            _ => return false,
        };
        let [start, end] = pseudo.text.push(field.value);
        let before = std::mem::replace(place, Part { start, end, is_there: true, is_known: field.is_valid });
        !before.is_there
    }

    #[inline]
    fn plain(&mut self, field: &HeaderField<'_>) -> bool {
        let (name, mut value) = (field.name, field.value);
        if !field.is_valid {
            value = trim(value);
            if !field.has_valid_name() || !is_value(value) {
                return false;
            }
        }
        let known = field.known_name();
        match known {
            // Nearly all fields.
            Name::Other if name.len() != b"cookie".len() => {}
            _ if is_of_connection(known) => return false,
            Name::Te if !value.eq_ignore_ascii_case(b"trailers") => return false,
            Name::Expect => self.head.expect_continue = value.eq_ignore_ascii_case(b"100-continue"),
            // An empty crumb is dropped: at the end it would leave a space, which is not permitted at the end of a
            // value (RFC 9113, section 8.2.1).
            Name::Other if name == b"cookie" && value.is_empty() => return true,
            Name::Other if name == b"cookie" => {
                if !self.cookies.is_empty() {
                    self.cookies.extend_from_slice(b"; ");
                }
                self.cookies.extend_from_slice(value);
                return true;
            }
            _ => {}
        }
        if self.capacity.take_field() {
            self.head.fields.append_checked(known, name, value);
        } else {
            self.too_many = true;
        }
        true
    }

    /// Completes the head. `alone`: the stream ends with it. `accept_unsafe` is `option
    /// accept-unsafe-violations-in-http-request`, as for HTTP/1.
    ///
    /// # Errors
    /// The head is malformed.
    pub fn finish(&mut self, alone: bool, accept_unsafe: bool) -> Result<Outcome, Malformed> {
        let Self { head, pseudo, cookies, version, .. } = self;
        if self.malformed {
            return Err(Malformed);
        }
        if self.too_large || head.fields.overflowed() {
            return Ok(Outcome::TooLarge);
        }
        if self.too_many {
            return Ok(Outcome::TooMany);
        }
        if pseudo.has_invalid_part() {
            return Ok(Outcome::Invalid);
        }
        if !cookies.is_empty() {
            head.append(b"cookie", cookies);
        }
        if *version == SectionVersion::Http3 {
            check_hosts(head, pseudo)?;
        }
        head.set_version(Version::Http11, version.text());
        start_line(head, pseudo, accept_unsafe)?;
        if pseudo.protocol.is_there || head.known_method() == Method::Connect {
            // The data after it is a tunnel, not a body.
            head.fields.remove_known(Name::ContentLength);
            head.framing = Framing::None;
            return Ok(Outcome::Request);
        }
        let length = h1::content_length(&mut head.fields).map_err(|_| Malformed)?;
        head.framing = match (alone, length) {
            (true, None) => Framing::None,
            (true, Some(0)) => Framing::Length(0),
            (true, Some(_)) => return Err(Malformed),
            (false, Some(length)) => Framing::Length(length),
            // The end of the stream ends the body; HTTP/1 sends it in chunks.
            (false, None) => Framing::Chunked,
        };
        Ok(Outcome::Request)
    }
}

/// Checks what HTTP/3 requires of the authority beyond HTTP/2 (RFC 9114, section 4.3.1): Host equals `:authority`, and
/// one of both is there if the scheme has an authority.
fn check_hosts(head: &Head, pseudo: &Pseudo) -> Result<(), Malformed> {
    let authority = pseudo.get(pseudo.authority);
    let mut hosts = head.fields.list.iter().filter(|field| field.name == Name::Host);
    let is_there = match (authority, head.fields.known(Name::Host)) {
        (None, None) => !pseudo.get(pseudo.scheme).is_some_and(is_http),
        (Some(named), _) | (None, Some(named)) => {
            !named.is_empty() && hosts.all(|host| head.fields.value_of(host) == named)
        }
    };
    if is_there { Ok(()) } else { Err(Malformed) }
}

/// Builds the start line from the pseudo-headers. The value of `:authority` replaces every Host.
fn start_line(head: &mut Head, pseudo: &Pseudo, accept_unsafe: bool) -> Result<(), Malformed> {
    let method = pseudo.get(pseudo.method).ok_or(Malformed)?;
    let authority = pseudo.get(pseudo.authority);
    if let Some(protocol) = pseudo.get(pseudo.protocol) {
        extend(head, method, protocol)?;
    } else {
        head.set_checked_method(method);
    }
    if head.known_method() == Method::Connect {
        return connect_line(head, pseudo, accept_unsafe);
    }
    let scheme = pseudo.get(pseudo.scheme).ok_or(Malformed)?;
    let path = pseudo.get(pseudo.path).ok_or(Malformed)?;
    let is_asterisk = path == b"*" && head.known_method() == Method::Options;
    if !pseudo.path.is_known && (!path.starts_with(b"/") && !is_asterisk || !h1::is_target(path, accept_unsafe)) {
        return Err(Malformed);
    }
    let Some(authority) = authority else {
        head.set_target(path);
        return h1::settle_target(head, accept_unsafe).map_err(|_| Malformed);
    };
    let is_plain = byte_class::is_plain_authority(authority);
    if !is_plain && (authority.is_empty() || !h1::is_authority(authority)) {
        return Err(Malformed);
    }
    head.fields.remove_known(Name::Host);
    head.fields.prepend_checked(Name::Host, b"host", authority);
    if is_asterisk {
        head.set_target(path);
    } else {
        // No escaping is needed: each part was validated.
        head.set_target_parts(scheme, authority, path);
        // Targets of other schemes are sent to HTTP/1 servers in absolute form.
        head.implied_authority = pseudo.scheme.is_known || is_http(scheme);
        if is_plain || h1::is_normal_authority(authority) {
            return Ok(());
        }
    }
    h1::settle_target(head, accept_unsafe).map_err(|_| Malformed)
}

/// Builds the start line of CONNECT, which has only an authority (RFC 9113, section 8.5; RFC 9114, section 4.4).
fn connect_line(head: &mut Head, pseudo: &Pseudo, accept_unsafe: bool) -> Result<(), Malformed> {
    let (Some(authority), false, false) = (pseudo.get(pseudo.authority), pseudo.scheme.is_there, pseudo.path.is_there)
    else {
        return Err(Malformed);
    };
    set_host(head, authority);
    head.set_target(authority);
    h1::settle_target(head, accept_unsafe).map_err(|_| Malformed)?;
    // Without a scheme there is no default port: Host keeps its port, as in HAProxy.
    set_host(head, authority);
    Ok(())
}

/// Maps extended CONNECT to an HTTP/1 upgrade request (RFC 8441, sections 4 and 5).
fn extend(head: &mut Head, method: &[u8], protocol: &[u8]) -> Result<(), Malformed> {
    if method != b"CONNECT" || !h1::is_token(protocol) || protocol.eq_ignore_ascii_case(b"h2c") {
        return Err(Malformed);
    }
    head.set_method(b"GET");
    head.append(b"connection", b"upgrade");
    head.append(b"upgrade", protocol);
    head.upgrade = true;
    Ok(())
}

fn set_host(head: &mut Head, authority: &[u8]) {
    head.fields.remove_known(Name::Host);
    head.prepend(b"host", authority);
}

fn is_http(scheme: &[u8]) -> bool {
    scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https")
}

fn is_scheme(scheme: &[u8]) -> bool {
    let is_inside = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    scheme.first().is_some_and(u8::is_ascii_alphabetic) && scheme.iter().all(is_inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The HTTP/1 head of a request whose fields are given as lines.
    fn read(lines: &str, alone: bool) -> Result<String, Malformed> {
        read_as(SectionVersion::Http2, lines, alone, true)
    }

    fn read_as(version: SectionVersion, lines: &str, alone: bool, extends: bool) -> Result<String, Malformed> {
        let mut head = Head::new();
        let mut reader = RequestReader::of(version, &mut head, Capacity { bytes: 1000, fields: 20 }, extends);
        for line in lines.lines() {
            let (name, value) = line.split_at(1 + line[1..].find(": ").unwrap());
            reader.field(&HeaderField::new(name.as_bytes(), &value.as_bytes()[2..]));
        }
        match reader.finish(alone, false)? {
            Outcome::TooLarge => return Ok("431".to_owned()),
            Outcome::TooMany | Outcome::Invalid => return Ok("400".to_owned()),
            _ => {}
        }
        let mut text = Vec::new();
        let edits = h1::Edits { framing: head.framing, ..h1::Edits::default() };
        h1::encode_request(&head, &edits, &mut text).unwrap();
        Ok(format!(
            "{}|{}",
            String::from_utf8_lossy(head.target()),
            String::from_utf8(text).unwrap().replace("\r\n", "|")
        ))
    }

    const GET: &str = ":method: GET\n:scheme: http\n:path: /x\n:authority: a.b\n";

    #[test]
    fn requests_become_those_of_http_1() {
        let with = |more: &str| format!("{GET}{more}");
        let rows: &[(String, bool, &str)] = &[
            (with(""), true, "http://a.b/x|GET /x HTTP/1.1|host: a.b||"),
            (with("x-y: 1\naccept: *"), true, "http://a.b/x|GET /x HTTP/1.1|host: a.b|x-y: 1|accept: *||"),
            (
                with("cookie: a=1\nx: y\ncookie: b=2"),
                true,
                "http://a.b/x|GET /x HTTP/1.1|host: a.b|x: y|cookie: a=1; b=2||",
            ),
            // The authority replaces every Host.
            (with("host: evil\nhost: other"), true, "http://a.b/x|GET /x HTTP/1.1|host: a.b||"),
            (with("te: trailers"), true, "http://a.b/x|GET /x HTTP/1.1|host: a.b|te: trailers||"),
            (with("content-length: 3"), false, "http://a.b/x|GET /x HTTP/1.1|host: a.b|content-length: 3||"),
            (
                with("content-length: 3\ncontent-length: 3"),
                false,
                "http://a.b/x|GET /x HTTP/1.1|host: a.b|content-length: 3||",
            ),
            (with(""), false, "http://a.b/x|GET /x HTTP/1.1|host: a.b|transfer-encoding: chunked||"),
            (GET.replace("a.b", "a.b:80"), true, "http://a.b/x|GET /x HTTP/1.1|host: a.b||"),
            (GET.replace("a.b", "a.b:81"), true, "http://a.b:81/x|GET /x HTTP/1.1|host: a.b:81||"),
            (":method: GET\n:scheme: https\n:path: /x?y\nhost: c".into(), true, "/x?y|GET /x?y HTTP/1.1|host: c||"),
            (":method: OPTIONS\n:scheme: http\n:path: *\n:authority: a".into(), true, "*|OPTIONS * HTTP/1.1|host: a||"),
            (":method: CONNECT\n:authority: a:443".into(), false, "a:443|CONNECT a:443 HTTP/1.1|host: a:443||"),
            (GET.replace("http", "ftp"), true, "ftp://a.b/x|GET ftp://a.b/x HTTP/1.1|host: a.b||"),
            (
                GET.replace("GET", "CONNECT") + ":protocol: websocket\nx-y: 1",
                false,
                "http://a.b/x|GET /x HTTP/1.1|host: a.b|x-y: 1|connection: upgrade|upgrade: websocket||",
            ),
            (with(&format!("x: {}", "v".repeat(1000))), true, "431"),
            (
                with(&"x: 1\n".repeat(20)),
                true,
                &format!("http://a.b/x|GET /x HTTP/1.1|host: a.b|{}|", "x: 1|".repeat(20)),
            ),
            (with(&"x: 1\n".repeat(21)), true, "400"),
            // The crumbs of a cookie are one field.
            (
                with(&"cookie: a\n".repeat(40)),
                true,
                &format!("http://a.b/x|GET /x HTTP/1.1|host: a.b|cookie: {}a||", "a; ".repeat(39)),
            ),
            (
                with("cookie: \ncookie: a\ncookie: \ncookie: b\ncookie: "),
                true,
                "http://a.b/x|GET /x HTTP/1.1|host: a.b|cookie: a; b||",
            ),
            (with("x: \t1 "), true, "http://a.b/x|GET /x HTTP/1.1|host: a.b|x: 1||"),
        ];
        for (lines, alone, expected) in rows {
            assert_eq!(read(lines, *alone).as_deref(), Ok(*expected), "{lines}");
        }
    }

    /// Requests that HTTP/1 servers would split or misinterpret (request smuggling), and those that RFC 9113 calls
    /// malformed.
    #[test]
    fn malformed_requests_are_refused() {
        let with = |more: &str| format!("{GET}{more}");
        let rows: &[String] = &[
            with("connection: close"),
            with("keep-alive: 1"),
            with("proxy-connection: close"),
            with("transfer-encoding: chunked"),
            with("upgrade: h2c"),
            with("te: gzip"),
            with("X-upper: 1"),
            with("x y: 1"),
            with("x: a\rb"),
            with("x: a\0b"),
            with("x: a\u{b}b"),
            with("x: a\r"),
            with("x: \ra"),
            with("x: a\u{c}"),
            with("x: \0"),
            with(":path: /late"),
            with("x: 1\n:scheme: http"),
            with(":status: 200"),
            with(":protocol: websocket"),
            GET.replace("GET", "CONNECT") + ":protocol: h2c",
            GET.replace("GET", "CONNECT") + ":protocol: a b",
            ":method: CONNECT\n:authority: a\n:protocol: x".to_owned(),
            with("content-length: 1"),
            with("content-length: 0\ncontent-length: 1"),
            with("content-length: +0"),
            GET.replace("/x", "x"),
            GET.replace("/x", "/x HTTP/1.1\r"),
            GET.replace("/x", "/x y"),
            GET.replace("/x", "*"),
            GET.replace("/x", ""),
            GET.replace("a.b", "a/b"),
            GET.replace("a.b", "u@a.b"),
            GET.replace("a.b", ""),
            GET.replace(":scheme: http\n", ""),
            GET.replace(":path: /x\n", ""),
            GET.replace(":method: GET\n", ""),
            GET.replace("GET", "CONNECT"),
            ":method: CONNECT".to_owned(),
            ":method: CONNECT\n:authority: a/b".to_owned(),
        ];
        for lines in rows {
            assert_eq!(read(lines, true), Err(Malformed), "{lines:?}");
        }
        let invalid = [("GET", "GE T"), ("GET", ""), ("GET", "PRI"), ("http", "ht/tp"), ("http", "")];
        for (valid, invalid) in invalid {
            assert_eq!(read(&GET.replace(valid, invalid), true).as_deref(), Ok("400"), "{invalid:?}");
        }
        let extended = GET.replace("GET", "CONNECT") + ":protocol: websocket";
        assert_eq!(read_as(SectionVersion::Http2, &extended, false, false), Err(Malformed), "it was not announced");
    }

    /// RFC 9114, sections 4.2 to 4.4: the same as HTTP/2, and one authority.
    #[test]
    fn http_3_is_strict_about_the_authority() {
        let with = |more: &str| format!("{GET}{more}");
        let read = |lines: &str| read_as(SectionVersion::Http3, lines, true, true);
        let without = ":method: GET\n:scheme: https\n:path: /x\n";
        let rows: &[(String, &str)] = &[
            (with("host: a.b\nx: 1"), "http://a.b/x|GET /x HTTP/1.1|host: a.b|x: 1||"),
            (format!("{without}host: c"), "/x|GET /x HTTP/1.1|host: c||"),
            (format!("{without}host: c\nhost: c"), "/x|GET /x HTTP/1.1|host: c||"),
            // A scheme without an authority.
            (without.replace("https", "urn"), "/x|GET /x HTTP/1.1||"),
            (":method: CONNECT\n:authority: a:443\nhost: a:443".into(), "a:443|CONNECT a:443 HTTP/1.1|host: a:443||"),
            (
                GET.replace("GET", "CONNECT") + ":protocol: websocket",
                "http://a.b/x|GET /x HTTP/1.1|host: a.b|connection: upgrade|upgrade: websocket||",
            ),
        ];
        for (lines, expected) in rows {
            assert_eq!(read(lines).as_deref(), Ok(*expected), "{lines}");
        }
        let malformed = [
            without.to_owned(),
            without.replace("https", "HTTP"),
            format!("{without}host: "),
            format!("{without}host: c\nhost: d"),
            with("host: other"),
            with("host: "),
            with("host: a.b\nhost: other"),
            ":method: CONNECT\n:authority: a:443\nhost: b:443".to_owned(),
            GET.replace("a.b", ""),
            with("connection: close"),
            with("te: gzip"),
            with("X: 1"),
            with("x: 1\n:path: /"),
            with(":status: 200"),
        ];
        for lines in malformed {
            assert_eq!(read(&lines), Err(Malformed), "{lines:?}");
        }
    }
}
