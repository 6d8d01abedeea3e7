//! `weir top --once` against what answers on a stats socket: Weir, and HAProxy where it is installed.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

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

/// A process that ends with the test, and its folder.
struct Subject {
    child: Child,
    folder: PathBuf,
}

impl Subject {
    fn start(program: &str) -> Self {
        let name = program.rsplit('/').next().unwrap_or("subject");
        let folder = std::env::temp_dir().join(format!("weir-top-{}-{name}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder of our own");
        let text = CONFIGURATION
            .replace("[socket]", &folder.join("stats").display().to_string())
            .replace("[front]", &folder.join("front").display().to_string());
        let file = folder.join("top.cfg");
        std::fs::write(&file, text).expect("written");
        let mut command = Command::new(program);
        command.arg("-db").arg("-f").arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let subject = Self { child: command.spawn().expect("it starts"), folder };
        subject.wait();
        subject
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("stats")
    }

    /// Until the socket answers.
    fn wait(&self) {
        let begun = Instant::now();
        while !answers(&self.socket()) {
            assert!(begun.elapsed() < Duration::from_secs(120), "nobody answers");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn answers(socket: &Path) -> bool {
    let Ok(mut stream) = UnixStream::connect(socket) else { return false };
    let mut answer = String::new();
    stream.write_all(b"show info\n").is_ok() && stream.read_to_string(&mut answer).is_ok() && answer.contains("Pid: ")
}

impl Drop for Subject {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn top(words: &[&str]) -> Output {
    Command::new(WEIR).arg("top").args(words).stdin(Stdio::null()).output().expect("it runs")
}

fn judge(program: &str) {
    let subject = Subject::start(program);
    let socket = subject.socket().display().to_string();
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
    assert!(text.lines().nth(1).is_some_and(|line| line.contains("MAINT      20")), "{text}");
}

#[test]
fn a_table_of_weir() {
    judge(WEIR);
}

#[test]
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
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
