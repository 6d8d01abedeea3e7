//! Tests of FastCGI applications: the parameters that they get, every division of their records, and the answers to
//! requests if they fail.

use testkit::{Peer, Service, sleep};

use crate::messages::*;
use crate::world::*;

/// The configuration of an application with one server.
pub fn app(backend: &str, section: &str) -> Worlds {
    config(&format!(
        "listen l\n bind 10.0.0.1:80\n use-fcgi-app a\n{backend}\n server s1 10.0.1.1:80 proto fcgi\nfcgi-app a\n \
         docroot /w\n{section}"
    ))
}

pub fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).unwrap().to_be_bytes();
    [&[1, kind, 0, 1, high, low, 0, 0], content].concat()
}

/// An answer, in one record of output, and the end of its request.
pub fn answered(output: &str) -> Vec<u8> {
    [record(6, output.as_bytes()), record(6, b""), record(3, &[0; 8])].concat()
}

pub const PLAIN: &str = "Date: d\r\nContent-Type: t\r\n\r\nok";
/// Receives that answer. It has a length if all of it was received at once.
pub async fn receive_plain(client: &mut Peer) {
    let head = client.receive_head().await.unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\ndate: d\r\ncontent-type: t\r\n"), "{head}");
    if head.contains("content-length: 2\r\n") {
        client.expect("ok").await;
    } else {
        client.receive_until("\r\n0\r\n\r\n").await;
    }
}

/// A request as received by an application.
pub struct ReceivedRequest {
    pub keeps: bool,
    pub parameters: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl ReceivedRequest {
    pub fn get(&self, name: &str) -> &str {
        self.parameters.iter().find(|known| known.0 == name).map_or("", |known| &known.1)
    }
}

fn parameters(mut bytes: &[u8]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let mut length = || {
            let (used, length) = match bytes[0] {
                short @ 0..=127 => (1, usize::from(short)),
                _ => (4, u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize & 0x7fff_ffff),
            };
            bytes = &bytes[used..];
            length
        };
        let lengths = (length(), length());
        let (name, rest) = bytes.split_at(lengths.0);
        let (value, rest) = rest.split_at(lengths.1);
        bytes = rest;
        found.push((String::from_utf8(name.to_vec()).unwrap(), String::from_utf8(value.to_vec()).unwrap()));
    }
    found
}

/// Reads a request to its end.
pub async fn request(peer: &mut Peer) -> ReceivedRequest {
    let mut asked = ReceivedRequest { keeps: false, parameters: Vec::new(), body: Vec::new() };
    let mut pairs = Vec::new();
    loop {
        let header = peer.receive(8).await;
        assert_eq!((header[0], &header[2..4], header[6]), (1, &[0, 1][..], 0));
        let content = peer.receive(usize::from(u16::from_be_bytes([header[4], header[5]]))).await;
        match (header[1], content.is_empty()) {
            (1, false) => {
                assert_eq!(content[..2], [0, 1], "a responder");
                asked.keeps = content[2] == 1;
            }
            (4, false) => pairs.extend(content),
            (4, true) => asked.parameters = parameters(&pairs),
            (5, false) => asked.body.extend(content),
            (5, true) => return asked,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn answers_are_the_same_however_their_records_are_cut() {
    let padded = {
        let mut bytes = record(6, b"Date: d\r\nContent-Type: t\r\n\r");
        bytes[6] = 3;
        bytes.extend(b"...");
        [bytes, record(7, b"noise"), record(6, b"\no"), record(6, b"k"), record(6, b""), record(3, &[0; 8])].concat()
    };
    for bytes in [answered(PLAIN), padded] {
        app("", "").workers(&[1]).seeds(0..1).run(move |world| {
            let bytes = bytes.clone();
            async move {
                let mut s1 = Service::at(S1);
                for cut in 1..bytes.len() {
                    let mut client = Peer::connect(WEIR).await;
                    client.send("GET / HTTP/1.0\r\n\r\n").await;
                    let mut server = s1.accept().await;
                    request(&mut server).await;
                    server.send(&bytes[..cut]).await;
                    sleep(10).await;
                    server.send(&bytes[cut..]).await;
                    let answer = String::from_utf8(client.receive_rest().await).unwrap();
                    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
                    assert!(head.starts_with("HTTP/1.1 200 OK\r\ndate: d\r\ncontent-type: t"), "{cut}: {answer}");
                    assert_eq!(body, "ok", "{cut}");
                    drop(server);
                    sleep(10).await;
                    world.forget_log();
                }
            }
        });
    }
}

#[test]
fn connections_are_kept_where_both_want_that() {
    app("http-reuse always", " option get-values").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut server = s1.accept().await;
        server.expect(b"\x01\x09\0\0\0\x20\0\0\x0d\0FCGI_MAX_REQS\x0f\0FCGI_MPXS_CONNS").await;
        server.send([&b"\x01\x0a\0\0\0\x12\0\0\x0f\x01FCGI_MPXS_CONNS1"[..]].concat()).await;
        for _ in 0..3 {
            request(&mut server).await;
            server.send(answered(PLAIN)).await;
            receive_plain(&mut client).await;
            sleep(10).await;
            client.send(GET).await;
        }
        request(&mut server).await;
        server.send(answered(PLAIN)).await;
        receive_plain(&mut client).await;
        assert_eq!(s1.accepted(), 1);
        world.forget_log();
    });
    app("http-reuse always", "").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut server = s1.accept().await;
        request(&mut server).await;
        // The end of the request follows after its answer: the connection is closed.
        server.send(record(6, b"Date: d\r\nContent-Length: 2\r\n\r\nok")).await;
        client.expect("HTTP/1.1 200 OK\r\ndate: d\r\ncontent-length: 2\r\n\r\nok").await;
        server.expect_end().await;
        world.forget_log();
    });
    app("http-reuse always", " no option keep-conn").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        for _ in 0..2 {
            client.send(GET).await;
            let mut server = s1.accept().await;
            assert!(!request(&mut server).await.keeps);
            server.send(answered(PLAIN)).await;
            receive_plain(&mut client).await;
            server.expect_end().await;
        }
        world.forget_log();
    });
}

