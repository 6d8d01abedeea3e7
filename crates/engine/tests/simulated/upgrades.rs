//! Tests of tunnels through HTTP/2 streams: CONNECT, and extended CONNECT for the upgrades of HTTP/1 (RFC 8441), from
//! and to either version.

use base::base64;
use sha1::{Digest, Sha1};
use testkit::{Peer, Service, both};
use wire::h2::{Kind, Setting};

use crate::parts::{End, Part};
use crate::world::*;

/// A client's request for a tunnel; the server's request; its answer; the client's answer.
struct Row {
    asked: &'static str,
    at_server: &'static str,
    answer: &'static str,
    at_client: &'static str,
}

const UPGRADE: &str = "GET /x HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: custom\r\n\r\n";
const UPGRADE_AT_SERVER: &str = "GET /x HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: custom\r\n\r\n";
const SWITCHED: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: custom\r\n\r\n";
const SWITCHED_AT_CLIENT: &str = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: custom\r\n\r\n";
/// HTTP/2 requests, in the text form of the tests' ends.
const EXTENDED: &str = "CONNECT /x HTTP/1.1\r\nHost: a\r\n:protocol: custom\r\n\r\n";
const EXTENDED_AT_SERVER: &str = "CONNECT /x HTTP/1.1\r\nhost: a\r\n:protocol: custom\r\n\r\n";
const CONNECT: &str = "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n";

/// Either end of a tunnel.
enum Side {
    Plain(Peer),
    Stream(End, u32),
}

impl Side {
    async fn expect(&mut self, bytes: &[u8]) {
        match self {
            Side::Plain(peer) => peer.expect(bytes).await,
            Side::Stream(end, stream) => {
                while end.messages.get(stream).is_none_or(|message| message.payload.len() < bytes.len()) {
                    assert!(end.step().await, "the end of the connection");
                }
                assert!(end.messages[stream].payload == bytes);
                end.messages.get_mut(stream).unwrap().payload.clear();
            }
        }
    }

    async fn send(&mut self, bytes: &[u8]) {
        match self {
            Side::Plain(peer) => peer.send(bytes).await,
            Side::Stream(end, stream) => end.stream(*stream, bytes).await,
        }
    }
}

async fn head(end: &mut End, stream: u32) -> String {
    while end.messages.get(&stream).is_none_or(|message| message.head.is_empty()) {
        assert!(end.step().await, "the end of the connection");
    }
    end.messages[&stream].head.clone()
}

/// Sends bytes in both directions; the server ends the tunnel.
fn check(row: &'static Row, (client_streams, server_streams): (bool, bool)) {
    let server = if server_streams { "server s1 10.0.1.1:80 proto h2" } else { "server s1 10.0.1.1:80" };
    listen(server).workers(&[1]).shuffled().seeds(0..6).run(move |world| async move {
        let mut s1 = Service::at(S1);
        let mut client = if client_streams {
            let mut end = End::connect().await;
            end.send(Part::Head, 1, row.asked).await;
            Side::Stream(end, 1)
        } else {
            let mut peer = Peer::connect(WEIR).await;
            peer.send(row.asked).await;
            Side::Plain(peer)
        };
        let mut server = if server_streams {
            let mut end = End::serve_with(s1.accept().await, &Setting::EnableConnectProtocol.bytes(1)).await;
            let stream = end.expect_head(row.at_server).await;
            end.send(Part::Head, stream, row.answer).await;
            Side::Stream(end, stream)
        } else {
            let mut peer = s1.accept().await;
            peer.expect(row.at_server).await;
            peer.send(row.answer).await;
            Side::Plain(peer)
        };
        match &mut client {
            Side::Plain(peer) => peer.expect(row.at_client).await,
            Side::Stream(end, stream) => assert_eq!(head(end, *stream).await, row.at_client),
        }
        let (up, down) = (vec![b'u'; 100_000], vec![b'd'; 70_000]);
        both(client.send(&up), server.expect(&up)).await;
        both(server.send(&down), client.expect(&down)).await;
        match server {
            Side::Plain(peer) => drop(peer),
            Side::Stream(mut end, stream) => {
                end.send(Part::End, stream, "").await;
                end.expect_end().await;
            }
        }
        match &mut client {
            Side::Plain(peer) => peer.expect_end().await,
            Side::Stream(end, stream) => assert_eq!(end.message(*stream).await.end, Some(Part::End)),
        }
        let lines = world.lines(1).await;
        assert!(lines[0].contains(" ---- "), "{lines:?}");
    });
}

