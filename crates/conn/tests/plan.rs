//! The plan of an answer by its head, as tables after RFC 9112, sections 6 and 9.3: whether each connection is kept,
//! whether the client gets a body, and how its end is delimited. Must never open a connection.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use weir_conn::downstream::HeadFormat;

use weir_conn::exchange::{Answer, ForwardTerms, Heads};
use wire::h1::{HeadLimits, Parse, RequestContext, Scan, parse_request, parse_response};
use wire::http::{Framing, Head, Method};

/// A condition of a row in addition to the request and the answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Beside {
    Nothing,
    /// The answer opens a tunnel.
    Tunnel,
    /// The client has sent HEAD, which a rule changed to the row's request.
    ClientSentHead,
    /// The client has sent GET, which a rule changed to the row's request.
    ClientSentGet,
    /// The client's connection is closed in any case.
    ClosesClient,
    /// A rule has set this status.
    Status(u16),
    /// A rule has added `connection: close` to the answer.
    AddedClose,
}
use Beside::*;

/// The outcome of a row.
#[derive(PartialEq, Eq, Debug)]
struct Outcome {
    keep_client: bool,
    keep_server: bool,
    has_body: bool,
    /// The header lines that delimit a message or end a connection, in order, separated by commas.
    lines: String,
}

const KEPT: bool = true;
const CLOSED: bool = false;
const BODY: bool = true;
const BARE: bool = false;

fn request_head(start: &str) -> Head {
    let mut head = Head::new();
    let text = format!("{start}\r\nhost: a\r\n\r\n");
    let parsed = parse_request(text.as_bytes(), &HeadLimits::default(), &mut Scan::default(), &mut head);
    assert!(matches!(parsed, Ok(Parse::Complete { .. })), "{start}: {parsed:?}");
    head
}

fn response_head(lines: &str, request: &Head) -> Head {
    let mut head = Head::new();
    let text = format!("{}\r\n\r\n", lines.replace(", ", "\r\n"));
    let context = context(request.known_method());
    let parsed = parse_response(text.as_bytes(), &HeadLimits::default(), &context, &mut Scan::default(), &mut head);
    assert!(matches!(parsed, Ok(Parse::Complete { .. })), "{lines}: {parsed:?}");
    head
}

fn context(method: Method) -> RequestContext {
    RequestContext { head: method == Method::Head, connect: method == Method::Connect }
}

/// The outcome of a row, and the head sent to the client.
fn plan(start: &str, lines: &str, beside: Beside) -> (Outcome, Vec<u8>) {
    let request = request_head(start);
    let mut response = response_head(lines, &request);
    match beside {
        Status(status) => response.set_status(status, b"X"),
        AddedClose => response.append(b"connection", b"close"),
        _ => {}
    }
    let onward = ForwardTerms {
        for_head_alone: is_for_head(start, beside),
        tunnel: beside == Tunnel,
        keep_client: beside != ClosesClient,
        uncoded: false,
        served_here: false,
        ends_apart: false,
        spelling: None,
    };
    let plan = Answer::plan(HeadFormat::H1, &request, &response, &onward);
    let mut answer = Answer::default();
    let heads = Heads { request: &request, response: &response };
    answer.queue_head(HeadFormat::H1, heads, &plan, &onward).unwrap();
    let (head, _) = answer.into_tunnel();
    let text = String::from_utf8(head.data().to_vec()).unwrap();
    let ends =
        |line: &&str| ["content-length:", "transfer-encoding:", "connection:"].iter().any(|n| line.starts_with(n));
    let lines: Vec<_> = text.split("\r\n").filter(ends).collect();
    let (keep_client, keep_server) = (plan.keep_client, plan.keep_server);
    let outcome = Outcome { keep_client, keep_server, has_body: plan.has_body(), lines: lines.join(", ") };
    (outcome, text.into_bytes())
}

