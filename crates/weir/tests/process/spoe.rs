//! An SPOE agent for requests over a socket, and messages about the configuration file of its engine.

use crate::support::{DEFAULTS, Folder, Running, connect_unix, exchange_on, wait_until, weir};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};

pub const ENGINE: &str = "[e]
spoe-agent waf
    messages request
    option var-prefix waf
    option set-on-error error
    timeout processing 60s
    use-backend agents
    log stdout format raw local0
spoe-message request
    args path=path
    event on-frontend-http-request
";

fn frame(stream: &mut UnixStream) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut frame).ok()?;
    Some(frame)
}

fn send(stream: &mut UnixStream, (kind, id): (u8, [u8; 2]), payload: &[u8]) {
    let length = u32::try_from(payload.len() + 7).expect("short").to_be_bytes();
    let whole = [&length[..], &[kind, 0, 0, 0, 1, id[0], id[1]], payload].concat();
    stream.write_all(&whole).expect("Weir reads");
}

/// Answers every message: the variable `verdict` is `deny` if the path says so. Forwards the received messages.
pub fn agent(listener: &UnixListener, told: &Sender<Vec<u8>>) {
    while let Ok((mut stream, _)) = listener.accept() {
        while let Some(frame) = frame(&mut stream) {
            match frame[0] {
                1 => {
                    let items =
                        b"\x07version\x08\x032.0\x0emax-frame-size\x03\xf0\x7f\x0ccapabilities\x08\x0apipelining";
                    send(&mut stream, (101, [0, 0]), items);
                }
                3 => {
                    let denies = frame.windows(4).any(|bytes| bytes == b"evil");
                    let verdict: &[u8] = if denies { b"deny" } else { b"pass" };
                    let action = [b"\x01\x03\x02\x07verdict\x08\x04", verdict].concat();
                    send(&mut stream, (103, [frame[5], frame[6]]), &action);
                }
                _ => {}
            }
            if told.send(frame).is_err() {
                return;
            }
        }
    }
}

fn configuration(folder: &Folder) -> String {
    let file = folder.write("engine.conf", ENGINE);
    let (socket, agents) = (folder.path("socket"), folder.path("agent"));
    let text = format!(
        "{DEFAULTS}frontend f\n bind {}\n filter spoe engine e config {file}\n http-request return status 403 \
         content-type text/plain string no if {{ var(txn.waf.verdict) -m str deny }}\n http-request return status 200 \
         content-type text/plain lf-string %[var(txn.waf.verdict)]%[var(txn.waf.error)]\nbackend agents\n mode spop\n server \
         a {}\n",
        socket.display(),
        agents.display()
    );
    folder.write("spoe.cfg", &text)
}

