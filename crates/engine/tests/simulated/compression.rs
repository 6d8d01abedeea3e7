//! Tests of compression of bodies (configuration manual, sections 4 and 9.2): decoded, they equal the original byte for
//! byte, whatever the pieces, the framing, the protocol and the other filters.

use std::io::Read as _;

use testkit::{Peer, Service, both, encode_chunks, text};

use crate::api::*;
use crate::messages::*;
use crate::parts::End;
use crate::world::*;

/// Decodes a content coding, and fails unless the data ends after it.
pub(crate) fn decoded(coding: &str, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let rest = match coding {
        "gzip" => {
            let mut decoder = flate2::bufread::GzDecoder::new(data);
            decoder.read_to_end(&mut out).unwrap();
            decoder.into_inner()
        }
        "deflate" => {
            let mut decoder = flate2::bufread::ZlibDecoder::new(data);
            decoder.read_to_end(&mut out).unwrap();
            decoder.into_inner()
        }
        "br" => {
            let mut rest = data;
            brotli::BrotliDecompress(&mut rest, &mut out).unwrap();
            rest
        }
        "zstd" => {
            out = vec![0; 100_000];
            let length = zstd_safe::decompress(&mut out[..], data).unwrap();
            out.truncate(length);
            &[]
        }
        "raw-deflate" => {
            let mut decoder = flate2::bufread::DeflateDecoder::new(data);
            decoder.read_to_end(&mut out).unwrap();
            decoder.into_inner()
        }
        _ => {
            out.extend_from_slice(data);
            &[]
        }
    };
    assert_eq!(rest, b"", "bytes follow the end");
    out
}

fn asks(coding: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {coding}\r\n\r\n")
}

/// Bodies of many lengths: none, one byte, around the sizes of buffers and pieces, and long ones; compressible and
/// incompressible ones.
fn bodies(seed: u64) -> Vec<Vec<u8>> {
    let lengths = [0, 1, 5, 1_000, 16_383, 16_384, 16_385, 70_000];
    let regular = lengths.map(|length| b"The quick brown fox. ".iter().copied().cycle().take(length).collect());
    let irregular = lengths.map(|length| text(length, seed));
    regular.into_iter().chain(irregular).collect()
}

/// The next number of a pseudorandom sequence, below `below`.
pub(crate) fn random(state: &mut u64, below: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % below.max(1)
}

#[test]
fn what_is_compressed_decodes_byte_for_byte() {
    let algorithms = ["gzip", "deflate", "raw-deflate", "identity", "br", "zstd"];
    let around = [
        "",
        "filter trace quiet random-forwarding\n filter comp-res\n filter trace quiet random-forwarding max-fwd 700\n ",
    ];
    for (number, (algorithm, filters)) in algorithms.iter().flat_map(|one| around.map(|two| (*one, two))).enumerate() {
        listen(&format!("compression algo {algorithm}\n {filters}server s1 10.0.1.1:80")).seeds(0..1).shuffled().run(
            move |_| async move {
                let mut s1 = Service::at(S1);
                let mut client = Peer::connect(WEIR).await;
                let mut seed = number as u64 + 1;
                let coding = algorithm.trim_start_matches("raw-");
                let mut server = None;
                for body in bodies(seed) {
                    client.send(asks(coding)).await;
                    let mut origin = match server.take() {
                        Some(server) => server,
                        None => s1.accept().await,
                    };
                    origin.receive_head().await.unwrap();
                    let chunked = random(&mut seed, 2) == 0 || body.is_empty();
                    let sends = async {
                        if chunked {
                            let mut sizes = || 1 + random(&mut seed, 9_000);
                            origin.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
                            origin.send(encode_chunks(&body, &mut sizes, &[("x-end".into(), "1".into())])).await;
                        } else {
                            origin.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len())).await;
                            origin.send_slowly(&body, 1 + random(&mut seed, 30_000), 1).await;
                        }
                    };
                    let receives = async {
                        let head = client.receive_head().await.unwrap();
                        let named = if algorithm == "identity" { "" } else { coding };
                        assert_eq!(head.contains(&format!("content-encoding: {named}\r\n")), algorithm != "identity");
                        assert!(
                            head.contains("vary: Accept-Encoding\r\n") && !head.contains("content-length"),
                            "{head}"
                        );
                        client.receive_chunked(5_000, 0).await
                    };
                    let ((), got) = both(sends, receives).await;
                    assert!(decoded(algorithm, &got.body) == body, "{algorithm} of {} bytes", body.len());
                    assert_eq!(got.trailers.len(), usize::from(chunked), "trailers go on");
                    server = Some(origin);
                }
            },
        );
    }
}

