//! Heads that rules have changed: the encoded message must be unambiguous.

use super::*;
use crate::http::{Framing, Head, Version};
use base::Buffer;

fn parsed(input: &[u8]) -> Head {
    let mut head = Head::new();
    let parsed = if input.starts_with(b"HTTP/") {
        parse_response(input, &HeadLimits::default(), &RequestContext::default(), &mut Scan::default(), &mut head)
            .map_err(|error| error.violation)
    } else {
        parse_request(input, &HeadLimits::default(), &mut Scan::default(), &mut head).map_err(|error| error.violation)
    };
    assert!(matches!(parsed, Ok(Parse::Complete { .. })), "{}", input.escape_ascii());
    head
}

fn request(head: &Head, connection: ConnectionLine<'_>, framing: Framing) -> String {
    let mut out = Vec::new();
    encode_request(head, &Edits { connection, framing, version: head.version(), ..Edits::default() }, &mut out)
        .expect("room");
    String::from_utf8(out).expect("text")
}

fn response(head: &Head, connection: ConnectionLine<'_>, framing: Framing) -> String {
    let mut out = Vec::new();
    encode_response(head, &Edits { connection, framing, version: head.version(), ..Edits::default() }, &mut out)
        .expect("room");
    String::from_utf8(out).expect("text")
}

#[test]
fn rules_change_lines_and_leave_the_rest_in_order() {
    let mut head = parsed(b"GET /a HTTP/1.1\r\nHost: a\r\nB: 1\r\nC: 2\r\n\r\n");
    head.replace(b"b", b"3");
    head.append(b"X-Forwarded-For", b"192.0.2.1");
    head.set_target(b"/other");
    head.remove_all(b"c");
    assert_eq!(
        request(&head, ConnectionLine::Close, Framing::None),
        "GET /other HTTP/1.1\r\nhost: a\r\nb: 3\r\nx-forwarded-for: 192.0.2.1\r\nconnection: close\r\n\r\n"
    );
    let mut head = parsed(b"HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 3\r\n\r\n");
    head.set_status(503, b"");
    head.prepend(b"First", b"1");
    assert_eq!(
        response(&head, ConnectionLine::Nothing, Framing::Length(3)),
        "HTTP/1.1 503 Service Unavailable\r\nfirst: 1\r\na: b\r\ncontent-length: 3\r\n\r\n"
    );
}

