//! UDP in batches: addresses, ECN, segments, several destinations, and what the kernel refuses.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::task::Poll;

use crate::rt;
use crate::support::*;
use rt::net::{BindOptions, DatagramSocket, Ecn, ReceiveBatch, Transmit};

/// A datagram and what was received with it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ReceivedDatagram {
    bytes: Vec<u8>,
    peer: SocketAddr,
    local_ip: Option<IpAddr>,
    ecn: Option<Ecn>,
}

fn bind(address: &str) -> DatagramSocket {
    DatagramSocket::bind(address.parse().unwrap(), &BindOptions::default()).unwrap()
}

fn transmit(destination: SocketAddr, contents: &[u8]) -> Transmit<'_> {
    Transmit { destination, source: None, ecn: None, contents, segment_size: None }
}

async fn send(socket: &DatagramSocket, mut transmits: &mut [Transmit<'_>]) {
    while !transmits.is_empty() {
        let done = poll_fn(|context| socket.poll_send(context, transmits)).await.unwrap();
        transmits = &mut transmits[done..];
    }
}

/// Receives `count` datagrams, and the number of messages that they came in.
async fn receive(socket: &DatagramSocket, count: usize) -> (Vec<ReceivedDatagram>, usize) {
    let (mut received, mut messages) = (Vec::new(), 0);
    while received.len() < count {
        let mut batch = ReceiveBatch::new();
        poll_fn(|context| socket.poll_receive(context, &mut batch)).await.unwrap();
        for message in batch.iter() {
            messages += 1;
            received.extend(message.iter().map(|bytes| {
                let (bytes, peer) = (bytes.to_vec(), message.peer);
                ReceivedDatagram { bytes, peer, local_ip: message.local_ip, ecn: message.ecn }
            }));
        }
    }
    assert_eq!(received.len(), count, "{received:?}");
    (received, messages)
}

/// Receives from one of the sockets; returns its index.
async fn receive_from_any(group: &[DatagramSocket]) -> (usize, ReceiveBatch) {
    let mut batch = ReceiveBatch::new();
    let at = poll_fn(|context| {
        let ready = group.iter().position(|socket| match socket.poll_receive(context, &mut batch) {
            Poll::Ready(result) => result.map(|()| true).unwrap(),
            Poll::Pending => false,
        });
        ready.map_or(Poll::Pending, Poll::Ready)
    });
    (at.await, batch)
}

fn ip(text: &str) -> Option<IpAddr> {
    Some(text.parse().unwrap())
}

#[test]
fn addresses_and_marks_arrive_with_a_datagram() {
    on_one_worker(|| async {
        let server = bind("0.0.0.0:0");
        let client = bind("127.0.0.1:0");
        let port = server.local_address().port();
        for (address, ecn) in [("127.0.0.1", None), ("127.0.0.9", Some(Ecn::Ect0)), ("127.1.2.3", Some(Ecn::Ce))] {
            let destination = SocketAddr::new(address.parse().unwrap(), port);
            send(&client, &mut [Transmit { ecn, ..transmit(destination, b"hello") }]).await;
            let (received, _) = receive(&server, 1).await;
            let expected =
                ReceivedDatagram { bytes: b"hello".to_vec(), peer: client.local_address(), local_ip: ip(address), ecn };
            assert_eq!(received, [expected]);
            // The reply comes from the address that the client sent to.
            let source = received[0].local_ip;
            send(&server, &mut [Transmit { source, ecn, ..transmit(client.local_address(), b"reply") }]).await;
            let (replies, _) = receive(&client, 1).await;
            assert_eq!((replies[0].peer, replies[0].ecn), (destination, ecn));
            assert_eq!(replies[0].local_ip, ip("127.0.0.1"));
        }
    });
}

#[test]
fn an_ipv6_socket_has_peers_of_both_families() {
    on_one_worker(|| async {
        let options = BindOptions { v6only: Some(false), ..BindOptions::default() };
        let Ok(server) = DatagramSocket::bind("[::]:0".parse().unwrap(), &options) else {
            return eprintln!("SKIPPED: there is no IPv6");
        };
        let port = server.local_address().port();
        for address in ["::1", "127.0.0.7"] {
            let destination = SocketAddr::new(address.parse().unwrap(), port);
            let client = bind(if destination.is_ipv6() { "[::1]:0" } else { "127.0.0.1:0" });
            let ecn = Some(Ecn::Ect1);
            send(&client, &mut [Transmit { ecn, ..transmit(destination, b"hello") }]).await;
            let (received, _) = receive(&server, 1).await;
            assert_eq!((received[0].peer, received[0].local_ip), (client.local_address(), ip(address)));
            assert_eq!(received[0].ecn, ecn);
            let contents = [7; 2500];
            let source = received[0].local_ip;
            let reply = transmit(client.local_address(), &contents);
            send(&server, &mut [Transmit { source, ecn, segment_size: Some(1000), ..reply }]).await;
            let (replies, _) = receive(&client, 3).await;
            assert!(replies.iter().all(|reply| reply.peer == destination && reply.ecn == ecn), "{replies:?}");
        }
    });
}

#[test]
fn a_socket_of_ipv6_alone_has_no_ipv4_peers() {
    for v6only in [true, false] {
        let options = BindOptions { v6only: Some(v6only), ..BindOptions::default() };
        let Ok(server) = DatagramSocket::bind("[::]:0".parse().unwrap(), &options) else {
            return eprintln!("SKIPPED: there is no IPv6");
        };
        assert_eq!(option(&server, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY), i32::from(v6only));
    }
}

#[test]
fn segments_are_split_and_joined() {
    on_one_worker(|| async {
        let (server, client) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
        let contents: Vec<u8> = (0..100 * 1200 + 77).map(|at: usize| (at / 1200) as u8).collect();
        let sending = transmit(server.local_address(), &contents);
        send(&client, &mut [Transmit { segment_size: Some(1200), ..sending }]).await;
        let (received, messages) = receive(&server, 101).await;
        for (at, datagram) in received.iter().enumerate() {
            assert!(datagram.bytes.len() == if at < 100 { 1200 } else { 77 }, "{at}");
            assert!(datagram.bytes.iter().all(|byte| *byte == at as u8), "{at}");
        }
        if client.most_segments() > 1 {
            assert_eq!((client.counts().send_calls, client.counts().receive_calls), (1, 0));
            // Of 54, 47 datagrams: the loopback device passes messages on as they are.
            assert_eq!(messages, 2);
        }
    });
}

#[test]
fn empty_and_large_datagrams_arrive() {
    on_one_worker(|| async {
        let (server, client) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
        let to = server.local_address();
        let large = vec![5; 65_507];
        let mut transmits = [transmit(to, b""), transmit(to, &large), transmit(to, b""), transmit(to, b"end")];
        send(&client, &mut transmits).await;
        let (received, _) = receive(&server, 4).await;
        assert_eq!(received.iter().map(|datagram| datagram.bytes.len()).collect::<Vec<_>>(), [0, 65_507, 0, 3]);
    });
}

/// Datagrams that the kernel refuses are lost; those before and after them arrive.
#[test]
fn what_is_refused_is_lost_alone() {
    on_one_worker(|| async {
        let (server, client) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
        let to = server.local_address();
        let too_large = vec![0; 65_508];
        let wrong_family = "[::1]:9".parse().unwrap();
        let foreign = Transmit { source: ip("192.0.2.77"), ..transmit(to, b"foreign") };
        let mut transmits = [
            transmit(to, b"first"),
            transmit(to, &too_large),
            transmit(wrong_family, b"nowhere"),
            transmit(to, b"second"),
            foreign,
            Transmit { segment_size: Some(65_508), ..transmit(to, &too_large) },
            transmit(to, b"third"),
        ];
        assert_eq!(client.try_send(&mut transmits), 7);
        let (received, _) = receive(&server, 3).await;
        assert_eq!(
            received.iter().map(|datagram| &datagram.bytes[..]).collect::<Vec<_>>(),
            [&b"first"[..], b"second", b"third"]
        );
        let counts = client.counts();
        assert_eq!((counts.too_large, counts.unsent), (2, 2), "{counts:?}");
        assert!(counts.last_error.is_some());
    });
}

#[allow(unsafe_code, reason = "the socket gets options that the runtime never sets")]
fn set(socket: &DatagramSocket, level: i32, name: i32, value: i32) {
    let size = std::mem::size_of_val(&value) as libc::socklen_t;
    let number = socket.descriptor().unwrap();
    // SAFETY: pointer and length describe `value`.
    let set = unsafe { libc::setsockopt(number, level, name, (&raw const value).cast(), size) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

#[allow(unsafe_code, reason = "the kernel is asked what the runtime has set")]
fn option(socket: &DatagramSocket, level: i32, name: i32) -> i32 {
    let (mut value, mut length) = (0_i32, 4);
    let number = socket.descriptor().unwrap();
    // SAFETY: the pointers are valid for the call and `length` contains the space at the first.
    let result = unsafe { libc::getsockopt(number, level, name, (&raw mut value).cast(), &raw mut length) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    value
}

/// Without checksums, the kernel does not split messages: their datagrams are sent one by one, and so are the next.
#[test]
fn segments_that_the_kernel_refuses_are_sent_one_by_one() {
    on_one_worker(|| async {
        let (server, client) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
        if client.most_segments() == 1 {
            return eprintln!("SKIPPED: the kernel does not split messages");
        }
        set(&client, libc::SOL_SOCKET, libc::SO_NO_CHECK, 1);
        let to = server.local_address();
        for round in 1..=2 {
            let mut transmits = [
                Transmit { segment_size: Some(10), ..transmit(to, &[1; 45]) },
                Transmit { segment_size: Some(8), ..transmit(to, &[2; 16]) },
            ];
            send(&client, &mut transmits).await;
            let lengths: Vec<usize> = receive(&server, 7).await.0.iter().map(|datagram| datagram.bytes.len()).collect();
            assert_eq!(lengths, [10, 10, 10, 10, 5, 8, 8]);
            assert_eq!(client.most_segments(), 1);
            // The refused call, that for its datagrams, that for the next; then one for all.
            assert_eq!(client.counts().send_calls, [3, 4][round - 1]);
        }
        assert_eq!((client.counts().too_large, client.counts().unsent), (0, 0));
    });
}

/// An ICMP message about an earlier datagram ends nothing. Only connected sockets get one.
#[test]
fn an_unreachable_peer_is_no_error_of_the_socket() {
    on_one_worker(|| async {
        let connected = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = peer.local_addr().unwrap();
        connected.connect(to).unwrap();
        // It has another peer: what this one sends finds no receiver.
        peer.connect(to).unwrap();
        let socket = DatagramSocket::try_from(OwnedFd::from(connected)).unwrap();
        // The loopback device delivers the datagram and the message about it at once.
        assert_eq!(socket.try_send(&mut [transmit(to, b"nobody")]), 1);
        assert_eq!(socket.try_send(&mut [transmit(to, b"is there")]), 1);
        assert_eq!(socket.counts().unsent, 1, "the error about the first one");
        assert_eq!(socket.try_send(&mut [transmit(to, b"at all")]), 1);
        peer.send_to(b"back", socket.local_address()).unwrap();
        assert_eq!(receive(&socket, 1).await.0[0].bytes, b"back");
    });
}

#[test]
fn a_waiting_task_is_woken_by_each_arrival() {
    on_one_worker(|| async {
        let (server, client) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
        for round in 0..50_u8 {
            let mut polls = 0;
            let received = poll_fn(|context| {
                let mut batch = ReceiveBatch::new();
                polls += 1;
                match server.poll_receive(context, &mut batch) {
                    Poll::Pending if polls == 1 => {
                        assert_eq!(client.try_send(&mut [transmit(server.local_address(), &[round])]), 1);
                        Poll::Pending
                    }
                    Poll::Pending => Poll::Pending,
                    Poll::Ready(result) => {
                        result.unwrap();
                        Poll::Ready(batch.iter().map(|message| message.bytes.to_vec()).collect::<Vec<_>>())
                    }
                }
            });
            assert_eq!(received.await, [[round]]);
        }
    });
}

/// System calls for a hundred datagrams.
#[test]
fn a_hundred_datagrams_cost_few_system_calls() {
    on_one_worker(|| async {
        let (server, client) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
        let others: Vec<DatagramSocket> = (0..4).map(|_| bind("127.0.0.1:0")).collect();
        let contents = [9; 10 * 1200];
        // A hundred to one peer, ten in each transmit.
        let sending = transmit(server.local_address(), &contents);
        send(&client, &mut [Transmit { segment_size: Some(1200), ..sending }; 10]).await;
        receive(&server, 100).await;
        let joins = client.most_segments() > 1;
        assert_eq!(client.counts().send_calls, if joins { 1 } else { 4 });
        assert!(server.counts().receive_calls <= if joins { 1 } else { 7 }, "{:?}", server.counts());
        // A hundred to four peers in turn, each by itself.
        let before = client.counts().send_calls;
        let to = |at: usize| transmit(others[at % 4].local_address(), &contents[..1200]);
        let mut transmits: Vec<Transmit<'_>> = (0..100).map(to).collect();
        send(&client, &mut transmits).await;
        assert_eq!(client.counts().send_calls - before, 4);
        for other in &others {
            receive(other, 25).await;
            assert!(other.counts().receive_calls <= 2, "{:?}", other.counts());
        }
        // One by one, each call is followed by another one.
        if rt::SocketCalls::current() == rt::SocketCalls::Named {
            return;
        }
        // What is received only by looking is not looked for again.
        let mut batch = ReceiveBatch::new();
        let before = server.counts().receive_calls;
        poll_fn(|context| {
            assert!(server.poll_receive(context, &mut batch).is_pending());
            assert!(server.poll_receive(context, &mut batch).is_pending());
            Poll::Ready(())
        })
        .await;
        turns(3).await;
        assert_eq!(server.counts().receive_calls, before);
    });
}

/// Sending wakes no worker: a UDP socket is watched for writing only while a sender waits.
#[test]
fn sending_causes_no_events() {
    on_one_worker(|| async {
        let (server, client) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
        let nothing =
            poll_fn(|context| Poll::Ready(client.poll_receive(context, &mut ReceiveBatch::new()).is_pending()));
        assert!(nothing.await);
        turns(3).await;
        let before = rt::activity().eventful;
        for _ in 0..20 {
            send(&client, &mut [transmit(server.local_address(), b"x")]).await;
            turns(1).await;
        }
        assert_eq!(rt::activity().eventful, before);
    });
}

#[test]
fn memory_for_messages_is_bounded_and_shared() {
    on_one_worker(|| async {
        let client = bind("127.0.0.1:0");
        let servers: Vec<DatagramSocket> = (0..5).map(|_| bind("127.0.0.1:0")).collect();
        let mut kept: Vec<ReceiveBatch> = Vec::new();
        for (at, server) in servers.iter().enumerate() {
            send(&client, &mut [transmit(server.local_address(), &[at as u8])]).await;
            let mut batch = ReceiveBatch::new();
            let received = poll_fn(|context| server.poll_receive(context, &mut batch)).await;
            match at {
                4 => assert_eq!(received.unwrap_err().kind(), std::io::ErrorKind::ResourceBusy),
                _ => received.unwrap(),
            }
            kept.push(batch);
        }
        for (at, batch) in kept.iter().take(4).enumerate() {
            assert_eq!(batch.iter().map(|message| message.bytes[0]).collect::<Vec<_>>(), [at as u8]);
        }
        kept.clear();
        assert_eq!(receive(&servers[4], 1).await.0[0].bytes, [4]);
    });
}

#[test]
fn options_are_set() {
    let options = BindOptions {
        send_buffer: Some(50_000),
        receive_buffer: Some(60_000),
        interface: Some("lo".to_owned()),
        free_bind: true,
        ..BindOptions::default()
    };
    // An address that does not exist here.
    let socket = DatagramSocket::bind("192.0.2.1:0".parse().unwrap(), &options);
    let socket = match socket {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            eprintln!("SKIPPED: a socket cannot be bound to a device");
            DatagramSocket::bind("192.0.2.1:0".parse().unwrap(), &BindOptions { interface: None, ..options }).unwrap()
        }
        socket => socket.unwrap(),
    };
    // The kernel doubles the sizes.
    assert_eq!(option(&socket, libc::SOL_SOCKET, libc::SO_SNDBUF), 100_000);
    assert_eq!(option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF), 120_000);
    assert_eq!(option(&socket, libc::IPPROTO_IP, libc::IP_FREEBIND), 1);
    assert_eq!(option(&socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER), libc::IP_PMTUDISC_PROBE);
    assert_eq!(option(&socket, libc::SOL_SOCKET, libc::SO_REUSEADDR), 0, "another program may not bind it as well");
    let again =
        DatagramSocket::bind(socket.local_address(), &BindOptions { free_bind: true, ..BindOptions::default() });
    assert_eq!(again.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    let transparent = BindOptions { transparent: true, ..BindOptions::default() };
    match DatagramSocket::bind("192.0.2.2:0".parse().unwrap(), &transparent) {
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied, "{error}"),
        Ok(socket) => assert_eq!(option(&socket, libc::IPPROTO_IP, libc::IP_TRANSPARENT), 1),
    }
}

#[test]
fn only_udp_sockets_are_taken_over() {
    let stream = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    assert_eq!(DatagramSocket::try_from(OwnedFd::from(stream)).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    let (unix, _) = std::os::unix::net::UnixDatagram::pair().unwrap();
    assert_eq!(DatagramSocket::try_from(OwnedFd::from(unix)).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    on_one_worker(|| async {
        let plain = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = DatagramSocket::try_from(OwnedFd::from(plain)).unwrap();
        let client = bind("127.0.0.1:0");
        send(&client, &mut [Transmit { ecn: Some(Ecn::Ect0), ..transmit(socket.local_address(), b"x") }]).await;
        let (received, _) = receive(&socket, 1).await;
        assert_eq!((received[0].local_ip, received[0].ecn), (ip("127.0.0.1"), Some(Ecn::Ect0)));
    });
}

/// What does not fit into the receive buffer is counted by the kernel.
#[test]
fn drops_of_the_kernel_are_reported() {
    on_one_worker(|| async {
        let options = BindOptions { receive_buffer: Some(4096), ..BindOptions::default() };
        let server = DatagramSocket::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
        let client = bind("127.0.0.1:0");
        assert_eq!(server.kernel_drops(), 0);
        assert_eq!(client.try_send(&mut [transmit(server.local_address(), &[0; 1000]); 100]), 100);
        let (mut received, mut batch) = (0, ReceiveBatch::new());
        while received + server.kernel_drops() < 100 {
            poll_fn(|context| server.poll_receive(context, &mut batch)).await.unwrap();
            received += batch.iter().map(|message| message.iter().count() as u64).sum::<u64>();
        }
        assert!(received < 100);
        assert_eq!(received + server.kernel_drops(), 100);
    });
}

/// A group shares its address: each peer's datagrams go to one socket.
#[test]
fn a_group_shares_one_address() {
    on_one_worker(|| async {
        let group = DatagramSocket::bind_group("127.0.0.1:0".parse().unwrap(), &BindOptions::default(), 3).unwrap();
        let address = group[0].local_address();
        assert!(address.port() != 0 && group.iter().all(|socket| socket.local_address() == address));
        let alone = DatagramSocket::bind(address, &BindOptions::default());
        assert_eq!(alone.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
        let clients: Vec<DatagramSocket> = (0..20).map(|_| bind("127.0.0.1:0")).collect();
        for client in &clients {
            send(client, &mut [transmit(address, b"1"), transmit(address, b"2")]).await;
        }
        let mut received: BTreeMap<SocketAddr, Vec<usize>> = BTreeMap::new();
        while received.values().map(Vec::len).sum::<usize>() < 40 {
            let (at, batch) = receive_from_any(&group).await;
            batch.iter().for_each(|message| received.entry(message.peer).or_default().push(at));
        }
        assert_eq!(received.len(), 20);
        assert!(received.values().all(|sockets| sockets.len() == 2 && sockets[0] == sockets[1]), "{received:?}");
    });
}
