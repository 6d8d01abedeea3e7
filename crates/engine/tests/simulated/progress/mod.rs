//! Tests of the bytes that restart a timeout: a peer that sends a piece of one unit now and then times out like one
//! that sends nothing, and one that sends payload does not. Each row of the table is a place that waits for more bytes
//! of a unit, with HAProxy 3.5's behaviour there (`bench/progress.py`).

mod table;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use conn::client::{Destination, Exchange, Message, Timeouts};
use rt::net::Address;
use testkit::{Peer, Service, Stopwatch, sleep};
use wire::h2::{ErrorCode, Kind};

use crate::messages::*;
use crate::parts::{End, Part, frame};
use crate::raw_tls;
use crate::world::*;
use table::{Row, is_secure, places, rows};

/// Milliseconds between two pieces; a timeout is four of them.
const EVERY: u64 = 50;

type Differences = Rc<RefCell<Vec<String>>>;

/// The lines of a place's section, and the options of its server.
fn lines(place: &str) -> (&'static str, &'static str) {
    const BODY: &str = "timeout http-request 9s\n timeout client 200ms";
    const WAITS: &str = "timeout http-request 9s\n timeout client 200ms\n http-request wait-for-body time 9s";
    const SERVER: &str = "timeout server 200ms";
    const CONNECT: &str = "timeout connect 200ms\n retries 0";
    match place {
        "server" => (SERVER, ""),
        "server/fcgi" => ("timeout server 200ms\n use-fcgi-app a", "proto fcgi"),
        "server/fcgi/mpxs" => ("timeout server 200ms\n use-fcgi-app b", "proto fcgi"),
        "server/h2" => (SERVER, "proto h2"),
        "server/tls" => (SERVER, "ssl verify none alpn http/1.1"),
        "server/tunnel/tls" => ("mode tcp\n timeout server 200ms", "ssl verify none"),
        "connecting/tls" => (CONNECT, "ssl verify none"),
        "connecting/socks4" => (CONNECT, "socks4 10.0.1.1:80"),
        "client" | "client/tls" | "client/tls/h2" => (BODY, ""),
        "client/waits" | "client/tls/waits" => (WAITS, ""),
        "client/buffers" => ("timeout http-request 9s\n timeout client 200ms\n option http-buffer-request", ""),
        "client/h2" | "head/client" => ("timeout client 200ms", ""),
        "client/tunnel/tls" => ("mode tcp\n timeout client 200ms", ""),
        "head" | "head/tls" => ("timeout http-request 200ms", ""),
        "idle/tls" => ("timeout http-keep-alive 200ms\n http-request return status 200", ""),
        "accepting/tls" | "accepting/proxy" | "accepting/netscaler" => ("timeout client-hs 200ms", ""),
        place => panic!("{place}"),
    }
}

/// A section with the lines of a place.
fn worlds(place: &str) -> Worlds {
    let (lines, server) = lines(place);
    let bind = match place {
        "accepting/proxy" => "accept-proxy",
        "accepting/netscaler" => "accept-netscaler-cip 77",
        "accepting/tls" => "ssl crt a.pem",
        place if is_secure(place) && !place.starts_with("server/") => "ssl crt a.pem alpn h2,http/1.1",
        _ => "",
    };
    config(&format!(
        "listen l\n bind {WEIR} {bind}\n log-format \"R %f %ST %tsc %Ta %B\"\n {lines}\n server s1 {S1} {server}\n\
         fcgi-app a\n docroot /w\nfcgi-app b\n docroot /w\n option mpxs-conns\n"
    ))
    .workers(&[1])
    .seeds(0..2)
}

/// Answers after a whole request was received.
async fn answer_whole(mut peer: Peer, _: usize) {
    let mut seen = Vec::new();
    loop {
        let (more, open) = peer.try_receive_up_to(1).await;
        seen.extend(more);
        if seen.ends_with(b"\r\n0\r\n\r\n") || seen.ends_with(&[b'a'; 20]) {
            peer.try_send(OK).await;
        }
        if !open {
            return;
        }
    }
}

async fn by_server(world: &World, row: &Row, differences: &Differences) {
    let mut s1 = Service::at(S1);
    let mut client = Peer::connect(WEIR).await;
    client.send(if row.place.contains("tunnel") { "hello" } else { GET }).await;
    let mut server = s1.accept().await;
    let sealer = if is_secure(row.place) {
        Some(raw_tls::accept(&mut server).await)
    } else {
        server.receive_some().await;
        None
    };
    row.send(&mut server, sealer).await;
    let difference = row.difference(world).await;
    differences.borrow_mut().extend(difference);
}

