//! Tests of cache features beyond HAProxy's: requests for the same resource share one answer (`coalesce`), stale
//! responses are served while another one is fetched (`stale-while-revalidate`) or its server fails (`stale-if-error`),
//! ranges of stored responses (`ranges`), removal by key and by tag (`purge cache`).

use testkit::{Peer, Service, Stopwatch, sleep};

use crate::api::*;
use crate::world::*;

const RULES: &str = "http-request cache-use c\n http-response cache-store c";

fn cached(cache: &str) -> Worlds {
    listen(&format!("{RULES}\n server s1 10.0.1.1:80\ncache c\n total-max-size 1\n {cache}"))
}

fn request(path: &str, fields: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}Connection: close\r\n\r\n")
}

async fn asks(path: &str, fields: &str) -> Peer {
    let mut client = Peer::connect(WEIR).await;
    client.send(request(path, fields)).await;
    client
}

/// Accepts a request that reaches the server.
async fn asked(s1: &mut Service) -> Peer {
    let mut server = s1.accept().await;
    server.receive_head().await.unwrap();
    server
}

async fn answers(mut server: Peer, fields: &str, body: &str) {
    server.send(format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len())).await;
    server.close();
}

async fn gets(mut client: Peer) -> String {
    String::from_utf8(client.receive_rest().await).unwrap()
}

#[test]
fn a_hundred_requests_become_one() {
    cached("coalesce 5s").run(|world| async move {
        let mut s1 = Service::at(S1);
        let first = asks("/a", "").await;
        let server = asked(&mut s1).await;
        let mut others = Vec::new();
        for _ in 0..100 {
            others.push(asks("/a", "").await);
        }
        let other = asks("/b", "").await;
        let for_other = asked(&mut s1).await;
        sleep(100).await;
        s1.is_left_alone();
        answers(server, "Cache-Control: max-age=9\r\n", "hello").await;
        for client in others {
            assert!(gets(client).await.ends_with("age: 0\r\nconnection: close\r\n\r\nhello"));
        }
        assert!(gets(first).await.ends_with("hello"));
        answers(for_other, "", "b").await;
        assert!(gets(other).await.ends_with("b"));
        s1.is_left_alone();
        world.forget_log();
    });
}

#[test]
fn who_waits_in_vain_goes_to_the_server() {
    // A response that cannot be stored is known by its head; the others need not wait for its end.
    cached("coalesce 5s").run(|world| async move {
        let mut s1 = Service::at(S1);
        let first = asks("/a", "").await;
        let mut server = asked(&mut s1).await;
        let (one, two) = (asks("/a", "").await, asks("/a", "").await);
        sleep(10).await;
        s1.is_left_alone();
        server.send("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\n").await;
        let (a, b) = (asked(&mut s1).await, asked(&mut s1).await);
        answers(a, "", "x").await;
        answers(b, "", "x").await;
        assert!(gets(one).await.ends_with('x') && gets(two).await.ends_with('x'));
        server.send("ok").await;
        assert!(gets(first).await.ends_with("ok"));
        world.forget_log();
    });
}

/// If the request that others wait for fails, one of them is sent to the server instead.
#[test]
fn one_of_those_that_wait_takes_over() {
    let cache = cached("coalesce 5s");
    cache.seeds(0..4).run(|world| async move {
        let mut s1 = Service::at(S1);
        let first = asks("/a", "").await;
        let server = asked(&mut s1).await;
        let mut others = Vec::new();
        for _ in 0..50 {
            others.push(asks("/a", "").await);
        }
        sleep(1000).await;
        s1.is_left_alone();
        // Its connection is closed, then the server fails, then the answer is truncated.
        server.close();
        assert!(gets(first).await.contains(" 502 "));
        let second = asked(&mut s1).await;
        sleep(1000).await;
        s1.is_left_alone();
        fails(second, "503 Service Unavailable").await;
        let mut third = asked(&mut s1).await;
        sleep(1000).await;
        s1.is_left_alone();
        third.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=9\r\nContent-Length: 9\r\n\r\nhel").await;
        third.close();
        let fourth = asked(&mut s1).await;
        sleep(1000).await;
        s1.is_left_alone();
        answers(fourth, "Cache-Control: max-age=9\r\n", "hello").await;
        let (mut whole, mut failed) = (0, 0);
        for client in others {
            let answer = gets(client).await;
            whole += usize::from(answer.ends_with("\r\n\r\nhello"));
            failed += usize::from(answer.ends_with("\r\n\r\nbad") || answer.ends_with("\r\n\r\nhel"));
        }
        assert_eq!((whole, failed), (48, 2));
        s1.is_left_alone();
        world.forget_log();
    });
}

