//! Restarts under load: sockets are passed from process to process, and no request is lost. `RESTARTS=100` runs longer.

use crate::support::{DEFAULTS, Folder, PATIENCE, Running, connect, exchange, free_port, get};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

fn configuration(folder: &Folder, port: u16, more: &str) -> String {
    let sockets = format!(
        "global\n    stats socket {0}/api expose-fd listeners\n    stats socket {0}/closed level admin\n",
        folder.text()
    );
    let text = format!(
        "{sockets}{DEFAULTS}frontend web\n    bind 127.0.0.1:{port}\n    bind {}/web\n    bind abns@weir-test-{port}\n{more}    \
         default_backend none\nbackend none\n",
        folder.text()
    );
    folder.write("service.cfg", &text)
}

/// Sends requests, each on a new connection, until `done`; counts the answered ones and returns the errors.
fn load(port: u16, path: &std::path::Path, done: &AtomicBool, answered: &AtomicU64) -> Vec<String> {
    let mut lost = Vec::new();
    let mut ask = |stream: std::io::Result<Box<dyn ReadWrite>>| {
        let answer = stream.and_then(|mut stream| {
            stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).map(|_| answer)
        });
        match answer {
            Ok(answer) if answer.starts_with(b"HTTP/1.1 503 ") => {
                answered.fetch_add(1, Ordering::Relaxed);
            }
            other => lost.push(format!("{other:?}")),
        }
    };
    while !done.load(Ordering::Relaxed) {
        ask(TcpStream::connect(("127.0.0.1", port)).map(|stream| Box::new(stream) as Box<dyn ReadWrite>));
        ask(UnixStream::connect(path).map(|stream| Box::new(stream) as Box<dyn ReadWrite>));
    }
    lost
}

trait ReadWrite: Read + Write {}
impl<T: Read + Write> ReadWrite for T {}

#[test]
fn no_request_is_lost_while_processes_follow_one_another() {
    let restarts = std::env::var("RESTARTS").ok().and_then(|count| count.parse().ok()).unwrap_or(10);
    let folder = Folder::new();
    let port = free_port();
    let file = configuration(&folder, port, "");
    let api = folder.path("api");
    let api = api.to_str().expect("text");
    let mut running = Running::weir(&["-db", "-f", &file]);
    assert_eq!(exchange(&mut connect(port), &get("/")).0, 503);
    let (done, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let clients: Vec<_> = (0..2)
        .map(|_| {
            let (done, answered, path) = (Arc::clone(&done), Arc::clone(&answered), folder.path("web"));
            thread::spawn(move || load(port, &path, &done, &answered))
        })
        .collect();
    for _ in 0..restarts {
        let before = answered.load(Ordering::Relaxed);
        let next = Running::weir(&["-db", "-f", &file, "-x", api, "-sf", &running.id().to_string()]);
        let left = std::mem::replace(&mut running, next).finish();
        assert_eq!(left.code(), Some(0), "{}", left.stderr);
        crate::support::wait_until("some requests", || answered.load(Ordering::Relaxed) >= before + 20);
    }
    done.store(true, Ordering::Relaxed);
    let lost: Vec<_> = clients.into_iter().flat_map(|client| client.join().expect("a client")).collect();
    assert!(lost.is_empty(), "{lost:?} of {}", answered.load(Ordering::Relaxed));
}

#[test]
fn sockets_that_are_not_wanted_any_more_are_closed() {
    let folder = Folder::new();
    let (port, extra) = (free_port(), free_port());
    let file = configuration(&folder, port, &format!("    bind 127.0.0.1:{extra}\n"));
    let old = Running::weir(&["-db", "-f", &file]);
    assert_eq!(exchange(&mut connect(extra), &get("/")).0, 503);
    let file = configuration(&folder, port, "");
    let api = folder.path("api");
    let id = old.id().to_string();
    let new = Running::weir(&["-db", "-f", &file, "-x", api.to_str().expect("text"), "-sf", &id]);
    assert_eq!(old.finish().code(), Some(0));
    assert_eq!(exchange(&mut connect(port), &get("/")).0, 503);
    assert!(TcpStream::connect(("127.0.0.1", extra)).is_err());
    new.send(Signal::TERM);
    assert_eq!(new.finish().signal(), Some(15));
}

#[test]
fn a_process_that_hands_nothing_over_is_not_followed() {
    let folder = Folder::new();
    let port = free_port();
    let file = configuration(&folder, port, "");
    let old = Running::weir(&["-db", "-f", &file]);
    assert_eq!(exchange(&mut connect(port), &get("/")).0, 503);
    let id = old.id().to_string();
    for (socket, sentence) in [
        ("closed", "Failed to get the number of sockets to be transferred !"),
        ("nobody", "Failed to connect to the old process socket"),
    ] {
        let socket = folder.path(socket);
        let found = crate::support::weir(["-db", "-f", &file, "-x", socket.to_str().expect("text"), "-sf", &id]);
        assert_eq!(found.code(), Some(1));
        assert!(found.stderr.contains(sentence), "{}", found.stderr);
        assert!(found.stderr.contains("Failed to get the sockets from the old process!"), "{}", found.stderr);
    }
    assert_eq!(exchange(&mut connect(port), &get("/")).0, 503, "the old process serves on");
    let mut asked = crate::support::connect_unix(&folder.path("api"));
    asked.set_read_timeout(Some(PATIENCE)).expect("a socket");
    asked.write_all(b"_getsocks\n").expect("sent");
    let mut number = [0; 4];
    asked.read_exact(&mut number).expect("an answer");
    assert_eq!(i32::from_ne_bytes(number), 3, "listening sockets, but for those of the runtime API");
}
