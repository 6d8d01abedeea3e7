//! Heads and trailers as HEADERS frames, and their way back.

use proptest::prelude::*;

use super::*;
use crate::h1::{self, Edits, Overflow};
use crate::http::{Fields, Framing, Method};

const CAPACITY: Capacity = Capacity { bytes: 100_000, fields: 100 };

/// Returns the field section of a HEADERS frame, which is the only one.
fn section(frame: &[u8]) -> Vec<u8> {
    let (mut input, mut reader) = (frame, MessageReader::new(Role::Server, 1 << 20));
    let Ok(Some(MessagePart::Head(section))) = reader.next(&mut input) else { panic!("{frame:x?}") };
    let section = section.to_vec();
    assert!(input.is_empty());
    section
}

/// Formats the fields of a HEADERS frame.
fn read(frame: &[u8]) -> String {
    let mut text = String::new();
    let decoded = qpack::Decoder::new(qpack::TableLimits::default()).decode(0, &section(frame), CAPACITY, |field| {
        let [name, value] = [field.name, field.value].map(|part| String::from_utf8_lossy(part).into_owned());
        text += &format!("|{name}: {value}");
    });
    assert_eq!(decoded, Ok(qpack::Progress::Complete));
    text
}

fn request(text: &str) -> Head {
    let mut head = Head::new();
    let parsed = h1::parse_request(text.as_bytes(), &h1::HeadLimits::default(), &mut h1::Scan::default(), &mut head);
    assert_eq!(parsed, Ok(h1::Parse::Complete { consumed: text.len() }), "{text}");
    head
}

#[test]
fn responses_are_written_without_what_only_http_1_knows() {
    let mut head = Head::new();
    head.set_status(200, b"Fine");
    for (name, value) in [("date", "now"), ("connection", "x"), ("transfer-encoding", "chunked"), ("x-a", "b")] {
        head.append(name.as_bytes(), value.as_bytes());
    }
    head.append(b"content-length", b"7");
    let rows = [
        (200, Framing::Length(5), "|:status: 200|date: now|x-a: b|content-length: 5|x-last: 1"),
        (200, Framing::Length(0), "|:status: 200|date: now|x-a: b|content-length: 0|x-last: 1"),
        (200, Framing::Chunked, "|:status: 200|date: now|x-a: b|x-last: 1"),
        (101, Framing::None, "|:status: 200|date: now|x-a: b|x-last: 1"),
        (304, Framing::None, "|:status: 304|date: now|x-a: b|content-length: 7|x-last: 1"),
        (204, Framing::Length(0), "|:status: 204|date: now|x-a: b|x-last: 1"),
        (418, Framing::UntilClose, "|:status: 418|date: now|x-a: b|x-last: 1"),
    ];
    for (status, framing, expected) in rows {
        head.set_status(status, b"");
        let edits = Edits { framing, last: Some((b"x-last", b"1")), ..Edits::default() };
        let mut out = Vec::new();
        encode_response(&head, &edits, &mut out).unwrap();
        assert_eq!(read(&out), expected);
    }
}

#[test]
fn requests_are_written_with_the_parts_of_their_targets() {
    let rows = [
        (
            "GET /x?y HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nCookie: b\r\n\r\n",
            "|:method: GET|:scheme: https|:authority: a|:path: /x?y|te: trailers|cookie: b",
        ),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", "|:method: GET|:scheme: https|:path: /|host: "),
        ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "|:method: OPTIONS|:scheme: https|:authority: a|:path: *"),
        (
            "POST http://q/ HTTP/1.1\r\nHost: q\r\nContent-Length: 3\r\nTE: gzip\r\n\r\n",
            "|:method: POST|:scheme: http|:authority: q|:path: /|content-length: 3",
        ),
        (
            "PATCH ftp://q?z HTTP/1.1\r\nHost: q\r\nTransfer-Encoding: chunked\r\n\r\n",
            "|:method: PATCH|:scheme: ftp|:authority: q|:path: /?z",
        ),
        (
            "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            "|:method: CONNECT|:scheme: https|:authority: a|:path: /ws|:protocol: websocket",
        ),
        ("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", "|:method: CONNECT|:authority: a:443"),
    ];
    for (text, expected) in rows {
        let head = request(text);
        let mut out = Vec::new();
        encode_request(&head, &Edits { framing: head.framing, ..Edits::default() }, &mut out).unwrap();
        assert_eq!(read(&out), expected, "{text}");
    }
}

/// The exact bytes: static entries, a name of the table, a literal, Huffman codes where they are shorter.
#[test]
fn sections_are_short() {
    let mut head = Head::new();
    head.set_status(200, b"");
    for (name, value) in [("content-type", "text/plain"), ("server", "w"), ("x", "{}"), ("vary", "origin, x")] {
        head.append(name.as_bytes(), value.as_bytes());
    }
    let mut out = Vec::new();
    encode_response(&head, &Edits::default(), &mut out).unwrap();
    let expected: &[u8] = &[
        0,
        0,    // the prefix
        0xd9, // :status 200, entry 25
        0xf5, // content-type: text/plain, entry 53
        0x7f,
        92 - 15,
        1,
        b'w', // the name of entry 92
        0x31,
        b'x',
        2,
        b'{',
        b'}', // literals
        0x7f,
        59 - 15,
        0x80 | 7, // the name of entry 59, with 9 bytes in 7
    ];
    assert_eq!(out[..3], [1, 0x40, (out.len() - 3) as u8]);
    assert_eq!(out[3..out.len() - 7], *expected, "{out:x?}");
    assert_eq!(read(&out), "|:status: 200|content-type: text/plain|server: w|x: {}|vary: origin, x");
}

