//! Reports about datagrams that nobody receives.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::task::Poll;

use crate::rt;
use crate::support::*;
use rt::net::{BindOptions, DatagramSocket, ReceiveBatch, Rejection, Transmit};

fn send(socket: &DatagramSocket, destination: SocketAddr) {
    let mut transmits = [Transmit { destination, source: None, ecn: None, contents: b"x", segment_size: None }];
    assert_eq!(socket.try_send(&mut transmits), 1);
}

/// Returns an address of the host that rejects what others than one peer send to it, for as long as the socket exists.
pub fn closed_port(host: IpAddr) -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind(SocketAddr::new(host, 0)).unwrap();
    socket.connect(SocketAddr::new(host, 9)).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

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
            let (_closed, gone) = closed_port(host);
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
        let (_closed, gone) = closed_port(LOCALHOST);
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

/// Sends the ICMP message "destination unreachable" with that code about a datagram, from another address of the host. Needs a
/// privilege.
#[allow(unsafe_code, reason = "the standard library has no raw sockets")]
fn send_icmp(code: u8, from: [u8; 4], source: SocketAddrV4, destination: SocketAddrV4) -> io::Result<()> {
    let name = |ip: [u8; 4]| {
        // SAFETY: all bytes zero is a valid value of this plain structure.
        let mut name: libc::sockaddr_in = unsafe { std::mem::zeroed() };
        name.sin_family = libc::AF_INET as libc::sa_family_t;
        name.sin_addr.s_addr = u32::from_ne_bytes(ip);
        name
    };
    // SAFETY: the call has no pointers.
    let number = unsafe { libc::socket(libc::AF_INET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::IPPROTO_ICMP) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: nothing else has the descriptor.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    let datagram = [
        &[0x45, 0, 0, 29, 0, 0, 0, 0, 64, 17, 0, 0][..],
        &source.ip().octets(),
        &destination.ip().octets(),
        &source.port().to_be_bytes(),
        &destination.port().to_be_bytes(),
        &[0, 9, 0, 0],
        b"x\0",
    ];
    let mut message = [&[3, code, 0, 0, 0, 0, 0, 0][..], &datagram.concat()].concat();
    let sum: u32 = message.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    message[2..4].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    let (own, to, size) =
        (name(from), name(source.ip().octets()), std::mem::size_of::<libc::sockaddr_in>() as libc::socklen_t);
    // SAFETY: pointer and length describe `own`.
    assert_eq!(unsafe { libc::bind(socket.as_raw_fd(), (&raw const own).cast(), size) }, 0);
    let (bytes, length) = (message.as_ptr().cast(), message.len());
    // SAFETY: pointers and lengths describe `message` and `to`.
    let sent = unsafe { libc::sendto(socket.as_raw_fd(), bytes, length, 0, (&raw const to).cast(), size) };
    assert_eq!(sent, length as isize);
    Ok(())
}

/// Returns a socket that gets reports, its address, and a peer.
fn pair() -> (DatagramSocket, SocketAddrV4, UdpSocket, SocketAddrV4) {
    let v4 = |address| match address {
        SocketAddr::V4(v4) => v4,
        SocketAddr::V6(v6) => panic!("{v6}"),
    };
    let (socket, peer) = (open("127.0.0.1:0"), UdpSocket::bind("127.0.0.1:0").unwrap());
    let (own, other) = (v4(socket.local_address()), v4(peer.local_addr().unwrap()));
    (socket, own, peer, other)
}

/// The message of any router: it costs no datagram, and receiving goes on.
#[test]
fn no_code_of_icmp_is_an_error_of_receiving() {
    on_one_worker(|| async {
        let (socket, own, peer, other) = pair();
        for code in 0..16 {
            if let Err(error) = send_icmp(code, [127, 0, 0, 1], own, other) {
                return eprintln!("SKIPPED: no raw sockets: {error}");
            }
            peer.send_to(&[code], own).unwrap();
            let mut batch = ReceiveBatch::new();
            let received = poll_fn(|context| socket.poll_receive(context, &mut batch)).await;
            assert!(received.is_ok(), "{code}: {received:?}");
            assert_eq!(batch.iter().map(|message| message.bytes.to_vec()).collect::<Vec<_>>(), [[code]]);
            while socket.next_rejection().is_some() {}
        }
    });
}

/// Only the host of a peer knows that its port is closed.
#[test]
fn a_closed_port_is_believed_of_its_own_host_only() {
    on_one_worker(|| async {
        let (socket, own, _peer, other) = pair();
        for (from, expected) in [([127, 0, 0, 9], false), ([127, 0, 0, 1], true)] {
            if let Err(error) = send_icmp(3, from, own, other) {
                return eprintln!("SKIPPED: no raw sockets: {error}");
            }
            let found = poll_fn(|context| {
                assert!(socket.poll_receive(context, &mut ReceiveBatch::new()).is_pending());
                socket.next_rejection().map_or(Poll::Pending, Poll::Ready)
            });
            let found = found.await;
            assert_eq!((found.peer, found.is_closed), (other.into(), expected), "from {from:?}");
            assert_eq!(socket.next_rejection(), None);
        }
    });
}

/// The kernel returns the error of one datagram to the call that sends the next, which has sent some and does not report it.
#[test]
fn reports_that_a_call_has_hidden_are_read() {
    on_one_worker(|| async {
        let (socket, peer) = (open("127.0.0.1:0"), UdpSocket::bind("127.0.0.1:0").unwrap());
        let poll =
            || poll_fn(|context| Poll::Ready(socket.poll_receive(context, &mut ReceiveBatch::new()).is_pending()));
        assert!(poll().await);
        let (_closed, gone): (Vec<_>, Vec<_>) = (0..20).map(|_| closed_port(LOCALHOST)).unzip();
        let to = |destination| Transmit { destination, source: None, ecn: None, contents: b"x", segment_size: None };
        for some in gone.chunks(2) {
            let mut transmits = [to(some[0]), to(some[1]), to(peer.local_addr().unwrap())];
            assert_eq!(socket.try_send(&mut transmits), 3);
        }
        assert_eq!(socket.counts().unsent, 0);
        turns(3).await;
        assert!(poll().await);
        let found: Vec<_> = std::iter::from_fn(|| socket.next_rejection()).map(|rejection| rejection.peer).collect();
        assert_eq!(found, gone);
    });
}
