//! The origin on `rt`'s simulator: the real code, with a virtual clock and network, and exact times.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::cell::Cell;
use std::rc::Rc;

use rt::Signal;
use rt::net::{Address, BindOptions, ListeningSocket};
use rt::sim::{Options, Simulation};
use testkit::{Peer, Stopwatch, both, sleep};
use weir_tools::origin::offload::Protocol;
use weir_tools::origin::serve::{Listening, Service};
use wire::{fcgi, spop};

const AT: &str = "10.0.0.1:80";
const SEEDS: u64 = 20;

/// Runs a script beside an origin under many seeds.
fn with_origin<F: Future<Output = ()> + 'static>(workers: usize, most: usize, script: impl Fn() -> F) {
    with(Protocol::Http, (workers, most), script);
}

/// Like [`with_origin`], with the protocol of its address.
fn with<F: Future<Output = ()> + 'static>(protocol: Protocol, (workers, most): (usize, usize), script: impl Fn() -> F) {
    for seed in 0..SEEDS {
        let simulation = Simulation::new(Options { seed, workers, ..Options::default() });
        let main = simulation.enter(|| {
            let address = Address::Inet(AT.parse().unwrap());
            let socket = ListeningSocket::bind(&address, &BindOptions::default()).unwrap();
            let sockets = vec![Listening { protocol, ..socket.into() }];
            Service {
                sockets,
                quic: Vec::new(),
                datagrams: Vec::new(),
                workers,
                most,
                line: None,
                starter: None,
                at_end: || {},
            }
            .into_main()
        });
        simulation.run(main, script());
    }
}

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: a.example\r\n\r\n")
}

/// Receives the next response, of that length.
async fn answer(peer: &mut Peer, length: usize) -> String {
    let head = peer.receive_head().await.unwrap();
    assert!(head.contains(&format!("content-length: {length}\r\n")), "{head}");
    assert_eq!(peer.receive(length).await.len(), length);
    head
}

#[test]
fn an_answer_waits_as_long_as_it_is_told_to() {
    with_origin(1, 100, || async {
        let mut peer = Peer::connect(AT).await;
        for (target, millis) in [("/?s=5&t=700", 700), ("/?s=5", 0), ("/?t=2k&s=5", 2048), ("/?t=0&s=5", 0)] {
            let watch = Stopwatch::start();
            peer.send(get(target)).await;
            let head = answer(&mut peer, 5).await;
            watch.took(millis);
            assert!(head.contains(&format!("size=5, time={millis} ms (")), "{head}");
        }
    });
}

#[test]
fn requests_in_a_row_are_answered_in_order_and_each_waits_for_itself() {
    with_origin(1, 100, || async {
        let mut peer = Peer::connect(AT).await;
        let watch = Stopwatch::start();
        peer.send([get("/?s=1"), get("/?s=2&t=500"), get("/?s=3&t=300"), get("/?s=4")].concat()).await;
        answer(&mut peer, 1).await;
        watch.took(0);
        answer(&mut peer, 2).await;
        watch.took(500);
        answer(&mut peer, 3).await;
        answer(&mut peer, 4).await;
        watch.took(800);
    });
}

#[test]
fn a_random_wait_is_shorter_than_the_whole() {
    with_origin(1, 100, || async {
        let mut peer = Peer::connect(AT).await;
        let mut shortest = u128::MAX;
        let mut longest = 0;
        for _ in 0..50 {
            let watch = Stopwatch::start();
            peer.send(get("/?t=1000r&s=1")).await;
            answer(&mut peer, 1).await;
            let took = watch.elapsed().as_millis();
            assert!(took <= 1004, "{took}");
            (shortest, longest) = (shortest.min(took), longest.max(took));
        }
        assert!(shortest < 300 && longest > 700, "{shortest} to {longest}");
    });
}

#[test]
fn a_request_in_pieces_and_a_body_after_the_answer_are_taken() {
    with_origin(1, 100, || async {
        let mut peer = Peer::connect(AT).await;
        peer.send_slowly(get("/?s=7&r=404"), 1, 20).await;
        assert!(answer(&mut peer, 7).await.starts_with("HTTP/1.1 404 Not Found\r\n"));
        peer.send("POST /?s=5&A=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n").await;
        answer(&mut peer, 5).await;
        peer.send("x".repeat(100_000)).await;
        peer.send("POST /?s=6 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nab").await;
        peer.expect_silence(1000).await;
        peer.send(["c", &get("/?s=8")].concat()).await;
        answer(&mut peer, 6).await;
        answer(&mut peer, 8).await;
        peer.send("PUT /?s=9 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n").await;
        peer.expect("HTTP/1.1 100 Continue\r\n\r\n").await;
        peer.send_slowly("3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nT: u\r\n\r\n", 1, 5).await;
        answer(&mut peer, 9).await;
    });
}

