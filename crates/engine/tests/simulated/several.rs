//! A connection that carries several streams at a time, by the protocol that tests have: each stream has its own request,
//! facts, line and end, and holds no other one up.

use std::collections::BTreeMap;
use std::rc::Rc;

use conn::pairs::{Kind, PREFACE, WINDOW, frame};
use testkit::{Peer, Scope, Service, both, sleep, text};

use crate::api::*;
use crate::messages::*;
use crate::services::with_streamer;
use crate::world::*;

const HEADER: usize = 4;

/// What has come of an answer.
#[derive(Default)]
pub struct Answered {
    pub head: String,
    pub payload: Vec<u8>,
    pub end: Option<Kind>,
}

/// A client of the protocol.
pub struct Client {
    peer: Peer,
    answers: BTreeMap<u8, Answered>,
    /// Bytes of payload that it may still send.
    credit: BTreeMap<u8, usize>,
    /// Gives credit for what it receives.
    gives: bool,
}

impl Client {
    pub async fn connect() -> Client {
        let mut peer = Peer::connect(WEIR).await;
        peer.send(PREFACE).await;
        Client { peer, answers: BTreeMap::new(), credit: BTreeMap::new(), gives: true }
    }

    pub async fn get(&mut self, stream: u8, path: &str) {
        self.peer.send(frame(Kind::HeadAlone, stream, get(path))).await;
    }

    pub async fn post(&mut self, stream: u8, head: String) {
        self.credit.insert(stream, WINDOW);
        self.peer.send(frame(Kind::Head, stream, head)).await;
    }

    /// Receives one frame.
    async fn step(&mut self) {
        let header = self.peer.receive(HEADER).await;
        let (kind, stream) = (Kind::of(header[0]).unwrap(), header[1]);
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        if kind == Kind::Credit {
            *self.credit.get_mut(&stream).unwrap() += length;
            return;
        }
        let bytes = self.peer.receive(length).await;
        let answered = self.answers.entry(stream).or_default();
        assert!(answered.end.is_none(), "{kind:?} after the end of stream {stream}");
        match kind {
            Kind::Head => answered.head = String::from_utf8(bytes).unwrap(),
            Kind::Data => answered.payload.extend(bytes),
            Kind::End | Kind::Reset => answered.end = Some(kind),
            Kind::HeadAlone | Kind::Credit => unreachable!("{kind:?}"),
        }
        if kind == Kind::Data && self.gives {
            self.peer.send([Kind::Credit.byte(), stream, header[2], header[3]]).await;
        }
    }

    /// Sends payload as its credit allows, and the end.
    pub async fn upload(&mut self, stream: u8, payload: &[u8]) {
        let mut rest = payload;
        while !rest.is_empty() {
            let most = rest.len().min(self.credit[&stream]).min(1000);
            if most == 0 {
                self.step().await;
                continue;
            }
            *self.credit.get_mut(&stream).unwrap() -= most;
            self.peer.send(frame(Kind::Data, stream, &rest[..most])).await;
            rest = &rest[most..];
        }
        self.peer.send(frame(Kind::End, stream, "")).await;
    }

    /// The whole answer of a stream.
    pub async fn answer(&mut self, stream: u8) -> Answered {
        while self.answers.get(&stream).is_none_or(|answered| answered.end.is_none()) {
            self.step().await;
        }
        self.answers.remove(&stream).unwrap()
    }

    /// An answer that is complete, and begins and ends with these.
    pub async fn expect(&mut self, stream: u8, status: &str, payload: &str) {
        let answered = self.answer(stream).await;
        assert_eq!(answered.end, Some(Kind::End), "{}", answered.head);
        assert!(answered.head.starts_with(status), "{}", answered.head);
        assert_eq!(String::from_utf8_lossy(&answered.payload), payload, "{}", answered.head);
    }

    /// A stream that is reset, whatever came before.
    async fn expect_reset(&mut self, stream: u8) {
        assert_eq!(self.answer(stream).await.end, Some(Kind::Reset));
    }
}

