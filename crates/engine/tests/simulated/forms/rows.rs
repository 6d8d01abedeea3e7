//! The forms of messages: requests with their answers, and differences at the other side. Must never send one.

use super::{Pair, Version};

/// The framing of a body, and its length in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    None,
    /// With a length in the head.
    Length(usize),
    /// Without a length: chunks, or only DATA frames.
    Stream(usize),
    /// Without a length, with trailers.
    Trailers(usize),
    /// Delimited by the end of the connection, if there is one connection per message.
    Close(usize),
    /// Truncated after that number of bytes; the announced length is ten more.
    Cut(usize),
    /// Truncated after that number of bytes, without an announced length.
    CutStream(usize),
}

/// Trailers as sent.
pub const TRAILERS: &str = "x-end: 1\r\nx-sum: 2\r\n";

impl Body {
    pub fn length(self) -> usize {
        match self {
            Body::None => 0,
            Body::Length(length) | Body::Stream(length) | Body::Trailers(length) | Body::Close(length) => length,
            Body::Cut(length) | Body::CutStream(length) => length,
        }
    }

    pub fn framing(self) -> String {
        match self {
            Body::None => "none".to_owned(),
            Body::Length(length) => format!("length {length}"),
            Body::Cut(length) => format!("length {}", length + 10),
            Body::Close(_) => "close".to_owned(),
            Body::Stream(_) | Body::Trailers(_) | Body::CutStream(_) => "stream".to_owned(),
        }
    }

    pub fn trailers(self) -> &'static str {
        if matches!(self, Body::Trailers(_)) { TRAILERS } else { "" }
    }

    pub fn is_whole(self) -> bool {
        !matches!(self, Body::Cut(_) | Body::CutStream(_))
    }
}

/// How messages are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendMode {
    Plain,
    /// In padded frames, if the version has frames.
    Padded,
    /// With empty frames before, between and after the others.
    EmptyFrames,
    /// The client waits for `100 Continue` before it sends the body.
    Continue,
    /// The server answers after the head; then the client sends the second half of the body.
    Early,
    /// The server closes after the request, without an answer.
    Vanish,
}

/// Whether the client's and the server's versions have streams, if that matters.
pub type Columns = (Option<bool>, Option<bool>);

/// The entry of a table for a pair.
pub fn find(table: &[(Columns, &'static str)], pair: Pair) -> Option<&'static str> {
    let is_meant = |(client, server): Columns| {
        client.is_none_or(|client| client == pair.0.has_streams())
            && server.is_none_or(|server| server == pair.1.has_streams())
    };
    table.iter().find(|(columns, _)| is_meant(*columns)).map(|(_, text)| *text)
}

const ALL: Columns = (None, None);
const H1_CLIENT: Columns = (Some(false), None);
const H2_CLIENT: Columns = (Some(true), None);
const H1_SERVER: Columns = (None, Some(false));
const H2_SERVER: Columns = (None, Some(true));

/// A request and its answer.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub name: &'static str,
    /// The request's head in HTTP/1 form, without the framing of its body.
    pub ask: &'static str,
    pub body: Body,
    pub way: SendMode,
    /// Interim heads before the answer's.
    pub interims: &'static [&'static str],
    pub answer: &'static str,
    pub back: Body,
    /// The request at the server, if it differs; with the framing, if that differs.
    pub at_server: &'static [(Columns, &'static str)],
    /// The answer at the client, if it differs. Without the end of a line: an error page of the proxy.
    pub at_client: &'static [(Columns, &'static str)],
    /// The versions in which the form exists.
    pub only: Columns,
}

impl Row {
    pub fn plays(&self, pair: Pair) -> bool {
        find(&[(self.only, "")], pair).is_some()
    }
}

const GET: &str = "GET /x HTTP/1.1\r\nhost: a\r\n";
const POST: &str = "POST /x HTTP/1.1\r\nhost: a\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\n";

const ROW: Row = Row {
    name: "",
    ask: GET,
    body: Body::None,
    way: SendMode::Plain,
    interims: &[],
    answer: OK,
    back: Body::Length(2),
    at_server: &[],
    at_client: &[],
    only: ALL,
};

