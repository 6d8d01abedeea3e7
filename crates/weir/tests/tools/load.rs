//! `weir load` from outside: its output, errors and exit. The other end is `weir origin`.

use crate::support::{Folder, PATIENCE, ProcessResult, Running, WEIR, free_port, line, pid, run};
use crate::terminal::terminal;
use rustix::process::{Signal, kill_process};
use std::fs::File;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc;

/// Runs an origin on a free port; returns its URL.
fn origin() -> (Running, String) {
    let mut program = Running::weir(&["origin", "-L", "127.0.0.1:0"]);
    let told = program.wait_for_line(|line| line.starts_with("Listening on "));
    let port = told.trim_end().trim_end_matches('/').rsplit(':').next().unwrap().to_owned();
    (program, format!("http://127.0.0.1:{port}"))
}

fn load(words: &[&str]) -> ProcessResult {
    run(Command::new(WEIR).arg("load").args(words))
}

/// Asserts that it exited with that status and one line.
fn refused(finished: &ProcessResult, status: i32, line: &str) {
    assert_eq!(
        (finished.code(), finished.stdout.as_str(), finished.stderr.lines().count()),
        (Some(status), "", 1),
        "{finished:?}"
    );
    assert!(finished.stderr.starts_with(&format!("weir load: {line}")), "{}", finished.stderr);
}

/// Returns the words of the last line that is not a comment.
fn last(text: &str) -> Vec<String> {
    let line = text.lines().rfind(|line| !line.starts_with('#')).unwrap();
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn columns_come_one_line_a_second_and_add_up() {
    let (_origin, url) = origin();
    let finished = load(&["-c", "4", "-n", "1000", "-S", &format!("{url}/?s=1k")]);
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    let heading = "#     time conns tot_conn  tot_req      tot_bytes    err  cps  rps  bps   ttfb 1xx 2xx 3xx 4xx 5xx";
    assert_eq!(finished.stdout.lines().next(), Some(heading));
    assert_eq!(finished.stdout.matches('#').count(), 1, "all went well: no comment behind the heading");
    let last = last(&finished.stdout);
    assert_eq!((last[1].as_str(), last[2].as_str(), last[3].as_str(), last[5].as_str()), ("0", "4", "1000", "0"));
    assert_eq!(last.len(), 15);
}

#[test]
fn requests_are_those_that_were_asked_for() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://127.0.0.1:{}/x?y", listener.local_addr().unwrap().port());
    let folder = Folder::new();
    let body = folder.write("body", "hello");
    let peer = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"hello") {
            let mut piece = [0; 4096];
            let count = stream.read(&mut piece).unwrap();
            assert!(count > 0, "{}", request.escape_ascii());
            request.extend_from_slice(&piece[..count]);
        }
        std::io::Write::write_all(&mut stream, b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").unwrap();
        String::from_utf8(request).unwrap()
    });
    let finished = load(&["-n", "1", "-r", "1", "-H", "Host: other", "-H", "x: 1", "-X", "PUT", "--body", &body, &url]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let request = peer.join().unwrap();
    let expected = "PUT /x?y HTTP/1.1\r\nHost: other\r\nx: 1\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
    assert_eq!(request, expected);
}

#[test]
fn programs_read_lines_of_json_and_csv() {
    let (_origin, url) = origin();
    let folder = Folder::new();
    let csv = folder.path("run.csv");
    let finished = load(&["-n", "100", "--json", &format!("--csv={}", csv.display()), "--reference", "100", &url]);
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    let lines: Vec<&str> = finished.stdout.lines().collect();
    assert!(lines.iter().all(|line| line.starts_with("{\"type\":\"") && line.ends_with('}')), "{}", finished.stdout);
    let end = lines.last().unwrap();
    assert!(end.starts_with("{\"type\":\"summary\"") && end.contains("\"answers\":100,"), "{end}");
    assert!(end.contains("\"statuses\":{\"200\":100}"), "{end}");
    let records = std::fs::read_to_string(csv).unwrap();
    let rows: Vec<&str> = records.lines().collect();
    assert!(rows[0].starts_with("type,at,length,") && rows[1].starts_with("second,"), "{records}");
    assert_eq!(rows.len(), lines.len() + 1, "a heading, and a record for each of the others");
}

#[test]
fn what_goes_wrong_is_told_apart_behind_the_columns() {
    let (_origin, url) = origin();
    let finished = load(&["-n", "20", "-P", &format!("{url}/?r=404")]);
    assert!(finished.stdout.contains("\n#pctl   tail   invtail   ttfbcnt ttfb(ms)   ttlbcnt ttlb(ms)\n"));
    assert!(
        finished.stdout.ends_with("\n# errors: connect 0, timeout 0, reset 0, protocol 0, status 20\n"),
        "{}",
        finished.stdout
    );
}