#[test]
fn large_bodies_come_whole_to_slow_readers() {
    with_origin(1, 100, || async {
        let mut peer = Peer::connect(AT).await;
        peer.send(get("/?s=300k&C=1")).await;
        let head = peer.receive_head().await.unwrap();
        assert!(head.contains("connection: close\r\n") && !head.contains("content-length"), "{head}");
        let body = peer.receive_rest_slowly(10_000, 3).await;
        let line = b".123456789.123456789.123456789.123456789.12345678\n";
        assert!(body == line.iter().copied().cycle().take(300 << 10).collect::<Vec<u8>>());
        let mut peer = Peer::connect(AT).await;
        peer.send(get("/?s=200k&k=1")).await;
        peer.receive_head().await.unwrap();
        assert_eq!(peer.receive_chunked(7_000, 1).await.body.len(), 200 << 10);
        peer.send(get("/?s=1000&k=2")).await;
        peer.receive_head().await.unwrap();
        assert_eq!(peer.receive_chunked(500, 1).await.body, b"1".repeat(1000));
    });
}

#[test]
fn silent_clients_are_not_waited_for_without_end() {
    with_origin(1, 100, || async {
        let (mut idle, mut begun, mut full) =
            (Peer::connect(AT).await, Peer::connect(AT).await, Peer::connect(AT).await);
        let watch = Stopwatch::start();
        begun.send("GET / HT").await;
        full.send(get("/?s=1g")).await;
        begun.expect_end().await;
        watch.took(60_000);
        // The buffers on the way are full, and it reads nothing.
        idle.expect_eof().await;
        watch.took(300_000);
        assert!(full.receive_head().await.is_some());
        assert!(!full.try_receive(1 << 30).await, "the answer was cut short");
    });
}

#[test]
fn what_is_no_request_is_refused_and_the_connection_closed() {
    with_origin(1, 100, || async {
        for (request, status) in [
            ("garbage\r\n\r\n", "400 Bad Request"),
            ("\x16\x03\x01", "400 Bad Request"),
            ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "400 Bad Request"),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "400 Bad Request"),
        ] {
            let mut peer = Peer::connect(AT).await;
            peer.send([&get("/?s=1"), request].concat()).await;
            answer(&mut peer, 1).await;
            let rest = String::from_utf8(peer.receive_rest().await).unwrap();
            assert!(rest.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{request:?}: {rest}");
            assert!(rest.contains("connection: close\r\n"), "{rest}");
        }
    });
}

#[test]
fn connections_beyond_the_bound_wait_for_a_place() {
    with_origin(3, 2, || async {
        let (mut first, second) = (Peer::connect(AT).await, Peer::connect(AT).await);
        first.send(get("/?s=1")).await;
        answer(&mut first, 1).await;
        let mut third = Peer::connect(AT).await;
        third.send(get("/?s=3")).await;
        third.expect_silence(5_000).await;
        second.close();
        answer(&mut third, 3).await;
        drop(first);
        let mut fourth = Peer::connect(AT).await;
        fourth.send(get("/?s=4")).await;
        answer(&mut fourth, 4).await;
    });
}

#[test]
fn workers_share_the_connections() {
    with_origin(3, 1000, || async {
        let mut peers = Vec::new();
        for _ in 0..60 {
            let mut peer = Peer::connect(AT).await;
            peer.send(get("/?s=1")).await;
            answer(&mut peer, 1).await;
            peers.push(peer);
        }
        let loads: Vec<u32> = (0..3).map(rt::load_of).collect();
        assert_eq!(loads.iter().sum::<u32>(), 60);
        assert!(loads.iter().all(|load| (17..=23).contains(load)), "{loads:?}");
    });
}

#[test]
fn a_soft_stop_answers_whoever_asked_and_lets_the_others_go() {
    with_origin(2, 100, || async {
        let (mut idle, mut fresh, mut busy) =
            (Peer::connect(AT).await, Peer::connect(AT).await, Peer::connect(AT).await);
        idle.send(get("/?s=1")).await;
        answer(&mut idle, 1).await;
        busy.send([get("/?s=2&t=3000"), get("/?s=3")].concat()).await;
        sleep(10).await;
        let watch = Stopwatch::start();
        rt::sim::raise(Signal::User1);
        let done = Rc::new(Cell::new(false));
        let told = Rc::clone(&done);
        let busy = async move {
            assert!(answer(&mut busy, 2).await.contains("connection: close\r\n"));
            busy.expect_eof().await;
            told.set(true);
        };
        let others = async move {
            idle.expect_eof().await;
            fresh.expect_eof().await;
            watch.took(0);
            assert!(!done.get());
            let again = Peer::try_connect(AT, testkit::PeerOptions::default()).await;
            assert!(again.is_err(), "nobody listens any more");
        };
        both(busy, others).await;
        watch.took(2990);
    });
}

