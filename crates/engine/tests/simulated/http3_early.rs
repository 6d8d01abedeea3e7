//! Tests of early data to servers over QUIC: accepted, rejected, refused by 425, and to a server that is down.

use rt::sim::DatagramPath;
use testkit::{Peer, sleep};
use wire::h3::ErrorCode;

use crate::http3_origin::{Origin, Stream};
use crate::messages::*;
use crate::secure::early_quic_server;
use crate::world::*;

const ORIGIN: &str = "10.0.1.1:443";
const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n";

/// A section whose server gets early data; requests have connections of their own.
fn towards(body: &str) -> Worlds {
    observed(body, "")
}

/// The same with more arguments of the server.
fn observed(body: &str, server: &str) -> Worlds {
    listen(&format!(
        "    http-reuse never\n{body}\n    server q quic4@{ORIGIN} ssl verify none sni str(a.example) allow-0rtt {server}"
    ))
    .global("    expose-experimental-directives\n")
    .workers(&[1])
}

/// Has a request answered, whose connection gives Weir a session.
async fn meet(origin: &mut Origin, client: &mut Peer) {
    client.send(get("/first")).await;
    let stream = origin.request().await;
    assert!(!origin.asked(stream).early);
    answer(origin, client, stream).await;
    // The next request needs another connection.
    origin.close(0, ErrorCode::NoError.number()).await;
    origin.beside(sleep(100)).await;
}

async fn answer(origin: &mut Origin, client: &mut Peer, stream: Stream) {
    origin.answer(stream, HEAD, b"one").await;
    origin.beside(client.expect(answer_at_client("one"))).await;
}

#[test]
fn a_safe_request_is_sent_before_the_handshake_is_complete() {
    for (rules, has_body, early) in [
        ("    retry-on 0rtt-rejected", false, true),
        // Not without permission to send it twice, nor with a body.
        ("", false, false),
        ("    retry-on 0rtt-rejected", true, false),
    ] {
        towards(rules).run(move |world| async move {
            let mut origin = Origin::with_tls(ORIGIN, early_quic_server());
            let mut client = Peer::connect(WEIR).await;
            meet(&mut origin, &mut client).await;
            client.send(if has_body { post(3) + "abc" } else { get("/1") }).await;
            let stream = origin.request().await;
            assert_eq!((stream.connection, origin.asked(stream).early), (1, early), "{rules}");
            answer(&mut origin, &mut client, stream).await;
            world.forget_log();
        });
    }
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
        world.forget_log();
    });
}

/// A handshake whose requests are early data ends after the attempt to connect; its result counts for the server's health.
#[test]
fn handshakes_with_early_data_are_observed() {
    let rules = "    retry-on 0rtt-rejected\n    retries 0\n    timeout connect 1s";
    for (limit, answers, goes_down) in
        [(1, &[false][..], true), (2, &[false, false], true), (2, &[false, true, false], false)]
    {
        let server = format!(
            "check addr 10.0.1.9 inter 60s fall 9 init-state fully-up observe layer4 error-limit {limit} on-error mark-down"
        );
        observed(rules, &server).run(move |world| async move {
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
