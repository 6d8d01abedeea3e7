//! Tests of the statistics of QUIC and HTTP/3: what happens on a connection and beside it, in the counters of its frontend.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use live::counters::QuicCount;
use rt::net::{Address, BindOptions, DatagramSocket, Transmit};
use rt::sim::DatagramPath;
use testkit::{Scope, Service, text};
use wire::h3::{self, ErrorCode, StreamType};

use crate::api::*;
use crate::http3_client::{Client, tls};
use crate::messages::*;
use crate::multiplexed_client::echo;
use crate::world::*;

const CLIENT: &str = "10.0.9.1:5000";
const QUIC: &str = "10.0.0.1:443";

fn serving(body: &str) -> Worlds {
    config(&format!("listen l\n    bind quic4@{QUIC} ssl crt a.pem\n    server s1 10.0.1.1:80\n{body}\n"))
}

/// Returns a counter of the only proxy as a frontend.
fn count(world: &World, of: QuicCount) -> u64 {
    world.shared().counters.quic(0, true, |counters| counters.of(of))
}

/// Returns the counters that are not 0.
fn counted(world: &World, of: &[QuicCount]) -> Vec<(QuicCount, u64)> {
    of.iter().map(|of| (*of, count(world, *of))).filter(|(_, count)| *count > 0).collect()
}

/// Waits until all sessions have ended.
async fn settle(world: &World) {
    while world.sessions() > 0 {
        rt::sleep(Duration::from_millis(10)).await;
    }
}

/// Frames, packets and the client's code; a connection is half-open for its handshake only.
#[test]
fn a_connection_is_counted() {
    serving("").run(|world| async move {
        let scope = Rc::new(Scope::new());
        Service::at(S1).serve(&scope, echo);
        let mut client = Client::connect(CLIENT, QUIC).await;
        let mut control = Vec::new();
        h3::push_stream_type(StreamType::QpackDecoder, &mut control);
        client.open_uni(&control);
        let id = client.post("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n", b"abcd").await;
        assert!(client.answer(id).await.ended);
        assert_eq!(count(&world, QuicCount::HalfOpenConnection), 0);
        client.close().await;
        settle(&world).await;
        let rows = [QuicCount::Http3Headers, QuicCount::Http3Data, QuicCount::Http3Settings, QuicCount::Http3NoError];
        assert_eq!(counted(&world, &rows), rows.map(|of| (of, 1)));
        assert!(count(&world, QuicCount::SentPacket) > 3);
        let none = [QuicCount::HandshakeFail, QuicCount::LostPacket, QuicCount::DroppedPacket, QuicCount::RetrySent];
        assert_eq!(counted(&world, &none), []);
        world.forget_log();
    });
}

/// The codes of streams that the client resets and does not read, and limits of pushes.
#[test]
fn codes_of_the_client_are_counted() {
    serving("").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::begin(CLIENT, QUIC, &tls(&["h3"], false));
        client.until(|client| client.is_connected()).await;
        let mut control = Vec::new();
        h3::push_stream_type(StreamType::Control, &mut control);
        h3::push_settings(&h3::Settings::default(), &mut control);
        control.extend_from_slice(&[0x0d, 0x01, 0x05]);
        client.open_uni(&control);
        for (at, code) in [ErrorCode::RequestCancelled, ErrorCode::InternalError].into_iter().enumerate() {
            let id = client.open();
            let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n";
            client.write(id, &crate::http3_client::request(head)).await;
            let mut server = client.beside(s1.accept()).await;
            client.beside(server.receive_head()).await;
            match at {
                0 => client.reset(id, code.number()),
                _ => client.stop(id, code.number()),
            }
            client.beside(server.expect_end()).await;
        }
        client.close().await;
        settle(&world).await;
        let rows = [QuicCount::Http3RequestCancelled, QuicCount::Http3InternalError, QuicCount::Http3MaxPushId];
        assert_eq!(counted(&world, &rows), rows.map(|of| (of, 1)));
        world.forget_log();
    });
}

