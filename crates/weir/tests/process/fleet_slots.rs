//! Slots of a server over several nodes, with a real store (`maxconn-store`). Without Redis they are skipped with a message.

use crate::support::{Folder, Running, connect_unix, wait_until};
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};

const REDIS: &str = "/usr/bin/redis-server";
/// The slots of the server.
const SLOTS: usize = 6;

/// A server that answers a request when it is permitted to, and its numbers.
#[derive(Default)]
struct Server {
    numbers: Mutex<Numbers>,
    changed: Condvar,
}

#[derive(Debug, Default, Clone, Copy)]
struct Numbers {
    /// Requests in progress: now, and the most.
    now: usize,
    most: usize,
    /// Requests that were answered.
    answered: usize,
    /// Number of answers that are permitted.
    permitted: usize,
}

impl Server {
    fn start(folder: &Folder) -> Arc<Self> {
        let server = Arc::new(Self::default());
        let listener = UnixListener::bind(folder.path("server")).expect("own folder");
        let shared = Arc::clone(&server);
        // Runs until the test's process ends.
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let server = Arc::clone(&shared);
                std::thread::spawn(move || server.serve(stream));
            }
        });
        server
    }

    /// Serves one request, until the answer is permitted or the client leaves.
    fn serve(&self, mut stream: UnixStream) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            if stream.read(&mut byte).unwrap_or(0) == 0 {
                return;
            }
            head.push(byte[0]);
        }
        self.change(|numbers| {
            numbers.now += 1;
            numbers.most = numbers.most.max(numbers.now);
        });
        let mut reader = stream.try_clone().expect("a descriptor");
        let left = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Ready at the end of the connection.
                let _ = reader.read(&mut [0]);
                left.store(true, Relaxed);
                self.change(|_| {});
            });
            let numbers = self.numbers.lock().expect("no panic");
            let waits = |numbers: &mut Numbers| numbers.permitted == 0 && !left.load(Relaxed);
            let mut numbers = self.changed.wait_while(numbers, waits).expect("no panic");
            numbers.now -= 1;
            if numbers.permitted > 0 {
                numbers.permitted -= 1;
                numbers.answered += 1;
                drop(numbers);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            }
            let _ = stream.shutdown(std::net::Shutdown::Both);
        });
    }

    fn change(&self, change: impl FnOnce(&mut Numbers)) {
        change(&mut self.numbers.lock().expect("no panic"));
        self.changed.notify_all();
    }

    fn numbers(&self) -> Numbers {
        *self.numbers.lock().expect("no panic")
    }

    /// Permits answers one by one; each has to be replaced by another request.
    fn answer(&self, count: usize) {
        for _ in 0..count {
            let before = self.numbers().answered;
            self.change(|numbers| numbers.permitted += 1);
            wait_until("an answer, and the next request", || {
                let numbers = self.numbers();
                numbers.answered == before + 1 && numbers.now == SLOTS
            });
        }
    }
}

struct Fleet {
    folder: Folder,
    _store: Running,
    server: Arc<Server>,
}

impl Fleet {
    /// Starts a store and the server; `None`: Redis is not installed.
    fn start() -> Option<Self> {
        if !std::path::Path::new(REDIS).exists() {
            eprintln!("skipped: {REDIS} is not installed");
            return None;
        }
        let folder = Folder::new();
        let at = |name: &str| folder.path(name).display().to_string();
        // The commands that docs/fleet.md names.
        let commands =
            "-@all +select +script|load +evalsha +time +get +set +del +zadd +zcard +zremrangebyscore +pexpire";
        let user = format!("--user weir on >secret ~edge:* resetchannels {commands}");
        let store = Running::start(
            Command::new(REDIS)
                .args(["--port", "0", "--unixsocket", &at("redis"), "--save", "", "--dir", &at("")])
                .args(user.split(' ')),
        );
        wait_until("Redis listens", || UnixStream::connect(folder.path("redis")).is_ok());
        let server = Server::start(&folder);
        folder.write("password", "secret\n");
        Some(Self { folder, _store: store, server })
    }

    fn at(&self, name: &str) -> String {
        self.folder.path(name).display().to_string()
    }

