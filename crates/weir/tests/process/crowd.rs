//! Many clients at once on four threads: limits of servers and rates are exact, and no client is rejected while servers
//! are added and removed. Must never measure speed, only upper bounds.

use crate::support::{DEFAULTS, Folder, Running, connect, connect_unix, exchange, free_port, get, wait_until};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Instant;

pub const CLIENTS: usize = 16;

/// A server that counts its concurrent requests.
pub struct Origin {
    pub port: u16,
    served: AtomicUsize,
    inside: AtomicUsize,
    pub most: AtomicUsize,
}

impl Origin {
    /// The first `gathered` requests are answered in groups of `together`: none of a group before all of it has
    /// arrived.
    pub fn start(gathered: usize, together: usize) -> Arc<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let (served, inside, most) = Default::default();
        let origin = Arc::new(Self { port, served, inside, most });
        let (shared, gate) = (Arc::clone(&origin), Arc::new(Barrier::new(together)));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (origin, gate) = (Arc::clone(&shared), Arc::clone(&gate));
                thread::spawn(move || origin.serve(stream, gathered, &gate));
            }
        });
        origin
    }

    fn serve(&self, mut stream: TcpStream, gathered: usize, gate: &Barrier) {
        let mut head = Vec::new();
        let mut part = [0; 1024];
        while let Ok(read @ 1..) = stream.read(&mut part) {
            head.extend_from_slice(&part[..read]);
            if !head.ends_with(b"\r\n\r\n") {
                continue;
            }
            head.clear();
            self.most.fetch_max(self.inside.fetch_add(1, SeqCst) + 1, SeqCst);
            if self.served.fetch_add(1, SeqCst) < gathered {
                gate.wait();
            }
            self.inside.fetch_sub(1, SeqCst);
            if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err() {
                return;
            }
        }
    }

    pub fn served(&self) -> usize {
        self.served.load(SeqCst)
    }
}

/// Runs Weir on four threads, with additional lines for `global` and the proxy.
fn four_threads(folder: &Folder, global: &str, proxy: &str) -> (Running, u16) {
    let port = free_port();
    let text = format!(
        "global\n    nbthread 4\n    {global}\n{DEFAULTS}listen web\n    bind 127.0.0.1:{port}\n    \
         balance roundrobin\n    {proxy}\n"
    );
    let running = Running::weir(&["-db", "-f", &folder.write("crowd.cfg", &text)]);
    drop(connect(port));
    (running, port)
}

/// Sends this number of requests from all clients together, each of which must be answered.
fn ask(port: u16, requests: usize) {
    let taken = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut stream = connect(port);
                while taken.fetch_add(1, SeqCst) < requests {
                    assert_eq!(exchange(&mut stream, &get("/")).0, 200);
                }
            });
        }
    });
}

#[test]
fn servers_get_as_many_requests_as_they_take_and_never_one_more() {
    let folder = Folder::new();
    let origin = Origin::start(480, 3);
    let server = format!("server s1 127.0.0.1:{} maxconn 3", origin.port);
    let (_weir, port) = four_threads(&folder, "", &server);
    ask(port, 480);
    assert_eq!((origin.served(), origin.most.load(SeqCst)), (480, 3));
}

#[test]
fn a_limit_that_follows_the_load_ends_at_maxconn() {
    let folder = Folder::new();
    // Towards the end there are fewer clients than the limit: those requests do not wait for others.
    let origin = Origin::start(400, 4);
    let server = format!("fullconn 8\n    server s1 127.0.0.1:{} minconn 1 maxconn 4", origin.port);
    let (_weir, port) = four_threads(&folder, "", &server);
    ask(port, 480);
    assert_eq!((origin.served(), origin.most.load(SeqCst)), (480, 4));
}

/// At most 50 concurrent connections and 50 per second are accepted, however many arrive.
fn fifty_a_second(global: &str, proxy: &str) {
    let folder = Folder::new();
    let start = Instant::now();
    let (_weir, port) = four_threads(&folder, global, proxy);
    let answered = AtomicUsize::new(1);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                for _ in 0..7 {
                    assert_eq!(exchange(&mut connect(port), &get("/")).0, 503);
                    let number = answered.fetch_add(1, SeqCst) + 1;
                    let allowed = 50.0 + 50.0 * start.elapsed().as_secs_f64();
                    assert!(number as f64 <= allowed + 1.0, "number {number} where {allowed} are allowed");
                }
            });
        }
    });
}

#[test]
fn sessions_of_a_frontend_keep_to_its_rate() {
    fifty_a_second("", "rate-limit sessions 50");
}

#[test]
fn connections_of_the_process_keep_to_its_rate() {
    fifty_a_second("maxconnrate 50", "");
}

/// Sends a command to the stats socket and returns its answer.
pub fn command(socket: &str, line: &str) -> String {
    let mut stream = connect_unix(Path::new(socket));
    stream.write_all(line.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn servers_leave_for_maintenance_and_come_back_under_traffic() {
    let folder = Folder::new();
    let socket = format!("{}/api", folder.text());
    let origins = [Origin::start(0, 1), Origin::start(0, 1)];
    let servers = format!("server s0 127.0.0.1:{}\n    server s1 127.0.0.1:{}", origins[0].port, origins[1].port);
    let (_weir, port) = four_threads(&folder, &format!("stats socket {socket} level admin"), &servers);
    let stop = AtomicUsize::new(0);
    let rounds: [AtomicUsize; CLIENTS] = Default::default();
    // Every client has received answers to two requests sent from now on.
    let all_go_on = || {
        let before = rounds.each_ref().map(|round| round.load(SeqCst));
        wait_until("clients go on", || {
            rounds.iter().zip(before).all(|(round, before)| round.load(SeqCst) >= before + 3)
        });
    };
    thread::scope(|scope| {
        for round in &rounds {
            let stop = &stop;
            scope.spawn(move || {
                let mut stream = connect(port);
                while stop.load(SeqCst) == 0 {
                    assert_eq!(exchange(&mut stream, &get("/")).0, 200);
                    round.fetch_add(1, SeqCst);
                }
            });
        }
        for number in 0..10 {
            let (name, origin) = (format!("web/s{}", number % 2), &origins[number % 2]);
            assert_eq!(command(&socket, &format!("set server {name} state maint\n")).trim(), "");
            all_go_on();
            let before = origin.served();
            all_go_on();
            let during = origin.served() - before;
            assert_eq!(command(&socket, &format!("set server {name} state ready\n")).trim(), "");
            wait_until("requests come back", || origin.served() > before);
            if during != 0 {
                stop.store(1, SeqCst);
                panic!("{during} requests went to a server in maintenance");
            }
        }
        stop.store(1, SeqCst);
    });
    let told: usize = rounds.iter().map(|round| round.load(SeqCst)).sum();
    assert_eq!(origins.iter().map(|origin| origin.served()).sum::<usize>(), told);
}
