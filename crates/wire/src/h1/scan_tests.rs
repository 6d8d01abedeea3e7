//! Fragmented heads, and heads at their limits.

use super::*;
use crate::http::{Head, Method, Version};

const REQUEST: &[u8] =
    b"\r\nPOST /a?b HTTP/1.1\r\nHost: a.b\r\nX-Fold: 1\r\n 2\r\n\t3\r\nContent-Length: 03\r\nConnection: close, x-a\r\nX-A: 1\r\nY:\r\n\r\nabc";

fn text(head: &Head) -> Vec<u8> {
    let (connection, version) = ConnectionLine::for_request(head, true);
    let edits = Edits { connection, framing: head.framing, version, ..Edits::default() };
    let mut out = Vec::new();
    encode_request(head, &edits, &mut out).expect("a vector has room");
    out
}

fn parse(input: &[u8]) -> Result<(Head, usize), RequestError> {
    let mut head = Head::new();
    match parse_request(input, &HeadLimits::default(), &mut Scan::default(), &mut head)? {
        Parse::Complete { consumed } => Ok((head, consumed)),
        Parse::Partial => panic!("partial: {}", input.escape_ascii()),
    }
}

#[test]
fn pieces_make_the_same_head() {
    let (whole, consumed) = parse(REQUEST).unwrap();
    assert_eq!(&REQUEST[consumed..], b"abc");
    let mut head = Head::new();
    for step in 1..=7 {
        let mut scan = Scan::default();
        let mut length = 0;
        loop {
            length = (length + step).min(REQUEST.len());
            match parse_request(&REQUEST[..length], &HeadLimits::default(), &mut scan, &mut head).unwrap() {
                Parse::Partial => assert!(length < consumed),
                Parse::Complete { consumed: other } => {
                    assert_eq!(other, consumed);
                    break;
                }
            }
        }
        assert_eq!(text(&head), text(&whole), "in steps of {step}");
    }
    for first in 0..consumed {
        for second in first..consumed {
            let mut scan = Scan::default();
            for length in [first, second] {
                let parsed = parse_request(&REQUEST[..length], &HeadLimits::default(), &mut scan, &mut head);
                assert_eq!(parsed, Ok(Parse::Partial), "{first}, {second}");
            }
            let parsed = parse_request(REQUEST, &HeadLimits::default(), &mut scan, &mut head);
            assert_eq!(parsed, Ok(Parse::Complete { consumed }), "{first}, {second}");
            assert_eq!(text(&head), text(&whole), "{first}, {second}");
        }
    }
}

/// Lines are copied in another way if a block of bytes follows them.
#[test]
fn what_follows_a_head_changes_nothing() {
    for name in (1..=34).map(|length| "X-Abcdefg".repeat(4)[..length].to_owned()) {
        for value in [
            "",
            "a",
            "a b",
            " a",
            "a ",
            "\t",
            "a\x01b",
            "a\0b",
            "\u{80}",
            "0123456789abcde",
            "0123456789abcdef",
            &"v w".repeat(30),
        ] {
            for (separator, end) in
                [(": ", "\r\n"), (":", "\r\n"), (":  ", " \r\n"), (":\t", "\n"), (" : ", "\r\n"), (": ", "\r\r\n")]
            {
                let alone = format!("GET / HTTP/1.1\r\n{name}{separator}{value}{end}\r\n");
                let parsed = |input: &[u8]| parse(input).map(|(head, consumed)| (text(&head), consumed));
                let followed = format!("{alone}{}", "x".repeat(64));
                assert_eq!(parsed(followed.as_bytes()), parsed(alone.as_bytes()), "{alone:?}");
            }
        }
    }
}

#[test]
fn a_response_in_pieces() {
    let input = b"HTTP/1.1 200 Very OK\r\nA: b\r\n c\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    let mut head = Head::new();
    let mut scan = Scan::default();
    let context = RequestContext::default();
    let mut complete = 0;
    for length in 0..=input.len() {
        match parse_response(&input[..length], &HeadLimits::default(), &context, &mut scan, &mut head).unwrap() {
            Parse::Partial => {}
            Parse::Complete { consumed } => {
                complete = consumed;
                break;
            }
        }
    }
    assert_eq!(&input[complete..], b"0\r\n\r\n");
    assert_eq!((head.status(), head.reason(), head.first(b"a")), (200, &b"Very OK"[..], Some(&b"b   c"[..])));
}