    /// Starts a node.
    fn node(&self, name: &str) -> Running {
        let config = self.folder.write(
            &format!("{name}.cfg"),
            &format!(
                "global\n stats socket {} level admin\nstore fleet\n server redis1 unix@{}\n user weir\n password-file {}\n \
                 key-prefix edge:\nlisten app\n mode http\n timeout client 2m\n timeout server 2m\n timeout connect 2m\n \
                 bind unix@{}\n server s1 unix@{} maxconn {SLOTS} maxconn-store fleet lost closed\n",
                self.at(&format!("{name}.api")),
                self.at("redis"),
                self.at("password"),
                self.at(&format!("{name}.http")),
                self.at("server"),
            ),
        );
        let node = Running::weir(&["-f", &config]);
        wait_until("the node serves", || UnixStream::connect(self.folder.path(&format!("{name}.http"))).is_ok());
        node
    }

    /// Sends requests to a node, whose answers are not read.
    fn load(&self, name: &str, count: usize) -> Vec<UnixStream> {
        let one = |_| {
            let mut stream = connect_unix(&self.folder.path(&format!("{name}.http")));
            stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("a request");
            stream
        };
        (0..count).map(one).collect()
    }

    fn show(&self, name: &str) -> String {
        let mut stream = connect_unix(&self.folder.path(&format!("{name}.api")));
        stream.write_all(b"show store\n").expect("a command");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    fn wait(&self, name: &str, words: &str) {
        wait_until(words, || self.show(name).contains(words));
    }

    /// Executes a command of the store.
    fn command(&self, command: &str) -> String {
        let mut stream = connect_unix(&self.folder.path("redis"));
        stream.write_all(format!("{command}\r\n").as_bytes()).expect("a command");
        let mut answer = [0; 4096];
        let length = stream.read(&mut answer).expect("an answer");
        String::from_utf8_lossy(&answer[..length]).into_owned()
    }
}

#[test]
fn two_nodes_never_exceed_the_maxconn_of_a_server_and_use_all_of_it() {
    let Some(fleet) = Fleet::start() else { return };
    let mut one = fleet.node("one");
    fleet.wait("one", "slots fleet server app/s1 state LEASED maxconn 6 leased 6 used 0 waiting 0 nodes 1 lost closed");
    // One node alone uses all slots.
    let first = fleet.load("one", 40);
    fleet.wait("one", "leased 6 used 6 waiting 34");
    wait_until("all slots are used", || fleet.server.numbers().now == SLOTS);
    // A second one gets its half as requests end.
    let two = fleet.node("two");
    let second = fleet.load("two", 40);
    fleet.wait("two", "state LEASED maxconn 6 leased 0 used 0 waiting 40 nodes 2");
    fleet.wait("one", "leased 3 used 6 waiting 34 nodes 2");
    fleet.server.answer(8);
    fleet.wait("one", "leased 3 used 3");
    fleet.wait("two", "leased 3 used 3");
    // The store forgets its script, then everything.
    assert_eq!(fleet.command("SCRIPT FLUSH"), "+OK\r\n");
    fleet.server.answer(4);
    assert_eq!(fleet.command("FLUSHALL"), "+OK\r\n");
    fleet.server.answer(8);
    fleet.wait("two", "leased 3 used 3 waiting ");
    assert_eq!(fleet.server.numbers().most, SLOTS, "{}{}", fleet.show("one"), fleet.show("two"));
    // A node dies: its slots return.
    one.send(rustix::process::Signal::KILL);
    let _ = one.try_status();
    drop((one, first));
    fleet.wait("two", "leased 6 used 6");
    wait_until("all slots are used", || fleet.server.numbers().now == SLOTS);
    fleet.server.answer(5);
    assert_eq!(fleet.server.numbers().most, SLOTS);
    drop((two, second));
}

#[test]
fn a_node_that_stops_gives_its_slots_back() {
    let Some(fleet) = Fleet::start() else { return };
    let (one, two) = (fleet.node("one"), fleet.node("two"));
    fleet.wait("one", "leased 3 used 0 waiting 0 nodes 2");
    fleet.wait("two", "leased 3 used 0 waiting 0 nodes 2");
    let (_first, _second) = (fleet.load("one", 2), fleet.load("two", 40));
    fleet.wait("one", "leased 2 used 2 waiting 0");
    fleet.wait("two", "leased 4 used 4 waiting 36");
    one.send(rustix::process::Signal::USR1);
    fleet.server.answer(20);
    assert_eq!(one.finish().code(), Some(0));
    fleet.wait("two", "leased 6 used 6");
    assert_eq!(fleet.server.numbers().most, SLOTS);
    drop(two);
}