async fn by_client(world: &World, row: &Row, differences: &Differences) {
    Service::at(S1).serve(&world.scope, answer_whole);
    let mut client = Peer::connect(WEIR).await;
    let alpn: &[&str] = if row.place.ends_with("/h2") { &["h2"] } else { &[] };
    let sealer = if is_secure(row.place) { Some(raw_tls::connect(&mut client, alpn).await) } else { None };
    let watch = Stopwatch::start();
    let ended = row.send(&mut client, sealer).await;
    if row.place == "idle/tls" || row.place.starts_with("accepting/") {
        assert!(ended && watch.elapsed().as_millis() < 320, "{}, {}: {watch:?}", row.place, row.name);
    }
    let difference = row.difference(world).await;
    differences.borrow_mut().extend(difference);
}

#[test]
fn timeouts_restart_as_recorded() {
    let differences = Rc::new(RefCell::new(Vec::new()));
    for place in places().into_iter().filter(|place| *place != "process") {
        for row in rows(place) {
            let row = &row;
            worlds(place).run(|world| {
                let (row, differences) = (row.clone(), Rc::clone(&differences));
                async move {
                    // Both ends stay open until the log line is written.
                    match row.place.starts_with("server") || row.place.starts_with("connecting") {
                        true => by_server(&world, &row, &differences).await,
                        false => by_client(&world, &row, &differences).await,
                    }
                    world.forget_log();
                }
            });
        }
    }
    let differences = differences.take();
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}

/// Requests of the process itself time out under the same conditions as those of clients.
#[test]
fn answers_to_the_process_restart_its_timeout_as_recorded() {
    for row in rows("process") {
        let row = &row;
        listen("server s1 10.0.1.2:80").workers(&[1]).seeds(0..2).run(|world| {
            let row = row.clone();
            async move {
                let mut s1 = Service::at(S1);
                let answered = row.clone();
                world.scope.spawn(async move {
                    let mut server = s1.accept().await;
                    server.receive_some().await;
                    answered.send(&mut server, None).await;
                    sleep(1_000).await;
                });
                let to = Destination { address: Address::Inet(S1.parse().unwrap()), tls: None };
                let message = Message::new("GET", "/", "a", &[], None).unwrap();
                let patience = Timeouts::Silence(Duration::from_millis(200));
                let watch = Stopwatch::start();
                let begun = Exchange::begin(&to, &message, rt::now() + Duration::from_secs(9), patience).await;
                let (mut status, mut body) = (0, Vec::new());
                if let Ok(mut exchange) = begun {
                    status = exchange.head().status();
                    while matches!(exchange.next(&mut body).await, Ok(true)) {}
                }
                // Without an answer HAProxy makes one with an error page.
                let length = if status == 0 { 92 } else { body.len() };
                let what = format!("{}: {watch:?}", row.name);
                assert_eq!(format!("{status} {length}"), row.said, "{what}");
                assert_eq!(watch.elapsed().as_millis() < 320, row.is_late, "{what}");
            }
        });
    }
}

/// The rest of an answered request is read while payload arrives: without any the connection ends at the timeout, not
/// later.
#[test]
fn the_rest_of_an_answered_request_has_to_come() {
    for row in rows("client").into_iter().filter(|row| row.is_late) {
        let row = &row;
        listen("timeout client 200ms\n http-request return status 200").workers(&[1]).run(|_| {
            let row = row.clone();
            async move {
                let mut client = Peer::connect(WEIR).await;
                let watch = Stopwatch::start();
                assert!(row.send(&mut client, None).await, "{}", row.name);
                assert!(watch.elapsed().as_millis() < 500, "{}: {watch:?}", row.name);
            }
        });
    }
}

/// A slow head is a response timeout, which can be listed in `retry-on`.
#[test]
fn a_head_in_pieces_is_asked_for_again() {
    let retries = "timeout server 200ms\n retries 1\n retry-on response-timeout\n server s1 10.0.1.1:80";
    listen(retries).workers(&[1]).run(|world| async move {
        let (mut client, mut server, mut s1) = asked().await;
        for byte in "HTTP/1.1 200".bytes() {
            sleep(EVERY).await;
            if !server.try_send([byte]).await {
                break;
            }
        }
        let mut other = s1.accept().await;
        other.expect(GET_AT_SERVER).await;
        other.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        let lines = world.lines(1).await;
        assert!(lines[0].contains(" 200 ") && lines[0].contains("/1 0/0 "), "{lines:?}");
    });
}

