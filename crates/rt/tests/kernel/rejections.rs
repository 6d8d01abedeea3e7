//! Reports about datagrams that nobody receives.

use std::future::poll_fn;
use std::net::{SocketAddr, UdpSocket};
use std::task::Poll;

use crate::rt;
use crate::support::*;
use rt::net::{BindOptions, DatagramSocket, ReceiveBatch, Rejection, Transmit};

fn send(socket: &DatagramSocket, destination: SocketAddr) {
    let mut transmits = [Transmit { destination, source: None, ecn: None, contents: b"x", segment_size: None }];
    assert_eq!(socket.try_send(&mut transmits), 1);
}

/// Returns a socket that gets reports, at an address of the host.
fn open(address: &str) -> DatagramSocket {
    let socket = DatagramSocket::bind(address.parse().unwrap(), &BindOptions::default()).unwrap();
    socket.request_rejections();
    assert_eq!(socket.next_rejection(), None);
    socket
}

/// The loopback device delivers a datagram and the report about it at once.
#[test]
fn a_closed_port_is_reported_and_costs_no_other_datagram() {
    on_one_worker(|| async {
        for (own, host) in
            [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1"), ("[::]:0", "127.0.0.1"), ("[::]:0", "::1")]
        {
            let (socket, host) = (open(own), host.parse().unwrap());
            let gone = UdpSocket::bind(SocketAddr::new(host, 0)).unwrap().local_addr().unwrap();
            let there = UdpSocket::bind(SocketAddr::new(host, 0)).unwrap();
            send(&socket, gone);
            send(&socket, there.local_addr().unwrap());
            assert_eq!(there.recv(&mut [0; 8]).unwrap(), 1, "the error is that of the first one");
            assert_eq!(socket.counts().unsent, 0);
            let expected = Rejection { peer: gone, local_ip: Some(host), is_closed: true };
            assert_eq!((socket.next_rejection(), socket.next_rejection()), (Some(expected), None));
        }
    });
}

#[test]
fn a_report_wakes_who_waits_for_datagrams() {
    on_one_worker(|| async {
        let socket = open("127.0.0.1:0");
        let gone = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        for round in 0..3 {
            let mut is_sent = false;
            let found = poll_fn(|context| {
                assert!(socket.poll_receive(context, &mut ReceiveBatch::new()).is_pending());
                if !std::mem::replace(&mut is_sent, true) {
                    send(&socket, gone);
                }
                socket.next_rejection().map_or(Poll::Pending, Poll::Ready)
            });
            assert_eq!(found.await.peer, gone, "{round}");
        }
        // The socket is not taken for one with an error from now on.
        let nothing = poll_fn(|context| Poll::Ready(socket.poll_receive(context, &mut ReceiveBatch::new())));
        assert!(nothing.await.is_pending());
        turns(3).await;
        let before = socket.counts().receive_calls;
        let nothing = poll_fn(|context| Poll::Ready(socket.poll_receive(context, &mut ReceiveBatch::new())));
        assert!(nothing.await.is_pending());
        assert_eq!(socket.counts().receive_calls, before);
    });
}
