//! Tests of `http-request decompress-body`: rules and the server get the same bytes, for every protocol, framing and
//! division into pieces; bodies that cannot be decoded are answered with a status of their own, and the connection is
//! kept.

use std::io::Write as _;

use testkit::{Peer, Service, Stopwatch};
use wire::h2::Kind;

use crate::h2::{Client, block};
use crate::messages::*;
use crate::world::*;

const SEEN: &str = "http-request decompress-body\n http-request set-header x-seen %[req.body_param(a)]\n";

pub fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(9));
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

pub fn zstd(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(zstd_safe::compress_bound(text.len()));
    zstd_safe::compress(&mut out, text, 3).unwrap();
    out
}

/// A request with a body and additional fields.
pub fn coded(fields: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// A form, of which rules read one parameter.
pub const FORM: &str = "a=hello&b=world";
pub const TYPED: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

fn form_at_server() -> String {
    format!(
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\nx-seen: \
         hello\r\n\r\n{FORM}",
        FORM.len()
    )
}

#[test]
fn rules_and_the_server_get_what_was_compressed() {
    listen(&format!("{SEEN} server s1 10.0.1.1:80")).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        let mut server = None;
        let layers = gzip(&zstd(FORM.as_bytes()));
        let bodies: [(&str, &[u8]); 4] = [
            ("gzip", &gzip(FORM.as_bytes())),
            ("ZSTD", &zstd(FORM.as_bytes())),
            ("zstd, identity, x-gzip", &layers),
            ("identity", FORM.as_bytes()),
        ];
        for (coding, body) in bodies {
            let fields = format!("{TYPED}Content-Encoding: {coding}\r\nRepr-Digest: x\r\n");
            // Another request follows it in the same bytes.
            let request = coded(&fields, body);
            client.send([&request[..], get("/next").as_bytes()].concat()).await;
            if server.is_none() {
                server = Some(s1.accept().await);
            }
            let server = server.as_mut().unwrap();
            if coding == "identity" {
                // A body without a coding is not changed.
                server.receive_until(FORM).await;
            } else {
                server.expect(form_at_server()).await;
            }
            server.send(OK).await;
            server.expect("GET /next HTTP/1.1\r\nhost: a\r\nx-seen: \r\n\r\n").await;
            server.send(OK).await;
            client.expect(OK_AT_CLIENT.repeat(2)).await;
        }
        world.forget_log();
    });
}

#[test]
fn a_body_in_pieces_or_chunks_or_behind_an_invitation_is_the_same() {
    listen(&format!("{SEEN} server s1 10.0.1.1:80")).shuffled().run(|world| async move {
        let mut s1 = Service::at(S1);
        let body = gzip(FORM.as_bytes());
        let fields = format!("{TYPED}Content-Encoding: gzip\r\n");
        let mut client = Peer::connect(WEIR).await;
        client.send_slowly(coded(&fields, &body), 7, 1).await;
        let mut server = s1.accept().await;
        server.expect(form_at_server()).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        let mut chunked =
            format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
        for piece in body.chunks(5) {
            chunked.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            chunked.extend_from_slice(piece);
            chunked.extend_from_slice(b"\r\n");
        }
        chunked.extend_from_slice(b"0\r\nx-trailer: 1\r\n\r\n");
        client.send([&chunked[..], get("/next").as_bytes()].concat()).await;
        server.expect(form_at_server()).await;
        server.send(OK).await;
        server.expect("GET /next HTTP/1.1\r\nhost: a\r\nx-seen: \r\n\r\n").await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT.repeat(2)).await;
        let request = coded(&format!("{fields}Expect: 100-continue\r\n"), &body);
        client.send(&request[..request.len() - body.len()]).await;
        client.expect("HTTP/1.1 100 Continue\r\n\r\n").await;
        client.send(&body).await;
        server.expect(form_at_server()).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        world.forget_log();
    });
}

