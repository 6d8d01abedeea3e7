//! Tests of servers that have answered and closed before the upload has ended: their slot is free, and the client goes on.

use testkit::{Peer, Service, Stopwatch, both, sleep};
use wire::h3;

use crate::fcgi;
use crate::h2;
use crate::http3_client;
use crate::http3_origin::Origin;
use crate::messages::*;
use crate::parts::{End, Part};
use crate::world::*;

const ONE: &str = "timeout client 5s\n http-reuse always\n server s1 10.0.1.1:80 maxconn 1";

/// The log line of an upload that was answered at once.
const LINE: &str = r#"l l/s1 0/0/0/0/0 200 # - - ---- #/#/#/#/0 0/0 "POST / HTTP/1.1""#;

/// A request that would wait in the queue if the slot were in use.
async fn is_served_at_once(s1: &mut Service) {
    let watch = Stopwatch::start();
    let mut other = Peer::connect(WEIR).await;
    other.send(get("/other")).await;
    let mut server = s1.accept().await;
    server.expect(get_at_server("/other")).await;
    assert!(watch.elapsed().as_millis() < 10, "{watch:?}");
    server.send(OK).await;
    other.expect(OK_AT_CLIENT).await;
}

#[test]
fn the_slot_is_free_and_the_client_goes_on() {
    let rows = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", "content-length: 2\r\n\r\nok"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "content-length: 2\r\n\r\nok"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "content-length: 0\r\n\r\n"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            "transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        ),
    ];
    for (sent, got) in rows {
        listen(ONE).seeds(0..2).run(move |world| async move {
            let (mut client, mut server, mut s1) = uploading().await;
            server.send(sent).await;
            server.close();
            client.expect(format!("HTTP/1.1 200 OK\r\n{got}")).await;
            world.expect_log(&[LINE]).await;
            is_served_at_once(&mut s1).await;
            world.forget_log();
            // The rest of the request is read, then another one.
            client.send("defghij").await;
            client.send(get("/next")).await;
            let mut server = s1.accept().await;
            server.expect(get_at_server("/next")).await;
            server.send(OK).await;
            client.expect(OK_AT_CLIENT).await;
            world.forget_log();
        });
    }
}

#[test]
fn the_client_of_a_close_delimited_answer_gets_its_end() {
    listen(ONE).seeds(0..2).run(|world| async move {
        let (mut client, mut server, mut s1) = uploading().await;
        server.send("HTTP/1.1 200 OK\r\n\r\nok").await;
        server.close();
        client.receive_head().await.unwrap();
        client.receive_until("ok").await;
        client.expect_end().await;
        is_served_at_once(&mut s1).await;
        world.forget_log();
    });
}

/// A server that keeps its connection open may need the rest.
#[test]
fn a_server_that_has_not_closed_gets_the_rest_and_keeps_its_slot() {
    listen(ONE).seeds(0..2).run(|world| async move {
        let (mut client, mut server, mut s1) = uploading().await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        let mut other = Peer::connect(WEIR).await;
        other.send(get("/other")).await;
        other.expect_silence(1000).await;
        client.send("defghij").await;
        server.expect("defghij").await;
        server.expect(get_at_server("/other")).await;
        server.send(OK).await;
        other.expect(OK_AT_CLIENT).await;
        s1.is_left_alone();
        world.forget_log();
    });
}

#[test]
fn a_client_that_never_sends_the_rest_is_closed_in_time() {
    listen(ONE).seeds(0..2).run(|world| async move {
        let (mut client, mut server, mut s1) = uploading().await;
        server.send(OK).await;
        server.close();
        client.expect(OK_AT_CLIENT).await;
        let watch = Stopwatch::start();
        is_served_at_once(&mut s1).await;
        client.expect_end().await;
        watch.took(5000);
        world.forget_log();
    });
}

#[test]
fn a_server_that_closes_later_is_noticed() {
    listen(ONE).seeds(0..2).run(|world| async move {
        let (mut client, mut server, mut s1) = uploading().await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        sleep(700).await;
        server.close();
        world.expect_log(&[r#"l l/s1 0/0/0/0/700 200 # - - ---- 1/1/#/#/0 0/0 "POST / HTTP/1.1""#]).await;
        is_served_at_once(&mut s1).await;
        client.send("defghij").await;
        world.forget_log();
    });
}

#[test]
fn a_stream_of_http_2_ends_and_others_go_on() {
    listen(ONE).seeds(0..2).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = h2::Client::connect().await;
        client.request(1, false, &h2::block("POST", "/", &[("content-length", "10")])).await;
        let mut server = s1.accept().await;
        server.expect(post_at_server(10)).await;
        server.send(OK).await;
        server.close();
        client.expect(1, 200, "ok").await;
        is_served_at_once(&mut s1).await;
        client.get(3, "/3").await;
        let mut server = s1.accept().await;
        server.expect(get_at_server("/3")).await;
        server.send(OK).await;
        client.expect(3, 200, "ok").await;
        world.forget_log();
    });
}