/// A handshake that fails, a token that has to be sent, and datagrams that reach no connection.
#[test]
fn datagrams_and_handshakes_are_counted() {
    let rules = "    quic-initial send-retry if { src 10.0.9.1 }\n    quic-initial dgram-drop if { src 10.0.8.1 }";
    serving(rules).run(|world| async move {
        let mut client = Client::begin(CLIENT, QUIC, &tls(&["h9"], false));
        client.until(|client| client.closed.is_some()).await;
        settle(&world).await;
        // The hello fills two packets, each of which is answered.
        assert_eq!(count(&world, QuicCount::RetrySent), 2);
        let rows = [QuicCount::RetryValidated, QuicCount::HandshakeFail];
        assert_eq!(counted(&world, &rows), rows.map(|of| (of, 1)));
        assert_eq!(count(&world, QuicCount::HalfOpenConnection), 0);
        assert_eq!(count(&world, QuicCount::DroppedPacket), 0);
        // An Initial packet in a datagram that is too short.
        let socket = DatagramSocket::bind("10.0.7.1:5000".parse().unwrap(), &BindOptions::default()).unwrap();
        let mut bytes = vec![0xc3, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0x40, 40];
        bytes.resize(200, 0);
        let destination: SocketAddr = QUIC.parse().unwrap();
        let mut batch = [Transmit { destination, source: None, ecn: None, contents: &bytes, segment_size: None }];
        assert_eq!(socket.try_send(&mut batch), 1);
        // A client whose datagrams are dropped.
        let mut client = Client::begin("10.0.8.1:5000", QUIC, &tls(&["h3"], false));
        client.until(|client| client.closed.is_some()).await;
        assert_eq!(count(&world, QuicCount::TooShortDatagram), 1);
        assert!(count(&world, QuicCount::DroppedPacket) > 2);
        world.forget_log();
    });
}

/// The counts of a connection are added while it lasts.
#[test]
fn losses_and_migrations_are_counted() {
    serving("").run(|world| async move {
        let scope = Rc::new(Scope::new());
        Service::at(S1).serve(&scope, echo);
        let mut client = Client::connect(CLIENT, QUIC).await;
        rt::sim::network().set_datagram_path(DatagramPath { loss: 100, ..DatagramPath::default() });
        let payload = text(300_000, 1);
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", payload.len());
        let id = client.post(&head, &payload).await;
        assert!(client.answer(id).await.ended);
        rt::sim::network().set_datagram_path(DatagramPath::default());
        let address = |text: &str| Address::Inet(text.parse::<SocketAddr>().unwrap());
        rt::sim::network().rebind(&address(CLIENT), &address("10.0.9.1:6001"));
        client.beside(rt::sleep(Duration::from_secs(2))).await;
        let id = client.request("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert!(client.answer(id).await.ended);
        assert!(count(&world, QuicCount::LostPacket) > 0);
        assert!(count(&world, QuicCount::SentPacket) > 200);
        client.close().await;
        settle(&world).await;
        assert_eq!(count(&world, QuicCount::ConnectionMigrationDone), 1);
        world.forget_log();
    });
}

/// The formats and filters of `show quic`.
#[test]
fn connections_are_shown() {
    serving("").global(SOCKET).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::connect(CLIENT, QUIC).await;
        let first = client.request("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut server = client.beside(s1.accept()).await;
        client.beside(server.expect(get_at_server("/1"))).await;
        let table = client.beside(ask("show quic")).await;
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 3, "{table}");
        assert!(lines[0].starts_with("# conn/frontend") && lines[2].is_empty(), "{table}");
        let words: Vec<&str> = lines[1].split_whitespace().collect();
        let id = words[0].split('[').next().unwrap();
        assert!(id.starts_with("0x") && words[0].ends_with("]/l"), "{table}");
        assert_eq!(words[1..], ["ESTAB", "-", "-", "0", QUIC, CLIENT, "-", "-"]);
        let streams = client.beside(ask("show quic stream")).await;
        assert_eq!(streams, format!("{id}.0000: 0x01 rxb=0\n\n"));
        let all = client.beside(ask(&format!("show quic {id}"))).await;
        for part in
            [format!("* {id}[").as_str(), "md=", "st=opened", "mux=ready", "cwnd=", "hreq=1", "qcs id=0 st=HCR rxb=0"]
        {
            assert!(all.contains(part), "{part}: {all}");
        }
        let part = client.beside(ask("show quic sock")).await;
        assert!(part.contains(&format!("local_addr={QUIC} foreign_addr={CLIENT}")) && !part.contains("cwnd"), "{part}");
        for none in ["show quic clo", "show quic be", "show quic oneline 0x1"] {
            let table = client.beside(ask(none)).await;
            assert!(table.starts_with("# conn/frontend") && table.lines().count() == 2, "{none}: {table}");
        }
        server.send(answer("one")).await;
        assert_eq!(client.answer(first).await.payload, b"one");
        client.close().await;
        settle(&world).await;
        assert_eq!(ask("show quic").await.lines().count(), 2);
        world.forget_log();
    });
}
