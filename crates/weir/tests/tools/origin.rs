//! `weir origin` from outside: every parameter with curl, the command line, signals, the daemon.

use crate::support::{self, Folder, Running, connect, exchange, get, line, wait_for_close};
use rustix::process::{Signal, kill_process};
use std::io::{Read, Write};
use std::process::Command;

/// An origin on a free port.
struct Origin {
    program: Running,
    port: u16,
}

impl Origin {
    fn start(options: &[&str]) -> Self {
        let mut program = Running::weir(&[&["origin", "-L", "127.0.0.1:0"], options].concat());
        let port = port_of(&program.wait_for_line(|line| line.starts_with("Listening on ")));
        Self { program, port }
    }

    /// Runs curl with these options and returns head and body; `None`: no curl.
    fn curl(&self, options: &[&str], target: &str) -> Option<Answer> {
        let url = format!("http://127.0.0.1:{}{target}", self.port);
        let mut command = Command::new("curl");
        command.args(["-s", "-i", "--max-time", "30", "--path-as-is"]).args(options).arg(url);
        if Command::new("curl").arg("--version").output().is_err() {
            eprintln!("SKIPPED: curl is not installed");
            return None;
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "curl {options:?} {target}: {}", output.status);
        let end = output.stdout.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        let head = String::from_utf8(output.stdout[..end].to_vec()).unwrap();
        Some(Answer { head, body: output.stdout[end..].to_vec() })
    }
}

fn port_of(line: &str) -> u16 {
    let port = line.trim_end().trim_end_matches('/').rsplit(':').next().unwrap();
    port.parse().unwrap_or_else(|_| panic!("{line}"))
}

struct Answer {
    head: String,
    body: Vec<u8>,
}

fn lines(length: usize) -> Vec<u8> {
    b".123456789.123456789.123456789.123456789.12345678\n".iter().copied().cycle().take(length).collect()
}

/// The head of a plain HTTP/1.1 response.
fn head(start: &str, size: usize) -> String {
    let code = start.split(' ').next().unwrap();
    format!(
        "HTTP/1.1 {start}\r\ncontent-length: {size}\r\nx-req: time=0 ms\r\n\
         x-rsp: id=dummy, code={code}, cache=1 size={size}, time=0 ms (0 real)\r\n\r\n"
    )
}

#[test]
fn sizes_and_statuses_are_as_asked_for() {
    let origin = Origin::start(&[]);
    for (target, start, size) in [
        ("/", "200 OK", 0),
        ("/?s=1", "200 OK", 1),
        ("/?s=20k", "200 OK", 20 << 10),
        ("/?s=3m&r=200", "200 OK", 3 << 20),
        ("/any/path?r=404&s=64", "404 Not Found", 64),
        ("/?r=500?s=10", "500 Internal Server Error", 10),
        ("/?s=10,r=302", "302 Found", 10),
        ("/?s=10;r=999", "999 Other", 10),
        ("/?s=0x10/r=201", "201 Created", 16),
    ] {
        let Some(answer) = origin.curl(&[], target) else { return };
        assert_eq!(answer.head, head(start, size), "{target}");
        assert!(answer.body == lines(size), "{target}");
    }
    let random = origin.curl(&[], "/?s=1000r").unwrap();
    assert!(random.body.len() < 1000 && random.body == lines(random.body.len()));
}

#[test]
fn answers_without_a_body_have_none() {
    let origin = Origin::start(&[]);
    let Some(head_request) = origin.curl(&["--head"], "/?s=100") else { return };
    assert_eq!(head_request.head, head("200 OK", 0));
    let no_content = origin.curl(&[], "/?s=100&r=204").unwrap();
    assert!(no_content.head.starts_with("HTTP/1.1 204 No Content\r\nx-req:"), "{}", no_content.head);
    let not_modified = origin.curl(&[], "/?s=100&r=304").unwrap();
    assert_eq!(not_modified.head, head("304 Not Modified", 100));
    assert!(head_request.body.is_empty() && no_content.body.is_empty() && not_modified.body.is_empty());
}

