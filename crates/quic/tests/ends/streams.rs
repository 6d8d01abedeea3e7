//! Streams: bytes both ways, flow control, priorities, resets, and the limits of their number.

use std::time::Duration;

use weir_quic::congestion::{Algorithm, Settings as Congestion};
use weir_quic::stream::{Part, ReadError, WriteError};
use weir_quic::transport::Settings;
use weir_quic::{Bytes, Connection, Direction, Event, Handle, Statistics, StreamId, Transport};

use crate::certificates::{Authority, client, client_settings, identity, server, settings};
use crate::world::{Plan, World, read};

/// Two sides that have completed a handshake.
pub struct Pair {
    pub world: World,
    pub client: Handle,
    pub server: Handle,
}

impl Pair {
    pub fn usual() -> Self {
        Self::with(&Settings::default(), &Settings::default())
    }

    pub fn with(of_server: &Settings, of_client: &Settings) -> Self {
        let authority = Authority::new();
        let tls = server(&[authority.certificate(&["a.test"])], settings(), false);
        let mut world = World::new(Plan { transport: Transport::new(of_server), ..Plan::new(tls) });
        let tls = client(client_settings(&authority));
        let client = world.connect_with(&tls, identity("a.test"), &Transport::new(of_client));
        let server = world.shake(client);
        Self { world, client, server }
    }

    pub fn client(&mut self) -> &mut Connection {
        self.world.client.connections.get_mut(&self.client).unwrap()
    }

    pub fn server(&mut self) -> &mut Connection {
        self.world.server.connections.get_mut(&self.server).unwrap()
    }

    /// Opens a stream of the client with these bytes.
    pub fn ask(&mut self, bytes: &[u8], is_whole: bool) -> StreamId {
        let client = self.client();
        let id = client.open(Direction::Bidirectional).unwrap();
        assert_eq!(client.write(id, bytes), Ok(bytes.len()));
        if is_whole {
            client.finish(id).unwrap();
        }
        id
    }

    /// Lets some time pass, less than any timeout.
    pub fn pass(&mut self) {
        self.world.run_for(Duration::from_secs(1));
    }
}

/// The kernel takes no more at once than fits into the largest datagram.
#[test]
fn batches_fit_into_the_largest_datagram() {
    let congestion = Congestion { algorithm: Algorithm::Fixed, max_window: 4_000_000 };
    let mut pair = Pair::with(&Settings { congestion, ..Settings::default() }, &Settings::default());
    let id = pair.ask(b"request", true);
    pair.pass();
    assert_eq!(pair.server().write(id, &vec![1; 300_000]), Ok(300_000));
    pair.pass();
    assert_eq!(read(pair.client(), id).0.len(), 300_000);
    assert!((64_000..=65_487).contains(&pair.world.server.largest), "{}", pair.world.server.largest);
}

#[test]
fn requests_and_answers_pass() {
    let mut pair = Pair::usual();
    let id = pair.ask(b"request", true);
    pair.pass();
    let server = pair.server();
    assert_eq!(server.accept(Direction::Bidirectional), Some(id));
    assert_eq!(server.accept(Direction::Bidirectional), None);
    assert_eq!(read(server, id), (b"request".to_vec(), true));
    assert_eq!(server.read(id, 1), Err(ReadError::Closed));
    let mut pieces = [Bytes::from_static(b"an "), Bytes::from_static(b"answer")];
    assert_eq!(server.write_pieces(id, &mut pieces), Ok(9));
    assert!(pieces.iter().all(Bytes::is_empty));
    server.finish(id).unwrap();
    assert_eq!(server.write(id, b"more"), Err(WriteError::Closed));
    pair.pass();
    let mut buffer = [0; 4];
    assert_eq!(pair.client().read_into(id, &mut buffer), Ok(4));
    assert_eq!(buffer, *b"an a");
    let mut rest = Vec::new();
    assert_eq!(
        pair.client().read_all(id, |bytes| {
            rest.extend_from_slice(&bytes);
            true
        }),
        Ok(true)
    );
    assert_eq!(rest, b"nswer");
    let events = pair.world.server.events_of(pair.server);
    assert!(
        events.contains(&&Event::StreamsOpened(Direction::Bidirectional)) && events.contains(&&Event::Finished(id))
    );
}

#[test]
fn unidirectional_streams_have_one_writer() {
    let mut pair = Pair::usual();
    let id = pair.client().open(Direction::Unidirectional).unwrap();
    pair.client().write(id, b"settings").unwrap();
    pair.pass();
    assert_eq!(pair.server().accept(Direction::Unidirectional), Some(id));
    assert_eq!(read(pair.server(), id), (b"settings".to_vec(), false));
    assert_eq!(pair.server().write(id, b"x"), Err(WriteError::Closed));
    assert_eq!((id.direction(), id.is_of_client()), (Direction::Unidirectional, true));
}

/// Nothing is sent beyond the windows, and reading opens them.
#[test]
fn readers_hold_writers_back() {
    let rows = [
        ("stream", Settings { stream_window: 10_000, ..Settings::default() }, 10_000),
        ("connection", Settings { window: 20_000, ..Settings::default() }, 20_000),
    ];
    for (row, of_server, most) in rows {
        let mut pair = Pair::with(&of_server, &Settings::default());
        let id = pair.client().open(Direction::Bidirectional).unwrap();
        assert_eq!(pair.client().write(id, &[1; 50_000]), Ok(most), "{row}");
        assert_eq!(pair.client().write(id, &[1]), Err(WriteError::Blocked), "{row}");
        pair.pass();
        assert!(!pair.world.client.events_of(pair.client).contains(&&Event::Writable(id)), "{row}");
        assert_eq!(pair.server().accept(Direction::Bidirectional), Some(id));
        assert_eq!(read(pair.server(), id).0.len(), most, "{row}");
        pair.pass();
        assert!(pair.world.client.events_of(pair.client).contains(&&Event::Writable(id)), "{row}");
        assert_eq!(pair.client().write(id, &[1; 50_000]), Ok(most), "{row}");
    }
}

