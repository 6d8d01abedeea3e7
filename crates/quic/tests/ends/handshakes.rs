//! Handshakes: certificates by name, protocols, decisions about new connections, and the information that is left.

use std::sync::Arc;
use std::time::Duration;

use tls::server::{Settings, Verify};
use tls::verify::ClientTerms;
use tls::{Failure, HandshakeInfo};
use weir_quic::{Closed, Event, Handle, Secrets};

use crate::certificates::{Authority, client, client_settings, identity, server, settings};
use crate::raw::{Raw, own_id, varint};
use crate::world::{Decision, Plan, World};

/// Returns the information that the server has on a connection.
fn info(world: &World, handle: Handle) -> HandshakeInfo {
    world.server.connections[&handle].handshake_info().unwrap()
}

/// Proceeds until the client's connection has ended. Returns why.
fn end(world: &mut World, client: Handle) -> Closed {
    let mut reason = None;
    world.until(|world| {
        reason = world.client.events.iter().find_map(|(handle, event)| match event {
            Event::Closed(reason) if *handle == client => Some(reason.clone()),
            _ => None,
        });
        reason.is_some()
    });
    reason.expect("the connection ends")
}

#[test]
fn the_server_knows_the_handshake_once() {
    let (mut world, tls) = World::usual();
    let handle = world.connect(&tls, "a.test");
    assert!(world.until(|world| world.half_open.count() == 1));
    let accepted = world.shake(handle);
    assert_eq!(world.half_open.count(), 0);
    let known = info(&world, accepted);
    assert_eq!(known.alpn.as_deref(), Some(&b"h3"[..]));
    assert_eq!(known.server_name.as_deref(), Some(&b"a.test"[..]));
    assert_eq!(known.version_name(), Some("TLSv1.3"));
    assert_eq!((known.resumed, known.own.map(|own| own.name.to_string())), (false, Some("a.test".to_owned())));
    assert!(world.server.connections[&accepted].handshake_info().is_none(), "it is kept once");
    assert_eq!(world.server.events_of(accepted)[..2], [&Event::Hello, &Event::Connected]);
}

#[test]
fn certificates_are_selected_by_name() {
    let authority = Authority::new();
    let certificates = [authority.certificate(&["a.test"]), authority.certificate(&["b.test"])];
    for (name, verified, expected) in
        [("a.test", true, "a.test"), ("b.test", true, "b.test"), ("c.test", false, "a.test")]
    {
        let mut world = World::new(Plan::new(server(&certificates, settings(), false)));
        let mut client_settings = client_settings(&authority);
        if !verified {
            client_settings.authorities = None;
        }
        let handle = world.connect(&client(client_settings), name);
        let accepted = world.shake(handle);
        assert_eq!(info(&world, accepted).own.map(|own| own.name.to_string()).as_deref(), Some(expected), "{name}");
    }
}

/// `strict-sni`, a certificate for another name, and protocols without a common one: with the alerts of RFC 8446.
#[test]
fn failures_are_alerts() {
    let authority = Authority::new();
    let certificates = [authority.certificate(&["a.test"])];
    let other = tls::client::Settings { alpn: vec![b"h2".to_vec()], ..client_settings(&authority) };
    let distrusting = client_settings(&Authority::new());
    let rows = [
        ("strict-sni", true, client_settings(&authority), "c.test", 112),
        ("no protocol in common", false, other, "a.test", 120),
        (
            "no protocol",
            false,
            tls::client::Settings { alpn: Vec::new(), ..client_settings(&authority) },
            "a.test",
            120,
        ),
        ("wrong name", false, client_settings(&authority), "c.test", 42),
        ("unknown authority", false, distrusting, "a.test", 48),
    ];
    for (row, is_strict, of_client, name, alert) in rows {
        let mut world = World::new(Plan::new(server(&certificates, settings(), is_strict)));
        let handle = world.connect(&client(of_client), name);
        assert_eq!(end(&mut world, handle).alert(), Some(alert), "{row}");
        world.run_for(Duration::from_secs(5));
        assert_eq!((world.half_open.count(), world.server.endpoint.connections()), (0, 0), "{row}");
    }
}

/// A handshake that fails in its first datagram leaves its information with the refusal.
#[test]
fn refused_hellos_are_reported() {
    let authority = Authority::new();
    let mut world = World::new(Plan::new(server(&[authority.certificate(&["a.test"])], settings(), true)));
    let of_client = tls::client::Settings {
        // Short enough for one datagram.
        algorithms: tls::provider::Algorithms {
            groups: Some(tls::provider::groups("X25519").found),
            ..tls::provider::Algorithms::default()
        },
        ..client_settings(&authority)
    };
    let handle = world.connect(&client(of_client), "c.test");
    assert_eq!(end(&mut world, handle).alert(), Some(112));
    let [refusal] = &world.server.refusals[..] else { panic!("{:?}", world.server.refusals) };
    let info = refusal.info.as_ref().unwrap();
    assert_eq!(info.server_name.as_deref(), Some(&b"c.test"[..]));
    assert_eq!(info.failure.as_deref(), Some(&Failure::UnknownName));
    assert_eq!(refusal.reason.alert(), Some(112));
}