/// The payload received so far can be decoded at once, although more may follow.
#[test]
fn a_pause_holds_nothing_back() {
    listen("compression algo gzip\n server s1 10.0.1.1:80").run(|_| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(asks("gzip")).await;
        let mut server = s1.accept().await;
        server.receive_head().await.unwrap();
        server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n").await;
        client.receive_head().await.unwrap();
        let mut decoder = flate2::Decompress::new_gzip(15);
        let mut seen = Vec::new();
        let (mut coded, mut plain) = (Vec::new(), vec![0; 100]);
        while seen != b"hello" {
            // It is sent without further input from the server, and without a timer.
            let size = client.receive_until("\r\n").await;
            let size = usize::from_str_radix(std::str::from_utf8(&size).unwrap().trim(), 16).unwrap();
            let chunk = client.receive(size + 2).await;
            coded.extend_from_slice(&chunk[..size]);
            let before = (decoder.total_in(), decoder.total_out());
            decoder.decompress(&coded, &mut plain, flate2::FlushDecompress::None).unwrap();
            coded.drain(..(decoder.total_in() - before.0) as usize);
            seen.extend_from_slice(&plain[..(decoder.total_out() - before.1) as usize]);
        }
        server.send("0\r\n\r\n").await;
        client.receive_until("0\r\n\r\n").await;
    });
}

