//! Tests of services of the process: answers that are streamed from inside, with the flow control, the log line and the
//! connection of a server's.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use base::Buffer;
use conn::service::{Failed, Service, respond};
use testkit::{Peer, sleep};
use wire::http::{Head, Method};

use crate::world::*;

/// Bytes of payload made by one call.
const PIECE: usize = 1000;

/// Answers with the number of pieces in the target (`/5`), and pauses before each of them. `/5/length` announces its
/// length, `/5/cut` fails in place of the last piece, `/fail` before its head, `/echo` answers with the request's
/// payload.
struct Streamer {
    left: usize,
    fails: bool,
    echoes: bool,
    taken: Vec<u8>,
    whole: bool,
    pause: Option<rt::Sleep>,
    made: Arc<AtomicUsize>,
}

impl Service for Streamer {
    fn poll_head(&mut self, _: &mut Context<'_>, request: &Head, answer: &mut Head) -> Poll<Result<(), Failed>> {
        let target = String::from_utf8_lossy(request.target()).into_owned();
        let path = target.trim_start_matches("http://a").trim_start_matches('/');
        let words: Vec<&str> = path.split('/').collect();
        match words.first().copied().unwrap_or_default() {
            "fail" => return Poll::Ready(Err(Failed)),
            "echo" => self.echoes = true,
            number => self.left = number.parse().unwrap(),
        }
        self.fails = words.get(1) == Some(&"cut");
        let length = (words.get(1) == Some(&"length")).then_some((self.left * PIECE) as u64);
        respond(answer, 200, b"Streamed", length);
        answer.append(b"x-method", if request.known_method() == Method::Head { b"head" } else { b"other" });
        Poll::Ready(Ok(()))
    }

    fn poll_data(&mut self, cx: &mut Context<'_>, out: &mut Buffer) -> Poll<Result<usize, Failed>> {
        if self.echoes {
            if self.taken.is_empty() && !self.whole {
                return Poll::Pending;
            }
            let length = self.taken.len().min(out.room());
            if length > 0 {
                assert!(out.push(&self.taken[..length]));
                self.taken.drain(..length);
            }
            return Poll::Ready(Ok(length));
        }
        if self.left == 0 {
            return if self.fails { Poll::Ready(Err(Failed)) } else { Poll::Ready(Ok(0)) };
        }
        let pause = self.pause.get_or_insert_with(|| rt::sleep(std::time::Duration::from_millis(1)));
        std::task::ready!(std::pin::Pin::new(pause).poll(cx));
        self.pause = None;
        self.left -= 1;
        if self.left == 0 && self.fails {
            return Poll::Ready(Err(Failed));
        }
        self.made.fetch_add(1, Ordering::Relaxed);
        assert!(out.push(&[b'x'; PIECE]), "a buffer that is offered has free space");
        Poll::Ready(Ok(PIECE))
    }

    fn poll_take(&mut self, _: &mut Context<'_>, payload: &mut Buffer) -> Poll<Result<(), Failed>> {
        self.taken.extend_from_slice(payload.data());
        payload.clear();
        Poll::Ready(Ok(()))
    }

    fn end_request(&mut self) {
        assert!(!self.whole, "a request ends once");
        self.whole = true;
    }
}

/// Worlds in whose `l` the streamer answers everything, after these lines; and the number of pieces made.
fn streaming(lines: &str, ruled: bool) -> (Worlds, Arc<AtomicUsize>) {
    add(listen(&format!("    http-request use-service streamer\n{lines}")), ruled)
}

/// Worlds whose rules can refer to the streamer.
pub fn with_streamer(worlds: Worlds) -> Worlds {
    add(worlds, false).0
}

fn add(worlds: Worlds, ruled: bool) -> (Worlds, Arc<AtomicUsize>) {
    let made = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&made);
    let worlds = worlds.service("streamer", ruled, move |_| {
        let made = Arc::clone(&counted);
        Box::new(Streamer { left: 0, fails: false, echoes: false, taken: Vec::new(), whole: false, pause: None, made })
    });
    (worlds, made)
}

const HEAD: &str = "HTTP/1.1 200 Streamed\r\nx-method: other\r\n";

