//! Tests of gRPC: the status in the log, checks by its health service, and clients of gRPC-Web at the edge.

use base::base64;
use testkit::{Peer, Service, text};

use crate::messages::*;
use crate::parts::{End, Part};
use crate::world::*;

const STATUS: &str = "log-format \"%ST %[grpc_status] %[grpc_message]\"";

/// A call as sent by an HTTP/2 client.
const CALL: &str = "POST /a.B/C HTTP/1.1\r\nHost: a\r\ncontent-type: application/grpc\r\nte: trailers\r\n\r\n";
const CALL_AT_SERVER: &str =
    "POST /a.B/C HTTP/1.1\r\nhost: a\r\ncontent-type: application/grpc\r\nte: trailers\r\n\r\n";

/// A message with its gRPC prefix.
fn message(payload: &[u8]) -> Vec<u8> {
    [&[0][..], &(payload.len() as u32).to_be_bytes(), payload].concat()
}

/// Expects this line in the log next.
async fn logs(world: &World, line: &str) {
    let lines = world.lines(1).await;
    assert!(lines.len() == 1 && lines[0].ends_with(&format!("]: {line}")), "{lines:?}");
}

#[test]
fn the_status_of_a_call_is_logged_wherever_it_stands() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/grpc\r\n\r\n";
    let alone =
        "HTTP/1.1 200 OK\r\ncontent-type: application/grpc\r\ngrpc-status: 12\r\ngrpc-message: no%20such\r\n\r\n";
    for sections in ["", "filter trace quiet random-forwarding\n "] {
        listen(&format!("{STATUS}\n {sections}server p1 10.0.1.1:80 proto h2"))
            .workers(&[1])
            .shuffled()
            .seeds(0..4)
            .run(move |world| async move {
                let mut p1 = Service::at(S1);
                let mut client = End::connect().await;
                client.post(1, CALL).await;
                client.upload(1, &message(b"q")).await;
                let mut origin = End::accept(&mut p1).await;
                let stream = origin.expect_request(CALL_AT_SERVER, &message(b"q")).await;
                origin.messages.clear();
                origin.send(Part::Head, stream, answer).await;
                origin.stream(stream, &message(b"reply")).await;
                origin.send(Part::HeadAlone, stream, "grpc-status: 5\r\ngrpc-message: lost\r\n").await;
                let answered = client.message(1).await;
                assert_eq!(answered.trailers, "grpc-status: 5\r\ngrpc-message: lost\r\n\r\n");
                assert_eq!(answered.payload, message(b"reply"));
                logs(&world, "200 5 lost").await;
                // A call that fails before its first message has only a head.
                client.post(3, CALL).await;
                client.upload(3, b"").await;
                let stream = origin.expect_request(CALL_AT_SERVER, b"").await;
                origin.messages.clear();
                origin.send(Part::HeadAlone, stream, alone).await;
                assert_eq!(client.message(3).await.head.matches("grpc-status: 12").count(), 1);
                logs(&world, "200 12 no%20such").await;
                // The next answer has no status, and nothing is left of the previous one.
                client.get(5, "/").await;
                let stream = origin.expect_request(&get_at_server("/"), b"").await;
                origin.messages.clear();
                origin.answer(stream, b"x").await;
                client.expect(5, "HTTP/1.1 200", "x").await;
                logs(&world, "200 - -").await;
            });
    }
}

/// Trailers of a chunked answer are evaluated as well, even if the client does not get them.
#[test]
fn trailers_of_chunks_tell_the_status() {
    for (option, passed) in [("", "grpc-status: 3\r\n"), ("option http-drop-response-trailers\n ", "")] {
        listen(&format!("{STATUS}\n {option}server s1 10.0.1.1:80")).run(move |world| async move {
            let (mut client, mut server, _s1) = asked().await;
            let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n";
            server.send(format!("{head}grpc-status: 3\r\n\r\n")).await;
            client.expect(format!("{head}{passed}\r\n")).await;
            logs(&world, "200 3 -").await;
        });
    }
}

const WEB: &str = "filter grpc-web\n server p1 10.0.1.1:80 proto h2";

fn web(kind: &str, accept: &str, length: usize) -> String {
    format!(
        "POST /a.B/C HTTP/1.1\r\nHost: a\r\nContent-Type: application/{kind}\r\n{accept}Content-Length: {length}\r\n\r\n"
    )
}

fn at_server(kind: &str, accept: &str, rest: &str) -> String {
    format!("POST /a.B/C HTTP/1.1\r\nhost: a\r\ncontent-type: {kind}\r\n{accept}te: trailers\r\n{rest}\r\n")
}