/// What was written and is not acknowledged is bounded, whatever the peer permits.
#[test]
fn writers_are_bounded() {
    let of_client = Settings { send_window: 30_000, ..Settings::default() };
    let mut pair = Pair::with(&Settings::default(), &of_client);
    let id = pair.client().open(Direction::Bidirectional).unwrap();
    assert_eq!(pair.client().write(id, &[1; 100_000]), Ok(30_000));
    assert_eq!(pair.client().write(id, &[1]), Err(WriteError::Blocked));
    pair.pass();
    assert_eq!(pair.client().write(id, &[1; 100_000]), Ok(30_000));
}

#[test]
fn resets_and_stops_carry_their_codes() {
    let mut pair = Pair::usual();
    let id = pair.ask(b"request", false);
    pair.pass();
    assert_eq!(pair.server().accept(Direction::Bidirectional), Some(id));
    pair.server().stop(id, 0x10c);
    pair.server().reset(id, 0x102);
    pair.pass();
    assert_eq!(pair.client().read(id, 1), Err(ReadError::Reset(0x102)));
    assert_eq!(pair.client().write(id, b"x"), Err(WriteError::Stopped(0x10c)));
    assert!(pair.world.client.events_of(pair.client).contains(&&Event::Stopped(id, 0x10c)));
    // Those that have ended are left alone.
    pair.client().reset(id, 1);
    pair.client().reset(id, 1);
    pair.client().stop(id, 1);
    pair.server().reset(id, 1);
    pair.pass();
}

/// The peer opens as many streams as were announced; those that are over make room.
#[test]
fn streams_are_counted() {
    let of_server = Settings { max_bidirectional: 2, ..Settings::default() };
    let mut pair = Pair::with(&of_server, &Settings::default());
    let first = pair.ask(b"1", true);
    pair.ask(b"2", true);
    assert_eq!(pair.client().open(Direction::Bidirectional), None);
    pair.pass();
    let server = pair.server();
    assert_eq!(server.open_by_peer(Direction::Bidirectional), 2);
    assert_eq!(server.accept(Direction::Bidirectional), Some(first));
    assert_eq!(read(server, first).0, b"1");
    server.finish(first).unwrap();
    pair.pass();
    assert!(pair.world.client.events_of(pair.client).contains(&&Event::StreamsAvailable(Direction::Bidirectional)));
    assert!(pair.client().open(Direction::Bidirectional).is_some());
    assert_eq!(pair.client().open(Direction::Bidirectional), None);
}

/// A limit that is lowered stops new streams once those that were announced are used.
#[test]
fn no_more_streams_are_announced_after_a_limit() {
    let of_server = Settings { max_bidirectional: 2, ..Settings::default() };
    let mut pair = Pair::with(&of_server, &Settings::default());
    pair.server().set_max_streams(Direction::Bidirectional, 0);
    for _ in 0..2 {
        let id = pair.ask(b"x", true);
        pair.pass();
        assert_eq!(pair.server().accept(Direction::Bidirectional), Some(id));
        read(pair.server(), id);
        pair.server().finish(id).unwrap();
        pair.pass();
    }
    assert_eq!(pair.client().open(Direction::Bidirectional), None);
}

/// Streams of a larger priority are sent first: a window is filled by them alone.
#[test]
fn priorities_order_streams() {
    for (of_first, of_second, expected) in [(-1, 5, 1), (5, -1, 0)] {
        let congestion = Congestion { algorithm: Algorithm::Fixed, max_window: 12_000 };
        let of_client = Settings { congestion, ..Settings::default() };
        let mut pair = Pair::with(&Settings::default(), &of_client);
        let ids = [pair.ask(&[], false), pair.ask(&[], false)];
        for (id, priority) in ids.into_iter().zip([of_first, of_second]) {
            pair.client().set_priority(id, priority);
            pair.client().write(id, &[3; 30_000]).unwrap();
        }
        let server = pair.server;
        let mut got = Vec::new();
        pair.world.until(|world| {
            let connection = world.server.connections.get_mut(&server).unwrap();
            while connection.accept(Direction::Bidirectional).is_some() {}
            got = ids.into_iter().filter(|id| matches!(connection.read(*id, 1), Ok(Part::Chunk(_)))).collect();
            !got.is_empty()
        });
        assert_eq!(got, [ids[expected]]);
    }
}

/// Statistics count what happened.
#[test]
fn statistics_count() {
    let mut pair = Pair::usual();
    pair.ask(&[1; 10_000], true);
    pair.pass();
    let Statistics { rtt, window, mtu, sent_packets, received_datagrams, received_bytes, lost_packets, .. } =
        pair.server().statistics();
    assert_eq!((rtt.as_millis(), lost_packets), (20, 0));
    assert!(window >= 10_000 && sent_packets >= 4 && received_datagrams >= 10 && received_bytes > 10_000);
    assert_eq!(mtu, 1_452, "found by larger datagrams");
}
