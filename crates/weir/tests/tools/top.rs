//! `weir top` with a stats socket of Weir, and of HAProxy if installed: one table, and the view in a pseudo-terminal.

use crate::support::{Folder, Running, WEIR, connect_unix, exchange_on, free_port, get, wait_until};
use crate::terminal::Screen;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const HAPROXY: &str = "/usr/sbin/haproxy";

const CONFIGURATION: &str = "global
    stats socket [socket] level admin
defaults
    mode http
    timeout client 20s
    timeout server 20s
    timeout connect 20s
frontend www
    bind unix@[front]
    default_backend app
backend app
    server s1 unix@[front] weight 10
    server s2 unix@[front] weight 20 disabled
";

/// A backend with a server that works, one whose checks fail, one that has no checks; and a backend without a server
/// that works.
const OUTAGE: &str = "global
    stats socket [socket] level admin
defaults
    mode http
    timeout client 20s
    timeout server 20s
    timeout connect 20s
    timeout check 20s
frontend www
    bind unix@[front]
    http-request return status 200 if { path /ok }
    default_backend app
backend app
    option httpchk GET /ok
    server works unix@[front] check inter 100ms
    server fails 127.0.0.1:[closed] check inter 100ms fall 1
    server unchecked unix@[front]
backend lost
    server one 127.0.0.1:[closed] check inter 100ms fall 1
";

/// Starts a process and waits until its socket answers.
fn start(program: &str, configuration: &str, folder: &Folder) -> Running {
    let place = |name: &str| folder.path(name).display().to_string();
    let text = configuration.replace("[socket]", &place("stats")).replace("[front]", &place("front"));
    let text = text.replace("[closed]", &free_port().to_string());
    let file = folder.write("top.cfg", &text);
    let running = Running::start(Command::new(program).args(["-db", "-f", &file]));
    let answer = ask(folder, "show info");
    assert!(answer.contains("Pid: "), "{answer}");
    running
}

/// Sends a command to the stats socket.
fn ask(folder: &Folder, command: &str) -> String {
    let mut stream = connect_unix(&folder.path("stats"));
    let mut answer = String::new();
    stream.write_all(format!("{command}\n").as_bytes()).expect("sent");
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

fn top(words: &[&str]) -> Output {
    Command::new(WEIR).arg("top").args(words).stdin(Stdio::null()).output().expect("it runs")
}

fn judge(program: &str) {
    let folder = Folder::new();
    let _running = start(program, CONFIGURATION, &folder);
    let socket = folder.path("stats").display().to_string();
    let whole = top(&["--once", &socket]);
    let text = String::from_utf8(whole.stdout).expect("text");
    assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..4], ["NAME", "KIND", "STATUS", "WEIGHT"], "{text}");
    let found: Vec<&[&str]> = rows[1..].iter().map(|row| &row[..3]).collect();
    let wanted: [&[&str]; 4] = [
        &["app/s2", "server", "MAINT"],
        &["app", "backend", "UP"],
        &["www", "frontend", "OPEN"],
        &["app/s1", "server", "no"],
    ];
    assert_eq!(found, wanted, "{text}");
    let servers = top(&["--once", "--view", "servers", "--filter", "MAINT", &socket]);
    let text = String::from_utf8(servers.stdout).expect("text");
    assert_eq!(text.lines().count(), 2, "{text}");
    let row: Vec<&str> = text.lines().nth(1).unwrap_or_default().split_whitespace().take(4).collect();
    assert_eq!(row, ["app/s2", "server", "MAINT", "20"], "{text}");
}

/// The key that erases a letter.
const ERASE: &str = "\u{7f}";

/// The view of an outage, of either program: the states with their reasons, the details of a server, a change.
fn view(program: &str, folder: &Folder) -> Screen {
    let mut command = Command::new(WEIR);
    command.args(["top", "--interval", "0.1"]).arg(folder.path("stats")).env("TERM", "xterm-256color");
    command.env_remove("NO_COLOR");
    let mut screen = Screen::start(&mut command, 80, 24);
    // The last line is drawn last. A server is up without a reason once it has passed all checks that it needs.
    let is_whole =
        |text: &str| text.contains("2 servers ") && text.contains("up: fails L4CON") && text.contains("q end");
    let text = screen.until("the view", is_whole);
    let rows: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("NAME")).collect();
    assert!(rows[1].starts_with("lost ") && rows[1].contains(" DOWN "), "{program}:\n{text}");
    assert!(rows[1].contains("0 of 1 up: one L4CON"), "{program}:\n{text}");
    assert!(rows[2].starts_with("app ") && rows[2].contains("2 of 3 up: fails L4CON"), "{program}:\n{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{program}:\n{text}");
    assert!(text.contains(" DOWN: 1 proxy, 2 servers ") && text.contains(" 1 proxy degraded "), "{program}:\n{text}");
    assert_eq!(screen.colours_of("DOWN  "), (vt100::Color::Idx(15), vt100::Color::Idx(1)), "{program}");
    // The servers, and the details of the second that is down.
    screen.press("\t\u{1b}[H\r");
    let details = ["L4CON in ", "rise 2, fall 1", "in total"];
    screen.until("the details", |text| {
        text.contains(" server app/fails ") && details.iter().all(|part| text.contains(part))
    });
    screen.press("\u{1b}[B");
    screen.until("the next row", |text| text.contains(" server lost/one ") && text.contains("DOWN for "));
    // A filter finds reasons and states.
    screen.press("\r/no check\r");
    screen.until("the filter", |text| text.contains(" 1 server with 'no check' by status "));
    screen.press(&format!("/{}works\r", ERASE.repeat("no check".len())));
    screen.until("another filter", |text| text.contains(" 1 server with 'works' by status "));
    screen.press("d");
    screen.until("the question", |text| text.contains("Drain app/works?"));
    screen.press("y");
    screen.until("the drained server", |text| text.contains("DRAIN") && text.contains("no new sessions"));
    assert!(ask(folder, "show servers state app").contains(" works "));
    screen
}

