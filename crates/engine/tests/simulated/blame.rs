//! Tests of attribution of errors to the client, its server or a rule. Stick tables count by it, and observed servers
//! are marked down (configuration manual, sections 5.2, "observe", and 11.1, `http_err_cnt` and `http_fail_cnt`).

use testkit::{Peer, Service, sleep};
use wire::h2::{ErrorCode, Kind, flag};

use crate::api::*;
use crate::h2::{Client, block, literal};
use crate::messages::*;
use crate::parts::End;
use crate::world::*;

/// Tracks every connection, and has the only server marked down at the first error.
const WATCHED: &str = "stick-table type ip size 10 store http_req_cnt,http_err_cnt,http_fail_cnt
    tcp-request connection track-sc0 src";
const OBSERVED: &str =
    "check addr 10.0.1.9 inter 60s init-state fully-up observe layer7 error-limit 1 on-error mark-down";

fn watched(lines: &str, server: &str) -> Worlds {
    listen(&format!("{WATCHED}\n {lines}\n server s1 10.0.1.1:80 {server} {OBSERVED}")).global(SOCKET).workers(&[1])
}

/// Requests, errors and failures of the client, and whether its server is up.
async fn blame() -> (String, bool) {
    let table = ask("show table l").await;
    let counts: Vec<&str> = ["http_req_cnt=", "http_err_cnt=", "http_fail_cnt="]
        .iter()
        .map(|name| table.split(name).nth(1).unwrap().split_whitespace().next().unwrap())
        .collect();
    let state = ask("show servers state l").await;
    let up = state.lines().find(|line| line.contains(" s1 ")).unwrap().split(' ').nth(5) == Some("2");
    (counts.join(" "), up)
}

async fn blames(counts: &str, up: bool, what: &str) {
    assert_eq!(blame().await, (counts.to_owned(), up), "{what}");
}

async fn logged(world: &World, status: &str, state: &str) {
    let line = world.lines(1).await.concat();
    assert!(line.contains(&format!(" {status} ")) && line.contains(&format!(" {state} ")), "{status} {state}: {line}");
}

/// A truncated or invalid answer is one failure, whatever its status; an invalid one also marks its server down.
#[test]
fn an_answer_that_does_not_come_to_its_end_is_a_failure_of_its_server() {
    let rows = [
        ("200 OK\r\nContent-Length: 5", "hello", "----", "1 0 0", true),
        ("200 OK\r\nContent-Length: 50", "hello", "SD--", "1 0 1", true),
        ("404 Away\r\nContent-Length: 50", "hello", "SD--", "1 1 1", true),
        ("500 Ill\r\nContent-Length: 50", "hello", "SD--", "1 0 1", false),
        ("200 OK\r\nTransfer-Encoding: chunked", "5\r\nhello\r\n", "SD--", "1 0 1", true),
        ("200 OK\r\nTransfer-Encoding: chunked", "5\r\nhello\r\nzz\r\n", "PD--", "1 0 1", false),
    ];
    for (head, body, state, counts, up) in rows {
        watched("", "").seeds(0..2).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            let mut server = s1.accept().await;
            server.expect(GET_AT_SERVER).await;
            server.send(format!("HTTP/1.1 {head}\r\n\r\n")).await;
            client.receive_head().await.unwrap();
            server.send(body).await;
            if state == "----" {
                client.receive(5).await;
                client.half_close();
            }
            server.close();
            client.receive_rest().await;
            logged(&world, &head[..3], state).await;
            blames(counts, up, head).await;
            world.forget_log();
        });
    }
}

/// An HTTP/2 server that violates the announced length, or sends frames after the payload.
#[test]
fn a_malformed_answer_of_http_2_is_a_failure_of_its_server() {
    for what in ["long", "longer", "short", "trailers"] {
        watched("", "proto h2").seeds(0..4).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            let mut end = End::accept(&mut s1).await;
            let stream = end.expect_request(GET_AT_SERVER, b"").await;
            let mut head = Vec::new();
            literal(&mut head, ":status", "200");
            if what != "trailers" {
                literal(&mut head, "content-length", "5");
            }
            end.frame(Kind::Headers, flag::END_HEADERS, stream, &head).await;
            client.receive_head().await.unwrap();
            match what {
                "long" => end.frame(Kind::Data, flag::END_STREAM, stream, b"hello!").await,
                "longer" => {
                    end.frame(Kind::Data, 0, stream, b"hel").await;
                    end.frame(Kind::Data, flag::END_STREAM, stream, b"lo!").await;
                }
                "short" => end.frame(Kind::Data, flag::END_STREAM, stream, b"hell").await,
                _ => {
                    end.frame(Kind::Data, 0, stream, b"hello").await;
                    let mut trailers = Vec::new();
                    literal(&mut trailers, "Upper", "x");
                    end.frame(Kind::Headers, flag::END_HEADERS | flag::END_STREAM, stream, &trailers).await;
                }
            }
            let rest = String::from_utf8(client.receive_rest().await).unwrap();
            // Nothing that would complete the body.
            assert!(!rest.ends_with("0\r\n\r\n") && (what == "trailers" || rest.len() < 5), "{what} {rest:?}");
            logged(&world, "200", "PD--").await;
            blames("1 0 1", false, what).await;
            world.forget_log();
        });
    }
}

