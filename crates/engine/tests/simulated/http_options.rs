//! Tests of options about HTTP messages: the messages of servers and clients and their times, in any division by the
//! network.

use testkit::{Peer, Service, Stopwatch, sleep};

use crate::messages::*;
use crate::world::*;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

#[test]
fn servers_are_told_of_clients_in_the_order_of_haproxy() {
    let body = "option forwarded\n option forwardfor\n option originalto\n http-send-name-header x-server\n \
                server s1 10.0.1.1:80";
    listen(body).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        let ip = client.local_address().to_string();
        let ip = ip.rsplit_once(':').unwrap().0.to_owned();
        client.send("GET / HTTP/1.1\r\nX-Server: me\r\nHost: a\r\nForwarded: for=192.0.2.1\r\n\r\n").await;
        let mut server = s1.accept().await;
        server
            .expect(format!(
                "GET / HTTP/1.1\r\nhost: a\r\nforwarded: for=192.0.2.1,proto=http;for={ip}\r\nx-forwarded-for: {ip}\r\n\
                 x-original-to: 10.0.0.1\r\nx-server: s1\r\n\r\n"
            ))
            .await;
        server.send(OK).await;
        client.expect(OK).await;
        world.forget_log();
    });
}

#[test]
fn a_body_is_waited_for_however_it_comes() {
    for (framing, body) in [
        ("content-length: 26", "abcdefghijklmnopqrstuvwxyz"),
        ("transfer-encoding: chunked", "1A\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n"),
    ] {
        listen("option http-buffer-request\n server s1 10.0.1.1:80").run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(format!("POST / HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n")).await;
            let (last, most) = body.split_at(body.len() - 1);
            client.send_slowly(last, 3, 20).await;
            sleep(50).await;
            s1.is_left_alone();
            client.send(most).await;
            let mut server = s1.accept().await;
            server.expect(format!("POST / HTTP/1.1\r\nhost: a\r\n{framing}\r\n\r\n{body}")).await;
            server.send(OK).await;
            client.expect(OK).await;
            world.forget_log();
        });
    }
}

#[test]
fn a_body_that_stays_away_is_given_up_on_time() {
    let body = "option http-buffer-request\n timeout http-request 200ms\n server s1 10.0.1.1:80";
    listen(body).run(|world| async move {
        let mut s1 = Service::at(S1);
        let watch = Stopwatch::start();
        let mut client = Peer::connect(WEIR).await;
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n").await;
        client.send_slowly("01234", 1, 30).await;
        client.expect(closing_page(408)).await;
        watch.took(200);
        client.expect_eof().await;
        s1.is_left_alone();
        world.expect_log(&[r#"l l/<NOSRV> -1/-1/-1/-1/200 408 0 - - cR-- 1/1/0/0/0 0/0 "POST / HTTP/1.1""#]).await;
    });
}

#[test]
fn a_body_longer_than_a_buffer_goes_on_when_the_buffer_is_full() {
    listen("option http-buffer-request\n server s1 10.0.1.1:80").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n").await;
        client.send("a".repeat(20_000)).await;
        let mut server = s1.accept().await;
        server.expect("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\n").await;
        server.expect("a".repeat(20_000)).await;
        client.send("b".repeat(80_000)).await;
        server.expect("b".repeat(80_000)).await;
        server.send(OK).await;
        client.expect(OK).await;
        world.forget_log();
    });
}

