//! Tests of every end of a client's connection, for every protocol, plainly and over TLS: the client receives
//! everything written before, even if it reads slowly and sends at the same time, or detects that it did not.

use rt::sim::Link;
use testkit::{Peer, Service, sleep};
use tls::provider::Version;
use wire::h2::{FrameHeader, HEADER_LENGTH, Kind, PREFACE, Setting, flag, push_frame};

use crate::api::{SOCKET, ask};
use crate::h2::block;
use crate::messages::*;
use crate::secure::{Secure, client};
use crate::world::*;

/// The TLS listener.
pub const SECURE: &str = "10.0.0.1:443";
/// Less than a link holds, and more than its receiver's window.
pub const BODY: usize = 200_000;
/// More input than is dropped in one step.
const UPLOAD: usize = 4_000_000;
/// Milliseconds after which the timeout between two requests has expired.
pub const PAUSE: u64 = 400;

/// A client's connection.
pub enum Own {
    Plain(Peer),
    Secure(Box<Secure>),
}

/// The bytes that a client has received on a closed connection.
pub struct ReceivedEnd {
    pub bytes: Vec<u8>,
    /// Whether it was closed in order: over TLS, with a `close_notify` alert.
    pub in_order: bool,
}

/// The behaviour of a client while an answer is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// It reads.
    Prompt,
    /// It pauses, then reads on.
    Slow,
    /// It pauses, sends something, then reads on.
    Talking,
}

pub const READERS: [Reader; 3] = [Reader::Prompt, Reader::Slow, Reader::Talking];

impl Own {
    pub async fn connect(secure: bool) -> Own {
        if !secure {
            return Own::Plain(Peer::connect(WEIR).await);
        }
        let own = Secure::connect(SECURE, &client((Version::Tls13, Version::Tls13)), usize::MAX).await;
        Own::Secure(Box::new(own.unwrap()))
    }

    pub async fn try_send(&mut self, bytes: &[u8]) -> bool {
        match self {
            Own::Plain(peer) => peer.try_send(bytes).await,
            Own::Secure(secure) => secure.try_send(bytes).await,
        }
    }

    pub async fn some(&mut self) -> Vec<u8> {
        match self {
            Own::Plain(peer) => peer.receive_some().await,
            Own::Secure(secure) => secure.receive_some().await,
        }
    }

    pub fn in_order(&self) -> bool {
        match self {
            Own::Plain(peer) => peer.has_closed_in_order(),
            Own::Secure(secure) => secure.has_closed_in_order(),
        }
    }

    /// Reads to the end, after the first bytes with the reader's behaviour, which may send `said`.
    pub async fn rest(&mut self, reader: Reader, said: &[u8]) -> ReceivedEnd {
        let mut bytes = self.some().await;
        if reader != Reader::Prompt {
            sleep(PAUSE).await;
        }
        let mut whole = true;
        if reader == Reader::Talking {
            // A reset is reported by the first call after it.
            whole = self.try_send(said).await;
            // If the connection is closed, the kernel answers these bytes.
            sleep(10).await;
        }
        loop {
            let more = self.some().await;
            if more.is_empty() {
                return ReceivedEnd { bytes, in_order: whole && self.in_order() };
            }
            bytes.extend_from_slice(&more);
        }
    }
}

impl ReceivedEnd {
    /// The body of the only answer.
    pub fn body(&self) -> &[u8] {
        let end = self.bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
        &self.bytes[end + 4..]
    }
}

/// Plain and TLS listeners of a proxy with those lines; each send arrives in one piece.
pub fn both(lines: &str) -> Worlds {
    let lines = format!(
        "listen l\n bind {WEIR}\n bind {SECURE} ssl crt a.pem\n timeout client 2s\n timeout http-keep-alive 150ms\n \
         timeout server 10s\n{lines}\n"
    );
    config(&lines).workers(&[1]).seeds(0..1).links(|_| Link { fragment: false, ..Link::default() })
}