#[test]
fn a_stream_of_http_3_ends_and_others_go_on() {
    const QUIC: &str = "10.0.0.1:443";
    config(&format!("listen l\n bind {WEIR}\n bind quic4@{QUIC} ssl crt a.pem\n {ONE}\n")).seeds(0..2).run(
        |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = http3_client::Client::connect("10.0.9.1:5000", QUIC).await;
            let id = client.open();
            client.write(id, &http3_client::request(&post(10))).await;
            let mut server = client.beside(s1.accept()).await;
            client.beside(server.expect(post_at_server(10))).await;
            server.send(OK).await;
            server.close();
            let got = client.answer(id).await;
            assert_eq!((&got.payload[..], got.ended), (&b"ok"[..], true));
            client.beside(is_served_at_once(&mut s1)).await;
            client.close().await;
            world.forget_log();
        },
    );
}

/// A server of HTTP/2 that resets the stream after its answer (RFC 9113, section 8.1).
#[test]
fn a_server_of_http_2_ends_its_stream() {
    listen(&format!("{ONE} proto h2")).workers(&[1]).seeds(0..2).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(post(10) + "abc").await;
        let mut origin = End::accept(&mut s1).await;
        let stream = origin.expect_head(&post_at_server(10)).await;
        origin.send(Part::Head, stream, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n").await;
        origin.send(Part::Data, stream, "ok").await;
        origin.send(Part::End, stream, "").await;
        client.expect(OK_AT_CLIENT).await;
        origin.send(Part::Reset, stream, "").await;
        world.expect_log(&[LINE]).await;
        let mut other = Peer::connect(WEIR).await;
        other.send(get("/other")).await;
        let stream = origin.expect_request(&get_at_server("/other"), b"").await;
        origin.answer(stream, b"ok").await;
        other.expect(OK_AT_CLIENT).await;
        client.send("defghij").await;
        world.forget_log();
    });
}

/// A server of HTTP/3 that stops the request after its answer (RFC 9114, section 4.1).
#[test]
fn a_server_of_http_3_stops_its_stream() {
    const ORIGIN: &str = "10.0.1.1:443";
    listen(&format!("timeout client 5s\n server s1 quic4@{ORIGIN} ssl verify none maxconn 1"))
        .global("    expose-experimental-directives\n")
        .seeds(0..2)
        .run(|world| async move {
            let mut origin = Origin::at(ORIGIN);
            let mut client = Peer::connect(WEIR).await;
            client.send(post(10) + "abc").await;
            let stream = origin.begun().await;
            origin.answer(stream, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n", b"ok").await;
            origin.beside(client.expect(OK_AT_CLIENT)).await;
            origin.stop(stream, h3::ErrorCode::NoError.number()).await;
            let watch = Stopwatch::start();
            let mut other = Peer::connect(WEIR).await;
            other.send(get("/other")).await;
            let stream = origin.request().await;
            assert!(watch.elapsed().as_millis() < 10, "{watch:?}");
            origin.answer(stream, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n", b"ok").await;
            origin.beside(other.expect(OK_AT_CLIENT)).await;
            origin.beside(client.send("defghij")).await;
            world.forget_log();
        });
}

/// The same while the client sends: its upload is read to its end.
#[test]
fn an_upload_in_progress_is_read_when_the_server_stops_its_stream() {
    const ORIGIN: &str = "10.0.1.1:443";
    const LENGTH: usize = 8_000_000;
    listen(&format!("timeout client 5s\n server s1 quic4@{ORIGIN} ssl verify none maxconn 1"))
        .global("    expose-experimental-directives\n")
        .seeds(0..2)
        .run(|world| async move {
            let mut origin = Origin::at(ORIGIN);
            let mut client = Peer::connect(WEIR).await;
            client.send(post(LENGTH)).await;
            let stream = origin.begun().await;
            origin.answer(stream, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n", b"ok").await;
            origin.beside(client.expect(OK_AT_CLIENT)).await;
            // More than the windows hold: what Weir has read of it waits to be written.
            let upload = async {
                client.send("x".repeat(LENGTH)).await;
                client.send(get("/next")).await;
            };
            let stopped = async {
                sleep(5).await;
                origin.stop(stream, h3::ErrorCode::NoError.number()).await;
                let stream = origin.request().await;
                origin.answer(stream, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n", b"ok").await;
            };
            both(upload, stopped).await;
            origin.beside(client.expect(OK_AT_CLIENT)).await;
            let lines = world.lines(2).await;
            assert!(lines.iter().all(|line| line.contains(" 200 ") && line.contains(" ---- ")), "{lines:?}");
        });
}

/// The end of an application's answer is the end of its request.
#[test]
fn an_application_has_ended_its_request() {
    fcgi::app("timeout client 5s", "").seeds(0..2).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        // More than the buffer in which a body waits.
        client.send(post(40_000)).await;
        client.send(vec![b'x'; 20_000]).await;
        let mut server = s1.accept().await;
        let mut input = Vec::new();
        while input.len() < 20_000 {
            let header = server.receive(8).await;
            let content = server.receive(usize::from(u16::from_be_bytes([header[4], header[5]]))).await;
            if header[1] == 5 {
                input.extend_from_slice(&content);
            }
        }
        server.send(fcgi::answered(fcgi::PLAIN)).await;
        fcgi::receive_plain(&mut client).await;
        world.expect_log(&[LINE]).await;
        server.expect_end().await;
        client.send(vec![b'x'; 20_000]).await;
        client.send(GET).await;
        let mut server = s1.accept().await;
        fcgi::request(&mut server).await;
        server.send(fcgi::answered(fcgi::PLAIN)).await;
        fcgi::receive_plain(&mut client).await;
        world.forget_log();
    });
}