#[test]
fn two_requests_of_a_connection_are_served_at_a_time() {
    listen("server s1 10.0.1.1:80").shuffled().seeds(0..8).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::connect().await;
        client.get(1, "/1").await;
        let mut first = s1.accept().await;
        first.expect(get_at_server("/1")).await;
        client.get(2, "/2").await;
        let mut second = s1.accept().await;
        second.expect(get_at_server("/2")).await;
        second.send(answer("two")).await;
        client.expect(2, "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n", "two").await;
        first.send(answer("one")).await;
        client.expect(1, "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n", "one").await;
        world
            .expect_log(&[
                r#"l l/s1 0/0/#/#/# 200 # - - ---- 1/1/#/#/0 0/0 "GET /2 HTTP/1.1""#,
                r#"l l/s1 0/0/#/#/# 200 # - - ---- 1/1/#/#/0 0/0 "GET /1 HTTP/1.1""#,
            ])
            .await;
    });
}

/// Sends back the payload of requests, and the method and target in a field.
async fn echo(mut server: Peer, _: usize) {
    while let Some(head) = server.try_receive_head().await {
        let line = head.lines().next().unwrap().to_owned();
        let payload = if head.contains("transfer-encoding: chunked") {
            let (payload, whole) = server.try_receive_chunked().await;
            if !whole {
                return;
            }
            payload
        } else {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let (payload, whole) = server.try_receive_up_to(length.map_or(0, |length| length.parse().unwrap())).await;
            if !whole {
                return;
            }
            payload
        };
        let head = format!("HTTP/1.1 200 OK\r\nx-line: {line}\r\ncontent-length: {}\r\n\r\n", payload.len());
        if !server.try_send(head).await || !server.try_send(payload).await {
            return;
        }
    }
}

/// Payload of both lengths that messages can have, uploaded while the other stream downloads.
#[test]
fn payload_arrives_unchanged_and_on_its_own_stream() {
    listen("server s1 10.0.1.1:80").shuffled().seeds(0..16).run(|world| async move {
        let scope = Rc::new(Scope::new());
        Service::at(S1).serve(&scope, echo);
        let mut client = Client::connect().await;
        for round in 0..3_u8 {
            let (one, two) = (2 * round + 1, 2 * round + 2);
            let (first, second) = (text(30_000, u64::from(one)), text(9_000, u64::from(two)));
            client.post(one, "POST /1 HTTP/1.1\r\nHost: a\r\n\r\n".into()).await;
            client.post(two, post(second.len())).await;
            client.upload(one, &first).await;
            client.upload(two, &second).await;
            for (stream, payload, line) in [(two, second, "POST / HTTP"), (one, first, "POST /1 HTTP")] {
                let answered = client.answer(stream).await;
                assert_eq!(answered.end, Some(Kind::End));
                assert!(answered.head.contains(line), "{}", answered.head);
                assert!(answered.payload == payload, "{} of {} bytes", answered.payload.len(), payload.len());
            }
        }
        world.forget_log();
    });
}

#[test]
fn a_slow_reader_holds_its_own_window_alone() {
    listen("server s1 10.0.1.1:80").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::connect().await;
        client.gives = false;
        client.get(1, "/long").await;
        let mut slow = s1.accept().await;
        slow.expect(get_at_server("/long")).await;
        slow.send(answer(&"x".repeat(100_000))).await;
        while client.answers.get(&1).is_none_or(|answered| answered.payload.len() < WINDOW) {
            client.step().await;
        }
        client.get(2, "/short").await;
        let mut server = s1.accept().await;
        server.expect(get_at_server("/short")).await;
        server.send(answer("short")).await;
        client.expect(2, "HTTP/1.1 200 OK", "short").await;
        assert_eq!(client.answers[&1].payload.len(), WINDOW, "more than the client has given credit for");
        world.forget_log();
    });
}

#[test]
fn a_stream_that_its_client_resets_ends_alone() {
    listen("server s1 10.0.1.1:80").shuffled().seeds(0..8).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::connect().await;
        client.post(1, post(10)).await;
        let mut first = s1.accept().await;
        first.expect(post_at_server(10)).await;
        client.get(2, "/2").await;
        let mut second = s1.accept().await;
        second.expect(get_at_server("/2")).await;
        client.peer.send(frame(Kind::Reset, 1, "")).await;
        first.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/#/-1/# 400 # - - CH-- 1/1/#/#/0 0/0 "POST / HTTP/1.1""#]).await;
        second.send(answer("two")).await;
        client.expect(2, "HTTP/1.1 200 OK", "two").await;
        world.forget_log();
    });
}

