//! Every `timeout`, to the millisecond (configuration manual, section 4.2).

use std::time::Duration;

use rt::net::Address;
use testkit::{Peer, Service, Stopwatch, sleep};

use crate::messages::*;
use crate::world::*;

/// A client that sends nothing or a part of a head gets 408 after `millis`.
fn late_head(body: &str, sent: &'static str, millis: u64) {
    listen(body).run(move |world| async move {
        let watch = Stopwatch::start();
        let mut client = Peer::connect(WEIR).await;
        client.send(sent).await;
        client.expect(reader_page(408)).await;
        watch.took(millis);
        client.expect_eof().await;
        let line = format!(r#"l l/<NOSRV> -1/-1/-1/-1/{millis} 408 0 - - cR-- 1/1/0/0/0 0/0 "<BADREQ>""#);
        world.expect_log(&[&line]).await;
    });
}

#[test]
fn http_request_with_nothing_sent() {
    late_head("timeout http-request 200ms", "", 200);
}

#[test]
fn http_request_in_the_head() {
    late_head("timeout http-request 200ms\n timeout client 100ms", "GET / HTT", 200);
}

#[test]
fn client_with_nothing_sent() {
    late_head("timeout client 200ms", "", 200);
}

#[test]
fn client_in_the_head() {
    late_head("timeout client 200ms", "GET / HTT", 200);
}

#[test]
fn http_request_counts_from_the_start_however_the_head_comes() {
    listen("timeout http-request 1s\n timeout client 100ms").run(|world| async move {
        let watch = Stopwatch::start();
        let mut client = Peer::connect(WEIR).await;
        client.send_slowly(&GET[..20], 1, 45).await;
        client.expect(reader_page(408)).await;
        watch.took(1000);
        client.expect_eof().await;
        world.expect_log(&[r#"l l/<NOSRV> -1/-1/-1/-1/1000 408 0 - - cR-- 1/1/0/0/0 0/0 "<BADREQ>""#]).await;
    });
}

#[test]
fn http_request_of_the_second_request_counts_from_its_first_byte() {
    listen("timeout http-request 200ms\n timeout http-keep-alive 10s\n server s1 10.0.1.1:80").run(
        |world| async move {
            serve_ok(&world.scope, S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            client.expect(OK_AT_CLIENT).await;
            client.expect_silence(3000).await;
            let watch = Stopwatch::start();
            client.send("GET").await;
            client.expect(reader_page(408)).await;
            watch.took(200);
            client.expect_eof().await;
            world
                .expect_log(&[
                    r#"l l/s1 0/0/0/0/0 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#,
                    r#"l l/<NOSRV> -1/-1/-1/-1/200 408 0 - - cR-- 1/1/0/0/0 0/0 "<BADREQ>""#,
                ])
                .await;
        },
    );
}

#[test]
fn http_request_spares_the_body() {
    listen("timeout http-request 200ms\n server s1 10.0.1.1:80").run(|world| async move {
        let (mut client, mut server, _s1) = uploading().await;
        client.expect_silence(1000).await;
        client.send("defghij").await;
        server.expect("defghij").await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        world.expect_log(&[r#"l l/s1 0/0/0/1000/1000 200 # - - ---- 1/1/0/0/0 0/0 "POST / HTTP/1.1""#]).await;
    });
}

/// A client that is idle after an answer is closed silently after `millis`.
fn idle(body: &str, millis: u64) {
    listen(&format!("{body}\n server s1 10.0.1.1:80")).run(move |world| async move {
        serve_ok(&world.scope, S1);
        let mut client = Peer::connect(WEIR).await;
        for _ in 0..2 {
            client.send(GET).await;
            client.expect(OK_AT_CLIENT).await;
            world.expect_log(&[r#"l l/s1 0/0/0/0/0 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
        }
        let watch = Stopwatch::start();
        client.expect_eof().await;
        watch.took(millis);
    });
}

#[test]
fn http_keep_alive() {
    idle("timeout http-keep-alive 200ms\n timeout http-request 100ms\n timeout client 300ms", 200);
}

#[test]
fn http_keep_alive_from_http_request() {
    idle("timeout http-request 200ms\n timeout client 100ms", 200);
}

#[test]
fn http_keep_alive_from_client() {
    idle("timeout client 200ms", 200);
}

#[test]
fn client_in_the_body() {
    listen("timeout client 200ms\n timeout http-request 1s\n server s1 10.0.1.1:80").run(|world| async move {
        let (mut client, mut server, _s1) = uploading().await;
        let watch = Stopwatch::start();
        client.expect(closing_page(400)).await;
        watch.took(200);
        client.expect_eof().await;
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/-1/200 400 # - - cH-- 1/1/0/0/0 0/0 "POST / HTTP/1.1""#]).await;
    });
}

#[test]
fn client_in_the_body_after_the_answers_head() {
    listen("timeout client 200ms\n server s1 10.0.1.1:80").run(|world| async move {
        let (mut client, mut server, _s1) = uploading().await;
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok").await;
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nok").await;
        let watch = Stopwatch::start();
        client.expect_eof().await;
        watch.took(200);
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/200 200 # - - cD-- 1/1/0/0/0 0/0 "POST / HTTP/1.1""#]).await;
    });
}

#[test]
fn client_is_pushed_ahead_by_every_byte_of_the_body() {
    listen("timeout client 200ms\n server s1 10.0.1.1:80").run(|world| async move {
        let (mut client, mut server, _s1) = uploading().await;
        for byte in ["d", "e", "f", "g", "h", "i", "j"] {
            sleep(190).await;
            client.send(byte).await;
            server.expect(byte).await;
        }
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        world.expect_log(&[r#"l l/s1 0/0/0/*/* 200 # - - ---- 1/1/0/0/0 0/0 "POST / HTTP/1.1""#]).await;
    });
}

#[test]
fn client_that_does_not_read_its_answer() {
    listen("timeout client 300ms\n server s1 10.0.1.1:80").run(|world| async move {
        let (client, mut server, _s1) = asked().await;
        let watch = Stopwatch::start();
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 30000000\r\n\r\n").await;
        assert!(!server.try_send(vec![b'x'; 3_000_000]).await, "the server is cut off");
        assert!((300..400).contains(&watch.elapsed().as_millis()), "{watch:?}");
        world.expect_log(&[r#"l l/s1 0/0/0/0/* 200 # - - cD-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
        client.close();
    });
}

#[test]
fn client_is_not_late_while_the_server_works() {
    listen("timeout client 150ms\n server s1 10.0.1.1:80").run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        client.expect_silence(5000).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        let watch = Stopwatch::start();
        client.expect_eof().await;
        watch.took(150);
        world.expect_log(&[r#"l l/s1 0/0/0/5000/5000 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn server_before_the_answer() {
    listen("timeout server 200ms\n server s1 10.0.1.1:80").run(|world| async move {
        let (mut client, mut server, mut s1) = asked().await;
        let watch = Stopwatch::start();
        client.expect(page(504)).await;
        watch.took(200);
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/-1/200 504 # - - sH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
        client.send(GET).await;
        s1.accept().await.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/0 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn server_in_the_head() {
    listen("timeout server 200ms\n server s1 10.0.1.1:80").run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        sleep(100).await;
        server.send("HTTP/1.1 200 OK\r\nConte").await;
        let watch = Stopwatch::start();
        client.expect(page(504)).await;
        watch.took(100);
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/-1/200 504 # - - sH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn server_in_the_body() {
    listen("timeout server 200ms\n server s1 10.0.1.1:80").run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok").await;
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nok").await;
        sleep(190).await;
        server.send("m").await;
        let watch = Stopwatch::start();
        client.expect("m").await;
        client.expect_eof().await;
        watch.took(200);
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/390 200 # - - sD-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn server_is_not_late_while_the_client_sends_its_body() {
    listen("timeout server 200ms\n server s1 10.0.1.1:80").run(|world| async move {
        let (mut client, mut server, _s1) = uploading().await;
        client.expect_silence(1000).await;
        client.send("defghij").await;
        server.expect("defghij").await;
        let watch = Stopwatch::start();
        client.expect(page(504)).await;
        watch.took(200);
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/-1/1200 504 # - - sH-- 1/1/0/0/0 0/0 "POST / HTTP/1.1""#]).await;
    });
}

/// Makes the server's address answer no connection attempt.
fn unanswered() {
    rt::sim::network().black_hole(&Address::Inet(S1.parse().unwrap()), true);
}

#[test]
fn connect_for_each_attempt() {
    listen("timeout connect 100ms\n retries 2\n server s1 10.0.1.1:80").run(|world| async move {
        unanswered();
        let mut client = Peer::connect(WEIR).await;
        let watch = Stopwatch::start();
        client.send(GET).await;
        client.expect(page(503)).await;
        watch.took(300);
        world.expect_log(&[r#"l l/s1 0/0/-1/-1/300 503 # - - sC-- 1/1/0/0/2 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn connect_in_tcp_mode() {
    listen("mode tcp\n option tcplog\n timeout connect 100ms\n retries 1\n server s1 10.0.1.1:80").run(
        |world| async move {
            unanswered();
            let watch = Stopwatch::start();
            let mut client = Peer::connect(WEIR).await;
            client.expect_eof().await;
            watch.took(200);
            world.expect_log(&["l l/s1 0/-1/200 0 sC 1/1/0/0/1 0/0"]).await;
        },
    );
}

/// A request that waits for a busy server gets 503 after 200 ms.
fn queued(body: &str) {
    listen(&format!("{body}\n server s1 10.0.1.1:80 maxconn 1")).run(|world| async move {
        let (mut first, mut server, _s1) = asked().await;
        let mut second = Peer::connect(WEIR).await;
        let watch = Stopwatch::start();
        second.send(get("/2")).await;
        second.expect(page(503)).await;
        watch.took(200);
        world.expect_log(&[r#"l l/<NOSRV> 0/200/-1/-1/200 503 # - - sQ-- 2/2/1/0/0 0/1 "GET /2 HTTP/1.1""#]).await;
        server.send(OK).await;
        first.expect(OK_AT_CLIENT).await;
        world.expect_log(&[r#"l l/s1 0/0/0/200/200 200 # - - ---- 2/2/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn queue() {
    queued("timeout queue 200ms\n timeout connect 1s");
}

#[test]
fn queue_from_connect() {
    queued("timeout connect 200ms");
}

const SHORT: &str = "timeout client 100ms\n timeout server 100ms\n timeout tunnel 500ms\n server s1 10.0.1.1:80";

#[test]
fn tunnel_after_an_upgrade() {
    listen(SHORT).run(|world| async move {
        let (mut client, mut server, _s1) = upgraded().await;
        client.expect_silence(400).await;
        client.send("still here").await;
        server.expect("still here").await;
        client.expect_silence(400).await;
        server.send("I too").await;
        client.expect("I too").await;
        let watch = Stopwatch::start();
        client.expect_eof().await;
        server.expect_end().await;
        watch.took(500);
        let lines = world.take_log().await;
        let cause = |letter| format!(r#"l l/s1 0/0/0/0/1300 101 # - - {letter}D-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#);
        // Both sides are late: either may be in the log.
        assert!(["c", "s"].iter().any(|letter| testkit::line_matches(&lines[0], &cause(letter))), "{lines:?}");
    });
}

#[test]
fn tunnel_in_tcp_mode() {
    listen(&format!("mode tcp\n option tcplog\n {SHORT}")).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        let mut server = s1.accept().await;
        client.expect_silence(400).await;
        client.send("a").await;
        server.expect("a").await;
        let watch = Stopwatch::start();
        client.expect_eof().await;
        server.expect_end().await;
        watch.took(500);
        let lines = world.take_log().await;
        let cause = |letter| format!("l l/s1 0/0/900 0 {letter}D 1/1/0/0/0 0/0");
        assert!(["c", "s"].iter().any(|letter| testkit::line_matches(&lines[0], &cause(letter))), "{lines:?}");
    });
}

/// A TCP session that has carried a byte.
async fn session() -> (Peer, Peer, Service) {
    let mut s1 = Service::at(S1);
    let mut client = Peer::connect(WEIR).await;
    client.send("a").await;
    let mut server = s1.accept().await;
    server.expect("a").await;
    (client, server, s1)
}

#[test]
fn client_in_tcp_mode_closes_its_direction() {
    listen("mode tcp\n option tcplog\n timeout client 200ms\n server s1 10.0.1.1:80").run(|world| async move {
        let (mut client, mut server, _s1) = session().await;
        let watch = Stopwatch::start();
        server.expect_eof().await;
        watch.took(200);
        server.close();
        client.expect_eof().await;
        world.expect_log(&["l l/s1 0/0/200 0 cD 1/1/0/0/0 0/0"]).await;
    });
}

#[test]
fn server_in_tcp_mode_closes_its_direction() {
    listen("mode tcp\n option tcplog\n timeout server 200ms\n server s1 10.0.1.1:80").run(|world| async move {
        let (mut client, mut server, _s1) = session().await;
        let watch = Stopwatch::start();
        client.expect_eof().await;
        watch.took(200);
        client.close();
        server.expect_end().await;
        world.expect_log(&["l l/s1 0/0/200 0 sD 1/1/0/0/0 0/0"]).await;
    });
}

/// A half-closed session ends 200 ms after its last byte, or at once if that time has passed.
fn fin(body: &'static str, closes: impl Fn(&mut Peer, &mut Peer) + Copy + 'static, cause: &'static str) {
    for (silence, rest) in [(50, 150), (1000, 0)] {
        listen(&format!("mode tcp\n option tcplog\n {body}\n server s1 10.0.1.1:80")).run(move |world| async move {
            let watch = Stopwatch::start();
            let (mut client, mut server, _s1) = session().await;
            sleep(silence).await;
            closes(&mut client, &mut server);
            client.expect_eof().await;
            server.expect_eof().await;
            watch.took(silence + rest);
            let line = format!("l l/s1 0/0/{} 0 {cause} 1/1/0/0/0 0/0", silence + rest);
            world.expect_log(&[&line]).await;
        });
    }
}

#[test]
fn client_fin() {
    fin("timeout client-fin 200ms", |_, server| server.half_close(), "cD");
}

#[test]
fn server_fin() {
    fin("timeout server-fin 200ms", |client, _| client.half_close(), "sD");
}

#[test]
fn timers_on_a_slow_network() {
    // Each direction takes 50 ms, which must not count twice.
    let far = |_| rt::sim::Link {
        latency: Duration::from_millis(50),
        jitter: Duration::ZERO,
        fragment: false,
        ..Default::default()
    };
    listen("timeout server 200ms\n server s1 10.0.1.1:80").seeds(0..2).links(far).run(|world| async move {
        let (mut client, server, _s1) = asked().await;
        client.expect(page(504)).await;
        // The connection to the server takes a round trip, `timeout server` counts from the request's last byte.
        world.expect_log(&[r#"l l/s1 0/0/100/-1/300 504 # - - sH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
        drop(server);
    });
}

/// The timeout begins when the answer begins to wait for the client, not with the request.
#[test]
fn client_is_not_late_with_an_answer_that_came_late() {
    listen("timeout client 5s\n timeout server 60s\n server s1 10.0.1.1:80").shuffled().seeds(0..8).run(
        |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            let mut server = s1.accept().await;
            server.expect(GET_AT_SERVER).await;
            sleep(10_000).await;
            server.send(OK).await;
            client.expect(OK_AT_CLIENT).await;
            world.forget_log();
        },
    );
}