#[test]
fn a_summary_is_there_for_the_asking() {
    let (_origin, url) = origin();
    let finished = load(&["-n", "10", "-q", &url]);
    assert!(finished.stdout.lines().all(|line| line.starts_with("# ")), "{}", finished.stdout);
    assert!(finished.stdout.contains(": 10 answers ("), "{}", finished.stdout);
    let finished = load(&["-n", "10", "--json", "--summary", &url]);
    assert!(!finished.stdout.contains('#') && finished.stderr.contains(": 10 answers ("), "{finished:?}");
}

#[test]
fn bad_command_lines_end_with_one_line_and_status_2() {
    for (words, why) in [
        ("", "no URL was given"),
        ("--nonsense http://127.0.0.1/", "unknown option '--nonsense'"),
        ("http://127.0.0.1/ -c", "-c expects a value (CONNECTIONS)"),
        ("-c x http://127.0.0.1/", "-c expects a whole number from 1 to 1000000, not 'x'"),
        ("--tls-ver TLS1.1 https://127.0.0.1/", "--tls-ver expects TLS1.2 or TLS1.3, not 'TLS1.1'"),
        ("--tls-ver TLS1.3 http://127.0.0.1/", "--tls-ver is for https:// URLs"),
        ("--live http://127.0.0.1/", "--live needs a terminal, and standard output is none"),
        ("http://a\u{1b}[31m/", "'http://a\\u{1b}[31m/' is no URL that can be asked for: the byte '\\x1b' has to be"),
        ("http://127.0.0.1:99999/", "'http://127.0.0.1:99999/' is no URL that can be asked for"),
    ] {
        let finished = line(&format!("load {words}"));
        refused(&finished, 2, why);
        assert!(finished.stderr.ends_with("Run 'weir load --help' for the list of options.\n"), "{}", finished.stderr);
    }
}

#[test]
fn what_cannot_be_done_ends_with_one_line_and_status_1() {
    let closed = free_port();
    for (words, why) in [
        ("--body /nonexistent/body http://127.0.0.1/", "cannot read the body '/nonexistent/body': No such file"),
        ("--json=/nonexistent/run http://127.0.0.1/", "cannot write '/nonexistent/run': No such file"),
        ("http://name.invalid/", "http://name.invalid/: cannot resolve 'name.invalid': "),
    ] {
        refused(&line(&format!("load -n 1 {words}")), 1, why);
    }
    let finished = line(&format!("load -d 100ms -c 2 http://127.0.0.1:{closed}/"));
    assert_eq!((finished.code(), finished.stderr.lines().count()), (Some(1), 1), "{finished:?}");
    assert!(finished.stderr.contains("Connection refused"), "{}", finished.stderr);
    assert!(finished.stdout.contains("\n# errors: connect "), "{}", finished.stdout);
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = Command::new(WEIR).args(["load", "-n", "1", "http://127.0.0.1/"]).stdout(full).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.starts_with("weir load: cannot write to standard output: No space left"), "{told}");
}

#[test]
fn a_target_that_nobody_serves_is_given_up() {
    let finished = line(&format!("load -c 2 http://127.0.0.1:{}/", free_port()));
    assert_eq!((finished.code(), finished.stderr.lines().count()), (Some(1), 1), "{finished:?}");
    assert!(finished.stderr.contains("Connection refused"), "{}", finished.stderr);
    // A full backlog: the handshake is not answered.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let address = listener.local_addr().unwrap();
    let _waiting = TcpStream::connect(address).unwrap();
    let finished = line(&format!("load -c 2 -w 100ms http://{address}/"));
    assert_eq!((finished.code(), finished.stderr.lines().count()), (Some(1), 1), "{finished:?}");
    assert!(finished.stderr.contains("nothing came in time"), "{}", finished.stderr);
}

#[test]
fn the_reference_client_keeps_to_its_rate() {
    let (_origin, url) = origin();
    let finished = load(&["-d", "1", "--json", "--reference", "50,2", "-c", "2", &url]);
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    let end = finished.stdout.lines().last().unwrap();
    // Requests that were due but not answered are included: however slow the machine is, none is omitted. One is due at
    // the start and one at the end of each fiftieth of a second of the run.
    let asked = number(end, "reference_answers");
    let due = (decimal(end, "length") * 50.0) as u64 + 1;
    assert!((49..=due).contains(&asked), "{end}");
    assert_eq!(number(end, "unanswered"), 0, "{end}");
    assert!(number(end, "answers") > 0 && number(end, "status_2xx") == number(end, "answers"), "{end}");
}

/// While the origin is stopped, requests continue to be due. Both clients have the same rate; the one that waits for
/// responses has only as many slow ones as it has connections.
#[test]
fn a_stall_is_seen_at_a_constant_rate() {
    const RATE: u64 = 200;
    let (origin, url) = origin();
    let begin = |pace: &str| Running::weir(&["load", "--json", "-c", "4", pace, &RATE.to_string(), &url]);
    let mut clients = [begin("--constant"), begin("-R")];
    for client in &mut clients {
        client.wait_for_line(|line| number(line, "answers") > 0);
    }
    origin.send(Signal::STOP);
    for client in &mut clients {
        client.wait_for_line(|line| number(line, "answers") == 0);
    }
    origin.send(Signal::CONT);
    let [constant, patient] = clients.map(|mut client| {
        client.wait_for_line(|line| number(line, "answers") > 0);
        client.send(Signal::INT);
        let finished = client.finish();
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        slow(finished.stdout.lines().last().unwrap())
    });
    // A whole second passed without a response: requests due in its first half have waited for at least half a second.
    // Percentiles do not distinguish all of them.
    assert!(constant >= RATE / 4, "{constant} slow answers");
    assert!(patient < constant, "{patient} of {constant} slow answers");
}