/// Decodes the frames of an answer that was received as Base64 in pieces, each with its padding.
fn decoded(text: &[u8]) -> Vec<u8> {
    text.chunks(4).flat_map(|group| base64::decoded_strictly(group).unwrap()).collect()
}

#[test]
fn clients_of_grpc_web_reach_servers_of_grpc() {
    let accept = "accept: application/grpc-web-text+proto\r\n";
    // The client's request, the server's view of it, the client's answer.
    let rows = [
        ("grpc-web", "", false, "application/grpc", "content-type: application/grpc-web\r\n", false),
        ("grpc-web+proto", "", false, "application/grpc+proto", "content-type: application/grpc-web\r\n", false),
        ("grpc-web-text", "", true, "application/grpc", "content-type: application/grpc-web-text\r\n", true),
        ("grpc-web", accept, false, "application/grpc", "content-type: application/grpc-web-text\r\n", true),
    ];
    for (kind, accept, is_text, seen, got, gets_text) in rows {
        for large in [false, true] {
            listen(WEB).shuffled().seeds(0..4).run(move |_| async move {
                let mut p1 = Service::at(S1);
                let question = message(&if large { text(40_000, 1) } else { b"q".to_vec() });
                let reply = message(&if large { text(70_000, 2) } else { b"reply".to_vec() });
                let body = if is_text { base64::encoded(&question).into_bytes() } else { question.clone() };
                let mut client = Peer::connect(WEIR).await;
                let mut origin = None;
                let (answered, ()) = testkit::both(
                    async {
                        client.send(web(kind, accept, body.len())).await;
                        client.send(&body).await;
                        let head = client.receive_head().await.unwrap();
                        (head, client.receive_chunked(100_000, 0).await)
                    },
                    async {
                        let origin = origin.insert(End::accept(&mut p1).await);
                        let rest =
                            if is_text { String::new() } else { format!("content-length: {}\r\n", question.len()) };
                        let stream = origin.expect_request(&at_server(seen, accept, &rest), &question).await;
                        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/grpc\r\ntrailer: x\r\n\r\n";
                        origin.send(Part::Head, stream, head).await;
                        origin.stream(stream, &reply).await;
                        origin.send(Part::HeadAlone, stream, "grpc-status: 0\r\nx: y\r\n").await;
                    },
                )
                .await;
                let (head, chunked) = answered;
                assert!(head.contains(got) && !head.contains("trailer: "), "{head}");
                let payload = if gets_text { decoded(&chunked.body) } else { chunked.body };
                let frame = b"\x80\0\0\0\x16grpc-status: 0\r\nx: y\r\n";
                assert!(payload == [&reply[..], frame].concat(), "{kind}: {} bytes", payload.len());
                drop(origin);
            });
        }
    }
}

/// Also on a stream, and with a length set by the server; an answer without messages has the status in its head.
#[test]
fn answers_of_every_framing_are_translated() {
    let kind = "content-type: application/grpc\r\n";
    let rows = [
        (
            format!("HTTP/1.1 200 OK\r\n{kind}content-length: 6\r\n\r\n"),
            Some("grpc-status: 0\r\n"),
            "application/grpc-web",
        ),
        (format!("HTTP/1.1 200 OK\r\n{kind}\r\n"), Some("grpc-status: 0\r\n"), "application/grpc-web"),
        (format!("HTTP/1.1 200 OK\r\n{kind}grpc-status: 12\r\n\r\n"), None, "application/grpc-web"),
        ("HTTP/1.1 503 Busy\r\ncontent-type: text/html\r\n\r\n".to_owned(), Some("a: b\r\n"), "text/html"),
    ];
    for (head, trailers, got) in rows {
        listen(WEB).workers(&[1]).shuffled().seeds(0..4).run(move |_| {
            let head = head.clone();
            async move {
                let mut p1 = Service::at(S1);
                let mut client = End::connect().await;
                client.post(1, web("grpc-web", "", 6)).await;
                client.upload(1, &message(b"q")).await;
                let mut origin = End::accept(&mut p1).await;
                let asked = at_server("application/grpc", "", "content-length: 6\r\n");
                let stream = origin.expect_request(&asked, &message(b"q")).await;
                origin.messages.clear();
                match trailers {
                    None => origin.send(Part::HeadAlone, stream, &head).await,
                    Some(trailers) => {
                        origin.send(Part::Head, stream, &head).await;
                        origin.stream(stream, &message(b"r")).await;
                        origin.send(Part::HeadAlone, stream, trailers).await;
                    }
                }
                let answered = client.message(1).await;
                assert!(answered.head.contains(&format!("content-type: {got}\r\n")), "{}", answered.head);
                let translated = got.ends_with("web") && trailers.is_some();
                let frame: &[u8] = if translated { b"\x80\0\0\0\x10grpc-status: 0\r\n" } else { b"" };
                let body = if trailers.is_some() { message(b"r") } else { Vec::new() };
                assert_eq!(answered.payload, [&body[..], frame].concat(), "{head}");
                assert_eq!(answered.trailers.is_empty(), translated || trailers.is_none(), "{}", answered.trailers);
            }
        });
    }
}

