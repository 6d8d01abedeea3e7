//! Tests of trailers as long as a buffer, or longer: they are forwarded completely or not at all.

use testkit::{Peer, Service};

use crate::messages::*;
use crate::world::*;

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n";
const CHUNKED_AT_CLIENT: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n2\r\nok\r\n";

#[test]
fn trailers_go_on_whole_or_the_answer_is_cut() {
    let lines = |count: usize| "x:y\r\n".repeat(count);
    let sections: Vec<String> = [20, 60, 99, 100, 101, 190, 200, 210, 300]
        .map(lines)
        .into_iter()
        .chain((700..1100).step_by(9).map(|length| format!("x:{}\r\n", "v".repeat(length))))
        .collect();
    for section in sections {
        listen("server s1 10.0.1.1:80").global("tune.bufsize 1024\ntune.maxrewrite 200").workers(&[1]).seeds(0..2).run(
            move |_| {
                let section = section.clone();
                async move {
                    let mut s1 = Service::at(S1);
                    let mut client = Peer::connect(WEIR).await;
                    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
                    let mut server = s1.accept().await;
                    server.expect(GET_AT_SERVER).await;
                    // The head first: it is forwarded with any trailers.
                    server.send(CHUNKED).await;
                    client.expect(CHUNKED_AT_CLIENT).await;
                    server.try_send(format!("0\r\n{section}\r\n")).await;
                    let rest = String::from_utf8(client.receive_rest().await).unwrap();
                    let whole = format!("0\r\n{}\r\n", section.replace(':', ": "));
                    assert!(rest == whole || rest.is_empty(), "{} bytes of {}: {rest:?}", rest.len(), whole.len());
                    assert!(section.len() > 400 || rest == whole, "{} bytes were too many", section.len());
                }
            },
        );
    }
}
