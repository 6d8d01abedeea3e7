//! Any bytes as a response: no panic, the same result in pieces, and the output is one unambiguous response.
//!
//! The first two bytes select limits, the request and pieces.


use wire::h1::{Edits, HeadLimits, Parse, RequestContext, Scan, encode_response, parse_response};
use wire::http::{Framing, Head};

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let [flags, step, input @ ..] = data else { return };
    let limits = HeadLimits {
        max_fields: if flags & 1 == 0 { 101 } else { 5 },
        max_head: if flags & 2 == 0 { 15_360 } else { 200 },
        accept_unsafe: flags & 4 != 0,
        ..HeadLimits::default()
    };
    let request = RequestContext { head: flags & 8 != 0, connect: flags & 16 != 0 };
    let mut head = Head::new();
    let whole = parse_response(input, &limits, &request, &mut Scan::default(), &mut head);
    if let Err(error) = whole {
        assert!(error.position <= input.len());
    }
    let mut other = Head::new();
    let mut scan = Scan::default();
    let mut length = 0;
    let mut found = Ok(Parse::Partial);
    while length < input.len() && found == Ok(Parse::Partial) {
        length = (length + usize::from(*step).max(1)).min(input.len());
        found = parse_response(&input[..length], &limits, &request, &mut scan, &mut other);
    }
    if let Ok(Parse::Complete { consumed }) = whole {
        assert!(consumed <= limits.max_head);
        assert_eq!(found, whole);
        assert_eq!(pass_on(&other), pass_on(&head));
        judge(&head, &limits, &request);
    } else {
        assert!(!matches!(found, Ok(Parse::Complete { .. })));
    }
}

fn pass_on(head: &Head) -> Vec<u8> {
    let edits = Edits { framing: head.framing, version: head.version(), ..Edits::default() };
    let mut out = Vec::new();
    encode_response(head, &edits, &mut out).expect("a vector has room");
    out
}

fn judge(head: &Head, limits: &HeadLimits, request: &RequestContext) {
    let out = pass_on(head);
    let limits = HeadLimits { max_head: usize::MAX, max_fields: 1000, ..*limits };
    let mut again = Head::new();
    let parsed = parse_response(&out, &limits, request, &mut Scan::default(), &mut again);
    assert_eq!(parsed, Ok(Parse::Complete { consumed: out.len() }));
    assert_eq!(again.framing, head.framing);
    assert_eq!(pass_on(&again), out);
    let framing = again.all(b"content-length").count() + again.all(b"transfer-encoding").count();
    assert!(framing <= 1);
    if matches!(head.status(), 100..200 | 204) {
        assert_eq!((head.framing, framing), (Framing::None, 0));
    }
    let visible = |text: &[u8]| text.iter().all(|byte| *byte == b'\t' || (b' '..=b'~').contains(byte));
    if !visible(head.reason()) || !again.fields().all(|(_, value)| visible(value)) {
        return;
    }
    let mut room = [httparse::EMPTY_HEADER; 128];
    let mut other = httparse::Response::new(&mut room);
    match other.parse(&out) {
        Ok(httparse::Status::Complete(length)) => assert_eq!(length, out.len()),
        Err(httparse::Error::Version | httparse::Error::Status) => return,
        result => panic!("{result:?} for {}", out.escape_ascii()),
    }
    assert_eq!(other.code, Some(again.status()));
    let theirs: Vec<_> = other
        .headers
        .iter()
        .map(|field| (field.name.to_ascii_lowercase().into_bytes(), field.value.to_vec()))
        .collect();
    let ours: Vec<_> = again.fields().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
    assert_eq!(ours, theirs);
}
