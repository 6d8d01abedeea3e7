//! ClientHellos in pieces of any size, in any order, and too large ones.

use std::sync::Arc;

use tls::quic::{LARGEST_HELLO, Session};
use tls::{Failure, Server};

use crate::certificates::{Authority, client, client_settings, identity, server, settings};

fn ends() -> (Arc<Server>, Vec<u8>) {
    let authority = Authority::new();
    let tls = server(&[authority.certificate(&["a.test"])], settings(), false);
    let client = client(client_settings(&authority));
    let mut session = Session::of_client(&client, identity("a.test"), None, vec![1, 1, 5]).unwrap();
    let mut hello = Vec::new();
    assert!(session.write(&mut hello).is_none());
    (tls, hello)
}

#[test]
fn hellos_arrive_in_pieces() {
    let (tls, hello) = ends();
    for size in [1, 7, 100, 1_000, hello.len()] {
        let mut session = Session::of_server(Arc::clone(&tls), vec![1, 1, 5]);
        let mut read = 0;
        for piece in hello.chunks(size) {
            assert!(!session.has_decided(), "{size}");
            session.read(piece).unwrap();
            read += piece.len();
            let mut out = Vec::new();
            let keys = session.write(&mut out);
            assert_eq!((keys.is_some(), out.is_empty()), (read == hello.len(), read < hello.len()), "{size}");
        }
        assert!(session.has_decided() && session.is_handshaking());
        assert_eq!(session.info().server_name.as_deref(), Some(&b"a.test"[..]));
        assert_eq!(session.peer_parameters(), Some(&[1, 1, 5][..]));
    }
}

#[test]
fn hellos_that_are_none_end_the_handshake() {
    let (tls, hello) = ends();
    let too_large = [1, 0, 0x40, 0, 3, 3];
    let mut extended = hello.clone();
    // Bytes that do not belong to it.
    extended.extend([0; 4]);
    let rows: [(&str, &[u8], Option<u8>); 4] = [
        ("another message", &[2, 0, 0, 1, 0], Some(10)),
        ("too large", &too_large, None),
        ("not a hello", &[1, 0, 0, 4, 9, 9, 9, 9], Some(50)),
        ("empty", &[1, 0, 0, 0], Some(50)),
    ];
    for (row, bytes, alert) in rows {
        let mut session = Session::of_server(Arc::clone(&tls), Vec::new());
        let refusal = session.read(bytes).unwrap_err();
        assert_eq!(refusal.alert, alert, "{row}");
        assert!(session.info().failure.is_some() && session.is_handshaking(), "{row}");
        assert!(session.read(&hello).is_err(), "{row}: it is over");
        assert!(session.write(&mut Vec::new()).is_none());
    }
    let mut session = Session::of_server(tls, Vec::new());
    assert!(session.read(&extended).is_err());
}

/// A hello that announces the largest permitted size is collected, and nothing more.
#[test]
fn the_largest_hello_is_the_most_that_is_kept() {
    let (tls, _) = ends();
    let length = (LARGEST_HELLO - 4).to_be_bytes();
    let head = [1, length[5], length[6], length[7]];
    let mut session = Session::of_server(tls, Vec::new());
    session.read(&head).unwrap();
    session.read(&vec![0; LARGEST_HELLO - 5]).unwrap();
    assert_eq!(session.read(&[0]).unwrap_err().failure, Failure::NotTls);
}
