//! Steering of datagrams by QUIC's destination connection IDs.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::task::Poll;

use crate::rt;
use crate::support::*;
use rt::net::{BindOptions, DatagramSocket, ReceiveBatch, Transmit, steer_by_connection_id, steered_index};

const SOCKETS: usize = 4;
const IDS: u32 = 1000;

/// Returns a packet with a connection ID of eight bytes, with a long or a short header.
fn packet(number: u32, is_long: bool) -> Vec<u8> {
    let id = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    let mut packet = if is_long { vec![0xc3, 0, 0, 0, 1, 8] } else { vec![0x43] };
    packet.extend_from_slice(&id);
    packet.extend_from_slice(&number.to_be_bytes());
    packet
}

fn number_of(packet: &[u8]) -> u32 {
    packet.last_chunk().copied().map(u32::from_be_bytes).unwrap()
}

/// Receives from any socket of a group; returns its index, and the datagrams.
async fn receive(group: &[DatagramSocket]) -> (usize, Vec<Vec<u8>>) {
    let mut batch = ReceiveBatch::new();
    poll_fn(|context| {
        for (at, socket) in group.iter().enumerate() {
            if let Poll::Ready(result) = socket.poll_receive(context, &mut batch) {
                result.unwrap();
                let datagrams = batch.iter().flat_map(|message| message.iter().map(<[u8]>::to_vec)).collect();
                return Poll::Ready((at, datagrams));
            }
        }
        Poll::Pending
    })
    .await
}

/// Sends packets from several ports, and checks which socket receives each.
async fn check(group: &[DatagramSocket], to: SocketAddr, is_long: bool) {
    let bind = || DatagramSocket::bind("127.0.0.1:0".parse().unwrap(), &BindOptions::default()).unwrap();
    let clients: Vec<DatagramSocket> = (0..7).map(|_| bind()).collect();
    let mut numbers = BTreeSet::new();
    for first in (0..IDS).step_by(50) {
        let packets: Vec<Vec<u8>> = (first..first + 50).map(|number| packet(number, is_long)).collect();
        for (client, packets) in clients.iter().zip(packets.chunks(8)) {
            let transmit =
                |contents| Transmit { destination: to, source: None, ecn: None, contents, segment_size: None };
            let mut transmits: Vec<Transmit<'_>> = packets.iter().map(|packet| transmit(packet)).collect();
            assert_eq!(client.try_send(&mut transmits), packets.len());
        }
        while numbers.len() < (first + 50) as usize {
            let (at, datagrams) = receive(group).await;
            for datagram in datagrams {
                assert_eq!(steered_index(&datagram, SOCKETS), at, "{datagram:?}");
                assert!(numbers.insert(number_of(&datagram)));
            }
        }
    }
}

#[test]
fn a_thousand_ids_reach_the_sockets_that_they_name() {
    on_one_worker(|| async {
        for address in ["127.0.0.1:0", "0.0.0.0:0"] {
            let group = DatagramSocket::bind_group(address.parse().unwrap(), &BindOptions::default(), SOCKETS).unwrap();
            steer_by_connection_id(&group).unwrap();
            let to = SocketAddr::new([127, 0, 0, 1].into(), group[0].local_address().port());
            check(&group, to, false).await;
            check(&group, to, true).await;
        }
    });
}

/// Too short for an ID, or without one: the first socket.
#[test]
fn what_has_no_id_reaches_the_first_socket() {
    on_one_worker(|| async {
        let group =
            DatagramSocket::bind_group("127.0.0.1:0".parse().unwrap(), &BindOptions::default(), SOCKETS).unwrap();
        steer_by_connection_id(&group).unwrap();
        let destination = group[0].local_address();
        for contents in [&b""[..], b"\x43", b"\xc3\0\0\0\x01\x08", b"\xc3\0\0\0\x01\0\x07\x07\x07"] {
            let client = DatagramSocket::bind("127.0.0.1:0".parse().unwrap(), &BindOptions::default()).unwrap();
            let mut transmits = [Transmit { destination, source: None, ecn: None, contents, segment_size: None }];
            assert_eq!(client.try_send(&mut transmits), 1);
            assert_eq!(receive(&group).await, (0, vec![contents.to_vec()]));
        }
    });
}

#[test]
fn sockets_that_do_not_share_their_address_are_not_steered() {
    let alone = [DatagramSocket::bind("127.0.0.1:0".parse().unwrap(), &BindOptions::default()).unwrap()];
    assert!(steer_by_connection_id(&alone).is_err());
    assert_eq!(steer_by_connection_id(&[]).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
}