#[test]
fn a_fastcgi_application_answers_as_the_query_asks_however_its_records_come() {
    with(Protocol::Fcgi, (1, 100), || async {
        let mut peer = Peer::connect(AT).await;
        for (query, has_body, head) in [
            ("s=100000", false, "Content-Type: text/plain\r\nContent-Length: 100000\r\n\r\n"),
            ("s=7&r=404", true, "Status: 404\r\nContent-Type: text/plain\r\nContent-Length: 7\r\n\r\n"),
            ("s=0", true, "Content-Type: text/plain\r\nContent-Length: 0\r\n\r\n"),
        ] {
            let mut out = base::Buffer::with_capacity(4096);
            let parameters: [(&[u8], &[u8]); 2] = [(b"REQUEST_METHOD", b"GET"), (b"QUERY_STRING", query.as_bytes())];
            let mut writer = fcgi::RequestWriter::begin(true, out.spare_mut());
            parameters.into_iter().for_each(|(name, value)| writer.parameter(name, value));
            let length = writer.end(has_body).unwrap();
            out.advance(length);
            if has_body {
                assert!(out.push(&fcgi::body_record(fcgi::REQUEST, 5)) && out.push(b"hello"));
                assert!(out.push(&fcgi::end_of_body(fcgi::REQUEST)));
            }
            for piece in out.data().chunks(11) {
                peer.send(piece.to_vec()).await;
            }
            let (mut decoder, mut answer, mut ended) = (fcgi::Decoder::default(), Vec::new(), None);
            while ended.is_none() {
                let bytes = peer.receive(8).await;
                let length = usize::from(u16::from_be_bytes([bytes[4], bytes[5]]));
                let record = [bytes, peer.receive(length).await].concat();
                let mut rest = &record[..];
                while !rest.is_empty() {
                    let (used, piece) = decoder.next(rest, usize::MAX).unwrap();
                    match piece {
                        Some(fcgi::Piece::Output(data)) => answer.extend_from_slice(data),
                        Some(fcgi::Piece::Ended(status)) => ended = Some(status),
                        _ => {}
                    }
                    rest = &rest[used..];
                }
            }
            assert_eq!(ended, Some(fcgi::ProtocolStatus::Complete));
            assert!(answer.starts_with(head.as_bytes()), "{}", String::from_utf8_lossy(&answer[..60]));
            let length: usize = head.split("Length: ").nth(1).unwrap().trim().parse().unwrap();
            assert_eq!(answer.len(), head.len() + length);
        }
    });
}

#[test]
fn an_agent_of_spop_greets_and_sets_its_variable() {
    with(Protocol::Spop, (1, 100), || async {
        let mut peer = Peer::connect(AT).await;
        let hello = spop::Hello { max_frame_size: 16_380, pipelining: true, healthcheck: false, engine_id: None };
        peer.send(hello.encode()).await;
        let frame = receive_frame(&mut peer).await;
        let (greeting, _) = spop::next_frame(&frame, 16_380).unwrap().unwrap();
        assert_eq!(greeting.kind, spop::kind::AGENT_HELLO);
        assert!(spop::agent_hello(greeting.payload, 16_380).unwrap().pipelining);
        let mut notify = spop::Notify::default();
        notify.message(b"m");
        let mut out = Vec::new();
        for (stream, id) in [(5, 1), (300_000, 2)] {
            assert!(notify.encode(stream, id, 16_380, &mut out));
        }
        for piece in out.chunks(7) {
            peer.send(piece.to_vec()).await;
        }
        for (stream, id) in [(5, 1), (300_000, 2)] {
            let frame = receive_frame(&mut peer).await;
            let (ack, _) = spop::next_frame(&frame, 16_380).unwrap().unwrap();
            assert_eq!((ack.kind, ack.stream, ack.id), (spop::kind::ACK, stream, id));
            let actions: Vec<_> = spop::Actions::new(ack.payload).collect();
            let score = spop::Action::Set(spop::Scope::Transaction, b"score", spop::Data::Int32(20));
            assert_eq!(actions, [Ok(score)]);
        }
        // Shorter than any frame.
        peer.send([0; 4].to_vec()).await;
        assert!(peer.receive_rest().await.is_empty(), "it closes");
    });
}

async fn receive_frame(peer: &mut Peer) -> Vec<u8> {
    let length = peer.receive(4).await;
    let rest = peer.receive(u32::from_be_bytes(length[..].try_into().unwrap()) as usize).await;
    [length, rest].concat()
}
