//! HTTP/2 requests that would be different ones in HTTP/1: every text of a request, combined with strings that end a
//! line, a word or a message there, wrong lengths and codings, and random combinations. Must never judge one.

use wire::h2::{Kind, PREFACE, flag, push_frame};

/// A request in another one, which must not be taken for a request.
const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nHost: h\r\n\r\n";

/// Strings that are forbidden in every text of a head.
pub const FORBIDDEN: &[&str] = &[
    "\r\n",
    "\r",
    "\n",
    "\0",
    "\r\n\r\n",
    "\n\n",
    "\r\nhost: b",
    "\r\ncontent-length: 0",
    "\ntransfer-encoding: chunked",
    " HTTP/1.1\r\nHost: a\r\n\r\nGET /hidden HTTP/1.1\r\nx: y",
    "\r\ncontent-length: 0\r\n\r\nGET /hidden HTTP/1.1\r\nx: y",
    "\0\r\nx: y",
];

/// Strings that are at least unusual there.
pub const ODD: &[&str] = &[
    " ",
    "\t",
    "  HTTP/1.1",
    "\u{b}",
    "\u{c}",
    "\u{1b}",
    "\u{7f}",
    "\u{85}",
    "\u{a0}",
    "\u{2028}",
    ":",
    "::",
    "#",
    "?",
    "/",
    "//",
    "\\",
    "@",
    ",",
    ";",
    "%",
    "%0d%0a",
    "%00",
    "*",
    "\"",
    "[",
    "]",
    "{",
    "|",
    "^",
    "~",
    "..",
    "é",
];

/// The texts of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextField {
    Method,
    Scheme,
    Path,
    Authority,
    Name,
    Value,
    Host,
    Cookie,
    Te,
    Expect,
    Length,
    TrailerName,
    TrailerValue,
}

const PLACES: [TextField; 13] = [
    TextField::Method,
    TextField::Scheme,
    TextField::Path,
    TextField::Authority,
    TextField::Name,
    TextField::Value,
    TextField::Host,
    TextField::Cookie,
    TextField::Te,
    TextField::Expect,
    TextField::Length,
    TextField::TrailerName,
    TextField::TrailerValue,
];

/// Fields that delimit a body or the connection, or may be taken for such.
pub const FRAMINGS: &[(&str, &str)] = &[
    ("content-length", "5"),
    ("content-length", "0"),
    ("content-length", "3"),
    ("content-length", "7"),
    ("content-length", "05"),
    ("content-length", "+5"),
    ("content-length", "-5"),
    ("content-length", "0x5"),
    ("content-length", "5,5"),
    ("content-length", "5, 6"),
    ("content-length", "5 5"),
    ("content-length", ""),
    ("content-length", "18446744073709551621"),
    ("content-length", "99999999999999999999999"),
    ("content-length ", "5"),
    ("content_length", "5"),
    ("Content-Length", "5"),
    ("content-length:5", ""),
    ("transfer-encoding", "chunked"),
    ("transfer-encoding", "identity"),
    ("transfer-encoding", ""),
    ("transfer-encoding", "gzip, chunked"),
    ("Transfer-Encoding", "chunked"),
    ("transfer-encoding ", "chunked"),
    ("transfer-encoding:", "chunked"),
    ("transfer_encoding", "chunked"),
    ("connection", "close"),
    ("connection", "keep-alive, content-length"),
    ("keep-alive", "1"),
    ("proxy-connection", "close"),
    ("upgrade", "h2c"),
    ("upgrade", "websocket"),
    ("te", "trailers"),
    ("te", "chunked"),
    ("te", "trailers, chunked"),
    ("trailer", "content-length"),
    ("http2-settings", "AAMAAABkAAQAAP__"),
    (":path", "/hidden"),
    (":protocol", "websocket"),
    (":status", "200"),
    (":", "x"),
    ("", "x"),
    (":method", "GET"),
    ("host", "b"),
    ("host", "a, b"),
    ("expect", "100-continue"),
];

/// Payload of five bytes, a request, and chunks.
const BODIES: &[&str] =
    &["", "hello", HIDDEN, "0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: h\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n"];

/// The bytes that a client sends on its connection, and whether none of them may reach a server.
pub struct Input {
    pub bytes: Vec<u8>,
    pub refused: bool,
}

/// A request before it is encoded as frames.
struct Request {
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    body: Vec<u8>,
    trailers: Vec<(Vec<u8>, Vec<u8>)>,
}

pub fn pair(name: &str, value: &str) -> (Vec<u8>, Vec<u8>) {
    (name.into(), value.into())
}

impl Request {
    fn new(method: &str) -> Request {
        let fields = [(":method", method), (":scheme", "http"), (":path", "/a"), (":authority", "a"), ("x-y", "z")];
        Request { fields: fields.map(|(name, value)| pair(name, value)).into(), body: Vec::new(), trailers: Vec::new() }
    }

