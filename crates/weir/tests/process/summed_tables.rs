//! Tables that sum the values of peers, over real sockets: Weir with Weir, and as the center of a star of HAProxys, which
//! are skipped with a message if HAProxy is not installed.

use crate::peers::others;
use crate::support::{DEFAULTS, Folder, Running, WEIR, connect, exchange, free_port, get, wait_until};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;

/// An instance that counts requests by their path, and connections by their source.
struct Node {
    /// Ends the process when the node is dropped.
    running: Running,
    socket: PathBuf,
    port: u16,
}

fn configuration(socket: &std::path::Path, port: u16, peers: &[(&str, u16)], of_sums: &str) -> String {
    let mut text =
        format!("global\n    grace 1h\n    stats socket {} level admin\n{DEFAULTS}peers p\n", socket.display());
    for (name, port) in peers {
        text.push_str(&format!("    peer {name} 127.0.0.1:{port}\n"));
    }
    let stores = "expire 1h store gpc0,http_req_cnt,http_req_rate(1h),bytes_in_cnt";
    text.push_str(&format!(
        "    table t type string len 20 size 1k {stores},gpt0
    table t.agg type string len 20 size 1k {stores} {of_sums}
    table c type ip size 1k expire 1h store conn_cur,conn_cnt
    table c.agg type ip size 1k expire 1h store conn_cur {of_sums}
frontend f
    bind 127.0.0.1:{port}
    tcp-request connection track-sc1 src table p/c
    http-request track-sc0 path table p/t
    http-request track-sc2 path table arrays if {{ path_beg /array }}
    http-request sc-inc-gpc0(0)
    http-request sc-inc-gpc(1,2) if {{ path_beg /array }}
    http-request return status 200
backend arrays
    stick-table type string len 20 size 1k expire 1h store gpc(2),gpc_rate(2,1h) peers p
backend arrays.agg
    stick-table type string len 20 size 1k expire 1h store gpc(2) peers p {of_sums}
"
    ));
    text
}

impl Node {
    fn start(program: &str, folder: &Folder, name: &str, peers: &[(&str, u16)], of_sums: &str) -> Self {
        let (socket, port) = (folder.path(&format!("{name}.sock")), free_port());
        let file = folder.write(&format!("{name}.cfg"), &configuration(&socket, port, peers, of_sums));
        let running = Running::start(Command::new(program).args(["-L", name, "-f", &file]));
        drop(connect(port));
        Self { running, socket, port }
    }

    /// Starts a process that replaces this one, with a port and a socket of its own. This one leaves, and accepts connections for a
    /// long time.
    fn succeed(&self, folder: &Folder, name: &str, peers: &[(&str, u16)]) -> Self {
        let (socket, port) = (folder.path(&format!("{name}-2.sock")), free_port());
        let file = folder.write(&format!("{name}-2.cfg"), &configuration(&socket, port, peers, ""));
        let older = self.running.id().to_string();
        let running = Running::start(Command::new(WEIR).args(["-L", name, "-f", &file, "-sf", &older]));
        drop(connect(port));
        Self { running, socket, port }
    }

    fn ask(&self, line: &str) -> String {
        let mut answer = String::new();
        if let Ok(mut stream) = UnixStream::connect(&self.socket) {
            let _ = stream.write_all(format!("{line}\n").as_bytes());
            let _ = stream.read_to_string(&mut answer);
        }
        answer
    }

    fn request(&self, path: &str, times: usize) {
        for _ in 0..times {
            assert_eq!(exchange(&mut connect(self.port), &get(path)).0, 200);
        }
    }

    /// Returns a number of a table's only entry, or of that with a key.
    fn number(&self, table: &str, key: &str, data: &str) -> Option<u64> {
        let shown = self.ask(&format!("show table {table}"));
        let is_it = |line: &&str| line.starts_with("0x") && line.contains(&format!("key={key} "));
        let line = shown.lines().find(is_it)?;
        line.split(' ').find_map(|word| word.strip_prefix(data)?.strip_prefix('=')?.parse().ok())
    }

    /// The sums of a path: requests, the counter, the rate.
    fn sums(&self, path: &str) -> Option<[u64; 3]> {
        let number = |data| self.number("p/t.agg", path, data);
        Some([number("http_req_cnt")?, number("gpc0")?, number("http_req_rate(3600000)")?])
    }

    fn shows(&self, text: &str, times: usize) -> bool {
        self.ask("show peers").matches(text).count() == times
    }
}

/// Waits until all nodes have the same sums of a path.
fn agree(nodes: &[&Node], path: &str, total: u64) {
    wait_until("the sums are right everywhere", || nodes.iter().all(|node| node.sums(path) == Some([total; 3])));
}