/// Invalid or incomplete Base64 is refused.
#[test]
fn a_broken_text_is_refused() {
    for body in ["AAAA!AAA", "AAAAA", "A=AA"] {
        listen(WEB).workers(&[1]).run(move |world| async move {
            let mut p1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(web("grpc-web-text", "", body.len()) + body).await;
            let mut origin = End::accept(&mut p1).await;
            let answer = client.receive_rest().await;
            assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"), "{}", String::from_utf8_lossy(&answer));
            // The server does not see the end of the message: a reset, or the end of the connection.
            while origin.step().await {}
            assert_ne!(origin.messages.get(&1).and_then(|message| message.end), Some(Part::End));
            world.forget_log();
        });
    }
}

/// gRPC calls and other requests pass a gRPC-Web filter unchanged, to either kind of server.
#[test]
fn others_pass_unchanged() {
    listen("filter grpc-web\n filter grpc-web\n server s1 10.0.1.1:80").shuffled().seeds(0..4).run(|_| async move {
        let (mut client, mut server, _s1) = asked().await;
        let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/grpc\r\ncontent-length: 2\r\n\r\nok";
        server.send(answer).await;
        client.expect(answer).await;
    });
}

/// Answers the next check.
async fn check(servers: &mut Service, status: u8, trailers: &str) {
    let mut origin = End::accept(servers).await;
    let head = "POST /grpc.health.v1.Health/Check HTTP/1.1\r\nhost: l\r\ncontent-type: application/grpc\r\nte: trailers\r\n\
                user-agent: grpc-weir\r\ncontent-length: 10\r\n\r\n";
    let stream = origin.expect_request(head, b"\0\0\0\0\x05\x0a\x03a.B").await;
    match status {
        // The service is unknown: only a head.
        0 => {
            origin
                .send(
                    Part::HeadAlone,
                    stream,
                    format!("HTTP/1.1 200 OK\r\ncontent-type: application/grpc\r\n{trailers}\r\n"),
                )
                .await
        }
        _ => {
            origin.send(Part::Head, stream, "HTTP/1.1 200 OK\r\ncontent-type: application/grpc\r\n\r\n").await;
            origin.stream(stream, &message(&[8, status])).await;
            origin.send(Part::HeadAlone, stream, trailers).await;
        }
    }
    origin.expect_end().await;
}

#[test]
fn servers_are_checked_by_their_health_service() {
    let rows = [
        (1, "grpc-status: 0\r\n", "succeeded, reason: Layer7 check passed, code: 0, info: \"SERVING\""),
        (2, "grpc-status: 0\r\n", "failed, reason: Layer7 wrong status, code: 0, info: \"NOT_SERVING\""),
        (
            0,
            "grpc-status: 5\r\ngrpc-message: unknown service\r\n",
            "failed, reason: Layer7 wrong status, code: 5, info: \"gRPC status NOT_FOUND: unknown service\"",
        ),
        (1, "x: y\r\n", "failed, reason: Layer7 invalid response, info: \"no gRPC status\""),
    ];
    for (status, trailers, said) in rows {
        // A server whose check fails has passed before, and one whose check passes has failed before.
        let (first, later) = if said.starts_with('f') {
            ((1, "grpc-status: 0\r\n"), (status, trailers))
        } else {
            ((2, "grpc-status: 0\r\n"), (status, trailers))
        };
        let sections = "option log-health-checks\n option grpc-check service a.B\n \
                        server s1 10.0.1.1:80 check inter 1s fall 1 rise 1 init-state fully-up";
        listen(sections).workers(&[1]).shuffled().seeds(0..3).run(move |world| async move {
            let mut s1 = Service::at(S1);
            check(&mut s1, first.0, first.1).await;
            check(&mut s1, later.0, later.1).await;
            let wanted = format!("Health check for server l/s1 {said}");
            let mut lines = Vec::new();
            while !lines.iter().any(|line: &String| line.contains(&wanted)) {
                let more = world.lines(1).await;
                assert!(!more.is_empty(), "{wanted}: {lines:#?}");
                lines.extend(more);
            }
            world.forget_log();
        });
    }
}
