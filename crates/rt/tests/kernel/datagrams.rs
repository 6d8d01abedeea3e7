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

#[test]
fn nobody_there_is_an_error_of_unix_datagrams() {
    let sender = Datagram::unconnected(Family::Unix).unwrap();
    let nowhere = Address::Unix(scratch("nobody.sock"));
    let error = sender.send_to(&nowhere, &[IoSlice::new(b"x")]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}
