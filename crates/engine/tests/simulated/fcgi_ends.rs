//! What FastCGI applications say at the end of their answers.

use testkit::{Peer, Service};

use crate::fcgi::{PLAIN, app, receive_plain, record, request};
use crate::world::*;

/// An application that says behind its answer that it is overloaded has answered.
#[test]
fn what_an_application_says_behind_its_answer_does_not_undo_it() {
    for section in ["", " option mpxs-conns\n option max-reqs 4"] {
        app("", section).run(|_| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            for _ in 0..2 {
                client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
                let mut server = s1.accept().await;
                request(&mut server).await;
                let overloaded = record(3, &[0, 0, 0, 0, 2, 0, 0, 0]);
                server.send([record(6, PLAIN.as_bytes()), record(6, b""), overloaded].concat()).await;
                receive_plain(&mut client).await;
                if !section.is_empty() {
                    // The others of such a connection go on.
                    return;
                }
            }
        });
    }
}
