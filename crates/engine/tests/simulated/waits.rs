//! Rules that make a request wait, to the millisecond: `tarpit`, `pause`, `wait-for-body`.

use testkit::{Peer, Service, Stopwatch};

use crate::messages::*;
use crate::world::*;

const DONE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

#[test]
fn a_tarpit_answers_late() {
    listen("timeout tarpit 300ms\n http-request tarpit deny_status 503").run(|world| async move {
        let watch = Stopwatch::start();
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        client.expect(page(503)).await;
        watch.took(300);
        world.expect_log(&[r#"l l/<NOSRV> -1/300/-1/-1/300 503 # - - PT-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn a_tarpit_lasts_as_long_as_a_connect_may() {
    listen("timeout connect 70ms\n http-request tarpit deny_status 503").run(|world| async move {
        let watch = Stopwatch::start();
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        client.expect(page(503)).await;
        watch.took(70);
        world.expect_log(&[r#"l l/<NOSRV> -1/70/-1/-1/70 503 # - - PT-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn a_pause_counts_as_time_of_the_request() {
    listen("http-request pause 250ms\n http-request return status 200").run(|world| async move {
        let watch = Stopwatch::start();
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        client.expect(DONE).await;
        watch.took(250);
        world.expect_log(&[r#"l l/<NOSRV> 250/-1/-1/-1/250 200 # - - LR-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn a_body_that_does_not_come_is_a_late_request() {
    listen("http-request wait-for-body time 300ms\n http-request return status 200").run(|world| async move {
        let watch = Stopwatch::start();
        let mut client = Peer::connect(WEIR).await;
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab").await;
        client.expect(closing_page(408)).await;
        watch.took(300);
        world.expect_log(&[r#"l l/<NOSRV> -1/-1/-1/-1/300 408 # - - cR-- 1/1/0/0/0 0/0 "POST / HTTP/1.1""#]).await;
    });
}

#[test]
fn a_rule_sets_timeouts_of_one_request() {
    listen("timeout server 10s\n http-request set-timeout server 120ms if { path / }\n server s1 10.0.1.1:80").run(
        |world| async move {
            let mut servers = Service::at(S1);
            let watch = Stopwatch::start();
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            let mut server = servers.accept().await;
            server.expect(GET_AT_SERVER).await;
            client.expect(page(504)).await;
            watch.took(120);
            world.expect_log(&[r#"l l/s1 0/0/0/-1/120 504 # - - sH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
        },
    );
}

#[test]
fn a_rule_sets_the_time_of_the_tarpit() {
    let rules = "timeout tarpit 10s\n http-request set-timeout tarpit int(55)\n http-request tarpit deny_status 503";
    listen(rules).run(|_| async move {
        let watch = Stopwatch::start();
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        client.expect(page(503)).await;
        watch.took(55);
    });
}
