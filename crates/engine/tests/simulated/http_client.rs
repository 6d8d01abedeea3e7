//! Tests of the process's own HTTP client, by the runtime command `httpclient`: scripted servers whose answers arrive
//! in pieces, late, broken or without an end.

use testkit::{Peer, Service, Stopwatch, sleep};

use crate::api::{SOCKET, ask};
use crate::world::*;

/// A request for `/`.
const GET: &str = "GET / HTTP/1.1\r\nhost: 10.0.1.1\r\naccept: */*\r\nuser-agent: HAProxy\r\n\r\n";

/// A body in the form of the command's output.
fn answer(body: &str) -> String {
    format!("\nHTTP/1.1 200 OK\ncontent-length: {}\r\n\r\n{body}\n", body.len())
}

async fn request(rest: &str) -> String {
    ask(&format!("expert-mode on; httpclient {rest}")).await
}

fn worlds(lines: &str) -> Worlds {
    listen("server s1 10.0.1.1:80").global(&format!("{SOCKET}\nstats timeout 10m\n{lines}")).workers(&[1, 2])
}

#[test]
fn a_request_goes_out_as_haproxy_sends_it_and_its_answer_is_shown() {
    worlds("").run(|world| async move {
        world.scope.spawn(async move {
            let mut service = Service::at(S1);
            for _ in 0..2 {
                let mut peer = service.accept().await;
                let head = "GET /a?b HTTP/1.1\r\nhost: 10.0.1.1\r\naccept: */*\r\nuser-agent: HAProxy\r\n\r\n";
                peer.expect(head).await;
                peer.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nX-Y: z\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab").await;
                sleep(500).await;
                peer.send("c\r\n2\r\nde\r\n0\r\nx: y\r\n\r\n").await;
                peer.expect_end().await;
            }
            let mut peer = service.accept().await;
            peer.expect("POST / HTTP/1.1\r\nhost: 10.0.1.1:80\r\naccept: */*\r\nuser-agent: HAProxy\r\ncontent-length: 4\r\n\r\nabc\n").await;
            peer.send("HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n").await;
            peer.expect_end().await;
            let mut peer = service.accept().await;
            peer.expect("HEAD / HTTP/1.1\r\nhost: 10.0.1.1\r\naccept: */*\r\nuser-agent: HAProxy\r\n\r\n").await;
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").await;
            peer.expect_end().await;
            let mut peer = service.accept().await;
            peer.expect("GET / HTTP/1.1\r\nhost: 10.0.1.1\r\naccept: */*\r\nuser-agent: HAProxy\r\n\r\n").await;
            peer.send("HTTP/1.0 200 OK\r\n\r\nuntil the end").await;
        });
        let chunked = "\nHTTP/1.1 200 OK\nx-y: z\r\ntransfer-encoding: chunked\r\n\r\nabcde\n";
        assert_eq!(request("GET http://10.0.1.1/a?b#c").await, chunked);
        assert_eq!(request("--htx GET http://u:p@10.0.1.1/a?b").await, chunked);
        // Redirects are not followed.
        let found = "\nHTTP/1.1 302 Found\nlocation: http://elsewhere/\r\ncontent-length: 0\r\n\r\n\n";
        assert_eq!(request("POST http://10.0.1.1:80/ <<\nabc\n").await, found);
        assert_eq!(request("HEAD http://10.0.1.1").await, answer("").replace(": 0", ": 5"));
        assert_eq!(request("GET http://10.0.1.1").await, "\nHTTP/1.0 200 OK\n\r\nuntil the end\n");
    });
}

#[test]
fn what_cannot_be_asked_for_is_refused() {
    worlds("").run(|_| async move {
        let refused = "\nCan't start the HTTP client.\n\n";
        let rows = [
            "GET /x",
            "GET ftp://10.0.1.1/",
            "GET http://10.0.1.1:x/",
            "G{T http://10.0.1.1/",
            "GET https://10.0.1.1/",
        ];
        for row in rows {
            assert_eq!(request(row).await, refused, "{row}");
        }
        for row in ["", "GET", "--htx GET"] {
            assert_eq!(request(row).await, "\nCan't start the HTTP client: not enough parameters.\n\n", "{row}");
        }
        // It requires expert mode.
        assert!(ask("httpclient GET http://10.0.1.1/").await.contains("expert"));
    });
}

/// The output for a failed request.
fn none(status: &str, sentence: &str) -> String {
    let page = format!("<html><body><h1>{status}</h1>\n{sentence}\n</body></html>\n");
    let reason = &status[4..];
    let length = page.len();
    format!(
        "\nHTTP/1.1 0 {reason}\ncontent-length: {length}\r\ncache-control: no-cache\r\ncontent-type: text/html\r\n\r\n{page}\n"
    )
}

#[test]
fn connections_that_fail_are_tried_again_and_nothing_is_sent_twice() {
    let unreachable = || none("503 Service Unavailable", "No server is available to handle this request.");
    worlds("httpclient.retries 2\nhttpclient.timeout.connect 500ms").run(move |world| async move {
        let watch = Stopwatch::start();
        // There is no listener: three attempts, half a second apart.
        assert_eq!(request("GET http://10.0.1.1/").await, unreachable());
        watch.took(1_000);
        // A name, without name servers.
        assert_eq!(request("GET http://name.example/").await, unreachable());
        world.scope.spawn(async move {
            sleep(700).await;
            let mut service = Service::at(S1);
            let mut peer = service.accept().await;
            peer.expect(GET).await;
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
            peer.expect_end().await;
            // Closed before the answer: the request is not retried.
            let mut peer = service.accept().await;
            peer.expect(GET).await;
            drop(peer);
            let mut peer = service.accept().await;
            peer.expect(GET).await;
            peer.send("SMTP ready\r\n\r\n").await;
            peer.expect_end().await;
            let mut peer = service.accept().await;
            peer.expect(GET).await;
            peer.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n").await;
            peer.expect_end().await;
            // A head without an end.
            let mut peer = service.accept().await;
            peer.expect(GET).await;
            peer.try_send(format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(40_000))).await;
            while peer.try_send("y".repeat(1_000)).await {
                sleep(1).await;
            }
            // A silent server.
            let _peer = service.accept().await;
            sleep(120_000).await;
        });
        assert_eq!(request("GET http://10.0.1.1/").await, answer("ok"));
        let invalid = || none("502 Bad Gateway", "The server returned an invalid or incomplete response.");
        for row in ["closed", "not HTTP", "another protocol", "an endless head"] {
            assert_eq!(request("GET http://10.0.1.1/").await, invalid(), "{row}");
        }
        let late = none("504 Gateway Time-out", "The server didn't respond in time.");
        assert_eq!(request("GET http://10.0.1.1/").await, late);
    });
}

#[test]
fn whoever_leaves_ends_the_request() {
    worlds("").run(|world| async move {
        let mut service = Service::at(S1);
        world.scope.spawn(async move {
            let mut peer = Peer::connect("10.0.0.2:9001").await;
            peer.send("expert-mode on; httpclient GET http://10.0.1.1/\n").await;
            sleep(100).await;
        });
        let mut peer = service.accept().await;
        peer.expect(GET).await;
        peer.send("HTTP/1.1 200 OK\r\n\r\n").await;
        for _ in 0..10_000 {
            if !peer.try_send("x".repeat(10_000)).await {
                return;
            }
            sleep(1).await;
        }
        panic!("the answer is read on though nobody takes it");
    });
}
