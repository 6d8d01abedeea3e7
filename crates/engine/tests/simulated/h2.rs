//! Tests of HTTP/2 with clients, and HTTP/1 servers: streams are independent, windows are respected, a protocol
//! violation ends a stream or the connection and nothing else.

use std::collections::BTreeMap;

use rt::sim::Link;
use testkit::{Peer, Service, sleep};
use wire::h2::{Decoder, ErrorCode, FrameHeader, HEADER_LENGTH, Kind, PREFACE, Setting, flag, push_frame};

use crate::messages::*;
use crate::world::*;

/// The received part of an answer.
#[derive(Default)]
pub struct ReceivedAnswer {
    pub head: String,
    payload: Vec<u8>,
    ended: bool,
    pub reset: Option<u32>,
}

impl ReceivedAnswer {
    /// The payload.
    pub fn bytes(&self) -> &[u8] {
        &self.payload
    }

    /// The payload as text.
    pub fn payload(&self) -> &str {
        std::str::from_utf8(&self.payload).unwrap()
    }
}

/// An HTTP/2 client, which credits windows for the bytes that it reads.
pub struct Client {
    pub peer: Peer,
    decoder: Decoder,
    pub answers: BTreeMap<u32, ReceivedAnswer>,
    /// Its window for sending: on the connection, and on each stream.
    credit: i64,
    stream_credit: BTreeMap<u32, i64>,
    gives: bool,
    /// The error code of a GOAWAY.
    gone: Option<u32>,
    /// The newest stream in each GOAWAY, and its error code.
    pub departures: Vec<(u32, u32)>,
    /// The limit of concurrent streams.
    pub limit: Option<u32>,
    /// Whether it acknowledges PINGs.
    pub pongs: bool,
}

/// Encodes a literal without indexing and without Huffman coding.
pub fn literal(block: &mut Vec<u8>, name: &str, value: &str) {
    block.push(0);
    for text in [name, value] {
        assert!(text.len() < 127);
        block.push(text.len() as u8);
        block.extend_from_slice(text.as_bytes());
    }
}

/// Encodes the block of a request, with additional fields.
pub fn block(method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in [(":method", method), (":scheme", "http"), (":path", path), (":authority", "a")] {
        literal(&mut block, name, value);
    }
    for (name, value) in more {
        literal(&mut block, name, value);
    }
    block
}

impl Client {
    pub async fn connect() -> Client {
        Client::with_settings(&[]).await
    }

    pub async fn with_settings(settings: &[u8]) -> Client {
        let mut peer = Peer::connect(WEIR).await;
        peer.send(PREFACE).await;
        let (decoder, answers, stream_credit) = (Decoder::new(4096), BTreeMap::new(), BTreeMap::new());
        let mut client = Client {
            peer,
            decoder,
            answers,
            credit: 65_535,
            stream_credit,
            gives: true,
            gone: None,
            departures: Vec::new(),
            limit: None,
            pongs: true,
        };
        client.frame(Kind::Settings, 0, 0, settings).await;
        client
    }

    pub async fn frame(&mut self, kind: Kind, flags: u8, stream: u32, payload: &[u8]) {
        let mut out = Vec::new();
        push_frame(&mut out, kind, flags, stream, payload);
        self.peer.send(out).await;
    }

    pub async fn request(&mut self, stream: u32, ends: bool, block: &[u8]) {
        self.stream_credit.insert(stream, 65_535);
        let flags = flag::END_HEADERS | if ends { flag::END_STREAM } else { 0 };
        self.frame(Kind::Headers, flags, stream, block).await;
    }

    pub async fn get(&mut self, stream: u32, path: &str) {
        self.request(stream, true, &block("GET", path, &[])).await;
    }