/// The same as over TCP: verified by the authorities of the configuration.
#[test]
fn clients_present_certificates() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let terms = ClientTerms {
        is_required: true,
        authorities: clients.authorities(),
        silent: None,
        announces: true,
        ..ClientTerms::default()
    };
    let settings = Settings { verify: Verify::Asked(terms), ..settings() };
    let tls = server(&[authority.certificate(&["a.test"])], settings, false);
    for (certificate, expected) in [
        (Some(clients.certificate(&["me"])), None),
        (None, Some(116)),
        (Some(authority.certificate(&["me"])), Some(48)),
    ] {
        let mut world = World::new(Plan::new(Arc::clone(&tls)));
        let of_client = tls::client::Settings { certificate, ..client_settings(&authority) };
        let handle = world.connect(&client(of_client), "a.test");
        match expected {
            None => {
                let accepted = world.shake(handle);
                assert_eq!(info(&world, accepted).peer.len(), 1);
            }
            Some(alert) => assert_eq!(end(&mut world, handle).alert(), Some(alert)),
        }
    }
}

#[test]
fn sessions_are_resumed() {
    let (mut world, tls) = World::usual();
    for resumed in [false, true] {
        let handle = world.connect(&tls, "a.test");
        let accepted = world.shake(handle);
        assert_eq!(info(&world, accepted).resumed, resumed);
        world.run_for(Duration::from_secs(1));
        world.server.events.clear();
    }
}

#[test]
fn new_connections_are_refused_or_ignored() {
    for (decision, expected) in
        [(Decision::Refuse, Closed::PeerTransport { code: 2, reason: [].into() }), (Decision::Ignore, Closed::TimedOut)]
    {
        let (mut world, tls) = World::usual();
        world.server.decision = decision;
        let handle = world.connect(&tls, "a.test");
        assert_eq!(end(&mut world, handle), expected, "{decision:?}");
        assert_eq!((world.half_open.count(), world.server.endpoint.connections()), (0, 0));
    }
}

/// A Retry is sent when it is asked for, when it is forced, and when many handshakes are in progress and the secret is shared.
#[test]
fn addresses_are_confirmed() {
    let rows = [
        ("asked for", Decision::Retry, false, 100, false, true),
        ("forced", Decision::Accept, true, 100, false, true),
        ("many", Decision::Accept, false, 0, true, true),
        ("many without a shared secret", Decision::Accept, false, 0, false, false),
        ("few", Decision::Accept, false, 1, true, false),
    ];
    for (row, decision, forces_retry, retry_threshold, is_shared, is_retried) in rows {
        let authority = Authority::new();
        let tls = server(&[authority.certificate(&["a.test"])], settings(), false);
        let secrets = if is_shared { Secrets::of_cluster(b"secret") } else { Secrets::random([3; 32]) };
        let mut world = World::new(Plan { secrets, retry_threshold, forces_retry, ..Plan::new(tls) });
        world.server.decision = decision;
        let handle = world.connect(&client(client_settings(&authority)), "a.test");
        world.shake(handle);
        assert_eq!(world.server.retries > 0, is_retried, "{row}");
    }
}

/// An invalid token costs no handshake: its client has to confirm its address. A length of 0 is no token in any of its forms.
#[test]
fn invalid_tokens_are_retried() {
    let token = |length: usize| [varint(length as u64), vec![7; length]].concat();
    let rows = [(token(1), 1), (token(16), 1), (token(64), 1), (token(90), 1), (vec![0], 0), (vec![0x40, 0], 0)];
    for (token, invalid) in rows {
        let mut raw = Raw::new(own_id());
        raw.token.clone_from(&token);
        raw.begin();
        let server = &mut raw.world.server;
        assert_eq!((server.retries, server.connections.len()), (invalid, 1 - invalid), "{token:?}");
        let counts = server.endpoint.take_counts();
        assert_eq!((counts.invalid_tokens, counts.retries_sent), (invalid as u64, invalid as u64), "{token:?}");
    }
}

/// A token is valid for the address that it was sent to, and for a short time.
#[test]
fn tokens_expire() {
    let (mut world, tls) = World::usual();
    world.server.decision = Decision::Retry;
    let handle = world.connect(&tls, "a.test");
    // The datagrams with the token arrive late.
    world.link = Box::new(|number, packet| {
        if number > 1 && packet.to == crate::world::SERVER {
            packet.at = packet.at + Duration::from_secs(17);
        }
        true
    });
    let Closed::PeerTransport { code, .. } = end(&mut world, handle) else { panic!("{:?}", world.client.events) };
    assert_eq!(code, 0xb, "INVALID_TOKEN");
}

#[test]
fn servers_without_settings_answer_nothing_new() {
    let (mut world, tls) = World::usual();
    world.server.endpoint.serve(None);
    let handle = world.connect_with(&tls, identity("a.test"), &weir_quic::Transport::default());
    assert_eq!(end(&mut world, handle), Closed::TimedOut);
}
