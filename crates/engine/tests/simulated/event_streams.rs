//! Tests of answers without an end: `timeout stream`, events that are compressed, and servers that have answered before the
//! upload has ended.

use std::io::Read as _;

use testkit::{Peer, Service, Stopwatch, sleep};

use crate::fcgi;
use crate::h2;
use crate::http3_client;
use crate::messages::*;
use crate::parts::{End, Part};
use crate::world::*;

/// Timeouts of 200 ms, and of 1 s for streams.
const TIMES: &str = "timeout client 200ms\n timeout server 200ms\n timeout stream 1s\n";
const S1_LINE: &str = "server s1 10.0.1.1:80";

/// The head of an event stream as sent by a server, and as received by a client.
const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const EVENTS_AT_CLIENT: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// An event in a chunk.
const EVENT: &str = "9\r\ndata: a\n\n\r\n";

/// Receives that event, in whatever chunks it comes.
async fn receive_event(client: &mut Peer) {
    let mut payload = Vec::new();
    while payload.len() < 9 {
        let size = client.receive_until("\r\n").await;
        let size = usize::from_str_radix(std::str::from_utf8(&size).unwrap().trim(), 16).unwrap();
        payload.extend_from_slice(&client.receive(size + 2).await[..size]);
    }
    assert_eq!(payload, b"data: a\n\n");
}

fn streaming(body: &str) -> Worlds {
    listen(&format!("{TIMES}{body}\n {S1_LINE}"))
}

