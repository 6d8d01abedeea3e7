//! Instances that share stick tables, over real sockets: Weir with HAProxy, in both directions, and with itself through
//! partitions, reloads and attacks. Skipped with a message if HAProxy is not installed.

use crate::counts::statistics;
use crate::support::{DEFAULTS, Folder, PATIENCE, Running, WEIR, connect, exchange, free_port, get, wait_until};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Returns the HAProxy programs; `HAPROXY` names others, separated by colons.
pub(crate) fn others() -> Vec<String> {
    let named = std::env::var("HAPROXY").unwrap_or_else(|_| "/usr/sbin/haproxy".to_owned());
    let (there, missing): (Vec<String>, Vec<String>) =
        named.split(':').map(str::to_owned).partition(|path| std::path::Path::new(path).exists());
    for path in missing {
        eprintln!("skipped: {path} is not installed");
    }
    there
}

/// The tables that nodes share, with every type of key.
const TABLES: [&str; 6] = ["p/number", "p/v4", "p/v6", "p/text", "p/block", "stuck"];

/// An instance.
struct Node {
    running: Running,
    socket: std::path::PathBuf,
    port: u16,
    file: String,
}

/// The configuration of a node. Every request is counted in a table, by its path: the first segment selects the table,
/// the second one is the key.
fn configuration(socket: &std::path::Path, port: u16, peers: &[(&str, u16)]) -> String {
    let mut text = format!("global\n    stats socket {} level admin\n{DEFAULTS}peers p\n", socket.display());
    for (name, port) in peers {
        text.push_str(&format!("    peer {name} 127.0.0.1:{port}\n"));
    }
    let origin = free_port();
    let stores = "store gpc0,gpt0,conn_cnt,http_req_cnt,http_req_rate(1h),http_err_cnt,bytes_in_cnt,bytes_out_rate(1h)";
    text.push_str(&format!(
        "    table number type integer size 1k expire 1h {stores}
    table v4 type ip size 1k expire 1h {stores}
    table v6 type ipv6 size 1k expire 1h store gpc(3),gpc_rate(3,1h),gpt(2)
    table text type string len 40 size 1k expire 1h {stores}
    table block type binary len 12 size 1k store gpc1,gpc1_rate(1h),sess_cnt
frontend f
    bind 127.0.0.1:{port}
    http-request track-sc0 path,field(3,/) table p/number if {{ path_beg /number/ }}
    http-request track-sc0 path,field(3,/) table p/v4 if {{ path_beg /v4/ }}
    http-request track-sc0 path,field(3,/) table p/v6 if {{ path_beg /v6/ }}
    http-request track-sc0 path,field(3,/) table p/text if {{ path_beg /text/ }}
    http-request track-sc0 path,field(3,/) table p/block if {{ path_beg /block/ }}
    http-request sc-inc-gpc0(0)
    http-request sc-inc-gpc1(0)
    http-request sc-inc-gpc(2,0) if {{ path_beg /v6/ }}
    http-request sc-set-gpt0(0) 77
    http-request sc-set-gpt(1,0) 78 if {{ path_beg /v6/ }}
    http-request return status 200 if ! {{ path_beg /stuck/ }}
    use_backend stuck if {{ path_beg /stuck/ }}
backend stuck
    stick-table type string len 20 size 1k expire 1h peers p
    stick on path,field(3,/)
    server first-of-all 127.0.0.1:{origin}
    server second-of-all 127.0.0.1:{origin}
frontend origin
    bind 127.0.0.1:{origin}
    http-request return status 200
"
    ));
    text
}

impl Node {
    fn start(program: &str, folder: &Folder, name: &str, peers: &[(&str, u16)], more: &[&str]) -> Self {
        let (socket, port) = (folder.path(&format!("{name}.sock")), free_port());
        let file = folder.write(&format!("{name}.cfg"), &configuration(&socket, port, peers));
        Self::again(program, name, socket, port, file, more)
    }

    /// Starts a process with an existing configuration.
    fn again(program: &str, name: &str, socket: std::path::PathBuf, port: u16, file: String, more: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(["-L", name, "-f", &file]).args(more);
        let running = Running::start(&mut command);
        drop(connect(port));
        Self { running, socket, port, file }
    }

    fn ask(&self, line: &str) -> String {
        let mut answer = String::new();
        if let Ok(mut stream) = UnixStream::connect(&self.socket) {
            let _ = stream.write_all(format!("{line}\n").as_bytes());
            let _ = stream.read_to_string(&mut answer);
        }
        answer
    }

    fn request(&self, path: &str) {
        assert_eq!(exchange(&mut connect(self.port), &get(path)).0, 200);
    }

    /// Sends requests that are counted in every table, under separate keys.
    fn fill(&self, number: u32) {
        for _ in 0..number {
            for table in ["number/{}", "v4/192.0.2.{}", "v6/2001:db8::{}", "text/key-{}", "block/abc{}", "stuck/s{}"] {
                self.request(&format!("/{}", table.replace("{}", &number.to_string())));
            }
        }
    }