#[test]
fn an_agent_decides_about_requests() {
    let folder = Folder::new();
    let config = configuration(&folder);
    let listener = UnixListener::bind(folder.path("agent")).expect("own folder");
    let (sender, told): (Sender<Vec<u8>>, Receiver<Vec<u8>>) = channel();
    // Runs until the test's process ends.
    std::thread::spawn(move || agent(&listener, &sender));
    let mut running = Running::weir(&["-f", &config]);
    let mut stream = connect_unix(&folder.path("socket"));
    for (path, expected) in [("/good", (200, "pass")), ("/evil", (403, "no")), ("/good", (200, "pass"))] {
        let answer = exchange_on(&mut stream, &format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n"));
        assert_eq!(answer, (expected.0, expected.1.to_owned()), "{path}");
    }
    let hello = told.recv().expect("a greeting");
    assert!(hello.windows(9).any(|bytes| bytes == b"engine-id"));
    for path in ["/good", "/evil"] {
        let message = told.recv().expect("a message");
        let expected = [b"\x07request\x01\x04path\x08\x05", path.as_bytes()].concat();
        assert!(message.ends_with(&expected), "{message:?}");
    }
    let line = running.wait_for_line(|line| line.starts_with("SPOE: [waf] <EVENT:on-frontend-http-request> sid="));
    assert!(line.contains(" st=0 "), "{line}");
    drop(stream);
    // The idle connection to the agent does not keep the process running.
    running.send(Signal::USR1);
    assert_eq!(running.finish().code(), Some(0));
}

/// A missing UNIX socket refuses connections at once, and so do all retries: the event's timeout is not reached.
#[test]
fn a_missing_socket_of_an_agent_is_known_at_once() {
    let folder = Folder::new();
    let config = configuration(&folder);
    folder.write("engine.conf", &ENGINE.replace("processing 60s", "processing 2500ms"));
    let _running = Running::weir(&["-f", &config]);
    let mut stream = connect_unix(&folder.path("socket"));
    let answer = exchange_on(&mut stream, "GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    // 1: timeout. 257: I/O error.
    assert_eq!(answer, (200, "257".to_owned()));
}

#[test]
fn what_is_wrong_with_the_file_is_shown_where_it_is() {
    let folder = Folder::new();
    let config = configuration(&folder);
    let run = weir(["-c", "-f", &config]);
    assert_eq!(run.code(), Some(0), "{}", run.stderr);
    let rows = [
        ("args path=path", "args path=nope", "engine.conf:10] : 'args': unknown fetch method 'nope'.", "^^^^^^^^^"),
        ("messages request", "messages requests", "try to use undefined SPOE message 'requests'", "^^^^^^^^"),
        ("use-backend agents", "use-backend agent", "unknown backend 'agent' used by SPOE agent 'waf'", "^^^^^"),
        ("[e]", "[f]", "'filter' : No SPOE agent found in file ", "^^^^"),
        ("on-frontend-http-request", "on-request", "engine.conf:11] : unknown event 'on-request'.", "^^^^^^^^^^"),
    ];
    for (from, to, expected, carets) in rows {
        folder.write("engine.conf", &ENGINE.replace(from, to));
        let run = weir(["-c", "-f", &config]);
        assert!(run.code() == Some(1), "{to}: {}", run.stderr);
        assert!(run.stderr.contains(expected) && run.stderr.contains(carets), "{to}: {}", run.stderr);
    }
}

/// A page with the variables that the agent of `spop_agent` has set.
const TOLD: &str =
    "%[var(txn.waf.told)]|%[var(req.waf.status)]|%[var(sess.waf.known)]|%[var(proc.waf.last)]|%[var(txn.waf.stale)]";

#[test]
fn an_agent_of_another_author_decides_about_requests() {
    let folder = Folder::new();
    let program = folder.path("agent-program");
    let mut build = Command::new("go");
    build.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/process/spop_agent"));
    build.args(["build", "-buildvcs=false", "-mod=readonly", "-o"]).arg(&program).arg(".");
    if !build.output().is_ok_and(|built| built.status.success()) {
        eprintln!("SKIPPED: Go and haproxy-go are not there, and no agent of another author was asked");
        return;
    }
    let args = "path=path query=query method=method src=src port=dst_port tls=ssl_fc raw=req.hdr(x-raw),hex2i,neg \
                fields=req.hdrs,sha1,hex,lower nothing=req.hdr(x-none) body=req.body";
    let engine = ENGINE.replace("args path=path", &format!("args {args}"));
    let file = folder.write("engine.conf", &engine);
    let (socket, agents) = (folder.path("socket"), folder.path("agent"));
    let text = format!(
        "{DEFAULTS}frontend f\n bind {}\n option http-buffer-request\n tcp-request content set-var(txn.waf.stale) str(old)\n filter \
         spoe engine e config {file}\n http-request return status 403 content-type text/plain string no if {{ \
         var(txn.waf.action) -m str deny }}\n http-request return status 200 content-type text/plain lf-string \"{TOLD}\"\n\
         backend agents\n mode spop\n option spop-check\n server a {} check inter 10ms\n",
        socket.display(),
        agents.display()
    );
    let config = folder.write("spoe.cfg", &text);
    let _agent = Running::start(Command::new(&program).arg(&agents));
    wait_until("the agent listens", || agents.exists());
    let _weir = Running::weir(&["-f", &config]);
    let mut stream = connect_unix(&socket);
    let post = "POST /a?q=1 HTTP/1.1\r\nhost: a\r\nx-raw: 7f\r\ncontent-length: 4\r\n\r\n\0\u{1}\n\"";
    let (status, told) = exchange_on(&mut stream, post);
    let (fields, rest) = told.split_once(" nothing=").expect("what the agent was told");
    assert_eq!(status, 200, "{told}");
    assert!(fields.starts_with("request path=/a query=q=1 method=POST "), "{told}");
    assert!(fields.contains(" tls=false raw=-127 fields="), "{told}");
    assert_eq!(rest, "<nil> body=\"\\x00\\x01\\n\\\"\"|403|1|2001:db8::1|");
    let (status, body) = exchange_on(&mut stream, "GET /?f=/etc/passwd HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_eq!((status, body.as_str()), (403, "no"));
}
