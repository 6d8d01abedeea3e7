//! Tests of BGP sessions with scripted routers: routes that follow the states of servers, routers that send what they must not,
//! the end of the process.

use testkit::{Peer, Service, Stopwatch, sleep};
use wire::bgp::{Capabilities, ErrorCode, HEADER, Kind, Notification, Open, UpdateContent, decode};

use crate::api::*;
use crate::messages::*;
use crate::world::*;

const ROUTER: &str = "10.0.5.1:179";

/// A prefix in an UPDATE message.
const PREFIX: [u8; 5] = [32, 203, 0, 113, 10];

fn speaker() -> Worlds {
    config(&format!(
        "listen b\n bind {WEIR}\n server s1 10.0.1.1:80\nbgp edge\n local-as 65001\n router-id 10.0.0.1\n neighbor tor 10.0.5.1 as \
         65000\n announce 203.0.113.10/32 if {{ nbsrv(b) ge 1 }}\n"
    ))
    .global(SOCKET)
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xff; 16];
    bytes.extend((19 + body.len() as u16).to_be_bytes());
    bytes.push(kind);
    bytes.extend(body);
    bytes
}

fn keepalive() -> Vec<u8> {
    message(4, &[])
}

fn open(number: u32, hold_time: u16) -> Vec<u8> {
    let mut out = Vec::new();
    let capabilities = Some(Capabilities::own(number));
    Open { number, hold_time, router_id: [10, 0, 5, 1].into(), capabilities }.encode(&mut out);
    out
}

/// Receives a message.
async fn receive(peer: &mut Peer) -> (Kind, Vec<u8>) {
    let mut bytes = peer.receive(HEADER).await;
    let length = usize::from(u16::from_be_bytes([bytes[16], bytes[17]]));
    if length > HEADER {
        bytes.extend(peer.receive(length - HEADER).await);
    }
    let frame = decode(&bytes).unwrap().unwrap();
    (frame.kind, frame.body.to_vec())
}

/// Receives messages until one is not a KEEPALIVE.
async fn receive_other(peer: &mut Peer) -> (Kind, Vec<u8>) {
    loop {
        let received = receive(peer).await;
        if received.0 != Kind::Keepalive {
            return received;
        }
    }
}

/// Receives an UPDATE message; returns whether it announces the route.
async fn update(peer: &mut Peer) -> bool {
    let (kind, body) = receive_other(peer).await;
    assert_eq!(kind, Kind::Update);
    let content = UpdateContent::parse(&body).unwrap();
    assert_eq!(content.announced + content.withdrawn, 1);
    assert!(body.windows(5).any(|bytes| bytes == PREFIX));
    content.announced == 1
}

/// Receives a NOTIFICATION message.
async fn notification(peer: &mut Peer) -> Notification {
    let (kind, body) = receive_other(peer).await;
    assert_eq!(kind, Kind::Notification, "{body:?}");
    Notification::parse(&body)
}

/// Accepts a connection, on which the OPEN message is received.
async fn accept(router: &mut Service) -> Peer {
    let mut peer = router.accept().await;
    let (kind, body) = receive(&mut peer).await;
    let open = Open::parse(&body).unwrap();
    assert_eq!((kind, open.number, open.hold_time), (Kind::Open, 65_001, 9));
    peer
}

/// Accepts a session, and receives the route.
async fn establish(router: &mut Service) -> Peer {
    let mut peer = accept(router).await;
    peer.send(open(65_000, 90)).await;
    assert_eq!(receive(&mut peer).await.0, Kind::Keepalive);
    peer.send(keepalive()).await;
    assert!(update(&mut peer).await);
    peer
}

#[test]
fn a_route_follows_its_server_at_once() {
    speaker().run(|_| async move {
        let mut router = Service::at(ROUTER);
        let mut peer = establish(&mut router).await;
        for _ in 0..3 {
            let watch = Stopwatch::start();
            order("set server b/s1 state maint").await;
            assert!(!update(&mut peer).await);
            assert!(watch.elapsed().as_millis() < 100, "{:?}", watch.elapsed());
            sleep(200).await;
            order("set server b/s1 state ready").await;
            assert!(update(&mut peer).await);
            sleep(200).await;
        }
        assert!(ask("show bgp").await.contains(" changes=7 "));
    });
}

#[test]
fn a_flapping_server_changes_a_route_ten_times_a_second() {
    speaker().run(|_| async move {
        let mut router = Service::at(ROUTER);
        let mut peer = establish(&mut router).await;
        sleep(1_000).await;
        for _ in 0..50 {
            order("set server b/s1 state maint").await;
            sleep(7).await;
            order("set server b/s1 state ready").await;
            sleep(7).await;
        }
        order("set server b/s1 state maint").await;
        sleep(300).await;
        let shown = ask("show bgp").await;
        let changes = shown.split(" changes=").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
        let changes: u32 = changes.parse().unwrap();
        assert!((3..=13).contains(&changes), "{shown}");
        assert!(shown.contains("state=withdrawn"), "{shown}");
        let mut last = true;
        for _ in 1..changes {
            let announced = update(&mut peer).await;
            assert_ne!(announced, last);
            last = announced;
        }
        assert!(!last);
    });
}

