//! Tests of HTTP/3 over QMux: Weir on both sides over TLS, and peers made by hand over plain bytes, with faults and early ends.

use std::rc::Rc;
use std::time::Duration;

use live::counters::QuicCount;
use quic::qmux::{Connection, Settings};
use quic::stream::{Part, ReadError};
use quic::{Closed, Direction, Event, StreamId};
use testkit::{Peer, Scope, Service, text};
use wire::h3::{self, ErrorCode, MessagePart, MessageReader, Role, StreamType};

use crate::http3_client::{push_data, request};
use crate::http3_origin::encoded;
use crate::messages::*;
use crate::multiplexed_client::echo;
use crate::world::*;

/// An address of Weir where clients speak QMux without TLS.
const PLAIN: &str = "10.0.0.1:81";
const ORIGIN: &str = "10.0.1.1:443";
const SETTINGS: Settings = Settings {
    idle_timeout: Duration::from_secs(60),
    max_bidirectional: 100,
    max_unidirectional: 3,
    // All answers of a test: they are read one after the other.
    window: 2_000_000,
    stream_window: 50_000,
};

/// A `listen` section where clients speak QMux.
fn serving(body: &str) -> Worlds {
    listen(&format!("    bind {PLAIN} proto qmux\n    server s1 {S1}\n{body}"))
        .global("    expose-experimental-directives\n")
}

/// A `listen` section whose server speaks QMux.
fn towards(body: &str) -> Worlds {
    listen(&format!("{body}\n    server q {ORIGIN} proto qmux")).global("    expose-experimental-directives\n")
}

/// One side of a connection.
struct Side {
    peer: Peer,
    machine: Connection,
    events: Vec<Event>,
    /// Whether the other side has closed the transport.
    is_over: bool,
}

impl Side {
    fn over(peer: Peer, is_server: bool) -> Self {
        Self { peer, machine: Connection::new(is_server, SETTINGS, rt::now()), events: Vec::new(), is_over: false }
    }

    /// Connects to Weir, and sends SETTINGS.
    async fn connect() -> Self {
        let mut side = Self::over(Peer::connect(PLAIN).await, false);
        side.settle().await;
        side
    }

    /// Exchanges parameters, and sends SETTINGS.
    async fn settle(&mut self) {
        self.until(|side| side.machine.is_ready()).await;
        let mut bytes = Vec::new();
        h3::push_stream_type(StreamType::Control, &mut bytes);
        h3::push_settings(&h3::Settings::default(), &mut bytes);
        let own = self.machine.open(Direction::Unidirectional).unwrap();
        assert_eq!(self.machine.write(own, &bytes), Ok(bytes.len()));
    }

    /// Sends what there is.
    async fn send(&mut self) {
        let bytes = self.machine.output().to_vec();
        if !bytes.is_empty() && self.peer.try_send(&bytes).await {
            self.machine.note_sent(rt::now(), bytes.len());
        }
    }

    /// Sends, and receives once.
    async fn step(&mut self) {
        self.send().await;
        let bytes = self.peer.receive_some().await;
        if bytes.is_empty() {
            self.is_over = true;
            self.machine.end_input();
        }
        self.machine.receive(rt::now(), &bytes);
        while let Some(event) = self.machine.poll_event() {
            self.events.push(event);
        }
    }

    /// Proceeds until something is true, or the connection is over.
    async fn until(&mut self, is_done: impl Fn(&mut Self) -> bool) {
        while !is_done(self) && !self.is_over {
            self.step().await;
        }
    }

    /// Sends a request. Returns its stream.
    async fn request(&mut self, text: &str) -> StreamId {
        let id = self.machine.open(Direction::Bidirectional).unwrap();
        let bytes = request(text);
        assert_eq!(self.machine.write(id, &bytes), Ok(bytes.len()));
        self.machine.finish(id).unwrap();
        self.send().await;
        id
    }

