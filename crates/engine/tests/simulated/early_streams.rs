//! Tests of early data to HTTP/2 servers: requests sent early, refusals, requests that share a connection whose
//! handshake is not complete, and a server that changes its protocol.

use std::sync::Arc;

use testkit::{Peer, Service, both, sleep};
use tls::Server;
use wire::h2::{FrameHeader, HEADER_LENGTH, Kind, PREFACE, flag, push_frame};

use crate::secure::{Secure, early_client, early_server};
use crate::world::*;

const SECURE: &str = "10.0.0.1:443";
const GET: &str = "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";
const EMPTY: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// A proxy in front of a TLS server, with early data.
fn outer(options: &str, rules: &str) -> Worlds {
    config(&format!(
        "listen l\n bind {WEIR}\n retry-on conn-failure 0rtt-rejected\n {rules}\n \
         server inner {SECURE} ssl verify none sni str(a.example) allow-0rtt {options}\n"
    ))
    .workers(&[1])
}

/// An HTTP/2 server with TLS.
struct Origin {
    secure: Secure,
    was_early: bool,
}

impl Origin {
    async fn accept(peer: Peer, server: &Arc<Server>) -> Self {
        let mut secure = Secure::accept_with(peer, server).await.unwrap();
        let was_early = secure.was_early();
        assert_eq!(secure.receive(PREFACE.len()).await, PREFACE);
        let mut origin = Self { secure, was_early };
        origin.frame(Kind::Settings, 0, 0, &[]).await;
        origin
    }

    async fn frame(&mut self, kind: Kind, flags: u8, stream: u32, payload: &[u8]) {
        let mut out = Vec::new();
        push_frame(&mut out, kind, flags, stream, payload);
        self.secure.send(out).await;
    }

    /// Returns the next request, with the length of its body.
    async fn request(&mut self) -> (u32, usize) {
        let mut body = 0;
        loop {
            let header = FrameHeader::parse(&self.secure.receive(HEADER_LENGTH).await).unwrap();
            let payload = self.secure.receive(header.length).await;
            match header.kind {
                Kind::Data => {
                    body += payload.len();
                    let credit = u32::try_from(payload.len()).unwrap().to_be_bytes();
                    if !payload.is_empty() {
                        self.frame(Kind::WindowUpdate, 0, 0, &credit).await;
                        self.frame(Kind::WindowUpdate, 0, header.stream, &credit).await;
                    }
                }
                Kind::Headers => {}
                _ => continue,
            }
            if header.has(flag::END_STREAM) {
                return (header.stream, body);
            }
        }
    }

    /// Sends an answer without a body: `:status: 200` of the static table.
    async fn answer(&mut self, stream: u32) {
        self.frame(Kind::Headers, flag::END_HEADERS | flag::END_STREAM, stream, &[0x88]).await;
    }
}

async fn ask(request: &str) -> Peer {
    let mut client = Peer::connect(WEIR).await;
    client.send(request).await;
    client
}

/// Sends a request, which has to be early or not, and its answer. The connection is closed after it.
async fn one_request(service: &mut Service, server: &Arc<Server>, early: Option<bool>) {
    let mut client = ask(GET).await;
    let mut origin = Origin::accept(service.accept().await, server).await;
    assert!(early.is_none_or(|early| early == origin.was_early), "{early:?}");
    assert_eq!(origin.request().await, (1, 0));
    origin.answer(1).await;
    assert!(client.receive_head().await.unwrap().starts_with("HTTP/1.1 200 OK\r\n"));
    client.close();
    sleep(50).await;
    origin.secure.peer.close();
    sleep(50).await;
}

#[test]
fn requests_go_early_to_servers_of_http2() {
    for options in ["alpn h2", "alpn h2,http/1.1", "proto h2 alpn h2", "proto h2"] {
        for rules in ["http-reuse always", "http-reuse never"] {
            outer(options, rules).seeds(0..4).run(move |world| async move {
                let mut service = Service::at(SECURE);
                let offered: &[&str] = if options == "proto h2" { &[] } else { &["h2"] };
                let (knows, forgets) = (early_server(offered), early_server(offered));
                // A request that was refused early is received once, after the handshake.
                for (server, early) in
                    [(&knows, None), (&knows, Some(true)), (&forgets, Some(false)), (&forgets, Some(true))]
                {
                    one_request(&mut service, server, early).await;
                }
                service.is_left_alone();
                world.forget_log();
            });
        }
    }
}