#[test]
fn what_the_router_must_not_send_ends_the_session_with_its_code() {
    let wrong_version = {
        let mut bytes = open(65_000, 90);
        bytes[19] = 3;
        bytes
    };
    // Before the session is established, and after.
    let rows = [
        (false, b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), ErrorCode::NOT_SYNCHRONIZED),
        (false, open(65_002, 90), ErrorCode::BAD_PEER_AS),
        (false, open(65_000, 1), ErrorCode::UNACCEPTABLE_HOLD_TIME),
        (false, open(65_000, 2), ErrorCode::UNACCEPTABLE_HOLD_TIME),
        (false, wrong_version, ErrorCode::UNSUPPORTED_VERSION),
        (false, keepalive(), ErrorCode::UNEXPECTED_IN_OPEN_SENT),
        (true, message(2, &[0, 9, 0, 0]), ErrorCode::MALFORMED_ATTRIBUTES),
        (true, message(2, &[0, 0, 0, 0, 33, 1, 2, 3, 4, 5]), ErrorCode::INVALID_NETWORK),
        (true, message(7, &[]), ErrorCode::BAD_TYPE),
        (true, vec![0xff; 18].into_iter().chain([4]).collect(), ErrorCode::BAD_LENGTH),
        (true, open(65_000, 90), ErrorCode::UNEXPECTED_IN_ESTABLISHED),
    ];
    speaker().seeds(0..1).run(move |_| {
        let rows = rows.clone();
        async move {
            let (mut router, mut s1) = (Service::at(ROUTER), Service::at("10.0.1.1:80"));
            for (is_established, bytes, expected) in rows {
                let mut peer = if is_established { establish(&mut router).await } else { accept(&mut router).await };
                peer.send(bytes).await;
                assert_eq!(notification(&mut peer).await.error, expected);
                peer.expect_eof().await;
                drop(peer);
                // Requests do not notice.
                let mut client = Peer::connect(WEIR).await;
                client.send(GET).await;
                let mut server = s1.accept().await;
                server.expect(GET_AT_SERVER).await;
                server.send(OK).await;
                client.expect(OK_AT_CLIENT).await;
                let shown = ask("show bgp").await;
                assert!(shown.contains(&format!("last_end=\"sent {expected}\"")), "{shown}");
            }
        }
    });
}

#[test]
fn a_silent_router_is_left_and_called_again() {
    speaker().run(|_| async move {
        let mut router = Service::at(ROUTER);
        let mut peer = establish(&mut router).await;
        let watch = Stopwatch::start();
        assert_eq!(notification(&mut peer).await.error, ErrorCode::HOLD_TIMER);
        assert!((8_900..=9_100).contains(&watch.elapsed().as_millis()), "{:?}", watch.elapsed());
        peer.expect_eof().await;
        drop(peer);
        establish(&mut router).await;
    });
}

#[test]
fn a_flood_is_dropped() {
    speaker().seeds(0..1).run(|_| async move {
        let (mut router, mut s1) = (Service::at(ROUTER), Service::at("10.0.1.1:80"));
        let mut peer = establish(&mut router).await;
        let flood = message(2, &[0, 0, 0, 4, 0x40, 1, 1, 0, 8, 10, 16, 172, 16]).repeat(100);
        for _ in 0..200 {
            peer.send(&flood).await;
        }
        peer.send(message(5, &[0, 1, 0, 1]).repeat(1_000)).await;
        assert!(update(&mut peer).await);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut server = s1.accept().await;
        server.expect(GET_AT_SERVER).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        while !ask("show bgp").await.contains(" routes_dropped=40000 ") {
            sleep(10).await;
        }
    });
}

#[test]
fn a_stop_ends_the_session_in_order() {
    speaker().run(|world| async move {
        let mut router = Service::at(ROUTER);
        let mut peer = establish(&mut router).await;
        world.stop();
        assert!(!update(&mut peer).await);
        let last = notification(&mut peer).await;
        assert_eq!((last.error, last.communication()), (ErrorCode::SHUTDOWN, Some("Weir stops")));
        peer.expect_eof().await;
        drop(peer);
        router.is_left_alone();
    });
}

/// A connection that is closed with unread input would be reset, and the last message be lost.
#[test]
fn a_router_that_sends_during_a_stop_receives_the_last_message() {
    speaker().run(|world| async move {
        let mut router = Service::at(ROUTER);
        let mut peer = establish(&mut router).await;
        world.stop();
        for _ in 0..50 {
            peer.send(keepalive()).await;
            sleep(1).await;
        }
        assert!(!update(&mut peer).await);
        assert_eq!(notification(&mut peer).await.error, ErrorCode::SHUTDOWN);
        peer.expect_eof().await;
    });
}

#[test]
fn a_router_that_is_missing_does_not_delay_a_stop() {
    speaker().run(|world| async move {
        sleep(500).await;
        world.stop();
        while !world.is_drained().await {
            sleep(10).await;
        }
    });
}