#[test]
fn a_stream_of_http2_is_decompressed() {
    for length in [true, false] {
        listen(&format!("{SEEN} server s1 10.0.1.1:80")).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let body = gzip(FORM.as_bytes());
            let mut client = Client::connect().await;
            let text = body.len().to_string();
            let mut fields = vec![("content-type", "application/x-www-form-urlencoded"), ("content-encoding", "gzip")];
            if length {
                fields.push(("content-length", &text));
            }
            client.request(1, false, &block("POST", "/", &fields)).await;
            client.frame(Kind::Data, 0, 1, &body[..9]).await;
            client.frame(Kind::Data, wire::h2::flag::END_STREAM, 1, &body[9..]).await;
            let mut server = s1.accept().await;
            let head = server.receive_head().await.unwrap();
            assert!(head.contains("\r\ncontent-length: 15\r\n") && head.contains("\r\nx-seen: hello\r\n"), "{head}");
            assert!(!head.contains("content-encoding") && !head.contains("transfer-encoding"), "{head}");
            server.expect(FORM).await;
            server.send(OK).await;
            client.expect(1, 200, "ok").await;
            world.forget_log();
        });
    }
}

/// Checks the status for the client and the termination state in the log, and that the connection is kept unless the
/// request is malformed.
fn refused(rule: &'static str, fields: &'static str, body: Vec<u8>, status: u16) {
    let config = format!("http-request decompress-body {rule}\n http-request return status 200 if {{ path /next }}\n");
    listen(&format!("{config} server s1 10.0.1.1:80")).run(move |world| {
        let body = body.clone();
        async move {
            let mut client = Peer::connect(WEIR).await;
            client.send(coded(fields, &body)).await;
            if status == 415 {
                let head = client.receive_head().await.unwrap();
                assert!(head.starts_with("HTTP/1.1 415 Unsupported Media Type\r\n"), "{head}");
                assert!(head.contains("\r\naccept-encoding: gzip, deflate, br, zstd\r\n"), "{head}");
                client.receive_until("</body></html>\n").await;
            } else if status == 400 {
                client.expect(closing_page(status)).await;
            } else {
                client.expect(page(status)).await;
            }
            if status != 400 {
                client.send(get("/next")).await;
                client.expect("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
            }
            let lines = world.lines(if status == 400 { 1 } else { 2 }).await;
            assert!(lines[0].contains(&format!(" {status} ")) && lines[0].contains(" PR-- "), "{lines:?}");
        }
    });
}

#[test]
fn what_cannot_be_decoded_is_refused() {
    const GZIP: &str = "Content-Encoding: gzip\r\n";
    let zeros = vec![0; 10_000_000];
    let bomb = gzip(&zeros);
    assert!(bomb.len() < 16_000);
    let whole = gzip(b"hello");
    let mut changed = whole.clone();
    *changed.last_mut().unwrap() ^= 1;
    refused("", "Content-Encoding: compress\r\n", whole.clone(), 415);
    refused("", "Content-Encoding: gzip, gzip\r\nContent-Encoding: gzip, gzip\r\n", whole.clone(), 415);
    refused("", GZIP, whole[..whole.len() - 1].to_vec(), 400);
    refused("", GZIP, [&whole[..], b"x"].concat(), 400);
    refused("", GZIP, changed, 400);
    refused("", GZIP, b"hello".to_vec(), 400);
    refused("", "Content-Encoding: br\r\n", whole.clone(), 400);
    refused("", GZIP, bomb.clone(), 413);
    refused("max-size 1m", GZIP, bomb.clone(), 413);
    refused("", "Content-Encoding: gzip, gzip\r\n", gzip(&bomb), 413);
    refused("max-size 1m", "Content-Encoding: zstd\r\n", zstd(&zeros), 413);
    refused("max-size 4", GZIP, whole, 413);
    refused("max-ratio 10", GZIP, gzip(&[0; 4000]), 413);
    // It does not fit into a buffer before it is decoded.
    refused("", GZIP, vec![b'x'; 40_000], 413);
}

#[test]
fn results_up_to_the_bound_pass_in_buffers_of_their_own() {
    let rule =
        "http-request decompress-body time 1s max-size 300k max-ratio 200 use-large-buffer\n server s1 10.0.1.1:80";
    listen(rule).global(" tune.bufsize.large 100000").run(|world| async move {
        let mut s1 = Service::at(S1);
        let text: Vec<u8> = (0..300_000_u32).map(|at| (at.wrapping_mul(at) % 251) as u8).collect();
        let body = gzip(&text);
        let mut client = Peer::connect(WEIR).await;
        for part in [text.len(), 100_000, 16_384, 16_385, 1] {
            let body = if part == text.len() { body.clone() } else { gzip(&text[..part]) };
            client.send(coded("Content-Encoding: gzip\r\n", &body)).await;
            let mut server = s1.accept().await;
            server.expect(post_at_server(part)).await;
            server.expect(&text[..part]).await;
            server.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok").await;
            client.expect(OK_AT_CLIENT).await;
        }
        world.forget_log();
    });
}

#[test]
fn a_body_that_stays_away_is_a_late_request() {
    let rule = "timeout http-request 5s\n http-request decompress-body time 300ms\n server s1 10.0.1.1:80";
    listen(rule).run(|world| async move {
        let watch = Stopwatch::start();
        let mut client = Peer::connect(WEIR).await;
        let request = coded("Content-Encoding: gzip\r\n", &gzip(b"hello"));
        client.send(&request[..request.len() - 1]).await;
        client.expect(closing_page(408)).await;
        watch.took(300);
        let lines = world.lines(1).await;
        assert!(lines[0].contains(" 408 ") && lines[0].contains(" cR-- "), "{lines:?}");
    });
}

#[test]
fn bodies_without_bytes_or_without_a_coding_are_let_pass() {
    listen("http-request decompress-body\n server s1 10.0.1.1:80").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\n\r\n").await;
        let mut server = s1.accept().await;
        server.expect("GET / HTTP/1.1\r\nhost: a\r\ncontent-encoding: gzip\r\n\r\n").await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        let chunked = "POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n";
        client.send(format!("{chunked}0\r\n\r\n{}", get("/next"))).await;
        server.expect(post_at_server(0)).await;
        server.send(OK).await;
        server.expect(get_at_server("/next")).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT.repeat(2)).await;
        // An upload of any size is forwarded before its end.
        client.send(format!("{}{}", post(100_000), "b".repeat(50_000))).await;
        server.expect(post_at_server(100_000)).await;
        server.expect("b".repeat(50_000)).await;
        client.send("b".repeat(50_000)).await;
        server.expect("b".repeat(50_000)).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        world.forget_log();
    });
}