    /// Receives one frame.
    pub async fn step(&mut self) {
        let header = FrameHeader::parse(&self.peer.receive(HEADER_LENGTH).await).unwrap();
        let payload = self.peer.receive(header.length).await;
        let number = payload.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        let stream = header.stream;
        match header.kind {
            Kind::Settings if !header.has(flag::ACK) => {
                for setting in payload.chunks_exact(6).filter(|setting| setting.starts_with(&[0, 3])) {
                    self.limit = Some(u32::from_be_bytes(*setting[2..].first_chunk().unwrap()));
                }
                self.frame(Kind::Settings, flag::ACK, 0, &[]).await;
            }
            Kind::Ping if !header.has(flag::ACK) && self.pongs => {
                self.frame(Kind::Ping, flag::ACK, 0, &payload).await;
            }
            Kind::WindowUpdate if stream == 0 => self.credit += i64::from(number),
            Kind::WindowUpdate => *self.stream_credit.entry(stream).or_default() += i64::from(number),
            Kind::GoAway => {
                let code = u32::from_be_bytes(*payload[4..].first_chunk().unwrap());
                self.gone = Some(code);
                self.departures.push((number, code));
            }
            Kind::RstStream => self.answers.entry(stream).or_default().reset = Some(number),
            Kind::Headers => {
                assert!(header.has(flag::END_HEADERS));
                let answered = self.answers.entry(stream).or_default();
                answered.head.clear();
                let head = &mut answered.head;
                let field = |name: &[u8], value: &[u8]| {
                    *head += &format!("{}: {}\n", String::from_utf8_lossy(name), String::from_utf8_lossy(value));
                };
                self.decoder.decode(&payload, 1000, field).unwrap();
                answered.ended = header.has(flag::END_STREAM);
            }
            Kind::Data => {
                let answered = self.answers.entry(stream).or_default();
                assert!(!answered.ended && answered.reset.is_none());
                answered.payload.extend_from_slice(&payload);
                answered.ended = header.has(flag::END_STREAM);
                if self.gives && header.length > 0 {
                    let length = (header.length as u32).to_be_bytes();
                    self.frame(Kind::WindowUpdate, 0, 0, &length).await;
                    self.frame(Kind::WindowUpdate, 0, stream, &length).await;
                }
            }
            _ => {}
        }
    }

    /// Sends payload as far as the windows allow, and the end.
    async fn upload(&mut self, stream: u32, payload: &[u8]) {
        let mut rest = payload;
        loop {
            let credit = self.credit.min(self.stream_credit[&stream]);
            let most = rest.len().min(usize::try_from(credit).unwrap_or(0)).min(10_000);
            if most == 0 && !rest.is_empty() {
                self.step().await;
                continue;
            }
            self.credit -= most as i64;
            *self.stream_credit.get_mut(&stream).unwrap() -= most as i64;
            let flags = if most == rest.len() { flag::END_STREAM } else { 0 };
            self.frame(Kind::Data, flags, stream, &rest[..most]).await;
            rest = &rest[most..];
            if rest.is_empty() {
                return;
            }
        }
    }

    /// Receives the answer of a stream, up to its end.
    pub async fn answer(&mut self, stream: u32) -> ReceivedAnswer {
        while self.answers.get(&stream).is_none_or(|answered| !answered.ended && answered.reset.is_none()) {
            self.step().await;
        }
        self.answers.remove(&stream).unwrap()
    }

    pub async fn expect(&mut self, stream: u32, status: u16, payload: &str) {
        let answered = self.answer(stream).await;
        assert!(answered.ended && answered.head.starts_with(&format!(":status: {status}\n")), "{}", answered.head);
        assert_eq!(String::from_utf8_lossy(&answered.payload), payload);
    }

    pub async fn expect_reset(&mut self, stream: u32, code: ErrorCode) {
        assert_eq!(self.answer(stream).await.reset, Some(code as u32), "stream {stream}");
    }

    /// Expects a GOAWAY with that code, and the end of the connection.
    pub async fn expect_gone(&mut self, code: ErrorCode) {
        while self.gone.is_none() {
            self.step().await;
        }
        assert_eq!(self.gone, Some(code as u32));
        let _ = self.peer.receive_rest().await;
    }
}

/// A request as received by servers.
fn at_server(method: &str, path: &str, more: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nhost: a\r\n{more}\r\n")
}