#[test]
fn an_event_stream_has_its_own_timeout_behind_its_head() {
    streaming("").shuffled().run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        server.send(EVENTS).await;
        client.expect(EVENTS_AT_CLIENT).await;
        for _ in 0..3 {
            client.expect_silence(900).await;
            server.send(EVENT).await;
            receive_event(&mut client).await;
        }
        let watch = Stopwatch::start();
        client.expect_eof().await;
        watch.took(1000);
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/3700 200 # - - sD-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn the_head_of_the_answer_is_bound_by_timeout_server() {
    streaming("").run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        client.expect(page(504)).await;
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/-1/200 504 # - - sH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

/// The silence after which an answer ends that begins with this head.
fn ends_after(lines: &'static str, head: &'static str, millis: u64) {
    listen(&format!("{lines}\n {S1_LINE}")).seeds(0..2).run(move |world| async move {
        let (mut client, mut server, _s1) = asked().await;
        server.send(format!("HTTP/1.1 200 OK\r\n{head}\r\n")).await;
        client.receive_head().await.unwrap();
        let watch = Stopwatch::start();
        client.expect_end().await;
        watch.took(millis);
        server.expect_end().await;
        let line = format!(r#"l l/s1 0/0/0/0/{millis} 200 # - - sD-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#);
        world.expect_log(&[&line]).await;
    });
}

#[test]
fn the_head_tells_a_stream() {
    let rows: &[(&'static str, u64)] = &[
        ("Content-Type: text/event-stream\r\nContent-Length: 100\r\n", 1000),
        ("Content-Type: Text/Event-Stream ; charset=utf-8\r\nContent-Length: 100\r\n", 1000),
        ("Transfer-Encoding: chunked\r\n", 1000),
        ("Content-Type: text/html\r\nTransfer-Encoding: chunked\r\n", 1000),
        // The end of the connection is the end of the answer.
        ("Content-Type: text/html\r\n", 1000),
        ("Content-Length: 100\r\n", 200),
        ("Content-Type: text/event-streams\r\nContent-Length: 100\r\n", 200),
        ("Content-Type: text/event\r\nContent-Length: 100\r\n", 200),
        ("Content-Type: text/html; x=text/event-stream\r\nContent-Length: 100\r\n", 200),
    ];
    for (head, millis) in rows {
        ends_after(TIMES, head, *millis);
    }
    ends_after("timeout server 200ms", "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n", 200);
    // It may be shorter than the timeout that it replaces, or replace none.
    ends_after("timeout server 2s\n timeout stream 100ms", "Transfer-Encoding: chunked\r\n", 100);
    ends_after("timeout server 0\n timeout stream 300ms", "Transfer-Encoding: chunked\r\n", 300);
}

#[test]
fn an_answer_of_http_1_0_is_a_stream_up_to_the_end_of_its_connection() {
    streaming("").run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        server.send("HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n").await;
        client.receive_head().await.unwrap();
        client.expect_silence(900).await;
        server.send("data: a\n\n").await;
        client.receive_until("data: a\n\n").await;
        client.expect_silence(900).await;
        server.close();
        client.receive_rest().await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/1800 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn the_backend_decides_before_the_frontend() {
    for (front, back, millis) in [
        ("timeout stream 1s", "", 1000),
        ("", "timeout stream 1s", 1000),
        ("timeout stream 2s", "timeout stream 1s", 1000),
        ("", "", 200),
    ] {
        config(&format!(
            "frontend l\n bind {WEIR}\n timeout client 200ms\n {front}\n default_backend b\nbackend b\n timeout server \
             200ms\n {back}\n {S1_LINE}"
        ))
        .seeds(0..2)
        .run(move |world| async move {
            let (mut client, mut server, _s1) = asked().await;
            server.send(EVENTS).await;
            client.expect(EVENTS_AT_CLIENT).await;
            let watch = Stopwatch::start();
            client.expect_eof().await;
            watch.took(millis);
            world.forget_log();
        });
    }
}

#[test]
fn a_timeout_of_a_rule_has_priority() {
    for (rule, millis) in [
        ("http-request set-timeout server 300ms", 300),
        ("http-response set-timeout server 400ms if { res.hdr(content-type) text/event-stream }", 400),
        ("http-response set-timeout server 400ms if { res.hdr(content-type) text/html }", 1000),
    ] {
        streaming(rule).seeds(0..2).run(move |world| async move {
            let (mut client, mut server, _s1) = asked().await;
            server.send(EVENTS).await;
            client.expect(EVENTS_AT_CLIENT).await;
            let watch = Stopwatch::start();
            client.expect_eof().await;
            watch.took(millis);
            world.forget_log();
        });
    }
}

/// A client that has not sent its whole request, and takes what it gets, is bound by the same timeout.
#[test]
fn a_client_that_only_listens_has_the_timeout_of_the_stream() {
    streaming("").run(|world| async move {
        let (mut client, mut server, _s1) = uploading().await;
        server.send(EVENTS).await;
        client.expect(EVENTS_AT_CLIENT).await;
        client.expect_silence(900).await;
        // What it is sent is activity of its own.
        server.send(EVENT).await;
        receive_event(&mut client).await;
        let watch = Stopwatch::start();
        client.expect_eof().await;
        watch.took(1000);
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/1900 200 # - - cD-- 1/1/0/0/0 0/0 "POST / HTTP/1.1""#]).await;
    });
}

#[test]
fn a_client_that_takes_nothing_is_cut_by_timeout_client() {
    streaming("").run(|world| async move {
        let (client, mut server, _s1) = asked().await;
        server.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n").await;
        let watch = Stopwatch::start();
        assert!(!server.try_send(vec![b'x'; 3_000_000]).await, "the server is cut off");
        assert!((200..300).contains(&watch.elapsed().as_millis()), "{watch:?}");
        world.expect_log(&[r#"l l/s1 0/0/0/0/* 200 # - - cD-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
        client.close();
    });
}

#[test]
fn a_client_that_leaves_ends_the_stream() {
    streaming("").run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        server.send(EVENTS).await;
        client.expect(EVENTS_AT_CLIENT).await;
        sleep(500).await;
        client.close();
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/500 200 # - - CD-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn streams_of_http_2_have_it() {
    streaming("").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = h2::Client::connect().await;
        client.get(1, "/").await;
        let mut server = s1.accept().await;
        server.expect(GET_AT_SERVER).await;
        server.send(EVENTS).await;
        for _ in 0..2 {
            sleep(900).await;
            server.send(EVENT).await;
        }
        let watch = Stopwatch::start();
        server.expect_end().await;
        watch.took(1000);
        let got = client.answer(1).await;
        assert_eq!((got.payload(), got.reset.is_some()), ("data: a\n\ndata: a\n\n", true));
        world.expect_log(&[r#"l l/s1 0/0/0/0/2800 200 # - - sD-- 1/1/0/0/0 0/0 "GET http://a/ HTTP/2.0""#]).await;
    });
}

const QUIC: &str = "10.0.0.1:443";

#[test]
fn streams_of_http_3_have_it() {
    config(&format!("listen l\n bind quic4@{QUIC} ssl crt a.pem\n {TIMES} {S1_LINE}\n")).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = http3_client::Client::connect("10.0.9.1:5000", QUIC).await;
        let id = client.request(GET).await;
        let mut server = client.beside(s1.accept()).await;
        client.beside(server.expect(GET_AT_SERVER)).await;
        server.send(EVENTS).await;
        for _ in 0..2 {
            client.beside(sleep(900)).await;
            server.send(EVENT).await;
        }
        let got = client.answer(id).await;
        assert_eq!((&got.payload[..], got.ended), (&b"data: a\n\ndata: a\n\n"[..], false));
        client.close().await;
        world.expect_log(&[r#"l~ l/s1 */*/*/*/* 200 # - - sD-- 1/1/#/#/0 0/0 "GET https://a/ HTTP/3.0""#]).await;
    });
}

#[test]
fn applications_have_it() {
    fcgi::app(TIMES, "").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut server = s1.accept().await;
        fcgi::request(&mut server).await;
        server.send(fcgi::record(6, b"Content-Type: text/event-stream\r\n\r\n")).await;
        client.receive_head().await.unwrap();
        client.expect_silence(900).await;
        server.send(fcgi::record(6, b"data: a\n\n")).await;
        receive_event(&mut client).await;
        let watch = Stopwatch::start();
        client.expect_eof().await;
        watch.took(1000);
        world.expect_log(&[r#"l l/s1 0/0/0/0/1900 200 # - - sD-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn servers_of_http_2_have_it() {
    listen(&format!("{TIMES} {S1_LINE} proto h2")).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut origin = End::accept(&mut s1).await;
        let stream = origin.expect_request(GET_AT_SERVER, b"").await;
        origin.send(Part::Head, stream, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n").await;
        client.receive_head().await.unwrap();
        client.expect_silence(900).await;
        origin.send(Part::Data, stream, "data: a\n\n").await;
        receive_event(&mut client).await;
        let watch = Stopwatch::start();
        client.expect_eof().await;
        watch.took(1000);
        world.expect_log(&[r#"l l/s1 0/0/0/0/1900 200 # - - sD-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

/// A retry, a cache that may store the answer, and a copy of the request change nothing.
#[test]
fn other_features_leave_the_timeout_as_it_is() {
    config(&format!(
        "cache c\n total-max-size 1\n max-age 60\nlisten l\n bind {WEIR}\n {TIMES} retries 2\n retry-on response-timeout\n \
         http-request cache-use c\n http-response cache-store c\n http-request mirror shadow\n {S1_LINE}\nbackend \
         shadow\n server m1 10.0.1.2:80\n"
    ))
    .run(|world| async move {
        let (mut s1, mut m1) = (Service::at(S1), Service::at(S2));
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut late = s1.accept().await;
        late.expect(GET_AT_SERVER).await;
        let mut copy = m1.accept().await;
        copy.expect(GET_AT_SERVER).await;
        copy.send(OK).await;
        late.expect_end().await;
        let mut server = s1.accept().await;
        server.expect(GET_AT_SERVER).await;
        server
            .send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: max-age=60\r\n\r\n")
            .await;
        client.receive_head().await.unwrap();
        for _ in 0..2 {
            client.expect_silence(900).await;
            server.send("data: a\n\n").await;
            client.receive_until("data: a\n\n").await;
        }
        let watch = Stopwatch::start();
        client.expect_end().await;
        watch.took(1000);
        world.expect_log(&[r#"l l/s1 0/0/200/0/* 200 # - - sD-- 1/1/0/0/1 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn a_reload_in_place_leaves_streams_in_progress_their_timeout() {
    streaming("").run(|world| async move {
        let (mut client, mut server, mut s1) = asked().await;
        server.send(EVENTS).await;
        client.expect(EVENTS_AT_CLIENT).await;
        let next = listen(&format!("timeout client 200ms\n timeout server 200ms\n timeout stream 400ms\n {S1_LINE}"));
        assert_eq!(world.adopt(&next), Ok(()));
        let mut second = Peer::connect(WEIR).await;
        second.send(GET).await;
        let mut other = s1.accept().await;
        other.expect(GET_AT_SERVER).await;
        other.send(EVENTS).await;
        second.expect(EVENTS_AT_CLIENT).await;
        let watch = Stopwatch::start();
        second.expect_eof().await;
        watch.took(400);
        client.expect_eof().await;
        watch.took(1000);
        world.forget_log();
    });
}

/// The part of a coded body that can be decoded already.
fn decoded_so_far(coding: &str, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    if coding == "zstd" {
        let mut decoder = zstd_safe::DCtx::create();
        let mut plain = vec![0; 1000];
        let mut output = zstd_safe::OutBuffer::around(&mut plain);
        let mut input = zstd_safe::InBuffer::around(data);
        decoder.decompress_stream(&mut output, &mut input).unwrap();
        out.extend_from_slice(output.as_slice());
        return out;
    }
    let mut decoder: Box<dyn std::io::Read> = match coding {
        "gzip" => Box::new(flate2::bufread::GzDecoder::new(data)),
        "deflate" => Box::new(flate2::bufread::ZlibDecoder::new(data)),
        _ => Box::new(brotli::Decompressor::new(data, 100)),
    };
    // The error is that of the end, which is missing.
    let mut byte = [0];
    while matches!(decoder.read(&mut byte), Ok(1)) {
        out.push(byte[0]);
    }
    out
}

const CODINGS: [&str; 4] = ["gzip", "deflate", "br", "zstd"];

fn compressing(coding: &str) -> String {
    format!("compression algo {coding}\n compression type text/event-stream\n {S1_LINE}\n")
}

/// The nth event, in a chunk, and the payload up to it.
fn numbered(count: usize) -> (String, String) {
    let event = |number| format!("id: {number}\ndata: {}\n\n", "ab".repeat(number));
    let last = event(count);
    (format!("{:x}\r\n{last}\r\n", last.len()), (1..=count).map(event).collect())
}

#[test]
fn each_event_is_flushed_towards_http_1() {
    for coding in CODINGS {
        listen(&compressing(coding)).seeds(0..2).shuffled().run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {coding}\r\n\r\n")).await;
            let mut server = s1.accept().await;
            server.receive_head().await.unwrap();
            server.send(EVENTS).await;
            assert!(client.receive_head().await.unwrap().contains(&format!("content-encoding: {coding}\r\n")));
            let mut coded = Vec::new();
            for count in 1..6 {
                let (event, payload) = numbered(count);
                server.send(event).await;
                let watch = Stopwatch::start();
                while decoded_so_far(coding, &coded) != payload.as_bytes() {
                    let size = client.receive_until("\r\n").await;
                    let size = usize::from_str_radix(std::str::from_utf8(&size).unwrap().trim(), 16).unwrap();
                    coded.extend_from_slice(&client.receive(size + 2).await[..size]);
                }
                assert!(watch.elapsed().as_millis() < 10, "{watch:?}");
            }
            server.send("0\r\n\r\n").await;
            client.receive_until("0\r\n\r\n").await;
            world.forget_log();
        });
    }
}

#[test]
fn each_event_is_flushed_towards_http_2() {
    for coding in CODINGS {
        listen(&compressing(coding)).seeds(0..2).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = h2::Client::connect().await;
            client.request(1, true, &h2::block("GET", "/", &[("accept-encoding", coding)])).await;
            let mut server = s1.accept().await;
            server.receive_head().await.unwrap();
            server.send(EVENTS).await;
            for count in 1..6 {
                let (event, payload) = numbered(count);
                server.send(event).await;
                let received = |client: &h2::Client| client.answers.get(&1).map(|one| one.bytes().to_vec());
                while decoded_so_far(coding, &received(&client).unwrap_or_default()) != payload.as_bytes() {
                    client.step().await;
                }
            }
            server.send("0\r\n\r\n").await;
            assert!(client.answer(1).await.head.contains(&format!("content-encoding: {coding}\n")));
            world.forget_log();
        });
    }
}

#[test]
fn each_event_is_flushed_towards_http_3() {
    for coding in CODINGS {
        config(&format!("listen l\n bind quic4@{QUIC} ssl crt a.pem\n {}", compressing(coding))).seeds(0..2).run(
            move |world| async move {
                let mut s1 = Service::at(S1);
                let mut client = http3_client::Client::connect("10.0.9.1:5000", QUIC).await;
                let head = format!("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {coding}\r\n\r\n");
                let id = client.request(&head).await;
                let mut server = client.beside(s1.accept()).await;
                client.beside(server.receive_head()).await.unwrap();
                server.send(EVENTS).await;
                for count in 1..6 {
                    let (event, payload) = numbered(count);
                    server.send(event).await;
                    client
                        .until(|client| decoded_so_far(coding, &client.received(id).payload) == payload.as_bytes())
                        .await;
                }
                server.send("0\r\n\r\n").await;
                assert!(client.answer(id).await.ended);
                client.close().await;
                world.forget_log();
            },
        );
    }
}
