//! Tests of requests that are sent again although a server has received them (`retry-on`). Log lines were taken from
//! HAProxy.

use testkit::{Peer, Service, sleep};

use crate::messages::*;
use crate::world::*;

const BUSY: &str = "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy";
const EARLY: &str = "HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy";
const BUSY_AT_CLIENT: &str = "HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nbusy";

/// Bytes received with the head are parsed before the head is forwarded.
const BAD_CHUNK: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nzz\r\n";
/// A change of protocol that was not requested.
const UNASKED: &str = "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n";

/// A server's behaviour for a request.
#[derive(Clone, Copy)]
enum Act {
    Send(&'static str),
    Close,
    Reset,
    SendAndClose(&'static str),
    Nothing,
}

use Act::{Close, Nothing, Reset, Send, SendAndClose};

/// Serves each request at `address` by the next act; every request has to equal `request`.
fn play(world: &World, address: &str, acts: &'static [Act], request: String) {
    let mut service = Service::at(address);
    world.scope.spawn(async move {
        for act in acts {
            let mut peer = service.accept().await;
            peer.expect(&request).await;
            match act {
                Send(answer) => peer.send(answer).await,
                Close => peer.close(),
                Reset => peer.reset(),
                SendAndClose(answer) => {
                    peer.send(answer).await;
                    peer.close();
                }
                Nothing => peer.expect_end().await,
            }
        }
    });
}

/// Sends one GET through one server.
fn one(options: &'static str, acts: &'static [Act], answer: impl AsRef<[u8]> + Clone + 'static, line: &'static str) {
    listen(&format!("retries 2\n timeout server 300ms\n {options}\n server s1 10.0.1.1:80")).run(move |world| {
        let answer = answer.clone();
        async move {
            play(&world, S1, acts, GET_AT_SERVER.to_owned());
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            client.expect(answer.as_ref()).await;
            world.expect_log(&[line]).await;
        }
    });
}

#[test]
fn a_status_that_is_listed() {
    let line = r#"l l/s1 0/0/0/0/0 200 # - - ---- 1/1/0/0/2 0/0 "GET / HTTP/1.1""#;
    one(
        "retry-on 503 404",
        &[Send(BUSY), Send("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"), Send(OK)],
        OK_AT_CLIENT,
        line,
    );
}

#[test]
fn a_status_until_there_are_no_retries_left() {
    let line = r#"l l/s1 0/0/0/0/0 503 # - - ---- 1/1/0/0/2 0/0 "GET / HTTP/1.1""#;
    one("retry-on 503", &[Send(BUSY), Send(BUSY), Send(BUSY)], BUSY_AT_CLIENT, line);
}

#[test]
fn a_status_that_is_not_listed() {
    let line = r#"l l/s1 0/0/0/0/0 503 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#;
    one("retry-on 500 empty-response junk-response response-timeout", &[Send(BUSY)], BUSY_AT_CLIENT, line);
}

#[test]
fn no_answer() {
    let line = r#"l l/s1 0/0/0/0/0 200 # - - ---- 1/1/0/0/2 0/0 "GET / HTTP/1.1""#;
    one("retry-on empty-response", &[Close, Reset, Send(OK)], OK_AT_CLIENT, line);
    let line = r#"l l/s1 0/0/0/-1/0 502 # - - SH-- 1/1/0/0/2 0/0 "GET / HTTP/1.1""#;
    one("retry-on empty-response", &[Close, Close, Close], page(502), line);
    let line = r#"l l/s1 0/0/0/-1/0 502 # - - SH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#;
    one("retry-on junk-response 502", &[Close], page(502), line);
    one("retry-on none", &[Close], page(502), line);
}

#[test]
fn junk() {
    let line = r#"l l/s1 0/0/0/0/0 200 # - - ---- 1/1/0/0/2 0/0 "GET / HTTP/1.1""#;
    one(
        "retry-on junk-response",
        &[Send("junk\r\n\r\n"), SendAndClose("HTTP/1.1 200 OK\r\nCon"), Send(OK)],
        OK_AT_CLIENT,
        line,
    );
    one("retry-on junk-response", &[Send(BAD_CHUNK), Send(UNASKED), Send(OK)], OK_AT_CLIENT, line);
    let line = r#"l l/s1 0/0/0/-1/0 502 # - - PH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#;
    one("retry-on empty-response", &[SendAndClose("HTTP/1.1 200 OK\r\nCon")], page(502), line);
    one("retry-on empty-response", &[Send(BAD_CHUNK)], page(502), line);
    one("retry-on empty-response", &[Send(UNASKED)], page(502), line);
}

#[test]
fn silence() {
    let line = r#"l l/s1 0/0/300/0/300 200 # - - ---- 1/1/0/0/1 0/0 "GET / HTTP/1.1""#;
    one("retry-on response-timeout", &[Nothing, Send(OK)], OK_AT_CLIENT, line);
    let line = r#"l l/s1 0/0/600/-1/900 504 # - - sH-- 1/1/0/0/2 0/0 "GET / HTTP/1.1""#;
    one("retry-on response-timeout", &[Nothing, Nothing, Nothing], page(504), line);
}

#[test]
fn not_after_an_interim_answer() {
    let line = r#"l l/s1 0/0/0/0/0 503 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#;
    one("retry-on 503", &[Send(EARLY)], format!("HTTP/1.1 103 Early\r\n\r\n{BUSY_AT_CLIENT}"), line);
}

#[test]
fn connections_are_retried_only_where_that_is_listed() {
    for (listed, retries, millis) in [("503 conn-failure", 2, 2000), ("503", 0, 0), ("none", 0, 0)] {
        listen(&format!("retries 2\n retry-on {listed}\n server s1 10.0.1.1:80")).run(move |world| async move {
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            client.expect(page(503)).await;
            let line = format!(r#"l l/s1 0/0/-1/-1/{millis} 503 # - - SC-- 1/1/0/0/{retries} 0/0 "GET / HTTP/1.1""#);
            world.expect_log(&[&line]).await;
        });
    }
}

#[test]
fn with_redispatch_another_server_gets_it() {
    let body = "balance roundrobin\n retries 2\n retry-on 503\n option redispatch\n server s1 10.0.1.1:80\n server s2 10.0.1.2:80";
    listen(body).run(|world| async move {
        play(&world, S1, &[Send(BUSY)], GET_AT_SERVER.to_owned());
        play(&world, S2, &[Send(OK)], GET_AT_SERVER.to_owned());
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        client.expect(OK_AT_CLIENT).await;
        world.expect_log(&[r#"l l/s2 0/0/0/0/0 200 # - - ---- 1/1/0/0/+1 0/0 "GET / HTTP/1.1""#]).await;
    });
}

/// Sends a body of that number of bytes in pieces, with pauses between them.
fn with_body(length: usize, pieces: usize, chunked: bool, again: bool) {
    listen("retries 2\n retry-on 503\n server s1 10.0.1.1:80").run(move |world| async move {
        let body = testkit::text(length, 7);
        let (head, sent) = if chunked {
            let sent = testkit::encode_chunks(&body, &mut || 1000, &[]);
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(), sent)
        } else {
            (post(length), body.clone())
        };
        let mut service = Service::at(S1);
        world.scope.spawn(async move {
            let acts: &[&str] = if again { &[BUSY, BUSY, OK] } else { &[BUSY] };
            for answer in acts {
                let mut peer = service.accept().await;
                assert!(peer.receive_head().await.is_some());
                let got = if chunked { peer.receive_chunked(4096, 0).await.body } else { peer.receive(length).await };
                assert!(got == body);
                peer.send(answer).await;
            }
        });
        let mut client = Peer::connect(WEIR).await;
        client.send(head).await;
        for piece in sent.chunks(sent.len().div_ceil(pieces)) {
            client.send(piece).await;
            sleep(2).await;
        }
        client.expect(if again { OK_AT_CLIENT } else { BUSY_AT_CLIENT }).await;
        // The next request on the connection is parsed correctly.
        client.send(GET).await;
        client.close();
        world.forget_log();
    });
}

#[test]
fn a_body_that_fits_in_a_buffer_goes_out_again() {
    for (length, pieces) in [(1, 1), (10, 3), (15_000, 1), (15_000, 5)] {
        for chunked in [false, true] {
            with_body(length, pieces, chunked, true);
        }
    }
}

#[test]
fn a_body_that_does_not_fit_is_sent_once() {
    for chunked in [false, true] {
        with_body(40_000, 3, chunked, false);
    }
}

/// The server closes while the request is still being received: the next one gets it from its first byte.
#[test]
fn a_server_that_dies_in_the_middle_of_a_body() {
    listen("retries 2\n retry-on empty-response\n server s1 10.0.1.1:80").run(|world| async move {
        let mut service = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(post(10) + "abc").await;
        let mut first = service.accept().await;
        first.expect(post_at_server(10) + "abc").await;
        first.reset();
        sleep(5).await;
        client.send("defghij").await;
        let mut second = service.accept().await;
        second.expect(post_at_server(10) + "abcdefghij").await;
        second.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        world.expect_log(&[r#"l l/s1 0/0/0/#/# 200 # - - ---- 1/1/0/0/1 0/0 "POST / HTTP/1.1""#]).await;
    });
}
