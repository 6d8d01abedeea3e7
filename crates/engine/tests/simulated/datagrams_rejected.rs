//! Datagrams that a server rejects while others of the same client are on their way.

use std::time::Duration;

use rt::net::{Address, ReceiveBatch, Transmit};
use rt::sim::{DatagramPath, network};
use testkit::sleep;

use crate::datagrams::*;
use crate::world::*;

/// Length of a datagram, of which the kernel takes six in a message.
const LONG: usize = 9_300;

/// Returns the last bytes of the datagrams that a server gets until a second passes without one.
async fn numbers(server: &Peer) -> Vec<u8> {
    let mut numbers = Vec::new();
    loop {
        let mut batch = ReceiveBatch::new();
        let next = std::future::poll_fn(|cx| server.0.poll_receive(cx, &mut batch));
        let Some(found) = testkit::within(Duration::from_secs(1), next).await else { return numbers };
        found.unwrap();
        numbers.extend(
            batch.iter().flat_map(|found| found.iter().filter_map(|bytes| bytes.last().copied()).collect::<Vec<_>>()),
        );
    }
}

/// A server rejects a datagram when some of those that have arrived together are sent: the others go to another one, and none
/// twice.
#[test]
fn datagrams_are_sent_once_when_a_server_rejects_some() {
    for header in ["", " send-proxy-v2"] {
        let text = format!(
            "udp-lb dns\n    log global\n    dgram-bind {DNS}\n    timeout client 2s\n    balance static-rr\n    \
             accepted-payload-size 9500\n    server a {U1}{header}\n    server b {U2}{header}\n"
        );
        config(&text).workers(&[1]).seeds(0..8).run(|world| async move {
            // They arrive together, so that the kernel joins them.
            let path = DatagramPath { jitter: Duration::ZERO, ..DatagramPath::default() };
            network().set_path_to(&Address::Inet(DNS.parse().unwrap()), path);
            let (a, b) = (Peer::at(U1), Peer::at(U2));
            let client = Peer::at(CLIENT);
            client.send(DNS, b"begin");
            assert_eq!(numbers(&a).await.len(), 1);
            network().reject_after(&Address::Inet(U1.parse().unwrap()), 1);
            let all: Vec<_> = (0..7).flat_map(|number| [number; LONG]).collect();
            let (destination, segment_size) = (DNS.parse().unwrap(), Some(LONG));
            let batch = Transmit { destination, source: None, ecn: None, contents: &all, segment_size };
            assert_eq!(client.0.try_send(&mut [batch]), 1);
            let (first, second) = (numbers(&a).await, numbers(&b).await);
            let mut found = [&first[..], &second].concat();
            found.sort_unstable();
            assert_eq!(found, [0, 1, 2, 3, 4, 5, 6], "{first:?} {second:?}");
            assert!(!first.is_empty() && !second.is_empty());
            world.expect_log(&["dns dns/a 0/0/* 0 SD 2/2/1/0/0 0/0"]).await;
            sleep(2_100).await;
            world.forget_log();
        });
    }
}

/// A rejection that the first datagram of a flow meets ends the flow.
#[test]
fn a_flow_ends_whose_first_datagram_is_not_sent() {
    section("    balance first").workers(&[1]).run(|world| async move {
        let _server = Peer::at(U1);
        network().reject_after(&Address::Inet(U1.parse().unwrap()), 0);
        Peer::at(CLIENT).send(DNS, b"1");
        sleep(10).await;
        assert_eq!(world.sessions(), 0);
        world.expect_log(&["dns dns/a 0/0/0 0 SD 1/1/0/0/0 0/0"]).await;
    });
}