/// Requests are compressed for servers, multipart ones as well, with any framing of the client, and are retried in the
/// compressed form.
#[test]
fn requests_are_compressed_as_well() {
    let lines = "compression direction both\n compression algo-req gzip\n compression minsize-req 10\n \
                 retry-on 503\n retries 1\n server s1 10.0.1.1:80";
    listen(lines).shuffled().run(|_| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        let body = text(9_000, 5);
        let parts = "multipart/form-data; boundary=x";
        let head =
            format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Type: {parts}\r\nContent-Length: {}\r\n\r\n", body.len());
        client.send(head).await;
        client.send(&body).await;
        for (round, status) in ["503 No", "200 OK"].iter().enumerate() {
            let mut server = s1.accept().await;
            let head = server.receive_head().await.unwrap();
            let rest = "transfer-encoding: chunked\r\nvary: Accept-Encoding\r\ncontent-encoding: gzip\r\n\r\n";
            assert_eq!(head, format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-type: {parts}\r\n{rest}"), "{round}");
            assert!(decoded("gzip", &server.receive_chunked(4_000, 0).await.body) == body);
            server.send(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")).await;
        }
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        // Too small, without a body, with a content coding, of HTTP/1.0.
        let rows = [
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n123456789", "content-length: 9\r\n\r\n123456789"),
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "\r\n"),
            (
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: br\r\nContent-Length: 10\r\n\r\n0123456789",
                "content-encoding: br\r\ncontent-length: 10\r\n\r\n0123456789",
            ),
        ];
        for (sent, expected) in rows {
            client.send(sent).await;
            let mut server = s1.accept().await;
            let method = sent.split(' ').next().unwrap();
            server.expect(format!("{method} / HTTP/1.1\r\nhost: a\r\n{expected}")).await;
            server.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
            client.expect("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    });
}

/// Bodies that are not compressed: because of the request, of the answer's head, or of a rule that replaces the answer.
#[test]
fn much_is_left_as_it_is() {
    let rows: &[(&str, &str, &str)] = &[
        ("Accept-Encoding: br", "", "200 OK"),
        ("Accept-Encoding: gzip;q=0", "", "200 OK"),
        ("User-Agent: Mozilla/4.0\r\nAccept-Encoding: gzip", "", "200 OK"),
        ("Accept-Encoding: gzip", "Content-Encoding: br\r\n", "200 OK"),
        ("Accept-Encoding: gzip", "Cache-Control: no-transform\r\n", "200 OK"),
        ("Accept-Encoding: gzip", "ETag: a\r\n", "200 OK"),
        ("Accept-Encoding: gzip", "ETag: \"a\"\r\nETag: \"a\"\r\n", "200 OK"),
        ("Accept-Encoding: gzip", "Content-Type: multipart/mixed\r\n", "200 OK"),
        ("Accept-Encoding: gzip", "Content-Range: bytes 0-4/9\r\n", "206 Partial Content"),
        ("Accept-Encoding: gzip", "", "404 Not Found"),
        ("Accept-Encoding: gzip", "", "500 Internal Server Error"),
    ];
    for (asked, more, status) in rows {
        listen("compression algo gzip\n server s1 10.0.1.1:80").run(move |_| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{asked}\r\n\r\n")).await;
            let mut server = s1.accept().await;
            server.receive_head().await.unwrap();
            server.send(format!("HTTP/1.1 {status}\r\n{more}Content-Length: 5\r\n\r\nhello")).await;
            let head = client.receive_head().await.unwrap();
            assert!(head.contains("content-length: 5\r\n") && !head.contains("vary"), "{asked} {more}: {head}");
            client.expect("hello").await;
        });
    }
}

/// Answers to HEAD requests, and answers of HTTP/1.0, are not compressed; the connection is kept.
#[test]
fn heads_alone_and_old_versions_are_left() {
    listen("compression algo gzip\n server s1 10.0.1.1:80").run(|_| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send("HEAD / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n").await;
        let mut server = s1.accept().await;
        server.receive_head().await.unwrap();
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").await;
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n").await;
        client.send("GET / HTTP/1.0\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n").await;
        server.receive_head().await.unwrap();
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").await;
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello").await;
        client.expect_eof().await;
    });
}

/// Rules see the algorithm and the answer as received; an answer of a rule is not compressed, and no state is left for
/// the next request.
#[test]
fn rules_see_the_answer_before_it_is_compressed() {
    let rules = "http-response return status 200 content-type text/plain string own if { res.hdr(x-own) -m found }\n \
                 http-response set-header x-seen %[res.comp],%[res.comp_algo],%[res.hdr(etag)]\n \
                 http-after-response set-header x-after %[res.comp]\n \
                 log-format \"%ST %[res.comp] %[res.comp_algo]\"";
    listen(&format!("compression algo gzip\n {rules}\n server s1 10.0.1.1:80")).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(asks("gzip")).await;
        let mut server = s1.accept().await;
        server.receive_head().await.unwrap();
        server.send("HTTP/1.1 200 OK\r\nETag: \"q\"\r\nContent-Length: 5\r\n\r\nhello").await;
        let head = client.receive_head().await.unwrap();
        let expected = "HTTP/1.1 200 OK\r\netag: W/\"q\"\r\nx-seen: 1,gzip,\"q\"\r\nx-after: 1\r\n\
                        transfer-encoding: chunked\r\nvary: Accept-Encoding\r\ncontent-encoding: gzip\r\n\r\n";
        assert_eq!(head, expected);
        assert_eq!(decoded("gzip", &client.receive_chunked(100, 0).await.body), b"hello");
        client.send(asks("gzip")).await;
        server.receive_head().await.unwrap();
        server.send("HTTP/1.1 200 OK\r\nX-Own: 1\r\nContent-Length: 5\r\n\r\nhello").await;
        client
            .expect("HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-type: text/plain\r\nx-after: 0\r\n\r\nown")
            .await;
        client.send(GET).await;
        let mut server = s1.accept().await;
        server.receive_head().await.unwrap();
        server.send(OK).await;
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-seen: 0,,\r\nx-after: 0\r\n\r\nok").await;
        let lines = world.lines(3).await;
        let ends: Vec<&str> = lines.iter().filter_map(|line| line.split("]: ").last()).collect();
        assert_eq!(ends, ["200 1 gzip", "200 0 -", "200 0 -"]);
    });
}