    /// Returns the contents of a table, without values local to each instance.
    fn table(&self, name: &str) -> BTreeSet<String> {
        let own = ["use=", "exp=", "shard="];
        let entries = self.ask(&format!("show table {name}"));
        let entries = entries.lines().filter(|line| line.starts_with("0x"));
        entries
            .map(|line| {
                let words = line.split(' ').skip(1).filter(|word| !own.iter().any(|own| word.starts_with(own)));
                words.collect::<Vec<_>>().join(" ")
            })
            .collect()
    }

    fn everything(&self) -> Vec<BTreeSet<String>> {
        TABLES.iter().map(|name| self.table(name)).collect()
    }
}

/// Waits until nodes have the same contents, with that number of entries in each table.
fn agree(nodes: &[&Node], entries: usize) {
    let begun = Instant::now();
    loop {
        let all: Vec<_> = nodes.iter().map(|node| node.everything()).collect();
        if all[0].iter().all(|table| table.len() == entries) && all[1..].iter().all(|other| *other == all[0]) {
            return;
        }
        // Fails before the tests' processes are killed, so that the state is printed.
        assert!(begun.elapsed() < PATIENCE * 2 / 3, "{entries} entries everywhere: {all:#?}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until instances of Weir have been taught. Taught values may be older than updates received at the same time,
/// and the last received one wins: nothing that is compared later should change during that.
fn taught(nodes: &[&Node]) {
    wait_until("lessons are over", || {
        nodes.iter().all(|node| {
            let shown = node.ask("show peers");
            let mut sections = shown.lines().filter(|line| line.contains(" id=") && line.contains("resync_timeout="));
            sections.clone().count() > 0 && sections.all(|line| line.contains(" flags=0x1 "))
        })
    });
}

/// One is taught when it starts, then both send updates.
fn both_ways(first: &str, second: &str) {
    let folder = Folder::new();
    let peers = [("one", free_port()), ("two", free_port())];
    let one = Node::start(first, &folder, "one", &peers, &[]);
    one.fill(3);
    let two = Node::start(second, &folder, "two", &peers, &[]);
    agree(&[&one, &two], 1);
    for (program, node) in [(first, &one), (second, &two)] {
        if program == WEIR {
            taught(&[node]);
        }
    }
    two.fill(5);
    agree(&[&two, &one], 2);
    // An entry that both have is changed on the other side.
    one.fill(5);
    one.fill(4);
    agree(&[&one, &two], 3);
    let stuck = two.table("stuck");
    assert!(stuck.iter().all(|line| line.contains("server_id=") && line.contains("-of-all")), "{stuck:?}");
    let text = one.table("p/text");
    assert!(text.iter().any(|line| line.contains("key=key-3 ") && line.contains("http_req_cnt=3 ")), "{text:?}");
    let arrays = two.table("p/v6");
    assert!(arrays.iter().any(|line| line.contains("=78")), "{arrays:?}");
}

#[test]
fn haproxy_learns_from_weir_and_weir_from_haproxy() {
    for haproxy in others() {
        both_ways(WEIR, &haproxy);
        both_ways(&haproxy, WEIR);
    }
}

#[test]
fn weir_learns_from_weir() {
    both_ways(WEIR, WEIR);
}

/// Forwards connections to a port as long as it is open.
struct Bridge {
    port: u16,
    open: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Bridge {
    fn to(target: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let (open, streams) = (Arc::new(AtomicBool::new(true)), Arc::new(Mutex::new(Vec::new())));
        let (is_open, kept) = (Arc::clone(&open), Arc::clone(&streams));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Some(other) =
                    is_open.load(SeqCst).then(|| TcpStream::connect(("127.0.0.1", target)).ok()).flatten()
                else {
                    continue;
                };
                for (from, to) in [(&stream, &other), (&other, &stream)] {
                    let (mut from, mut to) = (from.try_clone().expect("a clone"), to.try_clone().expect("a clone"));
                    kept.lock().expect("whole").push(from.try_clone().expect("a clone"));
                    thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        Self { port, open, streams }
    }

    fn cut(&self) {
        self.open.store(false, SeqCst);
        for stream in self.streams.lock().expect("whole").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn heal(&self) {
        self.open.store(true, SeqCst);
    }
}

#[test]
fn three_nodes_agree_again_when_a_partition_has_healed() {
    let folder = Folder::new();
    let ports = [free_port(), free_port(), free_port()];
    // Bridges for connections to the third one, and from it to the others.
    let bridges = [Bridge::to(ports[2]), Bridge::to(ports[0]), Bridge::to(ports[1])];
    let seen = [("one", ports[0]), ("two", ports[1]), ("three", bridges[0].port)];
    let one = Node::start(WEIR, &folder, "one", &seen, &[]);
    let two = Node::start(WEIR, &folder, "two", &seen, &[]);
    let seen = [("one", bridges[1].port), ("two", bridges[2].port), ("three", ports[2])];
    let three = Node::start(WEIR, &folder, "three", &seen, &[]);
    taught(&[&one, &two, &three]);
    one.fill(1);
    three.fill(2);
    agree(&[&one, &two, &three], 2);
    bridges.iter().for_each(Bridge::cut);
    two.fill(3);
    three.fill(4);
    agree(&[&one, &two], 3);
    assert_ne!(three.everything(), one.everything());
    assert_eq!(three.table("p/text").len(), 3);
    bridges.iter().for_each(Bridge::heal);
    agree(&[&one, &two, &three], 4);
}

#[test]
fn a_successor_knows_what_the_process_before_it_knew() {
    for more in [&["-dR"][..], &[]] {
        let folder = Folder::new();
        let peers = [("one", free_port())];
        let one = Node::start(WEIR, &folder, "one", &peers, more);
        one.fill(2);
        one.fill(1);
        // Counters of the response are updated once its session has ended.
        wait_until("the end of all sessions", || statistics(&one.ask("show stat"), "f", "FRONTEND")["scur"] == "0");
        let before = one.everything();
        assert!(before.iter().all(|table| table.len() == 2), "{before:?}");
        let old = one.running.id().to_string();
        let again: Vec<&str> = [&["-sf", &old], more].concat();
        let Node { running, socket, port, file } = one;
        let next = Node::again(WEIR, "one", socket, port, file, &again);
        assert_eq!(running.finish().code(), Some(0));
        wait_until("what was known", || next.everything() == before);
    }
}

#[test]
fn a_reload_under_a_master_keeps_what_is_known() {
    let folder = Folder::new();
    let peers = [("one", free_port()), ("two", free_port())];
    let one = Node::start(WEIR, &folder, "one", &peers, &["-W"]);
    let two = Node::start(WEIR, &folder, "two", &peers, &[]);
    one.fill(2);
    agree(&[&one, &two], 1);
    let shown = one.ask("show info");
    let before = shown.lines().find_map(|line| line.strip_prefix("Pid: ")).expect("a process");
    one.running.send(Signal::USR2);
    // It runs until it has taught its successor.
    let program = format!("/proc/{before}/exe");
    wait_until("the end of the worker", || std::fs::read_link(&program).is_err());
    agree(&[&one, &two], 1);
    taught(&[&one, &two]);
    one.fill(3);
    two.fill(4);
    agree(&[&one, &two], 3);
}

/// Sends bytes to a port, and reads until the peer closes.
fn say(port: u16, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(port);
    let _ = stream.write_all(bytes);
    let mut heard = Vec::new();
    let _ = stream.read_to_end(&mut heard);
    heard
}

#[test]
fn nonsense_crowds_and_the_slow_do_not_keep_peers_apart() {
    let folder = Folder::new();
    let peers = [("one", free_port()), ("two", free_port())];
    let one = Node::start(WEIR, &folder, "one", &peers, &[]);
    let port = peers[0].1;
    for (bytes, answer) in [
        (&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], &b"501\n"[..]),
        (b"HAProxyS 9.0\none\ntwo 1 1\n", b"502\n"),
        (b"HAProxyS 2.1\nnobody\ntwo 1 1\n", b"503\n"),
        (b"HAProxyS 2.1\none\nnobody 1 1\n", b"504\n"),
        (&[b'x'; 5_000], b"501\n"),
    ] {
        assert_eq!(say(port, bytes), answer);
    }
    // A peer with valid names that sends endless lengths or invalid messages receives an error.
    for (bytes, last) in [
        (&[10, 128, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f][..], &[1, 1][..]),
        (&[10, 130, 3, 1, 200, 0], &[1, 0]),
        (&[99, 99, 99, 99], &[1, 0]),
    ] {
        let heard = say(port, &[b"HAProxyS 2.1\none\ntwo 1 1\n", bytes].concat());
        assert!(heard.starts_with(b"200\n") && heard.ends_with(last), "{heard:?}");
    }
    // Slow connections that never identify themselves.
    let slow: Vec<TcpStream> = (0..400)
        .map(|_| {
            let mut stream = connect(port);
            let _ = stream.write_all(b"HAProxyS 2.1\none");
            stream
        })
        .collect();
    one.fill(1);
    let two = Node::start(WEIR, &folder, "two", &peers, &[]);
    agree(&[&one, &two], 1);
    taught(&[&one, &two]);
    let crowd = thread::spawn(move || {
        for _ in 0..2_000 {
            drop(TcpStream::connect(("127.0.0.1", port)));
        }
    });
    two.fill(2);
    agree(&[&one, &two], 2);
    crowd.join().expect("done");
    drop(slow);
    one.running.send(Signal::USR1);
    assert_eq!(one.running.finish().code(), Some(0));
}
