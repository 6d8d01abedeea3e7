//! Tests of chunked bodies through kernel pipes (`option splice-*`): a connection that ends or pauses in the middle of
//! a chunk is logged and forwarded exactly as with copying.

use testkit::{Peer, Service, Stopwatch, both, encode_chunks, sleep, text};

use crate::api::*;
use crate::messages::*;
use crate::world::*;

const COPIED: &str = "";
const SPLICED: &str = "option splice-auto\n";
/// Length of the chunk in bytes, and the number of them sent before the event under test.
const CHUNK: usize = 200_000;
const FIRST: usize = 120_000;
const HEAD: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const HEAD_AT_CLIENT: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

/// The number of spliced bytes.
async fn spliced_bytes() -> u64 {
    let info = ask("show info").await;
    let line = info.lines().find_map(|line| line.strip_prefix("TotalSplicedBytesOut: ")).unwrap();
    line.parse().unwrap()
}

/// Runs a scenario without and with splicing; in the second one, bytes of the chunk went through a pipe.
fn both_ways<F: Future<Output = ()> + 'static>(lines: &str, story: impl Fn(World) -> F + Copy + 'static) {
    for option in [COPIED, SPLICED] {
        let body = format!("{option}{lines}\nserver s1 10.0.1.1:80");
        listen(&body).workers(&[1]).global(SOCKET).run(move |world| async move {
            story(world).await;
            let spliced = spliced_bytes().await;
            assert_eq!(spliced > 10_000, option == SPLICED, "{spliced} bytes");
            assert!(spliced > 10_000 || spliced == 0, "{spliced} bytes");
        });
    }
}

/// A chunked answer of which enough was received for a pipe to be used.
async fn answering() -> (Peer, Peer, Service, Vec<u8>) {
    let (mut client, mut server, s1) = asked().await;
    let body = text(CHUNK, 7);
    server.send(format!("{HEAD}{CHUNK:x}\r\n")).await;
    server.send(&body[..FIRST]).await;
    client.expect(HEAD_AT_CLIENT).await;
    (client, server, s1, body)
}

/// Expects whole chunks with these bytes, of any sizes.
async fn expect_chunks(client: &mut Peer, mut body: &[u8]) {
    while !body.is_empty() {
        let line = client.receive_until("\r\n").await;
        let size = usize::from_str_radix(std::str::from_utf8(&line).unwrap().trim_end(), 16).unwrap();
        let (chunk, rest) = body.split_at(size);
        client.expect(chunk).await;
        client.expect("\r\n").await;
        body = rest;
    }
}