#[test]
fn probes_are_ignored_and_late_requests_are_not() {
    listen("option http-ignore-probes\n timeout http-request 200ms").run(|world| async move {
        let watch = Stopwatch::start();
        let mut silent = Peer::connect(WEIR).await;
        silent.expect_eof().await;
        watch.took(200);
        let mut leaving = Peer::connect(WEIR).await;
        leaving.half_close();
        leaving.expect_eof().await;
        world.expect_no_log();
        let mut late = Peer::connect(WEIR).await;
        late.send("G").await;
        late.expect(reader_page(408)).await;
        late.expect_eof().await;
        world.expect_log(&[r#"l l/<NOSRV> -1/-1/-1/-1/200 408 0 - - cR-- 1/1/0/0/0 0/0 "<BADREQ>""#]).await;
    });
}

#[test]
fn trailers_are_dropped_and_respelled_however_they_are_cut() {
    let rows = [
        ("option http-drop-response-trailers", "0\r\n\r\n"),
        ("option h1-case-adjust-bogus-client", "0\r\nX-A: 1\r\n\r\n"),
        ("option http-drop-response-trailers\n option h1-case-adjust-bogus-client", "0\r\n\r\n"),
    ];
    for (options, end) in rows {
        let body = format!("{options}\n server s1 10.0.1.1:80");
        listen(&body).global("h1-case-adjust x-a X-A").run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            let mut server = s1.accept().await;
            server.expect(GET_AT_SERVER).await;
            server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n").await;
            client.expect("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n").await;
            server.send_slowly("0\r\nx-a: 1\r\n\r\n", 2, 5).await;
            client.expect(end).await;
            world.forget_log();
        });
    }
}

#[test]
fn what_is_sent_to_a_silent_server_is_no_sign_of_its_life() {
    // The upload ends after 200 ms; by then the server was silent for too long, if only its own bytes count.
    for (options, millis) in [("", 350), ("option independent-streams\n", 200)] {
        let body = format!("{options} timeout server 150ms\n server s1 10.0.1.1:80");
        listen(&body).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let watch = Stopwatch::start();
            let mut client = Peer::connect(WEIR).await;
            client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n").await;
            let mut server = s1.accept().await;
            client.send("abc").await;
            sleep(200).await;
            client.send("d").await;
            client.expect(page(504)).await;
            watch.took(millis);
            server.expect("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nabcd").await;
            world.forget_log();
        });
    }
}

#[test]
fn a_tunnel_lasts_while_one_side_speaks_unless_streams_are_independent() {
    for (options, millis) in [("", 500), ("option independent-streams\n", 300)] {
        let body = format!("{options} mode tcp\n timeout client 10s\n timeout server 300ms\n server s1 10.0.1.1:80");
        listen(&body).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let watch = Stopwatch::start();
            let mut client = Peer::connect(WEIR).await;
            let server = s1.accept().await;
            sleep(200).await;
            client.send("x").await;
            client.expect_end().await;
            watch.took(millis);
            drop(server);
            world.forget_log();
        });
    }
}

#[test]
fn a_pretended_keep_alive_closes_the_server_all_the_same() {
    listen("option http-server-close\n option http-pretend-keepalive\n server s1 10.0.1.1:80").run(
        |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            for _ in 0..2 {
                client.send(GET).await;
                let mut server = s1.accept().await;
                server.expect(GET_AT_SERVER).await;
                server.send(OK).await;
                client.expect(OK).await;
                server.expect_end().await;
            }
            world.forget_log();
        },
    );
}

#[test]
fn what_is_tolerated_goes_on_in_normal_form_or_not_at_all() {
    let body = "option accept-unsafe-violations-in-http-request\n server s1 10.0.1.1:80";
    let rows: &[(&str, Option<&str>)] = &[
        ("bad name: 1\r\n", Some("")),
        ("transfer-encoding : chunked\r\n", Some("")),
        ("x\u{e9}: 1\r\n", Some("")),
        ("x: a\0b\r\n", Some("x: a\0b\r\n")),
        ("content-length: 2\r\ncontent-length: 3\r\n", None),
        ("transfer-encoding: chunked, chunked\r\n", None),
        ("transfer-encoding: xchunked\r\n", None),
        ("host: b\r\n", None),
        ("x: a\rb\r\n", None),
    ];
    for &(lines, passed) in rows {
        listen(body).workers(&[1]).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n")).await;
            match passed {
                Some(line) => {
                    let mut server = s1.accept().await;
                    server.expect(format!("GET / HTTP/1.1\r\nhost: a\r\n{line}\r\n")).await;
                    server.send(OK).await;
                    client.expect(OK).await;
                }
                None => {
                    client.receive_rest().await;
                    s1.is_left_alone();
                }
            }
            world.forget_log();
        });
    }
}
