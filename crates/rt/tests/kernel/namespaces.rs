//! Listening and connecting in network namespaces that the test creates and removes, and on non-local addresses.
//! Skipped, with a message, if that is not permitted.

use std::future::poll_fn;
use std::process::Command;
use std::sync::Arc;
use std::task::Poll;

use crate::rt;
use crate::support::*;
use rt::net::{
    Address, BindOptions, ConnectOptions, DatagramSocket, Listener, ListeningSocket, Namespace, ReceiveBatch, Stream,
    Transmit,
};

/// A namespace with a loopback device, removed on drop.
struct TestNamespace(String);

impl TestNamespace {
    fn new(name: &str) -> Option<TestNamespace> {
        let name = format!("weir-{name}-{}", std::process::id());
        let ip = |arguments: &[&str]| Command::new("ip").args(arguments).output();
        match ip(&["netns", "add", &name]) {
            Ok(output) if output.status.success() => {}
            Ok(output) => {
                eprintln!("skipped: ip netns add: {}", String::from_utf8_lossy(&output.stderr).trim());
                return None;
            }
            Err(error) => {
                eprintln!("skipped: ip: {error}");
                return None;
            }
        }
        let made = TestNamespace(name);
        assert!(ip(&["-n", &made.0, "link", "set", "lo", "up"]).unwrap().status.success());
        Some(made)
    }
}

impl Drop for TestNamespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).output();
    }
}

#[test]
fn a_listener_in_a_namespace_is_reached_from_there_alone() {
    let Some(made) = TestNamespace::new("listen") else { return };
    let options = BindOptions { namespace: Some(made.0.clone()), ..BindOptions::default() };
    let socket = Arc::new(ListeningSocket::bind(&any_port(), &options).unwrap());
    let Address::Inet(address) = *socket.local_address() else { panic!("no internet address") };
    assert!(std::net::TcpStream::connect(address).is_err(), "nobody listens outside");
    let inside = Namespace::open(&made.0).unwrap();
    let client = inside.run(|| std::net::TcpStream::connect(address)).unwrap().unwrap();
    let from = Address::Inet(client.local_addr().unwrap());
    on_one_worker(move || {
        let (socket, from) = (Arc::clone(&socket), from.clone());
        async move {
            let mut listener = Listener::new(socket).unwrap();
            let (_, peer) = listener.accept().await.unwrap();
            assert_eq!(peer, from);
        }
    });
    drop(client);
}

#[test]
fn a_namespace_that_does_not_exist_is_an_error() {
    let options = BindOptions { namespace: Some("weir-nowhere".to_owned()), ..BindOptions::default() };
    let error = ListeningSocket::bind(&any_port(), &options).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    assert_eq!(Namespace::open("../net").unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
}

/// In a namespace of its own, so that no address of the machine is affected.
#[test]
fn an_address_that_is_nobodys_is_bound_transparently() {
    let Some(made) = TestNamespace::new("transparent") else { return };
    let namespace = Some(made.0.clone());
    let address = Address::Inet("192.0.2.1:80".parse().unwrap());
    let plain = BindOptions { namespace: namespace.clone(), ..BindOptions::default() };
    let error = ListeningSocket::bind(&address, &plain).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrNotAvailable);
    let transparent = BindOptions { namespace, transparent: true, ..BindOptions::default() };
    assert_eq!(ListeningSocket::bind(&address, &transparent).unwrap().local_address(), &address);
}

#[test]
fn a_device_restricts_who_gets_in() {
    let Some(made) = TestNamespace::new("device") else { return };
    let ip = |arguments: &[&str]| Command::new("ip").args(["-n", &made.0]).args(arguments).status().unwrap().success();
    // Two devices, each end of a pair of its own; connections from inside use the loopback device.
    if !ip(&["link", "add", "weir0", "type", "dummy"]) {
        eprintln!("skipped: no dummy devices");
        return;
    }
    assert!(ip(&["addr", "add", "192.0.2.1/24", "dev", "weir0"]) && ip(&["link", "set", "weir0", "up"]));
    let inside = Namespace::open(&made.0).unwrap();
    let address = Address::Inet("192.0.2.1:0".parse().unwrap());
    for (interface, reached) in [("lo", true), ("weir0", false)] {
        let options = BindOptions {
            namespace: Some(made.0.clone()),
            interface: Some(interface.to_owned()),
            ..BindOptions::default()
        };
        let socket = ListeningSocket::bind(&address, &options).unwrap();
        let to = socket.local_address().inet().unwrap();
        let connected = inside.run(|| std::net::TcpStream::connect(to)).unwrap();
        assert_eq!(connected.is_ok(), reached, "{interface}");
    }
}

