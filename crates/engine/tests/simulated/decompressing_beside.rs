//! Tests of `http-request decompress-body` with other features that wait for bodies, read them, send them again or
//! change them: each reads the decoded bytes, and the client's connection is kept.

use std::io::Read as _;

use testkit::{Peer, Service, Stopwatch};
use wire::h2::{Kind, flag};

use crate::decompressing::{FORM, TYPED, coded, gzip, zstd};
use crate::fcgi::{self, PLAIN};
use crate::h2::{self, block};
use crate::messages::*;
use crate::parts::{End, Part};
use crate::spoe::{AGENT, acknowledge, engine, greeted, notified};
use crate::world::*;

const AGAIN: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// The form in which a client sends a body.
#[derive(Debug, Clone, Copy)]
enum Form {
    Length,
    Chunks,
    Pieces,
    Stream,
    StreamWithLength,
}

/// A client whose request is in progress.
enum Asking {
    Plain(Peer),
    Streams(Box<h2::Client>),
}

impl Asking {
    /// Sends a compressed form; over HTTP/1 another request follows in the same bytes.
    async fn send(form: Form) -> Asking {
        let body = gzip(FORM.as_bytes());
        let length = body.len().to_string();
        match form {
            Form::Stream | Form::StreamWithLength => {
                let mut client = h2::Client::connect().await;
                let mut fields =
                    vec![("content-type", "application/x-www-form-urlencoded"), ("content-encoding", "gzip")];
                if matches!(form, Form::StreamWithLength) {
                    fields.push(("content-length", &length));
                }
                client.request(1, false, &block("POST", "/", &fields)).await;
                client.frame(Kind::Data, 0, 1, &body[..9]).await;
                client.frame(Kind::Data, flag::END_STREAM, 1, &body[9..]).await;
                client.request(3, true, &block("GET", "/next", &[])).await;
                Asking::Streams(Box::new(client))
            }
            _ => {
                let mut client = Peer::connect(WEIR).await;
                let fields = format!("{TYPED}Content-Encoding: gzip\r\n");
                let request = if matches!(form, Form::Chunks) {
                    let head = format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}Transfer-Encoding: chunked\r\n\r\n");
                    [head.into_bytes(), testkit::encode_chunks(&body, &mut || 5, &[])].concat()
                } else {
                    coded(&fields, &body)
                };
                let whole = [&request[..], get("/next").as_bytes()].concat();
                if matches!(form, Form::Pieces) {
                    client.send_slowly(whole, 7, 1).await;
                } else {
                    client.send(whole).await;
                }
                Asking::Plain(client)
            }
        }
    }

    /// Receives both answers.
    async fn expect(self) {
        match self {
            Asking::Plain(mut client) => {
                let head = client.receive_head().await.unwrap();
                assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
                if head.contains("\r\ncontent-length: 2\r\n") {
                    client.expect("ok").await;
                } else {
                    client.receive_until("\r\n0\r\n\r\n").await;
                }
                client.expect(AGAIN).await;
            }
            Asking::Streams(mut client) => {
                client.expect(3, 200, "").await;
                client.expect(1, 200, "ok").await;
            }
        }
    }
}

/// A server, by its protocol.
enum Serving {
    Plain(Peer),
    Streams(End),
    Application(Peer),
}

impl Serving {
    async fn accept(service: &mut Service, protocol: &str) -> Serving {
        match protocol {
            "h2" => Serving::Streams(End::accept(service).await),
            "fcgi" => Serving::Application(service.accept().await),
            _ => Serving::Plain(service.accept().await),
        }
    }