#[test]
fn framing_is_what_the_edits_say_and_said_once() {
    let mut head = parsed(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nB: 1\r\n\r\n");
    assert_eq!(
        request(&head, ConnectionLine::Nothing, Framing::Chunked),
        "POST / HTTP/1.1\r\nhost: a\r\nb: 1\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    assert_eq!(
        request(&head, ConnectionLine::Nothing, Framing::Length(4)),
        "POST / HTTP/1.1\r\nhost: a\r\nb: 1\r\ncontent-length: 4\r\n\r\n"
    );
    head.append(b"Transfer-Encoding", b"chunked");
    head.append(b"content-length", b"3");
    head.append(b"content-length", b"99");
    assert_eq!(
        request(&head, ConnectionLine::Nothing, Framing::Length(3)),
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\nb: 1\r\n\r\n"
    );
    assert_eq!(request(&head, ConnectionLine::Nothing, Framing::None), "POST / HTTP/1.1\r\nhost: a\r\nb: 1\r\n\r\n");
    let head = parsed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nB: 1\r\n\r\n");
    assert_eq!(
        response(&head, ConnectionLine::Close, Framing::UntilClose),
        "HTTP/1.1 200 OK\r\nb: 1\r\nconnection: close\r\n\r\n"
    );
}

#[test]
fn options_that_rules_add_are_the_encoders_to_decide() {
    let mut head = parsed(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    head.append(b"Connection", b"foo, close, bar,, Keep-Alive");
    assert_eq!(
        request(&head, ConnectionLine::Nothing, Framing::None),
        "GET / HTTP/1.1\r\nhost: a\r\nconnection: foo,bar\r\n\r\n"
    );
    head.replace(b"connection", b"close");
    assert!(head.asks_to_close());
    assert_eq!(
        request(&head, ConnectionLine::Close, Framing::None),
        "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
    );
}

#[test]
fn upgrades_stay_in_their_places_or_are_added() {
    let head = parsed(b"GET / HTTP/1.1\r\nUpgrade: foo\r\nHost: a\r\nConnection: Upgrade\r\n\r\n");
    let expected = "GET / HTTP/1.1\r\nupgrade: foo\r\nhost: a\r\nconnection: Upgrade\r\n\r\n";
    assert_eq!(request(&head, ConnectionLine::Upgrade(b"bar"), Framing::None), expected);
    assert_eq!(request(&head, ConnectionLine::for_request(&head, false).0, Framing::None), expected);
    let head = parsed(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(
        request(&head, ConnectionLine::Upgrade(b"foo"), Framing::None),
        "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: foo\r\n\r\n"
    );
}

#[test]
fn another_version_than_the_one_received() {
    let head = parsed(b"GET /a HTTP/1.0\r\nHost: a\r\n\r\n");
    let mut out = Vec::new();
    encode_request(&head, &Edits { version: Version::Http11, ..Edits::default() }, &mut out).unwrap();
    assert_eq!(out, b"GET /a HTTP/1.1\r\nhost: a\r\n\r\n");
    let head = parsed(b"HTTP/1.1 099 Odd\r\n\r\n");
    let mut out = Vec::new();
    let edits = Edits { version: Version::Http10, framing: Framing::UntilClose, ..Edits::default() };
    encode_response(&head, &edits, &mut out).unwrap();
    assert_eq!(out, b"HTTP/1.0 099 Odd\r\n\r\n");
}

#[test]
fn a_head_made_here() {
    let mut head = Head::new();
    head.set_status(302, b"Found");
    head.append(b"Location", b"/foo");
    assert_eq!(
        response(&head, ConnectionLine::Nothing, Framing::Length(0)),
        "HTTP/1.1 302 Found\r\nlocation: /foo\r\ncontent-length: 0\r\n\r\n"
    );
}

#[test]
fn what_does_not_fit_is_not_written_at_all() {
    let head = parsed(b"GET /a HTTP/1.1\r\nHost: a\r\nB: 1\r\n\r\n");
    let length = request(&head, ConnectionLine::Nothing, Framing::None).len();
    let edits = Edits { version: head.version(), ..Edits::default() };
    for capacity in 0..length {
        let mut out = Buffer::with_capacity(capacity);
        assert_eq!(encode_request(&head, &edits, &mut out), Err(Overflow));
        assert!(out.is_empty());
    }
    let mut out = Buffer::with_capacity(length);
    assert_eq!(encode_request(&head, &edits, &mut out), Ok(()));
    assert_eq!(out.len(), length);
    let mut text = b"kept".to_vec();
    assert_eq!(encode_request(&head, &edits, &mut text), Ok(()));
    assert_eq!(text.len(), length + 4);
}

/// A change of a head.
type Change = fn(&mut Head);

#[test]
fn a_head_that_is_copied_whole_is_the_one_that_is_written_field_by_field() {
    let messages: [&[u8]; 9] = [
        b"GET / HTTP/1.1\r\nHost: a\r\nB: 1\r\nB: 2\r\n\r\n",
        b"GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nB: 1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nB: 1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\nConnection: x, b\r\nB: 1\r\nC: d\r\n e\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 03\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nA: b\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\nContent-Length: 3\r\nA: b\r\n\r\n",
    ];
    let changes: [Change; 7] = [
        |_| {},
        |head| head.fields.remove(1),
        |head| head.append(b"x", b"y"),
        |head| head.prepend(b"x", b"y"),
        |head| head.fields.set_value(0, b"other"),
        |head| head.fields.splice_value(0, 0..1, b""),
        |head| head.framing = Framing::Chunked,
    ];
    let connections = [ConnectionLine::Nothing, ConnectionLine::Close, ConnectionLine::Upgrade(b"other")];
    for message in messages {
        for change in changes {
            let mut head = parsed(message);
            change(&mut head);
            let mut other = head.clone();
            // No edits have this framing, so that the fields are written one by one.
            other.received_framing = Framing::Length(999);
            for connection in connections {
                for framing in [head.framing, Framing::None, Framing::Length(3), Framing::Chunked, Framing::UntilClose]
                {
                    let encode = if message.starts_with(b"HTTP/") { response } else { request };
                    assert_eq!(encode(&head, connection, framing), encode(&other, connection, framing));
                }
            }
        }
    }
}