/// If it takes too long, another one is sent as well, and the others take the first answer.
#[test]
fn one_at_a_time_goes_beside_a_request_that_is_late() {
    cached("coalesce 1s").seeds(0..4).run(|world| async move {
        let mut s1 = Service::at(S1);
        let first = asks("/a", "").await;
        let server = asked(&mut s1).await;
        let watch = Stopwatch::start();
        let mut others = Vec::new();
        for _ in 0..50 {
            others.push(asks("/a", "").await);
        }
        let second = asked(&mut s1).await;
        watch.took(1_000);
        sleep(500).await;
        s1.is_left_alone();
        let third = asked(&mut s1).await;
        watch.took(2_000);
        sleep(500).await;
        s1.is_left_alone();
        answers(server, "Cache-Control: max-age=9\r\n", "hello").await;
        assert!(gets(first).await.ends_with("hello"));
        answers(second, "", "2").await;
        answers(third, "", "3").await;
        let mut own = Vec::new();
        for client in others {
            let answer = gets(client).await;
            if !answer.ends_with("hello") {
                own.push(answer.chars().last());
            }
        }
        own.sort_unstable();
        assert_eq!(own, [Some('2'), Some('3')]);
        s1.is_left_alone();
        world.forget_log();
    });
}

/// A client does not wait for an unlimited number of requests one after the other.
#[test]
fn a_request_waits_for_ten_others_at_most() {
    cached("coalesce 1s").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut clients = Vec::new();
        for _ in 0..30 {
            clients.push(asks("/a", "").await);
        }
        let watch = Stopwatch::start();
        let mut servers = Vec::new();
        for _ in 0..30 {
            servers.push(asked(&mut s1).await);
        }
        watch.took(10_000);
        for server in servers {
            answers(server, "", "x").await;
        }
        for client in clients {
            assert!(gets(client).await.ends_with('x'));
        }
        world.forget_log();
    });
}