    /// Receives a request with that body, which has a length and no content coding.
    async fn expect(&mut self, body: &[u8]) {
        let length = format!("\r\ncontent-length: {}\r\n", body.len());
        match self {
            Serving::Plain(peer) => {
                let head = peer.receive_head().await.unwrap();
                assert!(head.contains(&length) && !head.contains("-encoding"), "{head}");
                peer.expect(body).await;
            }
            Serving::Streams(end) => {
                while end.messages.get(&1).is_none_or(|message| message.end.is_none()) {
                    assert!(end.step().await);
                }
                let message = &end.messages[&1];
                assert!(message.head.contains(&length) && !message.head.contains("-encoding"), "{}", message.head);
                assert!(message.payload == body && message.end == Some(Part::End));
            }
            Serving::Application(peer) => {
                let asked = fcgi::request(peer).await;
                assert_eq!(asked.get("CONTENT_LENGTH"), body.len().to_string());
                assert_eq!(asked.get("HTTP_CONTENT_ENCODING"), "");
                assert!(asked.body == body);
            }
        }
    }

    async fn answer(&mut self) {
        match self {
            Serving::Plain(peer) => peer.send(OK).await,
            Serving::Streams(end) => end.answer(1, b"ok").await,
            Serving::Application(peer) => peer.send(fcgi::answered(PLAIN)).await,
        }
    }
}

/// Lines of other features: before the rule, and after it.
const BESIDE: [(&str, &str); 9] = [
    ("", ""),
    ("option http-buffer-request", ""),
    ("http-request wait-for-body time 1s", ""),
    ("http-request wait-for-body time 1s at-least 5", ""),
    ("", "http-request wait-for-body time 1s\n http-request decompress-body"),
    ("filter bwlim-in up default-limit 1m default-period 1s\n http-request set-bandwidth-limit up", ""),
    ("filter trace random-forwarding quiet", ""),
    ("filter cache c\n http-request cache-use c", "http-response cache-store c"),
    ("hedge-requests after 5s budget 100 min 0", "http-request set-header x-mark %[req.body_size]"),
];

/// A request of each form reaches a server of each protocol, at the first attempt or the second.
#[test]
fn forms_protocols_and_companions_are_pairwise_right() {
    for protocol in ["h1", "h2", "fcgi"] {
        // Requests are not hedged to an application.
        let beside = BESIDE.into_iter().filter(|(before, _)| protocol != "fcgi" || !before.starts_with("hedge"));
        for (before, after) in beside {
            let proto = if protocol == "h1" { String::new() } else { format!(" proto {protocol}") };
            let text = format!(
                "listen l\n bind {WEIR}\n use-fcgi-app a if {{ always_true }}\n retry-on all-retryable-errors\n retries 1\n option \
                 redispatch 1\n balance roundrobin\n {before}\n http-request return status 200 if {{ path /next }}\n \
                 http-request decompress-body\n http-request deny if ! {{ req.body_param(a) -m str hello }}\n {after}\n server s1 \
                 10.0.1.1:80{proto}\n server s2 10.0.1.2:80{proto}\ncache c\n total-max-size 1\nfcgi-app a\n docroot /w\n"
            );
            let text = if protocol == "fcgi" {
                let filters = if before.contains("filter ") { "filter fcgi-app a\n" } else { "" };
                text.replace(" if { always_true }", "")
                    .replace(" http-request return", &format!(" {filters} http-request return"))
            } else {
                text.replace(" use-fcgi-app a if { always_true }\n", "")
            };
            for form in [Form::Length, Form::Chunks, Form::Pieces, Form::Stream, Form::StreamWithLength] {
                for fails in [false, true] {
                    config(&text).workers(&[1]).seeds(0..1).run(move |world| async move {
                        let (mut s1, mut s2) = (Service::at(S1), Service::at(S2));
                        let client = Asking::send(form).await;
                        let mut server = Serving::accept(&mut s1, protocol).await;
                        server.expect(FORM.as_bytes()).await;
                        if fails {
                            drop(server);
                            server = Serving::accept(&mut s2, protocol).await;
                            server.expect(FORM.as_bytes()).await;
                        }
                        server.answer().await;
                        client.expect().await;
                        drop(server);
                        world.forget_log();
                    });
                }
            }
        }
    }
}