    /// Inserts `text` into a field: before, within or after its contents.
    fn put(&mut self, place: TextField, text: &str, at: usize) {
        let into = match place {
            TextField::Method => &mut self.fields[0].1,
            TextField::Scheme => &mut self.fields[1].1,
            TextField::Path => &mut self.fields[2].1,
            TextField::Authority => &mut self.fields[3].1,
            TextField::Name => &mut self.fields[4].0,
            TextField::Value => &mut self.fields[4].1,
            TextField::Host => self.add("host", "a"),
            TextField::Cookie => self.add("cookie", "a=b"),
            TextField::Te => self.add("te", "trailers"),
            TextField::Expect => self.add("expect", "100-continue"),
            TextField::Length => {
                let length = self.body.len().to_string();
                self.add("content-length", &length)
            }
            TextField::TrailerName | TextField::TrailerValue => {
                self.trailers.push(pair("x-t", "u"));
                let last = self.trailers.last_mut().unwrap();
                if place == TextField::TrailerName { &mut last.0 } else { &mut last.1 }
            }
        };
        let at = match at {
            0 => 0,
            1 => into.len() / 2,
            _ => into.len(),
        };
        into.splice(at..at, text.bytes());
    }

    fn add(&mut self, name: &str, value: &str) -> &mut Vec<u8> {
        self.fields.push(pair(name, value));
        &mut self.fields.last_mut().unwrap().1
    }

    /// The bytes of a client that sends it as stream 1. `alone`: END_STREAM is set on its head although there is a
    /// body.
    fn bytes(&self, alone: bool) -> Vec<u8> {
        let mut out = PREFACE.to_vec();
        push_frame(&mut out, Kind::Settings, 0, 0, &[]);
        let ends = alone || self.body.is_empty() && self.trailers.is_empty();
        let end = |ends| if ends { flag::END_STREAM } else { 0 };
        push_frame(&mut out, Kind::Headers, flag::END_HEADERS | end(ends), 1, &block(&self.fields));
        if !self.body.is_empty() {
            push_frame(&mut out, Kind::Data, end(self.trailers.is_empty()), 1, &self.body);
        }
        if !self.trailers.is_empty() {
            push_frame(&mut out, Kind::Headers, flag::END_HEADERS | flag::END_STREAM, 1, &block(&self.trailers));
        }
        out
    }
}

/// Encodes literals without indexing and without Huffman coding.
pub fn block(fields: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            match text.len() {
                length @ ..127 => block.push(length as u8),
                length => block.extend([127, (length - 127) as u8 | 0x80, ((length - 127) >> 7) as u8]),
            }
            block.extend_from_slice(text);
        }
    }
    block
}

/// All inputs of a seed.
pub fn all(mut seed: u64) -> Vec<Input> {
    let mut random = move |most: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % most
    };
    let mut inputs = Vec::new();
    for (number, place) in PLACES.into_iter().enumerate() {
        let in_trailers = matches!(place, TextField::TrailerName | TextField::TrailerValue);
        let texts = FORBIDDEN.iter().map(|text| (text, !in_trailers)).chain(ODD.iter().map(|text| (text, false)));
        for (turn, (text, refused)) in texts.enumerate() {
            let mut request = Request::new(if turn % 2 == 0 { "GET" } else { "POST" });
            request.body = BODIES[(turn + number) % BODIES.len()].into();
            request.put(place, text, turn % 3);
            inputs.push(Input { bytes: request.bytes(false), refused });
        }
    }
    for (turn, (name, value)) in FRAMINGS.iter().enumerate() {
        for body in BODIES {
            for alone in [false, true] {
                let mut request = Request::new("POST");
                request.fields.push(pair(name, value));
                request.body = (*body).into();
                if turn % 3 == 0 {
                    request.trailers.push(pair(name, value));
                }
                inputs.push(Input { bytes: request.bytes(alone), refused: false });
            }
        }
    }
    for _ in 0..300 {
        let mut request = Request::new(["GET", "POST", "CONNECT", "OPTIONS", "HEAD"][random(5)]);
        request.body = BODIES[random(BODIES.len())].into();
        for _ in 0..1 + random(3) {
            let text = if random(3) == 0 { FORBIDDEN[random(FORBIDDEN.len())] } else { ODD[random(ODD.len())] };
            request.put(PLACES[random(PLACES.len())], text, random(3));
        }
        let (name, value) = FRAMINGS[random(FRAMINGS.len())];
        let at = random(request.fields.len() + 1);
        request.fields.insert(at, pair(name, value));
        if random(3) == 0 {
            let gone = random(request.fields.len());
            request.fields.remove(gone);
        }
        inputs.push(Input { bytes: request.bytes(random(4) == 0), refused: false });
    }
    inputs
}