/// Connects with these options on a worker and returns the address that the other end sees.
fn connect_to(server: std::net::TcpListener, options: ConnectOptions) -> std::io::Result<std::net::SocketAddr> {
    let to = Address::Inet(server.local_addr()?);
    let (seen, see) = std::sync::mpsc::channel();
    let accepting = std::thread::spawn(move || {
        server.set_nonblocking(true).unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while std::time::Instant::now() < deadline && see.try_recv().is_err() {
            if let Ok((_, peer)) = server.accept() {
                return Some(peer);
            }
            std::thread::yield_now();
        }
        None
    });
    let result = Arc::new(std::sync::Mutex::new(Ok(())));
    let outcome = Arc::clone(&result);
    on_one_worker(move || {
        let (to, options, outcome) = (to.clone(), options.clone(), Arc::clone(&outcome));
        async move {
            let connected = match Stream::connect(&to, &options) {
                Ok(connecting) => connecting.await.map(drop),
                Err(error) => Err(error),
            };
            *outcome.lock().unwrap() = connected;
        }
    });
    let result = std::mem::replace(&mut *result.lock().unwrap(), Ok(()));
    if result.is_err() {
        let _ = seen.send(());
    }
    let peer = accepting.join().unwrap();
    result.map(|()| peer.unwrap())
}

#[test]
fn a_connection_is_made_in_a_namespace_and_the_worker_stays_in_its_own() {
    let Some(made) = TestNamespace::new("connect") else { return };
    let inside = Arc::new(Namespace::open(&made.0).unwrap());
    let listen = || std::net::TcpListener::bind("127.0.0.1:0");
    let there = ConnectOptions { namespace: Some(Arc::clone(&inside)), ..ConnectOptions::default() };
    assert!(connect_to(inside.run(listen).unwrap().unwrap(), there.clone()).is_ok());
    assert!(connect_to(inside.run(listen).unwrap().unwrap(), ConnectOptions::default()).is_err(), "not from here");
    assert!(connect_to(listen().unwrap(), there).is_err(), "not from there");
    assert!(connect_to(listen().unwrap(), ConnectOptions::default()).is_ok());
}

/// In a namespace where all packets to foreign addresses are routed back.
#[test]
fn a_server_sees_an_address_that_is_not_this_machines() {
    let Some(made) = TestNamespace::new("usesrc") else { return };
    let ip = |arguments: &[&str]| Command::new("ip").args(["-n", &made.0]).args(arguments).status().unwrap().success();
    let routed = ip(&["rule", "add", "pref", "100", "lookup", "100"])
        && ip(&["route", "add", "local", "default", "dev", "lo", "table", "100"]);
    if !routed {
        eprintln!("skipped: no policy routing");
        return;
    }
    let inside = Arc::new(Namespace::open(&made.0).unwrap());
    let server = || inside.run(|| std::net::TcpListener::bind("127.0.0.1:0")).unwrap().unwrap();
    let stranger: std::net::SocketAddr = "198.51.100.7:0".parse().unwrap();
    let from = |transparent| ConnectOptions {
        namespace: Some(Arc::clone(&inside)),
        source: Some(stranger.into()),
        transparent,
        ..ConnectOptions::default()
    };
    let error = connect_to(server(), from(false)).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrNotAvailable);
    let seen = connect_to(server(), from(true)).unwrap();
    assert_eq!(seen.ip(), stranger.ip());
    // With the client's port as well, as in "usesrc client".
    let whole = ConnectOptions { source: Some(Address::Inet("198.51.100.7:4321".parse().unwrap())), ..from(true) };
    assert_eq!(connect_to(server(), whole).unwrap().to_string(), "198.51.100.7:4321");
}

/// Sends numbered datagrams; returns how often it had to wait.
async fn send_numbers(client: &DatagramSocket, destination: std::net::SocketAddr, count: u32) -> usize {
    let contents: Vec<u8> = (0..count).flat_map(|number| number.to_be_bytes().repeat(250)).collect();
    let transmit = |contents| Transmit { destination, source: None, ecn: None, contents, segment_size: None };
    let mut transmits: Vec<Transmit<'_>> = contents.chunks(1000).map(transmit).collect();
    let (mut rest, mut waits) = (&mut transmits[..], 0);
    while !rest.is_empty() {
        let done = poll_fn(|context| {
            let polled = client.poll_send(context, rest);
            waits += usize::from(polled.is_pending());
            polled
        });
        let done = done.await.unwrap();
        rest = &mut rest[done..];
    }
    waits
}