#[test]
fn caching_chunks_random_data_and_reports_are_switched() {
    let origin = Origin::start(&[]);
    let Some(uncached) = origin.curl(&[], "/?c=0&s=5") else { return };
    assert!(uncached.head.contains("\r\ncontent-length: 5\r\ncache-control: no-cache\r\nx-req"), "{}", uncached.head);
    assert!(uncached.head.contains("cache=0 size=5"), "{}", uncached.head);
    assert_eq!(origin.curl(&[], "/?c=1").unwrap().head, head("200 OK", 0));

    let raw = |target: &str| origin.curl(&["--raw"], target).unwrap();
    let chunked = raw("/?k=1&s=11");
    assert_eq!(
        chunked.head,
        "HTTP/1.1 200 OK\r\nx-req: time=0 ms\r\n\
         x-rsp: id=dummy, code=200, cache=1, chunked, size=11, time=0 ms (0 real)\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    assert_eq!(chunked.body, b"B\r\n.123456789.\r\n0\r\n\r\n");
    assert_eq!(raw("/?k=2&s=2").body, b"1\r\n1\r\n1\r\n1\r\n0\r\n\r\n");
    assert_eq!(raw("/?k=0&s=2").body, b".1");
    assert!(origin.curl(&[], "/?k=1&s=1m").unwrap().body == lines(1 << 20));
    assert!(origin.curl(&[], "/?k=2&s=100k").unwrap().body == b"1".repeat(100 << 10));
    assert_eq!(origin.curl(&["--http1.0"], "/?k=1&s=3").unwrap().body, b".12");

    let random = origin.curl(&[], "/?R=1&s=1m").unwrap();
    assert_eq!(random.body.len(), 1 << 20);
    let mut seen = [0_u32; 256];
    random.body.iter().for_each(|byte| seen[usize::from(*byte)] += 1);
    assert!(seen.iter().all(|count| (3000..5200).contains(count)), "{seen:?}");

    let quiet = origin.curl(&[], "/?v=0&s=3").unwrap();
    assert_eq!(quiet.head, "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n");
    let waited = origin.curl(&[], "/?t=120").unwrap();
    assert!(waited.head.contains(" size=0, time=120 ms (1"), "{}", waited.head);
}

#[test]
fn connections_are_kept_and_closed_as_asked_for() {
    let origin = Origin::start(&[]);
    for (options, target, fields) in [
        (&[][..], "/?s=2", "content-length: 2\r\n|"),
        (&[], "/?s=2&C=1", "|connection: close\r\n"),
        (&[], "/?s=2&K=0", "|connection: close\r\n"),
        (&[], "/?s=2&K=1", "content-length: 2\r\n|"),
        (&["-H", "Connection: close"], "/?s=2", "content-length: 2\r\n|connection: close\r\n"),
        (&["-H", "Connection: close"], "/?s=2&K=1", "content-length: 2\r\n|connection: close\r\n"),
        (&["--http1.0"], "/?s=2", "|"),
        (&["--http1.0"], "/?s=2&K=1", "content-length: 2\r\n|connection: keep-alive\r\n"),
        (&["--http1.0", "-H", "Connection: keep-alive"], "/?s=2", "content-length: 2\r\n|connection: keep-alive\r\n"),
    ] {
        let Some(answer) = origin.curl(options, target) else { return };
        let version = if options.contains(&"--http1.0") { "1.0" } else { "1.1" };
        let (before, behind) = fields.split_once('|').unwrap();
        let expected = format!(
            "HTTP/{version} 200 OK\r\n{before}x-req: time=0 ms\r\n\
             x-rsp: id=dummy, code=200, cache=1 size=2, time=0 ms (0 real)\r\n{behind}\r\n"
        );
        assert_eq!(answer.head, expected, "{options:?} {target}");
        assert_eq!(answer.body, b".1");
    }
    let url = format!("http://127.0.0.1:{}/?s=5", origin.port);
    let twice = Command::new("curl").args(["-s", "-w", "%{num_connects}\n", &url, &url]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&twice.stdout), ".12341\n.12340\n", "one connection for two requests");
}

