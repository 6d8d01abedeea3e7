//! Tests of HTTP/3 clients crossed with other parts: every end of an answer with each framing, WebSocket, rules that answer,
//! the cache, compression, counters, queues and timeouts.

use testkit::{Peer, Service, sleep};
use wire::h3::ErrorCode;

use crate::api::{SOCKET, ask};
use crate::endings_crossed::websocket_accept;
use crate::http3_client::{Answer, Client, push_data, request};
use crate::messages::*;
use crate::world::*;

const CLIENT: &str = "10.0.9.1:5000";
const QUIC: &str = "10.0.0.1:443";
const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Bytes of a body: more than a client's first window of congestion control.
const LENGTH: usize = 90_000;

/// A `listen` section at a QUIC address.
fn serving(body: &str) -> Worlds {
    config(&format!("listen l\n    bind quic4@{QUIC} ssl crt a.pem\n{body}\n")).seeds(0..2).workers(&[1])
}

/// The event that ends an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Done,
    Stopped,
    Closed,
    Reset,
    Silent,
    Killed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length,
    Chunks,
    Close,
}

/// One combination. `uploads`: the client has announced more than it sends before the end.
#[derive(Clone, Copy, Debug)]
struct Case {
    end: End,
    framing: Framing,
    uploads: bool,
}

impl Case {
    fn is_whole(self) -> bool {
        match self.end {
            End::Done | End::Stopped => true,
            End::Closed => self.framing == Framing::Close,
            End::Reset | End::Silent | End::Killed => false,
        }
    }

    /// The head, and the part of the body before the end.
    fn answer(self) -> (String, Vec<u8>) {
        let announced = if self.is_whole() { LENGTH } else { 2 * LENGTH };
        let body = vec![b'x'; LENGTH];
        let (field, body) = match self.framing {
            Framing::Length => (format!("Content-Length: {announced}\r\n"), body),
            Framing::Close => (String::new(), body),
            Framing::Chunks => {
                let last: &[u8] = if self.is_whole() { b"\r\n0\r\n\r\n" } else { b"\r\n" };
                let chunk = [format!("{LENGTH:x}\r\n").as_bytes(), &body, last].concat();
                ("Transfer-Encoding: chunked\r\n".to_owned(), chunk)
            }
        };
        (format!("HTTP/1.1 200 OK\r\n{field}\r\n"), body)
    }

    async fn end_it(self, world: &World, mut server: Peer) {
        match self.end {
            End::Reset => return server.reset(),
            End::Closed => server.half_close(),
            End::Killed => drop(ask("shutdown sessions server l/s1").await),
            End::Done | End::Stopped | End::Silent => {}
        }
        world.scope.spawn(async move { while !server.receive_some().await.is_empty() {} });
    }

    async fn play(self, world: World) {
        let mut s1 = Service::at(S1);
        let mut client = Client::connect(CLIENT, QUIC).await;
        let id = client.open();
        let mut asked = match self.uploads {
            true => request("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n\r\n"),
            false => request(GET),
        };
        if self.uploads {
            push_data(&mut asked, b"begun");
        }
        client.write(id, &asked).await;
        if !self.uploads {
            client.finish(id);
        }
        let mut server = client.beside(s1.accept()).await;
        client.beside(server.receive_head()).await.unwrap();
        let (head, body) = self.answer();
        let half = body.len() / 2;
        server.send(head).await;
        client.beside(server.try_send(&body[..half])).await;
        client.beside(sleep(5)).await;
        if self.end == End::Stopped {
            world.stop();
        }
        client.beside(server.try_send(&body[half..])).await;
        client.beside(sleep(5)).await;
        client.beside(self.end_it(&world, server)).await;
        let seen = client.answer(id).await;
        if self.is_whole() {
            assert_eq!((seen.payload.len(), seen.ended), (LENGTH, true), "{self:?}: {:?}", client.closed);
        } else {
            let failed = seen.reset.is_some() || client.closed.is_some();
            assert!(!seen.ended && failed, "{self:?}: {} {:?}", seen.payload.len(), client.closed);
            assert!(seen.payload.len() <= LENGTH, "{self:?}");
        }
        client.close().await;
        world.forget_log();
    }
}