#[test]
fn bodies_go_as_records() {
    app("", "").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        let body = vec![b'x'; 200_000];
        client.send(post(body.len())).await;
        let sent = client.send(&body);
        let served = async {
            let mut server = s1.accept().await;
            let asked = request(&mut server).await;
            assert_eq!((asked.get("CONTENT_LENGTH"), asked.body.len()), ("200000", 200_000));
            server.send(answered(PLAIN)).await;
            server
        };
        let (_, mut server) = testkit::both(sent, served).await;
        receive_plain(&mut client).await;
        // A chunked body is waited for, so that its length can be sent.
        client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n").await;
        sleep(10).await;
        client.send("2\r\nde\r\n0\r\n\r\n").await;
        let asked = request(&mut server).await;
        assert_eq!((asked.get("CONTENT_LENGTH"), &asked.body[..]), ("5", &b"abcde"[..]));
        server.send(answered(PLAIN)).await;
        receive_plain(&mut client).await;
        world.forget_log();
    });
}

/// Checks the client's answer to bytes sent by an application, and its log line.
fn sends(bytes: Vec<u8>, closes: bool, status: u16, state: &'static str) {
    sends_to(app("retries 0", ""), bytes.clone(), closes, status, state);
    sends_to(shared_app("retries 0", " option max-reqs 3"), bytes, closes, status, state);
}

fn sends_to(worlds: Worlds, bytes: Vec<u8>, closes: bool, status: u16, state: &'static str) {
    worlds.run(move |world| {
        let bytes = bytes.clone();
        async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            let mut server = s1.accept().await;
            request(&mut server).await;
            server.send(&bytes).await;
            if closes {
                server.close();
            }
            client.expect(page(status)).await;
            let line = format!(r#"l l/s1 0/0/0/-1/# {status} # - - {state} 1/1/0/0/0 0/0 "GET / HTTP/1.1""#);
            world.expect_log(&[&line]).await;
        }
    });
}

#[test]
fn what_is_no_answer_ends_with_a_page() {
    let output = |text: &str| [record(6, text.as_bytes()), record(6, b""), record(3, &[0; 8])].concat();
    sends(Vec::new(), true, 502, "SH--");
    sends(record(6, b"Date"), true, 502, "PH--");
    sends(output("broken\r\n\r\n"), false, 502, "PH--");
    sends(output("Status: 99\r\n\r\n"), false, 502, "PH--");
    sends(output("Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), false, 502, "PH--");
    sends(record(3, &[0; 8]), false, 502, "SH--");
    sends([record(7, b"oops"), record(3, &[0; 8])].concat(), false, 502, "SH--");
    sends(b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), false, 502, "SH--");
    sends(record(3, &[0, 0, 0, 0, 3, 0, 0, 0]), false, 502, "SH--");
    sends(output(&"x".repeat(60_000)), false, 502, "PH--");
    let endless: Vec<u8> = std::iter::repeat_with(|| record(7, &[b'e'; 5000])).take(20).flatten().collect();
    sends(endless, true, 502, "SH--");
}

#[test]
fn an_application_that_has_not_begun_is_asked_again() {
    app("retries 1", "").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut server = s1.accept().await;
        request(&mut server).await;
        server.send(record(3, &[0, 0, 0, 0, 2, 0, 0, 0])).await;
        let mut again = s1.accept().await;
        request(&mut again).await;
        again.send(answered(PLAIN)).await;
        receive_plain(&mut client).await;
        world.forget_log();
    });
}