/// Runs `script` for plain and TLS clients, and for every reader.
fn each<F: Future<Output = ()> + 'static>(lines: &'static str, script: impl Fn(World, bool, Reader) -> F + Copy) {
    for secure in [false, true] {
        for reader in READERS {
            both(lines).run(move |world| script(world, secure, reader));
        }
    }
}

/// Answers the next request with these bytes, and keeps the connection open.
pub async fn answer_with(s1: &mut Service, bytes: &[u8]) -> Peer {
    let mut server = s1.accept().await;
    server.receive_head().await.unwrap();
    server.try_send(bytes).await;
    server
}

fn sized(length: usize) -> Vec<u8> {
    let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").into_bytes();
    answer.resize(answer.len() + length, b'x');
    answer
}

fn undelimited() -> Vec<u8> {
    let mut answer = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    answer.resize(answer.len() + BODY, b'x');
    answer
}

#[test]
fn of_a_client_between_two_requests() {
    each("server s1 10.0.1.1:80", |world, secure, reader| async move {
        let mut s1 = Service::at(S1);
        let mut own = Own::connect(secure).await;
        own.try_send(GET.as_bytes()).await;
        let _server = answer_with(&mut s1, &sized(BODY)).await;
        let seen = own.rest(reader, GET.as_bytes()).await;
        assert_eq!((seen.body().len(), seen.in_order), (BODY, true), "secure: {secure}, {reader:?}");
        world.forget_log();
    });
}

#[test]
fn of_a_client_that_a_soft_stop_ends() {
    each("timeout http-keep-alive 60s\n server s1 10.0.1.1:80", |world, secure, reader| async move {
        let mut s1 = Service::at(S1);
        let mut own = Own::connect(secure).await;
        own.try_send(GET.as_bytes()).await;
        let _server = answer_with(&mut s1, &sized(BODY)).await;
        sleep(5).await;
        world.stop();
        let seen = own.rest(reader, GET.as_bytes()).await;
        assert_eq!((seen.body().len(), seen.in_order), (BODY, true), "secure: {secure}, {reader:?}");
        world.forget_log();
    });
}

#[test]
fn of_a_client_that_has_asked_for_it() {
    each("server s1 10.0.1.1:80", |world, secure, reader| async move {
        let mut s1 = Service::at(S1);
        let mut own = Own::connect(secure).await;
        own.try_send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
        let _server = answer_with(&mut s1, &sized(BODY)).await;
        let seen = own.rest(reader, GET.as_bytes()).await;
        assert_eq!((seen.body().len(), seen.in_order), (BODY, true), "secure: {secure}, {reader:?}");
        world.forget_log();
    });
}

#[test]
fn that_ends_an_answer() {
    each("server s1 10.0.1.1:80", |world, secure, reader| async move {
        let mut s1 = Service::at(S1);
        let mut own = Own::connect(secure).await;
        own.try_send(GET.as_bytes()).await;
        answer_with(&mut s1, &undelimited()).await.close();
        let seen = own.rest(reader, GET.as_bytes()).await;
        assert_eq!((seen.body().len(), seen.in_order), (BODY, true), "secure: {secure}, {reader:?}");
        world.forget_log();
    });
}

/// How an answer delimited by the end of the connection is truncated.
#[derive(Clone, Copy, Debug)]
enum Cut {
    /// The server resets the connection.
    Reset,
    /// The server sends nothing more.
    Silence,
    /// An operator ends the session.
    Killed,
}

#[test]
fn that_cuts_an_answer_is_no_orderly_one() {
    for cut in [Cut::Reset, Cut::Silence, Cut::Killed] {
        let lines = "timeout server 300ms\n server s1 10.0.1.1:80";
        for (secure, reader) in
            [(false, Reader::Prompt), (false, Reader::Talking), (true, Reader::Prompt), (true, Reader::Talking)]
        {
            both(lines).global(SOCKET).run(move |world| async move {
                let mut s1 = Service::at(S1);
                let mut own = Own::connect(secure).await;
                own.try_send(GET.as_bytes()).await;
                let server = answer_with(&mut s1, &undelimited()).await;
                sleep(5).await;
                let _server = match cut {
                    Cut::Reset => {
                        server.reset();
                        None
                    }
                    Cut::Silence => Some(server),
                    Cut::Killed => {
                        ask("shutdown sessions server l/s1").await;
                        Some(server)
                    }
                };
                let seen = own.rest(reader, GET.as_bytes()).await;
                assert!(!seen.in_order, "{cut:?}, secure: {secure}, {reader:?}");
                assert!(!seen.body().is_empty());
                world.forget_log();
            });
        }
    }
}