    /// Reads a message to the end of its stream. Returns its payload, or the code of a reset.
    async fn message(&mut self, id: StreamId, role: Role) -> Result<Vec<u8>, u64> {
        let (mut reader, mut payload) = (MessageReader::new(role, 65_536), Vec::new());
        loop {
            match self.machine.read(id, usize::MAX) {
                Ok(Part::Chunk(bytes)) => {
                    let mut input = &bytes[..];
                    while let Some(part) = reader.next(&mut input).unwrap() {
                        if let MessagePart::Data(data) = part {
                            payload.extend_from_slice(data);
                        }
                    }
                }
                Ok(Part::End) => return Ok(payload),
                Err(ReadError::Reset(code)) => return Err(code),
                Err(ReadError::Blocked) if !self.is_over => self.step().await,
                Err(error) => panic!("{error:?}: {:?}", self.events),
            }
        }
    }

    /// Returns how the other side has closed the connection.
    fn closed(&self) -> Option<&Closed> {
        self.events.iter().find_map(|event| match event {
            Event::Closed(closed) => Some(closed),
            _ => None,
        })
    }
}

/// Bodies of both directions, of sizes around those of records, buffers and windows, between two sections by TLS: the protocol
/// is that of `proto`, or that of ALPN.
#[test]
fn bodies_arrive_whole_between_two_sections() {
    for (at_bind, at_server) in [("proto qmux", "proto qmux"), ("alpn h3,http/1.1", "alpn h3")] {
        let second = format!("listen b\n    bind 10.0.0.3:443 ssl crt a.pem {at_bind}\n    server s1 {S1}");
        let first = format!("    http-reuse never\n    server q 10.0.0.3:443 ssl verify none {at_server}");
        let worlds = listen(&format!("{first}\n{second}")).global("    expose-experimental-directives\n");
        worlds.seeds(0..2).workers(&[1, 2]).run(move |world| async move {
            let scope = Rc::new(Scope::new());
            Service::at(S1).serve(&scope, echo);
            let mut client = Peer::connect(WEIR).await;
            for (number, length) in [0, 1, 16_350, 16_384, 65_536, 300_000].into_iter().enumerate() {
                let payload = text(length, number as u64);
                let line = format!("POST /{number} HTTP/1.1");
                client.send(format!("{line}\r\nHost: a\r\nContent-Length: {length}\r\n\r\n")).await;
                client.send(&payload).await;
                client.expect(format!("HTTP/1.1 200 OK\r\nx-line: {line}\r\ncontent-length: {length}\r\n\r\n")).await;
                client.expect(&payload).await;
                let (one, two) =
                    ("b~ b/s1 #/0/#/#/# 200 # - - ---- 2/1/0/0/0 0/0", "l l/q #/0/#/#/# 200 # - - ---- 2/1/0/0/0 0/0");
                let [one, two] = [format!(r#"{one} "POST https://a/{number} HTTP/3.0""#), format!(r#"{two} "{line}""#)];
                world.expect_log(&[&one, &two]).await;
            }
            drop(client);
        });
    }
}

/// Many requests at a time on one connection of a client.
#[test]
fn requests_share_a_connection() {
    serving("").workers(&[1, 2]).run(|world| async move {
        let scope = Rc::new(Scope::new());
        Service::at(S1).serve(&scope, echo);
        let mut client = Side::connect().await;
        for round in 0..4 {
            let mut streams = Vec::new();
            for number in 0..20 {
                let payload = text(number * 1000, round);
                let head = format!("POST /{number} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", payload.len());
                let mut bytes = request(&head);
                push_data(&mut bytes, &payload);
                let id = client.machine.open(Direction::Bidirectional).unwrap();
                let mut left = &bytes[..];
                while !left.is_empty() {
                    match client.machine.write(id, left) {
                        Ok(written) => left = &left[written..],
                        Err(_) => client.step().await,
                    }
                    client.send().await;
                }
                client.machine.finish(id).unwrap();
                streams.push((id, payload));
            }
            client.send().await;
            for (id, payload) in streams {
                assert!(client.message(id, Role::Client).await == Ok(payload), "{id:?}");
            }
        }
        client.machine.close(ErrorCode::NoError.number(), b"");
        client.send().await;
        client.until(|client| client.is_over).await;
        world.forget_log();
    });
}

/// A client that reads nothing gets no more than its windows; the answer goes on once it reads.
#[test]
fn an_answer_waits_for_the_window() {
    serving("").seeds(0..2).workers(&[1, 2]).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Side::connect().await;
        let id = client.request("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut one = s1.accept().await;
        one.expect(get_at_server("/1")).await;
        let payload = text(400_000, 1);
        one.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", payload.len())).await;
        let scope = Scope::new();
        let sent = payload.clone();
        scope.spawn(async move {
            one.send(&sent).await;
        });
        // The bytes of one window arrive, and STREAM_DATA_BLOCKED.
        client.until(|client| client.machine.received_frames().stream_data_blocked > 0).await;
        let mut received = Vec::new();
        while let Ok(Part::Chunk(bytes)) = client.machine.read(id, usize::MAX) {
            received.extend_from_slice(&bytes);
        }
        assert_eq!(received.len(), 50_000);
        let mut reader = MessageReader::new(Role::Client, 65_536);
        let mut found = Vec::new();
        loop {
            let mut input = &received[..];
            while let Some(part) = reader.next(&mut input).unwrap() {
                if let MessagePart::Data(data) = part {
                    found.extend_from_slice(data);
                }
            }
            received.clear();
            match client.machine.read(id, usize::MAX) {
                Ok(Part::Chunk(bytes)) => received.extend_from_slice(&bytes),
                Ok(Part::End) => break,
                Err(_) => client.step().await,
            }
        }
        assert!(found == payload);
        drop(client);
        world.forget_log();
    });
}

/// Errors of a client end its connection with the code of the error.
#[test]
fn violations_end_the_connection() {
    for (frames, code) in [
        (&b"\x01\x01"[..], 0x7),
        (b"\x04\x0a\x01\x01a", 0x5),
        (b"\x05\x0e\0\x01\x01a", 0xa),
        (b"\x05\x0a\x7f\xfc\x01a", 0x4),
        (b"\x7f\xff", 0x7),
    ] {
        serving("").seeds(0..1).workers(&[1]).run(move |world| async move {
            let mut client = Side::connect().await;
            client.send().await;
            client.peer.send(frames).await;
            client.until(|client| client.is_over).await;
            assert!(
                matches!(client.closed(), Some(Closed::PeerTransport { code: found, .. }) if *found == code),
                "{frames:x?}: {:?}",
                client.events
            );
            drop(client);
            world.forget_log();
        });
    }
    // A client of another protocol.
    serving("").seeds(0..1).workers(&[1]).run(|world| async move {
        let mut client = Side::over(Peer::connect(PLAIN).await, false);
        client.peer.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        client.until(|client| client.is_over).await;
        assert!(matches!(client.closed(), Some(Closed::PeerTransport { code: 0x8, .. })), "{:?}", client.events);
        drop(client);
        world.forget_log();
    });
    // One that sends frames without use, and has a request under way.
    serving("").seeds(0..1).workers(&[1]).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Side::connect().await;
        client.request("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let _one = s1.accept().await;
        let mut frames = b"\x40\x02\x10\x01".repeat(100_000);
        frames.truncate(400_000);
        client.peer.try_send(&frames).await;
        client.until(|client| client.is_over).await;
        let code = ErrorCode::ExcessiveLoad.number();
        assert!(
            matches!(client.closed(), Some(Closed::ByPeer { code: found, .. }) if *found == code),
            "{:?}",
            client.closed()
        );
        drop(client);
        world.forget_log();
    });
}