/// A close-delimited body may be truncated.
#[test]
fn a_body_that_nothing_but_its_connection_ends_is_not_stored() {
    cached("coalesce 5s").run(|world| async move {
        let mut s1 = Service::at(S1);
        for body in ["hello", "hel", "hello"] {
            let client = asks("/a", "").await;
            let mut server = asked(&mut s1).await;
            server.send(format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=9\r\n\r\n{body}")).await;
            server.close();
            assert!(gets(client).await.ends_with(body));
        }
        let client = asks("/a", "").await;
        let mut server = asked(&mut s1).await;
        server.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=9\r\nTransfer-Encoding: chunked\r\n\r\n").await;
        server.send("5\r\nhello\r\n0\r\n\r\n").await;
        assert!(gets(client).await.contains("hello"));
        assert!(gets(asks("/a", "").await).await.contains("hello"));
        s1.is_left_alone();
        world.forget_log();
    });
}

#[test]
fn an_old_response_serves_while_another_one_is_fetched() {
    cached("stale-while-revalidate 60").run(|world| async move {
        let mut s1 = Service::at(S1);
        let fresh = "Cache-Control: max-age=10\r\n";
        let first = asks("/a", "").await;
        answers(asked(&mut s1).await, fresh, "old").await;
        assert!(gets(first).await.ends_with("old"));
        sleep(12_000).await;
        let leader = asks("/a", "").await;
        let server = asked(&mut s1).await;
        for _ in 0..3 {
            assert!(gets(asks("/a", "").await).await.ends_with("age: 12\r\nconnection: close\r\n\r\nold"));
        }
        answers(server, fresh, "new").await;
        assert!(gets(leader).await.ends_with("new"));
        assert!(gets(asks("/a", "").await).await.ends_with("age: 0\r\nconnection: close\r\n\r\nnew"));
        // A failing server leaves the old one for the others, until it is too old.
        sleep(12_000).await;
        let leader = asks("/a", "").await;
        let server = asked(&mut s1).await;
        assert!(gets(asks("/a", "").await).await.ends_with("new"));
        server.close();
        assert!(gets(leader).await.contains(" 502 "));
        sleep(60_000).await;
        let leader = asks("/a", "").await;
        let other = asks("/a", "").await;
        let (one, two) = (asked(&mut s1).await, asked(&mut s1).await);
        answers(one, "", "x").await;
        answers(two, "", "x").await;
        assert!(gets(leader).await.ends_with('x') && gets(other).await.ends_with('x'));
        world.forget_log();
    });
}

#[test]
fn ranges_are_parts_of_what_is_stored() {
    cached("max-object-size 20000\n ranges on").run(|world| async move {
        let mut s1 = Service::at(S1);
        let body: String = (0..2_000).map(|number| format!("{number:04} ")).collect();
        let first = asks("/a", "").await;
        answers(asked(&mut s1).await, "Cache-Control: max-age=99\r\nETag: \"e\"\r\n", &body).await;
        assert!(gets(first).await.ends_with(&body));
        let rows: &[(&str, Option<(usize, usize)>)] = &[
            ("bytes=0-0", Some((0, 1))),
            ("bytes=5-8", Some((5, 9))),
            ("bytes=9990-", Some((9_990, 10_000))),
            ("bytes=9990-99999", Some((9_990, 10_000))),
            ("bytes=-5", Some((9_995, 10_000))),
            ("bytes=-99999", Some((0, 10_000))),
            ("bytes=10000-", None),
            ("bytes=-0", None),
        ];
        for (range, part) in rows {
            let got = gets(asks("/a", &format!("Range: {range}\r\n")).await).await;
            let (head, content) = got.split_once("\r\n\r\n").unwrap();
            match *part {
                Some((from, to)) => {
                    assert!(head.starts_with("HTTP/1.1 206 Partial Content\r\n"), "{range}: {head}");
                    let last = to - 1;
                    assert!(head.contains(&format!("content-range: bytes {from}-{last}/10000\r\n")), "{head}");
                    assert!(head.contains(&format!("content-length: {}\r\n", to - from)), "{head}");
                    assert_eq!(content, &body[from..to], "{range}");
                }
                None => {
                    assert!(head.starts_with("HTTP/1.1 416 "), "{range}: {head}");
                    assert!(head.contains("content-range: bytes */10000\r\n") && content.is_empty(), "{head}");
                }
            }
        }
        for fields in [
            "Range: bytes=0-1,3-4\r\n",
            "Range: bytes=4-1\r\n",
            "Range: lines=0-1\r\n",
            "Range: bytes=a-b\r\n",
            "Range: bytes=-\r\n",
            "Range: bytes=0-1\r\nIf-Range: \"other\"\r\n",
            "Range: bytes=0-1\r\nIf-Range: W/\"e\"\r\n",
        ] {
            let got = gets(asks("/a", fields).await).await;
            assert!(got.starts_with("HTTP/1.1 200 OK\r\n") && got.ends_with(&body), "{fields}");
        }
        let same = gets(asks("/a", "Range: bytes=0-1\r\nIf-Range: \"e\"\r\n").await).await;
        assert!(same.starts_with("HTTP/1.1 206 ") && same.ends_with("\r\n\r\n00"), "{same}");
        world.forget_log();
    });
}

#[test]
fn responses_are_removed_by_key_and_by_tag() {
    cached("tag-header Cache-Tag").global(SOCKET).run(|world| async move {
        let mut s1 = Service::at(S1);
        for (path, tags) in [("/a", "one, two"), ("/b", "two"), ("/c", "three")] {
            let client = asks(path, "").await;
            answers(asked(&mut s1).await, &format!("Cache-Control: max-age=99\r\nCache-Tag: {tags}\r\n"), path).await;
            assert!(gets(client).await.ends_with(path));
        }
        assert_eq!(ask("purge cache c tag four").await, "0 removed\n\n");
        assert_eq!(ask("purge cache c tag two").await, "2 removed\n\n");
        assert_eq!(ask("purge cache c key http://a/c").await, "1 removed\n\n");
        assert_eq!(ask("purge cache c key http://a/c").await, "0 removed\n\n");
        assert!(ask("purge cache d all").await.starts_with("No such cache."));
        for path in ["/a", "/b", "/c"] {
            let client = asks(path, "").await;
            answers(asked(&mut s1).await, "", path).await;
            gets(client).await;
        }
        assert!(ask("show cache").await.contains("available blocks:1024)\n"));
        world.forget_log();
    });
}

/// Answers with an error.
async fn fails(mut server: Peer, status: &str) {
    server.send(format!("HTTP/1.1 {status}\r\nContent-Length: 3\r\n\r\nbad")).await;
}

#[test]
fn an_old_response_serves_while_its_server_fails() {
    cached("stale-if-error 60").run(|world| async move {
        let mut s1 = Service::at(S1);
        let rows = [
            ("/a", "max-age=10", true),
            ("/b", "max-age=10, must-revalidate", false),
            ("/c", "max-age=10, stale-if-error=1", false),
            ("/d", "s-maxage=10", false),
        ];
        for (path, control, _) in rows {
            let client = asks(path, "").await;
            answers(asked(&mut s1).await, &format!("Cache-Control: {control}\r\n"), "old").await;
            assert!(gets(client).await.ends_with("old"));
        }
        sleep(12_000).await;
        for (path, _, serves) in rows {
            let client = asks(path, "").await;
            fails(asked(&mut s1).await, "503 Service Unavailable").await;
            let answer = gets(client).await;
            let expected = if serves { "age: 12\r\nconnection: close\r\n\r\nold" } else { "bad" };
            assert!(answer.ends_with(expected), "{path}: {answer}");
        }
        // A server that closes, violates the protocol, or is late.
        let client = asks("/a", "").await;
        asked(&mut s1).await.close();
        assert!(gets(client).await.ends_with("old"));
        let client = asks("/a", "").await;
        asked(&mut s1).await.send("nonsense\r\n\r\n").await;
        assert!(gets(client).await.ends_with("old"));
        let client = asks("/a", "").await;
        let late = asked(&mut s1).await;
        assert!(gets(client).await.ends_with("old"));
        late.close();
        // A client that requests a fresh response gets the error, and so do all clients for a response that is private.
        let client = asks("/a", "Cache-Control: no-cache\r\n").await;
        fails(asked(&mut s1).await, "500 Oops").await;
        assert!(gets(client).await.ends_with("bad"));
        let client = asks("/a", "").await;
        fails(asked(&mut s1).await, "404 Not Found").await;
        assert!(gets(client).await.ends_with("bad"));
        // There is no server to connect to.
        drop(s1);
        assert!(gets(asks("/a", "").await).await.ends_with("old"));
        sleep(70_000).await;
        assert!(gets(asks("/a", "").await).await.contains(" 503 "));
        world.forget_log();
    });
}

#[test]
fn a_rule_removes_what_is_stored_for_a_request() {
    let rules =
        "acl purges method PURGE\n http-request cache-purge c if purges\n http-request return status 204 if purges";
    listen(&format!("{rules}\n {RULES}\n server s1 10.0.1.1:80\ncache c\n total-max-size 1")).run(|world| async move {
        let mut s1 = Service::at(S1);
        for path in ["/a", "/b"] {
            let client = asks(path, "").await;
            answers(asked(&mut s1).await, "Cache-Control: max-age=9\r\n", "old").await;
            assert!(gets(client).await.ends_with("old"));
        }
        let mut client = Peer::connect(WEIR).await;
        client.send("PURGE /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
        assert!(gets(client).await.starts_with("HTTP/1.1 204 "));
        assert!(gets(asks("/b", "").await).await.ends_with("old"));
        let client = asks("/a", "").await;
        answers(asked(&mut s1).await, "Cache-Control: max-age=9\r\n", "new").await;
        assert!(gets(client).await.ends_with("new"));
        world.forget_log();
    });
}
