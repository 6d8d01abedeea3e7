//! Tests of the memory that a worker holds for clients that stop reading, or stop in the middle of a request.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use rt::sim::Link;
use testkit::{Peer, Scope, Service, sleep};

use crate::world::*;

/// More than a worker's large buffers for bulk data.
const CLIENTS: usize = 40;
/// The rest of such a download continues when its client reads again.
const BODY: usize = 1_200_000;

/// The number of large buffers among `wanted` buffers for bulk data that are taken at once, on worker 0.
async fn large_buffers(wanted: usize) -> usize {
    let found = Arc::new(AtomicUsize::new(usize::MAX));
    let note = Arc::clone(&found);
    rt::post(
        0,
        Box::new(move || {
            let held: Vec<_> = (0..wanted).map(|_| rt::bulk_buffer()).collect();
            let large = held.iter().filter(|buffer| buffer.capacity() == rt::large_buffer_size());
            note.store(large.count(), SeqCst);
        }),
    );
    sleep(10).await;
    found.load(SeqCst)
}

#[test]
fn clients_that_do_not_read_hold_no_large_buffers() {
    for head in [format!("content-length: {BODY}"), "connection: close".to_owned()] {
        let link = |_| Link { fragment: false, buffer: 400_000, ..Link::default() };
        listen(" server s1 10.0.1.1:80").workers(&[1]).seeds(0..1).links(link).run(move |_| {
            let head = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n");
            async move {
                let scope = Rc::new(Scope::new());
                Service::at(S1).serve(&scope, move |mut server, _| {
                    let head = head.clone();
                    async move {
                        while server.try_receive_head().await.is_some() {
                            let whole = server.try_send(&head).await && server.try_send(vec![b'x'; BODY]).await;
                            if !whole || !head.contains("length") {
                                return;
                            }
                        }
                    }
                });
                let mut clients = Vec::new();
                for _ in 0..CLIENTS {
                    let mut client = Peer::connect(WEIR).await;
                    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
                    clients.push(client);
                }
                sleep(500).await;
                let large = large_buffers(32).await;
                assert_eq!(large, 32, "all are there for those that read");
                for client in &mut clients {
                    assert!(client.receive_head().await.is_some_and(|head| head.contains(" 200 ")));
                    let body = client.receive(BODY).await;
                    assert!(body.iter().all(|byte| *byte == b'x'));
                }
                drop(clients);
                scope.end();
            }
        });
    }
}
