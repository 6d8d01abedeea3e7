//! Tests of every end of a client's connection, crossed with the framing of the answer, the protocol, the transport,
//! the reader, and whether the client is still sending: it receives everything written before the end, or detects that
//! it did not.

use base::base64;
use sha1::{Digest, Sha1};
use testkit::{Peer, Service, decode_chunks, sleep};
use wire::h2::{FrameHeader, HEADER_LENGTH, Kind, PREFACE, Setting, flag, push_frame};

use crate::api::{SOCKET, ask};
use crate::endings::{Own, READERS, Reader, ReceivedEnd, both};
use crate::h2::block;
use crate::world::*;

/// Bytes of a body: more than a client accepts before it pauses.
const LENGTH: usize = 150_000;

/// The event that ends an answer, or the connection after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The client has requested the close, or sends no more requests.
    Done,
    /// The process stops while the answer is being sent.
    Stopped,
    /// The server closes in order.
    Closed,
    /// The server closes, even with unread input.
    Gone,
    /// The server resets its connection.
    Reset,
    /// The server sends nothing more.
    Silent,
    /// An operator ends the session.
    Killed,
}

const ENDS: [End; 7] = [End::Done, End::Stopped, End::Closed, End::Gone, End::Reset, End::Silent, End::Killed];

/// The framing of the answer for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length,
    Chunks,
    Close,
}

/// The protocol to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Http1,
    Http2,
    /// A WebSocket upgrade.
    Tunnel,
    /// WebSocket in a stream of HTTP/2.
    StreamTunnel,
}

impl Protocol {
    fn is_tunnel(self) -> bool {
        matches!(self, Self::Tunnel | Self::StreamTunnel)
    }

    /// Whether the client has a connection with streams.
    fn has_streams(self) -> bool {
        matches!(self, Self::Http2 | Self::StreamTunnel)
    }
}

/// One combination.
#[derive(Clone, Copy, Debug)]
struct Case {
    protocol: Protocol,
    framing: Framing,
    end: End,
    secure: bool,
    reader: Reader,
    /// Whether the client has announced more than it sends before the end.
    uploads: bool,
}

impl Case {
    /// Whether the combination is possible.
    fn exists(self) -> bool {
        let is_tunnel = self.protocol.is_tunnel();
        match self.end {
            // A tunnel is ended only by one of its two sides.
            End::Done | End::Stopped => !is_tunnel && self.framing != Framing::Close,
            _ => !is_tunnel || (self.framing == Framing::Close && !self.uploads),
        }
    }

    /// Whether the client is to receive the whole answer.
    fn is_whole(self) -> bool {
        match self.end {
            End::Done | End::Stopped => true,
            End::Closed => self.framing == Framing::Close,
            End::Gone | End::Reset | End::Silent | End::Killed => false,
        }
    }

