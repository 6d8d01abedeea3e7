//! Tests of caches with `rfc9111 on`: each requirement of RFC 9111 on a shared cache is a row of requests, of the
//! server's answers to those that reach it, and of the cache's answers.

use testkit::{Peer, Service};

use crate::caching::{cached, hit, missed, request};
use crate::world::*;

/// One step of a row.
enum Step {
    /// A request that the server answers: method, target, fields, the answer.
    Asked(&'static str, &'static str, &'static str, &'static str),
    /// A request that the cache answers: method, target, fields, parts of the answer.
    Served(&'static str, &'static str, &'static str, &'static [&'static str]),
    /// A GET for which the stored response is revalidated at the server: target, fields, a part of the server's
    /// request, its answer, parts of the client's answer.
    Confirmed(&'static str, &'static str, &'static str, &'static str, &'static [&'static str]),
    /// A number of seconds pass.
    Pass(u64),
}
use Step::{Asked, Confirmed, Pass, Served};

const OK: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=50\r\nETag: \"e\"\r\nContent-Length: 5\r\n\r\nhello";
const TWO: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=50\r\nETag: \"f\"\r\nContent-Length: 3\r\n\r\ntwo";
const HELLO: &[&str] = &["200 OK", "x-hit: 1,c", "hello"];
const FIRST: Step = Asked("GET", "/a", "", OK);
const AGAIN: Step = Asked("GET", "/a", "", TWO);

fn run(rows: &'static [(&'static str, &'static [Step])]) {
    for (name, steps) in rows {
        // Printed if a row fails.
        eprintln!("{name}");
        cached("", "max-age 100\n ranges on\n rfc9111 on\n process-vary on").run(|_| async move {
            let mut s1 = Service::at(S1);
            for step in *steps {
                match step {
                    Asked(method, target, fields, answer) => {
                        missed(&mut s1, &request(&format!("{method} {target}"), fields), answer).await;
                    }
                    Served(method, target, fields, wanted) => {
                        let got = hit(&request(&format!("{method} {target}"), fields)).await;
                        for part in *wanted {
                            assert!(got.contains(part), "{name}: '{part}' is not in {got}");
                        }
                    }
                    Confirmed(target, fields, asks, answer, wanted) => {
                        let mut client = Peer::connect(WEIR).await;
                        client.send(request(&format!("GET {target}"), fields)).await;
                        let mut server = s1.accept().await;
                        let asked = server.receive_head().await.unwrap();
                        assert!(asked.contains(asks), "{name}: '{asks}' is not in {asked}");
                        server.send(*answer).await;
                        server.close();
                        let got = String::from_utf8(client.receive_rest().await).unwrap();
                        for part in *wanted {
                            assert!(got.contains(part), "{name}: '{part}' is not in {got}");
                        }
                    }
                    Pass(seconds) => testkit::sleep(seconds * 1_000).await,
                }
            }
        });
    }
}

#[test]
fn requests_say_what_will_do() {
    const UNSATISFIED: &[&str] = &["504 Gateway Time-out"];
    run(&[
        ("it is not too old", &[FIRST, Pass(10), Served("GET", "/a", "Cache-Control: max-age=10\r\n", HELLO)]),
        ("it is too old", &[FIRST, Pass(10), Asked("GET", "/a", "Cache-Control: max-age=9\r\n", TWO)]),
        ("it lives long enough", &[FIRST, Pass(10), Served("GET", "/a", "Cache-Control: min-fresh=39\r\n", HELLO)]),
        ("it lives too short", &[FIRST, Pass(10), Asked("GET", "/a", "Cache-Control: min-fresh=41\r\n", TWO)]),
        ("it is over", &[FIRST, Pass(50), AGAIN]),
        ("it may be over", &[FIRST, Pass(60), Served("GET", "/a", "Cache-Control: max-stale\r\n", HELLO)]),
        ("it may be over for that", &[FIRST, Pass(60), Served("GET", "/a", "Cache-Control: max-stale=11\r\n", HELLO)]),
        ("it is over for longer", &[FIRST, Pass(60), Asked("GET", "/a", "Cache-Control: max-stale=10\r\n", TWO)]),
        (
            "its server forbids that",
            &[
                Asked(
                    "GET",
                    "/a",
                    "",
                    "HTTP/1.1 200 OK\r\nCache-Control: max-age=5, must-revalidate\r\nContent-Length: 5\r\n\r\nhello",
                ),
                Pass(6),
                Asked("GET", "/a", "Cache-Control: max-stale\r\n", TWO),
            ],
        ),
        ("only a new one will do", &[FIRST, Asked("GET", "/a", "Cache-Control: no-cache\r\n", TWO)]),
        ("the older field", &[FIRST, Asked("GET", "/a", "Pragma: no-cache\r\n", TWO)]),
        ("the newer field", &[FIRST, Served("GET", "/a", "Pragma: no-cache\r\nCache-Control: max-age=5\r\n", HELLO)]),
        ("no server is wanted", &[FIRST, Served("GET", "/a", "Cache-Control: only-if-cached\r\n", HELLO)]),
        ("nothing is there", &[Served("GET", "/a", "Cache-Control: only-if-cached\r\n", UNSATISFIED)]),
        (
            "nothing will do",
            &[FIRST, Pass(10), Served("GET", "/a", "Cache-Control: only-if-cached, max-age=5\r\n", UNSATISFIED)],
        ),
        ("it is not stored", &[Asked("GET", "/a", "Cache-Control: no-store\r\n", OK), AGAIN]),
        ("who asks is known", &[FIRST, Asked("GET", "/a", "Authorization: Basic eA==\r\n", TWO)]),
        ("who asked was known", &[Asked("GET", "/a", "Authorization: Basic eA==\r\n", OK), AGAIN]),
    ]);
}

#[test]
fn responses_say_who_may_have_them() {
    run(&[
        (
            "an error that lives",
            &[
                Asked("GET", "/a", "", "HTTP/1.1 404 No\r\nCache-Control: max-age=5\r\nContent-Length: 2\r\n\r\nno"),
                Served("GET", "/a", "", &["404 No", "x-hit: 1,c", "no"]),
                Served("GET", "/a", "If-None-Match: *\r\n", &["404 No", "no"]),
            ],
        ),
        (
            "a redirect that lives",
            &[
                Asked(
                    "GET",
                    "/a",
                    "",
                    "HTTP/1.1 301 M\r\nLocation: /b\r\nCache-Control: max-age=5\r\nContent-Length: 0\r\n\r\n",
                ),
                Served("GET", "/a", "", &["301 M", "location: /b", "x-hit: 1,c"]),
            ],
        ),
        (
            "an error that says nothing",
            &[Asked("GET", "/a", "", "HTTP/1.1 404 No\r\nETag: \"e\"\r\nContent-Length: 2\r\n\r\nno"), FIRST],
        ),
        (
            "a failure",
            &[
                Asked("GET", "/a", "", "HTTP/1.1 500 No\r\nCache-Control: max-age=5\r\nContent-Length: 2\r\n\r\nno"),
                FIRST,
            ],
        ),
        (
            "a part",
            &[
                Asked(
                    "GET",
                    "/a",
                    "Range: bytes=0-1\r\n",
                    "HTTP/1.1 206 Part\r\nCache-Control: max-age=5\r\nContent-Range: bytes 0-1/5\r\nContent-Length: 2\r\n\r\nhe",
                ),
                FIRST,
                Served(
                    "GET",
                    "/a",
                    "Range: bytes=1-2\r\n",
                    &["206 Partial", "content-range: bytes 1-2/5", "\r\n\r\nel"],
                ),
            ],
        ),
        (
            "no heuristics",
            &[Asked("GET", "/a", "", "HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: 5\r\n\r\nhello"), AGAIN],
        ),
        (
            "fields of one client",
            &[
                Asked(
                    "GET",
                    "/a",
                    "",
                    "HTTP/1.1 200 OK\r\nCache-Control: max-age=50, private=\"x-a\", no-cache=\"x-b\"\r\nX-A: 1\r\nX-B: 1\r\nX-C: 1\r\nContent-Length: \
                 5\r\n\r\nhello",
                ),
                Served("GET", "/a", "", &["no-cache=\"x-b\"\r\nx-c: 1\r\ncontent-length: 5\r\nage: 0", "hello"]),
            ],
        ),
        (
            "it depends on anything",
            &[
                Asked(
                    "GET",
                    "/a",
                    "",
                    "HTTP/1.1 200 OK\r\nVary: *\r\nCache-Control: max-age=5\r\nContent-Length: 2\r\n\r\nno",
                ),
                FIRST,
            ],
        ),
        (
            "it depends on what is no part of the key",
            &[
                Asked(
                    "GET",
                    "/a",
                    "",
                    "HTTP/1.1 200 OK\r\nVary: X-A\r\nCache-Control: max-age=5\r\nContent-Length: 2\r\n\r\nno",
                ),
                FIRST,
            ],
        ),
        ("a range of the same", &[FIRST, Served("GET", "/a", "Range: bytes=0-0\r\nIf-Range: \"e\"\r\n", &["206 P"])]),
        ("a range of another", &[FIRST, Served("GET", "/a", "Range: bytes=0-0\r\nIf-Range: \"f\"\r\n", HELLO)]),
        (
            "the tag comes before the date",
            &[
                FIRST,
                Served(
                    "GET",
                    "/a",
                    "If-None-Match: \"f\"\r\nIf-Modified-Since: Tue, 24 Nov 2099 18:00:00 GMT\r\n",
                    HELLO,
                ),
            ],
        ),
    ]);
}

#[test]
fn what_has_changed_is_forgotten_or_updated() {
    const SAME: &str =
        "HTTP/1.1 304 Same\r\nETag: \"e\"\r\nCache-Control: max-age=50\r\nX-New: 1\r\nSet-Cookie: a=b\r\n\r\n";
    const BRIEF: Step = Asked(
        "GET",
        "/a",
        "",
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=5\r\nETag: \"e\"\r\nContent-Length: 5\r\n\r\nhello",
    );
    const DONE: &str = "HTTP/1.1 204 Done\r\nLocation: http://a/a\r\n\r\n";
    run(&[
        ("a change elsewhere", &[FIRST, Asked("POST", "/b", "Content-Length: 0\r\n", DONE), AGAIN]),
        (
            "a change of a part",
            &[
                FIRST,
                Asked(
                    "PUT",
                    "/b",
                    "Content-Length: 0\r\n",
                    "HTTP/1.1 201 Done\r\nContent-Location: /a\r\nContent-Length: 0\r\n\r\n",
                ),
                AGAIN,
            ],
        ),
        (
            "a change that failed",
            &[
                FIRST,
                Asked(
                    "POST",
                    "/b",
                    "Content-Length: 0\r\n",
                    "HTTP/1.1 500 No\r\nLocation: /a\r\nContent-Length: 0\r\n\r\n",
                ),
                Served("GET", "/a", "", HELLO),
            ],
        ),
        (
            "a change of another host",
            &[
                FIRST,
                Asked("POST", "/b", "Content-Length: 0\r\n", "HTTP/1.1 204 Done\r\nLocation: http://b/a\r\n\r\n"),
                Served("GET", "/a", "", HELLO),
            ],
        ),
        (
            "it is the same",
            &[
                BRIEF,
                Pass(6),
                Asked("GET", "/a", "If-None-Match: \"e\"\r\n", SAME),
                Served("GET", "/a", "", &["max-age=50\r\nx-new: 1\r\nage: 0", "hello"]),
            ],
        ),
        (
            "another one is the same",
            &[
                BRIEF,
                Pass(6),
                Asked(
                    "GET",
                    "/a",
                    "If-None-Match: \"f\"\r\n",
                    "HTTP/1.1 304 Same\r\nETag: \"f\"\r\nCache-Control: max-age=50\r\n\r\n",
                ),
                AGAIN,
            ],
        ),
        (
            "its head is the same",
            &[
                BRIEF,
                Pass(6),
                Asked(
                    "HEAD",
                    "/a",
                    "",
                    "HTTP/1.1 200 OK\r\nCache-Control: max-age=50\r\nETag: \"e\"\r\nContent-Length: 5\r\n\r\n",
                ),
                Served("GET", "/a", "", HELLO),
            ],
        ),
        (
            "its head is another",
            &[
                FIRST,
                Asked(
                    "HEAD",
                    "/a",
                    "Cache-Control: no-cache\r\n",
                    "HTTP/1.1 200 OK\r\nETag: \"f\"\r\nContent-Length: 5\r\n\r\n",
                ),
                AGAIN,
            ],
        ),
        (
            "its length is another",
            &[
                FIRST,
                Asked(
                    "HEAD",
                    "/a",
                    "Cache-Control: no-cache\r\n",
                    "HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: 6\r\n\r\n",
                ),
                AGAIN,
            ],
        ),
    ]);
}

const BRIEF: Step = Asked(
    "GET",
    "/a",
    "",
    "HTTP/1.1 200 OK\r\nCache-Control: max-age=5\r\nETag: \"e\"\r\nContent-Length: 5\r\n\r\nhello",
);
const SAME: &str = "HTTP/1.1 304 Same\r\nETag: \"e\"\r\nCache-Control: max-age=50\r\nX-New: 1\r\n\r\n";

/// Section 4.3: the cache revalidates a stale response.
#[test]
fn what_is_over_is_asked_for_under_a_condition() {
    const CONDITION: &str = "\r\nif-none-match: \"e\"\r\n";
    const FRESH: &[&str] = &["HTTP/1.1 200 OK\r\n", "x-hit: 1,c", "x-new: 1\r\n", "hello"];
    const SINCE: &str = "\r\nif-modified-since: Tue, 24 Nov 2026 18:00:00 GMT\r\n";
    run(&[
        (
            "it is the same, and lives again",
            &[BRIEF, Pass(6), Confirmed("/a", "", CONDITION, SAME, FRESH), Served("GET", "/a", "", FRESH)],
        ),
        (
            "it has a date alone",
            &[
                Asked(
                    "GET",
                    "/a",
                    "",
                    "HTTP/1.1 200 OK\r\nCache-Control: max-age=5\r\nLast-Modified: Tue, 24 Nov 2026 18:00:00 \
                     GMT\r\nContent-Length: 5\r\n\r\nhello",
                ),
                Pass(6),
                Confirmed("/a", "", SINCE, "HTTP/1.1 304 Same\r\n\r\n", &["200 OK", "x-hit: 1,c", "hello"]),
                Served("GET", "/a", "", HELLO),
            ],
        ),
        ("it is another", &[BRIEF, Pass(6), AGAIN, Served("GET", "/a", "", &["200 OK", "x-hit: 1,c", "two"])]),
        ("it is gone", &[BRIEF, Pass(6), Asked("GET", "/a", "", "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")]),
        ("only a new one will do", &[FIRST, Confirmed("/a", "Cache-Control: no-cache\r\n", CONDITION, SAME, FRESH)]),
        ("it is too old", &[FIRST, Pass(9), Confirmed("/a", "Cache-Control: max-age=5\r\n", CONDITION, SAME, FRESH)]),
        (
            "the client has a condition",
            &[
                BRIEF,
                Pass(6),
                Asked("GET", "/a", "If-None-Match: \"f\"\r\n", "HTTP/1.1 304 Same\r\nETag: \"f\"\r\n\r\n"),
                Asked("GET", "/a", "Range: bytes=0-1\r\n", TWO),
            ],
        ),
        (
            "it has no name",
            &[
                Asked("GET", "/a", "", "HTTP/1.1 200 OK\r\nCache-Control: max-age=5\r\nContent-Length: 5\r\n\r\nhello"),
                Pass(6),
                Asked("GET", "/a", "", "HTTP/1.1 304 Same\r\n\r\n"),
            ],
        ),
    ]);
}

/// The connection of the revalidation is kept, and carries the next request.
#[test]
fn a_confirmation_keeps_the_connection() {
    cached("http-reuse always", "max-age 100\n rfc9111 on").run(|world| async move {
        let mut s1 = Service::at(S1);
        let asks = |line: &'static str| async move {
            let mut client = Peer::connect(WEIR).await;
            client.send(request(line, "")).await;
            client
        };
        let mut client = asks("GET /a").await;
        let mut server = s1.accept().await;
        server.receive_head().await.unwrap();
        let Asked(.., answer) = BRIEF else { unreachable!("it is one") };
        server.send(answer).await;
        client.receive_rest().await;
        testkit::sleep(6_000).await;
        let mut client = asks("GET /a").await;
        assert!(server.receive_head().await.unwrap().contains("if-none-match: \"e\"\r\n"));
        server.send(SAME).await;
        assert!(client.receive_rest().await.ends_with(b"hello"));
        let mut client = asks("GET /b").await;
        assert!(server.receive_head().await.unwrap().starts_with("GET /b "));
        server.send("HTTP/1.1 204 Done\r\n\r\n").await;
        client.receive_rest().await;
        world
            .expect_log(&[
                r#"l l/s1 0/0/0/0/0 200 # - - ---- 1/1/0/0/0 0/0 "GET /a HTTP/1.1""#,
                r#"l l/s1 0/0/0/0/0 200 # - - LR-- 1/1/0/0/0 0/0 "GET /a HTTP/1.1""#,
                r#"l l/s1 0/0/0/0/0 204 # - - ---- 1/1/0/0/0 0/0 "GET /b HTTP/1.1""#,
            ])
            .await;
    });
}