fn chunks(pieces: usize) -> String {
    format!("3E8\r\n{}\r\n", "x".repeat(PIECE)).repeat(pieces) + "0\r\n\r\n"
}

#[test]
fn an_answer_of_unknown_length_comes_in_chunks_and_the_connection_goes_on() {
    streaming("", false).0.run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        client.send("GET /3 HTTP/1.1\r\nHost: a\r\n\r\nGET /2/length HTTP/1.1\r\nHost: a\r\n\r\n").await;
        client.expect(format!("{HEAD}transfer-encoding: chunked\r\n\r\n{}", chunks(3))).await;
        client.expect(format!("{HEAD}content-length: 2000\r\n\r\n{}", "x".repeat(2 * PIECE))).await;
        world
            .expect_log(&[
                r#"l l/<streamer> 0/0/0/0/# 200 # - - LR-- 1/1/0/0/0 0/0 "GET /3 HTTP/1.1""#,
                r#"l l/<streamer> 0/0/0/0/# 200 # - - LR-- 1/1/0/0/0 0/0 "GET /2/length HTTP/1.1""#,
            ])
            .await;
    });
}

#[test]
fn http_1_0_gets_it_until_the_connection_ends() {
    streaming("", false).0.run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        client.send("GET /3 HTTP/1.0\r\nHost: a\r\n\r\n").await;
        client.expect(format!("{HEAD}connection: close\r\n\r\n{}", "x".repeat(3 * PIECE))).await;
        client.expect_eof().await;
        world.forget_log();
    });
}

#[test]
fn a_head_alone_asks_for_no_payload() {
    let (worlds, made) = streaming("", false);
    worlds.run(move |world| {
        let made = Arc::clone(&made);
        async move {
            let before = made.load(Ordering::Relaxed);
            let mut client = Peer::connect(WEIR).await;
            client.send("HEAD /3 HTTP/1.1\r\nHost: a\r\n\r\nHEAD /3/length HTTP/1.1\r\nHost: a\r\n\r\n").await;
            let head = "HTTP/1.1 200 Streamed\r\nx-method: head\r\n";
            client.expect(format!("{head}transfer-encoding: chunked\r\n\r\n")).await;
            client.expect(format!("{head}content-length: 3000\r\n\r\n")).await;
            assert_eq!(made.load(Ordering::Relaxed), before, "payload that nobody gets was made");
            world.forget_log();
        }
    });
}

#[test]
fn a_client_that_does_not_read_stops_the_service() {
    let (worlds, made) = streaming("", false);
    worlds.workers(&[1]).seeds(0..2).run(move |world| {
        let made = Arc::clone(&made);
        async move {
            let before = made.load(Ordering::Relaxed);
            let mut client = Peer::connect(WEIR).await;
            client.send("GET /5000 HTTP/1.1\r\nHost: a\r\n\r\n").await;
            sleep(10_000).await;
            let first = made.load(Ordering::Relaxed) - before;
            assert!(first < 2000, "{first} pieces for a client that reads nothing");
            client.receive_head().await.unwrap();
            let answer = client.receive_chunked(4000, 1).await;
            assert_eq!(made.load(Ordering::Relaxed) - before, 5000);
            drop(answer);
            world.forget_log();
        }
    });
}

#[test]
fn a_service_that_fails_is_an_internal_error_or_cuts_its_answer() {
    streaming("", false).0.run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        client.send("GET /fail HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let head = client.receive_head().await.unwrap();
        assert!(head.starts_with("HTTP/1.1 500 "), "{head}");
        let mut other = Peer::connect(WEIR).await;
        other.send("GET /3/cut HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let whole = chunks(2);
        let begun = whole.strip_suffix("0\r\n\r\n").unwrap();
        other.expect(format!("{HEAD}transfer-encoding: chunked\r\n\r\n{begun}")).await;
        other.expect_end().await;
        // It fails in place of the first piece, at once.
        let mut other = Peer::connect(WEIR).await;
        other.send("GET /0/cut HTTP/1.1\r\nHost: a\r\n\r\n").await;
        other.expect(format!("{HEAD}transfer-encoding: chunked\r\n\r\n")).await;
        other.expect_end().await;
        world.forget_log();
    });
}