    /// The head of the answer to the request, and the part of its body before the end, which is all of it if it is not truncated.
    fn answer(self, request: &str) -> (Vec<u8>, Vec<u8>) {
        let announced = if self.is_whole() { LENGTH } else { 2 * LENGTH };
        let body = vec![b'x'; LENGTH];
        if self.protocol.is_tunnel() {
            let mut fields = request.lines().filter_map(|line| line.split_once(": "));
            let key = fields.find(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key")).expect("a key").1;
            let accept = websocket_accept(key);
            let head = format!(
                "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
            );
            return (head.into_bytes(), body);
        }
        let (field, body) = match self.framing {
            Framing::Length => (format!("Content-Length: {announced}\r\n"), body),
            Framing::Chunks => {
                let last: &[u8] = if self.is_whole() { b"\r\n0\r\n\r\n" } else { b"\r\n" };
                let chunk = [format!("{LENGTH:x}\r\n").as_bytes(), &body, last].concat();
                ("Transfer-Encoding: chunked\r\n".to_owned(), chunk)
            }
            Framing::Close => (String::new(), body),
        };
        (format!("HTTP/1.1 200 OK\r\n{field}\r\n").into_bytes(), body)
    }

    /// The client's request, and the bytes that it sends later.
    fn asked(self) -> (Vec<u8>, Vec<u8>) {
        let begun = vec![b'u'; 5_000];
        match self.protocol {
            Protocol::Tunnel => (
                b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                  Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
                    .to_vec(),
                begun,
            ),
            Protocol::Http1 => {
                let close = if self.end == End::Done { "Connection: close\r\n" } else { "" };
                let head = match self.uploads {
                    true => format!("POST / HTTP/1.1\r\nHost: a\r\n{close}Content-Length: 900000\r\n\r\n"),
                    false => format!("GET / HTTP/1.1\r\nHost: a\r\n{close}\r\n"),
                };
                let sent = if self.uploads { begun.clone() } else { Vec::new() };
                let later = if self.uploads { begun } else { b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec() };
                ([head.into_bytes(), sent].concat(), later)
            }
            Protocol::Http2 | Protocol::StreamTunnel => {
                let mut out = PREFACE.to_vec();
                push_frame(&mut out, Kind::Settings, 0, 0, &Setting::InitialWindowSize.bytes(1 << 20));
                push_frame(&mut out, Kind::WindowUpdate, 0, 0, &(1_u32 << 20).to_be_bytes());
                let is_tunnel = self.protocol == Protocol::StreamTunnel;
                let (method, flags, more): (_, _, &[_]) = match (is_tunnel, self.uploads) {
                    (true, _) => ("CONNECT", 0, &[(":protocol", "websocket"), ("sec-websocket-version", "13")]),
                    (false, true) => ("POST", 0, &[]),
                    (false, false) => ("GET", flag::END_STREAM, &[]),
                };
                push_frame(&mut out, Kind::Headers, flag::END_HEADERS | flags, 1, &block(method, "/", more));
                let mut later = Vec::new();
                if is_tunnel {
                    push_frame(&mut later, Kind::Data, 0, 1, &begun);
                } else if self.uploads {
                    push_frame(&mut out, Kind::Data, 0, 1, &begun);
                    push_frame(&mut later, Kind::Data, 0, 1, &begun);
                }
                push_frame(&mut later, Kind::Ping, 0, 0, b"pingping");
                (out, later)
            }
        }
    }

    /// The length of the payload that the client has received, and whether it has seen its end.
    fn received(self, seen: &ReceivedEnd) -> (usize, bool) {
        if self.protocol.has_streams() {
            return payload(&seen.bytes);
        }
        let Some(end) = seen.bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return (0, false) };
        let body = &seen.bytes[end + 4..];
        match self.framing {
            _ if self.protocol.is_tunnel() => (body.len(), seen.in_order),
            Framing::Length => (body.len(), body.len() == self.announced()),
            Framing::Close => (body.len(), seen.in_order),
            Framing::Chunks => {
                let mut decoded = testkit::Chunked::default();
                let whole = decode_chunks(&mut body.to_vec(), &mut decoded);
                (decoded.body.len(), whole)
            }
        }
    }

    fn announced(self) -> usize {
        if self.is_whole() { LENGTH } else { 2 * LENGTH }
    }

