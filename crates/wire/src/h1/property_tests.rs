//! Properties that hold for every message.

use super::*;
use crate::http::{Fields, Head};
use proptest::prelude::*;

/// Encodes a payload as a chunked body; the chunks have the lengths of `sizes`, cyclically.
fn chunked(payload: &[u8], sizes: &[usize], extension: &str) -> Vec<u8> {
    let mut body = Vec::new();
    let mut rest = payload;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (chunk, after) = rest.split_at((*size).clamp(1, rest.len()));
        body.extend_from_slice(format!("{:x}{extension}\r\n", chunk.len()).as_bytes());
        body.extend_from_slice(chunk);
        body.extend_from_slice(b"\r\n");
        rest = after;
    }
    body.extend_from_slice(LAST_CHUNK);
    body
}

/// Splits `bytes` into pieces of the lengths of `sizes`, cyclically.
fn pieces<'a>(bytes: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let mut rest = bytes;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at((*size).clamp(1, rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// Text biased towards tokens that matter in a head.
fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<&'static [u8]> = vec![
        b"GET ",
        b"POST /",
        b"CONNECT a:1",
        b"OPTIONS *",
        b" HTTP/1.1\r\n",
        b" HTTP/1.0\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 101 \r\n",
        b"Host: a.b\r\n",
        b"Host: ",
        b"Content-Length: 3\r\n",
        b"content-length:",
        b"03,3",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: ",
        b"close",
        b"upgrade, x-a",
        b"Upgrade: h2c, foo\r\n",
        b"X-A: b\r\n",
        b"TE: trailers\r\n",
        b"http://a.b:80",
        b"/",
        b"\r\n",
        b"\n",
        b"\r",
        b" ",
        b"\t",
        b":",
        b",",
        b"\0",
        b"#",
        b"\xff",
        b"x",
        b"\r\n\r\n",
        b"[::1]",
        b"@",
        b"Expect: 100-continue\r\n",
        b"Keep-Alive: x\r\n",
    ];
    prop_oneof![
        8 => proptest::sample::select(known).prop_map(<[u8]>::to_vec),
        1 => proptest::collection::vec(any::<u8>(), 0..12),
    ]
}

fn head_like() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(fragment(), 0..24).prop_map(|fragments| fragments.concat())
}

/// A well-formed request with fields that are never removed.
fn plain_request() -> impl Strategy<Value = (String, String, Vec<(String, String)>)> {
    let field = ("[Xx]-[A-Za-z0-9!#$%&'*+.^_`|~-]{1,20}", "([!-~]([ -~\t]{0,40}[!-~])?)?");
    let fields = proptest::collection::vec(field, 0..20);
    // PRI is reserved for the preface of HTTP/2 (RFC 9113, section 3.4).
    let methods = |(method, ..): &(String, String, Vec<(String, String)>)| method != "CONNECT" && method != "PRI";
    ("[A-Z]{1,10}", "/[!-\"$-~]{0,60}", fields).prop_filter("CONNECT has no path, and PRI is refused", methods)
}

fn parse(input: &[u8], limits: &HeadLimits) -> Option<(Head, usize)> {
    let mut head = Head::new();
    match parse_request(input, limits, &mut Scan::default(), &mut head) {
        Ok(Parse::Complete { consumed }) => Some((head, consumed)),
        _ => None,
    }
}

fn forward(head: &Head) -> Vec<u8> {
    let (connection, version) = ConnectionLine::for_request(head, true);
    let edits = Edits { connection, framing: head.framing, version, ..Edits::default() };
    let mut out = Vec::new();
    encode_request(head, &edits, &mut out).expect("a vector has room");
    out
}

fn pass_on(head: &Head) -> Vec<u8> {
    let edits = Edits { framing: head.framing, version: head.version(), ..Edits::default() };
    let mut out = Vec::new();
    encode_response(head, &edits, &mut out).expect("a vector has room");
    out
}

