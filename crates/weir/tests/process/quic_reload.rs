//! Reloads while QUIC connections are open: a connection stays with the process and the thread that it began with, and none of
//! its packets is lost to another one. `RELOADS=100` runs longer.

use crate::quic_client::Client;
use crate::quic_sockets::{free_address, sockets};
use crate::reload::Service;
use crate::support::{DEFAULTS, Folder, Running, connect, exchange, free_port, get};
use quic::Closed;
use rustix::process::Signal;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

const SITE: &str = include_str!("site.pem");

type Address = (Ipv4Addr, u16);

/// A frontend whose answers are `name`, by TCP and by QUIC.
fn frontend(folder: &Folder, port: &str, (address, quic): Address, name: &str) -> String {
    let pem = folder.write("site.pem", SITE);
    format!(
        "frontend web\n    mode http\n    bind 127.0.0.1:{port}\n    bind quic4@{address}:{quic} ssl crt {pem}\n    \
         http-request return status 200 content-type text/plain string {name}\n"
    )
}

/// Processes that follow one another.
struct Line {
    folder: Folder,
    port: u16,
    address: Address,
    global: &'static str,
}

impl Line {
    /// `global` has further lines of that section.
    fn new(global: &'static str) -> Self {
        Self { folder: Folder::new(), port: free_port(), address: free_address(), global }
    }

    /// Starts a process that answers `name`, and replaces `older`.
    fn start(&self, name: &str, threads: usize, older: Option<&Running>) -> Running {
        let api = self.folder.path("api").display().to_string();
        let global =
            format!("global\n    nbthread {threads}\n    stats socket {api} expose-fd listeners\n{}", self.global);
        let frontend = frontend(&self.folder, &self.port.to_string(), self.address, name);
        let file = self.folder.write(&format!("{name}.cfg"), &format!("{global}{DEFAULTS}{frontend}"));
        let running = match older {
            None => Running::weir(&["-db", "-f", &file]),
            Some(older) => Running::weir(&["-db", "-f", &file, "-x", &api, "-sf", &older.id().to_string()]),
        };
        crate::support::wait_until("the process serves", || {
            exchange(&mut connect(self.port), &get("/")) == (200, name.to_owned())
        });
        running
    }
}

/// Connections are served by their process to their end, through three reloads, with more and with fewer threads. Their clients'
/// ports change as well.
#[test]
fn a_connection_stays_with_its_process_through_reloads() {
    let line = Line::new("    close-spread-time infinite\n");
    let first = line.start("one", 2, None);
    let mut clients: Vec<(Client, &str)> = (0..4).map(|_| (Client::connect(line.address), "one")).collect();
    let mut processes = vec![first];
    for (name, threads) in [("two", 3), ("three", 1), ("four", 2)] {
        let waiting: Vec<_> = clients.iter_mut().map(|(client, _)| client.send("/")).collect();
        processes.push(line.start(name, threads, processes.last()));
        for ((client, name), id) in clients.iter_mut().zip(waiting) {
            assert_eq!(client.answer(id), ("200".to_owned(), (*name).to_owned()));
            assert_eq!(client.get("/"), *name);
        }
        clients.extend((0..4).map(|_| (Client::connect(line.address), name)));
        for (client, name) in &mut clients {
            assert_eq!(client.get("/"), *name);
            client.change_port();
            assert_eq!(client.get("/"), *name);
        }
    }
    clients.into_iter().for_each(|(client, _)| client.close());
    let last = processes.pop();
    for process in processes {
        assert_eq!(process.finish().code(), Some(0));
    }
    drop(last);
}