#[test]
fn streams_are_answered_in_whatever_order() {
    listen("server s1 10.0.1.1:80").shuffled().seeds(0..8).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::connect().await;
        client.get(1, "/1").await;
        let mut first = s1.accept().await;
        first.expect(at_server("GET", "/1", "")).await;
        client.request(3, true, &block("GET", "/2?x", &[("cookie", "a=1"), ("x-y", "z"), ("cookie", "b=2")])).await;
        let mut second = s1.accept().await;
        second.expect(at_server("GET", "/2?x", "x-y: z\r\ncookie: a=1; b=2\r\n")).await;
        second.send(answer("two")).await;
        client.expect(3, 200, "two").await;
        first.send("HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n").await;
        first.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: x-h\r\nx-h: 1\r\n\r\n3\r\none\r\n0\r\n\r\n").await;
        let answered = client.answer(1).await;
        assert_eq!((&answered.head[..], &answered.payload[..]), (":status: 200\n", &b"one"[..]));
        world
            .expect_log(&[
                r#"l l/s1 0/0/#/#/# 200 # - - ---- 1/1/#/#/0 0/0 "GET http://a/2?x HTTP/2.0""#,
                r#"l l/s1 0/0/#/#/# 200 # - - ---- 1/1/#/#/0 0/0 "GET http://a/1 HTTP/2.0""#,
            ])
            .await;
    });
}

/// Uploads and downloads of many sizes at once, to a server that echoes: payload is neither lost nor mixed between
/// streams, with any windows of the client.
#[test]
fn many_bodies_at_once_keep_apart() {
    for window in [1_u32, 700, 65_535, 200_000] {
        listen("http-request return status 200 content-type text/plain lf-string %[req.hdr(x-n)] if { path /n }\n server s1 10.0.1.1:80")
            .shuffled()
            .seeds(0..3)
            .run(move |world| async move {
                let mut s1 = Service::at(S1);
                let mut client = Client::with_settings(&Setting::InitialWindowSize.bytes(window)).await;
                let sizes = [0, 1, 700, 16_384, 40_000].map(|size| if window == 1 { size.min(60) } else { size });
                let mut servers = Vec::new();
                for (index, size) in sizes.iter().enumerate() {
                    let stream = 1 + 2 * index as u32;
                    let length = size.to_string();
                    client.request(stream, false, &block("POST", "/", &[("content-length", &length)])).await;
                    client.upload(stream, &vec![b'a' + index as u8; *size]).await;
                    let mut server = s1.accept().await;
                    server.expect(at_server("POST", "/", &format!("content-length: {size}\r\n"))).await;
                    server.expect(String::from_utf8(vec![b'a' + index as u8; *size]).unwrap()).await;
                    servers.push(server);
                }
                for (index, (server, size)) in servers.iter_mut().zip(sizes).enumerate() {
                    let body = vec![b'A' + index as u8; size];
                    server.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n")).await;
                    server.send(body).await;
                }
                for (index, size) in sizes.into_iter().enumerate().rev() {
                    let body = String::from_utf8(vec![b'A' + index as u8; size]).unwrap();
                    client.expect(1 + 2 * index as u32, 200, &body).await;
                }
                client.request(21, true, &block("GET", "/n", &[("x-n", "still here")])).await;
                client.expect(21, 200, "still here").await;
                world.forget_log();
            });
    }
}

#[test]
fn a_client_gets_no_more_than_it_has_given_credit_for() {
    listen("server s1 10.0.1.1:80").seeds(0..4).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::with_settings(&Setting::InitialWindowSize.bytes(100)).await;
        client.gives = false;
        client.get(1, "/").await;
        let mut server = s1.accept().await;
        server.expect(at_server("GET", "/", "")).await;
        server.send(answer(&"x".repeat(250))).await;
        while client.answers.get(&1).is_none_or(|answered| answered.payload.len() < 100) {
            client.step().await;
        }
        // Another stream has a window of its own, and the first one's sendable payload was sent before.
        client.get(3, "/").await;
        let mut second = s1.accept().await;
        second.expect(at_server("GET", "/", "")).await;
        second.send(answer("short")).await;
        client.expect(3, 200, "short").await;
        assert_eq!(client.answers[&1].payload.len(), 100);
        // A setting enlarges the window of streams that have begun.
        client.frame(Kind::Settings, 0, 0, &Setting::InitialWindowSize.bytes(150)).await;
        client.frame(Kind::WindowUpdate, 0, 1, &100_u32.to_be_bytes()).await;
        client.expect(1, 200, &"x".repeat(250)).await;
        world.forget_log();
    });
}