#[test]
fn an_error_is_the_same_in_pieces_and_never_later_than_its_line() {
    let cases: &[&[u8]] = &[
        b"GET / HTTP/1.1\r\nHost: a\r\nA b: c\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n: c\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",
        b"GET / HTTP/9\r\nHost: a\r\n\r\n",
        b"GET /\x80 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\n Host: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        b"\r\r\nGET / HTTP/1.1\r\n\r\n",
    ];
    for input in cases {
        let whole = parse(input).unwrap_err();
        let mut scan = Scan::default();
        let mut head = Head::new();
        let found = (0..=input.len())
            .find_map(|length| parse_request(&input[..length], &HeadLimits::default(), &mut scan, &mut head).err());
        assert_eq!(found, Some(whole), "{}", input.escape_ascii());
    }
}

#[test]
fn what_is_no_method_is_refused_before_its_line_ends() {
    for input in [&b"\x16\x03\x01"[..], b"G(", b"\0", b"GET\x7f", b"(", b"G/"] {
        let mut scan = Scan::default();
        let mut head = Head::new();
        let error = (1..=input.len())
            .find_map(|length| parse_request(&input[..length], &HeadLimits::default(), &mut scan, &mut head).err());
        let whole = parse_request(input, &HeadLimits::default(), &mut Scan::default(), &mut Head::new()).unwrap_err();
        assert_eq!(whole.violation, Violation::Method, "{}", input.escape_ascii());
        // A slash ends the protocol name of a response, so the parser waits for the line end.
        assert_eq!(error.is_some(), !input.contains(&b'/'), "{}", input.escape_ascii());
    }
}

#[test]
fn positions_point_at_the_fault() {
    let cases: &[(&[u8], &[u8])] = &[
        (b"GET / HTTP/1.1\r\nHost: a\r\nA b: c\r\n\r\n", b" b: c"),
        (b"GET /#x HTTP/1.1\r\n\r\n", b"#x"),
        (b"GET / HTTP/1.1\r\nA: b\0c\r\n\r\n", b"\0c"),
        (b"GET / HTTP/1.1\r\nX: y\r\nhOST: a,b\r\n\r\n", b"hOST"),
        (b"\r\nGET x HTTP/1.1\r\nHost: a\r\n\r\n", b"GET x"),
        (b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"Content-Length"),
        (b"GET / HTTP/1.1x\r\n\r\n", b"x\r\n"),
    ];
    for (input, fault) in cases {
        let position = parse(input).unwrap_err().position;
        assert!(input[position..].starts_with(fault), "{} at {position}", input.escape_ascii());
    }
}

#[test]
fn heads_at_their_limits() {
    let limits = HeadLimits { max_head: 100, max_fields: 5, ..HeadLimits::default() };
    let run = |input: &[u8]| {
        parse_request(input, &limits, &mut Scan::default(), &mut Head::new()).map_err(|error| error.status())
    };
    let with_target = |length: usize| format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(length - 18)).into_bytes();
    assert_eq!(run(&with_target(100)), Ok(Parse::Complete { consumed: 100 }));
    assert_eq!(run(&with_target(101)), Err(431));
    assert_eq!(run(&with_target(100)[..99]), Ok(Parse::Partial));
    assert_eq!(run(&with_target(200)[..100]), Err(414));
    assert_eq!(run(&[&b"GET / HTTP/1.1\r\nA: "[..], &[b'x'; 100]].concat()), Err(431));
    assert_eq!(run(&b"\r\n".repeat(50)), Err(414));
    let old = HeadLimits { accept_unsafe: true, ..limits };
    let line = format!("GET /{}\r\n", "a".repeat(100)).into_bytes();
    let error = parse_request(&line, &old, &mut Scan::default(), &mut Head::new()).unwrap_err();
    assert_eq!(error.violation, Violation::StartLineTooLong);
    let with_fields = |count: usize| format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(count)).into_bytes();
    assert!(matches!(run(&with_fields(4)), Ok(Parse::Complete { .. })));
    assert_eq!(run(&with_fields(5)), Err(400));
    let name = |length: usize| format!("GET / HTTP/1.1\r\n{}: b\r\n\r\n", "n".repeat(length)).into_bytes();
    assert!(parse(&name(255)).is_ok());
    assert_eq!(parse(&name(256)).unwrap_err().violation, Violation::NameLength);
    assert_eq!(parse(&name(5000)).unwrap_err().violation, Violation::NameLength);
}