/// Each stream has an id and a line of its own in `show sess`.
#[test]
fn a_stream_is_killed_by_its_id_and_the_other_goes_on() {
    listen("server s1 10.0.1.1:80").global(SOCKET).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::connect().await;
        client.get(1, "/1").await;
        let mut first = s1.accept().await;
        first.expect(get_at_server("/1")).await;
        client.get(2, "/2").await;
        let mut second = s1.accept().await;
        second.expect(get_at_server("/2")).await;
        let shown = ask("show sess show-uri").await;
        let lines: Vec<_> = shown.lines().filter(|line| line.contains("fe=l ")).collect();
        assert_eq!(lines.len(), 2, "{shown}");
        let line = lines.iter().find(|line| line.contains("uri=\"/1\"")).unwrap();
        order(&format!("shutdown session {}", line.split(':').next().unwrap())).await;
        client.expect_reset(1).await;
        first.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/#/-1/# 500 # - - KC-- #/#/#/#/0 0/0 "GET /1 HTTP/1.1""#]).await;
        second.send(answer("two")).await;
        client.expect(2, "HTTP/1.1 200 OK", "two").await;
        world.forget_log();
    });
}

#[test]
fn a_panic_ends_its_own_stream() {
    // The service makes nothing of such a target.
    let rules = "http-request use-service streamer if { path /one }\n server s1 10.0.1.1:80";
    let broken = with_streamer(listen(rules)).broken_by(|_| {});
    broken.run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::connect().await;
        client.get(2, "/2").await;
        let mut server = s1.accept().await;
        server.expect(get_at_server("/2")).await;
        client.get(1, "/one").await;
        client.expect_reset(1).await;
        server.send(answer("two")).await;
        client.expect(2, "HTTP/1.1 200 OK", "two").await;
        let lines = world.lines(2).await;
        assert!(lines[0].contains(" I--- ") && lines[1].contains(" ---- "), "{lines:?}");
        client.get(3, "/3").await;
        server.expect(get_at_server("/3")).await;
        server.send(answer("three")).await;
        client.expect(3, "HTTP/1.1 200 OK", "three").await;
        drop(client);
        sleep(10).await;
        assert_eq!(world.sessions(), 0, "places were given back");
        world.forget_log();
    });
}

#[test]
fn prepared_answers_are_messages_of_the_stream() {
    let rules = "http-request return status 200 content-type text/plain string ready if { path /ready }
        http-request deny if { path /deny }
        http-request redirect location /there if { path /redirect }
        server s1 10.0.1.1:80";
    listen(rules).shuffled().seeds(0..8).run(|world| async move {
        let mut client = Client::connect().await;
        client.get(1, "/ready").await;
        client.get(2, "/deny").await;
        client.expect(1, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-type: text/plain\r\n\r\n", "ready").await;
        let denied = client.answer(2).await;
        assert!(denied.head.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{}", denied.head);
        assert!(!denied.head.contains("connection:") && !denied.payload.is_empty(), "{}", denied.head);
        client.get(3, "/redirect").await;
        client.expect(3, "HTTP/1.1 302 Found\r\n", "").await;
        // No server listens.
        client.get(4, "/dead").await;
        let dead = client.answer(4).await;
        assert!(dead.head.starts_with("HTTP/1.1 503 ") && dead.end == Some(Kind::End), "{}", dead.head);
        // What is refused in the middle of its upload is answered all the same, and then reset.
        client.post(5, "POST /deny HTTP/1.1\r\nHost: a\r\n\r\n".into()).await;
        client.peer.send(frame(Kind::Data, 5, "part")).await;
        let early = client.answer(5).await;
        assert!(early.head.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{}", early.head);
        client.get(6, "/ready").await;
        client.expect(6, "HTTP/1.1 200 OK", "ready").await;
        world.forget_log();
    });
}

#[test]
fn services_answer_streams() {
    with_streamer(listen("http-request use-service streamer")).shuffled().seeds(0..8).run(|world| async move {
        let mut client = Client::connect().await;
        client.get(1, "/30").await;
        client.post(2, "POST /echo HTTP/1.1\r\nHost: a\r\n\r\n".into()).await;
        client.upload(2, b"payload").await;
        client.expect(2, "HTTP/1.1 200 Streamed\r\n", "payload").await;
        client.expect(1, "HTTP/1.1 200 Streamed\r\n", &"x".repeat(30_000)).await;
        client.get(3, "/5/cut").await;
        client.expect_reset(3).await;
        world.forget_log();
    });
}

#[test]
fn rules_see_the_payload_of_a_stream() {
    let rules = "http-request wait-for-body time 5s
        http-request return status 200 content-type text/plain lf-string \"%[req.body] %[req.body_size]\"";
    listen(rules).shuffled().seeds(0..8).run(|world| async move {
        let mut client = Client::connect().await;
        client.post(1, "POST / HTTP/1.1\r\nHost: a\r\n\r\n".into()).await;
        client.peer.send(frame(Kind::Data, 1, "5\r\nno")).await;
        sleep(5).await;
        client.upload(1, b" chunk\r\n").await;
        client.expect(1, "HTTP/1.1 200 OK\r\n", "5\r\nno chunk\r\n 13").await;
        world.forget_log();
    });
}

#[test]
fn what_rules_of_a_stream_set_is_not_seen_by_the_other() {
    let rules = "log-format %ci
        http-request set-src hdr(x-from) if { req.hdr(x-from) -m found }
        server s1 10.0.1.1:80";
    listen(rules).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::connect().await;
        let named = "GET /1 HTTP/1.1\r\nHost: a\r\nX-From: 192.0.2.7\r\n\r\n";
        client.peer.send(frame(Kind::HeadAlone, 1, named)).await;
        let mut first = s1.accept().await;
        first.receive_head().await.unwrap();
        client.get(2, "/2").await;
        let mut second = s1.accept().await;
        second.expect(get_at_server("/2")).await;
        second.send(OK).await;
        client.expect(2, "HTTP/1.1 200 OK", "ok").await;
        first.send(OK).await;
        client.expect(1, "HTTP/1.1 200 OK", "ok").await;
        let lines = world.lines(2).await;
        assert!(!lines[0].ends_with("192.0.2.7") && lines[1].ends_with("192.0.2.7"), "{lines:?}");
    });
}

#[test]
fn a_third_stream_is_refused_while_two_are_open() {
    listen("server s1 10.0.1.1:80").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::connect().await;
        client.get(1, "/1").await;
        let mut first = s1.accept().await;
        first.expect(get_at_server("/1")).await;
        client.get(2, "/2").await;
        let mut second = s1.accept().await;
        second.expect(get_at_server("/2")).await;
        client.get(3, "/3").await;
        client.expect_reset(3).await;
        first.send(OK).await;
        client.expect(1, "HTTP/1.1 200 OK", "ok").await;
        client.get(4, "/4").await;
        first.expect(get_at_server("/4")).await;
        first.send(OK).await;
        client.expect(4, "HTTP/1.1 200 OK", "ok").await;
        drop((client, second));
        world.forget_log();
    });
}

