//! Tests of rules that make a message wait, to the millisecond: `tarpit`, `pause`, `wait-for-body`.

use testkit::{Peer, Service, Stopwatch, sleep};

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

/// Rules of both sides wait, and each continues after the rule that caused it; `timeout server` is shorter than that.
const PAUSES: &str = "frontend f\n bind 10.0.0.1:80\n http-response add-header x 3\n http-response pause 40ms\n \
                      http-response add-header x 4\n default_backend b\nbackend b\n timeout server 50ms\n \
                      http-response add-header x 1\n http-response pause 100ms\n http-response add-header x 2\n \
                      server s1 10.0.1.1:80";

#[test]
fn an_answer_pauses_for_the_rules_of_both_sides() {
    config(PAUSES).run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        let watch = Stopwatch::start();
        server.send(OK).await;
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx: 1\r\nx: 2\r\nx: 3\r\nx: 4\r\n\r\nok").await;
        watch.took(140);
        world.expect_log(&[r#"f b/s1 0/0/0/0/140 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

const BODY: &str = "timeout server 10s\n http-response wait-for-body time 300ms\n \
                    http-response set-header x %[res.body]\n server s1 10.0.1.1:80";

#[test]
fn an_answer_waits_for_its_body() {
    for (head, body) in
        [("Content-Length: 4", ["ab", "cd"]), ("Transfer-Encoding: chunked", ["2\r\nab\r\n2\r\nc", "d\r\n0\r\n\r\n"])]
    {
        listen(BODY).run(move |_| async move {
            let (mut client, mut server, _s1) = asked().await;
            server.send(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{}", body[0])).await;
            client.expect_silence(200).await;
            server.send(body[1]).await;
            let head = head.to_lowercase();
            client.expect(format!("HTTP/1.1 200 OK\r\n{head}\r\nx: abcd\r\n\r\n{}", shown(&head))).await;
        });
    }
}

/// The body of that test as received by the client.
fn shown(head: &str) -> &'static str {
    if head.contains("chunked") { "4\r\nabcd\r\n0\r\n\r\n" } else { "abcd" }
}

#[test]
fn an_answer_whose_body_does_not_come_is_late() {
    listen(BODY).run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        let watch = Stopwatch::start();
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab").await;
        client.expect(page(504)).await;
        watch.took(300);
        world.expect_log(&[r#"l l/s1 0/0/0/0/300 504 # - - sH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn an_answer_goes_on_when_enough_of_its_body_is_here_or_the_server_has_closed() {
    let rules = "http-response wait-for-body time 300ms at-least 3\n http-response set-header x %[res.body]\n \
                 server s1 10.0.1.1:80";
    listen(rules).run(|_| async move {
        let (mut client, mut server, _s1) = asked().await;
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab").await;
        client.expect_silence(100).await;
        server.send("c").await;
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 4\r\nx: abc\r\n\r\nabc").await;
        server.send("d").await;
        client.expect("d").await;
    });
    listen(BODY).run(|_| async move {
        let (mut client, mut server, _s1) = asked().await;
        let watch = Stopwatch::start();
        server.send("HTTP/1.1 200 OK\r\n\r\nab").await;
        sleep(100).await;
        server.send("c").await;
        server.half_close();
        client.expect("HTTP/1.1 200 OK\r\nx: abc\r\nconnection: close\r\n\r\nabc").await;
        watch.took(100);
    });
}

#[test]
fn an_answer_does_not_wait_where_its_body_fits_into_no_buffer() {
    listen(BODY.replace("%[res.body]", "1").as_str()).run(|_| async move {
        let (mut client, mut server, _s1) = asked().await;
        let watch = Stopwatch::start();
        let body = "x".repeat(30_000);
        server.send(format!("HTTP/1.1 200 OK\r\nContent-Length: 30000\r\n\r\n{body}")).await;
        client.expect(format!("HTTP/1.1 200 OK\r\ncontent-length: 30000\r\nx: 1\r\n\r\n{body}")).await;
        watch.took(0);
    });
}

/// After a body in a large buffer there may be more bytes than an ordinary buffer holds.
#[test]
fn requests_behind_a_body_in_a_large_buffer_are_all_answered() {
    const MANY: usize = 2_000;
    let rules =
        "http-request wait-for-body time 10s use-large-buffer if { method POST }\n http-request return status 200";
    listen(rules).global("    tune.bufsize.large 200000").run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        client.send(post(20_000) + &"b".repeat(20_000) + &GET.repeat(MANY)).await;
        for _ in 0..=MANY {
            client.expect(DONE).await;
        }
        world.forget_log();
    });
}