#[test]
fn an_application_is_told_that_its_client_has_left() {
    // On a link that delivers eight bytes at once.
    app("timeout server 100ms", "").seeds(0..3).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut server = s1.accept().await;
        request(&mut server).await;
        client.close();
        server.expect(record(2, b"")).await;
        server.expect_end().await;
        let mut late = Peer::connect(WEIR).await;
        late.send(GET).await;
        let mut server = s1.accept().await;
        request(&mut server).await;
        server.expect(record(2, b"")).await;
        late.expect(page(504)).await;
        world.forget_log();
    });
}

#[test]
fn standard_error_is_logged_before_the_request() {
    app("", " log-stderr global").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut server = s1.accept().await;
        request(&mut server).await;
        server.send(record(7, b"bad\nthing\n")).await;
        server.send([record(7, b"more"), record(7, b""), answered(PLAIN)].concat()).await;
        receive_plain(&mut client).await;
        world
            .expect_log(&[
                "<131>Jan  * 00:00:00 * bad.thing.",
                "<131>Jan  * 00:00:00 * more",
                r#"l l/s1 0/0/0/#/# 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#,
            ])
            .await;
    });
}

#[test]
fn paths_that_cannot_be_told_are_refused() {
    app("", " path-info ^(/.+)$").run(|world| async move {
        let mut s1 = Service::at(S1);
        for path in ["/a%0ab", "/a%", "/%zz"] {
            let mut client = Peer::connect(WEIR).await;
            client.send(get(path)).await;
            let mut server = s1.accept().await;
            client.expect(page(500)).await;
            server.expect_end().await;
        }
        world.forget_log();
    });
}

/// One record of a request with this identifier.
fn record_of(request: u8, kind: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = record(kind, content);
    bytes[3] = request;
    bytes
}

/// An answer to that request, as [`answered`].
fn answered_to(request: u8, output: &str) -> Vec<u8> {
    [record_of(request, 6, output.as_bytes()), record_of(request, 6, b""), record_of(request, 3, &[0; 8])].concat()
}

