//! UDP sockets of one peer: how they receive, and that another peer may get the socket.

use std::future::poll_fn;
use std::net::{SocketAddr, UdpSocket};

use crate::rejections::closed_port;
use crate::rt;
use crate::support::*;
use rt::net::{ConnectOptions, DatagramSocket, ReceiveBatch, Transmit};

/// A server: a socket of the standard library.
fn server() -> (UdpSocket, SocketAddr) {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    (server, address)
}

fn connect(to: SocketAddr) -> DatagramSocket {
    DatagramSocket::connect(to, &ConnectOptions::default(), 64).unwrap()
}

/// Sends a datagram to the server, which returns the address that it comes from.
fn knock(socket: &DatagramSocket, server: &UdpSocket) -> SocketAddr {
    let destination = server.local_addr().unwrap();
    let mut transmits = [Transmit { destination, source: None, ecn: None, contents: b"knock", segment_size: None }];
    assert_eq!(socket.try_send(&mut transmits), 1);
    let mut place = [0; 16];
    let (length, from) = server.recv_from(&mut place).unwrap();
    assert_eq!(&place[..length], b"knock");
    from
}

/// Receives `count` datagrams. Returns their first bytes, and the number of batches.
async fn receive(socket: &DatagramSocket, count: usize) -> (Vec<u8>, usize) {
    let (mut found, mut batches) = (Vec::new(), 0);
    while found.len() < count {
        let mut batch = ReceiveBatch::new();
        poll_fn(|context| socket.poll_receive(context, &mut batch)).await.unwrap();
        batches += 1;
        found.extend(batch.iter().flat_map(|message| message.iter().map(|bytes| bytes[0]).collect::<Vec<_>>()));
    }
    (found, batches)
}

/// What has arrived is received without asking whether there is more; of many that arrive together, several with a call.
#[test]
fn datagrams_of_a_peer_are_received_with_few_calls() {
    on_one_worker(|| async {
        let (server, address) = server();
        let socket = connect(address);
        let to = knock(&socket, &server);
        for number in 0..20 {
            server.send_to(&[number], to).unwrap();
            assert_eq!(receive(&socket, 1).await, (vec![number], 1));
            // It sleeps in between.
            turns(3).await;
        }
        assert_eq!(socket.counts().receive_calls, 20);
        let before = socket.counts().receive_calls;
        (0..100).for_each(|number| assert_eq!(server.send_to(&[number], to).unwrap(), 1));
        let (found, batches) = receive(&socket, 100).await;
        assert_eq!(found, (0..100).collect::<Vec<_>>());
        assert!(batches < 30 && socket.counts().receive_calls - before < 30, "{batches} {:?}", socket.counts());
        turns(3).await;
        server.send_to(&[7], to).unwrap();
        assert_eq!(receive(&socket, 1).await.0, [7]);
    });
}

/// The next user of a socket gets another port, and no datagram of the previous one.
#[test]
fn a_socket_is_connected_anew() {
    on_one_worker(|| async {
        let (first, second) = (server(), server());
        let (mut ports, mut numbers) = (Vec::new(), Vec::new());
        for round in 0..6_u8 {
            let (own, other) = if round % 2 == 0 { (&first, &second) } else { (&second, &first) };
            let socket = connect(own.1);
            numbers.push(socket.descriptor());
            let to = knock(&socket, &own.0);
            ports.push(to.port());
            // Another server is not heard.
            other.0.send_to(b"stranger", to).unwrap();
            own.0.send_to(&[round], to).unwrap();
            assert_eq!(receive(&socket, 1).await.0, [round]);
            // These are left unread, and too many at times.
            (0..round).for_each(|_| assert!(own.0.send_to(b"late", to).is_ok()));
            drop(socket);
            let _ = own.0.send_to(b"very late", to);
            turns(2).await;
        }
        assert!(numbers[..4].iter().all(|number| *number == numbers[0]), "{numbers:?}");
        ports.dedup();
        assert!(ports.len() > 3, "{ports:?}");
    });
}

/// What is left in a socket that nobody uses does not keep the worker awake.
#[test]
fn a_kept_socket_causes_no_events() {
    on_one_worker(|| async {
        let (server, address) = server();
        let socket = connect(address);
        let to = knock(&socket, &server);
        server.send_to(b"x", to).unwrap();
        receive(&socket, 1).await;
        let nothing = |context: &mut std::task::Context<'_>| {
            std::task::Poll::Ready(socket.poll_receive(context, &mut ReceiveBatch::new()).is_pending())
        };
        assert!(poll_fn(nothing).await);
        (0..3).for_each(|_| assert!(server.send_to(b"late", to).is_ok()));
        drop(socket);
        turns(4).await;
        let before = rt::activity().eventful;
        turns(10).await;
        assert!(rt::activity().eventful - before <= 1);
    });
}

/// A rejection of the previous use is none of the next one.
#[test]
fn a_rejection_stays_with_the_flow_that_it_is_about() {
    on_one_worker(|| async {
        let (_closed, gone) = closed_port(std::net::Ipv4Addr::LOCALHOST.into());
        let socket = connect(gone);
        let mut transmits =
            [Transmit { destination: gone, source: None, ecn: None, contents: b"x", segment_size: None }];
        assert_eq!(socket.try_send(&mut transmits), 1);
        drop(socket);
        turns(2).await;
        let (server, address) = server();
        let socket = connect(address);
        let to = knock(&socket, &server);
        server.send_to(&[1], to).unwrap();
        assert_eq!(receive(&socket, 1).await.0, [1]);
        assert_eq!(socket.counts().unsent, 0);
    });
}

#[test]
fn sockets_with_options_of_their_own_are_closed() {
    on_one_worker(|| async {
        let (server, address) = server();
        let source = Some(rt::net::Address::Inet("127.0.0.1:0".parse().unwrap()));
        let options = ConnectOptions { source, ..ConnectOptions::default() };
        let socket = DatagramSocket::connect(address, &options, 1).unwrap();
        let to = knock(&socket, &server);
        drop(socket);
        turns(2).await;
        // Its port is free.
        assert!(UdpSocket::bind(to).is_ok());
        let (one, two) = (connect(address), connect(address));
        assert_ne!(one.descriptor(), two.descriptor());
    });
}