/// Returns a count in a line of JSON.
fn number(line: &str, name: &str) -> u64 {
    let (_, rest) = line.split_once(&format!("\"{name}\":")).unwrap();
    rest.split([',', '}']).next().unwrap().parse().unwrap()
}

/// Returns a decimal number in a line of JSON.
fn decimal(line: &str, name: &str) -> f64 {
    let (_, rest) = line.split_once(&format!("\"{name}\":")).unwrap();
    rest.split([',', '}']).next().unwrap().parse().unwrap()
}

/// Returns the number of requests that took more than half a second, as far as the percentiles of a summary show.
fn slow(summary: &str) -> u64 {
    let (_, rest) = summary.split_once("\"last_byte\":[[").unwrap();
    let pairs = rest.split_once("]]").unwrap().0.split("],[").map(|pair| pair.split_once(',').unwrap());
    let mut pairs = pairs.map(|(rank, micros)| (rank.parse::<f64>().unwrap(), micros.parse::<f64>().unwrap()));
    let first = pairs.find(|(_, micros)| *micros >= 500_000.0).map_or(100.0, |(rank, _)| rank);
    let all = number(summary, "answers") + number(summary, "unanswered");
    ((100.0 - first) / 100.0 * all as f64) as u64
}

#[test]
fn a_reader_that_leaves_ends_the_run_without_a_word() {
    let (_origin, url) = origin();
    let mut command = Command::new(WEIR);
    command.args(["load", "-d", "60", &url]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut heading = [0; 1];
    // The pipe closes with its reader, after the first letter.
    child.stdout.take().unwrap().read_exact(&mut heading).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()), "{output:?}");
}

#[test]
fn an_interrupt_ends_a_run_in_order() {
    let (_origin, url) = origin();
    let mut program = Running::weir(&["load", "-P", &url]);
    program.wait_for_line(|line| line.starts_with("         1 "));
    program.send(Signal::INT);
    let finished = program.finish();
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    assert!(finished.stdout.contains("\n99.9999 0.0001 1000000 "), "{}", finished.stdout);
}

#[test]
fn the_live_view_gives_the_terminal_back_when_it_is_interrupted() {
    const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l";
    const LEAVE: &[u8] = b"\x1b[?25h\x1b[?1049l";
    let (_origin, url) = origin();
    let (mut master, terminal) = terminal(100, 30);
    let mut command = Command::new(WEIR);
    command.args(["load", "--live", "-c", "2", &format!("{url}/?s=1k")]).stdin(Stdio::null());
    let mut child = command.stdout(terminal.try_clone().unwrap()).stderr(terminal).spawn().unwrap();
    // The command holds the terminal's other side open as long as it runs.
    drop(command);
    let number = pid(child.id());
    let (done, wait) = mpsc::channel::<()>();
    let guard = std::thread::spawn(move || {
        if wait.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
            let _ = kill_process(number, Signal::KILL);
        }
    });
    let mut seen = Vec::new();
    let mut interrupted = false;
    let mut piece = [0; 4096];
    // A terminal whose other side is closed returns an error.
    while let Ok(count @ 1..) = master.read(&mut piece) {
        seen.extend_from_slice(&piece[..count]);
        if !interrupted && contains(&seen, b"answers/s") {
            kill_process(number, Signal::INT).unwrap();
            interrupted = true;
        }
    }
    let status = child.wait().unwrap();
    drop(done);
    guard.join().unwrap();
    let text = seen.escape_ascii().to_string();
    assert!(status.success(), "{status}: {text}");
    assert!(seen.starts_with(ENTER) && contains(&seen, "▇".as_bytes()) | contains(&seen, "█".as_bytes()), "{text}");
    let end = seen.windows(LEAVE.len()).rposition(|bytes| bytes == LEAVE).unwrap();
    assert!(!contains(&seen[end..], b"\x1b[?1049h"), "{text}");
    assert!(contains(&seen[end..], b" answers ("), "the summary follows: {text}");
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|bytes| bytes == part)
}

#[test]
fn the_page_of_the_project_names_every_option() {
    let page = include_str!("../../../../docs/load.md");
    for row in tools::load::options::OPTIONS {
        let written = [format!("`{}`", row.name), format!("`{} ", row.name), format!("`{}[", row.name)];
        assert!(written.iter().any(|text| page.contains(text)), "{}", row.name);
    }
    let help = line("load --help");
    assert_eq!((help.code(), help.stderr.as_str()), (Some(0), ""));
    assert!(help.stdout.starts_with("NAME\n    weir load - "));
}
