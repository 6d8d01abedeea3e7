//! Tests of `tcp-request inspect-delay` and `tcp-response inspect-delay`: the awaited data arrives, does not arrive,
//! ends too early, or has no space.

use testkit::{Peer, Service, Stopwatch, sleep};

use crate::messages::*;
use crate::world::*;

fn tcp(rules: &str) -> Worlds {
    listen(&format!("mode tcp\n option tcplog\n {rules}\n server s1 10.0.1.1:80"))
}

const REQUEST: &str = "tcp-request inspect-delay 100\n tcp-request content accept if { req.len ge 4 }";

/// Returns a client that has sent a text, its server, and a stopwatch started before.
async fn says(text: impl AsRef<[u8]>) -> (Peer, Service, Stopwatch) {
    let server = Service::at(S1);
    let mut client = Peer::connect(WEIR).await;
    let watch = Stopwatch::start();
    client.send(text).await;
    (client, server, watch)
}

/// Returns a client, and a server that has received its text.
async fn greeted() -> (Peer, Peer, Service) {
    let (client, mut s1, _) = says("hi").await;
    let mut server = s1.accept().await;
    server.expect("hi").await;
    (client, server, s1)
}

#[test]
fn a_request_goes_on_once_enough_has_come() {
    tcp(REQUEST).run(|_| async move {
        let (mut client, mut s1, watch) = says("ab").await;
        sleep(50).await;
        client.send("cd").await;
        let mut server = s1.accept().await;
        server.expect("abcd").await;
        assert_eq!(watch.elapsed().as_millis(), 50);
    });
}

#[test]
fn a_request_goes_on_when_the_delay_is_over() {
    tcp(REQUEST).run(|_| async move {
        let (client, mut s1, watch) = says("ab").await;
        let mut server = s1.accept().await;
        server.expect("ab").await;
        assert_eq!(watch.elapsed().as_millis(), 100);
        drop(client);
    });
}

#[test]
fn a_request_goes_on_when_the_client_has_said_all() {
    tcp(REQUEST).run(|_| async move {
        let (mut client, mut s1, watch) = says("ab").await;
        client.half_close();
        let mut server = s1.accept().await;
        server.expect("ab").await;
        assert_eq!(watch.elapsed().as_millis(), 0);
    });
}

#[test]
fn a_request_goes_on_when_there_is_no_room_for_more() {
    let rules = "tcp-request inspect-delay 1s\n tcp-request content reject if { req.len ge 1000000 }";
    tcp(rules).run(|_| async move {
        let (_client, mut s1, watch) = says("x".repeat(20_000)).await;
        let mut server = s1.accept().await;
        server.expect("x".repeat(20_000)).await;
        assert!(watch.elapsed().as_millis() < 100, "{watch:?}");
    });
}

#[test]
fn an_answer_in_tcp_mode_waits_for_what_a_rule_asks_for() {
    let rules = "tcp-response inspect-delay 100\n tcp-response content accept if { res.len ge 4 }";
    tcp(rules).run(|_| async move {
        let (mut client, mut server, _s1) = greeted().await;
        let watch = Stopwatch::start();
        server.send("ab").await;
        client.expect_silence(50).await;
        server.send("cd").await;
        client.expect("abcd").await;
        assert_eq!(watch.elapsed().as_millis(), 50);
    });
    tcp(rules).run(|_| async move {
        let (mut client, mut server, _s1) = greeted().await;
        server.send("ab").await;
        client.expect_silence(90).await;
        client.expect("ab").await;
    });
}

const RESPONSE: &str = "tcp-response inspect-delay 100\n tcp-response content reject if { res.len ge 1000000 }\n \
                        server s1 10.0.1.1:80";

#[test]
fn an_answer_in_http_mode_waits_until_the_delay_is_over() {
    listen(RESPONSE).run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab").await;
        sleep(50).await;
        server.send("cd").await;
        client.expect_silence(45).await;
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabcd").await;
        world.expect_log(&[r#"l l/s1 0/0/0/100/100 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn an_answer_in_http_mode_goes_on_when_the_server_has_closed_or_there_is_no_room() {
    listen(RESPONSE).run(|_| async move {
        let (mut client, mut server, _s1) = asked().await;
        let watch = Stopwatch::start();
        server.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nab").await;
        server.half_close();
        client.expect("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nab").await;
        client.expect_eof().await;
        assert_eq!(watch.elapsed().as_millis(), 0);
    });
    listen(RESPONSE).run(|_| async move {
        let (mut client, mut server, _s1) = asked().await;
        let watch = Stopwatch::start();
        server.send(format!("HTTP/1.1 200 OK\r\nContent-Length: 30000\r\n\r\n{}", "x".repeat(30_000))).await;
        client.expect(format!("HTTP/1.1 200 OK\r\ncontent-length: 30000\r\n\r\n{}", "x".repeat(30_000))).await;
        assert!(watch.elapsed().as_millis() < 50, "{watch:?}");
    });
}