#[test]
fn what_was_decompressed_is_sent_again_and_mirrored_and_compressed() {
    let text = format!(
        "listen l\n bind {WEIR}\n retry-on empty-response\n retries 1\n option redispatch\n http-request \
         decompress-body\n http-request mirror shadow\n server s1 10.0.1.1:80\nbackend shadow\n server m1 10.0.1.2:80\n"
    );
    config(&text).run(|world| async move {
        let (mut s1, mut m1) = (Service::at(S1), Service::at(S2));
        let mut client = Peer::connect(WEIR).await;
        client.send(coded("Content-Encoding: gzip\r\n", &gzip(b"hello"))).await;
        for last in [false, true] {
            let mut server = s1.accept().await;
            server.expect(format!("{}hello", post_at_server(5))).await;
            if last {
                server.send(OK).await;
            }
        }
        let mut shadow = m1.accept().await;
        shadow.expect(format!("{}hello", post_at_server(5))).await;
        client.expect(OK_AT_CLIENT).await;
        world.forget_log();
    });
    listen("compression algo-req zstd\n compression direction request\n http-request decompress-body\n server s1 10.0.1.1:80")
        .run(|world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(coded("Content-Encoding: gzip\r\n", &gzip(&[b'x'; 1000]))).await;
            let mut server = s1.accept().await;
            let head = server.receive_head().await.unwrap();
            assert!(head.contains("content-encoding: zstd\r\n") && !head.contains("gzip"), "{head}");
            let chunked = server.receive_chunked(1000, 0).await;
            let mut out = Vec::with_capacity(2000);
            zstd_safe::decompress(&mut out, &chunked.body).unwrap();
            assert_eq!(out, [b'x'; 1000]);
            server.send(OK).await;
            client.expect(OK_AT_CLIENT).await;
            world.forget_log();
        });
}

#[test]
fn answers_that_come_early_leave_the_connection_usable() {
    let rules = "http-request decompress-body\n http-request deny if { req.body -m sub evil }\n http-request return \
                 status 200 if { path /next }\n server s1 10.0.1.1:80";
    listen(rules).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client
            .send([&coded("Content-Encoding: gzip\r\n", &gzip(b"an evil one"))[..], get("/next").as_bytes()].concat())
            .await;
        client.expect(page(403)).await;
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        // The server answers before it has read anything.
        client.send(coded("Content-Encoding: gzip\r\n", &gzip(b"a good one"))).await;
        let mut server = s1.accept().await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        client.send(get("/next")).await;
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        world.forget_log();
    });
}