/// Before the end of the handshake, a connection carries only requests that may be early; afterwards all.
#[test]
fn requests_share_a_connection_that_is_early() {
    for shared in [true, false] {
        let reuse = if shared { "http-reuse always" } else { "http-reuse never" };
        outer("alpn h2", reuse).seeds(0..4).run(move |world| async move {
            let mut service = Service::at(SECURE);
            let server = early_server(&["h2"]);
            one_request(&mut service, &server, None).await;
            let mut one = ask(GET).await;
            let first = service.accept().await;
            sleep(20).await;
            let mut two = ask(GET).await;
            sleep(20).await;
            let other = if shared { None } else { Some(service.accept().await) };
            let mut three = ask("DELETE / HTTP/1.1\r\nHost: a.example\r\n\r\n").await;
            let late = service.accept().await;
            sleep(20).await;
            service.is_left_alone();
            let mut origin = Origin::accept(first, &server).await;
            assert!(origin.was_early);
            let (stream, _) = origin.request().await;
            origin.answer(stream).await;
            if let Some(other) = other {
                let mut other = Origin::accept(other, &server).await;
                let (stream, _) = other.request().await;
                other.answer(stream).await;
            } else {
                let (stream, _) = origin.request().await;
                assert_eq!(stream, 3);
                origin.answer(stream).await;
            }
            let mut late = Origin::accept(late, &server).await;
            assert!(!late.was_early);
            let (stream, _) = late.request().await;
            late.answer(stream).await;
            for client in [&mut one, &mut two, &mut three] {
                assert!(client.receive_head().await.unwrap().starts_with("HTTP/1.1 200 OK\r\n"));
            }
            for client in [one, two, three] {
                client.close();
            }
            sleep(50).await;
            world.forget_log();
        });
    }
}

/// The server has changed its protocol since the session began: it has not seen the early data, and gets the request
/// over another connection.
#[test]
fn a_server_may_have_changed_its_protocol() {
    for (before, after) in [("h2", "http/1.1"), ("h2", ""), ("http/1.1", "h2")] {
        // One world, because what is known of the server outlives it.
        outer("alpn h2,http/1.1", "http-reuse never").seeds(0..1).run(move |world| async move {
            let mut service = Service::at(SECURE);
            let server = early_server(&[before]);
            if before == "h2" {
                one_request(&mut service, &server, None).await;
                one_request(&mut service, &server, Some(true)).await;
            } else {
                for early in [None, Some(true)] {
                    let mut client = ask(GET).await;
                    let mut peer = Secure::accept_with(service.accept().await, &server).await.unwrap();
                    assert!(early.is_none_or(|early| peer.was_early() == early), "{early:?}");
                    assert!(peer.receive_head().await.starts_with("GET / HTTP/1.1\r\n"));
                    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
                    client.expect(EMPTY).await;
                    client.close();
                    sleep(50).await;
                    peer.peer.close();
                }
            }
            let offered: Vec<&str> = Some(after).filter(|after| !after.is_empty()).into_iter().collect();
            let changed = early_server(&offered);
            let mut client = ask(GET).await;
            // The handshake may be completed, and the connection is closed.
            drop(Secure::accept_with(service.accept().await, &changed).await);
            let peer = service.accept().await;
            if after == "h2" {
                let mut origin = Origin::accept(peer, &changed).await;
                assert!(!origin.was_early);
                let (stream, _) = origin.request().await;
                origin.answer(stream).await;
                assert!(client.receive_head().await.unwrap().starts_with("HTTP/1.1 200 OK\r\n"));
            } else {
                let mut peer = Secure::accept_with(peer, &changed).await.unwrap();
                assert!(!peer.was_early());
                assert!(peer.receive_head().await.starts_with("GET / HTTP/1.1\r\n"));
                peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
                client.expect(EMPTY).await;
            }
            client.close();
            sleep(50).await;
            service.is_left_alone();
            world.forget_log();
        });
    }
}

/// A body that a client has sent early is forwarded early; the part that does not fit is sent after the handshake.
#[test]
fn a_body_goes_on_to_a_server_of_http2() {
    for (limit, early) in [("", true), ("ssl-max-ver TLSv1.2", false)] {
        config(&format!(
            "listen l\n bind {SECURE} ssl crt a.pem alpn http/1.1 allow-0rtt\n http-reuse always\n \
             server inner 10.0.0.1:8443 ssl verify none sni str(a.example) alpn h2,http/1.1 allow-0rtt {limit}\n"
        ))
        .workers(&[1])
        .seeds(0..8)
        .run(move |world| async move {
            let mut service = Service::at("10.0.0.1:8443");
            let server = early_server(&["h2"]);
            let client = early_client(&["http/1.1"]);
            let mut first = Secure::connect(SECURE, &client, 10_000).await.unwrap();
            first.send(GET).await;
            let mut origin = Origin::accept(service.accept().await, &server).await;
            assert_eq!(origin.request().await, (1, 0));
            origin.answer(1).await;
            first.receive(17).await;
            origin.secure.peer.close();
            first.say_goodbye().await;
            sleep(50).await;
            let head = "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 30000\r\n\r\n";
            let (mut again, _) = Secure::connect_early(SECURE, &client, &format!("{head}{}", "a".repeat(8_000))).await;
            let peer = service.accept().await;
            // The client has not completed the handshake.
            let (origin, ()) = both(Origin::accept(peer, &server), async {
                sleep(20).await;
                again.finish().await;
                again.send("b".repeat(22_000)).await;
            })
            .await;
            let mut origin = origin;
            assert_eq!(origin.was_early, early);
            assert_eq!(origin.request().await, (1, 30_000));
            origin.answer(1).await;
            assert_eq!(again.receive(15).await, b"HTTP/1.1 200 OK");
            again.say_goodbye().await;
            sleep(50).await;
            world.forget_log();
        });
    }
}
