//! The scenes of the table: the sections of each for a fetch, the bytes of its client and the answer of its server.
//! Must never judge a result.

use std::rc::Rc;

use testkit::{Peer, Scope, Service};
use tls::provider::Version;
use wire::h2::{Kind, PREFACE, flag, push_frame};

use crate::h2::block;
use crate::secure::{Secure, client, hello};
use crate::world::*;

pub const COMMON: &str = "userlist users\n user a insecure-password b\nbackend t\n stick-table type string len 32 size 1k store gpc0,gpt0,http_req_cnt,server_id\n\
                      backend be\n server s 10.0.1.2:80\nfrontend f\n bind 10.0.0.1:999\n";

/// The proxies of a scene, one for each fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxies {
    /// `tcp-request content` in TCP mode.
    Tcp,
    /// `tcp-request content` in TCP mode, with `track-sc0`.
    TcpTrack,
    /// `tcp-request content` in HTTP mode.
    Http,
    /// `tcp-request content` in HTTP mode, with `track-sc0`.
    HttpTrack,
    /// `tcp-request content` of a backend in HTTP mode.
    HttpBackend,
    /// `tcp-response content` in TCP mode.
    TcpAnswer,
    /// `tcp-response content` in HTTP mode.
    HttpAnswer,
    /// `tcp-request connection`.
    Connection,
    /// `tcp-request session`.
    Session,
    /// `http-request`.
    Request,
    /// `http-response`.
    Response,
}

impl Proxies {
    pub const ALL: [Proxies; 11] = [
        Proxies::Tcp,
        Proxies::TcpTrack,
        Proxies::Http,
        Proxies::HttpTrack,
        Proxies::HttpBackend,
        Proxies::TcpAnswer,
        Proxies::HttpAnswer,
        Proxies::Connection,
        Proxies::Session,
        Proxies::Request,
        Proxies::Response,
    ];

    /// The sections for the fetch with that index in the table. Its log line contains the frontend, its duration, that
    /// of the handshake, and whether the fetch was found.
    pub fn section(self, place: usize, fetch: &str) -> String {
        let binds = format!("bind 10.0.0.1:{}\n bind 10.0.0.1:{} ssl crt a.pem", clear(place), secured(place));
        let found = |scope: &str| format!("set-var({scope}.f) int(1) if {{ {fetch} -m found }}");
        let delayed = |direction: &str, rule: &str| {
            format!("{direction} inspect-delay 1s\n {direction} content {rule}\n {direction} content reject\n")
        };
        let asks = delayed("tcp-request", &found("txn"));
        let answers = delayed("tcp-response", &found("txn"));
        let tracks = delayed("tcp-request", &format!("track-sc0 {fetch} table t"));
        let early = |phase: &str| format!("tcp-request {phase} {}\n tcp-request content reject\n", found("sess"));
        let (mode, own, behind) = match self {
            Proxies::Tcp => ("tcp", asks, String::new()),
            Proxies::Http => ("http", asks, String::new()),
            Proxies::TcpTrack => ("tcp", tracks, String::new()),
            Proxies::HttpTrack => ("http", tracks, String::new()),
            Proxies::HttpBackend => ("http", String::new(), asks),
            Proxies::TcpAnswer => ("tcp", String::new(), format!("server s {S1}\n {answers}")),
            Proxies::HttpAnswer => ("http", String::new(), format!("server s {S1}\n {answers}")),
            Proxies::Connection => ("tcp", early("connection"), String::new()),
            Proxies::Session => ("tcp", early("session"), String::new()),
            Proxies::Request => ("http", format!("http-request {}\n http-request deny\n", found("txn")), String::new()),
            Proxies::Response => {
                let rules = format!("http-response {}\n http-response deny\n", found("txn"));
                ("http", String::new(), format!("server s {S1}\n {rules}"))
            }
        };
        let scope = if matches!(self, Proxies::Connection | Proxies::Session) { "sess" } else { "txn" };
        let format = format!("log-format \"R %f %Tt %Th %[var({scope}.f)]\"");
        if behind.is_empty() {
            return format!("frontend f{place}\n mode {mode}\n {binds}\n {format}\n {own}");
        }
        format!(
            "frontend f{place}\n mode {mode}\n {binds}\n {format}\n default_backend c{place}\n\
             backend c{place}\n mode {mode}\n {behind}"
        )
    }
}

fn clear(place: usize) -> usize {
    1_000 + place
}

fn secured(place: usize) -> usize {
    10_000 + place
}

/// A column of the table.
#[derive(Clone)]
pub struct Scene {
    pub name: &'static str,
    pub proxies: Proxies,
    secure: bool,
    sent: Rc<[u8]>,
}

