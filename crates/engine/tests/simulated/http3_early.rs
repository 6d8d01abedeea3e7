//! Tests of early data to servers over QUIC: accepted, rejected, refused by 425, and to a server that is down; which requests are
//! sent early, and how many.

use std::collections::BTreeMap;

use live::counters::QuicCount;
use rt::sim::DatagramPath;
use testkit::{Peer, sleep, text};
use wire::h3::ErrorCode;

use crate::api::*;
use crate::http3_origin::{Origin, Stream};
use crate::messages::*;
use crate::secure::{Secure, early_client, early_quic_server, foreign_quic_server};
use crate::world::*;

const ORIGIN: &str = "10.0.1.1:443";
const SECURE: &str = "10.0.0.1:8443";
const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n";

/// A section whose server gets early data; requests share connections.
fn shared(body: &str) -> Worlds {
    with_server(&format!("    http-reuse always\n{body}"), "")
}

/// A section whose server gets early data, with more arguments of the server.
fn with_server(body: &str, server: &str) -> Worlds {
    listen(&format!("{body}\n    server q quic4@{ORIGIN} ssl verify none sni str(a.example) allow-0rtt {server}"))
        .global("    expose-experimental-directives\n")
        .global(SOCKET)
        .workers(&[1])
}

/// A section whose server gets early data; requests have connections of their own.
fn towards(body: &str) -> Worlds {
    with_server(&format!("    http-reuse never\n{body}"), "")
}

/// Has a request answered, whose connection gives Weir a session.
async fn meet(origin: &mut Origin, client: &mut Peer) {
    client.send(get("/first")).await;
    let stream = origin.request().await;
    assert!(!origin.asked(stream).early);
    answer(origin, client, stream).await;
    leave(origin).await;
}

/// Closes the first connection: the next request needs another one.
async fn leave(origin: &mut Origin) {
    origin.close(0, ErrorCode::NoError.number()).await;
    origin.beside(sleep(100)).await;
}