#[test]
fn a_service_gets_the_payload_of_the_request_without_its_chunks() {
    streaming("", false).0.run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        for body in
            ["content-length: 5\r\n\r\nhello", "transfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"]
        {
            client.send_slowly(format!("POST /echo HTTP/1.1\r\nHost: a\r\n{body}"), 7, 1).await;
            let head = client.receive_head().await.unwrap();
            assert!(head.contains("transfer-encoding: chunked"), "{head}");
            assert_eq!(client.receive_chunked(100, 0).await.body, b"hello");
        }
        world.forget_log();
    });
}

#[test]
fn rules_see_the_answers_of_services_that_declare_it() {
    let lines = "    http-response set-header x-response 1\n    http-after-response set-header x-after 1";
    for (ruled, fields) in [(false, "x-after: 1\r\n"), (true, "x-response: 1\r\nx-after: 1\r\n")] {
        streaming(lines, ruled).0.workers(&[1]).seeds(0..1).run(move |world| async move {
            let mut client = Peer::connect(WEIR).await;
            client.send("GET /0/length HTTP/1.1\r\nHost: a\r\n\r\n").await;
            client.expect(format!("{HEAD}{fields}content-length: 0\r\n\r\n")).await;
            world.forget_log();
        });
    }
}

#[test]
fn rules_may_put_something_in_the_place_of_a_services_answer() {
    for (rule, head) in [("deny status 502", Some("HTTP/1.1 502 ")), ("silent-drop", None)] {
        let lines = format!("    http-response {rule} if {{ status 200 }}");
        streaming(&lines, true).0.workers(&[1]).seeds(0..2).run(move |world| async move {
            let mut client = Peer::connect(WEIR).await;
            // Unread input is left, for which an orderly close would linger.
            client.send("GET /2 HTTP/1.1\r\nHost: a\r\n\r\nGET /next").await;
            match head {
                Some(head) => assert!(client.receive_head().await.unwrap().starts_with(head)),
                None => {
                    client.expect_end().await;
                    // The connection does not linger for further input.
                    assert_eq!(world.sessions(), 0);
                }
            }
            world.forget_log();
        });
    }
}

#[test]
fn a_client_that_leaves_ends_the_service() {
    streaming("", false).0.run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        client.send("GET /100000 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        client.receive(5000).await;
        client.reset();
        world.expect_log(&[r#"l l/<streamer> 0/0/0/0/# 200 # - - LR-- 1/1/0/0/0 0/0 "GET /100000 HTTP/1.1""#]).await;
    });
}

/// The answer of a service stays logged as local, however its client leaves: before the answer, within it, or within the request.
#[test]
fn a_client_that_leaves_amid_its_request_is_logged_as_served() {
    let timeout = "    timeout client 100ms\n";
    for (path, body, leaves, status, sent) in [
        ("/1", "abc", true, 200, true),
        ("/1", "", true, 200, true),
        ("/1", "abc", false, 200, true),
        ("/100000", "abc", true, 200, false),
        ("/100000", "abc", false, 200, false),
    ] {
        streaming(timeout, false).0.run(move |world| async move {
            let mut client = Peer::connect(WEIR).await;
            client.send(format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{body}")).await;
            client.receive(100).await;
            if sent {
                client.receive_until("0\r\n\r\n").await;
            }
            if leaves {
                client.reset();
            }
            let line = format!(r#"l l/<streamer> 0/0/0/0/# {status} # - - LR-- 1/1/0/0/0 0/0 "POST {path} HTTP/1.1""#);
            world.expect_log(&[&line]).await;
        });
    }
}

/// A service's payload contains no chunks, whether or not its length is known before.
#[test]
fn rules_on_an_answer_see_the_payload_of_a_service() {
    let rules = "http-response wait-for-body time 5s\n http-response set-header x-length %[res.body_len]";
    streaming(rules, true).0.run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        for target in ["/2", "/2/length"] {
            client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
            let head = client.receive_head().await.unwrap();
            assert!(head.contains("x-length: 2000\r\n"), "{head}");
            if target == "/2" {
                assert_eq!(client.receive_chunked(1000, 0).await.body.len(), 2 * PIECE);
            } else {
                client.expect("x".repeat(2 * PIECE)).await;
            }
        }
        world.forget_log();
    });
}