#[test]
fn what_breaks_a_request_resets_its_stream_alone() {
    listen("http-request return status 200 content-type text/plain string fine").seeds(0..4).shuffled().run(
        |world| async move {
            let mut client = Client::connect().await;
            let broken: &[(bool, Vec<u8>)] = &[
                (true, block("GET", "/", &[("connection", "close")])),
                (true, block("GET", "/", &[("transfer-encoding", "chunked")])),
                (true, block("GET", "/", &[("X-Upper", "1")])),
                (true, block("GET", "/", &[("x", "a\r\nb: c")])),
                (true, block("GET", "/ HTTP/1.1\r\nx: y", &[])),
                (true, block("GET", "/", &[("content-length", "5")])),
                (true, block("GET", "/", &[(":path", "/x")])),
                (true, block("GET", "/a b", &[])),
                (true, block("GET", "x", &[])),
            ];
            let mut stream = 1;
            for (ends, block) in broken {
                client.request(stream, *ends, block).await;
                client.expect_reset(stream, ErrorCode::ProtocolError).await;
                client.get(stream + 2, "/").await;
                client.expect(stream + 2, 200, "fine").await;
                stream += 4;
            }
            // A window increment of 0, and one that is too large.
            client.request(stream, false, &block("POST", "/", &[])).await;
            client.frame(Kind::WindowUpdate, 0, stream, &[0; 4]).await;
            world.forget_log();
        },
    );
}

#[test]
fn what_breaks_the_connection_ends_it() {
    let send = |kind, flags, stream, payload: &[u8]| {
        let mut out = Vec::new();
        push_frame(&mut out, kind, flags, stream, payload);
        out
    };
    let get = block("GET", "/slow", &[]);
    let rows: Vec<(ErrorCode, Vec<u8>)> = vec![
        (ErrorCode::ProtocolError, send(Kind::Data, 0, 0, b"x")),
        (ErrorCode::ProtocolError, send(Kind::Data, 0, 9, b"x")),
        (ErrorCode::ProtocolError, send(Kind::Headers, 4, 2, &get)),
        (ErrorCode::ProtocolError, send(Kind::Continuation, 4, 1, &get)),
        (ErrorCode::ProtocolError, [send(Kind::Headers, 0, 3, &get), send(Kind::Ping, 0, 0, &[0; 8])].concat()),
        (ErrorCode::ProtocolError, send(Kind::PushPromise, 4, 3, &get)),
        (ErrorCode::ProtocolError, send(Kind::WindowUpdate, 0, 0, &[0; 4])),
        (ErrorCode::FlowControlError, send(Kind::WindowUpdate, 0, 0, &[0x7f, 255, 255, 255])),
        (ErrorCode::FlowControlError, send(Kind::Settings, 0, 0, &Setting::InitialWindowSize.bytes(1 << 31))),
        (ErrorCode::ProtocolError, send(Kind::Settings, 0, 0, &Setting::MaxFrameSize.bytes(1))),
        (ErrorCode::FrameSizeError, send(Kind::Settings, 0, 0, &[0; 5])),
        (ErrorCode::FrameSizeError, send(Kind::Ping, 0, 0, &[0; 7])),
        (ErrorCode::FrameSizeError, send(Kind::Data, 0, 1, &[0; 16_385])),
        (ErrorCode::FrameSizeError, send(Kind::Priority, 0, 3, &[0; 6])),
        (
            ErrorCode::FrameSizeError,
            [send(Kind::Headers, 4, 3, &get), send(Kind::Data, 8, 3, &[]), send(Kind::Ping, 0, 0, &[0; 8])].concat(),
        ),
        (ErrorCode::CompressionError, send(Kind::Headers, 5, 3, &[0xff; 20])),
        (ErrorCode::EnhanceYourCalm, {
            let pieces = (0..40).map(|_| send(Kind::Continuation, 0, 3, b""));
            [vec![send(Kind::Headers, 1, 3, b"")], pieces.collect()].concat().concat()
        }),
    ];
    for (code, bytes) in rows {
        listen("server s1 10.0.1.1:80").shuffled().seeds(0..2).run(move |world| {
            let bytes = bytes.clone();
            async move {
                let mut s1 = Service::at(S1);
                let mut client = Client::connect().await;
                client.get(1, "/slow").await;
                let mut server = s1.accept().await;
                server.expect(at_server("GET", "/slow", "")).await;
                client.peer.send(bytes).await;
                client.expect_gone(code).await;
                // The stream being served ends with its connection.
                server.expect_end().await;
                world.forget_log();
            }
        });
    }
}