#[test]
fn a_server_that_pauses_in_a_chunk_has_its_bytes_passed_on_and_may_go_on() {
    both_ways("timeout server 200ms\n timeout client 500ms", |world| async move {
        let (mut client, mut server, _s1, body) = answering().await;
        expect_chunks(&mut client, &body[..FIRST]).await;
        sleep(150).await;
        client.expect_silence(1).await;
        server.send(&body[FIRST..]).await;
        expect_chunks(&mut client, &body[FIRST..]).await;
        sleep(150).await;
        server.send("\r\n0\r\nX-End: 1\r\n\r\n").await;
        client.expect("0\r\nx-end: 1\r\n\r\n").await;
        world.expect_log(&[r#"l l/s1 0/0/0/#/# 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
        // The link can be used for another request.
        client.send(GET).await;
        server.expect(GET_AT_SERVER).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        world.expect_log(&[r#"l l/s1 #/0/0/0/# 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn a_server_that_stays_away_in_a_chunk_is_late() {
    both_ways("timeout server 200ms", |world| async move {
        let (mut client, mut server, _s1, body) = answering().await;
        expect_chunks(&mut client, &body[..FIRST]).await;
        let watch = Stopwatch::start();
        client.expect_eof().await;
        assert!(watch.elapsed().as_millis() <= 200);
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/# 200 # - - sD-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn a_server_that_leaves_in_a_chunk_ends_the_answer_there() {
    both_ways("", |world| async move {
        let (mut client, server, _s1, body) = answering().await;
        server.close();
        expect_chunks(&mut client, &body[..FIRST]).await;
        client.expect_eof().await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/# 200 # - - SD-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
    both_ways("", |world| async move {
        let (mut client, server, _s1, body) = answering().await;
        expect_chunks(&mut client, &body[..FIRST]).await;
        server.reset();
        client.expect_eof().await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/# 200 # - - SD-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn a_client_that_resets_in_a_chunk_ends_the_server_s_link() {
    both_ways("", |world| async move {
        let (mut client, mut server, _s1, body) = answering().await;
        expect_chunks(&mut client, &body[..FIRST]).await;
        client.reset();
        server.try_send(&body[FIRST..]).await;
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/# 200 # - - CD-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn a_client_that_reads_nothing_of_a_chunk_is_late() {
    both_ways("timeout client 300ms", |world| async move {
        let (client, mut server, _s1, body) = answering().await;
        for _ in 0..10 {
            server.try_send(&body[..8000]).await;
        }
        let chunk = format!("\r\n{:x}\r\n", 2_000_000);
        server.try_send(&chunk).await;
        server.try_send(&vec![b'x'; 2_000_000]).await;
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/# 200 # - - cD-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
        drop(client);
    });
}

#[test]
fn a_half_closed_client_gets_all_chunks() {
    both_ways("no option abortonclose", |world| async move {
        let (mut client, mut server, _s1, body) = answering().await;
        client.half_close();
        expect_chunks(&mut client, &body[..FIRST]).await;
        server.send(&body[FIRST..]).await;
        server.send("\r\n0\r\n\r\n").await;
        expect_chunks(&mut client, &body[FIRST..]).await;
        client.expect("0\r\n\r\n").await;
        client.expect_eof().await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/# 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn a_client_of_http_1_0_gets_the_payload_alone() {
    both_ways("", |world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send("GET / HTTP/1.0\r\n\r\n").await;
        let mut server = s1.accept().await;
        server.expect("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n").await;
        let body = text(2 * CHUNK + 3, 8);
        let sends = async {
            let mut sizes = [3, CHUNK, CHUNK].into_iter();
            server.send(HEAD).await;
            server.send(encode_chunks(&body, &mut || sizes.next().unwrap(), &[])).await;
        };
        let receives = async {
            client.expect("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n").await;
            assert!(client.receive_rest().await == body);
        };
        both(sends, receives).await;
        world.expect_log(&[r#"l l/s1 0/0/0/#/# 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.0""#]).await;
    });
}

/// The head of a request with a chunk of [`CHUNK`] bytes, and as received by a server.
fn post_chunk() -> String {
    format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{CHUNK:x}\r\n")
}
const POST_AT_SERVER: &str = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
const EMPTY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const EMPTY_AT_CLIENT: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

#[test]
fn a_server_that_answers_in_a_chunk_gets_the_rest_of_it() {
    both_ways("", |world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(post_chunk()).await;
        let body = text(CHUNK, 9);
        client.send(&body[..FIRST]).await;
        let mut server = s1.accept().await;
        server.expect(POST_AT_SERVER).await;
        expect_chunks(&mut server, &body[..FIRST]).await;
        server.send(EMPTY).await;
        client.expect(EMPTY_AT_CLIENT).await;
        client.send(&body[FIRST..]).await;
        expect_chunks(&mut server, &body[FIRST..]).await;
        client.send("\r\n0\r\n\r\n").await;
        server.expect("0\r\n\r\n").await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/# 200 # - - ---- 1/1/0/0/0 0/0 "POST / HTTP/1.1""#]).await;
        client.send(GET).await;
        server.expect(GET_AT_SERVER).await;
        server.send(EMPTY).await;
        client.expect(EMPTY_AT_CLIENT).await;
        world.expect_log(&[r#"l l/s1 #/0/0/0/# 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn where_a_request_may_be_sent_again_it_is_copied() {
    let lines = "option splice-auto\n retry-on all-retryable-errors\n server s1 10.0.1.1:80";
    listen(lines).global(SOCKET).run(|_| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        let body = text(CHUNK, 9);
        client.send(post_chunk()).await;
        client.send(&body).await;
        client.send("\r\n0\r\n\r\n").await;
        let mut server = s1.accept().await;
        server.expect(POST_AT_SERVER).await;
        expect_chunks(&mut server, &body).await;
        server.expect("0\r\n\r\n").await;
        server.send(EMPTY).await;
        client.expect(EMPTY_AT_CLIENT).await;
        assert_eq!(spliced_bytes().await, 0);
    });
}
