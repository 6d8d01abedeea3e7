//! Limits over several nodes, with a real server (section `store`). Without Redis they are skipped with a message.

use crate::services::program;
use crate::support::{Folder, Running, connect_unix, exchange_on, free_port, wait_until};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Command;

/// A Redis server on a UNIX socket.
struct Redis {
    program: String,
    folder: Folder,
    _server: Running,
}

impl Redis {
    /// Starts a server with further arguments; `None`: it is not installed.
    fn start(arguments: &[&str]) -> Option<Self> {
        let program = program("redis-server")?;
        let folder = Folder::new();
        let server = Self::run(&program, &folder, arguments);
        Some(Self { program, folder, _server: server })
    }

    fn run(program: &str, folder: &Folder, arguments: &[&str]) -> Running {
        let at = |name: &str| folder.path(name).display().to_string();
        let common = ["--port", "0", "--unixsocket", &at("redis"), "--save", "", "--dir", &at("")];
        let server = Running::start(Command::new(program).args(common).args(arguments));
        wait_until("Redis listens", || UnixStream::connect(folder.path("redis")).is_ok());
        server
    }

    /// Executes a command, and returns the first bytes of its answer.
    fn command(&self, command: &str) -> String {
        let mut stream = connect_unix(&self.folder.path("redis"));
        stream.write_all(format!("{command}\r\n").as_bytes()).expect("a command");
        let mut answer = [0; 4096];
        let length = stream.read(&mut answer).expect("an answer");
        String::from_utf8_lossy(&answer[..length]).into_owned()
    }

    /// Starts a node with lines of the section `store`.
    fn node(&self, name: &str, lines: &str) -> Running {
        self.node_of(name, &format!("unix@{}\n{lines}", self.folder.path("redis").display()))
    }

