//! Simulated streams: order, ends, bounded buffers, unix sockets, splices, datagrams, parking.

use std::future::poll_fn;
use std::io::{ErrorKind, IoSlice};
use std::time::Duration;

use crate::rt;
use crate::support::*;
use rt::net::{Address, Datagram, Family, Hangup, Pipe, Stream, poll_parked_events};
use rt::sim::Link;

#[test]
fn bytes_arrive_whole_and_in_order_however_they_are_cut() {
    under_seeds(|| async {
        serve_echo(listen("10.0.0.1:80"));
        let mut stream = connect(&address("10.0.0.1:80")).await.unwrap();
        for length in [1, 2, 100, 5_000, 40_000] {
            let text = text(length);
            write_all(&mut stream, &text).await.unwrap();
            let mut all = Vec::new();
            let mut buffer = rt::buffer();
            while all.len() < length {
                assert!(read(&mut stream, &mut buffer).await.unwrap() > 0);
                all.extend_from_slice(buffer.data());
                buffer.clear();
            }
            assert!(all == text, "{length} bytes");
        }
    });
}

#[test]
fn a_link_that_fragments_gives_short_reads() {
    let mut reads = 0;
    for seed in 0..20 {
        reads += rt::sim::run(seed, 1, idle(), async {
            let (mut client, mut server) = pair("10.0.0.1:80").await;
            write_all(&mut client, &text(1_000)).await.unwrap();
            drop(client);
            let (mut reads, mut buffer) = (0, rt::buffer());
            while read(&mut server, &mut buffer).await.unwrap() > 0 {
                reads += 1;
            }
            reads
        });
    }
    assert!(reads > 40, "{reads} reads for 20 messages");
}

#[test]
fn an_unread_peer_stops_the_sender_at_the_links_bound() {
    under_seeds(|| async {
        let link = Link { buffer: 10_000, ..Link::default() };
        rt::sim::network().set_default_link(link);
        let (mut client, mut server) = pair("10.0.0.1:80").await;
        let mut sent = 0;
        // Until a second passes without progress.
        loop {
            let mut timer = rt::Timer::new();
            timer.arm(Some(rt::now() + Duration::from_secs(1)));
            let slices = [IoSlice::new(&[7; 3_000])];
            let count = poll_fn(|context| {
                let written = client.poll_write_slices(context, &slices, false);
                written.map(Result::unwrap).map(Some).map_or_pending(|| timer.poll_expired(context).map(|()| None))
            })
            .await;
            match count {
                Some(count) => sent += count,
                None => break,
            }
        }
        assert_eq!(sent, 10_000);
        let mut buffer = rt::buffer();
        while buffer.len() < 10_000 {
            read(&mut server, &mut buffer).await.unwrap();
        }
        write_all(&mut client, b"room again").await.unwrap();
    });
}

/// Takes a second result if the first is pending.
trait OrElse<T> {
    fn map_or_pending(self, other: impl FnOnce() -> std::task::Poll<T>) -> std::task::Poll<T>;
}

impl<T> OrElse<T> for std::task::Poll<T> {
    fn map_or_pending(self, other: impl FnOnce() -> std::task::Poll<T>) -> std::task::Poll<T> {
        if self.is_pending() { other() } else { self }
    }
}

#[test]
fn half_closed_streams_still_answer() {
    under_seeds(|| async {
        let (mut client, mut server) = pair("10.0.0.1:80").await;
        write_all(&mut client, b"request").await.unwrap();
        client.shutdown_write().unwrap();
        assert_eq!(poll_fn(|context| server.poll_hangup(context)).await, Hangup::PeerClosed);
        assert_eq!(read_to_end(&mut server).await.unwrap(), b"request");
        write_all(&mut server, b"answer").await.unwrap();
        drop(server);
        assert_eq!(read_to_end(&mut client).await.unwrap(), b"answer");
    });
}

