//! Tests of a client's FIN at every time, with and without `option abortonclose`, which is the default in HTTP mode.

use testkit::{Peer, Service, Stopwatch, sleep};

use crate::messages::*;
use crate::world::*;

const PATIENT: &str = "no option abortonclose\n server s1 10.0.1.1:80";

#[test]
fn while_the_answer_is_awaited_by_default() {
    for body in ["server s1 10.0.1.1:80", "option abortonclose\n server s1 10.0.1.1:80"] {
        // Right after the request, and later.
        for millis in [0, 50] {
            listen(body).run(move |world| async move {
                let (mut client, mut server, _s1) = asked().await;
                sleep(millis).await;
                client.half_close();
                let watch = Stopwatch::start();
                client.expect(closing_page(400)).await;
                client.expect_eof().await;
                server.expect_end().await;
                // A client is watched only some milliseconds after its request.
                assert!(watch.elapsed().as_millis() <= 7, "{watch:?}");
                world.expect_log(&[r#"l l/s1 0/0/0/-1/# 400 # - - CH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
            });
        }
    }
}

#[test]
fn while_the_answer_is_awaited_without_the_option() {
    listen(PATIENT).run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        client.half_close();
        server.expect_silence(100).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        client.expect_eof().await;
        world.expect_log(&[r#"l l/s1 0/0/0/100/100 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn together_with_the_request() {
    listen(PATIENT).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send("GET / HTTP/1.0\r\n\r\n").await;
        client.half_close();
        let mut server = s1.accept().await;
        server.expect("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n").await;
        sleep(50).await;
        server.send(OK).await;
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok").await;
        client.expect_eof().await;
        world.expect_log(&[r#"l l/s1 0/0/0/50/50 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.0""#]).await;
    });
}

#[test]
fn two_requests_and_a_fin() {
    listen(PATIENT).run(|_| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/1") + &get("/2")).await;
        client.half_close();
        let mut server = s1.accept().await;
        for path in ["/1", "/2"] {
            server.expect(get_at_server(path)).await;
            sleep(20).await;
            server.send(OK).await;
            client.expect(OK_AT_CLIENT).await;
        }
        client.expect_eof().await;
    });
}

#[test]
fn within_the_answer_by_default() {
    listen("server s1 10.0.1.1:80").run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok").await;
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nok").await;
        sleep(50).await;
        client.half_close();
        client.expect_eof().await;
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/50 200 # - - CD-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

/// The server gets the FIN, and decides when its answer ends.
#[test]
fn within_an_answer_that_the_end_delimits() {
    listen("server s1 10.0.1.1:80").run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        server.send("HTTP/1.1 200 OK\r\n\r\nhel").await;
        client.expect("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhel").await;
        sleep(50).await;
        client.half_close();
        server.expect_eof().await;
        client.expect_silence(50).await;
        server.send("lo").await;
        server.close();
        client.expect("lo").await;
        client.expect_eof().await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/100 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn within_the_answer_without_the_option() {
    listen(PATIENT).run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok").await;
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nok").await;
        client.half_close();
        sleep(50).await;
        server.send("me").await;
        client.expect("me").await;
        client.expect_eof().await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/50 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn within_the_body_is_the_end_with_or_without_the_option() {
    for body in ["server s1 10.0.1.1:80", PATIENT] {
        listen(body).run(move |world| async move {
            let (mut client, mut server, _s1) = uploading().await;
            sleep(50).await;
            client.half_close();
            client.expect_end().await;
            server.expect_end().await;
            let lines = world.take_log().await;
            let line = |status| format!(r#"l l/s1 0/0/0/-1/50 {status} # - - CH-- 1/1/0/0/0 0/0 "POST / HTTP/1.1""#);
            assert!(["400", "-1"].iter().any(|status| testkit::line_matches(&lines[0], &line(status))), "{lines:?}");
        });
    }
}

#[test]
fn behind_the_answer() {
    listen("server s1 10.0.1.1:80").run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        client.half_close();
        client.expect_eof().await;
        server.expect_silence(100).await;
        assert_eq!((world.sessions(), world.idle_links()), (0, 1));
        world.expect_log(&[r#"l l/s1 0/0/0/0/0 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn in_the_queue() {
    listen("server s1 10.0.1.1:80 maxconn 1").run(|world| async move {
        let (_first, _server, _s1) = asked().await;
        let mut second = Peer::connect(WEIR).await;
        second.send(get("/2")).await;
        sleep(50).await;
        second.half_close();
        second.expect_eof().await;
        world.expect_log(&[r#"l l/<NOSRV> 0/50/-1/-1/50 -1 0 - - CQ-- 2/2/1/0/0 0/1 "GET /2 HTTP/1.1""#]).await;
        // The log is not checked from here on: the end of the other one is the subject of another test.
        world.forget_log();
    });
}

#[test]
fn in_the_queue_without_the_option() {
    listen(&format!("{PATIENT} maxconn 1")).run(|_| async move {
        let (mut first, mut server, mut s1) = asked().await;
        let mut second = Peer::connect(WEIR).await;
        second.send(get("/2")).await;
        second.half_close();
        second.expect_silence(100).await;
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok").await;
        first.expect(OK_AT_CLIENT).await;
        let mut server = s1.accept().await;
        server.expect(get_at_server("/2")).await;
        server.send(OK).await;
        second.expect(OK_AT_CLIENT).await;
        second.expect_eof().await;
    });
}

#[test]
fn between_two_attempts_without_the_option() {
    listen(&format!("retries 3\n timeout connect 100ms\n {PATIENT}")).run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        sleep(50).await;
        client.half_close();
        let mut s1 = Service::at(S1);
        let mut server = s1.accept().await;
        server.expect(GET_AT_SERVER).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        client.expect_eof().await;
        world.expect_log(&[r#"l l/s1 0/0/100/0/100 200 # - - ---- 1/1/0/0/1 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn of_a_server_in_the_upload() {
    listen("server s1 10.0.1.1:80").run(|world| async move {
        let (mut client, mut server, _s1) = uploading().await;
        sleep(50).await;
        server.half_close();
        client.expect(page(502)).await;
        world.expect_log(&[r#"l l/s1 0/0/0/-1/50 502 # - - SH-- 1/1/0/0/0 0/0 "POST / HTTP/1.1""#]).await;
    });
}

#[test]
fn of_a_server_right_behind_its_answer() {
    listen("server s1 10.0.1.1:80").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        for _ in 0..3 {
            client.send(GET).await;
            let mut server = s1.accept().await;
            server.expect(GET_AT_SERVER).await;
            server.send(OK).await;
            server.close();
            client.expect(OK_AT_CLIENT).await;
            sleep(2).await;
            world.expect_log(&[r#"l l/s1 0/0/0/0/0 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
        }
    });
}

#[test]
fn that_ends_an_answer_of_unknown_length() {
    listen("server s1 10.0.1.1:80").run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        server.send("HTTP/1.1 200 OK\r\n\r\nhel").await;
        client.expect("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhel").await;
        sleep(50).await;
        server.send("lo").await;
        server.close();
        client.expect("lo").await;
        client.expect_eof().await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/50 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

const TCP: &str = "mode tcp\n option tcplog\n server s1 10.0.1.1:80";

#[test]
fn in_tcp_mode_each_direction_ends_by_itself() {
    for client_first in [true, false] {
        listen(TCP).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send("ping").await;
            let mut server = s1.accept().await;
            server.expect("ping").await;
            let (one, other) = if client_first { (&mut client, &mut server) } else { (&mut server, &mut client) };
            one.half_close();
            other.expect_eof().await;
            sleep(50).await;
            other.send("more").await;
            one.expect("more").await;
            other.half_close();
            one.expect_eof().await;
            let bytes = if client_first { 4 } else { 0 };
            let line = format!("l l/s1 0/0/50 {bytes} -- 1/1/0/0/0 0/0");
            world.expect_log(&[&line]).await;
        });
    }
}

#[test]
fn in_tcp_mode_together_with_the_bytes() {
    listen(TCP).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send("ping").await;
        client.half_close();
        let mut server = s1.accept().await;
        server.expect("ping").await;
        server.expect_eof().await;
        server.send("pong").await;
        server.close();
        client.expect("pong").await;
        client.expect_eof().await;
        world.expect_log(&["l l/s1 0/0/0 4 -- 1/1/0/0/0 0/0"]).await;
    });
}