/// Waits until the checks have found what is down.
fn outage(program: &str, folder: &Folder) -> Running {
    let running = start(program, OUTAGE, folder);
    wait_until("both servers are down", || ask(folder, "show stat").matches(",DOWN,").count() == 3);
    running
}

#[test]
fn the_view_of_weir_shows_an_outage() {
    let folder = Folder::new();
    let _running = outage(WEIR, &folder);
    let mut screen = view(WEIR, &folder);
    // Percentiles are measured after that was confirmed.
    screen.press(&format!("/{}\rv", ERASE.repeat("works".len())));
    screen.until("all rows", |text| text.contains(" rows by status "));
    assert!(ask(&folder, "show latency").starts_with("Latency is not measured"));
    screen.press("py");
    wait_until("it measures", || ask(&folder, "show latency").starts_with("# pxname,"));
    let (status, _) = exchange_on(&mut connect_unix(&folder.path("front")), &get("/ok"));
    assert_eq!(status, 200);
    screen.press("/www\r\r");
    screen
        .until("percentiles", |text| text.contains("p99 ") && !text.contains("p99 –") && !text.contains("no request"));
    let table = ask(&folder, "show latency www");
    let row: Vec<&str> = table.lines().nth(1).unwrap().split(',').collect();
    assert_eq!((row.len(), row[..3].join(",").as_str()), (8, "www,FRONTEND,0"), "{table}");
    let times: Vec<f64> = row[4..7].iter().map(|time| time.parse().unwrap()).collect();
    assert!(row[3].parse::<u64>().unwrap() > 0 && times.is_sorted(), "{table}");
    for (command, answer) in [
        ("show latency none", "No such proxy."),
        ("set profiling latency often", "Expects either 'on' or 'off'."),
        ("set profiling latency off", ""),
        ("show latency", "Latency is not measured: 'set profiling latency on' starts it."),
    ] {
        assert_eq!(ask(&folder, command).trim_end(), answer, "{command}");
    }
    screen.press("q");
    assert!(screen.finish().success());
}

#[test]
fn the_view_of_haproxy_shows_an_outage() {
    if !Path::new(HAPROXY).exists() {
        eprintln!("SKIPPED: {HAPROXY} is not installed");
        return;
    }
    let folder = Folder::new();
    let _running = outage(HAPROXY, &folder);
    let mut screen = view(HAPROXY, &folder);
    screen.press("\r");
    screen.until("no percentiles", |text| text.contains("p50 –   p95 –   p99 –"));
    screen.press("p");
    screen.until("the message", |text| text.contains("this process has no percentiles"));
    screen.press("q");
    assert!(screen.finish().success());
}

#[test]
fn no_color_is_respected_and_a_wide_terminal_is_used() {
    let folder = Folder::new();
    let _running = outage(WEIR, &folder);
    let mut command = Command::new(WEIR);
    command.arg("top").arg(folder.path("stats")).env("NO_COLOR", "1").env("TERM", "xterm-256color");
    let mut screen = Screen::start(&mut command, 200, 50);
    let text = screen.until("the view", |text| text.contains("lost") && text.contains("q end"));
    let titles = "NAME  KIND  STATUSv  SINCE   UP  WEIGHT  SESSIONS";
    assert!(text.contains(titles) && text.contains(" P50 ") && text.contains("  REASON"), "{text}");
    assert_eq!(screen.colours_of("DOWN  "), (vt100::Color::Default, vt100::Color::Default));
    screen.press("q");
    assert!(screen.finish().success());
}

#[test]
fn a_table_of_weir() {
    judge(WEIR);
}

#[test]
fn a_table_of_haproxy() {
    if !Path::new(HAPROXY).exists() {
        eprintln!("SKIPPED: {HAPROXY} is not installed");
        return;
    }
    judge(HAPROXY);
}

#[test]
fn what_cannot_be_shown_is_told() {
    let gone = top(&["--once", "/nowhere/at/all.sock"]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&gone.stderr).starts_with("weir top: /nowhere/at/all.sock: "));
    let misused = top(&["--sort", "beauty"]);
    assert_eq!(misused.status.code(), Some(2));
    // Without a terminal there is no view.
    assert_eq!(top(&["/nowhere/at/all.sock"]).status.code(), Some(1));
    let help = top(&["--help"]);
    assert!(help.status.success() && String::from_utf8_lossy(&help.stdout).contains("--once"));
}
