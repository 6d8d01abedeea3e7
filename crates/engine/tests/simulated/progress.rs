//! Which bytes restart a timeout: a peer that sends a piece of one unit now and then is late as one that sends nothing, and one
//! that sends payload is not. Each row is a place that waits for more bytes of a unit; the ends are those that HAProxy 3.5 has.

use testkit::{Peer, Service, Stopwatch, sleep};
use wire::h2::{ErrorCode, Kind, flag, push_frame};

use crate::fcgi::{app, record};
use crate::messages::*;
use crate::parts::{End, Part, frame};
use crate::world::*;

/// Milliseconds between two pieces; a timeout is four of them.
const EVERY: u64 = 50;

/// Pieces of which each row has this many, unless it says how its message ends.
const PIECES: usize = 20;

/// Parts of the line that the log gets: the timers, the status and the state.
type Ends = [&'static str; 3];

/// What a peer sends at once, and what it sends piece by piece after it.
#[derive(Clone)]
struct Drip {
    name: &'static str,
    first: Vec<u8>,
    pieces: Vec<Vec<u8>>,
    /// How the log says that it has ended.
    ends: Ends,
}

fn bytes(text: impl AsRef<[u8]>) -> Vec<Vec<u8>> {
    text.as_ref().iter().map(|byte| vec![*byte]).collect()
}

/// The payload of a chunk of sixteen bytes, and the end of the body at once.
fn payload() -> Vec<Vec<u8>> {
    [bytes([b'a'; 16]), vec![b"\r\n0\r\n\r\n".to_vec()]].concat()
}

/// A piece again and again.
fn often(piece: impl AsRef<[u8]>) -> Vec<Vec<u8>> {
    vec![piece.as_ref().to_vec(); PIECES]
}

fn drip(name: &'static str, first: impl AsRef<[u8]>, pieces: Vec<Vec<u8>>, ends: Ends) -> Drip {
    Drip { name, first: first.as_ref().to_vec(), pieces, ends }
}

impl Drip {
    async fn send(&self, peer: &mut Peer) {
        if !self.first.is_empty() && !peer.try_send(&self.first).await {
            return;
        }
        for piece in &self.pieces {
            sleep(EVERY).await;
            if !peer.try_send(piece).await {
                return;
            }
        }
    }

    async fn ends(&self, world: &World) {
        let lines = world.lines(1).await;
        let as_expected = self.ends.iter().all(|part| lines[0].contains(part));
        assert!(as_expected, "{}: {lines:?}, not {:?}", self.name, self.ends);
    }
}

/// An answer of this process.
const DONE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

const NO_HEAD: Ends = ["/-1/20", " 504 ", " sH-- "];
const NO_DATA: Ends = ["/0/20", " 200 ", " sD-- "];
const WHOLE: Ends = ["l l/s1 ", " 200 ", " ---- "];
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// What a server of HTTP/1 sends slowly.
fn server_rows() -> Vec<Drip> {
    let chunked = |more: &str| format!("{CHUNKED}{more}");
    vec![
        drip("status line", "", bytes("HTTP/1.1 200 OK and so on"), NO_HEAD),
        drip("fields of a head", "HTTP/1.1 200 OK\r\n", often("a: b\r\n"), NO_HEAD),
        drip("interim head", "", bytes("HTTP/1.1 103 Early Hints\r\nLink"), NO_HEAD),
        drip("chunk extension", chunked("2\r\nok\r\n"), bytes("1;aaaaaaaaaaaaaaaaaaaaaaaa"), NO_DATA),
        drip("chunk size", chunked("2\r\nok\r\n"), bytes("00000000000000"), NO_DATA),
        drip("trailer", chunked("2\r\nok\r\n0\r\n"), bytes("x: aaaaaaaaaaaaaaaaaaaaaaa"), NO_DATA),
        drip("trailers", chunked("2\r\nok\r\n0\r\n"), often("a: b\r\n"), NO_DATA),
        drip("chunk payload", chunked("10\r\n"), payload(), WHOLE),
        drip("chunks", chunked(""), [often("1\r\na\r\n"), vec![b"0\r\n\r\n".to_vec()]].concat(), WHOLE),
        drip("length", "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n", often("a"), WHOLE),
    ]
}

#[test]
fn a_server_makes_progress_with_whole_heads_and_payload_alone() {
    for row in server_rows() {
        let row = &row;
        listen("timeout server 200ms\n server s1 10.0.1.1:80").workers(&[1]).seeds(0..2).run(|world| {
            let row = row.clone();
            async move {
                let (_client, mut server, _s1) = asked().await;
                row.send(&mut server).await;
                row.ends(&world).await;
            }
        });
    }
}

/// A record of FastCGI without its last bytes, and these.
fn cut(record: Vec<u8>, at: usize) -> (Vec<u8>, Vec<Vec<u8>>) {
    (record[..at].to_vec(), bytes(&record[at..]))
}

#[test]
fn a_fastcgi_application_makes_progress_with_whole_records_of_payload() {
    const HEAD: &str = "Status: 200 OK\r\n\r\n";
    let pieces = |text: &str| text.bytes().map(|byte| record(6, &[byte])).collect::<Vec<_>>();
    let (begun, rest) = cut(record(6, &[b'a'; 30]), 10);
    let whole = [often(record(6, b"a")), vec![record(6, b""), record(3, &[0; 8])]].concat();
    let rows = [
        drip("head in records", "", pieces("Status: 200 OK\r\nX: aaaaaaa"), NO_HEAD),
        drip("record of a head", "", bytes(record(6, HEAD.as_bytes())), NO_HEAD),
        drip("standard error", "", often(record(7, b"a\n")), NO_HEAD),
        drip("record of a body", [record(6, HEAD.as_bytes()), begun].concat(), rest, NO_DATA),
        drip("standard error in a body", record(6, HEAD.as_bytes()), often(record(7, b"a\n")), NO_DATA),
        drip("records of a body", record(6, HEAD.as_bytes()), whole, WHOLE),
    ];
    for option in ["", " option mpxs-conns"] {
        for row in &rows {
            app(" timeout server 200ms", option).workers(&[1]).seeds(0..2).run(|world| {
                let row = row.clone();
                async move {
                    let mut s1 = Service::at(S1);
                    let mut client = Peer::connect(WEIR).await;
                    client.send(GET).await;
                    let mut server = s1.accept().await;
                    server.receive_some().await;
                    row.send(&mut server).await;
                    row.ends(&world).await;
                }
            });
        }
    }
}

fn h2(kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    push_frame(&mut out, kind, flags, stream, payload);
    out
}

#[test]
fn a_server_of_http2_makes_progress_with_whole_frames_of_payload() {
    let head = frame(Part::Head, 1, "HTTP/1.1 200 OK\r\n\r\n");
    let (begun, rest) = cut(h2(Kind::Data, 0, 1, &[b'a'; 30]), 12);
    let long = frame(Part::Head, 1, "HTTP/1.1 200 OK\r\nx: aaaaaaaaaaaaaaaa\r\n\r\n");
    let ping = h2(Kind::Ping, 0, 0, &[1; 8]);
    let whole = [often(h2(Kind::Data, 0, 1, b"a")), vec![frame(Part::End, 1, "")]].concat();
    let rows = [
        drip("head", "", bytes(&long[..20]), NO_HEAD),
        drip("pings before the head", "", often(&ping), NO_HEAD),
        drip("pings in the body", &head, often(&ping), NO_DATA),
        drip("empty frames of payload", &head, often(h2(Kind::Data, 0, 1, b"")), NO_DATA),
        drip("padding", &head, often(h2(Kind::Data, flag::PADDED, 1, b"\x03abc")), NO_DATA),
        drip("frame of payload", [head.clone(), begun].concat(), rest, NO_DATA),
        drip("frames of payload", &head, whole, WHOLE),
    ];
    for row in &rows {
        listen("timeout server 200ms\n server s1 10.0.1.1:80 proto h2").workers(&[1]).seeds(0..2).run(|world| {
            let row = row.clone();
            async move {
                let mut s1 = Service::at(S1);
                let mut client = Peer::connect(WEIR).await;
                client.send(GET).await;
                let mut origin = End::accept(&mut s1).await;
                origin.expect_request(GET_AT_SERVER, b"").await;
                row.send(&mut origin.peer).await;
                row.ends(&world).await;
            }
        });
    }
}

const NO_BODY: Ends = ["/-1/20", " 400 ", " cH-- "];
const NOT_BUFFERED: Ends = ["/-1/20", " 408 ", " cR-- "];
const POST_CHUNKED: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

/// What a client of HTTP/1 sends slowly of a body.
fn client_rows(ends: Ends) -> Vec<Drip> {
    let chunked = |more: &str| format!("{POST_CHUNKED}{more}");
    vec![
        drip("chunk extension", chunked("2\r\nok\r\n"), bytes("1;aaaaaaaaaaaaaaaaaaaaaaaa"), ends),
        drip("chunk size", chunked("2\r\nok\r\n"), bytes("00000000000000"), ends),
        drip("trailers", chunked("2\r\nok\r\n0\r\n"), often("a: b\r\n"), ends),
        drip("chunk payload", chunked("10\r\n"), payload(), WHOLE),
        drip("length", post(20), often("a"), WHOLE),
    ]
}

/// Answers once all of a request has come.
async fn answer_whole(mut peer: Peer, _: usize) {
    let mut seen = Vec::new();
    loop {
        let (more, open) = peer.try_receive_up_to(1).await;
        seen.extend(more);
        if seen.ends_with(b"\r\n0\r\n\r\n") || seen.ends_with(&[b'a'; 20]) {
            peer.send(OK).await;
        }
        if !open {
            return;
        }
    }
}

#[test]
fn a_client_makes_progress_with_payload_alone() {
    let waits = "http-request wait-for-body time 2s\n";
    for (rules, ends) in [("", NO_BODY), (waits, NOT_BUFFERED), ("option http-buffer-request\n", NOT_BUFFERED)] {
        for row in client_rows(ends) {
            let row = &row;
            let text = format!("timeout http-request 3s\n timeout client 200ms\n {rules} server s1 10.0.1.1:80");
            listen(&text).workers(&[1]).seeds(0..2).run(|world| {
                let row = row.clone();
                async move {
                    Service::at(S1).serve(&world.scope, answer_whole);
                    let mut client = Peer::connect(WEIR).await;
                    row.send(&mut client).await;
                    row.ends(&world).await;
                }
            });
        }
    }
}

#[test]
fn a_client_of_http2_makes_progress_with_whole_frames_of_payload() {
    let head = frame(Part::Head, 1, post(20));
    let (begun, rest) = cut(h2(Kind::Data, 0, 1, &[b'a'; 20]), 12);
    let rows = [
        drip("pings", "", often(h2(Kind::Ping, 0, 0, &[1; 8])), NO_BODY),
        drip("windows", "", often(h2(Kind::WindowUpdate, 0, 1, &[0, 0, 0, 1])), NO_BODY),
        drip("empty frames", "", often(h2(Kind::Data, 0, 1, b"")), NO_BODY),
        drip("frame of payload", begun, rest, NO_BODY),
        drip("frames of payload", "", often(h2(Kind::Data, 0, 1, b"a")), WHOLE),
    ];
    for row in &rows {
        listen("timeout client 200ms\n server s1 10.0.1.1:80").workers(&[1]).seeds(0..2).run(|world| {
            let (row, head) = (row.clone(), head.clone());
            async move {
                Service::at(S1).serve(&world.scope, answer_whole);
                let mut client = End::connect().await;
                client.peer.send(&head).await;
                row.send(&mut client.peer).await;
                row.ends(&world).await;
            }
        });
    }
}

/// The rest of an answered request is read while payload comes: without any the connection ends at the timeout, not later.
#[test]
fn the_rest_of_an_answered_request_has_to_come() {
    for row in client_rows(WHOLE).into_iter().take(3) {
        let row = &row;
        listen("timeout client 200ms\n http-request return status 200").workers(&[1]).run(|_| {
            let row = row.clone();
            async move {
                let mut client = Peer::connect(WEIR).await;
                client.send(&row.first).await;
                client.expect(DONE).await;
                let watch = Stopwatch::start();
                for piece in row.pieces.iter().take(8) {
                    sleep(EVERY).await;
                    client.try_send(piece).await;
                }
                client.expect_end().await;
                assert!(watch.elapsed().as_millis() < 500, "{}: {watch:?}", row.name);
            }
        });
    }
}

/// A slow head is one that has not come in time, which `retry-on` may list.
#[test]
fn a_head_in_pieces_is_asked_for_again() {
    let retries = "timeout server 200ms\n retries 1\n retry-on response-timeout\n server s1 10.0.1.1:80";
    listen(retries).workers(&[1]).run(|world| async move {
        let (mut client, mut server, mut s1) = asked().await;
        drip("head", "", bytes("HTTP/1.1 200"), WHOLE).send(&mut server).await;
        let mut other = s1.accept().await;
        other.expect(GET_AT_SERVER).await;
        other.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        let lines = world.lines(1).await;
        assert!(lines[0].contains(" 200 ") && lines[0].contains("/1 0/0 "), "{lines:?}");
    });
}

/// A server that takes nothing more of a request has failed, whatever it sends meanwhile.
#[test]
fn a_server_has_to_take_what_it_is_sent() {
    for (first, pieces, ends) in [
        ("", Vec::new(), ["/-1/", " 502 ", " SH-- "]),
        ("HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n", often("a"), ["/0/", " 200 ", " sD-- "]),
    ] {
        let row = &drip("upload", first, pieces, ends);
        listen("timeout server 200ms\n server s1 10.0.1.1:80").workers(&[1]).seeds(0..2).run(|world| {
            let row = row.clone();
            async move {
                let mut s1 = Service::at(S1);
                let mut client = Peer::connect(WEIR).await;
                client.send(post(30_000_000)).await;
                let mut server = s1.accept().await;
                server.expect(post_at_server(30_000_000)).await;
                world.scope.spawn(async move {
                    client.try_send(vec![b'x'; 3_000_000]).await;
                    sleep(5_000).await;
                });
                row.send(&mut server).await;
                row.ends(&world).await;
            }
        });
    }
}

/// A request that its server has not begun with goes out again with its body, as long as that is here; else the client of HTTP/2
/// gets to know that it may send it again (RFC 9113, section 8.7).
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

/// A call whose body has not ended is sent again with what has come of it, and goes on.
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
