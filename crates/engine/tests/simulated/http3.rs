//! Tests of HTTP/3 clients: requests and answers over simulated QUIC, with faults of the network, and errors of the client.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use quic::Closed;
use rt::net::Address;
use rt::sim::DatagramPath;
use testkit::{Scope, Service, text};
use wire::h3::{self, ErrorCode, FrameType, StreamType};

use crate::http3_client::{Client, push_data, request};
use crate::messages::*;
use crate::multiplexed_client::echo;
use crate::world::*;

const CLIENT: &str = "10.0.9.1:5000";
const QUIC: &str = "10.0.0.1:443";

/// A `listen` section at a QUIC address.
fn serving(body: &str) -> Worlds {
    config(&format!("listen l\n    bind quic4@{QUIC} ssl crt a.pem\n    server s1 10.0.1.1:80\n{body}\n"))
}

#[test]
fn a_request_is_served_and_logged() {
    serving("").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::connect(CLIENT, QUIC).await;
        let id = client.request("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut server = client.beside(s1.accept()).await;
        client.beside(server.expect(get_at_server("/1"))).await;
        server.send(answer("one")).await;
        let answered = client.answer(id).await;
        assert_eq!(answered.heads, ["HTTP/3.0 200\ncontent-length: 3"]);
        assert_eq!((&answered.payload[..], answered.ended), (&b"one"[..], true));
        client.close().await;
        world.expect_log(&[r#"l~ l/s1 #/0/#/#/# 200 # - - ---- 1/1/#/#/0 0/0 "GET https://a/1 HTTP/3.0""#]).await;
    });
}

/// Bodies of both directions, of sizes around those of packets, buffers and windows, over a network that loses, duplicates,
/// corrupts and reorders datagrams.
#[test]
fn bodies_arrive_whole_over_a_bad_network() {
    for path in [
        DatagramPath::default(),
        DatagramPath {
            loss: 50,
            duplicates: 30,
            corruption: 10,
            jitter: Duration::from_millis(5),
            latency: Duration::from_millis(10),
            ..DatagramPath::default()
        },
    ] {
        serving("").seeds(0..2).workers(&[1, 2]).run(move |world| async move {
            rt::sim::network().set_datagram_path(path);
            let scope = Rc::new(Scope::new());
            Service::at(S1).serve(&scope, echo);
            let mut client = Client::connect(CLIENT, QUIC).await;
            for (number, length) in [0, 1, 1_200, 16_383, 16_384, 300_000].into_iter().enumerate() {
                let payload = text(length, number as u64);
                let head = format!("POST /{number} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
                let id = client.post(&head, &payload).await;
                let answered = client.answer(id).await;
                assert!(answered.ended, "{length}: {:?} {:?}", answered.heads, client.closed);
                assert!(answered.payload == payload, "{} of {length} bytes", answered.payload.len());
            }
            client.close().await;
            world.forget_log();
        });
    }
}

/// The window of the connection ends within the header of the answer's last DATA frame, and opens once the server has
/// nothing more to send.
#[test]
fn an_answer_goes_on_after_a_window_that_ends_within_the_header_of_a_frame() {
    serving("").seeds(0..1).workers(&[1]).run(|world| async move {
        let (first, last) = (text(1_000, 0), text(100, 1));
        let mut s1 = Service::at(S1);
        let mut before_last = None;
        // The first connection counts the bytes before that frame.
        for place in 0..3 {
            let mut client = match before_last {
                None => Client::connect(CLIENT, QUIC).await,
                Some(bytes) => {
                    let window = u32::try_from(bytes).unwrap() + place;
                    Client::connect_paused(&format!("10.0.9.1:{}", 5_000 + place), QUIC, window).await
                }
            };
            let id = client.request("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
            let mut server = client.beside(s1.accept()).await;
            client.beside(server.expect(get_at_server("/1"))).await;
            server.send("HTTP/1.1 200 OK\r\nContent-Length: 1100\r\n\r\n").await;
            server.send(&first[..]).await;
            client.beside(rt::sleep(Duration::from_millis(50))).await;
            before_last.get_or_insert(client.read);
            server.send(&last[..]).await;
            client.beside(rt::sleep(Duration::from_millis(50))).await;
            client.resume();
            client.beside(rt::sleep(Duration::from_millis(50))).await;
            let answered = client.received(id);
            assert_eq!((answered.ended, answered.payload.len()), (true, 1_100), "{place} bytes of the header");
            client.close().await;
        }
        world.forget_log();
    });
}

/// Two requests at a time, the second of which is answered first; a payload without a length; trailers of both directions.
#[test]
fn streams_do_not_wait_for_each_other() {
    serving("").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::connect(CLIENT, QUIC).await;
        let first = client.request("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut one = client.beside(s1.accept()).await;
        client.beside(one.expect(get_at_server("/1"))).await;
        let second = client.request("GET /2 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut two = client.beside(s1.accept()).await;
        client.beside(two.expect(get_at_server("/2"))).await;
        two.send(answer("two")).await;
        assert_eq!(client.answer(second).await.payload, b"two");
        one.send(answer("one")).await;
        assert_eq!(client.answer(first).await.payload, b"one");
        client.close().await;
        world.forget_log();
    });
}

/// A connection announces few streams; one whose client uses them announces more, up to the configured number.
#[test]
fn clients_are_granted_the_streams_that_they_use() {
    let settings = "global\n    tune.quic.fe.stream.max-concurrent 60\n";
    let text = format!("{settings}listen l\n    bind quic4@{QUIC} ssl crt a.pem\n    server s1 10.0.1.1:80\n");
    config(&text).seeds(0..1).workers(&[1]).run(|world| async move {
        let scope = Rc::new(Scope::new());
        Service::at(S1).serve(&scope, echo);
        let mut client = Client::connect(CLIENT, QUIC).await;
        let mut open: Vec<_> = std::iter::from_fn(|| client.try_open()).collect();
        assert_eq!(open.len(), 24);
        let mut begun = 0;
        while open.len() < 60 {
            let seen = client.announcements;
            for id in &open[begun..] {
                client.write(*id, &request("POST / HTTP/1.1\r\nHost: a\r\n\r\n")).await;
            }
            begun = open.len();
            client.until(|client| client.announcements > seen).await;
            open.extend(std::iter::from_fn(|| client.try_open()));
        }
        assert_eq!(open.len(), 60);
        for id in &open[begun..] {
            client.write(*id, &request("POST / HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        }
        for id in open {
            client.finish(id);
            assert!(client.answer(id).await.ended);
        }
        client.close().await;
        world.forget_log();
    });
}

/// A connection whose client violates the protocol is closed with the code of RFC 9114; a stream is reset.
#[test]
fn errors_of_the_client_have_the_codes_of_the_protocol() {
    let control = |frames: &[u8]| {
        let mut bytes = Vec::new();
        h3::push_stream_type(StreamType::Control, &mut bytes);
        bytes.extend_from_slice(frames);
        bytes
    };
    let frame = |kind: u64, payload: &[u8]| {
        let mut bytes = vec![u8::try_from(kind).unwrap(), u8::try_from(payload.len()).unwrap()];
        bytes.extend_from_slice(payload);
        bytes
    };
    let cases: Vec<(Vec<u8>, ErrorCode)> = vec![
        (control(&frame(0x07, &[0])), ErrorCode::MissingSettings),
        (control(&frame(0x04, &[0x02, 0])), ErrorCode::SettingsError),
        (control(&[frame(0x04, &[]), frame(0x04, &[])].concat()), ErrorCode::FrameUnexpected),
        (control(&[frame(0x04, &[]), frame(0x00, b"x")].concat()), ErrorCode::FrameUnexpected),
        (vec![0x01, 0x00], ErrorCode::StreamCreationError),
    ];
    for (bytes, code) in cases {
        serving("").seeds(0..1).workers(&[1]).run(move |world| {
            let bytes = bytes.clone();
            async move {
                let mut client = Client::begin(CLIENT, QUIC, &crate::http3_client::tls(&["h3"], false));
                client.until(|client| client.is_connected()).await;
                client.open_uni(&bytes);
                client.until(|client| client.closed.is_some()).await;
                let Some(Closed::ByPeer { code: received, .. }) = client.closed.clone() else { panic!() };
                assert_eq!(ErrorCode::of(received), Some(code), "{bytes:?}");
                world.forget_log();
            }
        });
    }
}

/// Requests that are malformed are reset as streams, and the connection serves further ones.
#[test]
fn malformed_requests_end_alone() {
    let mut short = request("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n");
    push_data(&mut short, b"12345");
    let mut long = request("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n");
    push_data(&mut long, b"12345");
    for (bytes, code) in [(short, ErrorCode::MessageError), (long, ErrorCode::MessageError)] {
        serving("").seeds(0..1).workers(&[1]).run(move |world| {
            let bytes = bytes.clone();
            async move {
                let scope = Rc::new(Scope::new());
                Service::at(S1).serve(&scope, echo);
                let mut client = Client::connect(CLIENT, QUIC).await;
                let id = client.open();
                client.write(id, &bytes).await;
                client.finish(id);
                let answered = client.answer(id).await;
                assert_eq!(answered.reset.and_then(ErrorCode::of), Some(code));
                let next = client.request("GET /2 HTTP/1.1\r\nHost: a\r\n\r\n").await;
                assert!(client.answer(next).await.ended);
                client.close().await;
                world.forget_log();
            }
        });
    }
}

/// A client whose address changes, as behind a NAT, keeps its connection.
#[test]
fn a_client_whose_address_changes_goes_on() {
    serving("").run(|world| async move {
        let scope = Rc::new(Scope::new());
        Service::at(S1).serve(&scope, echo);
        let mut client = Client::connect(CLIENT, QUIC).await;
        let first = client.request("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert!(client.answer(first).await.ended);
        let address = |text: &str| Address::Inet(text.parse::<SocketAddr>().unwrap());
        rt::sim::network().rebind(&address(CLIENT), &address("10.0.9.1:6001"));
        let payload = text(50_000, 1);
        let head = format!("POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", payload.len());
        let second = client.post(&head, &payload).await;
        let answered = client.answer(second).await;
        assert!(answered.ended && answered.payload == payload, "{:?}", client.closed);
        client.close().await;
        world.forget_log();
    });
}

/// Where the kernel chooses the socket by the client's port, packets of a client whose port changes arrive at the socket of another
/// worker, which passes them on.
#[test]
fn packets_find_the_worker_of_their_connection() {
    serving("").unsteered().workers(&[2, 4]).run(|world| async move {
        let scope = Rc::new(Scope::new());
        Service::at(S1).serve(&scope, echo);
        let mut client = Client::connect(CLIENT, QUIC).await;
        let address = |text: &str| Address::Inet(text.parse::<SocketAddr>().unwrap());
        for (number, seen) in ["10.0.9.1:6001", "10.0.9.1:6002", "10.0.9.1:6003"].into_iter().enumerate() {
            let payload = text(50_000, number as u64);
            let head = format!("POST /{number} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", payload.len());
            let id = client.post(&head, &payload).await;
            let answered = client.answer(id).await;
            assert!(answered.ended && answered.payload == payload, "{:?}", client.closed);
            rt::sim::network().rebind(&address(CLIENT), &address(seen));
        }
        client.close().await;
        world.forget_log();
    });
}

/// A soft stop announces GOAWAY, and lets the request that is under way end.
#[test]
fn a_soft_stop_lets_requests_end() {
    serving("").workers(&[1, 2]).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::connect(CLIENT, QUIC).await;
        let first = client.request("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut one = client.beside(s1.accept()).await;
        client.beside(one.expect(get_at_server("/1"))).await;
        world.stop();
        let settings = client.control.len();
        client.until(|client| client.control.len() > settings).await;
        // New connections are refused.
        let mut late = Client::begin("10.0.9.2:5000", QUIC, &crate::http3_client::tls(&["h3"], false));
        late.until(|late| late.closed.is_some()).await;
        assert!(matches!(late.closed, Some(Closed::PeerTransport { code: 2, .. })), "{:?}", late.closed);
        one.send(answer("one")).await;
        assert_eq!(client.answer(first).await.payload, b"one");
        client.until(|client| client.closed.is_some()).await;
        assert!(matches!(client.closed, Some(Closed::ByPeer { .. })), "{:?}", client.closed);
        world.forget_log();
    });
}

/// A request that its client has sent before it has received GOAWAY is served; one that begins after the second GOAWAY is rejected.
#[test]
fn requests_that_cross_goaway_are_served() {
    serving("").run(|world| async move {
        let latency = Duration::from_millis(50);
        rt::sim::network().set_datagram_path(DatagramPath { latency, ..DatagramPath::default() });
        let mut s1 = Service::at(S1);
        let mut client = Client::connect(CLIENT, QUIC).await;
        let first = client.request("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut one = client.beside(s1.accept()).await;
        client.beside(one.expect(get_at_server("/1"))).await;
        client.until(|client| !client.control.is_empty()).await;
        world.stop();
        let announced = client.control.len();
        let crossing = client.request("GET /2 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(client.control.len(), announced);
        let mut two = client.beside(s1.accept()).await;
        client.beside(two.expect(get_at_server("/2"))).await;
        two.send(answer("two")).await;
        assert_eq!(client.answer(crossing).await.payload, b"two");
        // Each GOAWAY has an identifier of its own: of eight bytes, and of one.
        client.until(|client| client.control.len() >= announced + 10 + 3).await;
        assert_eq!(client.control[announced..], *b"\x07\x08\xff\xff\xff\xff\xff\xff\xff\xfc\x07\x01\x08");
        let late = client.request("GET /3 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(client.answer(late).await.reset, Some(ErrorCode::RequestRejected.number()));
        one.send(answer("one")).await;
        assert_eq!(client.answer(first).await.payload, b"one");
        client.until(|client| client.closed.is_some()).await;
        assert!(matches!(client.closed, Some(Closed::ByPeer { .. })), "{:?}", client.closed);
        world.forget_log();
    });
}

/// Frames of types that are not known are skipped, and a priority is accepted.
#[test]
fn unknown_frames_are_skipped() {
    serving("").seeds(0..1).run(|world| async move {
        let scope = Rc::new(Scope::new());
        Service::at(S1).serve(&scope, echo);
        let mut client = Client::connect(CLIENT, QUIC).await;
        let id = client.open();
        // A reserved type (RFC 9114, section 7.2.8): 0x21.
        let mut bytes = vec![0x21, 0x03, b'a', b'b', b'c'];
        bytes.extend(request("POST / HTTP/1.1\r\nHost: a\r\nPriority: u=1\r\nContent-Length: 4\r\n\r\nabcd"));
        bytes.extend_from_slice(h3::frame_header(FrameType::Data, 0).as_slice());
        client.write(id, &bytes).await;
        client.finish(id);
        assert_eq!(client.answer(id).await.payload, b"abcd");
        client.close().await;
        world.forget_log();
    });
}

/// A client that resets its request, or does not want the answer, ends that request alone; the server's connection is closed.
#[test]
fn a_request_that_its_client_cancels_ends_alone() {
    for stops in [false, true] {
        serving("").workers(&[1, 2]).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Client::connect(CLIENT, QUIC).await;
            let first = client.open();
            client.write(first, &request("POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n")).await;
            let mut one = client.beside(s1.accept()).await;
            client.beside(one.receive_head()).await;
            match stops {
                true => client.stop(first, ErrorCode::RequestCancelled.number()),
                false => client.reset(first, ErrorCode::RequestCancelled.number()),
            }
            client.beside(one.expect_end()).await;
            let second = client.request("GET /2 HTTP/1.1\r\nHost: a\r\n\r\n").await;
            let mut two = client.beside(s1.accept()).await;
            client.beside(two.expect(get_at_server("/2"))).await;
            two.send(answer("two")).await;
            assert_eq!(client.answer(second).await.payload, b"two");
            client.close().await;
            world.forget_log();
        });
    }
}
