//! Tests of caches (configuration manual, section 6): only complete stored responses are served, without a server;
//! parts of a request that are not in its key cannot change the responses to others.

use testkit::{Peer, Service, text};

use crate::api::*;
use crate::messages::*;
use crate::parts::{End, Part};
use crate::world::*;

const RULES: &str = "http-request cache-use c\n http-response cache-store c\n \
                     http-response set-header x-hit %[res.cache_hit],%[res.cache_name]\n";

/// A proxy with a cache of a megabyte.
pub(crate) fn cached(more: &str, cache: &str) -> Worlds {
    listen(&format!("{RULES} {more}\n server s1 10.0.1.1:80\ncache c\n total-max-size 1\n {cache}"))
}

/// A request that closes its connection.
pub(crate) fn request(line: &str, fields: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: a\r\n{fields}Connection: close\r\n\r\n")
}

/// Sends a request that has to reach the server, which answers it.
pub(crate) async fn missed(s1: &mut Service, asked: &str, answered: &str) -> String {
    let mut client = Peer::connect(WEIR).await;
    client.send(asked).await;
    let mut server = s1.accept().await;
    server.receive_head().await.unwrap();
    server.send(answered).await;
    server.close();
    let got = String::from_utf8(client.receive_rest().await).unwrap();
    assert!(got.contains("x-hit: 0,\r\n"), "{got}");
    got
}

/// Sends a request that has to be answered without a server.
pub(crate) async fn hit(asked: &str) -> String {
    let mut client = Peer::connect(WEIR).await;
    client.send(asked).await;
    String::from_utf8(client.receive_rest().await).unwrap()
}

fn ok(fields: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len())
}

const FRESH: &str = "Cache-Control: max-age=50\r\n";

#[test]
fn what_was_stored_is_served_until_it_is_over() {
    cached("", "max-age 100").global(SOCKET).run(|world| async move {
        let mut s1 = Service::at(S1);
        let get = request("GET /a", "");
        let fields = "ETag: \"e\"\r\nAge: 7\r\nCache-Control: max-age=50\r\n";
        let first = missed(&mut s1, &get, &ok(fields, "hello")).await;
        assert!(!first.contains("age: 7"), "how old it is says the cache: {first}");
        testkit::sleep(2_000).await;
        let head = "HTTP/1.1 200 OK\r\netag: \"e\"\r\ncache-control: max-age=50\r\ncontent-length: 5\r\nage: 9\r\nx-hit: 1,c\r\n\
                    connection: close\r\n\r\n";
        assert_eq!(hit(&get).await, format!("{head}hello"));
        assert_eq!(hit(&request("HEAD /a", "")).await, head);
        let known = hit(&request("GET /a", "If-None-Match: W/\"e\"\r\n")).await;
        assert!(known.starts_with("HTTP/1.1 304 Not Modified\r\netag: \"e\"\r\n") && known.ends_with("\r\n\r\n"), "{known}");
        let table = ask("show stat").await;
        let at = |name: &str| table.lines().next().unwrap().split(',').position(|found| found == name).unwrap();
        let line: Vec<&str> = table.lines().find(|line| line.starts_with("l,FRONTEND,")).unwrap().split(',').collect();
        assert_eq!((line[at("cache_lookups")], line[at("cache_hits")]), ("4", "3"));
        let shown = ask("show cache").await;
        assert!(shown.contains(": c (shctx:0x") && shown.contains("available blocks:1024)\n"), "{shown}");
        assert!(shown.contains(" type:full size:") && shown.contains("(1 blocks), refcount:0, expire:40\n"), "{shown}");
        // It was 7 seconds old when it was received, so 43 of 50 are left.
        testkit::sleep(41_000).await;
        missed(&mut s1, &get, &ok(fields, "hello")).await;
        world
            .expect_log(&[
                r#"l l/s1 0/0/0/0/0 200 # - - ---- 1/1/0/0/0 0/0 "GET /a HTTP/1.1""#,
                r#"l l/<CACHE> 0/0/0/0/0 200 # - - LR-- 1/1/0/0/0 0/0 "GET /a HTTP/1.1""#,
                r#"l l/<CACHE> 0/0/0/0/0 200 # - - LR-- 1/1/0/0/0 0/0 "HEAD /a HTTP/1.1""#,
                r#"l l/<CACHE> 0/0/0/0/0 304 # - - LR-- 1/1/0/0/0 0/0 "GET /a HTTP/1.1""#,
                r#"l l/s1 0/0/0/0/0 200 # - - ---- 1/1/0/0/0 0/0 "GET /a HTTP/1.1""#,
            ])
            .await;
    });
}

