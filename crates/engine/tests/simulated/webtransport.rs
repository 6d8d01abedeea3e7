//! Tests of WebTransport: sessions between a client and a server of HTTP/3, with their streams, datagrams, errors and ends.

use std::time::Duration;

use live::counters::QuicCount;
use quic::{Closed, Direction, StreamId};
use rt::sim::DatagramPath;
use testkit::sleep;
use wire::h3::ErrorCode;
use wire::h3::webtransport::{BUFFERED_STREAM_REJECTED, SESSION_GONE, push_beginning, push_datagram};

use crate::http3_client::{Client, push_data, request};
use crate::http3_origin::{Origin, Stream, encoded};
use crate::raw_streams::RawStreams;
use crate::world::*;

const CLIENT: &str = "10.0.9.1:5000";
const QUIC: &str = "10.0.0.1:443";
const ORIGIN: &str = "10.0.1.1:443";
const ASK: &str =
    "GET /session HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: webtransport\r\nOrigin: https://a\r\n\r\n";
const HEAD: &str = "HTTP/1.1 200 OK\r\n\r\n";
/// Mapped from an error of a session (draft-ietf-webtrans-http3, section 4.4).
const CODE: u64 = 0x52e4_a40f_a8db + 7;

/// A section with sessions on both sides.
fn serving(body: &str) -> Worlds {
    with_lines("webtransport", "webtransport", body)
}

/// A section with these options of its lines.
fn with_lines(bind: &str, server: &str, body: &str) -> Worlds {
    config(&format!(
        "listen l\n    bind quic4@{QUIC} ssl crt a.pem {bind}\n{body}\n    server q quic4@{ORIGIN} ssl verify none {server}\n"
    ))
    .global("    expose-experimental-directives\n")
    .seeds(0..2)
    .workers(&[1])
}

/// A session, seen from both ends.
struct Session {
    client: Client,
    origin: Origin,
    /// The stream of its request at the client.
    id: StreamId,
    /// That stream at the server.
    there: Stream,
}

impl Session {
    /// Opens one after another request of the client, so that its numbers differ.
    async fn open() -> Self {
        Self::open_with(100, 100).await
    }