/// Sends a request without a body from a client of its own.
async fn ask_alone(request: &str) -> Peer {
    let mut client = Peer::connect(WEIR).await;
    client.send(format!("{request} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
    client
}

async fn answer(origin: &mut Origin, client: &mut Peer, stream: Stream) {
    origin.answer(stream, HEAD, b"one").await;
    origin.beside(client.expect(answer_at_client("one"))).await;
}

#[test]
fn a_safe_request_is_sent_before_the_handshake_is_complete() {
    let listed = "    retry-on 0rtt-rejected";
    for (rules, request, early) in [
        (listed, get("/1"), true),
        // Not without permission to send it twice, nor with a body, nor if its method is not safe.
        ("", get("/1"), false),
        (listed, get("/1").replace("\r\n\r\n", "\r\nContent-Length: 3\r\n\r\nabc"), false),
        (listed, get("/1").replace("GET", "DELETE"), false),
    ] {
        let request = std::rc::Rc::new(request);
        towards(rules).run(move |world| {
            let request = std::rc::Rc::clone(&request);
            async move {
                let mut origin = Origin::with_tls(ORIGIN, early_quic_server());
                let mut client = Peer::connect(WEIR).await;
                meet(&mut origin, &mut client).await;
                client.send(&*request).await;
                let stream = origin.request().await;
                assert_eq!((stream.connection, origin.asked(stream).early), (1, early), "{rules} {request}");
                answer(&mut origin, &mut client, stream).await;
                // It was sent once.
                origin.beside(sleep(100)).await;
                assert_eq!(origin.all_asked(1).count(), 1);
                world.forget_log();
            }
        });
    }
}

/// What a client has sent early may be sent early as well, and is marked; over QUIC only if the method is safe.
#[test]
fn only_safe_requests_of_early_data_are_sent_early() {
    for (method, early) in [("GET", true), ("DELETE", false)] {
        let section = format!(
            "listen l\n    bind {SECURE} ssl crt a.pem alpn http/1.1 allow-0rtt\n    http-reuse never\n    \
             server q quic4@{ORIGIN} ssl verify none sni str(a.example) allow-0rtt\n"
        );
        config(&section).global("    expose-experimental-directives\n").workers(&[1]).run(move |world| async move {
            let mut origin = Origin::with_tls(ORIGIN, early_quic_server());
            let tls = early_client(&["http/1.1"]);
            let mut client = Secure::connect(SECURE, &tls, 10_000).await.unwrap();
            client.send(get("/first")).await;
            let stream = origin.request().await;
            origin.answer(stream, HEAD, b"one").await;
            origin.beside(client.expect(answer_at_client("one"))).await;
            leave(&mut origin).await;
            client.say_goodbye().await;
            let request = get("/1").replace("GET", method);
            let (mut client, _) = Secure::connect_early(SECURE, &tls, &request).await;
            let stream = origin.request().await;
            let asked = origin.asked(stream);
            assert_eq!((stream.connection, asked.early), (1, early), "{method}");
            assert!(asked.head.contains("early-data: 1"), "{asked:?}");
            origin.answer(stream, HEAD, b"one").await;
            origin.beside(client.finish()).await;
            origin.beside(client.expect(answer_at_client("one"))).await;
            world.forget_log();
        });
    }
}

/// A connection whose handshake is not complete takes further requests that may be sent early, up to a bound, and no others.
#[test]
fn safe_requests_share_a_connection_before_its_handshake_is_complete() {
    shared("    retry-on 0rtt-rejected").run(|world| async move {
        let mut origin = Origin::with_tls(ORIGIN, early_quic_server());
        origin.serve_streams(early_quic_server(), 500);
        let mut client = Peer::connect(WEIR).await;
        meet(&mut origin, &mut client).await;
        // The server receives nothing until all have asked.
        let mut clients = vec![ask_alone("GET /").await, ask_alone("DELETE /").await];
        sleep(5).await;
        for _ in 0..110 {
            clients.push(ask_alone("GET /").await);
        }
        sleep(5).await;
        let mut early = BTreeMap::new();
        for _ in &clients {
            let stream = origin.request().await;
            let asked = origin.asked(stream);
            if asked.early {
                assert!(asked.head.starts_with(":method: GET\n"), "{asked:?}");
                *early.entry(stream.connection).or_insert(0) += 1;
            }
            origin.answer(stream, HEAD, b"one").await;
        }
        assert_eq!(early.get(&1), Some(&100), "{early:?}");
        for client in &mut clients {
            origin.beside(client.expect(answer_at_client("one"))).await;
        }
        world.forget_log();
    });
}

/// The requests are longer than what is sent early: the rest follows after the handshake, whether the server has accepted early
/// data or not.
#[test]
fn what_exceeds_the_bound_follows_after_the_handshake() {
    for accepts in [true, false] {
        shared("    retry-on 0rtt-rejected").run(move |world| async move {
            let mut origin = Origin::with_tls(ORIGIN, early_quic_server());
            let mut client = Peer::connect(WEIR).await;
            meet(&mut origin, &mut client).await;
            if !accepts {
                origin.serve(early_quic_server());
            }
            let fields: Vec<String> = (0..12).map(|number| hex(&text(7_000, number))).collect();
            let mut clients = Vec::new();
            for field in &fields {
                let mut client = Peer::connect(WEIR).await;
                client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nx-long: {field}\r\n\r\n")).await;
                clients.push(client);
            }
            sleep(50).await;
            for _ in &fields {
                let stream = origin.request().await;
                assert_eq!(stream.connection, 1);
                origin.answer(stream, HEAD, b"one").await;
            }
            let mut received: Vec<&str> =
                origin.all_asked(1).filter_map(|asked| Some(asked.head.split_once("x-long: ")?.1)).collect();
            let mut sent: Vec<&str> = fields.iter().map(String::as_str).collect();
            received.sort_unstable();
            sent.sort_unstable();
            assert!(received == sent, "{:?}", received.iter().map(|field| field.len()).collect::<Vec<_>>());
            for client in &mut clients {
                origin.beside(client.expect(answer_at_client("one"))).await;
            }
            world.forget_log();
        });
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The second server has no session of the first one: the request is received once, over the same connection.
#[test]
fn a_request_that_was_rejected_as_early_data_is_sent_again() {
    towards("    retry-on 0rtt-rejected\n    retries 0").run(|world| async move {
        let mut origin = Origin::with_tls(ORIGIN, early_quic_server());
        let mut client = Peer::connect(WEIR).await;
        meet(&mut origin, &mut client).await;
        origin.serve(early_quic_server());
        client.send(get("/1")).await;
        let stream = origin.request().await;
        assert_eq!((stream.connection, origin.asked(stream).early), (1, false));
        answer(&mut origin, &mut client, stream).await;
        origin.beside(sleep(500)).await;
        assert_eq!(origin.connections(), 2);
        // The control stream was rejected as well: its type and SETTINGS.
        assert!(
            origin.unidirectional(1).any(|bytes| bytes.starts_with(&[0, 4])),
            "{:?}",
            origin.unidirectional(1).count()
        );
        world.forget_log();
    });
}

/// The server has rejected the early data of requests, and permits fewer: the last one is sent on another connection.
#[test]
fn requests_beyond_the_new_limit_of_streams_are_sent_elsewhere() {
    const ROWS: [(u32, &[usize]); 2] = [(0, &[2]), (2, &[1, 1, 2])];
    for (limit, connections) in ROWS {
        for retry_on in ["0rtt-rejected conn-failure", "0rtt-rejected"] {
            shared(&format!("    retry-on {retry_on}")).run(move |world| async move {
                let mut origin = Origin::with_tls(ORIGIN, early_quic_server());
                let mut client = Peer::connect(WEIR).await;
                meet(&mut origin, &mut client).await;
                origin.serve_streams(early_quic_server(), limit);
                let mut clients = Vec::new();
                for _ in connections {
                    clients.push(ask_alone("GET /").await);
                }
                sleep(50).await;
                origin.until(|origin| origin.connections() == 2).await;
                origin.serve(early_quic_server());
                for &expected in connections {
                    let stream = origin.request().await;
                    assert_eq!((stream.connection, origin.asked(stream).early), (expected, false));
                    origin.answer(stream, HEAD, b"one").await;
                }
                for client in &mut clients {
                    origin.beside(client.expect(answer_at_client("one"))).await;
                }
                world.forget_log();
            });
        }
    }
}

/// A request that was cancelled before the server has rejected early data is not sent again; those after it are, with the
/// identifiers of their streams.
#[test]
fn a_request_that_was_cancelled_early_is_not_sent_again() {
    shared("    retry-on 0rtt-rejected\n    option abortonclose").run(|world| async move {
        let mut origin = Origin::with_tls(ORIGIN, early_quic_server());
        let mut client = Peer::connect(WEIR).await;
        meet(&mut origin, &mut client).await;
        origin.serve(early_quic_server());
        let cancelled = ask_alone("GET /cancelled").await;
        let mut client = ask_alone("GET /1").await;
        sleep(50).await;
        cancelled.reset();
        sleep(50).await;
        let stream = origin.request().await;
        assert_eq!(stream.connection, 1);
        assert!(origin.asked(stream).head.ends_with(":path: /1"));
        answer(&mut origin, &mut client, stream).await;
        let resets: Vec<_> = origin.all_asked(1).map(|asked| (asked.head.len(), asked.reset)).collect();
        assert_eq!(resets[0], (0, Some(ErrorCode::RequestCancelled.number())));
        assert_eq!((resets.len(), resets[1].1), (2, None));
        world.forget_log();
    });
}

/// Whether a session was resumed is in the answer's samples and in the statistics, although the request was sent before it was
/// known.
#[test]
fn the_end_of_a_handshake_with_early_data_is_recorded() {
    for accepts in [true, false] {
        let rules = "    retry-on 0rtt-rejected\n    http-response set-header x %[ssl_bc_is_resumed],%[ssl_bc_alpn]";
        towards(rules).run(move |world| async move {
            let mut origin = Origin::with_tls(ORIGIN, early_quic_server());
            for (connection, expected) in [(0, "0"), (1, if accepts { "1" } else { "0" })] {
                let mut client = ask_alone("GET /").await;
                let stream = origin.request().await;
                assert_eq!((stream.connection, origin.asked(stream).early), (connection, connection > 0 && accepts));
                origin.answer(stream, HEAD, b"one").await;
                let head = origin.beside(client.receive_head()).await.unwrap();
                assert!(head.contains(&format!("x: {expected},h3\r\n")), "{head}");
                let count = |of| world.shared().counters.quic(0, false, |counters| counters.of(of));
                assert_eq!([QuicCount::HalfOpenConnection, QuicCount::HandshakeFail].map(count), [0, 0]);
                if connection == 0 {
                    leave(&mut origin).await;
                    if !accepts {
                        origin.serve(early_quic_server());
                    }
                }
            }
            let table = origin.beside(ask("show stat")).await;
            let columns = ["ssl_sess", "ssl_reused_sess", "ssl_failed_handshake"];
            let expected = if accepts { ["1", "1", "0"] } else { ["2", "0", "0"] };
            for row in ["l,q,", "l,BACKEND,"] {
                assert_eq!(columns.map(|name| column(&table, row, name)), expected, "{row}");
            }
            origin.close(1, ErrorCode::NoError.number()).await;
            origin.beside(sleep(100)).await;
            let count = |of| world.shared().counters.quic(0, false, |counters| counters.of(of));
            assert_eq!([QuicCount::HalfOpenConnection, QuicCount::HandshakeFail].map(count), [0, 0]);
            world.forget_log();
        });
    }
}

/// The server has ended the handshake: the request was not processed. It is sent again once a handshake is complete, although
/// there is another session for early data.
#[test]
fn a_request_whose_handshake_fails_is_sent_again() {
    towards("    retry-on 0rtt-rejected conn-failure\n    retries 1").run(|world| async move {
        let mut origin = Origin::with_tls(ORIGIN, early_quic_server());
        for mut client in [ask_alone("GET /").await, ask_alone("GET /").await] {
            let stream = origin.request().await;
            origin.answer(stream, HEAD, b"one").await;
            origin.beside(client.receive_head()).await.unwrap();
        }
        assert_eq!(origin.connections(), 2);
        ask("clear counters all").await;
        origin.serve(foreign_quic_server());
        let mut client = ask_alone("GET /1").await;
        origin.until(|origin| origin.connections() == 3).await;
        origin.serve(early_quic_server());
        let stream = origin.request().await;
        assert_eq!((stream.connection, origin.asked(stream).early), (3, false));
        answer(&mut origin, &mut client, stream).await;
        let table = origin.beside(ask("show stat")).await;
        let columns = ["ssl_sess", "ssl_reused_sess", "ssl_failed_handshake"];
        assert_eq!(columns.map(|name| column(&table, "l,q,", name)), ["1", "0", "1"]);
        let failed = world.shared().counters.quic(0, false, |counters| counters.of(QuicCount::HandshakeFail));
        assert_eq!(failed, 1);
        world.forget_log();
    });
}

#[test]
fn a_request_that_is_too_early_is_sent_after_the_handshake() {
    towards("    retry-on 0rtt-rejected").run(|world| async move {
        let mut origin = Origin::with_tls(ORIGIN, early_quic_server());
        let mut client = Peer::connect(WEIR).await;
        meet(&mut origin, &mut client).await;
        client.send(get("/1")).await;
        let stream = origin.request().await;
        assert!(origin.asked(stream).early);
        origin.answer(stream, "HTTP/1.1 425 Too Early\r\ncontent-length: 0\r\n\r\n", b"").await;
        let again = origin.request().await;
        assert!(!origin.asked(again).early);
        answer(&mut origin, &mut client, again).await;
        world.forget_log();
    });
}

/// A server that is down has answered nothing at `timeout connect`: the request is sent again.
#[test]
fn a_server_that_is_down_is_left_after_the_time_to_connect() {
    towards("    retry-on 0rtt-rejected conn-failure\n    timeout connect 1s").run(|world| async move {
        let mut origin = Origin::with_tls(ORIGIN, early_quic_server());
        let mut client = Peer::connect(WEIR).await;
        meet(&mut origin, &mut client).await;
        rt::sim::network().set_datagram_path(DatagramPath { loss: 1_000, ..DatagramPath::default() });
        client.send(get("/1")).await;
        origin.beside(sleep(1_100)).await;
        rt::sim::network().set_datagram_path(DatagramPath::default());
        let stream = origin.request().await;
        assert!(!origin.asked(stream).early && stream.connection > 0);
        answer(&mut origin, &mut client, stream).await;
        let [first, second] = [("/first", 0), ("/1", 1)].map(|(path, retries)| {
            format!(r#"l l/q #/0/#/#/# 200 # - - ---- 1/1/0/0/{retries} 0/0 "GET {path} HTTP/1.1""#)
        });
        world.expect_log(&[&first, &second]).await;
    });
}

/// A handshake whose requests are early data ends after the attempt to connect; its result counts for the server's health.
#[test]
fn handshakes_with_early_data_are_observed() {
    let rules = "    http-reuse never\n    retry-on 0rtt-rejected\n    retries 0\n    timeout connect 1s";
    for (limit, answers, goes_down) in
        [(1, &[false][..], true), (2, &[false, false], true), (2, &[false, true, false], false)]
    {
        let server = format!(
            "check addr 10.0.1.9 inter 60s fall 9 init-state fully-up observe layer4 error-limit {limit} on-error mark-down"
        );
        with_server(rules, &server).run(move |world| async move {
            let mut origin = Origin::with_tls(ORIGIN, early_quic_server());
            let mut clients = [Peer::connect(WEIR).await, Peer::connect(WEIR).await, Peer::connect(WEIR).await];
            // Each connection gives a session for one more.
            for client in &mut clients {
                client.send(get("/first")).await;
                let stream = origin.request().await;
                answer(&mut origin, client, stream).await;
            }
            for number in 0..clients.len() {
                origin.close(number, ErrorCode::NoError.number()).await;
            }
            origin.beside(sleep(100)).await;
            for (client, is_answered) in clients.iter_mut().zip(answers) {
                let loss = if *is_answered { 0 } else { 1_000 };
                rt::sim::network().set_datagram_path(DatagramPath { loss, ..DatagramPath::default() });
                client.send(get("/1")).await;
                if *is_answered {
                    let stream = origin.request().await;
                    assert!(origin.asked(stream).early);
                    answer(&mut origin, client, stream).await;
                } else {
                    let head = origin.beside(client.receive_head()).await;
                    assert!(head.is_some_and(|head| head.starts_with("HTTP/1.1 50")));
                }
            }
            let lines = world.lines(3 + answers.len()).await;
            let is_down = lines.iter().any(|line| line.contains("Server l/q is DOWN, reason: Health analyze"));
            assert_eq!(is_down, goes_down, "{limit} {answers:?} {lines:?}");
            world.forget_log();
        });
    }
}

/// A handshake during which a request was sent fails as any attempt to connect: with 503, also after retries. Nothing of it is a bad
/// answer of the server.
#[test]
fn a_handshake_that_fails_is_a_failed_attempt_to_connect() {
    for (retries, is_down, state) in [(0, true, "sC"), (0, false, "SC"), (1, true, "sC"), (1, false, "SC")] {
        let rules = format!("    retry-on 0rtt-rejected conn-failure\n    retries {retries}\n    timeout connect 1s");
        towards(&rules).run(move |world| async move {
            let mut origin = Origin::with_tls(ORIGIN, early_quic_server());
            let mut client = Peer::connect(WEIR).await;
            meet(&mut origin, &mut client).await;
            if is_down {
                rt::sim::network().set_datagram_path(DatagramPath { loss: 1_000, ..DatagramPath::default() });
            } else {
                origin.serve(foreign_quic_server());
            }
            client.send(get("/1")).await;
            let head = origin.beside(client.receive_head()).await;
            assert!(head.is_some_and(|head| head.starts_with("HTTP/1.1 503 ")), "{retries} {state}");
            let table = origin.beside(ask("show stat")).await;
            let columns = ["econ", "eresp", "wretr"];
            let expected = ["1", "0", &retries.to_string()];
            assert_eq!(columns.map(|name| column(&table, "l,q,", name)), expected, "{retries} {state}");
            let first = r##"l l/q 0/0/#/#/# 200 # - - ---- 1/1/0/0/0 0/0 "GET /first HTTP/1.1""##;
            let second = format!(r##"l l/q 0/0/-1/-1/# 503 # - - {state}-- 1/1/0/0/{retries} 0/0 "GET /1 HTTP/1.1""##);
            world.expect_log(&[first, &second]).await;
        });
    }
}