#[test]
fn answers_end_with_their_stream() {
    for end in [End::Done, End::Stopped, End::Closed, End::Reset, End::Silent, End::Killed] {
        for framing in [Framing::Length, Framing::Chunks, Framing::Close] {
            for uploads in [false, true] {
                let case = Case { end, framing, uploads };
                if matches!(end, End::Done | End::Stopped) && framing == Framing::Close {
                    continue;
                }
                let lines = " timeout server 300ms\n server s1 10.0.1.1:80";
                serving(lines).global(SOCKET).run(move |world| case.play(world));
            }
        }
    }
}

/// An extended CONNECT (RFC 9220) is an upgrade of the server's connection, and its payload passes in both directions. A server
/// that does not prove that it has understood the key is refused.
#[test]
fn websockets_are_tunnels() {
    for proves in [true, false] {
        serving(" server s1 10.0.1.1:80").run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Client::connect(CLIENT, QUIC).await;
            let id = client.open();
            // It is encoded as an extended CONNECT, which has no key.
            let upgrade = "Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                           Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
            client.write(id, &request(&format!("GET /chat HTTP/1.1\r\nHost: a\r\n{upgrade}\r\n"))).await;
            let mut server = client.beside(s1.accept()).await;
            let head = client.beside(server.receive_head()).await.unwrap();
            assert!(head.starts_with("GET /chat HTTP/1.1\r\n") && head.contains("upgrade: websocket\r\n"), "{head}");
            let mut fields = head.lines().filter_map(|line| line.split_once(": "));
            let (_, key) = fields.find(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key")).expect("a key");
            let accept = if proves { websocket_accept(key) } else { "x".to_owned() };
            let switched = "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n";
            server.send(format!("{switched}Sec-WebSocket-Accept: {accept}\r\n\r\n")).await;
            if !proves {
                assert_eq!(status(&client.answer(id).await), "502");
                client.close().await;
                return world.forget_log();
            }
            client.until(|client| !client.received(id).heads.is_empty()).await;
            assert_eq!(status(client.received(id)), "200");
            let mut frames = Vec::new();
            push_data(&mut frames, b"ping");
            client.write(id, &frames).await;
            client.beside(server.expect("ping")).await;
            server.send("pong").await;
            client.until(|client| client.received(id).payload == b"pong").await;
            client.finish(id);
            client.beside(server.expect_end()).await;
            server.close();
            assert!(client.answer(id).await.ended);
            client.close().await;
            world.forget_log();
        });
    }
}

async fn get(client: &mut Client, path: &str, fields: &str) -> Answer {
    let id = client.request(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).await;
    client.answer(id).await
}

fn status(answer: &Answer) -> &str {
    answer.heads.last().map_or("", |head| &head[9..12])
}

/// Rules answer, delay and count requests of streams.
#[test]
fn rules_answer_streams() {
    let rules = " stick-table type ip size 10 store http_req_cnt\n http-request track-sc0 src\n \
                 http-request return status 200 content-type text/plain lf-string \"%HV %[sc0_http_req_cnt] %[ssl_fc] %[fs.id]\" if { path /r }\n \
                 http-request deny deny_status 403 if { path /d }\n timeout tarpit 2s\n http-request tarpit if { path /t }\n \
                 http-request redirect location /x if { path /l }\n server s1 10.0.1.1:80";
    serving(rules).run(|world| async move {
        let mut client = Client::connect(CLIENT, QUIC).await;
        let seen = get(&mut client, "/r", "").await;
        assert_eq!((status(&seen), &seen.payload[..]), ("200", &b"HTTP/3.0 1 1 0"[..]));
        assert_eq!(status(&get(&mut client, "/d", "").await), "403");
        let begun = rt::now();
        assert_eq!(status(&get(&mut client, "/t", "").await), "500");
        assert!(rt::now() >= begun + std::time::Duration::from_secs(2));
        let seen = get(&mut client, "/l", "").await;
        assert!(seen.heads[0].contains("location: /x"), "{seen:?}");
        let seen = get(&mut client, "/r", "").await;
        assert_eq!(&seen.payload[..], b"HTTP/3.0 5 1 16");
        client.close().await;
        world.forget_log();
    });
}