pub const FORMS: &[Row] = &[
    Row { name: "length", ask: POST, body: Body::Length(5), back: Body::Length(7), ..ROW },
    Row { name: "no length", ask: POST, body: Body::Stream(5), back: Body::Stream(7), ..ROW },
    Row { name: "length of nothing", ask: POST, body: Body::Length(0), back: Body::Length(0), ..ROW },
    Row { name: "no length of nothing", ask: POST, body: Body::Stream(0), back: Body::Stream(0), ..ROW },
    Row { name: "until the connection ends", back: Body::Close(3000), ..ROW },
    Row { name: "nothing until the connection ends", back: Body::Close(0), ..ROW },
    Row { name: "trailers", ask: POST, body: Body::Trailers(5), back: Body::Trailers(7), ..ROW },
    Row { name: "trailers behind nothing", ask: POST, body: Body::Trailers(0), back: Body::Trailers(0), ..ROW },
    Row { name: "a body of GET", body: Body::Length(3), ..ROW },
    Row { name: "POST without a body", ask: POST, ..ROW },
    Row {
        name: "hints before the answer",
        interims: &["HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n", "HTTP/1.1 103 Early Hints\r\nlink: </b>\r\n"],
        ..ROW
    },
    Row { name: "HEAD, a length", ask: HEAD, answer: OK_OF_FIVE, back: Body::None, ..ROW },
    Row { name: "HEAD, no length", ask: HEAD, back: Body::None, ..ROW },
    Row { name: "204", answer: "HTTP/1.1 204 No Content\r\nx-a: 1\r\n", back: Body::None, ..ROW },
    Row { name: "304", answer: "HTTP/1.1 304 Not Modified\r\netag: \"a\"\r\n", back: Body::None, ..ROW },
    Row {
        name: "304, a length",
        answer: "HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\netag: \"a\"\r\n",
        back: Body::None,
        ..ROW
    },
    Row { name: "a body that is waited for", ask: EXPECTING, body: Body::Length(9000), way: SendMode::Continue, ..ROW },
    Row { name: "no length, waited for", ask: EXPECTING, body: Body::Stream(9000), way: SendMode::Continue, ..ROW },
    Row { name: "an answer before the body", ask: POST, body: Body::Length(60_000), way: SendMode::Early, ..ROW },
    Row { name: "an answer before chunks", ask: POST, body: Body::Stream(60_000), way: SendMode::Early, ..ROW },
    Row {
        name: "an early answer without a length",
        ask: POST,
        body: Body::Stream(60_000),
        back: Body::Stream(50_000),
        way: SendMode::Early,
        ..ROW
    },
    Row { name: "the client cuts", ask: POST, body: Body::Cut(3000), ..ROW },
    Row { name: "the client cuts chunks", ask: POST, body: Body::CutStream(3000), ..ROW },
    Row { name: "the server cuts", back: Body::Cut(3000), ..ROW },
    Row { name: "the server cuts chunks", back: Body::CutStream(3000), ..ROW },
    Row { name: "the server does not answer", way: SendMode::Vanish, at_client: &[(ALL, "HTTP/1.1 502")], ..ROW },
    Row {
        name: "the server does not answer a body",
        ask: POST,
        body: Body::Length(3000),
        way: SendMode::Vanish,
        at_client: &[(ALL, "HTTP/1.1 502")],
        ..ROW
    },
    Row { name: "padding", ask: POST, body: Body::Length(900), back: Body::Stream(900), way: SendMode::Padded, ..ROW },
    Row {
        name: "padding, trailers",
        ask: POST,
        body: Body::Trailers(900),
        back: Body::Length(900),
        way: SendMode::Padded,
        ..ROW
    },
    Row {
        name: "empty frames",
        ask: POST,
        body: Body::Length(900),
        back: Body::Stream(900),
        way: SendMode::EmptyFrames,
        ..ROW
    },
    Row {
        name: "empty frames, trailers",
        ask: POST,
        body: Body::Trailers(900),
        back: Body::Length(900),
        way: SendMode::EmptyFrames,
        ..ROW
    },
    Row {
        name: "cookies in several fields",
        ask: "GET /x HTTP/1.1\r\nhost: a\r\ncookie: a=1\r\ncookie: b=2\r\nx-a: 1\r\ncookie: c=3\r\n",
        at_server: &[(H2_CLIENT, "GET /x HTTP/1.1\r\nhost: a\r\nx-a: 1\r\ncookie: a=1; b=2; c=3\r\n")],
        ..ROW
    },
    Row { name: "cookies of the server", answer: "HTTP/1.1 200 OK\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n", ..ROW },
    Row { name: "te", ask: "GET /x HTTP/1.1\r\nhost: a\r\nte: trailers\r\n", ..ROW },
    Row {
        name: "fields of one connection",
        ask: "GET /x HTTP/1.1\r\nhost: a\r\nconnection: x-a\r\nx-a: 1\r\nkeep-alive: timeout=5\r\nx-b: 2\r\n",
        answer: "HTTP/1.1 200 OK\r\nconnection: x-c\r\nx-c: 1\r\nkeep-alive: timeout=5\r\nx-d: 2\r\n",
        at_server: &[(ALL, "GET /x HTTP/1.1\r\nhost: a\r\nx-b: 2\r\n")],
        at_client: &[(ALL, "HTTP/1.1 200 OK\r\nx-d: 2\r\n")],
        only: (Some(false), Some(false)),
        ..ROW
    },
    Row {
        name: "absolute target",
        ask: "GET http://a/x?y HTTP/1.1\r\nhost: a\r\n",
        at_server: &[(H2_CLIENT, "GET /x?y HTTP/1.1\r\nhost: a\r\n"), (H2_SERVER, "GET /x?y HTTP/1.1\r\nhost: a\r\n")],
        ..ROW
    },
    Row { name: "asterisk", ask: "OPTIONS * HTTP/1.1\r\nhost: a\r\n", ..ROW },
    Row { name: "a port", ask: "GET /x HTTP/1.1\r\nhost: a:8080\r\n", ..ROW },
    Row { name: "fields in order", ask: ORDERED, answer: ORDERED_ANSWER, ..ROW },
    Row { name: "empty values", ask: "GET /x HTTP/1.1\r\nhost: a\r\nx-a: \r\nx-b: 1\r\n", ..ROW },
    Row { name: "unknown method", ask: "BREW /pot HTTP/1.1\r\nhost: a\r\n", body: Body::Length(4), ..ROW },
    Row { name: "unknown status", answer: "HTTP/1.1 299 \r\nx-a: 1\r\n", ..ROW },
    Row {
        name: "an error",
        ask: POST,
        body: Body::Length(10),
        answer: "HTTP/1.1 500 Internal Server Error\r\n",
        ..ROW
    },
    Row { name: "a redirect", answer: "HTTP/1.1 302 Found\r\nlocation: /y\r\n", back: Body::Length(0), ..ROW },
];

