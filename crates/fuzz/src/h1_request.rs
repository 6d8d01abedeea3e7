//! Any bytes as a request: no panic, the same result in pieces, and the output is one unambiguous request, for this
//! parser and for another one.
//!
//! The first two bytes select limits and pieces.


use wire::h1::{ConnectionLine, Edits, HeadLimits, Parse, Scan, Spelling, encode_request, parse_request};
use wire::http::Head;

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let [flags, step, input @ ..] = data else { return };
    let limits = HeadLimits {
        max_fields: if flags & 1 == 0 { 101 } else { 5 },
        max_head: if flags & 2 == 0 { 15_360 } else { 200 },
        accept_unsafe: flags & 4 != 0,
        accept_payload_with_any_method: flags & 8 != 0,
        keep_insecure_transfer_encoding: flags & 16 != 0,
        keep_proxy_connection: flags & 32 != 0,
    };
    let mut head = Head::new();
    let whole = parse_request(input, &limits, &mut Scan::default(), &mut head);
    if let Err(error) = whole {
        assert!(error.position <= input.len());
        assert!((400..500).contains(&error.status()));
    }
    in_pieces(input, usize::from(*step).max(1), &limits, &whole, &head);
    if let Ok(Parse::Complete { consumed }) = whole {
        assert!(consumed <= input.len() && consumed <= limits.max_head);
        judge(&head, &limits);
    }
}

fn in_pieces(
    input: &[u8],
    step: usize,
    limits: &HeadLimits,
    whole: &Result<Parse, wire::h1::RequestError>,
    whole_head: &Head,
) {
    let mut head = Head::new();
    let mut scan = Scan::default();
    let mut length = 0;
    while length < input.len() {
        length = (length + step).min(input.len());
        let found = parse_request(&input[..length], limits, &mut scan, &mut head);
        if found == Ok(Parse::Partial) {
            continue;
        }
        if let Ok(Parse::Complete { .. }) = whole {
            assert_eq!(&found, whole);
            assert_eq!(forward(&head), forward(whole_head));
        }
        if let Ok(Parse::Complete { .. }) = found {
            assert_eq!(&found, whole);
        }
        return;
    }
    assert!(!matches!(whole, Ok(Parse::Complete { .. })), "complete as a whole, partial in pieces");
}

fn forward(head: &Head) -> Vec<u8> {
    let (connection, version) = ConnectionLine::for_request(head, true);
    let edits = Edits { connection, framing: head.framing, version, ..Edits::default() };
    let mut out = Vec::new();
    encode_request(head, &edits, &mut out).expect("a vector has room");
    out
}

/// Checks that all parsers interpret the output alike.
fn judge(head: &Head, limits: &HeadLimits) {
    let out = forward(head);
    respell(head, &out);
    let limits = HeadLimits { max_head: usize::MAX, max_fields: 1000, ..*limits };
    let mut again = Head::new();
    let parsed = parse_request(&out, &limits, &mut Scan::default(), &mut again);
    assert_eq!(parsed, Ok(Parse::Complete { consumed: out.len() }));
    assert_eq!(again.framing, head.framing);
    assert_eq!(forward(&again), out);
    let framing = again.all(b"content-length").count() + again.all(b"transfer-encoding").count();
    assert!(framing <= 1 && again.all(b"host").count() <= 1);

    let visible = |text: &[u8]| text.iter().all(|byte| *byte == b'\t' || (b' '..=b'~').contains(byte));
    let strange =
        !visible(head.target()) || !again.version_text().starts_with(b"HTTP/1.") || again.version_text().len() > 8;
    if strange || !again.fields().all(|(_, value)| visible(value)) {
        return;
    }
    let mut room = [httparse::EMPTY_HEADER; 128];
    let mut other = httparse::Request::new(&mut room);
    match other.parse(&out) {
        Ok(httparse::Status::Complete(length)) => assert_eq!(length, out.len()),
        // It only supports versions 1.0 and 1.1.
        Err(httparse::Error::Version) => return,
        result => panic!("{result:?} for {}", out.escape_ascii()),
    }
    assert_eq!(other.method.map(str::as_bytes), Some(again.method()));
    assert_eq!(other.path.map(str::as_bytes), Some(again.target()));
    let theirs = other.headers.iter().map(|field| (field.name.to_ascii_lowercase().into_bytes(), field.value.to_vec()));
    // Connection and the framing are encoded from decisions that the head stores separately.
    let own = |name: &[u8]| !matches!(name, b"connection");
    let theirs: Vec<_> = theirs.filter(|(name, _)| own(name)).collect();
    let ours: Vec<_> = again.fields().filter(|(name, _)| own(name)).map(|(n, v)| (n.to_vec(), v.to_vec())).collect();
    assert_eq!(ours, theirs);
}

/// Checks that another spelling of names changes only the case of letters, and that a field appended last adds one
/// line.
fn respell(head: &Head, plain: &[u8]) {
    let spelling: Spelling =
        [("host", "HOST"), ("x-a", "X-a"), ("content-length", "Content-Length")].into_iter().collect();
    let (connection, version) = ConnectionLine::for_request(head, true);
    let edits = Edits {
        connection,
        framing: head.framing,
        version,
        last: Some((b"x-a", b"s1")),
        spelling: Some(&spelling),
    };
    let mut out = Vec::new();
    encode_request(head, &edits, &mut out).expect("a vector has room");
    let added = out.len() - plain.len();
    assert_eq!(added, b"x-a: s1\r\n".len());
    assert!(out[..plain.len() - 2].eq_ignore_ascii_case(&plain[..plain.len() - 2]));
    assert!(out.ends_with(b"\r\nX-a: s1\r\n\r\n"));
}