#[test]
fn what_the_head_tells() {
    let (head, _) = parse(
        b"PUT /x HTTP/1.0\r\nHost: a\r\nConnection: Keep-Alive\r\nExpect: 100-Continue\r\nContent-Length: 5\r\n\r\n",
    )
    .unwrap();
    assert_eq!((head.method(), head.known_method(), head.target()), (&b"PUT"[..], Method::Put, &b"/x"[..]));
    assert_eq!((head.version(), head.version_text()), (Version::Http10, &b"HTTP/1.0"[..]));
    assert!(head.keeps_alive() && head.expect_continue && !head.upgrade);
    assert_eq!(head.framing, crate::http::Framing::Length(5));
    assert_eq!(head.host(), Some(&b"a"[..]));
    let (head, _) = parse(b"GET / HTTP/2.0\r\nHost: a\r\n\r\n").unwrap();
    assert_eq!((head.version(), head.version_text()), (Version::Http11, &b"HTTP/2.0"[..]));
    let (head, _) = parse(b"POST / HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
    assert!(head.connection.close && !head.keeps_alive());
}

#[test]
fn connection_options_and_the_lines_they_lead_to() {
    use ConnectionLine::{Close, KeepAlive, Nothing};
    use Version::{Http10, Http11};
    let cases = [
        (Http11, Http11, true, Nothing),
        (Http11, Http11, false, Close),
        (Http10, Http11, true, KeepAlive),
        (Http10, Http11, false, Close),
        (Http11, Http10, true, KeepAlive),
        (Http11, Http10, false, Nothing),
        (Http10, Http10, true, KeepAlive),
        (Http10, Http10, false, Nothing),
    ];
    for (request, response, keep, line) in cases {
        assert_eq!(ConnectionLine::for_response(request, response, keep), line, "{request:?} {response:?} {keep}");
    }
}

#[test]
fn too_many_connection_options() {
    let options = |count: usize| format!("GET / HTTP/1.1\r\nConnection: {}\r\n\r\n", "a,".repeat(count)).into_bytes();
    assert!(parse(&options(64)).is_ok());
    assert_eq!(parse(&options(65)).unwrap_err().violation, Violation::ConnectionOptions);
}

#[test]
fn large_heads_and_what_lies_behind_them() {
    let long = "v".repeat(9_000);
    let many: String = (0..90).map(|number| format!("Name-{number}: {}\r\n", "w".repeat(50))).collect();
    let blanks = " ".repeat(3_000);
    let input = format!(
        "GET /{long} HTTP/1.1\r\nHost: a\r\n{many}F: 1{blanks}\r\n{blanks}2\r\nG: {long}\r\n\r\n{}",
        "body".repeat(5_000)
    );
    let limits = HeadLimits { max_head: 100_000, ..HeadLimits::default() };
    let expected = format!(
        "GET /{long} HTTP/1.1\r\nhost: a\r\n{}f: 1{blanks}  {blanks}2\r\ng: {long}\r\n\r\n",
        many.replace("Name", "name")
    );
    let mut head = Head::new();
    let parsed = parse_request(input.as_bytes(), &limits, &mut Scan::default(), &mut head);
    assert_eq!(parsed, Ok(Parse::Complete { consumed: input.len() - 20_000 }));
    assert_eq!(String::from_utf8(text(&head)).unwrap(), expected);
    let mut scan = Scan::default();
    for length in (0..input.len()).step_by(97) {
        if parse_request(&input.as_bytes()[..length], &limits, &mut scan, &mut head) != Ok(Parse::Partial) {
            assert_eq!(String::from_utf8(text(&head)).unwrap(), expected);
            return;
        }
    }
    panic!("never complete");
}

#[test]
fn the_room_of_a_head_follows_the_head_and_not_its_body() {
    let input = [b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n".to_vec(), vec![b'x'; 60_000]].concat();
    let (mut head, _) = parse(&input).unwrap();
    assert!(head.fields.capacity() < 4_000, "{}", head.fields.capacity());
    head.clear();
    head.fields.shrink_to(0);
    assert_eq!(head.fields.capacity(), 0);
}