/// A client that vanishes ends its requests; one that cancels a request ends that alone.
#[test]
fn clients_that_leave_end_their_requests() {
    serving("").workers(&[1, 2]).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Side::connect().await;
        let first = client.request("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut one = s1.accept().await;
        one.expect(get_at_server("/1")).await;
        client.machine.stop(first, ErrorCode::RequestCancelled.number());
        client.send().await;
        one.expect_end().await;
        let _second = client.request("GET /2 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut two = s1.accept().await;
        two.expect(get_at_server("/2")).await;
        drop(client);
        two.expect_end().await;
        world.forget_log();
    });
}

/// A soft stop announces GOAWAY, and lets the request that is under way end.
#[test]
fn a_soft_stop_lets_requests_end() {
    serving("").workers(&[1, 2]).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Side::connect().await;
        let first = client.request("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut one = s1.accept().await;
        one.expect(get_at_server("/1")).await;
        world.stop();
        one.send(answer("one")).await;
        assert_eq!(client.message(first, Role::Client).await, Ok(b"one".to_vec()));
        client.until(|client| client.is_over).await;
        assert!(matches!(client.closed(), Some(Closed::ByPeer { code: 0x100, .. })), "{:?}", client.events);
        drop(client);
        world.forget_log();
    });
}

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n";