#[test]
fn bodies_of_requests_are_drained() {
    let origin = Origin::start(&[]);
    let folder = Folder::new();
    let body = folder.write("body", &"x".repeat(3 << 20));
    let data = format!("@{body}");
    for (options, target) in [
        (&["--data-binary", &data][..], "/?s=5"),
        (&["--data-binary", &data], "/?s=5&A=1"),
        (&["--data-binary", &data, "-H", "Transfer-Encoding: chunked"], "/?s=5"),
        (&["--data-binary", &data, "-H", "Expect:"], "/?s=5"),
        (&["-X", "PUT", "--data-binary", "small"], "/?s=5"),
    ] {
        let Some(answer) = origin.curl(options, target) else { return };
        let (head, body) = match answer.head.starts_with("HTTP/1.1 100 Continue\r\n\r\n") {
            // After the first empty line there is another head.
            true => ("", String::from_utf8(answer.body).unwrap()),
            false => (answer.head.as_str(), String::from_utf8(answer.body).unwrap()),
        };
        let whole = format!("{head}{body}");
        assert!(whole.starts_with("HTTP/1.1 200 OK\r\n") && whole.ends_with("\r\n\r\n.1234"), "{options:?}: {whole}");
    }
}

#[test]
fn an_empty_list_of_parameters_gets_the_page_of_help() {
    let origin = Origin::start(&[]);
    let Some(help) = origin.curl(&[], "/?") else { return };
    let page = String::from_utf8(help.body).unwrap();
    assert!(page.starts_with("Weir's test origin - version 0"), "{page}");
    for parameter in ["s=<size>", "r=<", "t=<", "c=<", "A=<", "C=<", "K=<", "k=<", "R=<"] {
        assert!(page.contains(&format!(" - /?{parameter}")), "{parameter} in {page}");
    }
    assert!(help.head.contains("content-type: text/plain\r\n"), "{}", help.head);
}

#[test]
fn a_text_is_the_body_of_requests_without_parameters() {
    let origin = Origin::start(&["--text", "this is one"]);
    let line = b"this is one\n";
    for (target, body) in [
        ("/", &line[..]),
        ("/any/path", line),
        ("/?r=404", b""),
        ("/?s=0", b""),
        ("/?s=5", b"this "),
        ("/?s=30", b"this is one\nthis is one\nthis i"),
    ] {
        for options in [&[][..], &["--http2-prior-knowledge"]] {
            let Some(answer) = origin.curl(options, target) else { return };
            assert_eq!(answer.body, body, "{options:?} {target}");
        }
    }
    assert!(origin.curl(&[], "/?s=3m").unwrap().body == line.iter().copied().cycle().take(3 << 20).collect::<Vec<_>>());
    assert!(origin.curl(&[], "/?r=204").unwrap().body.is_empty());
    assert!(origin.curl(&["--head"], "/").unwrap().body.is_empty());
}