impl Scene {
    pub fn named(name: &'static str) -> Scene {
        let kind = match name.split('/').collect::<Vec<_>>()[..] {
            ["tcp", "track", _] => Proxies::TcpTrack,
            ["http", "track", _] => Proxies::HttpTrack,
            ["http", "backend", _] => Proxies::HttpBackend,
            ["answer", "tcp", _] => Proxies::TcpAnswer,
            ["answer", "http", _] => Proxies::HttpAnswer,
            ["tcp", ..] => Proxies::Tcp,
            ["http", ..] => Proxies::Http,
            ["connection", ..] => Proxies::Connection,
            ["session", ..] => Proxies::Session,
            ["request", ..] => Proxies::Request,
            ["response", ..] => Proxies::Response,
            _ => panic!("{name}"),
        };
        let secure = name.contains("/tls");
        Scene { name, proxies: kind, secure, sent: sent(name).into() }
    }

    /// Sends the bytes of the scene for the fetch with that index, and reads to the end.
    pub async fn play(&self, place: usize) {
        if self.secure {
            let to = format!("10.0.0.1:{}", secured(place));
            let own = Secure::connect(&to, &client((Version::Tls13, Version::Tls13)), usize::MAX).await;
            let Ok(mut own) = own else { return };
            if own.try_send(&self.sent).await {
                while !own.receive_some().await.is_empty() {}
            }
            return;
        }
        let mut own = Peer::connect(&format!("10.0.0.1:{}", clear(place))).await;
        own.try_send(&self.sent).await;
        own.try_receive_up_to(1 << 20).await;
    }
}

fn frame(kind: Kind, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    push_frame(&mut out, kind, flags, u32::from(kind != Kind::Settings), payload);
    out
}

/// The bytes sent by the client of a scene.
fn sent(name: &str) -> Vec<u8> {
    const HTTP: &str = "GET /a?b=c HTTP/1.1\r\nHost: a\r\nCookie: a=b\r\n\r\n";
    const FIX: &[u8] = b"8=FIX.4.2\x019=5\x0135=0\x0110=161\x01";
    const JUNK: &[u8] = b"\xff\x00junk\r\n\r\njunk\r\njunk";
    let mqtt = b"\x10\x12\x00\x04MQTT\x04\x02\x00\x00\x00\x06client";
    let rdp =
        b"\x03\x00\x00\x2b\x26\xe0\x00\x00\x00\x00\x00Cookie: mstshash=abcdefg\r\n\x01\x00\x08\x00\x01\x00\x00\x00";
    let begun = || [&PREFACE[..], &frame(Kind::Settings, 0, b"")].concat();
    let last = name.rsplit('/').next().unwrap_or_default();
    match (name, last) {
        ("answer/tcp/junk", _) => b"J".to_vec(),
        ("answer/tcp/part", _) => b"P".to_vec(),
        ("answer/tcp/http", _) => b"H".to_vec(),
        ("http/h2/get" | "request/h2/get" | "response/h2/get", _) => {
            let block = block("GET", "/a?b=c", &[("cookie", "a=b")]);
            [begun(), frame(Kind::Headers, flag::END_HEADERS | flag::END_STREAM, &block)].concat()
        }
        ("http/h2/post" | "request/h2/post", _) => {
            let block = block("POST", "/a", &[("cookie", "a=b")]);
            [begun(), frame(Kind::Headers, flag::END_HEADERS, &block), frame(Kind::Data, 0, b"abc")].concat()
        }
        (_, "none" | "clear") | ("connection/tls" | "session/tls", _) => Vec::new(),
        (_, "junk") => JUNK.to_vec(),
        (_, "part") => HTTP.as_bytes()[..HTTP.len() - 11].to_vec(),
        (_, "http" | "get") => HTTP.into(),
        (_, "body") => HTTP.replace("/a", "/body").into(),
        (_, "post") => b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc".to_vec(),
        (_, "hello") => hello(),
        (_, "hello-part") => hello()[..60].to_vec(),
        (_, "mqtt") => mqtt.to_vec(),
        (_, "mqtt-part") => mqtt[..5].to_vec(),
        (_, "mqtt-anonymous") => b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x00\x00\x00".to_vec(),
        (_, "fix") => FIX.to_vec(),
        (_, "fix-part") => FIX[..14].to_vec(),
        (_, "rdp") => rdp.to_vec(),
        (_, "rdp-part") => rdp[..20].to_vec(),
        _ => panic!("{name}"),
    }
}

/// Starts the server of the scenes.
pub fn serve(scope: &Rc<Scope>) {
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nSet-Cookie: a=b\r\n\r\nok";
    Service::at(S1).serve(scope, |mut peer: Peer, _| async move {
        let asked = peer.receive_some().await;
        let answer = match &asked[..] {
            b"J" => b"\xff\x00junk\r\n\r\njunk\r\njunk",
            b"P" => &ANSWER[..30],
            _ if asked.windows(5).any(|part| part == b"/body") => &ANSWER[..ANSWER.len() - 1],
            _ => ANSWER,
        };
        peer.try_send(answer).await;
        while !peer.receive_some().await.is_empty() {}
    });
}