/// Requests wait for the server's parameters, and share its connection.
#[test]
fn a_server_gets_requests_after_its_parameters() {
    towards("").workers(&[1]).run(|world| async move {
        let mut s1 = Service::at(ORIGIN);
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/1")).await;
        let mut origin = Side::over(s1.accept().await, true);
        origin.settle().await;
        for (path, payload) in [("/1", "one"), ("/2", "two")] {
            if path != "/1" {
                client.send(get(path)).await;
            }
            origin.until(|origin| origin.events.contains(&Event::StreamsOpened(Direction::Bidirectional))).await;
            origin.events.clear();
            let id = origin.machine.accept(Direction::Bidirectional).unwrap();
            assert_eq!(origin.message(id, Role::Server).await, Ok(Vec::new()));
            let mut bytes = encoded(HEAD);
            push_data(&mut bytes, payload.as_bytes());
            origin.machine.write(id, &bytes).unwrap();
            origin.machine.finish(id).unwrap();
            origin.send().await;
            client.expect(answer_at_client(payload)).await;
            world
                .expect_log(&[&format!(r#"l l/q #/0/#/#/# 200 # - - ---- 1/1/0/0/0 0/0 "GET {path} HTTP/1.1""#)])
                .await;
        }
        drop(client);
    });
}

/// A server that does not send its parameters is one that does not connect; one that ends with a request under way fails that.
#[test]
fn servers_that_vanish_fail_their_requests() {
    towards("    retries 0\n    timeout connect 1s").workers(&[1]).run(|world| async move {
        let mut s1 = Service::at(ORIGIN);
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/1")).await;
        let silent = s1.accept().await;
        assert!(client.receive_head().await.unwrap().starts_with("HTTP/1.1 503"));
        drop(silent);
        world.expect_log(&[r#"l l/q 0/#/-1/-1/# 503 # - - sC-- 1/1/0/0/0 0/0 "GET /1 HTTP/1.1""#]).await;
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/2")).await;
        let mut origin = Side::over(s1.accept().await, true);
        origin.settle().await;
        origin.until(|origin| origin.events.contains(&Event::StreamsOpened(Direction::Bidirectional))).await;
        drop(origin);
        assert!(client.receive_head().await.unwrap().starts_with("HTTP/1.1 502"));
        world.expect_log(&[r#"l l/q 0/0/0/-1/# 502 # - - SH-- 2/2/0/0/0 0/0 "GET /2 HTTP/1.1""#]).await;
        drop(client);
    });
}

/// Checks use the server's protocol, or that of `check-proto`. A server that sends no parameters fails them.
#[test]
fn checks_go_by_qmux() {
    for words in ["proto qmux check", "check check-proto qmux"] {
        let sections = format!(
            "    option log-health-checks\n    option httpchk\n    http-check send meth POST uri /c hdr Host b body abc\n    \
             http-check expect string fine\n    server q {ORIGIN} {words} inter 1s fall 1 rise 1 init-state fully-up"
        );
        let worlds = listen(&sections).global("    expose-experimental-directives\n");
        worlds.workers(&[1]).seeds(0..2).run(move |world| async move {
            let mut s1 = Service::at(ORIGIN);
            for (body, word) in [(Some("not"), "failed"), (None, "failed"), (Some("all fine"), "succeeded")] {
                let peer = s1.accept().await;
                match body {
                    None => drop(peer),
                    Some(body) => {
                        let mut origin = Side::over(peer, true);
                        origin.settle().await;
                        let opened = Event::StreamsOpened(Direction::Bidirectional);
                        origin.until(|origin| origin.events.contains(&opened)).await;
                        let id = origin.machine.accept(Direction::Bidirectional).unwrap();
                        assert_eq!(origin.message(id, Role::Server).await, Ok(b"abc".to_vec()));
                        let mut bytes = encoded("HTTP/1.1 200 OK\r\n\r\n");
                        push_data(&mut bytes, body.as_bytes());
                        origin.machine.write(id, &bytes).unwrap();
                        origin.machine.finish(id).unwrap();
                        origin.send().await;
                        origin.until(|origin| origin.is_over).await;
                    }
                }
                let mut lines = Vec::new();
                while !lines.iter().any(|line: &String| line.contains(&format!("for server l/q {word}"))) {
                    let more = world.lines(1).await;
                    assert!(!more.is_empty(), "{word}: {lines:?}");
                    lines.extend(more);
                }
            }
            world.forget_log();
        });
    }
}

/// Frames received and the code with which a peer closes its connection are counted at the end, for clients and for servers.
#[test]
fn connections_are_counted_at_their_end() {
    // DATA_BLOCKED, STREAM_DATA_BLOCKED of the first stream, STREAMS_BLOCKED of both directions.
    let blocked = b"\x40\x0b\x14\x05\x15\0\x05\x16\x09\x16\x09\x17\x09";
    let expected = [
        (QuicCount::DataBlocked, 1),
        (QuicCount::StreamDataBlocked, 1),
        (QuicCount::StreamsBlockedBidirectional, 2),
        (QuicCount::StreamsBlockedUnidirectional, 1),
        (QuicCount::Http3InternalError, 1),
        (QuicCount::Http3Headers, 1),
        (QuicCount::Http3Settings, 1),
        (QuicCount::HalfOpenConnection, 0),
        (QuicCount::HandshakeFail, 0),
    ];
    let check = move |world: &World, front: bool| {
        let found = expected.map(|(of, _)| (of, world.shared().counters.quic(0, front, |all| all.of(of))));
        assert_eq!(found, expected, "front: {front}");
    };
    let close = |side: &mut Side| side.machine.close(ErrorCode::InternalError.number(), b"");
    serving("").workers(&[1]).run(move |world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Side::connect().await;
        let id = client.request("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut one = s1.accept().await;
        one.expect(get_at_server("/1")).await;
        client.peer.send(blocked).await;
        one.send(answer("one")).await;
        assert_eq!(client.message(id, Role::Client).await, Ok(b"one".to_vec()));
        close(&mut client);
        client.until(|client| client.is_over).await;
        while world.sessions() > 0 {
            rt::sleep(Duration::from_millis(10)).await;
        }
        check(&world, true);
        world.forget_log();
    });
    towards("").workers(&[1]).run(move |world| async move {
        let mut s1 = Service::at(ORIGIN);
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/1")).await;
        let mut origin = Side::over(s1.accept().await, true);
        origin.settle().await;
        origin.until(|origin| origin.events.contains(&Event::StreamsOpened(Direction::Bidirectional))).await;
        let id = origin.machine.accept(Direction::Bidirectional).unwrap();
        assert_eq!(origin.message(id, Role::Server).await, Ok(Vec::new()));
        origin.peer.send(blocked).await;
        let mut bytes = encoded(HEAD);
        push_data(&mut bytes, b"one");
        origin.machine.write(id, &bytes).unwrap();
        origin.machine.finish(id).unwrap();
        origin.send().await;
        client.expect(answer_at_client("one")).await;
        close(&mut origin);
        origin.until(|origin| origin.is_over).await;
        let closes =
            |world: &World| world.shared().counters.quic(0, false, |all| all.of(QuicCount::Http3InternalError));
        while closes(&world) == 0 {
            rt::sleep(Duration::from_millis(10)).await;
        }
        check(&world, false);
        drop(client);
        world.forget_log();
    });
}
