//! Options of listening sockets, and those that streams inherit from them.

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use crate::rt;
use crate::support::*;
use rt::net::{BindOptions, KeepAlive, Listener, ListeningSocket, Stream};

#[allow(unsafe_code, reason = "the kernel is asked what the runtime has set")]
fn bytes(stream: &impl AsRawFd, level: i32, name: i32) -> [u8; 128] {
    let mut value = [0; 128];
    let mut length = value.len() as libc::socklen_t;
    // SAFETY: the pointers are valid for the call and `length` contains the space at the first.
    let result = unsafe { libc::getsockopt(stream.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &mut length) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    value
}

fn option(stream: &impl AsRawFd, level: i32, name: i32) -> i32 {
    let [a, b, c, d, ..] = bytes(stream, level, name);
    i32::from_ne_bytes([a, b, c, d])
}

/// Returns one accepted connection of a listener with these options, as a descriptor, and its client.
async fn accepted(options: BindOptions) -> (std::net::TcpStream, Stream) {
    let socket = Arc::new(ListeningSocket::bind(&any_port(), &options).unwrap());
    let mut listener = Listener::new(Arc::clone(&socket)).unwrap();
    let client = connect(socket.local_address()).await;
    let (server, _) = listener.accept().await.unwrap();
    (server.into_descriptor().unwrap().into(), client)
}

#[test]
fn streams_inherit_the_probes_of_their_listener() {
    on_one_worker(|| async {
        let keep_alive = KeepAlive { count: Some(3), idle: Some(60), interval: Some(7) };
        let options = BindOptions { keep_alive: Some(keep_alive), ..BindOptions::default() };
        let (stream, _client) = accepted(options).await;
        assert_eq!(option(&stream, libc::SOL_SOCKET, libc::SO_KEEPALIVE), 1);
        let tcp = |name| option(&stream, libc::IPPROTO_TCP, name);
        assert_eq!([tcp(libc::TCP_KEEPCNT), tcp(libc::TCP_KEEPIDLE), tcp(libc::TCP_KEEPINTVL)], [3, 60, 7]);
        let (stream, _client) = accepted(BindOptions::default()).await;
        assert_eq!(option(&stream, libc::SOL_SOCKET, libc::SO_KEEPALIVE), 0);
    });
}

#[test]
fn streams_inherit_timeout_algorithm_and_the_kept_packet() {
    on_one_worker(|| async {
        let options = BindOptions {
            user_timeout: Some(Duration::from_millis(1500)),
            unsent_limit: Some(20_000),
            congestion_control: Some("reno".to_owned()),
            save_syn: Some(1),
            ..BindOptions::default()
        };
        let (stream, _client) = accepted(options).await;
        assert_eq!(option(&stream, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT), 1500);
        assert_eq!(option(&stream, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT), 20_000);
        assert!(bytes(&stream, libc::IPPROTO_TCP, libc::TCP_CONGESTION).starts_with(b"reno\0"));
        // TCP_SAVED_SYN: an IPv4 header comes first.
        assert_eq!(bytes(&stream, libc::IPPROTO_TCP, libc::TCP_SAVED_SYN)[0] >> 4, 4);
    });
}

/// Listening makes the kernel reset an option that was set before.
#[test]
fn acknowledgements_wait_for_the_answer_where_the_listener_says_so() {
    on_one_worker(|| async {
        for no_quick_ack in [true, false] {
            let options = BindOptions { no_quick_ack, ..BindOptions::default() };
            let socket = Arc::new(ListeningSocket::bind(&any_port(), &options).unwrap());
            for _ in 0..2 {
                let listening = socket.as_descriptor().unwrap();
                assert_eq!(option(&listening, libc::IPPROTO_TCP, libc::TCP_QUICKACK), i32::from(!no_quick_ack));
                socket.pause().unwrap();
                socket.resume().unwrap();
            }
            let (stream, _client) = accepted(options).await;
            assert_eq!(option(&stream, libc::IPPROTO_TCP, libc::TCP_QUICKACK), i32::from(!no_quick_ack));
        }
    });
}

#[test]
fn closing_resets_where_the_listener_says_so() {
    on_one_worker(|| async {
        let options = BindOptions { linger_zero: true, ..BindOptions::default() };
        let (stream, mut client) = accepted(options).await;
        drop(stream);
        let error = read_to_end(&mut client).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    });
}

/// Unacknowledged data would be retransmitted, and that answered with a reset.
#[test]
fn whoever_is_forgotten_has_his_bytes_acknowledged() {
    on_one_worker(|| async {
        let options = BindOptions { no_quick_ack: true, ..BindOptions::default() };
        let socket = Arc::new(ListeningSocket::bind(&any_port(), &options).unwrap());
        let mut listener = Listener::new(Arc::clone(&socket)).unwrap();
        let mut client = connect(socket.local_address()).await;
        let (server, _) = listener.accept().await.unwrap();
        let mut server = Stream::adopt(server);
        write_all(&mut client, b"hello").await.unwrap();
        let mut buffer = rt::buffer();
        read_exactly(&mut server, &mut buffer, 5).await;
        server.forget(None).unwrap();
        if option(&server.descriptor().unwrap(), libc::SOL_SOCKET, libc::SO_LINGER) != 0 {
            return eprintln!("SKIPPED: connections cannot be forgotten without the right to administer the network");
        }
        drop(server);
        while client.query().tcp_info().unwrap().unacked > 0 {
            std::thread::yield_now();
        }
        assert_eq!(option(&client.descriptor().unwrap(), libc::SOL_SOCKET, libc::SO_ERROR), 0, "the client was told");
    });
}

#[test]
fn queries_of_a_closed_stream_fail_though_its_descriptor_is_used_again() {
    on_one_worker(|| async {
        let (client, server) = pair().await;
        let query = server.query();
        assert_eq!(query.local_address().unwrap(), server.local_address().unwrap());
        let number = server.number();
        drop((client, server));
        // The kernel assigns the lowest free number; other tests may take it first.
        let mut later = Vec::new();
        while later.len() < 32
            && later
                .iter()
                .all(|(client, server): &(Stream, Stream)| ![client.number(), server.number()].contains(&number))
        {
            later.push(pair().await);
        }
        assert_eq!(query.local_address().unwrap_err().kind(), std::io::ErrorKind::NotConnected);
        assert_eq!(query.set_mark(0).unwrap_err().kind(), std::io::ErrorKind::NotConnected);
    });
}

#[test]
fn the_kernel_tells_of_a_connection() {
    on_one_worker(|| async {
        let (mut client, mut server) = pair().await;
        write_all(&mut client, b"hello").await.unwrap();
        let mut buffer = rt::buffer();
        read_exactly(&mut server, &mut buffer, 5).await;
        assert!(client.query().tcp_info().unwrap().rtt > Duration::ZERO);
        // No packet filter has redirected it.
        assert!(server.query().original_destination(false).is_err());
    });
}

/// Packets of a peer that signs with another password, or not at all, are dropped.
#[test]
fn a_password_keeps_others_out() {
    let options = BindOptions { md5_password: Some(b"secret".to_vec()), ..BindOptions::default() };
    let bound = match ListeningSocket::bind(&any_port(), &options) {
        Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => {
            eprintln!("skipped: this kernel has no TCP MD5 signatures");
            return;
        }
        bound => Arc::new(bound.unwrap()),
    };
    on_one_worker(move || {
        let bound = Arc::clone(&bound);
        async move {
            let mut listener = Listener::new(Arc::clone(&bound)).unwrap();
            let mut stranger = Box::pin(connect(bound.local_address()));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            // Loopback delivers in the same iteration: a connection without the option would be established by now.
            assert!(stranger.as_mut().poll(&mut context).is_pending());
            turns(20).await;
            assert!(stranger.as_mut().poll(&mut context).is_pending());
            assert!(listener.try_accept().unwrap().is_none());
        }
    });
}