#[test]
fn what_arrived_before_a_reset_can_be_read() {
    under_seeds(|| async {
        let (mut client, mut server) = pair("10.0.0.1:80").await;
        write_all(&mut server, b"last words").await.unwrap();
        server.set_linger_zero().unwrap();
        drop(server);
        assert_eq!(poll_fn(|context| client.poll_hangup(context)).await, Hangup::Error);
        let mut buffer = rt::buffer();
        assert_eq!(read(&mut client, &mut buffer).await.unwrap(), 10);
        assert_eq!(read(&mut client, &mut buffer).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert_eq!(write_all(&mut client, b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn closing_with_unread_bytes_resets_the_peer() {
    under_seeds(|| async {
        let (mut client, mut server) = pair("10.0.0.1:80").await;
        write_all(&mut client, b"never read").await.unwrap();
        poll_fn(|context| {
            server.register();
            server.poll_readable(context)
        })
        .await;
        rt::sleep(Duration::from_millis(1)).await;
        drop(server);
        let mut buffer = rt::buffer();
        assert_eq!(read(&mut client, &mut buffer).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn unix_sockets_and_their_names() {
    under_seeds(|| async {
        let name = Address::Unix("/run/app.sock".into());
        assert_eq!(connect(&name).await.unwrap_err().kind(), ErrorKind::NotFound);
        let options = rt::net::BindOptions::default();
        let socket = rt::net::ListeningSocket::bind(&name, &options).unwrap();
        let again = rt::net::ListeningSocket::bind(&name, &options);
        assert_eq!(again.unwrap_err().kind(), ErrorKind::AddrInUse);
        serve_echo(socket.into());
        let mut stream = connect(&name).await.unwrap();
        assert_eq!(stream.local_address().unwrap(), Address::Unnamed);
        write_all(&mut stream, b"hello").await.unwrap();
        stream.shutdown_write().unwrap();
        assert_eq!(read_to_end(&mut stream).await.unwrap(), b"hello");
    });
}

#[test]
fn ends_know_each_others_addresses() {
    under_seeds(|| async {
        let (client, server) = pair("10.0.0.1:80").await;
        assert_eq!(client.peer_address().unwrap(), address("10.0.0.1:80"));
        assert_eq!(server.local_address().unwrap(), address("10.0.0.1:80"));
        assert_eq!(server.peer_address().unwrap(), client.local_address().unwrap());
        let wildcard = listen("[::]:8080");
        let mut listener = rt::net::Listener::new(wildcard).unwrap();
        let client = connect(&address("[2001:db8::1]:8080")).await.unwrap();
        let (_, from) = listener.accept().await.unwrap();
        assert_eq!(from, client.local_address().unwrap());
    });
}

#[test]
fn spliced_bytes_arrive_whole() {
    under_seeds(|| async {
        let ((mut sender, mut inward), (mut outward, mut receiver)) =
            (pair("10.0.0.1:1").await, pair("10.0.0.1:2").await);
        let sent = text(50_000);
        rt::spawn(rt::Class::Normal, 0, async move {
            write_all(&mut sender, &text(50_000)).await.unwrap();
        });
        rt::spawn(rt::Class::Normal, 0, async move {
            let mut pipe = Pipe::new().unwrap();
            while poll_fn(|context| pipe.poll_splice_in(context, &mut inward, 9_999)).await.unwrap() > 0 {
                while !pipe.is_empty() {
                    poll_fn(|context| pipe.poll_splice_out(context, &mut outward, false)).await.unwrap();
                }
            }
        });
        assert!(read_to_end(&mut receiver).await.unwrap() == sent);
    });
}

#[test]
fn datagrams_are_delivered_and_captured() {
    under_seeds(|| async {
        let to = address("10.0.0.9:514");
        let mut receiver = Datagram::bind(&to).unwrap();
        let sender = Datagram::unconnected(Family::Inet4).unwrap();
        sender.send_to(&to, &[IoSlice::new(b"<6>"), IoSlice::new(b"line")]).unwrap();
        sender.send_batch(&address("10.0.0.8:514"), &[IoSlice::new(b"a"), IoSlice::new(b"b")]).unwrap();
        let mut buffer = rt::buffer();
        let (count, from) = poll_fn(|context| receiver.poll_receive_from(context, &mut buffer)).await.unwrap();
        assert_eq!((count, from, buffer.data()), (7, Address::Unnamed, &b"<6>line"[..]));
        let sent = rt::sim::network().take_datagrams();
        let contents: Vec<&[u8]> = sent.iter().map(|datagram| &datagram.bytes[..]).collect();
        assert_eq!(contents, [&b"<6>line"[..], b"a", b"b"]);
        assert!(rt::sim::network().take_datagrams().is_empty());
    });
}

#[test]
fn parked_streams_are_taken_up_while_nothing_happened() {
    under_seeds(|| async {
        let (mut client, mut server) = pair("10.0.0.1:80").await;
        write_all(&mut client, b"x").await.unwrap();
        read(&mut server, &mut rt::buffer()).await.unwrap();
        let parked = client.park();
        rt::sleep(Duration::from_secs(1)).await;
        let client = parked.adopt().expect("nothing happened on it");
        let parked = client.park();
        drop(server);
        let mut ids = Vec::new();
        poll_fn(|context| poll_parked_events(context, &mut ids)).await;
        assert_eq!(ids, [parked.id()]);
        assert!(parked.adopt().is_none());
    });
}

#[test]
fn a_dropped_client_resets_what_waits_in_the_backlog_and_leaves_nothing() {
    under_seeds(|| async {
        let socket = listen("10.0.0.1:80");
        let first = connect(socket.local_address()).await.unwrap();
        let connecting = Stream::connect(socket.local_address(), &rt::net::ConnectOptions::default()).unwrap();
        drop(connecting);
        drop(first);
        rt::sleep(Duration::from_secs(1)).await;
        drop(socket);
        assert_eq!(rt::sim::network().all_open_ends(), 0);
    });
}
