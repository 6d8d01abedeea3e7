//! Tests of servers over HTTP/3: requests and answers over simulated QUIC, with faults of the network, ends and errors of the
//! server.

use std::rc::Rc;
use std::time::Duration;

use quic::Closed;
use rt::sim::DatagramPath;
use testkit::{Peer, Scope, Service, sleep, text};
use wire::h3::{self, ErrorCode};

use crate::http3_client::{Client, push_data};
use crate::http3_origin::{Origin, encoded};
use crate::messages::*;
use crate::multiplexed_client::echo;
use crate::world::*;

const ORIGIN: &str = "10.0.1.1:443";

/// A `listen` section whose server is at a QUIC address.
fn towards(body: &str) -> Worlds {
    listen(&format!("{body}\n    server q quic4@{ORIGIN} ssl verify none"))
        .global("    expose-experimental-directives\n")
}

/// A second section, at a QUIC address, is the server of the first one.
fn chained() -> Worlds {
    let second = "listen b\n    bind quic4@10.0.0.3:443 ssl crt a.pem\n    server s1 10.0.1.1:80";
    let first = "    http-reuse never\n    server q quic4@10.0.0.3:443 ssl verify none";
    listen(&format!("    bind quic4@10.0.0.1:443 ssl crt a.pem\n{first}\n{second}"))
        .global("    expose-experimental-directives\n")
}

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n";