    async fn play(self, world: World) {
        let mut s1 = Service::at(S1);
        let mut own = Own::connect(self.secure).await;
        let (asked, later) = self.asked();
        own.try_send(&asked).await;
        let mut server = s1.accept().await;
        let request = server.receive_head().await.unwrap();
        let (head, body) = self.answer(&request);
        let half = body.len() / 2;
        server.send(head).await;
        server.try_send(&body[..half]).await;
        sleep(5).await;
        if self.end == End::Stopped {
            world.stop();
        }
        server.try_send(&body[half..]).await;
        sleep(5).await;
        self.end_it(&world, server).await;
        let seen = own.rest(self.reader, &later).await;
        let (length, whole) = self.received(&seen);
        assert!(length <= LENGTH, "{self:?}: {length}");
        match self.is_whole() {
            true => assert_eq!(
                (length, whole, seen.in_order),
                (LENGTH, true, true),
                "{self:?} {:?}",
                world.take_log().await
            ),
            // If a fault causes an orderly close, a close-delimited answer counts as complete.
            false if self.protocol.is_tunnel() || (self.end, self.framing) == (End::Gone, Framing::Close) => {
                assert!(!whole || length == LENGTH, "{self:?}: {length}")
            }
            false => assert!(!whole, "{self:?}: {length}"),
        }
        world.forget_log();
    }

    async fn end_it(self, world: &World, mut server: Peer) {
        match self.end {
            End::Gone => return server.close(),
            End::Reset => return server.reset(),
            End::Closed => server.half_close(),
            End::Killed => drop(ask("shutdown sessions server l/s1").await),
            End::Done | End::Stopped | End::Silent => {}
        }
        // It reads its input.
        world.scope.spawn(async move { while !server.receive_some().await.is_empty() {} });
    }
}

/// Returns what proves that a server has understood a key (RFC 6455, section 4.2.2).
pub fn websocket_accept(key: &str) -> String {
    base64::encoded(&Sha1::digest(format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11")))
}

fn payload(mut bytes: &[u8]) -> (usize, bool) {
    let (mut length, mut ended) = (0, false);
    while let Some(header) = FrameHeader::parse(bytes) {
        if header.kind == Kind::Data {
            length += header.length;
            ended |= header.has(flag::END_STREAM);
        }
        bytes = bytes.get(HEADER_LENGTH + header.length..).unwrap_or_default();
    }
    (length, ended)
}

/// Runs every case of a protocol.
fn all(protocol: Protocol) {
    let mut count = 0;
    for end in ENDS {
        for framing in [Framing::Length, Framing::Chunks, Framing::Close] {
            for (secure, uploads) in [(false, false), (false, true), (true, false), (true, true)] {
                for reader in READERS {
                    let case = Case { protocol, framing, end, secure, reader, uploads };
                    if !case.exists() {
                        continue;
                    }
                    count += 1;
                    let lines = "timeout server 300ms\n timeout tunnel 300ms\n server s1 10.0.1.1:80";
                    both(lines).global(SOCKET).run(move |world| case.play(world));
                }
            }
        }
    }
    assert!(count > 20, "{count}");
}

#[test]
fn of_http_1() {
    all(Protocol::Http1);
}

#[test]
fn of_http_2() {
    all(Protocol::Http2);
}

#[test]
fn of_a_tunnel() {
    all(Protocol::Tunnel);
}

#[test]
fn of_a_tunnel_in_a_stream() {
    all(Protocol::StreamTunnel);
}

/// The number of a worker's connections that wait for their clients is limited; others are closed at once, and their
/// clients receive the answer as well.
#[test]
fn no_more_than_a_worker_may_have_wait_for_their_clients() {
    const MOST: usize = 4096;
    let lines = format!("listen l\n bind {WEIR}\n timeout client 20s\n http-request deny deny_status 413\n");
    config(&lines).workers(&[1]).seeds(0..1).run(|world| async move {
        let mut clients = Vec::new();
        for _ in 0..MOST + 4 {
            let mut client = Peer::connect(WEIR).await;
            client.send("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 999\r\n\r\n").await;
            clients.push(client);
        }
        sleep(100).await;
        assert_eq!(world.sessions(), MOST);
        for client in &mut clients {
            let head = client.receive_head().await.expect("an answer");
            assert!(head.starts_with("HTTP/1.1 413 "), "{head}");
            client.receive_rest().await;
        }
        // These clients send nothing: they are no longer waited for.
        sleep(4_000).await;
        assert_eq!(world.sessions(), 0);
        world.forget_log();
    });
}
