//! Early data between both ends: data processed early, replays, and data that the server rejects.

use std::sync::Arc;

use weir_tls::server::Settings;
use weir_tls::{Client, Connection, HandshakeProgress, Server, asked_name, client};

use crate::pair::{Authority, End, carry, server};

const LIMIT: u32 = 1_000;
const HTTP1: &[u8] = b"http/1.1";

fn ready(early_data: u32, alpn: bool) -> Arc<Server> {
    let alpn = if alpn { vec![HTTP1.to_vec()] } else { Vec::new() };
    server(&[Authority::new().certificate(&["a.example"])], Settings { early_data, alpn, ..Settings::default() }, false)
}

fn asking(alpn: bool) -> Client {
    let alpn = if alpn { vec![HTTP1.to_vec()] } else { Vec::new() };
    Client::new(client::Settings { resumes: true, early_data: true, alpn, ..client::Settings::default() }).unwrap()
}

fn near(client: &Client) -> End {
    let mut near = End::new(
        Connection::of_client(client, asked_name(Some("a.example"), None).with_early_data(true), None).unwrap(),
    );
    near.go_on();
    near
}

fn far(server: &Arc<Server>) -> End {
    End::new(Connection::of_server(Arc::clone(server)))
}

fn both_ways(near: &mut End, far: &mut End, piece: usize) {
    for _ in 0..6 {
        carry(near, far, piece);
        carry(far, near, piece);
    }
}

/// Makes the client remember a session with the server.
fn meet(server: &Arc<Server>, client: &Client) {
    let (mut near, mut far) = (near(client), far(server));
    assert!(!near.connection.is_early());
    both_ways(&mut near, &mut far, 100_000);
    assert_eq!(near.receive().unwrap(), (Vec::new(), false));
    assert!(near.connection.take_handshake_info().unwrap().early.is_none());
}

#[test]
fn early_data_is_served_before_the_handshake_is_over() {
    for piece in [1, 7, 100_000] {
        let (server, client) = (ready(LIMIT, true), asking(true));
        meet(&server, &client);
        let (mut near, mut far) = (near(&client), far(&server));
        assert!(near.connection.is_early());
        near.send(b"GET /");
        near.send(b"early");
        carry(&mut near, &mut far, piece);
        assert!(far.connection.is_early() && !far.connection.is_open());
        let info = far.connection.take_handshake_info().unwrap();
        assert!(info.is_early() && info.resumed && info.is_tls13());
        assert_eq!(info.alpn.as_deref(), Some(HTTP1));
        assert_eq!(far.receive().unwrap(), (b"GET /early".to_vec(), false));
        // The response is sent before the client has finished.
        far.send(b"an answer");
        carry(&mut far, &mut near, piece);
        assert!(near.connection.is_open());
        assert_eq!(near.receive().unwrap(), (b"an answer".to_vec(), false));
        near.send(b"more");
        both_ways(&mut near, &mut far, piece);
        assert!(far.connection.is_open());
        assert_eq!(far.receive().unwrap(), (b"more".to_vec(), false));
        far.send(b"at last");
        far.connection.close(&mut far.out);
        carry(&mut far, &mut near, piece);
        assert_eq!(near.receive().unwrap(), (b"at last".to_vec(), true));
        assert!(near.connection.take_handshake_info().unwrap().early.is_some_and(|early| !early.is_pending()));
    }
}

/// Data not read by the end of the handshake precedes the data after it.
#[test]
fn early_data_keeps_its_place() {
    for alpn in [true, false] {
        let (server, client) = (ready(LIMIT, alpn), asking(alpn));
        meet(&server, &client);
        let (mut near, mut far) = (near(&client), far(&server));
        near.send(b"first, ");
        carry(&mut near, &mut far, 100_000);
        // Without a protocol it waits for the end of the handshake.
        assert_eq!(far.connection.is_early(), alpn);
        carry(&mut far, &mut near, 100_000);
        near.send(b"second");
        carry(&mut near, &mut far, 100_000);
        assert!(far.connection.is_open());
        assert_eq!(far.receive().unwrap(), (b"first, second".to_vec(), false));
        assert!(far.connection.take_handshake_info().unwrap().early.is_some_and(|early| !early.is_pending()));
    }
}

#[test]
fn a_session_is_good_for_one_connection() {
    let (server, client) = (ready(LIMIT, true), asking(true));
    meet(&server, &client);
    let (mut near, mut far_end) = (near(&client), far(&server));
    near.send(b"GET /once");
    let said = near.out.clone();
    carry(&mut near, &mut far_end, 100_000);
    assert_eq!(far_end.receive().unwrap().0, b"GET /once");
    // An eavesdropper replays the same bytes.
    for _ in 0..3 {
        let mut again = far(&server);
        assert!(again.input.push(&said));
        again.go_on();
        assert!(!again.connection.is_early() && !again.connection.is_open());
        assert_eq!(again.receive().unwrap(), (Vec::new(), false));
    }
}

/// The server has lost the session, or no longer accepts early data: all of it is sent after the handshake, once.
#[test]
fn what_the_server_refuses_is_sent_after_the_handshake() {
    let certificate = Authority::new().certificate(&["a.example"]);
    let settings = |early_data| Settings { early_data, alpn: vec![HTTP1.to_vec()], ..Settings::default() };
    let ready = |early_data| server(&[Arc::clone(&certificate)], settings(early_data), false);
    for later in [LIMIT, 0] {
        for piece in [100_000, 1] {
            let client = asking(true);
            meet(&ready(LIMIT), &client);
            let (mut near, mut far) = (near(&client), far(&ready(later)));
            for _ in 0..3 {
                near.send(&[b'x'; 300]);
            }
            carry(&mut near, &mut far, piece);
            assert!(!far.connection.is_early());
            carry(&mut far, &mut near, piece);
            near.send(b"behind");
            both_ways(&mut near, &mut far, piece);
            assert_eq!((near.failure.take(), far.failure.take()), (None, None), "{later} {piece}");
            let expected = [&[b'x'; 900][..], b"behind"].concat();
            assert_eq!(far.receive().unwrap(), (expected, false), "{later}");
            assert!(near.connection.take_handshake_info().unwrap().early.is_some());
            assert!(far.connection.take_handshake_info().unwrap().early.is_none());
        }
    }
}