#[test]
fn streams_of_clients_become_upgrades() {
    static ROWS: [Row; 2] = [
        Row { asked: EXTENDED, at_server: UPGRADE_AT_SERVER, answer: SWITCHED, at_client: "HTTP/1.1 200 OK\r\n\r\n" },
        Row {
            asked: CONNECT,
            at_server: "CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\n\r\n",
            answer: "HTTP/1.1 200 OK\r\n\r\n",
            at_client: "HTTP/1.1 200 OK\r\n\r\n",
        },
    ];
    ROWS.iter().for_each(|row| check(row, (true, false)));
}

#[test]
fn upgrades_become_streams_of_servers() {
    static ROWS: [Row; 2] = [
        Row {
            asked: UPGRADE,
            at_server: EXTENDED_AT_SERVER,
            answer: "HTTP/1.1 200 OK\r\nx-y: z\r\n\r\n",
            at_client: "HTTP/1.1 101 Switching Protocols\r\nx-y: z\r\nconnection: upgrade\r\nupgrade: custom\r\n\r\n",
        },
        Row {
            asked: CONNECT,
            at_server: "CONNECT  HTTP/1.1\r\nhost: a:80\r\n\r\n",
            answer: "HTTP/1.1 200 OK\r\n\r\n",
            at_client: "HTTP/1.1 200 OK\r\n\r\n",
        },
    ];
    ROWS.iter().for_each(|row| check(row, (false, true)));
}

#[test]
fn tunnels_go_from_stream_to_stream_and_from_connection_to_connection() {
    static STREAMS: Row = Row {
        asked: EXTENDED,
        at_server: EXTENDED_AT_SERVER,
        answer: "HTTP/1.1 200 OK\r\n\r\n",
        at_client: "HTTP/1.1 200 OK\r\n\r\n",
    };
    static CONNECTIONS: Row =
        Row { asked: UPGRADE, at_server: UPGRADE_AT_SERVER, answer: SWITCHED, at_client: SWITCHED_AT_CLIENT };
    check(&STREAMS, (true, true));
    check(&CONNECTIONS, (false, false));
}

/// For clients without a WebSocket key, one is generated for a server of HTTP/1, and its answer is verified.
#[test]
fn websockets_of_streams_are_proved_to_servers() {
    for is_right in [true, false] {
        listen("server s1 10.0.1.1:80").run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = End::connect().await;
            client.send(Part::Head, 1, "CONNECT /x HTTP/1.1\r\nHost: a\r\n:protocol: websocket\r\n\r\n").await;
            let mut server = s1.accept().await;
            let asked = server.receive_head().await.unwrap();
            let key = asked.lines().find_map(|line| line.strip_prefix("sec-websocket-key: ")).unwrap();
            assert_eq!(key.len(), 24, "{asked}");
            let suffix = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
            let hash = Sha1::digest(format!("{}{suffix}", if is_right { key } else { "another" }));
            let accept = base64::encoded(&hash);
            server
                .send(format!(
                    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
                     Sec-WebSocket-Accept: {accept}\r\n\r\n"
                ))
                .await;
            let answered = head(&mut client, 1).await;
            if is_right {
                assert_eq!(answered, "HTTP/1.1 200 OK\r\n\r\n", "for the key {key}");
            } else {
                assert!(answered.starts_with("HTTP/1.1 502 "), "{answered}");
            }
            world.forget_log();
        });
    }
}

#[test]
fn a_server_that_takes_no_other_protocol_gets_no_such_request() {
    for body in ["", "Content-Length: 5\r\n"] {
        let sections = "retries 0\n server s1 10.0.1.1:80 proto h2";
        listen(sections).workers(&[1]).shuffled().seeds(0..4).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client
                .send(format!("GET /x HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: custom\r\n{body}\r\n"))
                .await;
            let mut origin = End::accept(&mut s1).await;
            if !body.is_empty() {
                origin.frame(Kind::Settings, 0, 0, &Setting::EnableConnectProtocol.bytes(1)).await;
            }
            origin.expect_end().await;
            assert!(origin.messages.values().all(|message| message.head.is_empty()));
            let answered = client.receive_head().await.unwrap();
            assert!(answered.starts_with("HTTP/1.1 502 "), "{answered}");
            world.forget_log();
        });
    }
}
