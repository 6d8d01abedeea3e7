//! Tests of cache files: responses evicted from memory are served from there, and clients get the server's responses
//! whatever errors the disk has.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use engine::disk_cache::Store;
use testkit::{Peer, Service, text};

use crate::api::*;
use crate::caching::{cached, request};
use crate::world::*;

/// The failure mode of a disk.
const SOUND: u8 = 0;
const READS_FAIL: u8 = 1;
const WRITES_FAIL: u8 = 2;
const LIES: u8 = 3;
const FORGETS: u8 = 4;

#[derive(Clone, Default)]
struct Memory(Arc<(Mutex<Vec<u8>>, AtomicU8)>);

impl Store for Memory {
    fn read(&self, room: &mut [u8], offset: u64) -> io::Result<()> {
        let from = usize::try_from(offset).unwrap();
        match self.0.1.load(Relaxed) {
            READS_FAIL => return Err(io::ErrorKind::UnexpectedEof.into()),
            FORGETS => room.fill(0),
            how => {
                room.copy_from_slice(&self.0.0.lock().unwrap()[from..from + room.len()]);
                if how == LIES {
                    let middle = room.len() / 2;
                    room[middle] ^= 1;
                }
            }
        }
        Ok(())
    }

    fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        if self.0.1.load(Relaxed) == WRITES_FAIL {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let (mut file, from) = (self.0.0.lock().unwrap(), usize::try_from(offset).unwrap());
        let end = file.len().max(from + data.len());
        file.resize(end, 0);
        file[from..from + data.len()].copy_from_slice(data);
        Ok(())
    }
}

const LENGTH: usize = 400_000;

/// Requests a body, which the server answers if `asks_server`, or else the cache, and checks it.
async fn fetch(s1: &mut Service, number: u64, asks_server: bool) {
    let mut client = Peer::connect(WEIR).await;
    client.send(request(&format!("GET /{number}"), "")).await;
    let body = text(LENGTH, number);
    if asks_server {
        let mut server = s1.accept().await;
        server.receive_head().await.unwrap();
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=50\r\nETag: \"{number}\"\r\nContent-Length: {LENGTH}\r\n\r\n"
        );
        server.send(head).await;
        let (got, ()) = testkit::both(
            async {
                let head = client.receive_head().await.unwrap();
                (head, client.receive(LENGTH).await)
            },
            server.send(&*body),
        )
        .await;
        assert!(got.0.contains("x-hit: 0,") && got.1 == body);
        return;
    }
    let head = client.receive_head().await.unwrap();
    assert!(head.contains("x-hit: 1,c") && head.contains(&format!("etag: \"{number}\"")), "{head}");
    assert!(client.receive(LENGTH).await == body);
}

fn with_disk() -> Worlds {
    cached("", "max-object-size 500000\n disk /nowhere/c 4").global(SOCKET)
}

/// There is space for two responses in memory, the others are in the file.
#[test]
fn what_has_left_the_memory_is_served_from_the_file() {
    with_disk().run(|world| async move {
        world.shared().disks.set(0, Box::new(Memory::default()));
        let mut s1 = Service::at(S1);
        for number in 0..5 {
            fetch(&mut s1, number, true).await;
        }
        for number in [0, 1, 2, 3, 4, 0, 3] {
            fetch(&mut s1, number, false).await;
        }
        // Some are in both.
        ask("purge cache c all").await;
        for number in 0..3 {
            fetch(&mut s1, number, true).await;
        }
    });
}

#[test]
fn a_disk_that_fails_is_a_miss() {
    for how in [READS_FAIL, WRITES_FAIL, LIES, FORGETS] {
        with_disk().run(move |world| async move {
            let disk = Memory::default();
            world.shared().disks.set(0, Box::new(disk.clone()));
            disk.0.1.store(how, Relaxed);
            let mut s1 = Service::at(S1);
            // The requests are sent to the server again; after the disk has recovered, it is used again.
            for number in [0, 1, 2, 0, 1] {
                fetch(&mut s1, number, true).await;
            }
            disk.0.1.store(SOUND, Relaxed);
            fetch(&mut s1, 5, true).await;
            fetch(&mut s1, 6, true).await;
            fetch(&mut s1, 0, false).await;
        });
    }
}

/// `only-if-cached` includes responses in the file.
#[test]
fn a_request_for_what_is_stored_alone_gets_what_lies_in_the_file() {
    for (how, expected) in [(SOUND, "200 OK"), (LIES, "504 Gateway Time-out")] {
        cached("", "max-object-size 500000\n rfc9111 on\n disk /nowhere/c 4").run(move |world| async move {
            let disk = Memory::default();
            world.shared().disks.set(0, Box::new(disk.clone()));
            let mut s1 = Service::at(S1);
            for number in 0..4 {
                fetch(&mut s1, number, true).await;
            }
            disk.0.1.store(how, Relaxed);
            let mut client = Peer::connect(WEIR).await;
            client.send(request("GET /0", "Cache-Control: only-if-cached\r\n")).await;
            let got = client.receive_rest().await;
            assert!(got.starts_with(format!("HTTP/1.1 {expected}\r\n").as_bytes()), "{expected}");
        });
    }
}
