//! Moving to the background. A process with threads does not fork, so this test has no harness: it starts itself again
//! with a role, and examines the results of that process.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};

use weir_rt as rt;

use rt::process::{self, Fork};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("role") => play(&arguments[2]),
        // When asked to list its tests, it reports none that could be run alone.
        Some("--list") => {}
        _ => {
            daemons_tell_their_starters_how_it_went();
            children_are_reaped();
            println!("3 tests passed");
        }
    }
}

/// Runs the role that a test started this process for.
fn play(role: &str) {
    match role {
        "served" | "failed" | "silent" => {
            let session_before = session();
            let starter = process::daemonise().unwrap();
            print!("{}", if session() == session_before { "same session" } else { "own session" });
            std::io::stdout().flush().unwrap();
            match role {
                "served" => {
                    starter.detach_standard_streams().unwrap();
                    println!("nobody reads this");
                    starter.leave(0);
                }
                "failed" => starter.leave(3),
                _ => drop(starter),
            }
        }
        other => panic!("no role {other}"),
    }
}

/// Returns the session of this process, from /proc.
fn session() -> String {
    let line = std::fs::read_to_string("/proc/self/stat").unwrap();
    line.rsplit(')').next().unwrap().split(' ').nth(4).unwrap().to_owned()
}

fn start(role: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["role", role]).stdin(Stdio::null()).output().unwrap()
}

fn daemons_tell_their_starters_how_it_went() {
    for (role, status) in [("served", 0), ("failed", 3), ("silent", 1)] {
        // The output ends when the daemon has closed it, not only its starter.
        let output = start(role);
        assert_eq!(output.status.code(), Some(status), "{role}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "own session", "{role}");
    }
}

fn children_are_reaped() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    assert!(process::reap(None).unwrap().is_none());
    match process::fork().unwrap() {
        Fork::Child => {
            drop(writer);
            let mut byte = [0];
            let _ = reader.read(&mut byte);
            std::process::exit(7);
        }
        Fork::Parent(child) => {
            assert!(process::reap(Some(child)).unwrap().is_none(), "it waits for the pipe to end");
            drop(writer);
            assert_eq!(process::wait(child).unwrap().code(), Some(7));
            assert!(process::reap(None).unwrap().is_none());
        }
    }
}
