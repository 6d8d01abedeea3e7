//! Early data (0-RTT): sent before the handshake is complete, marked until then, and never replayed.

use std::sync::Arc;
use std::time::Duration;

use tls::server::Settings;
use weir_quic::{Direction, Handle, Transport};

use crate::certificates::{Authority, client, client_settings, identity, server, settings};
use crate::world::{Plan, World, read};

/// A world whose client has a session, and which of both sides permits early data.
fn resumable(of_server: bool) -> (World, Arc<tls::Client>) {
    let authority = Authority::new();
    let early_data = if of_server { 16_384 } else { 0 };
    let tls = server(&[authority.certificate(&["a.test"])], Settings { early_data, ..settings() }, false);
    let mut world = World::new(Plan::new(tls));
    let tls = client(tls::client::Settings { early_data: true, ..client_settings(&authority) });
    let handle = world.connect(&tls, "a.test");
    world.shake(handle);
    world.run_for(Duration::from_secs(1));
    world.server.events.clear();
    (world, tls)
}

fn connect(world: &mut World, tls: &Arc<tls::Client>) -> Handle {
    let asked = tls.with_early_data(identity("a.test"));
    world.connect_with(tls, asked, &Transport::default())
}

#[test]
fn early_requests_are_marked_until_the_handshake_is_complete() {
    let (mut world, tls) = resumable(true);
    let former = *world.server.connections.keys().next().unwrap();
    let handle = connect(&mut world, &tls);
    let own = world.client.connections.get_mut(&handle).unwrap();
    assert!(own.may_send_early());
    let id = own.open(Direction::Bidirectional).unwrap();
    own.write(id, b"early").unwrap();
    own.finish(id).unwrap();
    let mut accepted = None;
    assert!(world.until(|world| {
        let new = world.server.connections.iter_mut().find(|(handle, _)| **handle != former);
        let Some((handle, connection)) = new else { return false };
        if connection.accept(Direction::Bidirectional).is_none() {
            return false;
        }
        assert_eq!(read(connection, id), (b"early".to_vec(), true));
        accepted = Some((*handle, connection.is_handshaking(), connection.handshake_info().unwrap()));
        true
    }));
    let (accepted, is_handshaking, info) = accepted.unwrap();
    assert!(is_handshaking && info.is_early() && info.resumed);
    world.until(|world| !world.server.connections[&accepted].is_handshaking());
    assert!(!info.is_early() && info.early.is_some());
    assert!(world.until(|world| world.client.connections[&handle].is_early_accepted()));
}

#[test]
fn a_server_that_permits_none_gets_the_request_after_the_handshake() {
    let (mut world, tls) = resumable(false);
    let handle = connect(&mut world, &tls);
    assert!(!world.client.connections[&handle].may_send_early());
    let accepted = world.shake(handle);
    let info = world.server.connections[&accepted].handshake_info().unwrap();
    assert!(info.resumed && info.early.is_none());
}

/// A recorded first flight is answered, and its early data is not accepted a second time (RFC 8446, section 8).
#[test]
fn replayed_requests_are_rejected() {
    let (mut world, tls) = resumable(true);
    let begin = world.log.len();
    let handle = connect(&mut world, &tls);
    let own = world.client.connections.get_mut(&handle).unwrap();
    let id = own.open(Direction::Bidirectional).unwrap();
    own.write(id, b"early").unwrap();
    own.finish(id).unwrap();
    world.shake(handle);
    let flight: Vec<Vec<u8>> = world.log[begin..]
        .iter()
        .take_while(|(from, _)| *from == crate::world::CLIENT)
        .map(|(_, bytes)| bytes.clone())
        .collect();
    world.run_for(Duration::from_secs(1));
    // The server has forgotten the connection, not the session.
    let now = world.now;
    for connection in world.server.connections.values_mut() {
        connection.close(now, 0, b"");
    }
    world.run_for(Duration::from_secs(5));
    assert_eq!(world.server.endpoint.connections(), 0);
    for bytes in &flight {
        world.inject("10.0.0.9:999".parse().unwrap(), crate::world::SERVER, bytes);
    }
    world.run_for(Duration::from_millis(5));
    let (_, connection) = world.server.only();
    assert_eq!(connection.accept(Direction::Bidirectional), None);
    let info = connection.handshake_info().unwrap();
    assert!(!info.resumed && info.early.is_none());
}
