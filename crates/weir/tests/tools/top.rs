//! `weir top --once` with a stats socket of Weir, and of HAProxy if installed.

use crate::support::{Folder, Running, WEIR, connect_unix};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

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

/// Starts a process and waits until its socket answers.
fn start(program: &str, folder: &Folder) -> Running {
    let place = |name: &str| folder.path(name).display().to_string();
    let text = CONFIGURATION.replace("[socket]", &place("stats")).replace("[front]", &place("front"));
    let file = folder.write("top.cfg", &text);
    let running = Running::start(Command::new(program).args(["-db", "-f", &file]));
    let mut stream = connect_unix(&folder.path("stats"));
    let mut answer = String::new();
    stream.write_all(b"show info\n").expect("sent");
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.contains("Pid: "), "{answer}");
    running
}

fn top(words: &[&str]) -> Output {
    Command::new(WEIR).arg("top").args(words).stdin(Stdio::null()).output().expect("it runs")
}

fn judge(program: &str) {
    let folder = Folder::new();
    let _running = start(program, &folder);
    let socket = folder.path("stats").display().to_string();
    let whole = top(&["--once", &socket]);
    let text = String::from_utf8(whole.stdout).expect("text");
    assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..4], ["NAME", "KIND", "STATUS", "WEIGHT"], "{text}");
    let found: Vec<&[&str]> = rows[1..].iter().map(|row| &row[..3]).collect();
    let wanted: [&[&str]; 4] = [
        &["www", "frontend", "OPEN"],
        &["app/s1", "server", "no"],
        &["app/s2", "server", "MAINT"],
        &["app", "backend", "UP"],
    ];
    assert_eq!(found, wanted, "{text}");
    let servers = top(&["--once", "--view", "servers", "--filter", "MAINT", &socket]);
    let text = String::from_utf8(servers.stdout).expect("text");
    assert_eq!(text.lines().count(), 2, "{text}");
    let row: Vec<&str> = text.lines().nth(1).unwrap_or_default().split_whitespace().take(4).collect();
    assert_eq!(row, ["app/s2", "server", "MAINT", "20"], "{text}");
}

#[test]
fn a_table_of_weir() {
    judge(WEIR);
}

#[test]
fn a_table_of_haproxy() {
    const HAPROXY: &str = "/usr/sbin/haproxy";
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