/// Reads the records up to the end of a request's body, and returns its identifier and path.
async fn next_request(peer: &mut Peer) -> (u8, String) {
    let mut path = String::new();
    loop {
        let header = peer.receive(8).await;
        let content = peer.receive(usize::from(u16::from_be_bytes([header[4], header[5]]))).await;
        match (header[1], content.is_empty()) {
            (1, false) => assert_eq!(content[..3], [0, 1, 1], "a responder that keeps its connection"),
            (4, false) => {
                let known = parameters(&content);
                path = known.into_iter().find(|known| known.0 == "REQUEST_URI").unwrap().1;
            }
            (5, true) => return (header[3], path),
            (4, true) | (5, false) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// An application with multiplexed connections, with one worker.
fn shared_app(backend: &str, section: &str) -> Worlds {
    app(&format!("http-reuse always\n{backend}"), &format!(" option mpxs-conns\n{section}")).workers(&[1])
}

/// Receives an answer with this body of two bytes.
async fn expect_answer(client: &mut Peer, body: &str) {
    let head = client.receive_head().await.unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    client.expect(body).await;
}

const NAMED: &str = "Date: d\r\nContent-Type: t\r\nContent-Length: 2\r\n\r\n";

#[test]
fn several_requests_go_over_one_connection_and_are_answered_in_any_order() {
    shared_app("", " option max-reqs 3").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut clients = Vec::new();
        let mut server = None;
        for path in ["/a", "/b", "/c"] {
            let mut client = Peer::connect(WEIR).await;
            client.send(get(path)).await;
            if server.is_none() {
                server = Some(s1.accept().await);
            }
            let asked = next_request(server.as_mut().unwrap()).await;
            assert_eq!(asked.1, path);
            clients.push((client, asked.0));
        }
        let mut server = server.unwrap();
        let numbers: Vec<u8> = clients.iter().map(|client| client.1).collect();
        assert_eq!(numbers, [1, 2, 3]);
        // A request beyond the application's limit gets a connection of its own.
        let mut fourth = Peer::connect(WEIR).await;
        fourth.send(get("/d")).await;
        let mut other = s1.accept().await;
        assert_eq!(next_request(&mut other).await, (1, "/d".to_owned()));
        other.send(answered_to(1, &format!("{NAMED}dd"))).await;
        expect_answer(&mut fourth, "dd").await;
        // Heads and bodies of all of them are interleaved.
        let cut = NAMED.len() / 2;
        for number in [3, 1, 2] {
            server.send(record_of(number, 6, &NAMED.as_bytes()[..cut])).await;
        }
        for number in [2, 3, 1] {
            let rest = format!("{}{number}{number}", &NAMED[cut..]);
            server.send([record_of(number, 6, rest.as_bytes()), record_of(number, 3, &[0; 8])].concat()).await;
        }
        for (client, number) in &mut clients {
            expect_answer(client, &format!("{number}{number}")).await;
        }
        // Its identifier is free again.
        clients[1].0.send(get("/e")).await;
        let (number, path) = next_request(&mut server).await;
        assert_eq!(path, "/e");
        server.send(answered_to(number, &format!("{NAMED}ee"))).await;
        expect_answer(&mut clients[1].0, "ee").await;
        assert_eq!(s1.accepted(), 2);
        world.forget_log();
    });
}

#[test]
fn a_connection_carries_one_request_until_the_application_permits_more() {
    // The application's values take precedence; the option applies if it sends none.
    let says = |answer: &str| format!("\x0d\x01FCGI_MAX_REQS2{answer}");
    let (yes, no) = (says("\x0f\x01FCGI_MPXS_CONNS1"), says("\x0f\x01FCGI_MPXS_CONNS0"));
    let option = " option mpxs-conns\n option get-values\n option max-reqs 10";
    let rows = [
        (option, &yes, true),
        (option, &no, false),
        (option, &says(""), true),
        (" option get-values", &yes, true),
        (" option get-values", &no, false),
        (" option get-values", &says(""), false),
    ];
    for (section, values, shared) in rows {
        let values = values.clone();
        app("http-reuse always", section).workers(&[1]).run(move |world| {
            let values = values.clone();
            async move {
                let mut s1 = Service::at(S1);
                let (mut first, mut second) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
                first.send(get("/a")).await;
                let mut server = s1.accept().await;
                server.expect(b"\x01\x09\0\0\0\x20\0\0\x0d\0FCGI_MAX_REQS\x0f\0FCGI_MPXS_CONNS").await;
                assert_eq!(next_request(&mut server).await.1, "/a");
                server.send(record_of(0, 10, values.as_bytes())).await;
                sleep(10).await;
                second.send(get("/b")).await;
                if shared {
                    assert_eq!(next_request(&mut server).await, (2, "/b".to_owned()));
                    server.send(answered_to(2, &format!("{NAMED}bb"))).await;
                    expect_answer(&mut second, "bb").await;
                    assert_eq!(s1.accepted(), 1);
                } else {
                    let mut other = s1.accept().await;
                    other.expect(b"\x01\x09\0\0\0\x20\0\0\x0d\0FCGI_MAX_REQS\x0f\0FCGI_MPXS_CONNS").await;
                    assert_eq!(next_request(&mut other).await, (1, "/b".to_owned()));
                    other.send(answered_to(1, &format!("{NAMED}bb"))).await;
                    expect_answer(&mut second, "bb").await;
                }
                server.send(answered_to(1, &format!("{NAMED}aa"))).await;
                expect_answer(&mut first, "aa").await;
                world.forget_log();
            }
        });
    }
}

#[test]
fn a_client_that_does_not_read_holds_others_up_for_a_second() {
    shared_app("timeout client 1m\ntimeout server 1m", " option max-reqs 10").run(|world| async move {
        let mut s1 = Service::at(S1);
        let (mut slow, mut other) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        slow.send(get("/slow")).await;
        let mut server = s1.accept().await;
        assert_eq!(next_request(&mut server).await.0, 1);
        other.send(get("/other")).await;
        assert_eq!(next_request(&mut server).await.0, 2);
        server.send(record_of(1, 6, b"Date: d\r\n\r\n")).await;
        let flood = record_of(1, 6, &[b'x'; 60_000]);
        let flooding = async {
            // More than sockets and buffers hold.
            for _ in 0..200 {
                server.send(&flood).await;
            }
            server.send(answered_to(2, &format!("{NAMED}ok"))).await;
            // The other request is aborted.
            server.expect(record_of(1, 2, b"")).await;
            server.send(record_of(1, 3, &[0; 8])).await;
        };
        let ((), ()) = testkit::both(flooding, expect_answer(&mut other, "ok")).await;
        // The connection serves other requests.
        other.send(get("/next")).await;
        let (number, _) = next_request(&mut server).await;
        server.send(answered_to(number, &format!("{NAMED}no"))).await;
        expect_answer(&mut other, "no").await;
        slow.receive_rest().await;
        assert_eq!(s1.accepted(), 1);
        world.forget_log();
    });
}

#[test]
fn a_request_that_is_given_up_keeps_its_number_until_the_application_confirms() {
    shared_app("", " option max-reqs 3").run(|world| async move {
        let mut s1 = Service::at(S1);
        let (mut first, mut second) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        first.send(get("/a")).await;
        let mut server = s1.accept().await;
        assert_eq!(next_request(&mut server).await.0, 1);
        second.send(get("/b")).await;
        assert_eq!(next_request(&mut server).await.0, 2);
        server.send(record_of(1, 6, b"Date: d\r\n\r\nbegun")).await;
        first.receive_head().await.unwrap();
        first.close();
        server.expect(record_of(1, 2, b"")).await;
        let mut third = Peer::connect(WEIR).await;
        third.send(get("/c")).await;
        assert_eq!(next_request(&mut server).await, (3, "/c".to_owned()));
        // Output of an aborted request is dropped.
        server.send([record_of(1, 6, b"late"), record_of(1, 3, &[0; 8])].concat()).await;
        server.send([answered_to(3, &format!("{NAMED}cc")), answered_to(2, &format!("{NAMED}bb"))].concat()).await;
        expect_answer(&mut third, "cc").await;
        expect_answer(&mut second, "bb").await;
        third.send(get("/d")).await;
        assert_eq!(next_request(&mut server).await, (1, "/d".to_owned()));
        // Output of a request that is not in progress ends the connection; nothing of this one's answer was received.
        server.send(record_of(2, 6, b"stray")).await;
        let mut again = s1.accept().await;
        server.expect_end().await;
        assert_eq!(next_request(&mut again).await, (1, "/d".to_owned()));
        again.send(answered_to(1, &format!("{NAMED}dd"))).await;
        expect_answer(&mut third, "dd").await;
        world.forget_log();
    });
}

#[test]
fn checks_ask_an_application_as_requests_do() {
    checks_ask("", "");
}

/// A check of another port uses the protocol of its rules.
#[test]
fn rules_of_checks_ask_an_application() {
    checks_ask("http-check connect proto fcgi\n", "port 80");
}

fn checks_ask(rule: &str, port: &str) {
    let servers = format!(
        "option httpchk GET /ping?x\n {rule} http-check send hdr host h\n http-check expect status 203\n use-fcgi-app a\n \
         server s1 10.0.1.1:80 proto fcgi check {port} inter 1s fall 1 rise 1 init-state fully-up"
    );
    let text = format!("listen l\n bind 10.0.0.1:80\n {servers}\nfcgi-app a\n docroot /w\n index i.php");
    config(&text).workers(&[1]).run(|world| async move {
        let mut s1 = Service::at(S1);
        let is_up = || world.shared().live.proxies[0].status(0).unwrap().up;
        let rows = [
            (answered("Status: 203\r\n\r\nbody"), true),
            (answered("Status: 500\r\n\r\n"), false),
            (answered("Status: 203 x\r\nContent-Type: t\r\n\r\n"), true),
            (answered("HTTP/1.1 203 x\r\n\r\n"), false),
            (answered("Status: 203\r\n\r\n"), true),
            (record(3, &[0, 0, 0, 0, 2, 0, 0, 0]), false),
            (answered("Status: 203\r\n\r\n"), true),
            (b"HTTP/1.1 203 x\r\n\r\n".to_vec(), false),
        ];
        for (bytes, passes) in rows {
            let mut server = s1.accept().await;
            let asked = request(&mut server).await;
            assert!(!asked.keeps);
            let names =
                ["REQUEST_METHOD", "REQUEST_URI", "QUERY_STRING", "SCRIPT_FILENAME", "HTTP_HOST", "CONTENT_LENGTH"];
            let told: Vec<_> = names.iter().map(|name| asked.get(name)).collect();
            assert_eq!(told, ["GET", "/ping?x", "x", "/w/ping", "h", "0"]);
            server.send(&bytes).await;
            sleep(100).await;
            assert_eq!(is_up(), passes, "{}", String::from_utf8_lossy(&bytes));
        }
        world.forget_log();
    });
}