#[test]
fn streams_end_with_their_connection() {
    for breaks in [false, true] {
        listen("server s1 10.0.1.1:80").shuffled().seeds(0..8).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Client::connect().await;
            client.get(1, "/1").await;
            let mut first = s1.accept().await;
            first.expect(get_at_server("/1")).await;
            client.get(2, "/2").await;
            let mut second = s1.accept().await;
            second.expect(get_at_server("/2")).await;
            if breaks {
                // No frame.
                client.peer.send("????????").await;
                client.peer.expect_end().await;
            } else {
                drop(client);
            }
            let lines = world.lines(2).await;
            for line in &lines {
                assert!(line.contains(" CD-- ") || line.contains(" CH-- "), "{lines:?}");
            }
            both(first.expect_end(), second.expect_end()).await;
            sleep(1).await;
            assert_eq!(world.sessions(), 0, "places were given back");
        });
    }
}

#[test]
fn a_soft_stop_ends_the_connection_behind_its_last_stream() {
    listen("server s1 10.0.1.1:80").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::connect().await;
        client.get(1, "/1").await;
        let mut server = s1.accept().await;
        server.expect(get_at_server("/1")).await;
        world.stop();
        sleep(10).await;
        client.get(2, "/2").await;
        client.expect_reset(2).await;
        server.send(OK).await;
        client.expect(1, "HTTP/1.1 200 OK", "ok").await;
        client.peer.expect_end().await;
        assert!(world.is_drained().await);
        world.forget_log();
    });
}

#[test]
fn an_idle_connection_ends_with_the_time_between_two_requests() {
    listen("timeout http-keep-alive 3s\n server s1 10.0.1.1:80").workers(&[1]).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::connect().await;
        client.get(1, "/1").await;
        let mut server = s1.accept().await;
        server.expect(get_at_server("/1")).await;
        // As long as a stream is open, that time does not run.
        sleep(5_000).await;
        server.send(OK).await;
        client.expect(1, "HTTP/1.1 200 OK", "ok").await;
        client.peer.expect_silence(2_900).await;
        sleep(200).await;
        client.peer.expect_end().await;
        world.forget_log();
    });
}
