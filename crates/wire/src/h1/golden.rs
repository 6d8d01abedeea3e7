//! Compares heads with those that HAProxy forwarded, byte for byte: `golden/requests.txt` and `golden/responses.txt`
//! were recorded from HAProxy.

use super::*;
use crate::http::{Framing, Head, Method, Version};

/// One block of a golden file: its lines, keyed by their first word.
struct Case(Vec<(String, String)>);

impl Case {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    fn bytes(&self, key: &str) -> Vec<u8> {
        unescape(self.get(key).unwrap_or_default())
    }

    fn limits(&self) -> HeadLimits {
        HeadLimits { accept_unsafe: self.get("mode") == Some("unsafe"), ..HeadLimits::default() }
    }

    /// The result expected from Weir.
    fn expected(&self) -> &str {
        self.get("weir").or(self.get("out")).unwrap_or_default()
    }
}

fn cases(text: &str) -> Vec<Case> {
    let blocks = text.split("\n\n").skip(1);
    let cases = blocks.map(|block| {
        let lines = block.lines().filter(|line| !line.starts_with('#'));
        let pairs = lines.map(|line| {
            let (key, value) = line.split_once(' ').unwrap_or((line, ""));
            (key.to_owned(), value.strip_prefix(' ').filter(|_| key.len() < 4).unwrap_or(value).to_owned())
        });
        Case(pairs.map(|(key, value)| (key.clone(), value.trim_start().to_owned())).collect())
    });
    cases.collect()
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let (kind, after) = rest.split_first().expect("something follows a backslash");
        rest = after;
        match kind {
            b'r' => bytes.push(b'\r'),
            b'n' => bytes.push(b'\n'),
            b't' => bytes.push(b'\t'),
            b'\\' => bytes.push(b'\\'),
            b'x' => {
                let digits = std::str::from_utf8(&rest[..2]).expect("two digits");
                bytes.push(u8::from_str_radix(digits, 16).expect("two hexadecimal digits"));
                rest = &rest[2..];
            }
            _ => panic!("unknown escape in {text}"),
        }
    }
    bytes
}

fn show(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string().replace("\\'", "'").replace("\\\"", "\"")
}

/// Parses and forwards a request; returns the encoded head, or the status of the error.
fn forward(input: &[u8], limits: &HeadLimits) -> String {
    let mut head = Head::new();
    match parse_request(input, limits, &mut Scan::default(), &mut head) {
        Err(error) => error.status().to_string(),
        Ok(Parse::Partial) => "partial".to_owned(),
        Ok(Parse::Complete { .. }) => {
            let keep = head.version() == Version::Http11 || head.framing != Framing::Chunked;
            let (connection, version) = ConnectionLine::for_request(&head, keep);
            let edits = Edits { connection, framing: head.framing, version, ..Edits::default() };
            let mut out = Vec::new();
            encode_request(&head, &edits, &mut out).expect("a vector has room");
            show(&out)
        }
    }
}

/// Parses and forwards the responses to a request; returns the heads sent to the client and the bytes after the last
/// one, or the status of the error.
fn answer(ask: &[u8], input: &[u8], closes: bool, limits: &HeadLimits) -> String {
    let mut request = Head::new();
    let parsed = parse_request(ask, &HeadLimits::default(), &mut Scan::default(), &mut request);
    assert!(matches!(parsed, Ok(Parse::Complete { .. })), "{}", show(ask));
    let context = RequestContext {
        head: request.known_method() == Method::Head,
        connect: request.known_method() == Method::Connect,
    };
    let mut out = Vec::new();
    let mut head = Head::new();
    let mut rest = input;
    loop {
        match parse_response(rest, limits, &context, &mut Scan::default(), &mut head) {
            Err(error) => return error.status().to_string(),
            Ok(Parse::Partial) => return "502".to_owned(),
            Ok(Parse::Complete { consumed }) => rest = &rest[consumed..],
        }
        let interim = (100..200).contains(&head.status());
        let tunnel = head.status() == 101 || (context.connect && (200..300).contains(&head.status()));
        if head.status() == 101 && !request.upgrade {
            return "502".to_owned();
        }
        let connection = if interim || tunnel {
            ConnectionLine::Nothing
        } else {
            ConnectionLine::for_response(request.version(), head.version(), !closes)
        };
        let edits = Edits { connection, framing: head.framing, version: head.version(), ..Edits::default() };
        encode_response(&head, &edits, &mut out).expect("a vector has room");
        if !interim || tunnel {
            let body = match head.framing {
                Framing::Length(length) => rest.len().min(length as usize),
                Framing::None if !tunnel => 0,
                _ => rest.len(),
            };
            out.extend_from_slice(&rest[..body]);
            return show(&out);
        }
    }
}

fn compare(text: &str, run: impl Fn(&Case) -> String) {
    let cases = cases(text);
    assert!(cases.len() > 50, "the file was read");
    let mut wrong = Vec::new();
    for case in &cases {
        let expected = match case.expected().parse::<u16>() {
            Ok(status) => status.to_string(),
            Err(_) => show(&unescape(case.expected())),
        };
        let found = run(case);
        if found != expected {
            wrong.push(format!(
                "in       {}\nexpected {expected}\nfound    {found}\n",
                case.get("in").unwrap_or_default()
            ));
        }
        if case.get("weir").is_some() {
            assert!(case.get("why").is_some_and(|why| !why.is_empty()), "a difference needs a reason");
            assert_ne!(case.get("weir"), case.get("out"), "no difference");
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn requests_go_out_as_measured() {
    compare(include_str!("golden/requests.txt"), |case| forward(&case.bytes("in"), &case.limits()));
}

#[test]
fn responses_go_out_as_measured() {
    compare(include_str!("golden/responses.txt"), |case| {
        answer(&case.bytes("ask"), &case.bytes("in"), case.get("then") == Some("closes"), &case.limits())
    });
}