/// The same if the whole answer was received before its head is taken: it is rejected.
#[test]
fn an_answer_of_http_2_that_is_too_long_or_short_at_once_is_none() {
    for (body, status) in [(&b"hello!"[..], 502), (b"hell", 502), (b"hello", 200)] {
        watched("", "proto h2").seeds(0..4).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            let mut end = End::accept(&mut s1).await;
            let stream = end.expect_request(GET_AT_SERVER, b"").await;
            let (mut head, mut frames) = (Vec::new(), Vec::new());
            literal(&mut head, ":status", "200");
            literal(&mut head, "content-length", "5");
            wire::h2::push_frame(&mut frames, Kind::Headers, flag::END_HEADERS, stream, &head);
            wire::h2::push_frame(&mut frames, Kind::Data, flag::END_STREAM, stream, body);
            end.peer.send(frames).await;
            let head = client.receive_head().await.unwrap();
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{body:?} {head}");
            client.half_close();
            client.receive_rest().await;
            blames(if status == 200 { "1 0 0" } else { "1 0 1" }, status == 200, "at once").await;
            world.forget_log();
        });
    }
}

/// A client that waits for an answer before it has sent its whole request is late itself. Once the server has the whole
/// request, the server is late.
#[test]
fn a_client_that_keeps_its_server_waiting_is_late_itself() {
    for (length, state, counts) in [(9, "cD--", "1 0 0"), (4, "sD--", "1 0 1")] {
        watched("timeout client 300ms\n timeout server 100ms", "").seeds(0..4).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\nhalf")).await;
            let mut server = s1.accept().await;
            server.receive_until("half").await;
            server.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").await;
            client.receive_rest().await;
            logged(&world, "200", state).await;
            blames(counts, true, state).await;
            world.forget_log();
        });
    }
}

/// The time of a rule is shorter than the server's timeout.
#[test]
fn a_rule_that_waits_for_a_body_does_not_mark_its_server_down() {
    watched("http-response wait-for-body time 50ms", "").seeds(0..4).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut server = s1.accept().await;
        server.expect(GET_AT_SERVER).await;
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").await;
        client.expect(page(504)).await;
        client.half_close();
        client.receive_rest().await;
        blames("1 0 1", true, "wait-for-body").await;
        world.forget_log();
    });
}

/// Bodies that break their coding, with their head, after it, and while a rule waits for them.
#[test]
fn an_invalid_body_is_an_error_of_its_client() {
    const HEAD: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (lines, first) in [("", "zz\r\n"), ("", "3\r\nabc\r\n"), ("option http-buffer-request", "3\r\nabc\r\n")] {
        watched(lines, "").seeds(0..2).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(format!("{HEAD}{first}")).await;
            let server = if lines.is_empty() && !first.starts_with('z') {
                let mut server = s1.accept().await;
                server.receive_until("abc\r\n").await;
                Some(server)
            } else {
                None
            };
            sleep(5).await;
            client.try_send("zz\r\n").await;
            client.receive_rest().await;
            drop(server);
            blames("1 1 0", true, lines).await;
            world.forget_log();
        });
    }
}

/// HTTP/2 payload that contradicts its announced length never becomes a complete request, with or without complete
/// frames.
#[test]
fn a_malformed_request_of_http_2_is_an_error_of_its_client() {
    for what in ["long", "short", "trailers"] {
        watched("", "").seeds(0..4).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Client::connect().await;
            let fields: &[(&str, &str)] = if what == "trailers" { &[] } else { &[("content-length", "5")] };
            client.request(1, false, &block("POST", "/", fields)).await;
            client.frame(Kind::Data, 0, 1, b"abc").await;
            let mut server = s1.accept().await;
            server.receive_until("abc").await;
            match what {
                "long" => client.frame(Kind::Data, flag::END_STREAM, 1, b"def").await,
                "short" => client.frame(Kind::Data, flag::END_STREAM, 1, b"d").await,
                _ => {
                    let mut trailers = Vec::new();
                    literal(&mut trailers, "Upper", "x");
                    client.request(1, true, &trailers).await;
                }
            }
            client.expect_reset(1, ErrorCode::ProtocolError).await;
            let rest = server.receive_rest().await;
            assert!(!rest.windows(2).any(|two| two == b"de") && !rest.ends_with(b"0\r\n\r\n"), "{what} {rest:?}");
            logged(&world, "400", "PH--").await;
            blames("1 1 0", true, what).await;
            world.forget_log();
        });
    }
}

#[test]
fn heads_of_http_2_that_are_no_requests_count_as_such() {
    watched("", "").seeds(0..4).run(|world| async move {
        let mut client = Client::connect().await;
        for stream in [1, 3] {
            client.request(stream, true, &block("GET", "hello", &[])).await;
            client.expect_reset(stream, ErrorCode::ProtocolError).await;
        }
        blames("2 2 0", true, "malformed").await;
        client.request(5, true, &[0xff; 3]).await;
        client.expect_gone(ErrorCode::CompressionError).await;
        blames("2 3 0", true, "fatal").await;
        world.forget_log();
    });
}

/// A late client has made no error: browsers open connections that they do not use.
#[test]
fn a_client_that_sends_no_request_in_time_has_made_no_error() {
    for first in ["", "GET / HTTP/1.1\r\n"] {
        watched("timeout http-request 50ms", "").seeds(0..2).run(move |world| async move {
            let mut client = Peer::connect(WEIR).await;
            client.send(first).await;
            assert!(client.receive_head().await.unwrap().starts_with("HTTP/1.1 408 "));
            blames("1 0 0", true, first).await;
            world.forget_log();
        });
    }
}
