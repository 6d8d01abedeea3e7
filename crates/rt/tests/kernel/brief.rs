//! Short connections: their sockets are reused after a reset, equivalent to new ones.

use std::cell::RefCell;
use std::rc::Rc;

use crate::rt;
use crate::support::*;
use rt::net::{Address, ConnectOptions, Stream};

fn brief() -> ConnectOptions {
    ConnectOptions { is_brief: true, looks_at_once: true, delay_acknowledgement: true, ..ConnectOptions::default() }
}

async fn connect(address: &Address) -> Stream {
    Stream::connect(address, &brief()).unwrap().await.unwrap()
}

#[test]
fn a_socket_serves_again_and_carries_what_is_sent_then() {
    on_one_worker(|| async {
        assert!(brief().is_plain());
        let socket = listen();
        let address = socket.local_address().clone();
        let peers = Rc::new(RefCell::new(Vec::new()));
        let accepted = Rc::clone(&peers);
        serve(socket, move |peer| accepted.borrow_mut().push(peer));
        let mut numbers = Vec::new();
        for waits in [false, true, false, true] {
            let mut stream = connect(&address).await;
            numbers.push(stream.number());
            write_all(&mut stream, b"question").await.unwrap();
            until(|| !peers.borrow().is_empty()).await;
            let mut peer = Stream::adopt(peers.borrow_mut().pop().unwrap());
            let mut buffer = rt::buffer();
            read_exactly(&mut peer, &mut buffer, 8).await;
            if waits {
                // A stream that has waited is watched, and must not be once its socket is kept.
                write_all(&mut peer, b"answer").await.unwrap();
                buffer.clear();
                read_exactly(&mut stream, &mut buffer, 6).await;
                assert_eq!(buffer.data(), b"answer");
            }
            rt::net::reset(stream, false);
            // The peer sees an ordinary reset.
            buffer.clear();
            let error = read(&mut peer, &mut buffer).await.unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        }
        assert!(numbers.iter().all(|number| *number == numbers[0]), "{numbers:?}");
    });
}

#[test]
fn a_refusal_is_told_by_fresh_and_by_kept_sockets() {
    on_one_worker(|| async {
        let socket = listen();
        let address = socket.local_address().clone();
        let nobody = {
            let gone = listen();
            gone.local_address().clone()
        };
        for _ in 0..3 {
            let refused = match Stream::connect(&nobody, &brief()) {
                Ok(connecting) => connecting.await.unwrap_err(),
                Err(error) => error,
            };
            assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
            rt::net::reset(connect(&address).await, false);
        }
    });
}

#[test]
fn sockets_with_options_of_their_own_are_not_kept() {
    let own = [
        ConnectOptions { source: Some(any_port()), ..brief() },
        ConnectOptions { mss: Some(500), ..brief() },
        ConnectOptions { nodelay: false, ..brief() },
        ConnectOptions { is_brief: false, ..brief() },
    ];
    assert!(own.iter().all(|options| !options.is_plain()));
}
