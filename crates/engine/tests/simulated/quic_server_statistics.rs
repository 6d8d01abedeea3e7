//! Tests of the statistics of servers over QUIC: what happens on their connections, in the counters of their backend, and in `show
//! quic`.

use std::time::Duration;

use live::counters::QuicCount;
use testkit::Peer;
use wire::h3::ErrorCode;

use crate::api::*;
use crate::http3_origin::Origin;
use crate::messages::*;
use crate::world::*;

const ORIGIN: &str = "10.0.1.1:443";
const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n";

/// A `listen` section whose server is at a QUIC address.
fn towards(body: &str) -> Worlds {
    listen(&format!("{body}\n    server q quic4@{ORIGIN} ssl verify none"))
        .global("    expose-experimental-directives\n")
        .global(SOCKET)
}

/// Returns a counter of the only proxy as a backend.
fn count(world: &World, of: QuicCount) -> u64 {
    world.shared().counters.quic(0, false, |counters| counters.of(of))
}

/// Waits until a counter has a value.
async fn until(world: &World, of: QuicCount, expected: u64) {
    while count(world, of) != expected {
        rt::sleep(Duration::from_millis(10)).await;
    }
}

/// Frames, packets, and the code with which the server closes the connection: in the row of the backend, and not in that of the
/// frontend.
#[test]
fn a_connection_is_counted_in_its_backend() {
    towards("").run(|world| async move {
        let mut origin = Origin::at(ORIGIN);
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/1")).await;
        let stream = origin.request().await;
        assert_eq!(count(&world, QuicCount::HalfOpenConnection), 0);
        origin.answer(stream, HEAD, b"one").await;
        origin.beside(client.expect(answer_at_client("one"))).await;
        origin.close(0, ErrorCode::InternalError.number()).await;
        origin.beside(until(&world, QuicCount::Http3InternalError, 1)).await;
        for of in [QuicCount::Http3Headers, QuicCount::Http3Data, QuicCount::Http3Settings] {
            assert_eq!(count(&world, of), 1, "{of:?}");
        }
        assert!(count(&world, QuicCount::SentPacket) > 2);
        assert_eq!([QuicCount::HandshakeFail, QuicCount::LostPacket].map(|of| count(&world, of)), [0, 0]);
        let of = |of: fn(&live::counters::QuicCounters) -> &live::counters::Count| {
            [true, false].map(|front| world.shared().counters.quic(0, front, of))
        };
        assert_eq!((of(|counters| &counters.connections), of(|counters| &counters.streams)), ([0, 1], [0, 1]));
        let table = ask("show stat").await;
        let rows = ["l,FRONTEND,", "l,BACKEND,"];
        for (name, expected) in [("h3_headers", ["0", "1"]), ("h3_internal_error", ["0", "1"])] {
            assert_eq!(rows.map(|row| column(&table, row, name)), expected, "{name}");
        }
        let sent = count(&world, QuicCount::SentPacket).to_string();
        assert_eq!(rows.map(|row| column(&table, row, "quic_sent_pkt")), ["0", &sent]);
        ask("clear counters all").await;
        assert_eq!(count(&world, QuicCount::SentPacket), 0);
        world.forget_log();
    });
}

/// A handshake is half-open while its server is silent, and has failed at the timeout; so has one that the server ends.
#[test]
fn handshakes_are_counted() {
    let server = format!("server q quic4@{ORIGIN} ssl ca-file ca.pem sni str(b.example)");
    listen(&format!("    retries 0\n    timeout connect 300ms\n    {server}"))
        .global("    expose-experimental-directives\n")
        .run(|world| async move {
            let mut client = Peer::connect(WEIR).await;
            client.send(get("/1")).await;
            until(&world, QuicCount::HalfOpenConnection, 1).await;
            assert_eq!(count(&world, QuicCount::HandshakeFail), 0);
            client.expect(page(503)).await;
            assert_eq!(count(&world, QuicCount::HandshakeFail), 1);
            let mut origin = Origin::at(ORIGIN);
            client.send(get("/2")).await;
            origin.beside(client.expect(page(503))).await;
            let handshakes = [QuicCount::HandshakeFail, QuicCount::HalfOpenConnection];
            assert_eq!(handshakes.map(|of| count(&world, of)), [2, 0]);
            world.forget_log();
        });
}

/// A client that leaves ends the attempt; its handshake has not failed.
#[test]
fn a_client_that_leaves_fails_no_handshake() {
    towards("    option abortonclose").run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/1")).await;
        until(&world, QuicCount::HalfOpenConnection, 1).await;
        client.reset();
        until(&world, QuicCount::HalfOpenConnection, 0).await;
        assert_eq!(count(&world, QuicCount::HandshakeFail), 0);
        world.forget_log();
    });
}

/// Connections to servers are shown with `be`, with `all` and by their identifier only, as long as they exist.
#[test]
fn connections_are_shown() {
    towards("").run(|world| async move {
        let mut origin = Origin::at(ORIGIN);
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/1")).await;
        let stream = origin.request().await;
        let table = origin.beside(ask("show quic be")).await;
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 3, "{table}");
        let words: Vec<&str> = lines[1].split_whitespace().collect();
        let id = words[0].split('[').next().unwrap();
        assert!(id.starts_with("0x8") && words[0].ends_with("]/l/q"), "{table}");
        assert_eq!((words[1], words[4], words[6]), ("ESTAB", "0", ORIGIN));
        assert_eq!(origin.beside(ask("show quic all")).await, table);
        assert_eq!(origin.beside(ask(&format!("show quic oneline {id}"))).await, table);
        assert_eq!(origin.beside(ask("show quic stream be")).await, format!("{id}.0000: 0x02 rxb=0\n\n"));
        let whole = origin.beside(ask(&format!("show quic {id}"))).await;
        for part in ["ms_bidi=0", "st=opened", "mux=ready", "hreq=1", "qcs id=0 st=HCL rxb=0"] {
            assert!(whole.contains(part), "{part}: {whole}");
        }
        for none in ["show quic", "show quic clo", "show quic oneline 0x1"] {
            let table = origin.beside(ask(none)).await;
            assert!(table.starts_with("# conn/frontend") && table.lines().count() == 2, "{none}: {table}");
        }
        origin.answer(stream, HEAD, b"one").await;
        origin.beside(client.expect(answer_at_client("one"))).await;
        origin.close(0, ErrorCode::NoError.number()).await;
        origin.beside(until(&world, QuicCount::Http3NoError, 1)).await;
        assert_eq!(ask("show quic be").await.lines().count(), 2);
        world.forget_log();
    });
}
