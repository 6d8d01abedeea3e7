//! Streams: readiness, ends, resets, connects.

use std::future::poll_fn;
use std::io::ErrorKind;
use std::task::Poll;
use std::time::Duration;

use base::Buffer;

use crate::rt;
use crate::support::*;
use rt::net::{Address, ConnectOptions, Hangup, Stream};

#[test]
fn messages_go_there_and_back() {
    on_one_worker(|| async {
        let socket = listen();
        serve_echo(socket.clone());
        let mut stream = connect(socket.local_address()).await;
        let mut buffer = rt::buffer();
        for round in 0..100 {
            let text = format!("message {round}");
            write_all(&mut stream, text.as_bytes()).await.unwrap();
            read_exactly(&mut stream, &mut buffer, text.len()).await;
            assert_eq!(buffer.data(), text.as_bytes());
            buffer.clear();
        }
    });
}

#[test]
fn more_than_the_kernel_buffers_flows_through() {
    on_one_worker(|| async {
        let socket = listen();
        serve(socket.clone(), |socket| {
            rt::spawn(rt::Class::Normal, 0, async move {
                let mut stream = Stream::adopt(socket);
                let text: Vec<u8> = (0..20_000_000u32).map(|n| (n / 7) as u8).collect();
                write_all(&mut stream, &text).await.unwrap();
            });
        });
        let mut stream = connect(socket.local_address()).await;
        let all = read_to_end(&mut stream).await.unwrap();
        assert_eq!(all.len(), 20_000_000);
        assert!(all.iter().enumerate().all(|(n, byte)| *byte == (n / 7) as u8));
    });
}

#[test]
fn bytes_are_dropped_unseen_up_to_where_they_are_wanted() {
    on_one_worker(|| async {
        const MANY: usize = 5_000_000;
        let socket = listen();
        serve(socket.clone(), |socket| {
            rt::spawn(rt::Class::Normal, 0, async move {
                let mut stream = Stream::adopt(socket);
                write_all(&mut stream, &vec![b'x'; MANY]).await.unwrap();
                write_all(&mut stream, b"wanted").await.unwrap();
            });
        });
        let mut stream = connect(socket.local_address()).await;
        let mut left = MANY;
        while left > 0 {
            left -= poll_fn(|context| stream.poll_discard(context, left)).await.unwrap();
        }
        assert_eq!(read_to_end(&mut stream).await.unwrap(), b"wanted");
        assert_eq!(poll_fn(|context| stream.poll_discard(context, 1)).await.unwrap(), 0, "the end");
    });
}

#[test]
fn a_request_with_its_end_is_read_to_the_end() {
    on_one_worker(|| async {
        for registered_before in [false, true] {
            let (mut client, mut server) = pair().await;
            if registered_before {
                server.register();
                turns(2).await;
            }
            write_all(&mut client, b"request").await.unwrap();
            client.shutdown_write().unwrap();
            // The end has arrived once it is sent: both are on the loopback device.
            turns(5).await;
            assert_eq!(read_to_end(&mut server).await.unwrap(), b"request");
            write_all(&mut server, b"answer").await.unwrap();
            drop(server);
            assert_eq!(read_to_end(&mut client).await.unwrap(), b"answer");
        }
    });
}

#[test]
fn the_end_that_comes_after_a_short_read_is_seen() {
    on_one_worker(|| async {
        let (mut client, mut server) = pair().await;
        let mut buffer = rt::buffer();
        write_all(&mut client, b"first").await.unwrap();
        read_exactly(&mut server, &mut buffer, 5).await;
        client.shutdown_write().unwrap();
        assert_eq!(read(&mut server, &mut buffer).await.unwrap(), 0);
        assert_eq!(read(&mut server, &mut buffer).await.unwrap(), 0, "an end stays the end");
    });
}

