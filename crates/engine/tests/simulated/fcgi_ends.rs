//! Tests of the records that FastCGI applications send at the end of their answers.

use testkit::{Peer, Service, sleep};

use crate::fcgi::{PLAIN, app, receive_plain, record, request};
use crate::messages::*;
use crate::world::*;

/// An application that reports after its answer that it is overloaded has answered.
#[test]
fn what_an_application_says_behind_its_answer_does_not_undo_it() {
    for section in ["", " option mpxs-conns\n option max-reqs 4"] {
        app("", section).run(|_| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            for _ in 0..2 {
                client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
                let mut server = s1.accept().await;
                request(&mut server).await;
                let overloaded = record(3, &[0, 0, 0, 0, 2, 0, 0, 0]);
                server.send([record(6, PLAIN.as_bytes()), record(6, b""), overloaded].concat()).await;
                receive_plain(&mut client).await;
                if !section.is_empty() {
                    // Other requests on such a connection continue.
                    return;
                }
            }
        });
    }
}

const OUTPUT: &str = "Content-Length: 2\r\n\r\nok";

async fn receive_ok(client: &mut Peer) {
    let head = client.receive_head().await.unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n"), "{head}");
    client.expect("ok").await;
}

/// A connection is reused once its request has ended, and not before.
#[test]
fn a_connection_is_kept_whose_request_ends_after_its_answer() {
    let ends = [[record(6, b""), record(3, &[0; 8])].concat(), record(3, &[0; 8])];
    for (late, before) in ends.into_iter().zip([&b""[..], &record(6, b"")]) {
        let first = [record(6, OUTPUT.as_bytes()), before.to_vec()].concat();
        app("http-reuse always", "").workers(&[1]).run(move |_| {
            let (late, first) = (late.clone(), first.clone());
            async move {
                let mut s1 = Service::at(S1);
                let mut client = Peer::connect(WEIR).await;
                client.send(GET).await;
                let mut server = s1.accept().await;
                request(&mut server).await;
                server.send(&first).await;
                receive_ok(&mut client).await;
                // The request has not ended yet.
                client.send(GET).await;
                let mut other = s1.accept().await;
                request(&mut other).await;
                server.send(&late).await;
                other.send([record(6, OUTPUT.as_bytes())].concat()).await;
                receive_ok(&mut client).await;
                sleep(500).await;
                client.send(GET).await;
                request(&mut server).await;
                server.send([&first[..], &late].concat()).await;
                receive_ok(&mut client).await;
                // The other one has taken too long.
                sleep(600).await;
                other.expect_end().await;
            }
        });
    }
}

/// Output after an answer belongs to no request: the answer is valid, and the connection ends.
#[test]
fn what_follows_an_answer_ends_the_connection_alone() {
    let end = record(3, &[0; 8]);
    let output = [record(6, OUTPUT.as_bytes()), record(6, b"")].concat();
    let more = record(6, b"HTTP/1.1 200 OK\r\n\r\n");
    let tails = [
        [&end[..], &more].concat(),
        [&end[..], &end].concat(),
        more.clone(),
        [&more[..], &end].concat(),
        [&end[..], b"\x02"].concat(),
        b"HTTP/1.1 200 OK\r\n\r\n".to_vec(),
    ];
    for tail in tails {
        for pause in [0, 5] {
            let (output, tail) = (output.clone(), tail.clone());
            app("http-reuse always", "").workers(&[1]).run(move |_| {
                let (output, tail) = (output.clone(), tail.clone());
                async move {
                    let mut s1 = Service::at(S1);
                    let mut client = Peer::connect(WEIR).await;
                    for _ in 0..2 {
                        client.send(GET).await;
                        let mut server = s1.accept().await;
                        request(&mut server).await;
                        if pause == 0 {
                            server.send([&output[..], &tail].concat()).await;
                            receive_ok(&mut client).await;
                        } else {
                            server.send(&output).await;
                            receive_ok(&mut client).await;
                            sleep(pause).await;
                            server.send(&tail).await;
                        }
                        server.expect_end().await;
                    }
                }
            });
        }
    }
}