    /// The client permits the first number of streams at a time, the server the second one.
    async fn open_with(streams: u32, streams_there: u32) -> Self {
        let mut origin = Origin::with_sessions(ORIGIN, streams_there);
        let mut client = Client::connect_sessions(CLIENT, QUIC, streams).await;
        let first = client.request("GET /first HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let stream = client.beside(origin.request()).await;
        client.beside(origin.answer(stream, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", b"")).await;
        origin.beside(client.answer(first)).await;
        Self::ask(client, origin, 1).await
    }

    /// Opens one that is the first request on a connection to the server with that number.
    async fn ask(mut client: Client, mut origin: Origin, connection: usize) -> Self {
        let id = client.open();
        client.write(id, &request(ASK)).await;
        let there = client.beside(origin.session(connection)).await;
        client.beside(origin.write(there, &encoded(HEAD))).await;
        origin.beside(client.until(|client| !client.received(id).heads.is_empty())).await;
        Self { client, origin, id, there }
    }

    /// Returns the beginning of a stream at the client.
    fn here(&self, direction: Direction) -> Vec<u8> {
        beginning(self.id.number(), direction)
    }

    /// Opens a stream of the client, and returns its counterpart at the server as well.
    async fn up(&mut self, direction: Direction, bytes: &[u8]) -> [StreamId; 2] {
        let whole = [&self.here(direction), bytes].concat();
        let (raw, connection) = self.client.raw();
        let own = raw.open(direction, &whole, connection);
        let expected = [&beginning(0, direction), bytes].concat();
        let at = self.there.connection;
        let is_there = |origin: &Origin| origin.raw_streams(at).beginning(&expected).is_some();
        self.client.beside(self.origin.until(is_there)).await;
        [own, self.origin.raw_streams(at).beginning(&expected).unwrap().0]
    }

    /// As [`Self::up`], but the beginning arrives in two pieces.
    async fn up_in_pieces(&mut self, direction: Direction, bytes: &[u8]) {
        let whole = [&self.here(direction), bytes].concat();
        let (raw, connection) = self.client.raw();
        let own = raw.open(direction, &whole[..1], connection);
        self.client.beside(self.origin.beside(sleep(10))).await;
        assert_eq!(self.client.raw().1.write(own, &whole[1..]), Ok(whole.len() - 1));
        let expected = [&beginning(0, direction), bytes].concat();
        let at = self.there.connection;
        self.until_origin(|origin| origin.raw_streams(at).beginning(&expected).is_some()).await;
    }

    /// Opens a stream of the server, and returns its counterpart at the client first.
    async fn down(&mut self, direction: Direction, bytes: &[u8]) -> [StreamId; 2] {
        let whole = [&beginning(0, direction), bytes].concat();
        let (raw, connection) = self.origin.raw(self.there.connection);
        let there = raw.open(direction, &whole, connection);
        let expected = [&self.here(direction), bytes].concat();
        let is_here = |client: &Client| client.raw.as_ref().unwrap().beginning(&expected).is_some();
        self.origin.beside(self.client.until(is_here)).await;
        [self.client.raw.as_ref().unwrap().beginning(&expected).unwrap().0, there]
    }

    /// Waits until the client has received what a test expects.
    async fn until_client(&mut self, is_done: impl FnMut(&Client) -> bool) {
        self.origin.beside(self.client.until(is_done)).await;
    }

    /// Waits until the server has received what a test expects.
    async fn until_origin(&mut self, is_done: impl FnMut(&Origin) -> bool) {
        self.client.beside(self.origin.until(is_done)).await;
    }

    /// Sends a datagram of the client.
    fn send(&mut self, payload: &[u8]) {
        let mut message = Vec::new();
        push_datagram(self.id.number(), &mut message);
        message.extend_from_slice(payload);
        self.client.raw().1.send_message(message.into()).unwrap();
    }

    /// Sends a datagram of the server.
    fn send_back(&mut self, payload: &[u8]) {
        let message = [&[0], payload].concat();
        self.origin.raw(self.there.connection).1.send_message(message.into()).unwrap();
    }

    /// Ends it in order, the client first.
    async fn close(mut self) {
        let mut frames = Vec::new();
        push_data(&mut frames, CAPSULE);
        self.client.write(self.id, &frames).await;
        self.client.finish(self.id);
        let there = self.there;
        self.until_origin(|origin| origin.asked(there).ended).await;
        assert_eq!(self.origin.asked(there).payload, CAPSULE);
        self.client.beside(self.origin.finish(there)).await;
        assert!(self.origin.beside(self.client.answer(self.id)).await.ended);
        self.client.close().await;
    }
}

/// CLOSE_WEBTRANSPORT_SESSION with the code 9 and a reason.
const CAPSULE: &[u8] = b"\x68\x43\x07\0\0\0\x09bye";

/// Returns the beginning of a stream.
fn beginning(session: u64, direction: Direction) -> Vec<u8> {
    let mut bytes = Vec::new();
    push_beginning(session, direction == Direction::Bidirectional, &mut bytes);
    bytes
}

const BOTH: [Direction; 2] = [Direction::Bidirectional, Direction::Unidirectional];

/// Streams of all four kinds and datagrams of both directions pass, with the session of each side.
#[test]
fn streams_and_datagrams_pass_both_ways() {
    serving("").run(|world| async move {
        let mut session = Session::open().await;
        let at = session.there.connection;
        let head = ":method: CONNECT\n:scheme: https\n:authority: a\n:path: /session\n:protocol: webtransport\norigin: https://a";
        assert_eq!((session.origin.asked(session.there).head.as_str(), session.id.number()), (head, 4));
        for direction in BOTH {
            let [own, there] = session.up(direction, b"up").await;
            if direction == Direction::Bidirectional {
                session.origin.raw(at).1.write(there, b"back").unwrap();
                session.origin.raw(at).1.finish(there).unwrap();
                session.until_client(|client| client.raw.as_ref().unwrap().streams[&own].ended).await;
                assert_eq!(session.client.raw.as_ref().unwrap().streams[&own].bytes, b"back");
            }
            session.client.finish(own);
            session.until_origin(|origin| origin.raw_streams(at).streams[&there].ended).await;
            let [own, there] = session.down(direction, b"down").await;
            if direction == Direction::Bidirectional {
                session.client.raw().1.write(own, b"reply").unwrap();
                session.client.finish(own);
                session.until_origin(|origin| origin.raw_streams(at).streams[&there].ended).await;
                assert_eq!(session.origin.raw_streams(at).streams[&there].bytes, b"reply");
            }
            session.origin.raw(at).1.finish(there).unwrap();
            session.until_client(|client| client.raw.as_ref().unwrap().streams[&own].ended).await;
        }
        session.send(b"one");
        session.until_origin(|origin| origin.raw_streams(at).messages == [b"\0one"]).await;
        session.send_back(b"two");
        session.until_client(|client| client.raw.as_ref().unwrap().messages == [b"\x01two"]).await;
        session.close().await;
        let lines = [
            r#"l~ l/q #/0/#/#/# 200 # - - ---- 1/1/0/0/0 0/0 "GET https://a/first HTTP/3.0""#,
            r#"l~ l/q #/0/#/#/# 101 # - - ---- 1/1/0/0/0 0/0 "GET https://a/session HTTP/3.0""#,
        ];
        world.expect_log(&lines).await;
    });
}

/// Returns what a client has received on streams of sessions.
fn raw(client: &Client) -> &RawStreams {
    client.raw.as_ref().unwrap()
}

/// Streams arrive whole over a network that loses, duplicates and reorders datagrams.
#[test]
fn long_streams_arrive_whole() {
    serving("").run(|_| async move {
        let mut session = Session::open().await;
        let path = DatagramPath {
            loss: 30,
            duplicates: 10,
            latency: Duration::from_millis(10),
            jitter: Duration::from_millis(5),
            ..DatagramPath::default()
        };
        rt::sim::network().set_datagram_path(path);
        for direction in BOTH {
            for byte in [b'a', b'b'] {
                session.up(direction, &vec![byte; 90_000]).await;
                session.down(direction, &vec![byte; 90_000]).await;
            }
        }
        rt::sim::network().set_datagram_path(DatagramPath::default());
        session.close().await;
    });
}

/// Codes of resets, and of streams that are not read any further, pass in both directions.
#[test]
fn errors_of_streams_pass() {
    serving("").run(|_| async move {
        let mut session = Session::open().await;
        let at = session.there.connection;
        let [own, there] = session.up(Direction::Bidirectional, b"1").await;
        session.client.reset(own, CODE);
        session.until_origin(|origin| origin.raw_streams(at).streams[&there].reset == Some(CODE)).await;
        session.client.stop(own, CODE + 1);
        session.until_origin(|origin| origin.raw_streams(at).stopped == [(there, CODE + 1)]).await;
        let [own, there] = session.up(Direction::Unidirectional, b"2").await;
        session.origin.raw(at).1.stop(there, CODE + 2);
        session.until_client(|client| raw(client).stopped == [(own, CODE + 2)]).await;
        let [own, there] = session.down(Direction::Unidirectional, b"3").await;
        session.origin.raw(at).1.reset(there, CODE + 3);
        session.until_client(|client| raw(client).streams[&own].reset == Some(CODE + 3)).await;
        let [own, there] = session.down(Direction::Unidirectional, b"4").await;
        session.client.stop(own, CODE + 4);
        session.until_origin(|origin| origin.raw_streams(at).stopped.contains(&(there, CODE + 4))).await;
        // The session goes on.
        session.up(Direction::Bidirectional, b"5").await;
        session.close().await;
    });
}

/// Streams that are received before the request of their session, or before its answer, wait for it.
#[test]
fn streams_may_arrive_before_their_session() {
    serving("").run(|_| async move {
        let origin = Origin::with_sessions(ORIGIN, 100);
        let mut client = Client::connect_sessions(CLIENT, QUIC, 100).await;
        let id = client.open();
        let mut early = Vec::new();
        for direction in BOTH {
            let whole = [&beginning(id.number(), direction)[..], b"early"].concat();
            let (raw, connection) = client.raw();
            early.push(raw.open(direction, &whole, connection));
        }
        client.beside(sleep(10)).await;
        client.write(id, &request(ASK)).await;
        let mut origin = origin;
        let there = client.beside(origin.session(0)).await;
        client.beside(origin.write(there, &encoded(HEAD))).await;
        for direction in BOTH {
            let expected = [&beginning(0, direction)[..], b"early"].concat();
            client.beside(origin.until(|origin| origin.raw_streams(0).beginning(&expected).is_some())).await;
        }
        Session { client, origin, id, there }.close().await;
    });
}

/// A stream of a session that does not exist is reset, one that waits in vain for too long gives way to others, and one whose session
/// is no request ends the connection.
#[test]
fn streams_without_a_session_are_refused() {
    serving("").run(|world| async move {
        let mut session = Session::open().await;
        let refused = |client: &Client, id, code| raw(client).stopped.contains(&(id, code));
        for direction in BOTH {
            let (raw_streams, connection) = session.client.raw();
            let own = raw_streams.open(direction, &beginning(0, direction), connection);
            session.until_client(|client| refused(client, own, SESSION_GONE)).await;
            if direction == Direction::Bidirectional {
                session.until_client(|client| raw(client).streams[&own].reset == Some(SESSION_GONE)).await;
            }
        }
        let mut waiting = Vec::new();
        for _ in 0..33 {
            let (raw_streams, connection) = session.client.raw();
            let bytes = beginning(400, Direction::Unidirectional);
            waiting.push(raw_streams.open(Direction::Unidirectional, &bytes, connection));
        }
        session.until_client(|client| refused(client, waiting[0], BUFFERED_STREAM_REJECTED)).await;
        assert!(!waiting[1..].iter().any(|id| refused(&session.client, *id, BUFFERED_STREAM_REJECTED)));
        session.up(Direction::Bidirectional, b"on").await;
        let (raw_streams, connection) = session.client.raw();
        raw_streams.open(Direction::Bidirectional, b"\x40\x41\x05", connection);
        session.until_client(|client| client.closed.is_some()).await;
        let code = ErrorCode::IdError.number();
        assert!(matches!(session.client.closed, Some(Closed::ByPeer { code: found, .. }) if found == code));
        world.forget_log();
    });
}

/// The end of a session by either side, however it comes, ends its streams, and its connection to the server. Others go on.
#[test]
fn streams_end_with_their_session() {
    for way in ["finish", "reset", "stop", "connection", "client"] {
        serving("").run(move |world| async move {
            let mut session = Session::open().await;
            let (at, there) = (session.there.connection, session.there);
            let [own, other] = session.up(Direction::Bidirectional, b"1").await;
            match way {
                "finish" => session.client.beside(session.origin.finish(there)).await,
                "reset" => session.client.beside(session.origin.reset(there, CODE)).await,
                "stop" => session.client.stop(session.id, CODE),
                "connection" => session.client.beside(session.origin.close(at, ErrorCode::NoError.number())).await,
                _ => session.client.close().await,
            }
            if way != "client" {
                session.until_client(|client| raw(client).streams[&own].reset == Some(SESSION_GONE)).await;
                assert!(session.client.closed.is_none(), "{way}");
                let mut after = Session::ask(session.client, session.origin, 2).await;
                after.up(Direction::Bidirectional, b"2").await;
                after.until_origin(|origin| way == "connection" || origin.closed(at).is_some()).await;
                after.close().await;
            } else {
                session
                    .until_origin(|origin| {
                        origin.closed(at).is_some()
                            || origin.raw_streams(at).streams[&other].reset == Some(SESSION_GONE)
                    })
                    .await;
            }
            world.forget_log();
        });
    }
}

/// Datagrams keep a session alive; silence ends it.
#[test]
fn a_silent_session_ends() {
    serving("    timeout tunnel 1s").run(|world| async move {
        let mut session = Session::open().await;
        let at = session.there.connection;
        for count in 1..5 {
            session.send(b"x");
            session.until_origin(|origin| origin.raw_streams(at).messages.len() == count).await;
            session.client.beside(session.origin.beside(sleep(700))).await;
        }
        let there = session.there;
        session.until_origin(|origin| origin.asked(there).reset.is_some() || origin.closed(at).is_some()).await;
        session.client.close().await;
        let lines = [
            r#"l~ l/q #/0/#/#/# 200 # - - ---- 1/1/0/0/0 0/0 "GET https://a/first HTTP/3.0""#,
            r#"l~ l/q #/0/#/#/# 101 # - - cD-- 1/1/0/0/0 0/0 "GET https://a/session HTTP/3.0""#,
        ];
        world.expect_log(&lines).await;
    });
}

/// A server without sessions, in its line or in its settings, is asked for none.
#[test]
fn a_session_needs_a_server_that_has_them() {
    for (line, announces) in [("", true), ("webtransport", false)] {
        with_lines("webtransport", line, "").run(move |world| async move {
            let mut origin = if announces { Origin::with_sessions(ORIGIN, 100) } else { Origin::at(ORIGIN) };
            let mut client = Client::connect_sessions(CLIENT, QUIC, 100).await;
            let id = client.open();
            client.write(id, &request(ASK)).await;
            let answer = origin.beside(client.answer(id)).await;
            assert_eq!(answer.reset, Some(ErrorCode::RequestRejected.number()), "{answer:?}");
            assert!((0..origin.connections()).all(|at| origin.all_asked(at).all(|asked| asked.head.is_empty())));
            client.close().await;
            world.forget_log();
        });
    }
}

/// Returns whether bytes contain others.
fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Without the keyword nothing is announced, and the signal of a stream is a frame without a meaning.
#[test]
fn sessions_are_announced_where_they_are_configured() {
    let settings = [&b"\x33\x01"[..], b"\xab\x60\x37\x42\x01", b"\xc0\0\0\0\xc6\x71\x70\x6a\x10"];
    for (line, is_configured) in [("webtransport", true), ("", false)] {
        with_lines(line, line, "").run(move |world| async move {
            let mut origin = Origin::at(ORIGIN);
            let mut client = Client::connect_sessions(CLIENT, QUIC, 100).await;
            let mut bytes = if is_configured { Vec::new() } else { b"\x40\x41\x04junk".to_vec() };
            bytes.extend(request("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
            let id = client.open_whole(&bytes);
            let stream = client.beside(origin.request()).await;
            client.beside(origin.answer(stream, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", b"")).await;
            assert_eq!(origin.beside(client.answer(id)).await.heads.len(), 1);
            let to_client = raw(&client).streams.values().map(|stream| &stream.bytes[..]);
            for sent in to_client.chain(origin.unidirectional(0)).filter(|bytes| bytes.starts_with(b"\0")) {
                assert_eq!(settings.map(|setting| contains(sent, setting)), [is_configured; 3], "{sent:x?}");
            }
            client.close().await;
            world.forget_log();
        });
    }
}

/// A stream that the other side does not permit yet waits, and others do not.
#[test]
fn streams_wait_for_permission() {
    serving("").run(|_| async move {
        let mut session = Session::open_with(1, 1).await;
        let at = session.there.connection;
        let [first, there] = session.down(Direction::Bidirectional, b"1").await;
        let (raw_streams, connection) = session.origin.raw(at);
        raw_streams.open(
            Direction::Bidirectional,
            &[&beginning(0, Direction::Bidirectional)[..], b"2"].concat(),
            connection,
        );
        session.down(Direction::Unidirectional, b"3").await;
        let second = [&session.here(Direction::Bidirectional)[..], b"2"].concat();
        session.client.beside(session.origin.beside(sleep(100))).await;
        assert!(raw(&session.client).beginning(&second).is_none());
        session.client.finish(first);
        session.origin.raw(at).1.finish(there).unwrap();
        session.until_client(|client| raw(client).beginning(&second).is_some()).await;
        session.close().await;
    });
}

/// After a soft stop, sessions go on with old and new streams; a new session is rejected.
#[test]
fn a_soft_stop_lets_sessions_end() {
    serving("").run(|world| async move {
        let mut session = Session::open().await;
        let control = StreamId::of_number(3).unwrap();
        let before = raw(&session.client).streams[&control].bytes.len();
        world.stop();
        // Both GOAWAY frames.
        session.until_client(|client| raw(client).streams[&control].bytes.len() >= before + 10 + 3).await;
        session.up(Direction::Bidirectional, b"1").await;
        session.down(Direction::Unidirectional, b"2").await;
        session.up_in_pieces(Direction::Bidirectional, b"3").await;
        // The head of a request in one piece, and in two.
        for first in [0, 20] {
            let head = request(ASK);
            let late = session.client.open();
            session.client.write(late, &head[..first]).await;
            session.client.beside(sleep(10)).await;
            session.client.write(late, &head[first..]).await;
            let answer = session.origin.beside(session.client.answer(late)).await;
            assert_eq!(answer.reset, Some(ErrorCode::RequestRejected.number()));
        }
        session.close().await;
        world.forget_log();
    });
}

/// More datagrams than may wait at once: the oldest are dropped and counted. An invalid one ends the connection.
#[test]
fn datagrams_are_bounded() {
    serving("").run(|world| async move {
        let origin = Origin::with_sessions(ORIGIN, 100);
        let mut client = Client::connect_sessions(CLIENT, QUIC, 100).await;
        let id = client.open();
        client.write(id, &request(ASK)).await;
        let mut session = {
            let mut origin = origin;
            let there = client.beside(origin.session(0)).await;
            Session { client, origin, id, there }
        };
        for number in 0..70_u8 {
            session.send(&[number]);
        }
        session.client.beside(sleep(10)).await;
        session.client.beside(session.origin.write(session.there, &encoded(HEAD))).await;
        session.until_origin(|origin| origin.raw_streams(0).messages.len() == 64).await;
        assert_eq!(session.origin.raw_streams(0).messages[0], [0, 6]);
        // One of an unknown session is dropped.
        session.client.raw().1.send_message(b"\x09x"[..].into()).unwrap();
        session.send(b"last");
        session.until_origin(|origin| origin.raw_streams(0).messages.len() == 65).await;
        session.client.raw().1.send_message(b"\x40"[..].into()).unwrap();
        session.until_client(|client| client.closed.is_some()).await;
        let code = ErrorCode::DatagramError.number();
        assert!(matches!(session.client.closed, Some(Closed::ByPeer { code: found, .. }) if found == code));
        let of = QuicCount::DroppedPacketBufferOverrun;
        assert_eq!(world.shared().counters.quic(0, true, |counters| counters.of(of)), 6);
        world.forget_log();
    });
}

/// A datagram that does not fit into a packet of the other side is dropped and counted; those after it pass.
#[test]
fn datagrams_that_are_too_large_are_dropped() {
    serving("").run(|world| async move {
        // The path from the server's side of the proxy is narrower than that from the client's.
        let narrow = DatagramPath { mtu: 1_252, ..DatagramPath::default() };
        rt::sim::network().set_path_to(&ORIGIN.parse::<std::net::SocketAddr>().unwrap().into(), narrow);
        let mut session = Session::open().await;
        session.client.beside(session.origin.beside(sleep(2_000))).await;
        session.send(&[b'x'; 1_300]);
        session.send(b"small");
        let at = session.there.connection;
        session.until_origin(|origin| !origin.raw_streams(at).messages.is_empty()).await;
        assert_eq!(session.origin.raw_streams(at).messages, [b"\0small"]);
        let of = QuicCount::DroppedPacketBufferOverrun;
        assert_eq!(world.shared().counters.quic(0, true, |counters| counters.of(of)), 1);
        session.close().await;
        world.forget_log();
    });
}

/// Datagrams of a session that has ended are no fault of a client that does not know of its end yet; those of one that never was are.
#[test]
fn datagrams_of_a_session_that_has_ended_are_dropped() {
    for (number, is_closed) in [(4, false), (400, true)] {
        serving("").global("    tune.quic.fe.sec.glitches-threshold 10\n").run(move |world| async move {
            let mut session = Session::open().await;
            let (there, own) = (session.there, session.id);
            session.client.beside(session.origin.finish(there)).await;
            session.origin.beside(session.client.answer(own)).await;
            session.client.reset(own, 0);
            session.client.beside(session.origin.beside(sleep(10))).await;
            let mut after = Session::ask(session.client, session.origin, 2).await;
            for _ in 0..4 {
                for _ in 0..64 {
                    let mut message = Vec::new();
                    push_datagram(number, &mut message);
                    after.client.raw().1.send_message(message.into()).unwrap();
                }
                after.client.beside(after.origin.beside(sleep(1))).await;
            }
            if is_closed {
                after.until_client(|client| client.closed.is_some()).await;
            } else {
                after.up(Direction::Bidirectional, b"on").await;
                after.close().await;
            }
            world.forget_log();
        });
    }
}

/// A reload in place leaves a session as it is, even if the address accepts no further ones.
#[test]
fn a_session_goes_on_over_a_reload_in_place() {
    serving("").run(|world| async move {
        let mut session = Session::open().await;
        session.up(Direction::Bidirectional, b"1").await;
        assert_eq!(world.adopt(&with_lines("", "", "")), Ok(()));
        session.up(Direction::Bidirectional, b"2").await;
        session.down(Direction::Unidirectional, b"3").await;
        session.send(b"4");
        let at = session.there.connection;
        session.until_origin(|origin| origin.raw_streams(at).messages.len() == 1).await;
        session.close().await;
        world.forget_log();
    });
}

/// A client that asks for too many sessions at a time gets 429.
#[test]
fn the_number_of_sessions_is_bounded() {
    serving("").run(|world| async move {
        let mut origin = Origin::with_sessions(ORIGIN, 100);
        let mut client = Client::connect_sessions(CLIENT, QUIC, 100).await;
        for _ in 0..16 {
            let id = client.open();
            client.write(id, &request(ASK)).await;
        }
        let id = client.open();
        client.write(id, &request(ASK)).await;
        let answer = origin.beside(client.answer(id)).await;
        assert!(answer.heads[0].starts_with("HTTP/3.0 429"), "{answer:?}");
        client.close().await;
        world.forget_log();
    });
}