/// More than the window of a stream may have to be received before it can be decoded.
#[test]
fn a_stream_sends_a_large_body_whole() {
    let rule = "http-request decompress-body max-size 300k use-large-buffer\n server s1 10.0.1.1:80";
    for protocol in ["h1", "h2", "fcgi"] {
        let app = if protocol == "h1" { String::new() } else { format!("proto {protocol}") };
        let uses = if protocol == "fcgi" { "use-fcgi-app a\n" } else { "" };
        let text = format!("listen l\n bind {WEIR}\n{uses} default-server {app}\n {rule}\nfcgi-app a\n docroot /w\n");
        config(&text).global(" tune.bufsize.large 120000").workers(&[1]).seeds(0..2).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let text = testkit::text(110_000, 3);
            let body = zstd(&text);
            assert!(body.len() > 70_000, "{}", body.len());
            let mut client = End::connect().await;
            client.settle().await;
            client.post(1, "POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: zstd\r\n\r\n").await;
            client.upload(1, &body).await;
            let mut server = Serving::accept(&mut s1, protocol).await;
            server.expect(&text).await;
            server.answer().await;
            client.expect(1, "HTTP/1.1 200 ", "ok").await;
            drop(server);
            world.forget_log();
        });
    }
}

#[test]
fn an_agent_is_told_what_was_decoded() {
    let file = format!(
        "{}spoe-message m\n args body=req.body size=req.body_size\nspoe-group g\n messages m\n",
        engine(" groups g")
    );
    let text = format!(
        "frontend f\n bind {WEIR}\n filter spoe engine e config f\n option http-buffer-request\n http-request send-spoe-group e g\n \
         http-request decompress-body\n http-request send-spoe-group e g\n default_backend b\nbackend b\n server s1 \
         10.0.1.1:80\nbackend agents\n mode spop\n server a1 {AGENT}\n"
    );
    config(&text).file(&file).run(|world| async move {
        let (mut agents, mut s1) = (Service::at(AGENT), Service::at(S1));
        let mut client = Peer::connect(WEIR).await;
        let body = gzip(b"hello");
        client.send(coded("Content-Encoding: gzip\r\n", &body)).await;
        let mut agent = greeted(&mut agents, "pipelining").await;
        for body in [&body[..], b"hello"] {
            let (stream, told) = notified(&mut agent).await;
            assert_eq!(told, format!("m(body=Bin({body:?}),size={})", body.len()));
            acknowledge(&mut agent, stream, &[]).await;
        }
        let mut server = s1.accept().await;
        server.expect(post_at_server(5) + "hello").await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        world.forget_log();
    });
}

/// A rule of `defaults` precedes those of its proxies; a frontend and a backend may both have it.
#[test]
fn a_rule_of_defaults_is_the_first() {
    let text = format!(
        "defaults d\n mode http\n timeout connect 5s\n timeout client 5s\n http-request decompress-body max-size 5\ndefaults e\n \
         mode http\n timeout connect 5s\n timeout server 5s\n http-request decompress-body\nfrontend f from d\n bind {WEIR}\n http-request set-header x-body %[req.body]\n default_backend b\nbackend b \
         from e\n http-request set-header x-again %[req.body]\n server s1 10.0.1.1:80\n"
    );
    config(&text).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(coded("Content-Encoding: gzip\r\n", &gzip(b"longer"))).await;
        client.expect(page(413)).await;
        client.send(coded("Content-Encoding: gzip\r\n", &gzip(b"hello"))).await;
        let mut server = s1.accept().await;
        let head = post_at_server(5).replace("\r\n\r\n", "\r\nx-body: hello\r\nx-again: hello\r\n\r\n");
        server.expect(head + "hello").await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        world.forget_log();
    });
}