/// An answer during an upload is read by clients that continue to send, and the connection is kept.
#[test]
fn an_early_answer_leaves_the_connection_in_order() {
    listen("http-request deny if { path /deny }\n http-request return status 200").shuffled().seeds(0..8).run(
        |world| async move {
            let mut client = Client::connect().await;
            client.request(1, false, &block("POST", "/deny", &[("content-length", "300000")])).await;
            let answered = client.answer(1).await;
            assert!(answered.ended && answered.head.starts_with(":status: 403\n"), "{}", answered.head);
            client.get(3, "/").await;
            client.expect(3, 200, "").await;
            client.upload(1, &[b'x'; 300_000]).await;
            client.get(5, "/").await;
            client.expect(5, 200, "").await;
            // A wrong length ends only the stream.
            client.request(7, false, &block("POST", "/deny", &[("content-length", "3")])).await;
            client.upload(7, b"four").await;
            client.get(9, "/").await;
            client.expect(9, 200, "").await;
            world.forget_log();
        },
    );
}

#[test]
fn a_client_that_resets_a_stream_takes_its_request_back() {
    listen("server s1 10.0.1.1:80").shuffled().seeds(0..8).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::connect().await;
        client.request(1, false, &block("POST", "/", &[])).await;
        let mut server = s1.accept().await;
        server.expect(at_server("POST", "/", "transfer-encoding: chunked\r\n")).await;
        client.frame(Kind::RstStream, 0, 1, &ErrorCode::Cancel.bytes()).await;
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/#/-1/# 400 # - - CH-- 1/1/#/#/0 0/0 "POST http://a/ HTTP/2.0""#]).await;
        client.frame(Kind::Data, 0, 1, b"late").await;
        client.expect_gone(ErrorCode::StreamClosed).await;
    });
}

/// `reject` and `silent-drop` end the whole connection, with the requests of its other streams. `reject` sends a
/// GOAWAY.
#[test]
fn a_rejected_request_takes_its_connection_along() {
    for (rule, content) in [("http-request", ""), ("tcp-request content", " tcp-request inspect-delay 1s\n")] {
        for action in ["reject", "silent-drop"] {
            let lines = format!("{content} {rule} {action} if {{ path /no }}\n server s1 10.0.1.1:80");
            listen(&lines).shuffled().seeds(0..4).run(move |world| async move {
                let mut s1 = Service::at(S1);
                let mut client = Client::connect().await;
                client.get(1, "/").await;
                let mut server = s1.accept().await;
                server.expect(at_server("GET", "/", "")).await;
                client.get(3, "/no").await;
                if action == "reject" {
                    client.expect_gone(ErrorCode::NoError).await;
                } else {
                    let _ = client.peer.receive_rest().await;
                    assert_eq!(client.gone, None);
                }
                server.expect_end().await;
                world.forget_log();
            });
        }
    }
}

#[test]
fn more_streams_than_were_announced_are_refused() {
    listen("server s1 10.0.1.1:80").global("tune.h2.fe.max-concurrent-streams 2").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::connect().await;
        let mut servers = Vec::new();
        for stream in [1, 3] {
            client.get(stream, "/").await;
            let mut server = s1.accept().await;
            server.expect(at_server("GET", "/", "")).await;
            servers.push(server);
        }
        client.get(5, "/").await;
        client.expect_reset(5, ErrorCode::RefusedStream).await;
        servers[0].send(answer("1")).await;
        client.expect(1, 200, "1").await;
        client.get(7, "/").await;
        servers[0].expect(at_server("GET", "/", "")).await;
        servers[0].send(answer("7")).await;
        client.expect(7, 200, "7").await;
        world.forget_log();
    });
}

#[test]
fn a_connection_of_enough_streams_says_so() {
    listen("http-request return status 200").global("tune.h2.fe.max-total-streams 2").run(|world| async move {
        let mut client = Client::connect().await;
        client.get(1, "/").await;
        client.expect(1, 200, "").await;
        client.get(3, "/").await;
        client.expect(3, 200, "").await;
        client.expect_gone(ErrorCode::NoError).await;
        world.forget_log();
    });
}

#[test]
fn an_address_speaks_what_it_was_told_to() {
    let refuses = "option disable-h2-upgrade\n http-request return status 200";
    listen(refuses).run(|world| async move {
        let mut peer = Peer::connect(WEIR).await;
        peer.send(PREFACE).await;
        let answer = peer.receive_rest().await;
        assert!(answer.starts_with(b"HTTP/1.1 405 "), "{}", String::from_utf8_lossy(&answer));
        world.forget_log();
    });
}