/// New connections are served while processes follow one another.
#[test]
fn no_new_connection_is_lost_while_processes_follow_one_another() {
    let reloads = std::env::var("RELOADS").ok().and_then(|count| count.parse().ok()).unwrap_or(6);
    let line = Line::new("");
    let mut running = line.start("first", 2, None);
    let (done, served) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let clients: Vec<_> = (0..2)
        .map(|_| {
            let (done, served, address) = (Arc::clone(&done), Arc::clone(&served), line.address);
            thread::spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    Client::get_anew(address, "/");
                    served.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for number in 0..reloads {
        let before = served.load(Ordering::Relaxed);
        let next = line.start(&format!("next{number}"), 1 + number % 2, Some(&running));
        assert_eq!(std::mem::replace(&mut running, next).finish().code(), Some(0));
        crate::support::wait_until("some requests", || served.load(Ordering::Relaxed) >= before + 10);
    }
    done.store(true, Ordering::Relaxed);
    clients.into_iter().for_each(|client| client.join().expect("a client"));
}

/// A client whose process has ended learns it from the next one, if that has the same keys.
#[test]
fn ids_of_a_process_that_has_ended_are_reset() {
    let line = Line::new("    close-spread-time infinite\n    cluster-secret weir\n");
    let old = line.start("one", 2, None);
    let mut client = Client::connect(line.address);
    assert_eq!(client.get("/"), "one");
    let _new = line.start("two", 2, Some(&old));
    assert_eq!(client.get("/"), "one");
    old.send(Signal::KILL);
    assert_eq!(old.finish().signal(), Some(9));
    client.ping();
    client.until("a reset", |client| client.closed.is_some());
    assert_eq!(client.closed, Some(Closed::Reset));
}

/// A process whose successor has ended receives again.
#[test]
fn a_process_goes_on_if_its_successor_ends() {
    let line = Line::new("    close-spread-time infinite\n");
    let old = line.start("one", 2, None);
    let mut client = Client::connect(line.address);
    let new = line.start("two", 2, Some(&old));
    assert_eq!(client.get("/"), "one");
    new.send(Signal::KILL);
    assert_eq!(new.finish().signal(), Some(9));
    assert_eq!(client.get("/"), "one");
    client.close();
    assert_eq!(old.finish().code(), Some(0));
}

/// A soft stop without a successor: a request that is under way ends, GOAWAY is sent, and new connections are refused.
#[test]
fn a_stopping_process_refuses_new_connections() {
    let line = Line::new("    close-spread-time infinite\n");
    let old = line.start("one", 2, None);
    let mut client = Client::connect(line.address);
    assert_eq!(client.get("/"), "one");
    old.send(Signal::USR1);
    crate::support::wait_until("the soft stop", || std::net::TcpStream::connect(("127.0.0.1", line.port)).is_err());
    let mut late = Client::begin(line.address);
    late.until("a refusal", |client| client.closed.is_some());
    assert!(matches!(late.closed, Some(Closed::PeerTransport { code: 2, .. })), "{:?}", late.closed);
    assert_eq!(client.get("/"), "one");
    client.close();
    assert_eq!(old.finish().code(), Some(0));
}

/// A reload in place leaves connections alone: they are served as their configuration says, and new ones by the new one. Limits of
/// QUIC change as well.
#[test]
fn a_reload_in_place_keeps_connections() {
    let (folder, address) = (Folder::new(), free_address());
    let sections = |folder: &Folder, name: &str| frontend(folder, "PORT", address, name);
    let one = sections(&folder, "one");
    let service = Service::start_with("    nbthread 2\n", &one, folder);
    let worker = service.worker();
    let mut client = Client::connect(address);
    assert_eq!(client.get("/"), "one");
    let two = sections(&service.folder, "two");
    service.write("    nbthread 2\n    tune.quic.fe.max-idle-timeout 20s\n", &two);
    let waiting = client.send("/");
    let answer = service.reload();
    assert!(answer.starts_with("Success=1\n") && answer.contains("Reloaded in place"), "{answer}");
    assert_eq!(client.answer(waiting).1, "one");
    assert_eq!(client.get("/"), "one");
    assert_eq!(Client::connect(address).get("/"), "two");
    assert_eq!(service.worker(), worker);
    client.close();
}

/// An address that moves to another frontend in place keeps its sockets and its connections; those that begin afterwards are the
/// other frontend's. Two listeners that read one socket would lose the packets of each other.
#[test]
fn an_address_moves_to_another_frontend_in_place() {
    let (folder, address) = (Folder::new(), free_address());
    let pem = folder.write("site.pem", SITE);
    let folder_path = folder.path("").display().to_string();
    let sections = |owner: &str, thread: &str| {
        let section = |name: &str| {
            let quic = match name == owner {
                true => format!("    bind quic4@{}:{} ssl crt {pem} {thread}\n", address.0, address.1),
                false => String::new(),
            };
            format!(
                "frontend {name}\n    mode http\n    bind {folder_path}/{name}.sock\n{quic}    \
                 http-request return status 200 content-type text/plain string {name}\n"
            )
        };
        format!("{}    bind 127.0.0.1:PORT\n{}", section("one"), section("two"))
    };
    let global = "    nbthread 2\n";
    let service = Service::start_with(global, &sections("one", ""), folder);
    let before = sockets(address.0, address.1);
    let mut clients: Vec<(Client, &str)> = Vec::new();
    // To the other one, and back.
    for (owner, reloads) in [("one", false), ("two", true), ("one", true)] {
        let waiting: Vec<_> = clients.iter_mut().map(|(client, _)| client.send("/")).collect();
        if reloads {
            service.write(global, &sections(owner, ""));
            let answer = service.reload();
            assert!(answer.starts_with("Success=1\n") && answer.contains("Reloaded in place"), "{answer}");
        }
        for ((client, name), id) in clients.iter_mut().zip(waiting) {
            assert_eq!(client.answer(id).1, *name);
        }
        clients.extend((0..8).map(|_| (Client::connect(address), owner)));
        for _ in 0..3 {
            for (client, name) in &mut clients {
                assert_eq!(client.get("/"), *name);
            }
        }
        assert_eq!(sockets(address.0, address.1), before);
    }
    clients.into_iter().for_each(|(client, _)| client.close());
    let worker = service.worker();
    service.write(global, &sections("two", "thread 1"));
    let answer = service.reload();
    assert!(answer.starts_with("Success=1\n") && !answer.contains("Reloaded in place"), "{answer}");
    assert_ne!(service.worker(), worker);
    assert_eq!(Client::get_anew(address, "/"), "two");
}
