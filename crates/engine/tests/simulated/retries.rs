//! Tests of failed connection attempts: the pause before a retry on the same server, and immediate attempts on other
//! servers (`retries`, `option redispatch`).

use rt::net::Address;
use testkit::{Peer, Service, Stopwatch, sleep};

use crate::messages::*;
use crate::world::*;

/// Neither server has a listener: 503 after `millis`, with this line in the log.
fn nobody_listens(body: &'static str, millis: u64, line: &'static str) {
    listen(body).run(move |world| async move {
        let mut client = Peer::connect(WEIR).await;
        let watch = Stopwatch::start();
        client.send(GET).await;
        client.expect(page(503)).await;
        watch.took(millis);
        world.expect_log(&[line]).await;
    });
}

#[test]
fn the_pause_is_a_second() {
    let line = r#"l l/s1 0/0/-1/-1/3000 503 # - - SC-- 1/1/0/0/3 0/0 "GET / HTTP/1.1""#;
    nobody_listens("retries 3\n server s1 10.0.1.1:80", 3000, line);
}

#[test]
fn the_pause_is_never_longer_than_the_time_to_connect() {
    let line = r#"l l/s1 0/0/-1/-1/900 503 # - - SC-- 1/1/0/0/3 0/0 "GET / HTTP/1.1""#;
    nobody_listens("retries 3\n timeout connect 300ms\n server s1 10.0.1.1:80", 900, line);
}

#[test]
fn no_retries_no_pause() {
    let line = r#"l l/s1 0/0/-1/-1/0 503 # - - SC-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#;
    nobody_listens("retries 0\n server s1 10.0.1.1:80", 0, line);
}

const TWO: &str = "retries 3\n option redispatch\n server s1 10.0.1.1:80\n server s2 10.0.1.2:80";

#[test]
fn redispatches_follow_each_other_at_once() {
    for (balance, server) in [("roundrobin", "s2"), ("leastconn", "*"), ("first", "s2")] {
        listen(&format!("balance {balance}\n {TWO}")).run(move |world| async move {
            let mut client = Peer::connect(WEIR).await;
            let watch = Stopwatch::start();
            client.send(GET).await;
            client.expect(page(503)).await;
            watch.took(0);
            let server = if server == "*" { "*".to_owned() } else { format!("l/{server}") };
            let line = format!(r#"l {server} 0/0/-1/-1/0 503 # - - SC-- 1/1/0/0/+3 0/0 "GET / HTTP/1.1""#);
            world.expect_log(&[&line]).await;
        });
    }
}

#[test]
fn a_redispatch_waits_for_nothing() {
    listen(&format!("balance roundrobin\n {TWO}")).run(|world| async move {
        serve_ok(&world.scope, S2);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        client.expect(OK_AT_CLIENT).await;
        world.expect_log(&[r#"l l/s2 0/0/0/0/0 200 # - - ---- 1/1/0/0/+1 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn an_attempt_that_nobody_answers_is_redispatched() {
    listen(&format!("balance roundrobin\n timeout connect 100ms\n {TWO}")).run(|world| async move {
        rt::sim::network().black_hole(&Address::Inet(S1.parse().unwrap()), true);
        serve_ok(&world.scope, S2);
        let mut client = Peer::connect(WEIR).await;
        let watch = Stopwatch::start();
        client.send(GET).await;
        client.expect(OK_AT_CLIENT).await;
        watch.took(100);
        let lines = world.take_log().await;
        let right = |queue| format!(r#"l l/s2 0/{queue}/*/0/100 200 # - - ---- 1/1/0/0/+1 0/0 "GET / HTTP/1.1""#);
        assert!([0, 100].iter().any(|queue| testkit::line_matches(&lines[0], &right(queue))), "{lines:?}");
    });
}

#[test]
fn without_redispatch_the_server_stays_the_same() {
    let body = "balance roundrobin\n retries 1\n timeout connect 300ms\n server s1 10.0.1.1:80\n server s2 10.0.1.2:80";
    listen(body).run(|world| async move {
        serve_ok(&world.scope, S2);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        client.expect(page(503)).await;
        world.expect_log(&[r#"l l/s1 0/0/-1/-1/300 503 # - - SC-- 1/1/0/0/1 0/0 "GET / HTTP/1.1""#]).await;
        client.send(GET).await;
        client.expect(OK_AT_CLIENT).await;
        world.expect_log(&[r#"l l/s2 0/0/0/0/0 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn a_server_that_comes_back_gets_the_request_and_its_body() {
    listen("retries 3\n timeout connect 300ms\n server s1 10.0.1.1:80").run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        let watch = Stopwatch::start();
        client.send(post(10) + "abc").await;
        sleep(400).await;
        client.send("defghij").await;
        let mut s1 = Service::at(S1);
        let mut server = s1.accept().await;
        watch.took(600);
        server.expect(post_at_server(10) + "abcdefghij").await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        world.expect_log(&[r#"l l/s1 0/0/600/0/600 200 # - - ---- 1/1/0/0/2 0/0 "POST / HTTP/1.1""#]).await;
    });
}

#[test]
fn a_request_that_was_sent_is_not_sent_again() {
    listen("retries 3\n option redispatch\n server s1 10.0.1.1:80").run(|world| async move {
        let (mut client, server, mut s1) = asked().await;
        server.close();
        client.expect(page(502)).await;
        world.expect_log(&[r#"l l/s1 0/0/0/-1/0 502 # - - SH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
        sleep(2000).await;
        s1.is_left_alone();
    });
}

#[test]
fn tcp_sessions_are_retried_and_redispatched_alike() {
    listen(&format!("mode tcp\n option tcplog\n balance roundrobin\n {TWO}")).run(|world| async move {
        let mut s2 = Service::at(S2);
        let mut client = Peer::connect(WEIR).await;
        client.send("a").await;
        let mut server = s2.accept().await;
        server.expect("a").await;
        client.close();
        server.expect_eof().await;
        server.close();
        world.expect_log(&["l l/s2 0/0/0 0 -- 1/1/0/0/+1 0/0"]).await;
    });
    listen("mode tcp\n option tcplog\n retries 2\n timeout connect 300ms\n server s1 10.0.1.1:80").run(
        |world| async move {
            let mut client = Peer::connect(WEIR).await;
            client.expect_end().await;
            world.expect_log(&["l l/s1 0/-1/600 0 SC 1/1/0/0/2 0/0"]).await;
        },
    );
}
