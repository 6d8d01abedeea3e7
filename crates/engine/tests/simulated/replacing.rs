//! Tests of replacing matches in bodies (`replace-body`): with any framing, in both directions, with other filters.

use testkit::{Peer, Service, sleep};

use crate::h2::Client;
use crate::messages::*;
use crate::world::*;

/// Checks the client's view of a server's answer.
fn replaces(options: &'static str, request: &'static str, answer: &'static str, at_client: &'static str) {
    listen(&format!("{options}\n server s1 10.0.1.1:80")).run(move |world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(request).await;
        let mut server = s1.accept().await;
        server.receive_head().await;
        server.send(answer).await;
        if !answer.to_ascii_lowercase().contains("length") && !answer.contains("chunked") {
            server.close();
        }
        client.expect(at_client).await;
        world.forget_log();
    });
}

const HOST: &str = "http-response replace-body \"(internal)[.]host\" \\1.example";

#[test]
fn lengths_become_chunks() {
    replaces(
        HOST,
        GET,
        "HTTP/1.1 200 OK\r\nContent-Length: 15\r\nETag: \"e\"\r\nAccept-Ranges: bytes\r\n\r\nx internal.host",
        "HTTP/1.1 200 OK\r\netag: W/\"e\"\r\ntransfer-encoding: chunked\r\n\r\n12\r\nx internal.example\r\n0\r\n\r\n",
    );
    replaces(
        HOST,
        GET,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ninter\r\n8\r\nnal.host\r\n0\r\nX: y\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n10\r\ninternal.example\r\n0\r\nx: y\r\n\r\n",
    );
    replaces(
        HOST,
        GET,
        "HTTP/1.1 200 OK\r\n\r\ninternal.host",
        "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\ninternal.example",
    );
}

#[test]
fn what_has_no_body_or_a_part_of_one_or_a_coding_stays() {
    let same: &[(&str, &str, &str)] = &[
        (
            GET,
            "HTTP/1.1 206 Partial\r\nContent-Length: 13\r\nContent-Range: bytes 0-12/99\r\n\r\ninternal.host",
            "HTTP/1.1 206 Partial\r\ncontent-length: 13\r\ncontent-range: bytes 0-12/99\r\n\r\ninternal.host",
        ),
        (
            GET,
            "HTTP/1.1 200 OK\r\nContent-Length: 13\r\nContent-Encoding: br\r\n\r\ninternal.host",
            "HTTP/1.1 200 OK\r\ncontent-length: 13\r\ncontent-encoding: br\r\n\r\ninternal.host",
        ),
        (GET, "HTTP/1.1 304 Not\r\nETag: \"e\"\r\n\r\n", "HTTP/1.1 304 Not\r\netag: \"e\"\r\n\r\n"),
        (GET, "HTTP/1.1 204 No\r\n\r\n", "HTTP/1.1 204 No\r\n\r\n"),
        (GET, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
    ];
    for &(request, answer, at_client) in same {
        let answer = if answer.contains("304") || answer.contains("204") {
            // The connection is kept: another answer cannot be taken for a body.
            answer
        } else {
            answer
        };
        listen(&format!("{HOST}\n server s1 10.0.1.1:80")).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(request).await;
            let mut server = s1.accept().await;
            server.receive_head().await;
            server.send(answer).await;
            client.expect(at_client).await;
            client.send(request).await;
            server.receive_head().await;
            server.send(answer).await;
            client.expect(at_client).await;
            world.forget_log();
        });
    }
    replaces(
        HOST,
        "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 13\r\nContent-MD5: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
    );
}

#[test]
fn rules_apply_in_their_order_and_only_where_they_hold() {
    replaces(
        "http-response replace-body a b\n http-response replace-body b c\n http-response replace-body c d if FALSE",
        GET,
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nccc\r\n0\r\n\r\n",
    );
}

#[test]
fn requests_are_replaced_as_well() {
    let rules =
        "http-request set-var(txn.x) str(new)\n http-request replace-body old %[var(txn.x)]\n http-request mirror l";
    listen(&format!("{rules}\n server s1 10.0.1.1:80")).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(post(9) + "an old").await;
        // The copy of the request has the same body; the order of the two connections is not fixed.
        let (mut one, mut two) = (s1.accept().await, s1.accept().await);
        sleep(10).await;
        client.send("man").await;
        let head = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
        for server in [&mut one, &mut two] {
            server.expect(format!("{head}9\r\nan newman\r\n0\r\n\r\n")).await;
            server.send(OK).await;
        }
        client.expect(OK_AT_CLIENT).await;
        world.forget_log();
    });
}

#[test]
fn a_client_of_http2_gets_frames() {
    listen(&format!("{HOST}\n server s1 10.0.1.1:80")).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::connect().await;
        client.get(1, "/").await;
        let mut server = s1.accept().await;
        server.receive_head().await;
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\ninternal.host").await;
        client.expect(1, 200, "internal.example").await;
        world.forget_log();
    });
}

#[test]
fn what_is_replaced_is_compressed_afterwards_and_stored_before() {
    let sections = format!(
        "cache c\n total-max-size 4\n max-age 100\nlisten l\n bind {WEIR}\n http-request cache-use c\n \
         http-response cache-store c\n http-response replace-body x %[rand(1),add(%[var(proc.n)])]y\n \
         compression algo identity\n server s1 10.0.1.1:80\n"
    );
    let sections = sections.replace("%[rand(1),add(%[var(proc.n)])]", "");
    config(&sections).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        let at_client = "HTTP/1.1 200 OK\r\ncache-control: max-age=9\r\n";
        client.send(GET).await;
        let mut server = s1.accept().await;
        server.receive_head().await;
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nCache-Control: max-age=9\r\n\r\naxb").await;
        let rest = "transfer-encoding: chunked\r\nvary: Accept-Encoding\r\n\r\n3\r\nayb\r\n0\r\n\r\n";
        client.expect(format!("{at_client}{rest}")).await;
        // The cache contains the server's answer, to which the rule is applied.
        client.send(GET).await;
        client.expect(format!("{at_client}age: 0\r\n{rest}")).await;
        s1.is_left_alone();
        world.forget_log();
    });
}
