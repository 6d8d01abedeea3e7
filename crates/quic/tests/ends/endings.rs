//! The end of connections: closed by either side, by silence, by a reset, or with an endpoint that forgets them.

use std::time::Duration;

use weir_quic::transport::Settings;
use weir_quic::{Closed, Event, Handle};

use crate::streams::Pair;
use crate::world::{CLIENT, SERVER, Side, World};

/// Returns why a connection has ended.
fn reason(side: &Side, handle: Handle) -> Option<&Closed> {
    side.events_of(handle).into_iter().find_map(|event| match event {
        Event::Closed(reason) => Some(reason),
        _ => None,
    })
}

#[test]
fn closing_is_reported_with_code_and_reason() {
    for by_client in [true, false] {
        let mut pair = Pair::usual();
        let now = pair.world.now;
        let own = if by_client { pair.client() } else { pair.server() };
        own.close(now, 0x100, b"done");
        assert!(own.is_closed());
        pair.pass();
        let expected = Closed::ByPeer { code: 0x100, reason: (*b"done").into() };
        let (client, server) = (reason(&pair.world.client, pair.client), reason(&pair.world.server, pair.server));
        let (own, peer) = if by_client { (client, server) } else { (server, client) };
        assert_eq!((own, peer), (None, Some(&expected)));
        // After three times the time for a retransmission, nothing is left.
        let world = &mut pair.world;
        assert!(world.client.connections.is_empty() && world.server.connections.is_empty());
        assert_eq!((world.client.endpoint.connections(), world.server.endpoint.connections()), (0, 0));
    }
}

#[test]
fn silence_ends_connections_and_packets_in_between_keep_them() {
    let idle = Settings { idle_timeout: Duration::from_secs(10), ..Settings::default() };
    let mut pair = Pair::with(&idle, &Settings::default());
    for _ in 0..3 {
        pair.world.run_for(Duration::from_secs(8));
        pair.client().ping();
        pair.pass();
    }
    assert_eq!(reason(&pair.world.server, pair.server), None);
    pair.world.run_for(Duration::from_secs(11));
    for (side, handle) in [(&pair.world.client, pair.client), (&pair.world.server, pair.server)] {
        assert_eq!(reason(side, handle), Some(&Closed::TimedOut));
    }
    assert_eq!((pair.world.client.endpoint.connections(), pair.world.server.endpoint.connections()), (0, 0));
}

#[test]
fn kept_connections_do_not_time_out() {
    let idle = Settings { idle_timeout: Duration::from_secs(10), ..Settings::default() };
    let keeping = Settings { keep_alive: Some(Duration::from_secs(4)), ..Settings::default() };
    let mut pair = Pair::with(&idle, &keeping);
    pair.world.run_for(Duration::from_secs(60));
    assert_eq!((reason(&pair.world.server, pair.server), reason(&pair.world.client, pair.client)), (None, None));
}

/// A server that lost its connections answers with stateless resets, which its clients recognize (section 10.3).
#[test]
fn a_server_that_has_forgotten_a_connection_resets_it() {
    let mut pair = Pair::usual();
    // The client has to know the token of the id that it uses.
    pair.pass();
    let handle = pair.server;
    drop(pair.world.server.connections.remove(&handle));
    pair.world.server.endpoint.forget(handle);
    assert_eq!(pair.world.server.endpoint.connections(), 0);
    pair.ask(b"request", true);
    pair.pass();
    assert_eq!(reason(&pair.world.client, pair.client), Some(&Closed::Reset));
}

/// Resets are not sent to those of other workers, nor in answer to what is as short as a reset.
#[test]
fn unknown_datagrams_are_rarely_answered() {
    let id = |worker: u8, process: u8| [&[0x40, worker, process][..], &[7; 6], &[1; 40]].concat();
    let rows: [(&str, Vec<u8>, bool); 5] = [
        ("of this worker", id(1, 42), true),
        ("of another process", id(9, 41), true),
        ("of another worker", id(2, 42), false),
        ("short", id(1, 42)[..21].to_vec(), false),
        ("empty", Vec::new(), false),
    ];
    for (row, bytes, is_answered) in rows {
        let (mut world, _) = World::usual();
        world.inject(CLIENT, SERVER, &bytes);
        world.run_for(Duration::from_millis(1));
        assert_eq!(!world.log.is_empty(), is_answered, "{row}");
        assert!(world.log.iter().all(|(_, answer)| answer.len() < bytes.len()), "{row}");
    }
}

/// Versions that are unknown are answered with those that are (section 6), if the datagram is as long as a first one.
#[test]
fn versions_are_negotiated() {
    for (length, is_answered) in [(1_200, true), (1_199, false)] {
        let (mut world, _) = World::usual();
        let mut hello = [&[0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8][..], &[1; 8], &[8], &[2; 8]].concat();
        hello.resize(length, 0);
        world.inject(CLIENT, SERVER, &hello);
        world.run_for(Duration::from_millis(1));
        assert_eq!(!world.log.is_empty(), is_answered, "{length}");
        if let Some((_, answer)) = world.log.first() {
            assert_eq!(answer[1..5], [0; 4], "Version Negotiation");
            assert_eq!((&answer[6..14], &answer[15..23]), (&[2; 8][..], &[1; 8][..]));
            assert!(answer[23..].chunks(4).any(|version| version == [0, 0, 0, 1]));
        }
    }
}

/// Packets that only servers send end no connection, though they have its id and are not authenticated.
#[test]
fn packets_of_servers_are_ignored() {
    for [first, version] in [[0xf0, 1], [0x80, 0], [0xff, 0]] {
        let (mut world, tls) = World::usual();
        world.connect(&tls, "a.test");
        // The server's first datagram has the id that it has chosen, after that of the client.
        let id = |world: &World| {
            let (_, answer) = world.log.iter().find(|(from, _)| *from == SERVER)?;
            let at = 6 + usize::from(answer[5]);
            Some(answer[at..=at + usize::from(answer[at])].to_vec())
        };
        assert!(world.until(|world| id(world).is_some()));
        let forged = [&[first, 0, 0, 0, version][..], &id(&world).unwrap(), &[8], &[5; 40]].concat();
        world.inject(CLIENT, SERVER, &forged);
        let handle = *world.client.connections.keys().next().unwrap();
        world.shake(handle);
        world.run_for(Duration::from_secs(1));
        assert!(world.server.events.iter().all(|(_, event)| !matches!(event, Event::Closed(_))), "{first:x} {version}");
    }
}
