//! Passing descriptors between processes: message boundaries are preserved, descriptors arrive with them, hostile
//! messages are refused.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use crate::rt;
use crate::support::on_one_worker;
use rt::net::{
    Address, BindOptions, Channel, ForeignListener, MOST_DESCRIPTORS, channel_pair, receive_descriptors,
    send_descriptors,
};

fn listener() -> (OwnedFd, Address) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = Address::Inet(listener.local_addr().unwrap());
    (listener.into(), address)
}

#[test]
fn a_channel_keeps_messages_apart_and_tells_its_end() {
    on_one_worker(|| async {
        let (one, other) = channel_pair().unwrap();
        let (mut here, there) = (Channel::adopt(one).unwrap(), Channel::adopt(other).unwrap());
        let (stream, mut far) = UnixStream::pair().unwrap();
        there.send(b"first", &[]).unwrap();
        there.send(b"second", &[stream.as_fd()]).unwrap();
        drop((there, stream));
        let (mut place, mut descriptors) = ([0; 64], Vec::new());
        assert_eq!(here.receive(&mut place, &mut descriptors).await.unwrap(), 5);
        assert!(descriptors.is_empty());
        assert_eq!(here.receive(&mut place, &mut descriptors).await.unwrap(), 6);
        assert_eq!(&place[..6], b"second");
        let mut stream = UnixStream::from(descriptors.pop().unwrap());
        stream.write_all(b"x").unwrap();
        far.read_exact(&mut place[..1]).unwrap();
        assert_eq!(here.receive(&mut place, &mut descriptors).await.unwrap(), 0);
    });
}

#[test]
fn as_many_descriptors_as_a_message_carries_arrive_in_order() {
    let (here, there) = UnixStream::pair().unwrap();
    let listeners: Vec<_> = (0..3).map(|_| listener()).collect();
    let many: Vec<_> = (0..MOST_DESCRIPTORS).map(|place| listeners[place % 3].0.as_fd()).collect();
    assert_eq!(send_descriptors(&there, b"all", &many).unwrap(), 3);
    assert!(send_descriptors(&there, b"more", &[many.as_slice(), &many[..1]].concat()).is_err());
    assert!(send_descriptors(&there, b"", &many[..1]).is_err(), "nothing to carry them");
    let (mut place, mut descriptors) = ([0; 64], Vec::new());
    assert_eq!(receive_descriptors(&here, &mut place, &mut descriptors).unwrap(), 3);
    assert_eq!(descriptors.len(), MOST_DESCRIPTORS);
    for (at, fd) in descriptors.into_iter().enumerate().take(6) {
        assert_eq!(ForeignListener::new(fd).unwrap().address, listeners[at % 3].1);
    }
}

#[test]
fn only_what_listens_is_listened_on() {
    let (stream, _other) = UnixStream::pair().unwrap();
    assert!(ForeignListener::new(stream.into()).is_none());
    let (fd, address) = listener();
    let found = ForeignListener::new(fd.try_clone().unwrap()).unwrap();
    assert_eq!((&found.address, &found.interface), (&address, &None));
    let adopted = found.adopt(&address, &BindOptions::default()).unwrap();
    assert_eq!(adopted.local_address(), &address);
    let inet = address.inet().unwrap();
    // Another process may share it: it continues there, regardless of this process.
    adopted.set_shared();
    adopted.pause().unwrap();
    drop(std::net::TcpStream::connect(inet).unwrap());
    drop(adopted);
    drop(std::net::TcpStream::connect(inet).unwrap());
}