/// Sends a whole upload before reading the answer, which was sent at once.
async fn upload(world: &World, own: &mut Own, framing: &str, body: &[u8], what: &str) {
    own.try_send(format!("POST /upload HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n").as_bytes()).await;
    sleep(20).await;
    let whole = own.try_send(body).await;
    assert!(whole, "the upload was cut off: {what} {:?}", world.take_log().await);
    let seen = own.rest(Reader::Prompt, &[]).await;
    let text = String::from_utf8_lossy(&seen.bytes).into_owned();
    assert!(text.starts_with("HTTP/1.1 413 "), "{what}: {text}");
    assert!(seen.in_order, "{what}");
}

fn framings() -> [(String, Vec<u8>); 2] {
    let plain = vec![b'u'; UPLOAD];
    let chunk = [format!("{UPLOAD:x}\r\n").into_bytes(), plain.clone(), b"\r\n0\r\n\r\n".to_vec()].concat();
    [(format!("Content-Length: {UPLOAD}"), plain), ("Transfer-Encoding: chunked".to_owned(), chunk)]
}

#[test]
fn of_an_upload_that_was_answered_early() {
    for secure in [false, true] {
        for expects in ["", "Expect: 100-continue\r\n"] {
            both("http-request deny deny_status 413 if { path /upload }\n server s1 10.0.1.1:80").run(
                move |world| async move {
                    for (framing, body) in framings() {
                        let mut own = Own::connect(secure).await;
                        let framing = format!("{expects}Connection: close\r\n{framing}");
                        upload(&world, &mut own, &framing, &body, &format!("secure: {secure}, {framing}")).await;
                    }
                    world.forget_log();
                },
            );
        }
    }
}

#[test]
fn of_an_upload_that_its_server_answers_early() {
    for secure in [false, true] {
        for reads in [false, true] {
            both("server s1 10.0.1.1:80").run(move |world| async move {
                for (framing, body) in framings() {
                    let mut s1 = Service::at(S1);
                    world.scope.spawn(async move {
                        let answer = b"HTTP/1.1 413 Large\r\nConnection: close\r\nContent-Length: 4\r\n\r\nlate";
                        let mut server = answer_with(&mut s1, answer).await;
                        if reads {
                            while !server.receive_some().await.is_empty() {}
                        }
                    });
                    let mut own = Own::connect(secure).await;
                    let what = format!("secure: {secure}, reads: {reads}, {framing}");
                    upload(&world, &mut own, &format!("Connection: close\r\n{framing}"), &body, &what).await;
                }
                world.forget_log();
            });
        }
    }
}