/// The limit applies to the bytes sent to the server, not to those received.
#[test]
fn bandwidth_is_that_of_the_decoded_body() {
    let rules = "filter bwlim-in up default-limit 1000 default-period 1s\n http-request decompress-body\n http-request \
                 set-bandwidth-limit up\n server s1 10.0.1.1:80";
    listen(rules).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        let watch = Stopwatch::start();
        client.send(coded("Content-Encoding: gzip\r\n", &gzip(&[b'x'; 3000]))).await;
        let mut server = s1.accept().await;
        server.expect(post_at_server(3000)).await;
        server.receive(1000).await;
        watch.took(0);
        server.receive(2000).await;
        watch.took(3000);
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        world.forget_log();
    });
}

/// Bodies are rewritten, mirrored and compressed again after they were decoded, all at once.
#[test]
fn filters_change_what_was_decoded() {
    let text = format!(
        "listen l\n bind {WEIR}\n compression algo-req gzip\n compression direction request\n http-request mirror shadow\n \
         http-request decompress-body\n http-request replace-body l+ L\n server s1 10.0.1.1:80\nbackend shadow\n server m1 \
         10.0.1.2:80\n"
    );
    config(&text).run(|world| async move {
        let (mut s1, mut m1) = (Service::at(S1), Service::at(S2));
        let mut client = Peer::connect(WEIR).await;
        let text = "hello ".repeat(200);
        client
            .send([&coded("Content-Encoding: zstd\r\n", &zstd(text.as_bytes()))[..], get("/next").as_bytes()].concat())
            .await;
        for service in [&mut s1, &mut m1] {
            let mut server = service.accept().await;
            let head = server.receive_head().await.unwrap();
            assert!(head.contains("\r\ncontent-encoding: gzip\r\n") && !head.contains("content-length"), "{head}");
            let chunked = server.receive_chunked(1000, 0).await;
            let mut text = String::new();
            flate2::read::GzDecoder::new(&chunked.body[..]).read_to_string(&mut text).unwrap();
            assert_eq!(text, "heLo ".repeat(200));
            server.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok").await;
        }
        let mut server = s1.accept().await;
        server.expect(get_at_server("/next")).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT.repeat(2)).await;
        world.forget_log();
    });
}

/// Answers of Weir itself, of a cache and of services, are sent after the body was decoded, and leave the connection
/// usable.
#[test]
fn answers_from_inside_leave_the_connection_usable() {
    let rules = "stats uri /stats\n filter cache c\n http-request decompress-body\n http-request cache-use c\n http-request redirect \
                 location / if { req.body -m sub go }\n http-request return status 200 content-type text/plain lf-string \
                 %[req.body] if { path /echo }\n http-response cache-store c\n server s1 10.0.1.1:80\ncache c\n total-max-size 1";
    listen(rules).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        let request = |line: &str, body: &str| {
            let body = gzip(body.as_bytes());
            let head = format!(
                "{line} HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            [head.as_bytes(), &body].concat()
        };
        // A body is no part of a cache's key: such a request is not answered from the cache, decoded or not.
        let mut server = None;
        for body in ["one", "two"] {
            client.send(request("GET /cached", body)).await;
            if server.is_none() {
                server = Some(s1.accept().await);
            }
            let server = server.as_mut().unwrap();
            server.expect(format!("GET /cached HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\n{body}")).await;
            server.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=9\r\nContent-Length: 2\r\n\r\nok").await;
            client.receive_until("ok").await;
        }
        client.send(request("POST /echo", "three")).await;
        client.receive_until("\r\n\r\nthree").await;
        client.send([request("POST /", "go"), request("GET /stats", "x")].concat()).await;
        let head = client.receive_head().await.unwrap();
        assert!(head.starts_with("HTTP/1.1 302 "), "{head}");
        let head = client.receive_head().await.unwrap();
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        drop(server);
        world.forget_log();
    });
}