/// Section 3.5: a response to a request with credentials is shared only if the response permits it.
#[test]
fn responses_to_requests_with_credentials() {
    const KNOWN: &str = "Authorization: Basic eA==\r\n";
    const OTHER: &str = "Authorization: Basic eQ==\r\n";
    macro_rules! says {
        ($directives:literal) => {
            concat!(
                "HTTP/1.1 200 OK\r\nCache-Control: ",
                $directives,
                "\r\nETag: \"e\"\r\nContent-Length: 5\r\n\r\nhello"
            )
        };
    }
    run(&[
        (
            "public",
            &[
                Asked("GET", "/a", KNOWN, says!("public, max-age=50")),
                Served("GET", "/a", OTHER, HELLO),
                Served("GET", "/a", "", HELLO),
            ],
        ),
        ("s-maxage", &[Asked("GET", "/a", KNOWN, says!("s-maxage=50")), Served("GET", "/a", OTHER, HELLO)]),
        (
            "must-revalidate",
            &[
                Asked("GET", "/a", KNOWN, says!("max-age=5, must-revalidate")),
                Served("GET", "/a", "", HELLO),
                Pass(6),
                Asked("GET", "/a", OTHER, TWO),
            ],
        ),
        ("nothing", &[Asked("GET", "/a", KNOWN, says!("max-age=50")), Asked("GET", "/a", KNOWN, OK), AGAIN]),
        ("private", &[Asked("GET", "/a", KNOWN, says!("private, max-age=50")), AGAIN]),
        ("what was asked for without", &[FIRST, Asked("GET", "/a", KNOWN, OK), Served("GET", "/a", "", HELLO)]),
        (
            "what was asked for without, and is for all",
            &[Asked("GET", "/a", "", says!("public, max-age=50")), Served("GET", "/a", KNOWN, HELLO)],
        ),
    ]);
}