/// A server that stops reading a request has failed, whatever it sends in that time.
#[test]
fn a_server_has_to_take_what_it_is_sent() {
    for (first, pieces, ends) in [
        ("", 0, ["/-1/", " 502 ", " SH-- "]),
        ("HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n", 20, ["/0/", " 200 ", " sD-- "]),
    ] {
        let server = "timeout server 200ms\n server s1 10.0.1.1:80";
        listen(server).workers(&[1]).seeds(0..2).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(post(30_000_000)).await;
            let mut server = s1.accept().await;
            server.expect(post_at_server(30_000_000)).await;
            world.scope.spawn(async move {
                client.try_send(vec![b'x'; 3_000_000]).await;
                sleep(5_000).await;
            });
            server.try_send(first).await;
            for _ in 0..pieces {
                sleep(EVERY).await;
                server.try_send("a").await;
            }
            let lines = world.lines(1).await;
            assert!(ends.iter().all(|part| lines[0].contains(part)), "{lines:?}, not {ends:?}");
        });
    }
}

/// A request that its server has not begun is sent again with its body, if that is still recorded; otherwise an HTTP/2
/// client gets REFUSED_STREAM, and may send it again (RFC 9113, section 8.7).
#[test]
fn a_refused_request_with_a_body_is_sent_again_or_refused() {
    for (size, goes_away) in [(100, true), (100, false), (5_000, false), (60_000, true), (60_000, false)] {
        listen("server s1 10.0.1.1:80 proto h2").workers(&[1]).seeds(0..2).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let body = testkit::text(size, 1);
            let mut client = End::connect().await;
            client.post(1, &post(size)).await;
            client.upload(1, &body).await;
            let mut origin = End::accept(&mut s1).await;
            let stream = origin.expect_request(&post_at_server(size), &body).await;
            match goes_away {
                true => origin.frame(Kind::GoAway, 0, 0, &[0; 8]).await,
                false => origin.frame(Kind::RstStream, 0, stream, &ErrorCode::RefusedStream.bytes()).await,
            }
            if size > 16_384 {
                while client.messages.get(&1).is_none_or(|message| message.end.is_none()) {
                    client.step().await;
                }
                assert_eq!(client.messages[&1].end, Some(Part::Reset));
                assert!(client.refused);
                let lines = world.lines(1).await;
                assert!(lines[0].contains(" 502 ") && lines[0].contains(" SH-- "), "{lines:?}");
                return;
            }
            let mut other = End::accept(&mut s1).await;
            let stream = other.expect_request(&post_at_server(size), &body).await;
            other.answer(stream, b"ok").await;
            client.expect(1, "HTTP/1.1 200", "ok").await;
            let lines = world.lines(1).await;
            assert!(lines[0].contains(" 200 ") && lines[0].contains("/1 0/0 "), "{lines:?}");
        });
    }
}

/// A call whose body has not ended is sent again with the part received, and continues.
#[test]
fn a_refused_call_goes_on() {
    const CALL: &str = "POST / HTTP/1.1\r\nHost: a\r\ncontent-type: application/grpc\r\nte: trailers\r\n\r\n";
    let at_server = CALL.replace("Host", "host");
    let at_server = &at_server;
    listen("server s1 10.0.1.1:80 proto h2").workers(&[1]).seeds(0..4).run(|_| {
        let at_server = at_server.clone();
        async move {
            let mut s1 = Service::at(S1);
            let mut client = End::connect().await;
            client.post(1, CALL).await;
            client.peer.send(frame(Part::Data, 1, "question ")).await;
            let mut origin = End::accept(&mut s1).await;
            let stream = origin.expect_head(&at_server).await;
            origin.frame(Kind::RstStream, 0, stream, &ErrorCode::RefusedStream.bytes()).await;
            let mut other = End::accept(&mut s1).await;
            let stream = other.expect_head(&at_server).await;
            client.upload(1, b"and more").await;
            while other.messages[&stream].end.is_none() {
                other.step().await;
            }
            assert_eq!(other.messages[&stream].payload, b"question and more");
            other.answer(stream, b"ok").await;
            client.expect(1, "HTTP/1.1 200", "ok").await;
        }
    });
}
