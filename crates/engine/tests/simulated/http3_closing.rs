//! The end of connections over networks that lose and reorder datagrams (RFC 9000, section 10.2).

use std::time::Duration;

use quic::Closed;
use rt::net::Address;
use rt::sim::DatagramPath;
use wire::h3::{self, ErrorCode, StreamType};

use crate::http3_client::{Client, tls};
use crate::http3_faults::{CLIENT, QUIC, frame, serving};

/// Until datagrams have arrived and were answered.
const ROUND_TRIP: Duration = Duration::from_millis(5);
/// Three times the time for a retransmission, and more.
const PERIOD: Duration = Duration::from_secs(5);

/// Violates HTTP/3 on the control stream: the server closes the connection.
fn violate(client: &mut Client) {
    let mut bytes = Vec::new();
    h3::push_stream_type(StreamType::Control, &mut bytes);
    bytes.extend([frame(0x04, &[]), frame(0x00, b"x")].concat());
    client.open_uni(&bytes);
}

/// Sets the chance that a datagram of the server is lost, in a thousand.
fn lose(loss: u16) {
    let from: Address = QUIC.parse::<std::net::SocketAddr>().unwrap().into();
    rt::sim::network().set_path_from(&from, DatagramPath { loss, ..DatagramPath::default() });
}

#[track_caller]
fn expect_reason(client: &Client) {
    let Some(Closed::ByPeer { code, .. }) = client.closed else { panic!("{:?}", client.closed) };
    assert_eq!(ErrorCode::of(code), Some(ErrorCode::FrameUnexpected));
}

/// The packets that a client has sent before it knows of the end are not answered with stateless resets.
#[test]
fn the_reason_arrives_although_datagrams_overtake_each_other() {
    serving().seeds(0..40).run(|world| async move {
        let jitter = Duration::from_millis(2);
        let path = DatagramPath { jitter, keeps_order: false, duplicates: 200, ..DatagramPath::default() };
        rt::sim::network().set_datagram_path(path);
        let mut client = Client::begin(CLIENT, QUIC, &tls(&["h3"], false));
        client.until(|client| client.is_connected()).await;
        violate(&mut client);
        for _ in 0..5 {
            client.ping().await;
        }
        client.until(|client| client.closed.is_some()).await;
        expect_reason(&client);
        world.forget_log();
    });
}

#[test]
fn the_reason_is_repeated_until_the_closing_period_ends() {
    for (lost_for, is_reported) in [(ROUND_TRIP, true), (PERIOD, false)] {
        serving().run(move |world| async move {
            let mut client = Client::begin(CLIENT, QUIC, &tls(&["h3"], false));
            client.until(|client| client.is_connected()).await;
            // The handshake is confirmed: nothing of it is repeated.
            client.beside(rt::sleep(ROUND_TRIP)).await;
            violate(&mut client);
            lose(1_000);
            client.beside(rt::sleep(lost_for)).await;
            assert_eq!(client.closed, None);
            lose(0);
            client.until(|client| client.closed.is_some()).await;
            match is_reported {
                true => expect_reason(&client),
                false => assert_eq!(client.closed, Some(Closed::Reset)),
            }
            world.forget_log();
        });
    }
}

/// Nothing is sent to a client that has closed its connection (section 10.2.2), and after the period nothing is known of it.
#[test]
fn packets_after_the_end_by_the_client_are_not_answered() {
    serving().run(|world| async move {
        let mut client = Client::connect(CLIENT, QUIC).await;
        client.beside(rt::sleep(ROUND_TRIP)).await;
        client.close().await;
        client.beside(rt::sleep(ROUND_TRIP)).await;
        let before = client.heard;
        for _ in 0..4 {
            client.repeat();
            client.beside(rt::sleep(ROUND_TRIP)).await;
        }
        assert_eq!(client.heard, before);
        client.beside(rt::sleep(PERIOD)).await;
        client.repeat();
        client.beside(rt::sleep(ROUND_TRIP)).await;
        assert_eq!(client.heard, before + 1, "no stateless reset");
        world.forget_log();
    });
}