#[test]
fn trailers_are_written() {
    let mut trailers = Fields::new();
    for (name, value) in [("grpc-status", "0"), ("connection", "close"), ("x", "")] {
        trailers.append(name.as_bytes(), value.as_bytes());
    }
    let mut out = Vec::new();
    encode_trailers(&trailers, &mut out).unwrap();
    assert_eq!(read(&out), "|grpc-status: 0|x: ");
}

#[test]
fn heads_of_any_length_fit() {
    for length in [0, 40, 16_200, 16_384, 40_000, 70_000] {
        let mut head = Head::new();
        head.set_status(200, b"");
        // Not shorter in Huffman code.
        head.append(b"x-a", &vec![b'{'; length]);
        let mut out = Vec::new();
        encode_response(&head, &Edits::default(), &mut out).unwrap();
        assert_eq!(read(&out), format!("|:status: 200|x-a: {}", "{".repeat(length)));
    }
    let mut head = Head::new();
    head.append(b"x-a", &[b'{'; 1000]);
    let mut small = base::Buffer::with_capacity(100);
    assert_eq!(encode_response(&head, &Edits::default(), &mut small), Err(Overflow));
    assert!(small.is_empty());
}

/// Reads a HEADERS frame as a request, and writes that as HTTP/1.
fn as_http_1(frame: &[u8]) -> (Result<Outcome, Malformed>, Head) {
    let mut head = Head::new();
    let mut reader = request_reader(&mut head, CAPACITY, true);
    let mut decoder = qpack::Decoder::new(qpack::TableLimits::default());
    decoder.decode(0, &section(frame), CAPACITY, |field| reader.field(field)).unwrap();
    let outcome = reader.finish(true, false);
    drop(reader);
    (outcome, head)
}

fn name_strategy() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z][a-z0-9-]{0,20}",
        Just("cache-control".to_owned()),
        Just("content-type".to_owned()),
        Just("accept-encoding".to_owned()),
        Just("user-agent".to_owned()),
    ]
}

fn value_strategy() -> impl Strategy<Value = String> {
    prop_oneof![
        "[!-~]([ -~]{0,60}[!-~])?",
        Just(String::new()),
        Just("no-cache".to_owned()),
        Just("text/css".to_owned()),
        "[\u{80}-\u{ff}]{1,20}",
    ]
}

proptest! {
    #[test]
    fn requests_come_back(
        path in "/[!-~&&[^#\"<>\\\\^`{|}%?]]{0,40}",
        fields in proptest::collection::vec((name_strategy(), value_strategy()), 0..12),
        method in prop_oneof![Just("GET"), Just("POST"), Just("DELETE"), Just("PROPFIND")],
    ) {
        let mut head = Head::new();
        head.set_method(method.as_bytes());
        head.set_target(format!("https://a.b{path}").as_bytes());
        let known = |name: &str| crate::http::Name::from_token(name.as_bytes()) != crate::http::Name::Other;
        let fields: Vec<_> = fields.into_iter().filter(|(name, _)| !known(name) && name != "cookie").collect();
        for (name, value) in &fields {
            head.append(name.as_bytes(), value.as_bytes());
        }
        let mut out = Vec::new();
        encode_request(&head, &Edits::default(), &mut out).unwrap();
        let (outcome, again) = as_http_1(&out);
        prop_assert_eq!(outcome, Ok(Outcome::Request));
        prop_assert_eq!(again.method(), method.as_bytes());
        prop_assert_eq!(again.known_method(), Method::from_text(method.as_bytes()));
        prop_assert_eq!(again.target_on_wire(), path.as_bytes());
        prop_assert_eq!(again.version_text(), b"HTTP/3.0");
        let mut expected = vec![("host".to_owned(), "a.b".to_owned())];
        expected.extend(fields);
        let read: Vec<_> = again.fields().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        let expected: Vec<_> =
            expected.into_iter().map(|(name, value)| (name.into_bytes(), value.into_bytes())).collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn responses_come_back(
        status in 200_u16..1000,
        fields in proptest::collection::vec((name_strategy(), value_strategy()), 0..12),
        length: u32,
    ) {
        let mut head = Head::new();
        head.set_status(status, b"");
        let known = |name: &str| crate::http::Name::from_token(name.as_bytes()) != crate::http::Name::Other;
        let fields: Vec<_> = fields.into_iter().filter(|(name, _)| !known(name)).collect();
        for (name, value) in &fields {
            head.append(name.as_bytes(), value.as_bytes());
        }
        let mut out = Vec::new();
        let framing = Framing::Length(u64::from(length));
        encode_response(&head, &Edits { framing, ..Edits::default() }, &mut out).unwrap();
        let mut again = Head::new();
        let mut reader = response_reader(&mut again, CAPACITY);
        let mut decoder = qpack::Decoder::new(qpack::TableLimits::default());
        decoder.decode(0, &section(&out), CAPACITY, |field| reader.field(field)).unwrap();
        prop_assert_eq!(reader.finish(false), Ok(()));
        prop_assert_eq!((again.status(), again.version_text()), (status, &b"HTTP/3.0"[..]));
        if !matches!(status, 204 | 304) {
            prop_assert_eq!(again.framing, framing);
        }
        let read: Vec<_> = again.fields().filter(|(name, _)| *name != b"content-length").collect();
        let expected: Vec<_> = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        prop_assert_eq!(read, expected);
    }
}