/// A client that sends for as long as it can, and does not read.
#[test]
fn of_an_upload_without_an_end_comes_in_time() {
    both("http-request deny deny_status 413\n server s1 10.0.1.1:80").run(|world| async move {
        let mut own = Own::connect(false).await;
        own.try_send(b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 999999999\r\n\r\n").await;
        let mut seconds = 0;
        while own.try_send(&[b'u'; 1000]).await {
            sleep(1_000).await;
            seconds += 1;
            assert!(seconds < 40, "it lasts");
        }
        assert!(seconds > 20, "{seconds}");
        world.forget_log();
    });
}

/// A client that neither sends nor closes is not waited for.
#[test]
fn of_a_client_that_does_not_close_comes_soon() {
    both("http-request deny deny_status 413\n server s1 10.0.1.1:80").run(|world| async move {
        let mut own = Own::connect(false).await;
        own.try_send(b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 999\r\n\r\n").await;
        while !own.some().await.is_empty() {}
        assert_eq!(world.sessions(), 1);
        sleep(4_000).await;
        assert_eq!(world.sessions(), 0);
        world.forget_log();
    });
}

/// The frames that an HTTP/2 client sends before an answer, with windows for the whole answer.
pub fn asks() -> Vec<u8> {
    let mut out = PREFACE.to_vec();
    push_frame(&mut out, Kind::Settings, 0, 0, &Setting::InitialWindowSize.bytes(1 << 20));
    push_frame(&mut out, Kind::WindowUpdate, 0, 0, &(1_u32 << 20).to_be_bytes());
    push_frame(&mut out, Kind::Headers, flag::END_HEADERS | flag::END_STREAM, 1, &block("GET", "/", &[]));
    out
}

/// A PING and a WINDOW_UPDATE.
pub fn talk() -> Vec<u8> {
    let mut out = Vec::new();
    push_frame(&mut out, Kind::Ping, 0, 0, b"pingping");
    push_frame(&mut out, Kind::WindowUpdate, 0, 0, &1_u32.to_be_bytes());
    out
}

/// Bytes of payload, whether the stream has ended, and whether there was a GOAWAY.
pub fn payload(mut bytes: &[u8]) -> (usize, bool, bool) {
    let (mut length, mut ended, mut announced) = (0, false, false);
    while let Some(header) = FrameHeader::parse(bytes) {
        match header.kind {
            Kind::Data => {
                length += header.length;
                ended |= header.has(flag::END_STREAM);
            }
            Kind::GoAway => announced = true,
            _ => {}
        }
        bytes = bytes.get(HEADER_LENGTH + header.length..).unwrap_or_default();
    }
    (length, ended, announced)
}

#[test]
fn of_a_connection_with_streams() {
    // The whole answer, and one that is longer than the process can send at once.
    for length in [BODY, 600_000] {
        for stops in [false, true] {
            for secure in [false, true] {
                for reader in READERS {
                    let lines = "server s1 10.0.1.1:80";
                    both(lines).run(move |world| async move {
                        let mut s1 = Service::at(S1);
                        let mut own = Own::connect(secure).await;
                        own.try_send(&asks()).await;
                        let mut server = s1.accept().await;
                        server.receive_head().await.unwrap();
                        world.scope.spawn(async move {
                            server.try_send(sized(length)).await;
                            sleep(60_000).await;
                        });
                        sleep(5).await;
                        if stops {
                            world.stop();
                        }
                        let seen = own.rest(reader, &talk()).await;
                        let what = format!("{length}, stops: {stops}, secure: {secure}, {reader:?}");
                        assert_eq!(payload(&seen.bytes), (length, true, true), "{what}");
                        assert!(seen.in_order, "{what}");
                        world.forget_log();
                    });
                }
            }
        }
    }
}

#[test]
fn of_a_tunnel_whose_server_fails() {
    for (mode, asked, answered) in [
        ("mode tcp", "hello", ""),
        (
            "",
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
            "HTTP/1.1 101 Switching\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\n",
        ),
    ] {
        for resets in [false, true] {
            for secure in [false, true] {
                for reader in READERS {
                    both(&format!("{mode}\n timeout client 5s\n server s1 10.0.1.1:80")).run(move |world| async move {
                        let mut s1 = Service::at(S1);
                        let mut own = Own::connect(secure).await;
                        own.try_send(asked.as_bytes()).await;
                        let mut server = s1.accept().await;
                        server.receive_some().await;
                        server.send(answered).await;
                        server.send(vec![b'x'; BODY]).await;
                        sleep(5).await;
                        if resets {
                            server.reset();
                        } else {
                            server.half_close();
                            world.scope.spawn(async move { while !server.receive_some().await.is_empty() {} });
                        }
                        let seen = own.rest(reader, b"more").await;
                        let what = format!("{mode}, resets: {resets}, secure: {secure}, {reader:?}");
                        assert_eq!(seen.in_order, !resets, "{what}");
                        if !resets {
                            assert_eq!(seen.bytes.len(), answered.len() + BODY, "{what}");
                        }
                        world.forget_log();
                    });
                }
            }
        }
    }
}