type Row = (&'static str, &'static str, Beside, (bool, bool, bool, &'static str));

/// Runs a test where buffers are available.
fn on_a_worker(test: impl FnOnce() + 'static) {
    rt::sim::run(1, 1, Arc::new(|_| Box::pin(async {})), async { test() });
}

fn check(rows: &'static [Row]) {
    on_a_worker(|| check_all(rows));
}

fn check_all(rows: &[Row]) {
    for (start, response, beside, (keep_client, keep_server, has_body, lines)) in rows {
        let expected = Outcome {
            keep_client: *keep_client,
            keep_server: *keep_server,
            has_body: *has_body,
            lines: (*lines).to_owned(),
        };
        assert_eq!(plan(start, response, *beside).0, expected, "{start} | {response} | {beside:?}");
    }
}

/// RFC 9112, section 6.3: the end of a body, by its framing and both versions.
#[test]
fn each_framing_reaches_each_version() {
    check(&[
        ("GET / HTTP/1.1", "HTTP/1.1 200 OK, content-length: 3", Nothing, (KEPT, KEPT, BODY, "content-length: 3")),
        ("GET / HTTP/1.1", "HTTP/1.1 200 OK, content-length: 0", Nothing, (KEPT, KEPT, BARE, "content-length: 0")),
        (
            "GET / HTTP/1.1",
            "HTTP/1.1 200 OK, transfer-encoding: chunked",
            Nothing,
            (KEPT, KEPT, BODY, "transfer-encoding: chunked"),
        ),
        // The length is ignored (section 6.3, item 3), and such an answer is the last one of its connection.
        (
            "GET / HTTP/1.1",
            "HTTP/1.1 200 OK, transfer-encoding: chunked, content-length: 3",
            Nothing,
            (KEPT, CLOSED, BODY, "transfer-encoding: chunked"),
        ),
        ("GET / HTTP/1.1", "HTTP/1.1 200 OK", Nothing, (CLOSED, CLOSED, BODY, "connection: close")),
        // An HTTP/1.0 client gets no chunks (section 6.1): the body ends with the connection.
        (
            "GET / HTTP/1.0",
            "HTTP/1.1 200 OK, transfer-encoding: chunked",
            Nothing,
            (CLOSED, KEPT, BODY, "connection: close"),
        ),
        (
            "GET / HTTP/1.0",
            "HTTP/1.1 200 OK, content-length: 3",
            Nothing,
            (KEPT, KEPT, BODY, "content-length: 3, connection: keep-alive"),
        ),
        ("GET / HTTP/1.0", "HTTP/1.1 200 OK", Nothing, (CLOSED, CLOSED, BODY, "connection: close")),
        // After chunks from an HTTP/1.0 server its next answer may not be found (section 6.1).
        (
            "GET / HTTP/1.1",
            "HTTP/1.0 200 OK, transfer-encoding: chunked",
            Nothing,
            (CLOSED, CLOSED, BODY, "transfer-encoding: chunked"),
        ),
        (
            "GET / HTTP/1.1",
            "HTTP/1.0 200 OK, content-length: 3",
            Nothing,
            (KEPT, CLOSED, BODY, "content-length: 3, connection: keep-alive"),
        ),
        ("GET / HTTP/1.1", "HTTP/1.0 200 OK", Nothing, (CLOSED, CLOSED, BODY, "")),
    ]);
}

/// RFC 9112, section 9.3: which connections are kept, by the fields of the answer.
#[test]
fn connection_fields_decide_for_their_connection_alone() {
    check(&[
        (
            "GET / HTTP/1.1",
            "HTTP/1.1 200 OK, content-length: 3, connection: close",
            Nothing,
            (KEPT, CLOSED, BODY, "content-length: 3"),
        ),
        (
            "GET / HTTP/1.1",
            "HTTP/1.1 200 OK, content-length: 3, connection: x, connection: Keep-Alive, connection: ClOsE",
            Nothing,
            (KEPT, CLOSED, BODY, "content-length: 3"),
        ),
        (
            "GET / HTTP/1.1",
            "HTTP/1.0 200 OK, content-length: 3, connection: keep-alive",
            Nothing,
            (KEPT, KEPT, BODY, "content-length: 3, connection: keep-alive"),
        ),
        (
            "GET / HTTP/1.1",
            "HTTP/1.0 200 OK, content-length: 3, connection: keep-alive, connection: close",
            Nothing,
            (KEPT, CLOSED, BODY, "content-length: 3, connection: keep-alive"),
        ),
        // A body delimited by the close of the connection leaves no connection to keep, whatever its fields.
        ("GET / HTTP/1.1", "HTTP/1.0 200 OK, connection: keep-alive", Nothing, (CLOSED, CLOSED, BODY, "")),
        (
            "GET / HTTP/1.1",
            "HTTP/1.1 200 OK, content-length: 3",
            ClosesClient,
            (CLOSED, KEPT, BODY, "content-length: 3, connection: close"),
        ),
        (
            "GET / HTTP/1.1",
            "HTTP/1.1 200 OK, content-length: 3",
            AddedClose,
            (CLOSED, KEPT, BODY, "content-length: 3, connection: close"),
        ),
    ]);
}

/// RFC 9112, section 6.3, items 1 and 2; RFC 9110, section 8.6: answers without a body.
#[test]
fn answers_without_a_body_keep_what_describes_it() {
    check(&[
        ("HEAD / HTTP/1.1", "HTTP/1.1 200 OK, content-length: 3", Nothing, (KEPT, KEPT, BARE, "content-length: 3")),
        (
            "HEAD / HTTP/1.1",
            "HTTP/1.1 200 OK, transfer-encoding: chunked",
            Nothing,
            (KEPT, KEPT, BARE, "transfer-encoding: chunked"),
        ),
        ("HEAD / HTTP/1.1", "HTTP/1.1 200 OK", Nothing, (KEPT, KEPT, BARE, "")),
        ("HEAD / HTTP/1.0", "HTTP/1.1 200 OK", Nothing, (KEPT, KEPT, BARE, "connection: keep-alive")),
        ("GET / HTTP/1.1", "HTTP/1.1 304 X, content-length: 3", Nothing, (KEPT, KEPT, BARE, "content-length: 3")),
        ("GET / HTTP/1.1", "HTTP/1.1 304 X", Nothing, (KEPT, KEPT, BARE, "")),
        ("GET / HTTP/1.1", "HTTP/1.1 204 X, content-length: 3", Nothing, (KEPT, KEPT, BARE, "")),
        ("GET / HTTP/1.1", "HTTP/1.0 204 X", Nothing, (KEPT, CLOSED, BARE, "connection: keep-alive")),
    ]);
}

/// A rule's changes determine what the client gets; the body from the server still ends by its own framing.
#[test]
fn a_body_that_a_rule_took_from_the_client_still_ends_for_the_server() {
    check(&[
        (
            "GET / HTTP/1.1",
            "HTTP/1.1 200 OK, content-length: 3",
            ClientSentHead,
            (KEPT, KEPT, BARE, "content-length: 3"),
        ),
        (
            "GET / HTTP/1.1",
            "HTTP/1.1 200 OK, transfer-encoding: chunked",
            ClientSentHead,
            (KEPT, KEPT, BARE, "transfer-encoding: chunked"),
        ),
        ("GET / HTTP/1.1", "HTTP/1.1 200 OK", ClientSentHead, (KEPT, CLOSED, BARE, "")),
        ("GET / HTTP/1.1", "HTTP/1.1 200 OK, content-length: 3", Status(204), (KEPT, KEPT, BARE, "")),
        ("GET / HTTP/1.1", "HTTP/1.1 200 OK, transfer-encoding: chunked", Status(204), (KEPT, KEPT, BARE, "")),
        ("GET / HTTP/1.1", "HTTP/1.1 200 OK, content-length: 3", Status(304), (KEPT, KEPT, BARE, "content-length: 3")),
        ("GET / HTTP/1.1", "HTTP/1.1 200 OK", Status(304), (KEPT, CLOSED, BARE, "")),
    ]);
}

/// A rule has turned an answer without a body into one with a body: its body is empty.
#[test]
fn a_client_waits_for_no_body_that_never_comes() {
    check(&[
        ("GET / HTTP/1.1", "HTTP/1.1 204 X", Status(200), (KEPT, KEPT, BARE, "content-length: 0")),
        (
            "GET / HTTP/1.0",
            "HTTP/1.1 204 X",
            Status(200),
            (KEPT, KEPT, BARE, "content-length: 0, connection: keep-alive"),
        ),
        ("GET / HTTP/1.1", "HTTP/1.1 304 X, content-length: 3", Status(200), (KEPT, KEPT, BARE, "content-length: 0")),
        ("GET / HTTP/1.1", "HTTP/1.1 204 X", Status(304), (KEPT, KEPT, BARE, "")),
        (
            "HEAD / HTTP/1.1",
            "HTTP/1.1 200 X, content-length: 3",
            ClientSentGet,
            (KEPT, KEPT, BARE, "content-length: 0"),
        ),
        (
            "HEAD / HTTP/1.1",
            "HTTP/1.1 200 X, transfer-encoding: chunked",
            ClientSentGet,
            (KEPT, KEPT, BARE, "content-length: 0"),
        ),
        ("HEAD / HTTP/1.1", "HTTP/1.1 200 X", ClientSentGet, (KEPT, KEPT, BARE, "content-length: 0")),
        // From now on the server uses its connection as a tunnel.
        ("CONNECT a:80 HTTP/1.1", "HTTP/1.1 200 X", ClientSentGet, (KEPT, CLOSED, BARE, "content-length: 0")),
    ]);
}

/// RFC 9110, sections 7.8 and 9.3.6: the bytes that follow are no message, on either connection.
#[test]
fn a_tunnel_ends_both_connections() {
    check(&[
        (
            "GET / HTTP/1.1",
            "HTTP/1.1 101 X, connection: upgrade, upgrade: a",
            Tunnel,
            (CLOSED, CLOSED, BARE, "connection: upgrade"),
        ),
        ("CONNECT a:80 HTTP/1.1", "HTTP/1.1 200 X", Tunnel, (CLOSED, CLOSED, BARE, "")),
        ("CONNECT a:80 HTTP/1.1", "HTTP/1.1 200 X, content-length: 3", Tunnel, (CLOSED, CLOSED, BARE, "")),
        (
            "CONNECT a:80 HTTP/1.1",
            "HTTP/1.1 407 X, content-length: 3",
            Nothing,
            (KEPT, KEPT, BODY, "content-length: 3"),
        ),
    ]);
}

/// For every combination: a client that reads the head according to RFC 9112 finds the end of the answer.
#[test]
fn a_client_finds_the_end_of_every_answer() {
    on_a_worker(judge_all);
}

fn judge_all() {
    let starts = ["GET / HTTP/1.1", "GET / HTTP/1.0", "HEAD / HTTP/1.1", "HEAD / HTTP/1.0"];
    let framings = ["", ", content-length: 0", ", content-length: 3", ", transfer-encoding: chunked"];
    let framings = framings
        .into_iter()
        .chain([", transfer-encoding: gzip", ", transfer-encoding: gzip, transfer-encoding: chunked"]);
    let rows = starts.into_iter().flat_map(|start| framings.clone().map(move |framing| (start, framing)));
    let versions = ["HTTP/1.0", "HTTP/1.1"];
    let connections =
        ["", ", connection: close", ", connection: keep-alive", ", connection: keep-alive, connection: close"];
    for (start, framing) in rows {
        for (version, connection) in versions.into_iter().flat_map(|v| connections.into_iter().map(move |c| (v, c))) {
            for status in [200, 204, 304, 500] {
                for beside in [
                    Nothing,
                    ClientSentHead,
                    ClientSentGet,
                    ClosesClient,
                    AddedClose,
                    Status(204),
                    Status(304),
                    Status(200),
                ] {
                    let lines = format!("{version} {status} X{framing}{connection}");
                    if !wire_takes(start, &lines) {
                        continue;
                    }
                    let (outcome, head) = plan(start, &lines, beside);
                    judge(start, beside, &outcome, &head, &lines);
                }
            }
        }
    }
}

/// Whether the client's method was HEAD.
fn is_for_head(start: &str, beside: Beside) -> bool {
    beside == ClientSentHead || start.starts_with("HEAD") && beside != ClientSentGet
}

fn wire_takes(start: &str, lines: &str) -> bool {
    let (mut head, text) = (Head::new(), format!("{}\r\n\r\n", lines.replace(", ", "\r\n")));
    let context = context(request_head(start).known_method());
    parse_response(text.as_bytes(), &HeadLimits::default(), &context, &mut Scan::default(), &mut head).is_ok()
}

fn judge(start: &str, beside: Beside, outcome: &Outcome, head: &[u8], lines: &str) {
    let about = format!("{start} | {lines} | {beside:?} | {outcome:?}");
    let context = RequestContext { head: is_for_head(start, beside), connect: false };
    let mut read = Head::new();
    let parsed = parse_response(head, &HeadLimits::default(), &context, &mut Scan::default(), &mut read);
    assert_eq!(parsed, Ok(Parse::Complete { consumed: head.len() }), "{about}");
    // Sections 6.1 and 6.3: no chunks to HTTP/1.0.
    if start.ends_with("HTTP/1.0") {
        assert_ne!(read.framing, Framing::Chunked, "{about}");
    }
    // The body ends where the client finds its end; a body that ends with the connection is the last one.
    assert_eq!(read.framing.has_body(), outcome.has_body, "{about}");
    if read.framing == Framing::UntilClose {
        assert!(!outcome.keep_client, "{about}");
    }
    // Section 9.3: a connection that is kept is not announced as closed, and vice versa.
    let (closes, keeps) = (outcome.lines.contains("n: close"), outcome.lines.contains("n: keep-alive"));
    let by_default = read.version_text() == b"HTTP/1.1";
    let announced = if by_default { !closes } else { keeps };
    assert!(announced == outcome.keep_client && !(keeps && closes), "{about}");
    if matches!(beside, ClosesClient | AddedClose) {
        assert!(!outcome.keep_client, "{about}");
    }
    // The server's connection depends only on what the server has sent.
    if lines.contains("close") || lines.starts_with("HTTP/1.0") && !lines.contains("keep-alive") {
        assert!(!outcome.keep_server, "{about}");
    }
}
