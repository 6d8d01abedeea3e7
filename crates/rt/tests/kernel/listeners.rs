//! Listeners: shared by workers, paused, inherited.

use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use crate::rt;
use crate::support::*;
use rt::net::{Address, BindOptions, Listener, ListeningSocket, Stream};

#[test]
fn several_workers_share_one_listening_socket() {
    const CONNECTIONS: usize = 200;
    let socket = listen();
    let served = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&served);
    start(3, move |worker| {
        let (socket, noted) = (Arc::clone(&socket), Arc::clone(&noted));
        Box::pin(async move {
            let address = socket.local_address().clone();
            serve(socket, move |socket| {
                noted.lock().unwrap().push(worker);
                rt::spawn(rt::Class::Normal, 0, echo(Stream::adopt(socket)));
            });
            if worker == 0 {
                let mut buffer = rt::buffer();
                for _ in 0..CONNECTIONS {
                    let mut stream = connect(&address).await;
                    write_all(&mut stream, b"hello").await.unwrap();
                    read_exactly(&mut stream, &mut buffer, 5).await;
                    buffer.clear();
                }
                rt::stop();
            }
        })
    });
    assert_eq!(served.lock().unwrap().len(), CONNECTIONS);
}

#[test]
fn accepted_sockets_move_to_other_workers() {
    let socket = listen();
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let noted = Arc::clone(&seen);
    start(3, move |worker| {
        let (socket, noted) = (Arc::clone(&socket), Arc::clone(&noted));
        Box::pin(async move {
            if worker != 0 {
                return;
            }
            let address = socket.local_address().clone();
            let next = std::cell::Cell::new(0);
            serve(socket, move |socket| {
                next.set((next.get() + 1) % rt::workers() as u16);
                let noted = Arc::clone(&noted);
                rt::post(
                    next.get(),
                    Box::new(move || {
                        noted.lock().unwrap().insert(rt::worker());
                        rt::spawn(rt::Class::Normal, 0, echo(Stream::adopt(socket)));
                    }),
                );
            });
            let mut buffer = rt::buffer();
            for _ in 0..30 {
                let mut stream = connect(&address).await;
                write_all(&mut stream, b"hello").await.unwrap();
                read_exactly(&mut stream, &mut buffer, 5).await;
                buffer.clear();
            }
            rt::stop();
        })
    });
    assert_eq!(*seen.lock().unwrap(), BTreeSet::from([0, 1, 2]));
}

#[test]
fn a_paused_listener_leaves_connections_where_they_are() {
    on_one_worker(|| async {
        let socket = listen();
        let mut listener = Listener::new(Arc::clone(&socket)).unwrap();
        listener.pause();
        let mut client = connect(socket.local_address()).await;
        // A connection over the loopback device is in the queue of its listener once it is established.
        turns(20).await;
        assert!(listener.try_accept().unwrap().is_none());
        listener.resume().unwrap();
        let (server, from) = listener.accept().await.unwrap();
        assert_eq!(from, client.local_address().unwrap());
        write_all(&mut client, b"hello").await.unwrap();
        drop(client);
        assert_eq!(read_to_end(&mut Stream::adopt(server)).await.unwrap(), b"hello");
    });
}

#[test]
fn a_listener_that_nobody_heeds_is_found_again() {
    on_one_worker(|| async {
        let socket = listen();
        let mut listener = Listener::new(Arc::clone(&socket)).unwrap();
        let _first = connect(socket.local_address()).await;
        // No task accepts for many iterations: the worker stops watching rather than spinning.
        turns(20).await;
        listener.accept().await.unwrap();
        let _second = connect(socket.local_address()).await;
        listener.accept().await.unwrap();
    });
}

/// Makes a descriptor look like an inherited one; returns its number.
fn given(fd: OwnedFd) -> RawFd {
    rt::process::keep_for_children(&fd).unwrap();
    fd.into_raw_fd()
}

#[test]
fn an_inherited_socket_has_one_owner() {
    let number = given(std::net::TcpListener::bind("127.0.0.1:0").unwrap().into());
    let first = ListeningSocket::inherit(number, &BindOptions::default()).unwrap();
    for again in [
        ListeningSocket::inherit(number, &BindOptions::default()).map(drop),
        rt::process::take_inherited(number).map(drop),
    ] {
        assert_eq!(again.unwrap_err().kind(), std::io::ErrorKind::ResourceBusy);
    }
    // Nor can one that the process has opened itself.
    let own = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let error = ListeningSocket::inherit(own.as_raw_fd(), &BindOptions::default()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ResourceBusy);
    assert!(own.local_addr().is_ok() && first.as_descriptor().is_some());
}

#[test]
fn an_inherited_socket_goes_on_listening() {
    on_one_worker(|| async {
        let foreign = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Inet(foreign.local_addr().unwrap());
        let early = std::net::TcpStream::connect(foreign.local_addr().unwrap()).unwrap();
        let socket = ListeningSocket::inherit(given(foreign.into()), &BindOptions::default()).unwrap();
        assert_eq!(*socket.local_address(), address);
        let mut listener = Listener::new(Arc::new(socket)).unwrap();
        let (_, from) = listener.accept().await.unwrap();
        assert_eq!(from, Address::Inet(early.local_addr().unwrap()));
    });
}

/// A connection that waited before the listener was inherited has not inherited the listener's options.
#[test]
fn connections_that_waited_already_send_small_segments_at_once() {
    on_one_worker(|| async {
        let foreign = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let early = std::net::TcpStream::connect(foreign.local_addr().unwrap()).unwrap();
        let socket = ListeningSocket::inherit(given(foreign.into()), &BindOptions::default()).unwrap();
        let mut listener = Listener::new(Arc::new(socket)).unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let accepted = std::net::TcpStream::from(accepted.into_descriptor().unwrap());
        assert!(accepted.nodelay().unwrap());
        drop(early);
    });
}

#[test]
fn only_stream_sockets_are_inherited_as_listeners() {
    let datagram = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&datagram);
    let error = ListeningSocket::inherit(number, &BindOptions::default()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    assert!(datagram.local_addr().is_ok(), "a refused descriptor stays open");
}

#[test]
fn a_port_in_use_is_refused_and_a_unix_socket_replaced() {
    let first = listen();
    let again = ListeningSocket::bind(first.local_address(), &BindOptions::default());
    assert_eq!(again.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    let path = scratch("replaced.sock");
    let options = BindOptions { mode: Some(0o600), ..BindOptions::default() };
    let address = Address::Unix(path.clone());
    let _old = ListeningSocket::bind(&address, &options).unwrap();
    let _new = ListeningSocket::bind(&address, &options).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::remove_file(path).unwrap();
}
