//! Datagram sockets.

use std::future::poll_fn;
use std::io::IoSlice;

use crate::rt;
use crate::support::*;
use rt::net::{Address, Datagram, Family};

async fn receive(socket: &mut Datagram) -> (Vec<u8>, Address) {
    let mut buffer = rt::buffer();
    let (count, from) = poll_fn(|context| socket.poll_receive_from(context, &mut buffer)).await.unwrap();
    assert_eq!(count, buffer.len());
    (buffer.data().to_vec(), from)
}

#[test]
fn datagrams_arrive_over_udp_and_unix() {
    on_one_worker(|| async {
        let path = scratch("log.sock");
        for address in [any_port(), Address::Unix(path.clone())] {
            let mut receiver = Datagram::bind(&address).unwrap();
            let to = receiver.local_address().unwrap();
            let sender = Datagram::unconnected(Family::of(&to)).unwrap();
            sender.send_to(&to, &[IoSlice::new(b"<6>"), IoSlice::new(b"line")]).unwrap();
            assert_eq!(receive(&mut receiver).await.0, b"<6>line");
            let connected = Datagram::unconnected(Family::of(&to)).unwrap();
            connected.connect(&to).unwrap();
            connected.send(&[IoSlice::new(b"direct")]).unwrap();
            assert_eq!(receive(&mut receiver).await.0, b"direct");
        }
        std::fs::remove_file(path).unwrap();
    });
}

#[test]
fn a_batch_is_one_datagram_for_each_slice() {
    on_one_worker(|| async {
        let mut receiver = Datagram::bind(&any_port()).unwrap();
        let to = receiver.local_address().unwrap();
        let sender = Datagram::unconnected(Family::Inet4).unwrap();
        let lines: Vec<String> = (0..150).map(|number| format!("line {number}")).collect();
        let slices: Vec<IoSlice<'_>> = lines.iter().map(|line| IoSlice::new(line.as_bytes())).collect();
        assert_eq!(sender.send_batch(&to, &slices).unwrap(), 150);
        for line in &lines {
            assert_eq!(receive(&mut receiver).await.0, line.as_bytes());
        }
    });
}

/// Datagrams of one length may be sent together: they arrive separately, in order, whatever is between them.
#[test]
fn a_batch_keeps_datagrams_apart_whatever_their_lengths() {
    on_one_worker(|| async {
        let lengths = [20, 20, 20, 7, 20, 20, 30, 0, 30, 30, 2000, 2000, 1, 1, 1];
        let texts: Vec<Vec<u8>> = lengths.iter().enumerate().map(|(at, length)| vec![at as u8; *length]).collect();
        for address in
            [any_port(), Address::Inet(([0, 0, 0, 0, 0, 0, 0, 1], 0).into()), Address::Unix(scratch("batch"))]
        {
            let Ok(mut receiver) = Datagram::bind(&address) else { continue };
            let to = receiver.local_address().unwrap();
            let sender = Datagram::unconnected(Family::of(&to)).unwrap();
            let slices: Vec<IoSlice<'_>> = texts.iter().map(|text| IoSlice::new(text)).collect();
            // A UNIX socket holds ten unread datagrams.
            for (slices, texts) in slices.chunks(8).zip(texts.chunks(8)) {
                assert_eq!(sender.send_batch(&to, slices).unwrap(), slices.len());
                for text in texts {
                    assert_eq!(&receive(&mut receiver).await.0, text);
                }
            }
        }
        let _ = std::fs::remove_file(scratch("batch"));
    });
}

/// If the kernel cannot send them together, they are sent one by one.
#[test]
#[allow(unsafe_code, reason = "the socket is told something that the runtime never does")]
fn a_batch_that_cannot_travel_together_goes_one_by_one() {
    on_one_worker(|| async {
        let mut receiver = Datagram::bind(&any_port()).unwrap();
        let to = receiver.local_address().unwrap();
        let sender = Datagram::unconnected(Family::Inet4).unwrap();
        // Without checksums, datagrams are not sent together.
        let number = sender.descriptor().unwrap();
        let on: libc::c_int = 1;
        let size = std::mem::size_of_val(&on) as libc::socklen_t;
        // SAFETY: pointer and length describe `on`.
        let set =
            unsafe { libc::setsockopt(number, libc::SOL_SOCKET, libc::SO_NO_CHECK, (&raw const on).cast(), size) };
        assert_eq!(set, 0);
        let slices = [IoSlice::new(b"one"), IoSlice::new(b"two"), IoSlice::new(b"3")];
        for _ in 0..2 {
            assert_eq!(sender.send_batch(&to, &slices).unwrap(), 3);
            for text in &slices {
                assert_eq!(receive(&mut receiver).await.0, **text);
            }
        }
    });
}

#[test]
fn nobody_there_is_an_error_of_unix_datagrams() {
    let sender = Datagram::unconnected(Family::Unix).unwrap();
    let nowhere = Address::Unix(scratch("nobody.sock"));
    let error = sender.send_to(&nowhere, &[IoSlice::new(b"x")]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}