#[test]
fn a_request_is_sent_and_its_answer_logged() {
    towards("").run(|world| async move {
        let mut origin = Origin::at(ORIGIN);
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/1")).await;
        let stream = origin.request().await;
        let head = ":method: GET\n:scheme: https\n:authority: a\n:path: /1";
        assert_eq!(origin.asked(stream).head, head);
        origin.answer(stream, HEAD, b"one").await;
        origin.beside(client.expect(answer_at_client("one"))).await;
        world.expect_log(&[r#"l l/q 0/0/#/#/# 200 # - - ---- 1/1/0/0/0 0/0 "GET /1 HTTP/1.1""#]).await;
        // The connection is used again.
        client.send(get("/2")).await;
        let stream = origin.request().await;
        origin.answer(stream, HEAD, b"two").await;
        origin.beside(client.expect(answer_at_client("two"))).await;
        assert_eq!((origin.connections(), stream.connection), (1, 0));
        world.expect_log(&[r#"l l/q #/0/#/#/# 200 # - - ---- 1/1/0/0/0 0/0 "GET /2 HTTP/1.1""#]).await;
    });
}

/// Bodies of both directions, of sizes around those of packets, buffers and windows, over a network that loses, duplicates,
/// corrupts and reorders datagrams; clients of HTTP/1 and of HTTP/3.
#[test]
fn bodies_arrive_whole_over_a_bad_network() {
    for path in [
        DatagramPath::default(),
        DatagramPath {
            loss: 50,
            duplicates: 30,
            corruption: 10,
            jitter: Duration::from_millis(5),
            latency: Duration::from_millis(10),
            ..DatagramPath::default()
        },
    ] {
        chained().seeds(0..2).workers(&[1, 2]).run(move |world| async move {
            rt::sim::network().set_datagram_path(path);
            let scope = Rc::new(Scope::new());
            Service::at(S1).serve(&scope, echo);
            let mut plain = Peer::connect(WEIR).await;
            let mut client = Client::connect("10.0.9.1:5000", "10.0.0.1:443").await;
            for (number, length) in [0, 1, 1_200, 16_383, 16_384, 300_000].into_iter().enumerate() {
                let payload = text(length, number as u64);
                let head = format!("POST /{number} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
                let id = client.post(&head, &payload).await;
                let answered = client.answer(id).await;
                assert!(answered.ended, "{length}: {:?} {:?}", answered.heads, client.closed);
                assert!(answered.payload == payload, "{} of {length} bytes", answered.payload.len());
                plain.send(&head).await;
                plain.send(&payload).await;
                let line = format!("POST /{number} HTTP/1.1");
                plain.expect(format!("HTTP/1.1 200 OK\r\nx-line: {line}\r\ncontent-length: {length}\r\n\r\n")).await;
                plain.expect(&payload).await;
            }
            // The ends of connections are not lost.
            rt::sim::network().set_datagram_path(DatagramPath::default());
            client.close().await;
            drop(plain);
            world.forget_log();
        });
    }
}

/// A body that exceeds every window goes on whenever one opens: the server answers nothing before its end.
#[test]
fn an_upload_goes_on_when_a_window_opens() {
    towards("").run(|world| async move {
        let mut origin = Origin::at(ORIGIN);
        let mut client = Peer::connect(WEIR).await;
        let payload = text(3_000_000, 1);
        client.send(post(payload.len())).await;
        origin.beside(client.send(&payload)).await;
        let stream = origin.request().await;
        assert!(origin.asked(stream).payload == payload, "{} bytes", origin.asked(stream).payload.len());
        origin.answer(stream, HEAD, b"one").await;
        origin.beside(client.expect(answer_at_client("one"))).await;
        world.forget_log();
    });
}

/// A body without a length and its trailers reach the server, and those of the answer the client.
#[test]
fn chunks_become_frames_and_trailers_pass() {
    towards("").run(|world| async move {
        let mut origin = Origin::at(ORIGIN);
        let mut client = Peer::connect(WEIR).await;
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n";
        client.send(format!("{head}3\r\nabc\r\n4\r\ndefg\r\n0\r\nx-sum: 7\r\n\r\n")).await;
        let stream = origin.request().await;
        let asked = origin.asked(stream).clone();
        assert_eq!((&asked.payload[..], &asked.trailers[..]), (&b"abcdefg"[..], &["x-sum: 7".to_owned()][..]));
        let mut bytes = encoded("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n");
        bytes.extend(encoded("HTTP/1.1 200 OK\r\n\r\n"));
        push_data(&mut bytes, b"one");
        let mut trailers = wire::http::Fields::new();
        trailers.append(b"x-end", b"yes");
        h3::encode_trailers(&trailers, &mut bytes).unwrap();
        origin.write(stream, &bytes).await;
        origin.finish(stream).await;
        let expected = "HTTP/1.1 103 Informational\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
                        3\r\none\r\n0\r\nx-end: yes\r\n\r\n";
        origin.beside(client.expect(expected)).await;
        world.forget_log();
    });
}

/// After GOAWAY, requests that are under way end, and the next one gets another connection.
#[test]
fn requests_end_after_goaway_and_later_ones_go_elsewhere() {
    towards("    http-reuse always").workers(&[1]).run(|world| async move {
        let mut origin = Origin::at(ORIGIN);
        let (mut one, mut two) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        one.send(get("/1")).await;
        let first = origin.request().await;
        origin.go_away(0, None).await;
        origin.beside(testkit::sleep(100)).await;
        two.send(get("/2")).await;
        let second = origin.request().await;
        assert_eq!((first.connection, second.connection), (0, 1));
        origin.answer(first, HEAD, b"one").await;
        origin.beside(one.expect(answer_at_client("one"))).await;
        origin.until(|origin| origin.closed(0).is_some()).await;
        let Some(Closed::ByPeer { code, .. }) = origin.closed(0).cloned() else { panic!("{:?}", origin.closed(0)) };
        assert_eq!(ErrorCode::of(code), Some(ErrorCode::NoError));
        origin.answer(second, HEAD, b"two").await;
        origin.beside(two.expect(answer_at_client("two"))).await;
        world.forget_log();
    });
}

/// Requests that the server has not processed are sent again: those that it rejects, and those after its last one.
#[test]
fn rejected_requests_are_sent_again() {
    for goes_away in [false, true] {
        towards("").workers(&[1, 2]).run(move |world| async move {
            let mut origin = Origin::at(ORIGIN);
            let mut client = Peer::connect(WEIR).await;
            client.send(post(3) + "abc").await;
            let stream = origin.request().await;
            if goes_away {
                origin.go_away(0, Some(stream)).await;
            } else {
                origin.reset(stream, ErrorCode::RequestRejected.number()).await;
            }
            let again = origin.request().await;
            assert_eq!((again.connection, &origin.asked(again).payload[..]), (1, &b"abc"[..]));
            origin.answer(again, HEAD, b"one").await;
            origin.beside(client.expect(answer_at_client("one"))).await;
            world.expect_log(&[r#"l l/q 0/0/#/#/# 200 # - - ---- 1/1/0/0/1 0/0 "POST / HTTP/1.1""#]).await;
        });
    }
}

/// A stream that the server resets before its answer, and a connection that it closes.
#[test]
fn failures_before_the_answer() {
    for closes in [false, true] {
        towards("").run(move |world| async move {
            let mut origin = Origin::at(ORIGIN);
            let mut client = Peer::connect(WEIR).await;
            client.send(get("/1")).await;
            let stream = origin.request().await;
            if closes {
                origin.close(0, ErrorCode::InternalError.number()).await;
            } else {
                origin.reset(stream, ErrorCode::InternalError.number()).await;
            }
            origin.beside(client.expect(page(502))).await;
            world.expect_log(&[r#"l l/q 0/0/#/-1/# 502 # - - SH-- 1/1/0/0/0 0/0 "GET /1 HTTP/1.1""#]).await;
        });
    }
}

/// A stream that the server resets in the middle of its answer.
#[test]
fn an_answer_that_breaks_off_ends_the_connection_of_the_client() {
    towards("").run(|world| async move {
        let mut origin = Origin::at(ORIGIN);
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/1")).await;
        let stream = origin.request().await;
        let mut bytes = encoded("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n");
        push_data(&mut bytes, b"one");
        origin.write(stream, &bytes).await;
        origin.beside(client.expect("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\none")).await;
        origin.reset(stream, ErrorCode::InternalError.number()).await;
        origin.beside(client.expect_end()).await;
        world.expect_log(&[r#"l l/q 0/0/#/#/# 200 # - - SD-- 1/1/0/0/0 0/0 "GET /1 HTTP/1.1""#]).await;
    });
}

/// Answers that violate the protocol: more or less payload than announced, and frames that do not belong to a stream.
#[test]
fn invalid_answers_are_failures_of_the_server() {
    let more = {
        let mut bytes = encoded("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n");
        push_data(&mut bytes, b"one");
        bytes
    };
    let data_first = {
        let mut bytes = Vec::new();
        push_data(&mut bytes, b"one");
        bytes
    };
    let less = encoded("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n");
    for (bytes, ends) in [(more, false), (less, true)] {
        towards("").seeds(0..2).run(move |world| {
            let bytes = bytes.clone();
            async move {
                let mut origin = Origin::at(ORIGIN);
                let mut client = Peer::connect(WEIR).await;
                client.send(get("/1")).await;
                let stream = origin.request().await;
                origin.write(stream, &bytes).await;
                origin.beside(client.expect("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n")).await;
                if ends {
                    origin.end(stream).await;
                }
                origin.beside(client.expect_end()).await;
                world.forget_log();
            }
        });
    }
    towards("").seeds(0..2).run(move |world| {
        let bytes = data_first.clone();
        async move {
            let mut origin = Origin::at(ORIGIN);
            let mut client = Peer::connect(WEIR).await;
            client.send(get("/1")).await;
            let stream = origin.request().await;
            origin.write(stream, &bytes).await;
            origin.end(stream).await;
            origin.beside(client.expect(page(502))).await;
            world.forget_log();
        }
    });
}

/// A server that does not answer at all: neither datagrams, nor requests.
#[test]
fn silence_ends_by_the_timeouts() {
    towards("    retries 0\n    timeout connect 300ms\n    timeout server 500ms").run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/1")).await;
        client.expect(page(503)).await;
        world.expect_log(&[r#"l l/q 0/0/-1/-1/300 503 # - - sC-- 1/1/0/0/0 0/0 "GET /1 HTTP/1.1""#]).await;
        let mut origin = Origin::at(ORIGIN);
        client.send(get("/2")).await;
        let stream = origin.request().await;
        origin.beside(client.expect(page(504))).await;
        world.expect_log(&[r#"l l/q #/0/#/-1/# 504 # - - sH-- 1/1/0/0/0 0/0 "GET /2 HTTP/1.1""#]).await;
        origin.until(|origin| origin.stopped.iter().any(|(stopped, _)| *stopped == stream)).await;
    });
}

/// A certificate with another name ends the attempt.
#[test]
fn the_name_in_the_certificate_is_verified() {
    for (name, passes) in [("a.example", true), ("b.example", false)] {
        let server = format!("server q quic4@{ORIGIN} ssl ca-file ca.pem sni str({name})");
        listen(&format!("    retries 0\n    {server}")).global("    expose-experimental-directives\n").seeds(0..2).run(
            move |world| async move {
                let mut origin = Origin::at(ORIGIN);
                let mut client = Peer::connect(WEIR).await;
                client.send(get("/1")).await;
                if passes {
                    let stream = origin.request().await;
                    origin.answer(stream, HEAD, b"one").await;
                    origin.beside(client.expect(answer_at_client("one"))).await;
                } else {
                    origin.beside(client.expect(page(503))).await;
                }
                world.forget_log();
            },
        );
    }
}

/// The limit of requests of a connection (`max-reuse`), and a client that leaves.
#[test]
fn a_connection_ends_with_its_last_request() {
    listen(&format!("    http-reuse always\n    server q quic4@{ORIGIN} ssl verify none max-reuse 1"))
        .global("    expose-experimental-directives\n")
        .workers(&[1])
        .run(|world| async move {
            let mut origin = Origin::at(ORIGIN);
            let mut client = Peer::connect(WEIR).await;
            for (number, connection) in [0, 0, 1].into_iter().enumerate() {
                client.send(get(&format!("/{number}"))).await;
                let stream = origin.request().await;
                assert_eq!(stream.connection, connection);
                origin.answer(stream, HEAD, b"one").await;
                origin.beside(client.expect(answer_at_client("one"))).await;
            }
            origin.until(|origin| origin.closed(0).is_some()).await;
            world.forget_log();
        });
}

/// A client that leaves stops the answer.
#[test]
fn a_client_that_leaves_cancels_its_request() {
    towards("    option abortonclose").run(|world| async move {
        let mut origin = Origin::at(ORIGIN);
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/1")).await;
        let stream = origin.request().await;
        // A connection on which nothing was received since its request was sent takes no other requests.
        origin.beside(sleep(50)).await;
        client.reset();
        origin.until(|origin| !origin.stopped.is_empty() || origin.closed(0).is_some()).await;
        assert_eq!(origin.closed(0), None);
        assert_eq!(origin.stopped[0].0, stream);
        assert_eq!(ErrorCode::of(origin.stopped[0].1), Some(ErrorCode::RequestCancelled));
        world.forget_log();
    });
}