    /// The same with the address of the server, and its options.
    fn node_of(&self, name: &str, store: &str) -> Running {
        let at = |suffix: &str| self.folder.path(&format!("{name}{suffix}")).display().to_string();
        let config = self.folder.write(
            &format!("{name}.cfg"),
            &format!(
                "global\n stats socket {} level admin\nstore fleet\n server redis1 {store}\nfrontend f\n mode http\n \
                 timeout client 10s\n bind unix@{}\n http-request deny deny_status 429 if {{ path,exceeds(fleet/logins) }}\n \
                 http-request return status 200\n",
                at(".api"),
                at(".http"),
            ),
        );
        let node = Running::weir(&["-f", &config]);
        wait_until("the node serves", || UnixStream::connect(self.folder.path(&format!("{name}.http"))).is_ok());
        node
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

    /// Returns the status of a request.
    fn get(&self, name: &str, path: &str) -> u16 {
        let mut stream = connect_unix(&self.folder.path(&format!("{name}.http")));
        exchange_on(&mut stream, &format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")).0
    }

    /// Returns the number of requests that are admitted, of `count` at each of two nodes in turn.
    fn admitted(&self, path: &str, count: usize) -> usize {
        let statuses = (0..count).flat_map(|_| ["one", "two"].map(|name| self.get(name, path)));
        statuses.filter(|status| *status == 200).count()
    }
}

#[test]
fn two_nodes_enforce_one_limit() {
    let Some(redis) = Redis::start(&[]) else { return };
    let lines = "limit logins rate 100 period 1h";
    let _nodes = [redis.node("one", lines), redis.node("two", lines)];
    redis.wait("one", "state UP nodes 2");
    redis.wait("two", "state UP nodes 2");
    let admitted = redis.admitted("/a", 300);
    // What a node admits before the store has answered is bounded, and is subtracted later.
    assert!((100..=125).contains(&admitted), "{admitted}\n{}{}", redis.show("one"), redis.show("two"));
    wait_until("leases are given back", || redis.show("one").contains(" leased 0 "));
    // The key expires when its tokens are whole again: 36 s for each that a node has spent, the surplus included.
    let answer = redis.command("TTL weir:limit:logins:/a");
    let seconds: usize = answer.trim_start_matches(':').trim_end().parse().expect(&answer);
    assert!((3_000..=125 * 36).contains(&seconds), "{answer}{admitted}\n{}", redis.command("KEYS *"));
    // Both know by now, and so does a third.
    assert_eq!(redis.admitted("/a", 20), 0);
    // The server forgets the script: it is loaded again.
    assert_eq!(redis.command("SCRIPT FLUSH"), "+OK\r\n");
    let admitted = redis.admitted("/b", 300);
    assert!((100..=125).contains(&admitted), "{admitted}\n{}{}", redis.show("one"), redis.show("two"));
}

#[test]
fn users_databases_and_prefixes() {
    // The commands that docs/fleet.md names.
    let commands = "-@all +select +script|load +evalsha +time +get +set +del +zadd +zcard +zremrangebyscore +pexpire";
    let users = format!("--user weir on >secret ~edge:* resetchannels {commands} --user default off");
    let users: Vec<&str> = users.split(' ').collect();
    let Some(redis) = Redis::start(&users) else { return };
    let file = redis.folder.write("password", "secret\n");
    let wrong = redis.folder.write("wrong", "other\n");
    let lines = |file: &str| {
        format!("user weir\n password-file {file}\n database 3\n key-prefix edge:\n limit logins rate 5 period 1h")
    };
    let _node = redis.node("one", &lines(&file));
    redis.wait("one", "state UP nodes 1");
    let _other = redis.node("two", &lines(&wrong));
    redis.wait("two", "state LOST");
    redis.wait("two", "AUTH was answered with \\'WRONGPASS");
    // Locally, the limit holds on either.
    assert_eq!(redis.admitted("/a", 20), 10);
}

#[test]
fn a_lost_server_is_connected_again() {
    let Some(mut redis) = Redis::start(&[]) else { return };
    let mut node = redis.node("one", "limit logins rate 5 period 1h lost closed");
    redis.wait("one", "state UP");
    assert_eq!(redis.get("one", "/a"), 200);
    redis._server = Running::start(&mut Command::new("true"));
    redis.wait("one", "state LOST");
    assert_eq!(redis.get("one", "/b"), 429);
    redis._server = Redis::run(&redis.program, &redis.folder, &[]);
    redis.wait("one", "state UP");
    assert_eq!(redis.get("one", "/c"), 200);
    node.send(rustix::process::Signal::TERM);
    let _ = node.try_status();
    let told = node.finish().stderr;
    let count = |words: &str| told.matches(words).count();
    assert_eq!((count("Store fleet is LOST, server redis1: "), count("Store fleet is UP")), (1, 2), "{told}");
}

#[test]
fn tls_and_its_verification() {
    let site = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/process/site.pem");
    let other = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/process/other.pem");
    let port = free_port().to_string();
    let tls = ["--tls-port", &port, "--bind", "127.0.0.1", "--tls-auth-clients", "no"];
    let files = ["--tls-cert-file", site, "--tls-key-file", site, "--tls-ca-cert-file", site];
    let Some(redis) = Redis::start(&[&tls[..], &files].concat()) else { return };
    let limit = "\n limit logins rate 5 period 1h lost closed";
    let rows = [
        ("verified", format!("127.0.0.1:{port} ssl ca-file {site} verify required verifyhost example.com{limit}"), 200),
        ("unknown", format!("127.0.0.1:{port} ssl ca-file {other} verify required{limit}"), 429),
        ("plain", format!("127.0.0.1:{port}{limit}"), 429),
    ];
    for (name, store, status) in rows {
        let _node = redis.node_of(name, &store);
        redis.wait(name, if status == 200 { "state UP" } else { " fault \"" });
        assert_eq!(redis.get(name, "/a"), status, "{}", redis.show(name));
    }
}