#[test]
fn no_more_is_sent_early_than_the_server_takes() {
    let (server, client) = (ready(10, true), asking(true));
    meet(&server, &client);
    let (mut near, mut far) = (near(&client), far(&server));
    let mut send =
        |bytes: &[u8]| near.connection.send_early(&mut near.input, [bytes, &[]], 100, &mut near.out).unwrap();
    assert_eq!((send(b"0123456"), send(b"789ab"), send(b"ab")), (7, 3, 0));
    carry(&mut near, &mut far, 100_000);
    assert_eq!(far.receive().unwrap().0, b"0123456789");
    both_ways(&mut near, &mut far, 100_000);
    near.send(b"ab");
    both_ways(&mut near, &mut far, 100_000);
    assert_eq!(far.receive().unwrap().0, b"ab");
}

/// A client that closes between its early data and the end of its handshake, or sends an invalid one.
#[test]
fn a_handshake_that_fails_after_early_data_ends_the_connection() {
    let (server, client) = (ready(LIMIT, true), asking(true));
    meet(&server, &client);
    let (mut near, mut far) = (near(&client), far(&server));
    near.send(b"GET /");
    carry(&mut near, &mut far, 100_000);
    carry(&mut far, &mut near, 100_000);
    *near.out.last_mut().unwrap() ^= 1;
    carry(&mut near, &mut far, 100_000);
    assert!(far.failure.is_some() && !far.connection.is_early());
    assert_eq!(far.connection.shake(&mut far.input, &mut far.out), Ok(HandshakeProgress::Part));
}

/// A side with nothing more to send does not wait for the end of the handshake.
#[test]
fn a_goodbye_may_come_before_the_end_of_the_handshake() {
    let (server, client) = (ready(LIMIT, true), asking(true));
    meet(&server, &client);
    let (mut near, mut far) = (near(&client), far(&server));
    near.send(b"GET /");
    carry(&mut near, &mut far, 100_000);
    far.send(b"answer");
    far.connection.close_early(&mut far.input, &mut far.out);
    carry(&mut far, &mut near, 100_000);
    assert_eq!(near.receive().unwrap(), (b"answer".to_vec(), true));
}

/// A server that accepts any amount, and does not respond: the data kept for it is bounded.
#[test]
fn early_data_that_waits_for_an_answer_is_bounded() {
    let (server, client) = (ready(u32::MAX, true), asking(true));
    meet(&server, &client);
    let mut near = near(&client);
    let bytes = vec![b'x'; 16_384];
    let mut send = || near.connection.send_early(&mut near.input, [&bytes, &[]], 16_384, &mut near.out).unwrap();
    let sent: Vec<_> = (0..6).map(|_| send()).collect();
    assert_eq!(sent, [16_384, 16_384, 16_384, 16_384, 0, 0]);
}

fn speaking(protocol: Option<&[u8]>) -> Arc<Server> {
    let alpn = protocol.into_iter().map(<[u8]>::to_vec).collect();
    let settings = Settings { early_data: LIMIT, alpn, ..Settings::default() };
    server(&[Authority::new().certificate(&["a.example"])], settings, false)
}

/// Early data is sent once a handshake has negotiated its protocol, and dropped if the server has selected another one
/// since.
#[test]
fn early_data_goes_in_the_protocol_that_was_agreed_on() {
    const H2: &[u8] = b"h2";
    let alpn = vec![H2.to_vec(), HTTP1.to_vec()];
    let settings = client::Settings { resumes: true, early_data: true, alpn, ..client::Settings::default() };
    for (first, later, is_refused) in [
        (H2, Some(H2), false),
        (HTTP1, Some(HTTP1), false),
        (H2, Some(HTTP1), true),
        (H2, None, true),
        (HTTP1, Some(H2), true),
    ] {
        let client = Client::new(settings.clone()).unwrap();
        let asked = asked_name(Some("a.example"), None);
        let begin = || {
            let asked = client.with_early_data(asked.clone());
            let mut near = End::new(Connection::of_client(&client, asked, None).unwrap());
            near.go_on();
            near
        };
        let known = speaking(Some(first));
        let (mut near, mut far_end) = (begin(), far(&known));
        assert!(near.connection.early_protocol().is_none());
        both_ways(&mut near, &mut far_end, 100_000);
        assert_eq!(near.receive().unwrap().0, b"");
        client.note_protocol(&asked, near.connection.take_handshake_info().unwrap().alpn.as_deref());
        // Tickets of sessions whose protocol is unknown do not enable early data.
        let (mut near, mut far_end) = (begin(), far(&speaking(later)));
        assert_eq!(near.connection.early_protocol(), Some(first));
        near.send(b"early");
        both_ways(&mut near, &mut far_end, 100_000);
        assert_eq!(near.failure.is_some_and(|failure| failure.refuses_protocol()), is_refused, "{later:?}");
        let seen = far_end.receive().map(|(bytes, _)| bytes).unwrap_or_default();
        assert_eq!(seen, if is_refused { &b""[..] } else { b"early" }, "{later:?}");
        client.forget_protocols();
        assert!(begin().connection.early_protocol().is_none());
    }
}