proptest! {
    #[test]
    fn a_chunked_body_decodes_to_its_payload_however_it_is_cut(
        payload in proptest::collection::vec(any::<u8>(), 0..3000),
        chunks in proptest::collection::vec(1_usize..700, 1..8),
        cuts in proptest::collection::vec(1_usize..400, 1..8),
        extension in "( {0,2};[a-z]{0,5}(=\"[a-z ;]{0,5}\")?)?",
        behind in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let body = [chunked(&payload, &chunks, &extension), behind.clone()].concat();
        let mut decoder = ChunkDecoder::new();
        let mut trailers = Fields::new();
        let mut found = Vec::new();
        let mut used = 0;
        for piece in pieces(&body, &cuts) {
            let mut data = piece.to_vec();
            let decoded = decoder.decode_in_place(&mut data, &mut trailers).unwrap();
            found.extend_from_slice(&data[..decoded.payload]);
            used += decoded.consumed;
            if decoded.state == ChunkState::End {
                break;
            }
            prop_assert_eq!(decoded.consumed, piece.len());
        }
        prop_assert_eq!(found, payload);
        prop_assert_eq!(used, body.len() - behind.len());
    }

    #[test]
    fn what_goes_out_comes_in_and_goes_out_the_same(input in head_like(), accept_unsafe in any::<bool>()) {
        let limits = HeadLimits { accept_unsafe, ..HeadLimits::default() };
        if let Some((head, _)) = parse(&input, &limits) {
            let first = forward(&head);
            let (again, consumed) = parse(&first, &limits).expect("what goes out is a request");
            prop_assert_eq!(consumed, first.len());
            prop_assert_eq!(again.framing, head.framing);
            prop_assert_eq!(forward(&again), first);
        }
    }

    #[test]
    fn so_do_responses(input in head_like(), accept_unsafe in any::<bool>(), head_only in any::<bool>()) {
        let limits = HeadLimits { accept_unsafe, ..HeadLimits::default() };
        let context = RequestContext { head: head_only, connect: false };
        let input = [&b"HTTP/1.1 200 OK\r\n"[..], &input].concat();
        let mut head = Head::new();
        let parsed = parse_response(&input, &limits, &context, &mut Scan::default(), &mut head);
        if let Ok(Parse::Complete { .. }) = parsed {
            let first = pass_on(&head);
            let mut again = Head::new();
            let parsed = parse_response(&first, &limits, &context, &mut Scan::default(), &mut again);
            prop_assert_eq!(parsed, Ok(Parse::Complete { consumed: first.len() }));
            prop_assert_eq!(again.framing, head.framing);
            prop_assert_eq!(pass_on(&again), first);
        }
    }

    #[test]
    fn pieces_and_the_whole_agree(
        input in head_like(),
        cuts in proptest::collection::vec(1_usize..20, 1..6),
        accept_unsafe in any::<bool>(),
    ) {
        let limits = HeadLimits { accept_unsafe, max_head: 400, max_fields: 12, ..HeadLimits::default() };
        let mut whole_head = Head::new();
        let whole = parse_request(&input, &limits, &mut Scan::default(), &mut whole_head);
        let mut head = Head::new();
        let mut scan = Scan::default();
        let mut length = 0;
        let mut found = Ok(Parse::Partial);
        for piece in pieces(&input, &cuts) {
            length += piece.len();
            found = parse_request(&input[..length], &limits, &mut scan, &mut head);
            if found != Ok(Parse::Partial) {
                break;
            }
        }
        match (whole, found) {
            // An invalid method is detected earlier, and a message that is too long may have other violations as well.
            (Err(whole), Err(found)) => prop_assert!(
                whole == found || found.violation == Violation::Method || found.status() != 400 || whole.status() != 400,
                "{:?} {:?}", whole, found
            ),
            // A fragmented line is validated when it is complete.
            (Err(whole), Ok(Parse::Partial)) => {
                let line = input.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
                prop_assert!(whole.position >= line, "{:?}", whole);
            }
            (Ok(Parse::Complete { .. }), found) => {
                prop_assert_eq!(whole, found);
                prop_assert_eq!(forward(&head), forward(&whole_head));
            }
            (whole, found) => prop_assert!(
                whole == found || found.is_err_and(|found| matches!(found.violation, Violation::Method)),
                "{:?} {:?}", whole, found
            ),
        }
    }

    #[test]
    fn plain_requests_are_read_as_httparse_reads_them((method, target, fields) in plain_request()) {
        let lines: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let input = format!("{method} {target} HTTP/1.1\r\n{lines}\r\n");
        let mut room = [httparse::EMPTY_HEADER; 32];
        let mut other = httparse::Request::new(&mut room);
        prop_assert!(matches!(other.parse(input.as_bytes()), Ok(httparse::Status::Complete(_))), "{}", input);
        let (head, consumed) = parse(input.as_bytes(), &HeadLimits::default()).expect("a plain request");
        prop_assert_eq!(consumed, input.len());
        prop_assert_eq!(head.method(), other.method.unwrap().as_bytes());
        prop_assert_eq!(head.target(), other.path.unwrap().as_bytes());
        let ours: Vec<_> = head.fields().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        let theirs: Vec<_> =
            other.headers.iter().map(|field| (field.name.to_ascii_lowercase().into_bytes(), field.value.to_vec())).collect();
        prop_assert_eq!(ours, theirs);
    }

    #[test]
    fn no_request_of_two_framings_leaves(input in head_like(), accept_unsafe in any::<bool>()) {
        let limits = HeadLimits { accept_unsafe, ..HeadLimits::default() };
        if let Some((head, _)) = parse(&input, &limits) {
            let out = String::from_utf8_lossy(&forward(&head)).into_owned();
            let count = |name: &str| out.matches(name).count();
            prop_assert!(count("\r\ncontent-length: ") + count("\r\ntransfer-encoding: ") <= 1, "{}", out);
            prop_assert!(count("\r\nhost: ") <= 1, "{}", out);
            prop_assert!(!out.trim_end_matches("\r\n").replace("\r\n", "").contains(['\r', '\n']), "{}", out);
            prop_assert!(!out.contains("h2c") || out.contains("h2c/") || !out.contains("\r\nupgrade: h2c\r\n"), "{}", out);
        }
    }
}