/// The cache answers streams, and answers are compressed.
#[test]
fn streams_are_answered_from_the_cache_and_compressed() {
    let sections = " http-request cache-use c\n http-response cache-store c\n filter cache c\n filter compression\n \
                    compression algo gzip\n compression type text/plain\n server s1 10.0.1.1:80\n\
                    cache c\n total-max-size 1\n max-age 60";
    serving(sections).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::connect(CLIENT, QUIC).await;
        let body = "text ".repeat(600);
        let id = client.request("GET /c HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut server = client.beside(s1.accept()).await;
        client.beside(server.receive_head()).await.unwrap();
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Type: text/plain\r\n";
        server.send(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())).await;
        assert_eq!(client.answer(id).await.payload, body.as_bytes());
        let hit = get(&mut client, "/c", "").await;
        assert!(hit.payload == body.as_bytes() && hit.heads[0].contains("age: "), "{:?}", hit.heads);
        let id = client.request("GET /p HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n").await;
        client.beside(server.receive_head()).await.unwrap();
        server.send(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())).await;
        let packed = client.answer(id).await;
        assert!(packed.heads[0].contains("content-encoding: gzip"), "{:?}", packed.heads);
        assert!(packed.ended && packed.payload.len() < body.len() / 4, "{}", packed.payload.len());
        client.close().await;
        world.forget_log();
    });
}

/// Streams wait for a place at the server, in order, and are answered when the wait is too long.
#[test]
fn streams_wait_in_queues() {
    serving(" timeout queue 1s\n server s1 10.0.1.1:80 maxconn 1").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::connect(CLIENT, QUIC).await;
        let mut ids = Vec::new();
        for path in ["/1", "/2", "/3"] {
            ids.push(client.request(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await);
        }
        let mut server = client.beside(s1.accept()).await;
        client.beside(server.expect(get_at_server("/1"))).await;
        server.send(answer("one")).await;
        assert_eq!(client.answer(ids[0]).await.payload, b"one");
        client.beside(server.expect(get_at_server("/2"))).await;
        let late = client.answer(ids[2]).await;
        assert_eq!(status(&late), "503");
        server.send(answer("two")).await;
        assert_eq!(client.answer(ids[1]).await.payload, b"two");
        client.close().await;
        world.forget_log();
    });
}

/// A head that does not come, a body that does not come, and a server that does not answer end with the status of their timeout.
#[test]
fn timeouts_are_answered_on_their_stream() {
    let lines = " timeout http-request 1s\n timeout client 2s\n timeout server 3s\n option http-buffer-request\n server s1 10.0.1.1:80";
    serving(lines).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::connect(CLIENT, QUIC).await;
        let slow = client.open();
        client.write(slow, &request("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345")).await;
        assert_eq!(status(&client.answer(slow).await), "408");
        let unanswered = client.request(GET).await;
        let mut server = client.beside(s1.accept()).await;
        client.beside(server.receive_head()).await.unwrap();
        assert_eq!(status(&client.answer(unanswered).await), "504");
        client.close().await;
        world.forget_log();
    });
}

/// `silent-drop` sends nothing more; a client that is rejected is informed.
#[test]
fn connections_are_dropped_and_rejected() {
    for (rule, is_informed) in [("silent-drop", false), ("reject", true)] {
        serving(&format!(" http-request {rule} if {{ path /x }}\n server s1 10.0.1.1:80")).run(
            move |world| async move {
                let mut client = Client::connect(CLIENT, QUIC).await;
                let id = client.request("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
                client.beside(sleep(500)).await;
                let seen = client.received(id);
                assert!(seen.heads.is_empty() && !seen.ended, "{seen:?}");
                assert_eq!(client.closed.is_some(), is_informed, "{:?}", client.closed);
                world.forget_log();
            },
        );
    }
}

/// A head above the buffer's size is answered with 431, as fields of a stream.
#[test]
fn large_heads_are_refused() {
    serving(" server s1 10.0.1.1:80").run(|world| async move {
        let mut client = Client::connect(CLIENT, QUIC).await;
        let seen = get(&mut client, "/", &format!("X-Large: {}\r\n", "x".repeat(17_000))).await;
        let refused = status(&seen) == "431" || seen.reset == Some(ErrorCode::ExcessiveLoad.number());
        assert!(refused, "{seen:?}");
        let id = client.request("GET /d HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut s1 = Service::at(S1);
        let mut server = client.beside(s1.accept()).await;
        client.beside(server.expect(get_at_server("/d"))).await;
        server.send(answer("d")).await;
        assert_eq!(client.answer(id).await.payload, b"d");
        client.close().await;
        world.forget_log();
    });
}
