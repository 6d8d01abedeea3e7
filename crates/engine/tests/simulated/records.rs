//! Tests of a transport that buffers received bytes, and splits reads and writes arbitrarily: no task waits for the
//! network while buffered bytes can be read.

use testkit::{Peer, Service, sleep};

use crate::world::*;

const REQUESTS: usize = 20;

#[test]
fn requests_that_came_together_are_all_answered() {
    let rule = "http-request return status 200 content-type text/plain lf-string %[path]";
    listen(rule).shuffled().seeds(0..8).run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        let requests: String =
            (0..REQUESTS).map(|number| format!("GET /{number:02} HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
        client.send(requests).await;
        for number in 0..REQUESTS {
            client.receive_head().await.unwrap();
            client.expect(format!("/{number:02}")).await;
        }
        world.forget_log();
    });
}

#[test]
fn a_link_whose_server_has_said_more_than_its_answer_is_not_used_again() {
    listen("server s1 10.0.1.1:80\n http-reuse always").shuffled().seeds(0..8).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        for number in 0..4 {
            client.send(format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
            let mut server = s1.accept().await;
            server.receive_head().await.unwrap();
            server
                .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
                .await;
            client.expect("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
            server.expect_end().await;
        }
        world.forget_log();
    });
}

#[test]
fn a_session_in_tcp_mode_carries_what_came_before_its_server() {
    let lines = "mode tcp\n tcp-request inspect-delay 1s\n tcp-request content accept if { req.len ge 30 }\n server s1 10.0.1.1:80";
    listen(lines).shuffled().seeds(0..8).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send("0123456789".repeat(5)).await;
        let mut server = s1.accept().await;
        server.expect("0123456789".repeat(5)).await;
        server.send("answer").await;
        client.expect("answer").await;
        world.forget_log();
    });
}

/// As with a session ticket of TLS 1.3.
#[test]
fn an_idle_link_on_which_the_transport_alone_was_addressed_is_used_again() {
    listen("server s1 10.0.1.1:80\n http-reuse always").shuffled().workers(&[1]).seeds(0..4).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut server = s1.accept().await;
        for number in 2..6 {
            server.receive_head().await.unwrap();
            server.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
            client.expect("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
            sleep(10).await;
            if world.is_shuffled() {
                server.send([0, 0]).await;
                sleep(10).await;
            }
            client.send(format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        }
        server.receive_head().await.unwrap();
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
        if world.is_shuffled() {
            // Data does not concern only the transport.
            sleep(10).await;
            server.send([0, b'x']).await;
            server.expect_end().await;
        }
        world.forget_log();
    });
}