#[test]
fn a_body_larger_than_any_disk_begins_at_once_and_many_requests_may_be_sent_at_once() {
    let origin = Origin::start(&["--threads", "2"]);
    let mut stream = connect(origin.port);
    stream.write_all(get("/?s=1024g&v=0").as_bytes()).unwrap();
    let mut begin = vec![0; 4 << 20];
    stream.read_exact(&mut begin).unwrap();
    let expected = b"HTTP/1.1 200 OK\r\ncontent-length: 1099511627776\r\n\r\n";
    assert!(begin.starts_with(expected));
    assert!(begin[expected.len()..] == lines(begin.len() - expected.len()));

    let mut stream = connect(origin.port);
    stream.write_all(get("/?s=100&v=0").repeat(1000).as_bytes()).unwrap();
    let one = [&b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n"[..], &lines(100)].concat();
    let mut all = vec![0; one.len() * 1000];
    stream.read_exact(&mut all).unwrap();
    assert!(all == one.repeat(1000));
}

#[test]
fn a_signal_ends_it_and_a_soft_stop_waits_for_answers() {
    for signal in [Signal::INT, Signal::TERM] {
        let origin = Origin::start(&[]);
        let idle = connect(origin.port);
        origin.program.send(signal);
        let finished = origin.program.finish();
        assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""));
        wait_for_close(idle);
    }
    let origin = Origin::start(&[]);
    let mut busy = connect(origin.port);
    assert_eq!(exchange(&mut busy, &get("/?s=1")).0, 200);
    busy.write_all(get("/?s=5&t=300").as_bytes()).unwrap();
    // The request was read before the next connection is answered, or is available when the stop arrives.
    assert_eq!(exchange(&mut connect(origin.port), &get("/?s=1")).0, 200);
    origin.program.send(Signal::USR1);
    let mut rest = String::new();
    busy.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("connection: close\r\n") && rest.ends_with(".1234"), "{rest}");
    assert_eq!(origin.program.finish().code(), Some(0));
}

#[test]
fn a_daemon_returns_once_its_port_is_open_and_processes_share_a_port() {
    let folder = Folder::new();
    let file = folder.path("pid");
    let first = line(&format!("origin -D -L 127.0.0.1:0 --threads 1 -p {}", file.display()));
    assert_eq!((first.code(), first.stderr.as_str()), (Some(0), ""));
    let daemon = Daemon(std::fs::read_to_string(&file).unwrap().trim().parse().unwrap());
    let port = port_of(&first.stdout);
    let idle = connect(port);
    assert_eq!(exchange(&mut connect(port), &get("/?s=3")), (200, ".12".to_owned()));
    let mut second = Running::weir(&["origin", "-L", &format!("127.0.0.1:{port}"), "-n", "100"]);
    assert_eq!(port_of(&second.wait_for_line(|line| line.starts_with("Listening on "))), port);
    drop(daemon);
    wait_for_close(idle);
    assert_eq!(exchange(&mut connect(port), &get("/?s=4")), (200, ".123".to_owned()));
}

/// A background process, killed at the end of the test.
struct Daemon(u32);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = kill_process(support::pid(self.0), Signal::TERM);
    }
}

#[test]
fn command_lines_that_cannot_be_served_end_with_one_line() {
    for (arguments, status, message) in [
        ("origin", 2, "nowhere to listen: -L [ADDRESS:]PORT is missing"),
        ("origin -L 80:81:82", 2, "-L '80:81:82' is no [ADDRESS:]PORT"),
        ("origin --tls 80 --cert /nonexistent/c.pem", 1, "cannot read /nonexistent/c.pem: No such file"),
        ("origin -L 8080 -G x", 2, "option '-G' of haterm is not supported: "),
        ("origin -L 8080 --quic-bind-opts x", 2, "option '--quic-bind-opts' of haterm is not supported: "),
        ("origin -L 8080 --text", 2, "--text needs a value"),
        ("origin -L 8080 --nonsense", 2, "unknown option '--nonsense'"),
        ("origin -L 192.0.2.1:8080", 1, "cannot listen on 192.0.2.1:8080: "),
        ("origin -L 127.0.0.1:0 -p /nowhere/at/all", 1, "cannot write /nowhere/at/all: "),
    ] {
        let finished = line(arguments);
        assert_eq!(finished.code(), Some(status), "{arguments}: {}", finished.stderr);
        assert!(finished.stderr.starts_with(&format!("weir origin: {message}")), "{}", finished.stderr);
        assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    }
    let help = line("origin --help");
    assert_eq!(help.code(), Some(0));
    for option in ["-L ", "-D ", "-n ", "--threads "] {
        assert!(help.stdout.contains(&format!("\n  {option}")), "{option} in {}", help.stdout);
    }
}