/// Both proxies have settings: each kind is taken from the backend, and bodies are compressed once.
#[test]
fn settings_of_the_backend_come_first() {
    let sections = "frontend f\n bind 10.0.0.1:80\n compression algo gzip\n compression offload\n compression type text/html\n \
                    default_backend b\n\
                    backend b\n compression type text/plain\n server s1 10.0.1.1:80\n";
    config(sections).global(SOCKET).run(|_| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        let mut server = None;
        for (kind, compressed) in [("text/plain", true), ("text/html", false)] {
            client.send(asks("gzip")).await;
            let mut origin = match server.take() {
                Some(server) => server,
                None => s1.accept().await,
            };
            origin.expect("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
            origin.send(format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: 5\r\n\r\nhello")).await;
            let head = client.receive_head().await.unwrap();
            assert_eq!(head.contains("content-encoding: gzip"), compressed, "{head}");
            if compressed {
                assert_eq!(decoded("gzip", &client.receive_chunked(100, 0).await.body), b"hello");
            } else {
                client.expect("hello").await;
            }
            server = Some(origin);
        }
        let table = ask("show stat").await;
        let at = |name: &str| table.lines().next().unwrap().split(',').position(|found| found == name).unwrap();
        for (line, rows) in [("f,FRONTEND,", "1 5"), ("b,BACKEND,", "1 5")] {
            let line: Vec<&str> = table.lines().find(|found| found.starts_with(line)).unwrap().split(',').collect();
            assert_eq!(format!("{} {}", line[at("comp_rsp")], line[at("comp_in")]), rows, "{line:?}");
            assert!(line[at("comp_out")].parse::<u64>().unwrap() > 5 && line[at("comp_byp")] == "0");
        }
        let info = ask("show info").await;
        assert!(info.contains("\nCompressBpsIn: 5\n") && info.contains("\nZlibMemUsage: 0\n"), "{info}");
    });
}

/// The limit of the rate prevents new streams from being compressed; so does that of memory, as long as others use it.
#[test]
fn what_is_compressed_is_bounded() {
    listen("compression algo gzip\n server s1 10.0.1.1:80").global(&format!("{SOCKET}\n maxzlibmem 1")).run(
        |_| async move {
            let mut s1 = Service::at(S1);
            let (mut held, mut compressed) = (Vec::new(), 0);
            for _ in 0..12 {
                let mut client = Peer::connect(WEIR).await;
                client.send(asks("gzip")).await;
                let mut server = s1.accept().await;
                server.receive_head().await.unwrap();
                server.send("HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n").await;
                let head = client.receive_head().await.unwrap();
                compressed += usize::from(head.contains("gzip"));
                held.push((client, server, head.contains("gzip")));
            }
            assert_eq!(compressed, (1 << 20) / deflate::MEMORY);
            let held_now = format!("\nZlibMemUsage: {}\n", compressed * deflate::MEMORY);
            let used = ask("show info").await;
            assert!(used.contains(&held_now) && used.contains("\nMaxZlibMemUsage: 1048576\n"), "{used}");
            for (client, server, compressed) in &mut held {
                server.send([b'x'; 2_000]).await;
                if *compressed {
                    assert_eq!(decoded("gzip", &client.receive_chunked(100, 0).await.body), [b'x'; 2_000]);
                } else {
                    client.receive(2_000).await;
                }
            }
            drop(held);
            assert_eq!(ask("set rate-limit http-compression global 1").await, "\n");
            assert!(ask("show info").await.contains("\nCompressBpsRateLim: 1024\n"));
            let mut client = Peer::connect(WEIR).await;
            client.send(asks("gzip")).await;
            let mut server = s1.accept().await;
            server.receive_head().await.unwrap();
            server.send(OK).await;
            client.expect(OK_AT_CLIENT).await;
            assert_eq!(ask("set rate-limit http-compression global 0").await, "\n");
            client.send(asks("gzip")).await;
            server.receive_head().await.unwrap();
            server.send(OK).await;
            assert!(client.receive_head().await.unwrap().contains("gzip"));
        },
    );
}

/// HTTP/2 streams get compressed answers without a length.
#[test]
fn clients_of_http2_are_served_alike() {
    listen("compression algo gzip\n server s1 10.0.1.1:80").shuffled().run(|_| async move {
        let mut s1 = Service::at(S1);
        let mut client = End::connect().await;
        client.post(1, "GET / HTTP/1.1\r\nHost: a\r\naccept-encoding: gzip\r\n\r\n").await;
        let mut server = s1.accept().await;
        server.receive_head().await.unwrap();
        let body = text(50_000, 3);
        server.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len())).await;
        let ((), answered) = both(server.send(&body), client.message(1)).await;
        assert!(answered.head.contains("content-encoding: gzip") && !answered.head.contains("content-length"));
        assert!(decoded("gzip", &answered.payload) == body);
    });
}

/// If the server closes early, the compressed body has no end.
#[test]
fn an_unfinished_body_is_not_finished_here() {
    listen("compression algo gzip\n server s1 10.0.1.1:80").run(|_| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(asks("gzip")).await;
        let mut server = s1.accept().await;
        server.receive_head().await.unwrap();
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello").await;
        client.receive_head().await.unwrap();
        server.close();
        let rest = client.receive_rest().await;
        assert!(!rest.ends_with(b"0\r\n\r\n"), "the last chunk would make it whole");
    });
}