/// A client with very large windows that reads nothing does not hold its connection longer than any other.
#[test]
fn a_client_that_reads_nothing_is_left_in_time() {
    let link = |_| Link { fragment: false, buffer: 10_000, ..Link::default() };
    listen("timeout client 3s\n server s1 10.0.1.1:80").links(link).seeds(0..2).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::with_settings(&Setting::InitialWindowSize.bytes(0x7fff_ffff)).await;
        client.frame(Kind::WindowUpdate, 0, 0, &0x7000_0000_u32.to_be_bytes()).await;
        client.get(1, "/").await;
        let mut server = s1.accept().await;
        server.expect(at_server("GET", "/", "")).await;
        server.try_send(answer(&"x".repeat(1_000_000))).await;
        world.expect_log(&[r#"l l/s1 0/0/#/#/# 200 # - - cD-- 1/1/#/#/0 0/0 "GET http://a/ HTTP/2.0""#]).await;
        sleep(20_000).await;
        assert_eq!(world.sessions(), 0);
        drop(client);
    });
}

/// A connection that should begin with the preface and does not is logged as refused, a silent one is not.
#[test]
fn what_does_not_begin_as_agreed_is_no_request() {
    const LINE: &str = r#"l l/<NOSRV> -1/-1/-1/-1/# 0 # - - PR-- 1/1/0/0/0 0/0 "<BADREQ>""#;
    let sections = format!("listen l\n bind {WEIR} proto h2\n timeout http-request 2s\n server s1 10.0.1.1:80");
    for (bytes, is_logged) in [(Some(GET), true), (Some("PRI * HT"), true), (Some(""), true), (None, false)] {
        config(&sections).run(move |world| async move {
            let mut client = Peer::connect(WEIR).await;
            if let Some(bytes) = bytes {
                client.send(bytes).await;
                client.half_close();
            }
            client.expect_end().await;
            if is_logged { world.expect_log(&[LINE]).await } else { world.expect_no_log() }
        });
    }
}

/// A stream whose client gives it no window ends in time, without affecting others.
#[test]
fn a_stream_without_a_window_is_left_in_time() {
    let sections = "timeout client 3s\n timeout http-keep-alive 60s\n http-request return status 204 if { path /n }
        server s1 10.0.1.1:80";
    listen(sections).seeds(0..2).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::with_settings(&Setting::InitialWindowSize.bytes(0)).await;
        client.get(1, "/").await;
        let mut server = s1.accept().await;
        server.expect(at_server("GET", "/", "")).await;
        server.try_send(answer("payload")).await;
        client.get(3, "/n").await;
        assert!(client.answer(3).await.ended);
        client.expect_reset(1, ErrorCode::Cancel).await;
        client.get(5, "/n").await;
        assert!(client.answer(5).await.ended);
        let lines = world.lines(3).await;
        assert!(lines.iter().any(|line| line.contains(" cL-- ")), "{lines:?}");
    });
}

/// A URI set by a rule is sent unchanged; the client's own target is sent as a path.
#[test]
fn a_uri_that_a_rule_sets_goes_on_as_it_is() {
    for (rule, target, host) in [
        ("set-uri http://b/y", "http://b/y", "b"),
        ("set-uri https://b/y", "https://b/y", "b"),
        ("set-uri /z", "/z", "a"),
        ("set-uri %[url]", "http://a/x?y", "a"),
        ("set-uri http://%[req.hdr(host)]%[path]", "http://a/x", "a"),
        ("replace-uri ^http://[^/]*(.*) http://c\\1", "http://c/x?y", "c"),
        ("replace-uri nothing http://c", "/x?y", "a"),
        ("set-path /p", "/p?y", "a"),
        ("set-query q", "/x?q", "a"),
    ] {
        listen(&format!("http-request {rule}\n server s1 10.0.1.1:80")).workers(&[1]).run(move |_| async move {
            let mut s1 = Service::at(S1);
            let mut client = Client::connect().await;
            client.get(1, "/x?y").await;
            let mut server = s1.accept().await;
            server.expect(format!("GET {target} HTTP/1.1\r\nhost: {host}\r\n\r\n")).await;
        });
    }
}