#[test]
fn data_before_a_reset_is_delivered() {
    on_one_worker(|| async {
        let (mut client, mut server) = pair().await;
        server.register();
        write_all(&mut client, b"last words").await.unwrap();
        turns(3).await;
        client.set_linger_zero().unwrap();
        drop(client);
        assert_eq!(poll_fn(|context| server.poll_hangup(context)).await, Hangup::Error);
        let mut buffer = rt::buffer();
        assert_eq!(read(&mut server, &mut buffer).await.unwrap(), 10);
        assert_eq!(buffer.data(), b"last words");
        assert_eq!(read(&mut server, &mut buffer).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert!(write_all(&mut server, b"x").await.is_err());
    });
}

#[test]
fn a_hangup_is_seen_while_reading_is_paused_and_data_does_not_wake() {
    on_one_worker(|| async {
        let (mut client, mut server) = pair().await;
        let mut buffer = rt::buffer();
        write_all(&mut client, b"request").await.unwrap();
        read_exactly(&mut server, &mut buffer, 7).await;
        let mut polls = 0;
        let hangup = async {
            poll_fn(|context| {
                polls += 1;
                server.poll_hangup(context)
            })
            .await
        };
        rt::spawn(rt::Class::Normal, 0, async move {
            turns(5).await;
            write_all(&mut client, b"pipelined").await.unwrap();
            turns(5).await;
            client.shutdown_write().unwrap();
        });
        assert_eq!(hangup.await, Hangup::PeerClosed);
        // One poll registers, one sees the end; the data itself causes none.
        assert_eq!(polls, 2);
        assert_eq!(read_to_end(&mut server).await.unwrap(), b"pipelined");
    });
}

#[test]
fn head_and_body_are_written_together_and_consumed_in_order() {
    on_one_worker(|| async {
        let (mut client, mut server) = pair().await;
        let (mut head, mut body) = (rt::buffer(), rt::buffer());
        assert!(head.push(b"head ") && body.push(b"and body"));
        let count = poll_fn(|context| client.poll_write(context, &mut head, &mut body, true)).await.unwrap();
        assert_eq!((count, head.len(), body.len()), (13, 0, 0));
        let nothing = poll_fn(|context| client.poll_write(context, &mut head, &mut body, false)).await.unwrap();
        assert_eq!(nothing, 0);
        drop(client);
        assert_eq!(read_to_end(&mut server).await.unwrap(), b"head and body");
    });
}

#[test]
fn a_full_buffer_is_refused_and_an_exact_one_reads_on() {
    on_one_worker(|| async {
        let (mut client, mut server) = pair().await;
        let mut small = Buffer::with_capacity(4);
        write_all(&mut client, b"12345678").await.unwrap();
        for expected in [b"1234", b"5678"] {
            assert_eq!(read(&mut server, &mut small).await.unwrap(), 4);
            assert_eq!(small.data(), expected);
            assert_eq!(read(&mut server, &mut small).await.unwrap_err().kind(), ErrorKind::InvalidInput);
            small.clear();
        }
        assert_eq!(server.try_read(&mut small).unwrap(), None);
        write_all(&mut client, b"9").await.unwrap();
        poll_fn(|context| server.poll_readable(context)).await;
        assert_eq!(server.try_read(&mut small).unwrap(), Some(1));
    });
}

#[test]
fn a_detached_stream_is_adopted_with_what_it_has() {
    on_one_worker(|| async {
        let (mut client, mut server) = pair().await;
        let mut buffer = rt::buffer();
        write_all(&mut client, b"before").await.unwrap();
        read_exactly(&mut server, &mut buffer, 6).await;
        server.register();
        write_all(&mut client, b"after").await.unwrap();
        turns(2).await;
        let mut server = Stream::adopt(server.detach());
        assert!(!server.is_registered());
        drop(client);
        assert_eq!(read_to_end(&mut server).await.unwrap(), b"after");
    });
}

#[test]
fn a_refused_connection_says_so() {
    on_one_worker(|| async {
        let address = listen().local_address().clone();
        let connecting = Stream::connect(&address, &ConnectOptions::default()).unwrap();
        assert_eq!(connecting.await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        let mut stream = Stream::connect(&address, &ConnectOptions::default()).unwrap().into_stream().unwrap();
        assert_eq!(write_all(&mut stream, b"x").await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn a_connection_under_way_can_be_written_to() {
    on_one_worker(|| async {
        let socket = listen();
        serve_echo(socket.clone());
        let options = ConnectOptions { source: Some(any_port()), ..ConnectOptions::default() };
        let mut stream = Stream::connect(socket.local_address(), &options).unwrap().into_stream().unwrap();
        write_all(&mut stream, b"hello").await.unwrap();
        let mut buffer = rt::buffer();
        read_exactly(&mut stream, &mut buffer, 5).await;
        assert_eq!(buffer.data(), b"hello");
        assert_eq!(stream.peer_address().unwrap(), *socket.local_address());
    });
}

#[test]
fn unix_sockets_of_both_kinds_work() {
    on_one_worker(|| async {
        let path = scratch("echo.sock");
        let abstract_name = format!("weir-test-{}", std::process::id()).into_bytes();
        for address in [Address::Unix(path.clone()), Address::Abstract(abstract_name)] {
            let socket = listen_at(&address);
            assert_eq!(*socket.local_address(), address);
            serve_echo(socket);
            let mut stream = connect(&address).await;
            write_all(&mut stream, b"hello").await.unwrap();
            let mut buffer = rt::buffer();
            read_exactly(&mut stream, &mut buffer, 5).await;
            assert!(stream.peer_address().unwrap().is_unix());
            assert_eq!(stream.local_address().unwrap(), Address::Unnamed);
        }
        std::fs::remove_file(path).unwrap();
    });
}

#[test]
fn a_low_water_mark_holds_readers_back_until_it_is_lowered() {
    on_one_worker(|| async {
        // A short read is followed by another one then, whatever the mark.
        if rt::SocketCalls::current() == rt::SocketCalls::Named {
            return;
        }
        let (mut client, mut server) = pair().await;
        let mut buffer = rt::buffer();
        write_all(&mut client, b"x").await.unwrap();
        read_exactly(&mut server, &mut buffer, 1).await;
        server.set_receive_low_water(8 * 1024).unwrap();
        write_all(&mut client, b"small").await.unwrap();
        let mut woken = false;
        let deadline = rt::now() + Duration::from_millis(10);
        let mut timer = rt::Timer::new();
        timer.arm(Some(deadline));
        poll_fn(|context| {
            woken |= server.poll_readable(context).is_ready();
            if woken { Poll::Ready(()) } else { timer.poll_expired(context) }
        })
        .await;
        assert!(!woken, "less than the mark woke the reader");
        server.set_receive_low_water(1).unwrap();
        buffer.clear();
        read_exactly(&mut server, &mut buffer, 5).await;
    });
}