/// Bodies of all framings are returned byte for byte, over HTTP/1 and HTTP/2, and compressed for clients that accept
/// that.
#[test]
fn bodies_come_back_as_they_were() {
    cached("compression algo gzip", "max-object-size 300000").shuffled().run(|_| async move {
        let mut s1 = Service::at(S1);
        for (number, length) in [0_usize, 1, 16_383, 16_384, 100_000].into_iter().enumerate() {
            for chunked in [false, true] {
                let body = text(length, number as u64);
                let get = request(&format!("GET /{number}/{chunked}"), "");
                let mut client = Peer::connect(WEIR).await;
                client.send(&get).await;
                let mut server = s1.accept().await;
                server.receive_head().await.unwrap();
                let answer = if chunked {
                    let coded = testkit::encode_chunks(&body, &mut || 7_001, &[]);
                    [format!("HTTP/1.1 200 OK\r\n{FRESH}Transfer-Encoding: chunked\r\n\r\n").into_bytes(), coded]
                        .concat()
                } else {
                    [format!("HTTP/1.1 200 OK\r\n{FRESH}Content-Length: {length}\r\n\r\n").into_bytes(), body.clone()]
                        .concat()
                };
                testkit::both(server.send(answer), client.receive_rest()).await;
                drop(server);
                let mut client = Peer::connect(WEIR).await;
                client.send(&get).await;
                let head = client.receive_head().await.unwrap();
                assert!(head.contains("x-hit: 1,c\r\n"), "{head}");
                let got =
                    if chunked { client.receive_chunked(9_000, 0).await.body } else { client.receive(length).await };
                assert!(got == body, "{length} bytes");
                // Unchanged, on a stream.
                let mut client = End::connect().await;
                client.send(Part::HeadAlone, 1, format!("GET /{number}/{chunked} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
                let answered = client.message(1).await;
                assert!(answered.head.contains("x-hit: 1,c") && answered.payload == body, "{}", answered.head);
                let mut client = End::connect().await;
                let asked = format!("GET /{number}/{chunked} HTTP/1.1\r\nHost: a\r\naccept-encoding: gzip\r\n\r\n");
                client.send(Part::HeadAlone, 1, asked).await;
                let answered = client.message(1).await;
                assert!(answered.head.contains("x-hit: 1,c"), "{}", answered.head);
                if length > 0 {
                    assert!(answered.head.contains("content-encoding: gzip"), "{}", answered.head);
                    let mut plain = Vec::new();
                    let mut decoder = flate2::read::GzDecoder::new(&answered.payload[..]);
                    std::io::Read::read_to_end(&mut decoder, &mut plain).unwrap();
                    assert!(plain == body);
                }
            }
        }
    });
}

/// Bodies of any number of pieces are encrypted in place, for clients that read fast and slowly.
#[test]
fn bodies_come_back_over_tls() {
    use crate::secure::{Secure, client};
    use tls::provider::Version;
    const SECURE: &str = "10.0.0.1:443";
    let bind = format!("bind {SECURE} ssl crt a.pem alpn http/1.1");
    cached(&bind, "max-object-size 500000").run(|_| async move {
        let mut s1 = Service::at(S1);
        for (number, length) in [1_usize, 16_384, 65_536, 65_537, 400_000].into_iter().enumerate() {
            let body = text(length, number as u64);
            let head = format!("HTTP/1.1 200 OK\r\n{FRESH}Content-Length: {length}\r\n\r\n");
            let own = client((Version::Tls13, Version::Tls13));
            // A request over TLS is for another resource.
            let mut first = Secure::connect(SECURE, &own, 100_000).await.unwrap();
            first.send(get(&format!("/{number}"))).await;
            let mut server = s1.accept().await;
            server.receive_head().await.unwrap();
            testkit::both(server.send([head.into_bytes(), body.clone()].concat()), async {
                first.receive_head().await;
                assert!(first.receive(length).await == body);
            })
            .await;
            drop((server, first));
            for piece in [1_000, 100_000] {
                let mut secure = Secure::connect(SECURE, &own, piece).await.unwrap();
                secure.send(get(&format!("/{number}"))).await;
                let head = secure.receive_head().await;
                assert!(head.contains("x-hit: 1,c"), "{head}");
                assert!(secure.receive(length).await == body, "{length} bytes");
            }
        }
    });
}

/// Responses that must not be stored, because of the request, the response, or the section.
#[test]
fn much_is_not_stored() {
    let large = "x".repeat(5_000);
    let rows: &[(&str, &str, String)] = &[
        ("GET /", "Authorization: x\r\n", ok(FRESH, "ok")),
        ("GET /", "Cache-Control: no-store\r\n", ok(FRESH, "ok")),
        ("GET /", "", ok("", "ok")),
        ("GET /", "", ok("Cache-Control: private, max-age=5\r\n", "ok")),
        ("GET /", "", ok("Cache-Control: max-age=5\r\nVary: Accept-Encoding\r\n", "ok")),
        ("GET /", "", ok("Cache-Control: max-age=5\r\nVary: *\r\n", "ok")),
        ("GET /", "", format!("HTTP/1.1 404 No\r\n{FRESH}Content-Length: 2\r\n\r\nok")),
        ("GET /", "", format!("HTTP/1.1 206 Part\r\n{FRESH}Content-Length: 2\r\n\r\nok")),
        ("GET /", "", ok(FRESH, &large)),
        (
            "GET /",
            "",
            format!("HTTP/1.1 200 OK\r\n{FRESH}Transfer-Encoding: chunked\r\n\r\n1388\r\n{large}\r\n0\r\n\r\n"),
        ),
        ("HEAD /", "", format!("HTTP/1.1 200 OK\r\n{FRESH}Content-Length: 2\r\n\r\n")),
        ("OPTIONS /", "", ok(FRESH, "ok")),
    ];
    for (line, fields, answer) in rows {
        let (asked, answer) = (request(line, fields), answer.clone());
        cached("", "").run(move |_| {
            let (asked, answer) = (asked.clone(), answer.clone());
            async move {
                let mut s1 = Service::at(S1);
                missed(&mut s1, &asked, &answer).await;
                missed(&mut s1, &request("GET /", ""), &ok("", "other")).await;
            }
        });
    }
}

/// Without `cache-use` there is no key, and nothing is stored.
#[test]
fn nothing_is_stored_without_a_look() {
    let rules = "http-response cache-store c\n http-response set-header x-hit %[res.cache_hit],%[res.cache_name]";
    listen(&format!("{rules}\n server s1 10.0.1.1:80\ncache c\n total-max-size 1")).run(|_| async move {
        let mut s1 = Service::at(S1);
        for _ in 0..2 {
            missed(&mut s1, &request("GET /", ""), &ok(FRESH, "ok")).await;
        }
    });
}

/// A truncated response, or one whose client disconnects before its end, is not served to others, and releases its
/// space.
#[test]
fn an_unfinished_response_is_never_served() {
    cached("", "max-object-size 100000").global(SOCKET).run(|_| async move {
        let mut s1 = Service::at(S1);
        let get = request("GET /", "");
        let heads = ["Content-Length: 100\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"];
        for (head, by_client) in heads.into_iter().flat_map(|head| [(head, true), (head, false)]) {
            let mut client = Peer::connect(WEIR).await;
            client.send(&get).await;
            let mut server = s1.accept().await;
            server.receive_head().await.unwrap();
            server.send(format!("HTTP/1.1 200 OK\r\n{FRESH}{head}")).await;
            client.receive_head().await.unwrap();
            // Another request with the same key is sent to the server at the same time.
            missed(&mut s1, &get, &ok("", "other")).await;
            if by_client {
                client.reset();
                server.expect_end().await;
            } else {
                server.close();
                client.receive_rest().await;
            }
            missed(&mut s1, &get, &ok("", "other")).await;
            assert!(ask("show cache").await.contains("available blocks:1024)\n\n"), "nothing is left of it");
        }
    });
}

/// The key: method, host, path, query and scheme. A body, another spelling of the target, or a rule's new path cannot
/// replace the response to another request.
#[test]
fn requests_do_not_poison_each_other() {
    cached("", "").run(|_| async move {
        let mut s1 = Service::at(S1);
        let poison = ok(FRESH, "poison");
        let asks = [
            "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: close, upgrade\r\nUpgrade: x\r\n\r\n",
            "GET /? HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            "GET // HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            "GET /%2F HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a:81\r\nConnection: close\r\n\r\n",
            "GET http://c/ HTTP/1.1\r\nHost: c\r\nConnection: close\r\n\r\n",
            "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        ];
        for asked in asks {
            let answer = if asked.starts_with("HEAD") { poison.trim_end_matches("poison") } else { &poison };
            missed(&mut s1, asked, answer).await;
        }
        missed(&mut s1, &request("GET /", ""), &ok(FRESH, "right")).await;
        assert!(hit(&request("GET /", "")).await.ends_with("right"));
        assert!(hit(&request("GET http://a/", "")).await.ends_with("right"));
        // A request with a body does not get it either: the server may answer it differently.
        missed(&mut s1, asks[1], &ok("", "other")).await;
    });
}

/// A successful request with an unsafe method removes the stored response of its resource.
#[test]
fn unsafe_methods_remove_what_is_stored() {
    cached("", "").run(|_| async move {
        let mut s1 = Service::at(S1);
        let get = request("GET /", "");
        for (method, status, removes) in [
            ("POST", 200, true),
            ("PUT", 201, true),
            ("DELETE", 302, true),
            ("PATCH", 200, true),
            ("POST", 400, false),
            ("POST", 500, false),
            ("OPTIONS", 200, false),
        ] {
            missed(&mut s1, &get, &ok(FRESH, "one")).await;
            assert!(hit(&get).await.ends_with("one"));
            let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
            missed(&mut s1, &request(&format!("{method} /"), ""), &answer).await;
            if !removes {
                assert!(hit(&get).await.ends_with("one"), "{method} {status}");
                missed(&mut s1, &request("POST /", ""), "HTTP/1.1 204 X\r\n\r\n").await;
            }
        }
    });
}

/// A client that requests a fresh response gets one, which replaces the stored one.
#[test]
fn a_fresh_response_replaces_the_stored_one() {
    cached("", "").run(|_| async move {
        let mut s1 = Service::at(S1);
        let get = request("GET /", "");
        missed(&mut s1, &get, &ok(FRESH, "one")).await;
        for (number, field) in
            ["Cache-Control: no-cache", "Cache-Control: max-age=0", "Pragma: no-cache"].into_iter().enumerate()
        {
            missed(&mut s1, &request("GET /", &format!("{field}\r\n")), &ok(FRESH, &format!("{number}"))).await;
            assert!(hit(&get).await.ends_with(&number.to_string()));
        }
        // A request with `no-store` gets the stored response.
        assert!(hit(&request("GET /", "Cache-Control: no-store\r\n")).await.ends_with('2'));
    });
}

/// Variants are distinguished by the fields in the response's `Vary`; none can be served in place of another.
#[test]
fn variants_are_kept_apart() {
    cached("", "process-vary on\n max-secondary-entries 3").run(|_| async move {
        let mut s1 = Service::at(S1);
        let from = |referer: &str| request("GET /", &format!("Referer: {referer}\r\n"));
        let vary = format!("{FRESH}Vary: Referer\r\n");
        for referer in ["a", "b", "a\r\nReferer: b"] {
            missed(&mut s1, &from(referer), &ok(&vary, "for one")).await;
            assert!(hit(&from(referer)).await.ends_with("for one"));
        }
        // The maximum number of variants is reached.
        for _ in 0..2 {
            missed(&mut s1, &from("c"), &ok(&vary, "for one")).await;
        }
        missed(&mut s1, &request("GET /", ""), &ok(&vary, "for one")).await;
        // A response in a coding that the client did not accept is not stored, nor one in an unknown coding.
        let coded =
            |coding: &str| ok(&format!("{FRESH}Vary: Accept-Encoding\r\nContent-Encoding: {coding}\r\n"), "zzz");
        let accepts = |coding: &str| request("GET /coded", &format!("Accept-Encoding: {coding}\r\n"));
        missed(&mut s1, &accepts("br"), &coded("gzip")).await;
        missed(&mut s1, &accepts("foo"), &coded("foo")).await;
        missed(&mut s1, &accepts("gzip"), &coded("gzip")).await;
        assert!(hit(&accepts("br, gzip;q=0.5")).await.ends_with("zzz"));
        missed(&mut s1, &accepts("gzip;q=0, br"), &coded("br")).await;
    });
}

/// A client gets the links of a response that is no longer stored before the new one.
#[test]
fn hints_come_before_the_response() {
    cached("", "early-hints only").run(|_| async move {
        let mut s1 = Service::at(S1);
        let links = "Link: </a.css>; rel=preload\r\nLink: </b>; rel=next\r\nLink: <https://c>; rel=preconnect\r\n";
        let answer = ok(&format!("{FRESH}{links}"), "page");
        missed(&mut s1, &request("GET /", ""), &answer).await;
        let hints =
            "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\nlink: <https://c>; rel=preconnect\r\n\r\n";
        assert!(
            missed(&mut s1, &request("GET /", ""), &answer).await.starts_with(&format!("{hints}HTTP/1.1 200 OK\r\n"))
        );
    });
}

/// Many responses at once hold no more than the cache's capacity; a response being served stays complete while others
/// replace it.
#[test]
fn room_is_bounded_while_responses_come_and_go() {
    cached("", "max-object-size 500000").global(SOCKET).shuffled().run(|_| async move {
        let mut s1 = Service::at(S1);
        let mut coming = Vec::new();
        for number in 0..4 {
            let mut client = Peer::connect(WEIR).await;
            client.send(get(&format!("/{number}"))).await;
            let mut server = s1.accept().await;
            server.receive_head().await.unwrap();
            server.send(format!("HTTP/1.1 200 OK\r\n{FRESH}Content-Length: 400000\r\n\r\n")).await;
            client.receive_head().await.unwrap();
            coming.push((client, server, text(400_000, number)));
        }
        // There is space for two; the others are forwarded without being stored.
        let shown = ask("show cache").await;
        let free: u32 = shown.split("blocks:").nth(1).unwrap().split(')').next().unwrap().parse().unwrap();
        assert!(free < 400, "{shown}");
        for (client, server, body) in &mut coming {
            let ((), got) = testkit::both(server.send(&*body), client.receive(400_000)).await;
            assert!(got == *body);
        }
        let shown = ask("show cache").await;
        assert_eq!(shown.matches("type:full").count(), 2, "{shown}");
        for (number, stored) in [(0, true), (1, true)] {
            let mut client = Peer::connect(WEIR).await;
            client.send(get(&format!("/{number}"))).await;
            assert!(client.receive_head().await.unwrap().contains("x-hit: 1,c"), "{stored}");
            assert!(client.receive(400_000).await == coming[number].2);
        }
    });
}