/// Parts of a request that are not in the key must not change the responses to others.
#[test]
fn nobody_changes_what_others_get() {
    run(&[
        (
            "a method by a field",
            &[Asked("GET", "/a", "X-HTTP-Method-Override: HEAD\r\nCache-Control: no-store\r\n", OK), AGAIN],
        ),
        ("another method", &[Asked("OPTIONS", "/a", "", OK), AGAIN]),
        (
            "a HEAD stores nothing",
            &[
                Asked("HEAD", "/a", "", "HTTP/1.1 200 OK\r\nCache-Control: max-age=50\r\nContent-Length: 5\r\n\r\n"),
                AGAIN,
            ],
        ),
        ("another query", &[Asked("GET", "/a?b", "", OK), AGAIN]),
        ("a target with another host", &[Served("GET", "http://b/a", "", &["400 Bad request"]), AGAIN]),
        ("an encoded path", &[Asked("GET", "/%61", "", OK), AGAIN]),
        ("a path with dots", &[Asked("GET", "/b/../a", "", OK), AGAIN]),
        ("a blank in the name of a field", &[Served("GET", "/a", "X y: 1\r\n", &["400 Bad request"]), FIRST]),
        (
            "an origin that the response names",
            &[
                Asked(
                    "GET",
                    "/a",
                    "Origin: http://evil\r\n",
                    "HTTP/1.1 200 OK\r\nVary: Origin\r\nCache-Control: max-age=50\r\nContent-Length: 4\r\n\r\nevil",
                ),
                Asked(
                    "GET",
                    "/a",
                    "",
                    "HTTP/1.1 200 OK\r\nVary: Origin\r\nCache-Control: max-age=50\r\nContent-Length: 4\r\n\r\ngood",
                ),
                Served("GET", "/a", "", &["200 OK", "good"]),
                Served("GET", "/a", "Origin: http://evil\r\n", &["200 OK", "evil"]),
            ],
        ),
        (
            "a coding that nobody has accepted",
            &[
                Asked(
                    "GET",
                    "/a",
                    "Accept-Encoding: gzip\r\n",
                    "HTTP/1.1 200 OK\r\nVary: Accept-Encoding\r\nContent-Encoding: br\r\nCache-Control: \
                     max-age=50\r\nContent-Length: 4\r\n\r\ncode",
                ),
                AGAIN,
            ],
        ),
        ("two hosts", &[Served("GET", "/a", "Host: b\r\n", &["400 Bad request"]), FIRST]),
    ]);
}

/// The first cache would revalidate its response at the server. The second one has a fresh response, and the conditions
/// added by the first one are not the client's.
#[test]
fn a_hit_of_another_cache_is_no_answer_to_the_question_of_the_first() {
    let caches = "http-request cache-use short\n http-request cache-use long\n http-response cache-store short\n \
                  http-response cache-store long\n http-response set-header x-hit %[res.cache_hit],%[res.cache_name]\n \
                  server s1 10.0.1.1:80\ncache short\n total-max-size 1\n max-age 2\n rfc9111 on\n\
                  cache long\n total-max-size 1\n max-age 100";
    listen(caches).run(|_| async move {
        let mut s1 = Service::at(S1);
        let get = request("GET /a", "");
        missed(&mut s1, &get, OK).await;
        assert!(hit(&get).await.contains("x-hit: 1,short\r\n"));
        testkit::sleep(5_000).await;
        let got = hit(&get).await;
        assert!(got.starts_with("HTTP/1.1 200 OK\r\n") && got.contains("x-hit: 1,long\r\n"), "{got}");
        assert!(got.ends_with("hello"), "{got}");
    });
}