const HEAD: &str = "HEAD /x HTTP/1.1\r\nhost: a\r\n";
const OK_OF_FIVE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n";
const EXPECTING: &str = "POST /x HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\n";
const ORDERED: &str = "GET /x HTTP/1.1\r\nhost: a\r\nx-a: 1\r\nx-b: 2\r\nx-a: 3\r\naccept: */*\r\nx-b: 4\r\n";
const ORDERED_ANSWER: &str = "HTTP/1.1 200 OK\r\nx-a: 1\r\nx-b: 2\r\nx-a: 3\r\nvary: *\r\nx-b: 4\r\n";

/// Around the capacity of one chunk, one frame, one buffer and one window.
const LENGTHS: &[usize] = &[
    1, 8, 9, 255, 256, 4095, 4096, 15_360, 16_374, 16_375, 16_383, 16_384, 16_385, 32_767, 32_768, 32_769, 65_534,
    65_535, 65_536, 65_537, 150_000,
];

/// Bodies of all lengths, in both directions.
pub fn lengths() -> Vec<Row> {
    let rows = LENGTHS.iter().flat_map(|&length| {
        [
            Row { name: "length", ask: POST, body: Body::Length(length), back: Body::Stream(length), ..ROW },
            Row { name: "no length", ask: POST, body: Body::Stream(length), back: Body::Length(length), ..ROW },
            Row { name: "trailers", ask: POST, body: Body::Trailers(length), back: Body::Trailers(length), ..ROW },
        ]
    });
    rows.collect()
}

#[test]
fn columns_are_found() {
    let table = [(H1_CLIENT, "one"), (H1_SERVER, "two"), (ALL, "rest")];
    let pairs = [
        ((Version::H1, Version::H2), "one"),
        ((Version::H2, Version::H1), "two"),
        ((Version::H3, Version::H1), "two"),
        ((Version::H3, Version::H2), "rest"),
    ];
    for (pair, found) in pairs {
        assert_eq!(find(&table, pair), Some(found));
    }
}
