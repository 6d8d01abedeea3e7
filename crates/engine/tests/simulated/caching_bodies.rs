//! Tests that clients get the server's bodies byte for byte through a cache: stored, awaited by many, compressed for
//! some and cut into ranges for others, in any combination.

use testkit::{Peer, Service, both, encode_chunks, text};

use crate::caching::cached;
use crate::compression::{decoded, random};
use crate::world::*;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The numbers of compressed bodies, and of ranges.
static CODED: AtomicU32 = AtomicU32::new(0);
static CUT: AtomicU32 = AtomicU32::new(0);

/// The form of a body that a client requests.
#[derive(Debug, Clone, Copy)]
enum BodyForm {
    Plain,
    Coded(&'static str),
    /// The number of bytes from this offset.
    Range(usize, usize),
}

fn wish(state: &mut u64, length: usize) -> BodyForm {
    match random(state, 3) {
        0 => BodyForm::Plain,
        1 => BodyForm::Coded(["gzip", "deflate", "br", "zstd"][random(state, 4)]),
        _ => {
            let from = random(state, length);
            BodyForm::Range(from, 1 + random(state, length - from))
        }
    }
}

async fn ask(wish: BodyForm) -> Peer {
    let field = match wish {
        BodyForm::Plain => String::new(),
        BodyForm::Coded(coding) => format!("Accept-Encoding: {coding}\r\n"),
        BodyForm::Range(from, length) => format!("Range: bytes={from}-{}\r\n", from + length - 1),
    };
    let mut client = Peer::connect(WEIR).await;
    client.send(format!("GET /a HTTP/1.1\r\nHost: a\r\n{field}\r\n")).await;
    client
}

/// Receives and checks the requested body. A range may be answered with the whole body.
async fn check(client: &mut Peer, wish: BodyForm, body: &[u8]) {
    let head = client.receive_head().await.unwrap();
    let got = if head.contains("transfer-encoding: chunked") {
        client.receive_chunked(70_000, 0).await.body
    } else {
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split('\r').next()).unwrap();
        client.receive(length.parse().unwrap()).await
    };
    match wish {
        BodyForm::Coded(coding) if head.contains("content-encoding: ") => {
            assert!(head.contains(&format!("content-encoding: {coding}\r\n")), "{wish:?}: {head}");
            assert!(decoded(coding, &got) == body, "{wish:?}: {head}");
            CODED.fetch_add(1, Relaxed);
        }
        BodyForm::Range(from, length) if head.starts_with("HTTP/1.1 206 ") => {
            let said = format!("content-range: bytes {from}-{}/{}\r\n", from + length - 1, body.len());
            assert!(head.contains(&said) && got == body[from..from + length], "{wish:?}: {head}");
            CUT.fetch_add(1, Relaxed);
        }
        _ => assert!(head.starts_with("HTTP/1.1 200 ") && got == body, "{wish:?}: {head}"),
    }
}

#[test]
fn every_body_is_what_the_server_has_sent() {
    let lines = "max-object-size 200000\n coalesce 10s\n ranges on";
    for seed in 0..16_u64 {
        let worlds = cached("compression algo gzip deflate br zstd", lines).seeds(seed..seed + 1);
        let worlds = if seed % 2 == 0 { worlds.shuffled() } else { worlds };
        worlds.run(move |world| async move {
            let mut state = seed + 1;
            let mut s1 = Service::at(S1);
            let length =
                [1, 1 + random(&mut state, 200), 16_384, 1 + random(&mut state, 90_000)][random(&mut state, 4)];
            let body = match random(&mut state, 2) {
                0 => text(length, seed),
                _ => b"all the same ".iter().copied().cycle().take(length).collect(),
            };
            let framing = match random(&mut state, 2) {
                0 => format!("Content-Length: {length}\r\n"),
                _ => "Transfer-Encoding: chunked\r\n".to_owned(),
            };
            let mut answer = format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=50\r\n{framing}\r\n").into_bytes();
            match framing.starts_with("Content") {
                true => answer.extend_from_slice(&body),
                false => answer.extend(encode_chunks(&body, &mut || 1 + random(&mut state, 9_000), &[])),
            }
            // One request reaches the server; the others wait for its answer.
            let first = wish(&mut state, length);
            let mut leader = ask(first).await;
            let mut server = s1.accept().await;
            server.receive_head().await.unwrap();
            let mut waiting = Vec::new();
            for _ in 0..1 + random(&mut state, 5) {
                let wish = wish(&mut state, length);
                waiting.push((ask(wish).await, wish));
            }
            both(server.send(answer), check(&mut leader, first, &body)).await;
            for (client, wish) in &mut waiting {
                check(client, *wish, &body).await;
            }
            // Only from the cache.
            for _ in 0..4 {
                let wish = wish(&mut state, length);
                check(&mut ask(wish).await, wish, &body).await;
            }
            assert_eq!(s1.accepted(), 1, "one request goes to the server");
            world.forget_log();
        });
    }
    let seen = (CODED.load(Relaxed), CUT.load(Relaxed));
    assert!(seen.0 > 16 && seen.1 > 16, "{seen:?}");
}