/// Checks that sending causes no events once no sender waits: that the datagrams have left is not reported.
async fn sends_without_events(client: &DatagramSocket, other: &std::net::UdpSocket) {
    let destination = other.local_addr().unwrap();
    let mut before = None;
    for _ in 0..3 {
        let transmit = Transmit { destination, source: None, ecn: None, contents: b"x", segment_size: None };
        assert_eq!(poll_fn(|context| client.poll_send(context, &mut [transmit])).await.unwrap(), 1);
        assert_eq!(other.recv(&mut [0]).unwrap(), 1);
        turns(3).await;
        let events = rt::activity().eventful;
        assert_eq!(*before.get_or_insert(events), events);
    }
}

/// On a slow device, datagrams fill the send buffer: the sender waits, none is lost, and the order is kept.
#[test]
fn a_full_send_buffer_makes_a_sender_of_datagrams_wait() {
    /// As many as the receive buffer holds.
    const COUNT: u32 = 150;
    let Some(made) = TestNamespace::new("full") else { return };
    let limit = ["netns", "exec", &made.0, "tc", "qdisc", "add", "dev", "lo", "root", "tbf"];
    let rate = ["rate", "100mbit", "burst", "16kb", "limit", "10mb"];
    match Command::new("ip").args(limit).args(rate).output() {
        Ok(output) if output.status.success() => {}
        other => return eprintln!("skipped: tc qdisc add: {other:?}"),
    }
    let options = BindOptions {
        namespace: Some(made.0.clone()),
        send_buffer: Some(10_000),
        receive_buffer: Some(212_992),
        ..BindOptions::default()
    };
    let inside = Arc::new(Namespace::open(&made.0).unwrap());
    on_one_worker(move || {
        let (options, inside) = (options.clone(), Arc::clone(&inside));
        async move {
            let bind = || DatagramSocket::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
            let (client, server) = (bind(), bind());
            // Watched for reading, as the socket of a server is.
            let nothing =
                poll_fn(|context| Poll::Ready(client.poll_receive(context, &mut ReceiveBatch::new()).is_pending()));
            assert!(nothing.await);
            let waits = send_numbers(&client, server.local_address(), COUNT).await;
            assert!(waits > 0, "the buffer was never full");
            assert_eq!((client.counts().too_large, client.counts().unsent), (0, 0));
            let (mut numbers, mut batch) = (Vec::new(), ReceiveBatch::new());
            while numbers.len() < COUNT as usize {
                poll_fn(|context| server.poll_receive(context, &mut batch)).await.unwrap();
                let datagrams = batch.iter().flat_map(|message| message.iter());
                numbers.extend(datagrams.map(|datagram| u32::from_be_bytes(*datagram.first_chunk().unwrap())));
            }
            assert_eq!(numbers, (0..COUNT).collect::<Vec<_>>());
            let other = inside.run(|| std::net::UdpSocket::bind("127.0.0.1:0")).unwrap().unwrap();
            sends_without_events(&client, &other).await;
        }
    });
}

/// Segments that are too large for the device are refused together as well, which says nothing about smaller ones.
#[test]
fn segments_that_are_too_large_are_lost_and_smaller_ones_are_still_joined() {
    let Some(made) = TestNamespace::new("small") else { return };
    let small = Command::new("ip").args(["-n", &made.0, "link", "set", "lo", "mtu", "1500"]).output().unwrap();
    assert!(small.status.success(), "{small:?}");
    let options = BindOptions { namespace: Some(made.0.clone()), ..BindOptions::default() };
    on_one_worker(move || {
        let options = options.clone();
        async move {
            for address in ["127.0.0.1:0", "[::1]:0"] {
                let bind = || DatagramSocket::bind(address.parse().unwrap(), &options);
                match (bind(), bind()) {
                    (Ok(client), Ok(server)) => check_small_device(&client, &server).await,
                    (Err(error), _) | (_, Err(error)) => eprintln!("skipped: {address}: {error}"),
                }
            }
        }
    });
}

/// Sends segments over a device with an MTU of 1,500 bytes.
async fn check_small_device(client: &DatagramSocket, server: &DatagramSocket) {
    let (destination, before, contents) = (server.local_address(), client.most_segments(), [3; 3 * 1600 + 9]);
    for (size, lengths) in [(1600, vec![9]), (1400, vec![1400, 1400, 1400, 609])] {
        let segment_size = Some(size);
        let transmit = Transmit { destination, source: None, ecn: None, contents: &contents, segment_size };
        // The last one is sent, since it is small.
        assert_eq!(client.try_send(&mut [transmit]), 1);
        let (mut received, mut batch) = (Vec::new(), ReceiveBatch::new());
        while received.len() < lengths.len() {
            poll_fn(|context| server.poll_receive(context, &mut batch)).await.unwrap();
            received.extend(batch.iter().flat_map(|message| message.iter().map(<[u8]>::len)));
        }
        assert_eq!(received, lengths);
        assert_eq!((client.counts().too_large, client.counts().unsent), (3, 0));
        assert_eq!(client.most_segments(), before);
    }
}