#[test]
fn weirs_sum_what_each_has_counted() {
    let folder = Folder::new();
    let peers = [("one", free_port()), ("two", free_port()), ("three", free_port())];
    let one = Node::start(WEIR, &folder, "one", &peers, "");
    one.request("/a", 3);
    agree(&[&one], "/a", 3);
    let two = Node::start(WEIR, &folder, "two", &peers, "");
    let three = Node::start(WEIR, &folder, "three", &peers, "");
    two.request("/a", 4);
    three.request("/a", 5);
    two.request("/b", 2);
    two.request("/array", 3);
    one.request("/array", 2);
    agree(&[&one, &two, &three], "/a", 12);
    agree(&[&one, &two, &three], "/b", 2);
    assert_eq!([&one, &two, &three].map(|node| node.number("p/t", "/a", "http_req_cnt")), [Some(3), Some(4), Some(5)]);
    wait_until("arrays are summed", || {
        [&one, &two, &three].iter().all(|node| node.number("arrays.agg", "/array", "gpc1") == Some(5))
    });
    // Each node holds connections.
    let held: Vec<TcpStream> = [&one, &two, &two].iter().map(|node| connect(node.port)).collect();
    let current = |node: &Node| node.number("p/c.agg", "127.0.0.1", "conn_cur");
    wait_until("connections of all nodes are counted", || current(&three) == Some(3) && current(&one) == Some(3));
    drop(held);
    wait_until("closed ones are not", || current(&three) == Some(0) && current(&one) == Some(0));
    for command in ["clear table p/t.agg", "set table p/t.agg key /a data.gpc0 1"] {
        assert!(one.ask(command).contains("holds sums over peers"), "{command}");
    }
    wait_until("all values are known", || three.shows("values=KNOWN", 6));
    // A process that starts anew counts from zero, and its former values no longer count.
    drop(two);
    let two = Node::start(WEIR, &folder, "two", &peers, "");
    two.request("/a", 1);
    agree(&[&one, &two, &three], "/a", 9);
    wait_until("the former values are removed", || one.sums("/b") == Some([0; 3]));
}

#[test]
fn a_process_within_its_grace_leaves_the_sums_to_its_successor() {
    let folder = Folder::new();
    let peers = [("one", free_port()), ("two", free_port())];
    let one = Node::start(WEIR, &folder, "one", &peers, "");
    let older = Node::start(WEIR, &folder, "two", &peers, "");
    one.request("/a", 3);
    older.request("/a", 4);
    agree(&[&one, &older], "/a", 7);
    let newer = older.succeed(&folder, "two", &peers);
    agree(&[&one, &newer], "/a", 7);
    newer.request("/a", 5);
    agree(&[&one, &newer], "/a", 12);
    wait_until("all values are known", || one.shows("values=KNOWN", 3) && newer.shows("values=KNOWN", 3));
    // The older one still serves. It has no peers, connects to none, and sums its own values only.
    older.request("/b", 2);
    wait_until("own values are summed", || older.sums("/b") == Some([2; 3]));
    let shown = older.ask("show peers");
    assert!(shown.contains("(remote,inactive)"), "{shown}");
    assert!(!shown.contains("RUNNING") && one.sums("/b").is_none(), "{shown}");
}

#[test]
fn weir_sums_what_haproxys_have_counted_and_returns_the_sums() {
    for haproxy in others() {
        let folder = Folder::new();
        let (center, first, second) = (("center", free_port()), ("first", free_port()), ("second", free_port()));
        let weir = Node::start(WEIR, &folder, "center", &[center, first, second], "");
        let one = Node::start(&haproxy, &folder, "first", &[center, first], "");
        let two = Node::start(&haproxy, &folder, "second", &[center, second], "");
        weir.request("/a", 2);
        one.request("/a", 3);
        two.request("/a", 4);
        agree(&[&weir, &one, &two], "/a", 9);
        let own = [&weir, &one, &two].map(|node| node.number("p/t", "/a", "http_req_cnt"));
        assert_eq!(own, [Some(2), Some(3), Some(4)], "own values are not overwritten");
        let held = connect(one.port);
        wait_until("connections of HAProxy are counted", || weir.number("p/c.agg", "127.0.0.1", "conn_cur") == Some(1));
        drop(held);
        drop(two);
        let two = Node::start(&haproxy, &folder, "second", &[center, second], "");
        two.request("/a", 1);
        agree(&[&weir, &one, &two], "/a", 6);
        assert!([&weir, &one, &two].iter().all(|node| !node.ask("show peers").contains("proto_err=1")));
    }
}

#[test]
fn a_weir_receives_the_sums_of_another_one() {
    let folder = Folder::new();
    let (center, first, second) = (("center", free_port()), ("first", free_port()), ("second", free_port()));
    let weir = Node::start(WEIR, &folder, "center", &[center, first, second], "");
    let one = Node::start(WEIR, &folder, "first", &[center, first], "recv-only");
    let two = Node::start(WEIR, &folder, "second", &[center, second], "recv-only");
    one.request("/a", 3);
    two.request("/a", 4);
    agree(&[&weir, &one, &two], "/a", 7);
    assert_eq!([&weir, &one].map(|node| node.number("p/t", "/a", "gpc0")), [None, Some(3)]);
}
