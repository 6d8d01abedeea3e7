//! Expensive requests: the process continues to serve, whatever a client sends. Must never measure times.

use crate::support::{DEFAULTS, Folder, PATIENCE, Running, wait_until};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A regular expression with quadratic cost, in the text of an answer.
const RULE: &str = "http-request return status 200 content-type text/plain lf-string \
                    \"%[req.hdr(x-a),regsub('.*b|a',z,g),length]\"";

fn request(length: usize) -> String {
    format!("GET / HTTP/1.1\r\nHost: a\r\nX-A: {}\r\n\r\n", "a".repeat(length))
}

/// Connects once the process listens.
fn connect(path: &Path) -> UnixStream {
    wait_until("a connection", || UnixStream::connect(path).is_ok());
    let stream = UnixStream::connect(path).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Reads `count` answers with bodies, and returns their statuses.
fn statuses(stream: &mut UnixStream, count: usize) -> Vec<String> {
    let (mut input, mut found) = (Vec::new(), Vec::new());
    while found.len() < count {
        let text = String::from_utf8_lossy(&input).into_owned();
        let whole = text.split_once("\r\n\r\n").and_then(|(head, rest)| {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok())?;
            (rest.len() >= length).then(|| (head[9..12].to_owned(), head.len() + 4 + length))
        });
        if let Some((status, length)) = whole {
            found.push(status);
            input.drain(..length);
            continue;
        }
        let mut part = [0; 4096];
        let read = stream.read(&mut part).expect("an answer");
        assert!(read > 0, "closed after {found:?}");
        input.extend_from_slice(&part[..read]);
    }
    found
}

#[test]
fn pipelined_requests_that_cost_much_end_neither_the_process_nor_one_another() {
    const REQUESTS: usize = 20;
    let folder = Folder::new();
    let socket = folder.path("socket");
    let text = format!(
        "global\n nbthread 1\n tune.eval.max-time 20\n{DEFAULTS}frontend f\n bind {}\n {RULE}\n",
        socket.display()
    );
    let weir = Running::weir(&["-f", &folder.write("weir.cfg", &text)]);
    let (mut busy, mut quiet) = (connect(&socket), connect(&socket));
    let requests = request(12_000).repeat(REQUESTS);
    let mut writer = busy.try_clone().expect("a second handle");
    let sender = std::thread::spawn(move || writer.write_all(requests.as_bytes()));
    // Requests within the budget are answered, each of the others ends with an internal error.
    for status in statuses(&mut busy, REQUESTS) {
        assert!(matches!(status.as_str(), "200" | "500"), "{status}");
    }
    sender.join().expect("the sender").expect("all requests are taken");
    quiet.write_all(request(1).as_bytes()).expect("it serves on");
    assert_eq!(statuses(&mut quiet, 1), ["200"]);
    weir.send(rustix::process::Signal::USR1);
    drop((busy, quiet));
    let finished = weir.finish();
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert!(!finished.stderr.contains("kill the process"), "{}", finished.stderr);
}
