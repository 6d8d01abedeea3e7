//! A request as the origin uses it: parsed by `wire`, reduced to the input of the response. Must never keep the
//! head.

use std::cell::RefCell;

use wire::h1::{HeadLimits, Parse, RequestError, Scan, Violation, parse_request};
use wire::http::{Framing, Head, Method, Version};

use wire::haterm::{Parameters, Reuse, asks_for_help};

/// Input of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Parameters of the target's query.
    pub parameters: Parameters,
    /// The response is the help text.
    pub help: bool,
    /// The method is HEAD: the response has no body.
    pub bodiless: bool,
    /// The version is HTTP/1.1.
    pub modern: bool,
    /// The connection is kept after the response.
    pub keep: bool,
    /// Framing of the request's body.
    pub framing: Framing,
    /// The client waits for `100 Continue` before it sends the body.
    pub expects: bool,
}

/// Result of parsing a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// More bytes are needed.
    Partial,
    /// The request, and its length in bytes.
    Complete(Request, usize),
    /// Invalid: the status to respond with.
    Refused(u16),
}

/// Parser of the requests of one connection, one after the other.
#[derive(Debug, Default)]
pub struct Reader {
    /// An incomplete head. Most are complete at once, and use the worker's.
    begun: Option<Box<(Scan, Head)>>,
    /// Length of a body without parameters, in bytes.
    size: u64,
}

impl Reader {
    /// Creates a parser; `size` is the length of a body without parameters, in bytes.
    pub fn new(size: u64) -> Self {
        Self { begun: None, size }
    }

    /// Parses the request at the start of `input`. After `Partial` the same bytes must be passed again, followed by
    /// more. `random` is used for parameters that require it.
    pub fn read(&mut self, input: &[u8], shared: &RefCell<Head>, random: impl FnMut() -> u64) -> Progress {
        if self.begun.is_some() {
            return self.go_on(input, random);
        }
        let parsed = parse(input, &mut Scan::default(), &mut shared.borrow_mut(), self.size, random);
        if parsed == Progress::Partial && !input.is_empty() {
            self.begun = Some(Box::default());
            return self.go_on(input, random_is_not_needed);
        }
        parsed
    }

    fn go_on(&mut self, input: &[u8], random: impl FnMut() -> u64) -> Progress {
        let Some(begun) = &mut self.begun else { return Progress::Partial };
        let (scan, head) = &mut **begun;
        let parsed = parse(input, scan, head, self.size, random);
        if parsed != Progress::Partial {
            self.begun = None;
        }
        parsed
    }
}

/// For a head that is known to be partial: its target is not parsed.
fn random_is_not_needed() -> u64 {
    0
}

fn parse(input: &[u8], scan: &mut Scan, head: &mut Head, size: u64, random: impl FnMut() -> u64) -> Progress {
    match parse_request(input, &HeadLimits::default(), scan, head) {
        Ok(Parse::Partial) => Progress::Partial,
        Ok(Parse::Complete { consumed }) => Progress::Complete(Request::of(head, size, random), consumed),
        Err(error) => Progress::Refused(status_of(&error)),
    }
}

fn status_of(error: &RequestError) -> u16 {
    match error.violation {
        Violation::StartLineTooLong => 414,
        Violation::HeadTooLarge => 431,
        _ => 400,
    }
}

impl Request {
    /// Builds the request from a parsed head; `size` is the length of a body without parameters, in bytes.
    pub fn of(head: &Head, size: u64, random: impl FnMut() -> u64) -> Self {
        let target = head.target();
        let mut parameters = Parameters::read(target, random);
        if size > 0 && !target.contains(&b'?') {
            parameters.size = size;
        }
        let modern = head.version() == Version::Http11;
        let bodiless = head.known_method() == Method::Head;
        if bodiless {
            parameters.size = 0;
        }
        let ends_connection = parameters.status < 200 || head.known_method() == Method::Connect;
        let keep = match parameters.reuse {
            Reuse::AsAsked => head.keeps_alive(),
            Reuse::Close => false,
            Reuse::Keep => !head.connection.close,
        };
        Self {
            parameters,
            help: asks_for_help(target),
            bodiless,
            modern,
            keep: keep && !ends_connection,
            framing: head.framing,
            expects: modern && head.expect_continue && head.framing.has_body(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Progress {
        Reader::default().read(text.as_bytes(), &RefCell::default(), || 0)
    }

    fn request(text: &str) -> Request {
        match read(text) {
            Progress::Complete(request, consumed) => {
                assert_eq!(consumed, text.len(), "{text}");
                request
            }
            other => panic!("{other:?} for {text}"),
        }
    }

    #[test]
    fn the_connection_is_kept_as_version_fields_and_parameters_say() {
        for (start, fields, keep) in [
            ("GET / HTTP/1.1", "", true),
            ("GET / HTTP/1.1", "Connection: close\r\n", false),
            ("GET /?C=1 HTTP/1.1", "", false),
            ("GET /?K=0 HTTP/1.1", "", false),
            ("GET /?K=1 HTTP/1.1", "Connection: close\r\n", false),
            ("GET / HTTP/1.0", "", false),
            ("GET / HTTP/1.0", "Connection: keep-alive\r\n", true),
            ("GET /?K=1 HTTP/1.0", "", true),
            ("GET /?C=1 HTTP/1.0", "Connection: keep-alive\r\n", false),
            ("GET /?r=101&K=1 HTTP/1.1", "", false),
            ("POST / HTTP/1.1", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", false),
        ] {
            assert_eq!(request(&format!("{start}\r\nHost: a\r\n{fields}\r\n")).keep, keep, "{start} {fields}");
        }
    }

    #[test]
    fn bodies_and_who_waits_for_a_word_are_known() {
        let post = request("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
        assert_eq!((post.framing, post.expects), (Framing::Length(5), true));
        let none = request("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n");
        assert!(!none.expects, "there is nothing to wait for");
        let chunked = request("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert_eq!(chunked.framing, Framing::Chunked);
        let head = request("HEAD /?s=10 HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!((head.bodiless, head.parameters.size), (true, 0));
    }

    #[test]
    fn what_is_no_request_is_refused_with_a_status() {
        let long_line = format!("GET /{}", "x".repeat(20_000));
        let large_head = format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(20_000));
        for (text, status) in [
            ("garbage\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", 400),
            ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("\x16\x03\x01\x02", 400),
            (long_line.as_str(), 414),
            (large_head.as_str(), 431),
        ] {
            assert_eq!(read(text), Progress::Refused(status), "{}", &text[..text.len().min(40)]);
        }
    }

    #[test]
    fn a_head_in_pieces_is_what_it_is_at_once() {
        let text = b"GET /?s=5&r=201 HTTP/1.1\r\nHost: a.example\r\nA: b\r\n\r\n";
        let (mut reader, shared) = (Reader::default(), RefCell::default());
        for end in 1..text.len() {
            assert_eq!(reader.read(&text[..end], &shared, || 0), Progress::Partial, "{end} bytes");
        }
        let whole = reader.read(text, &shared, || 0);
        assert_eq!(whole, Reader::default().read(text, &shared, || 0));
        assert!(matches!(whole, Progress::Complete(request, _) if request.parameters.status == 201));
    }
}
