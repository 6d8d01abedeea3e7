//! A process that runs out of descriptors while connecting to servers: it logs so, other connections continue, and it
//! recovers.

use crate::support::{DEFAULTS, Folder, Running, connect, free_port, pid};
use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// Sends a byte and waits for its echo; false if the connection ends instead.
fn echoes(stream: &mut TcpStream) -> bool {
    let mut byte = [0];
    stream.write_all(b"x").is_ok() && stream.read_exact(&mut byte).is_ok()
}

/// Runs an echo server.
fn echo_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut buffer = [0; 64];
                let mut stream = stream;
                while let Ok(read @ 1..) = stream.read(&mut buffer) {
                    if stream.write_all(&buffer[..read]).is_err() {
                        break;
                    }
                }
            });
        }
    });
    port
}

/// Returns the number of the next descriptor of a process.
fn next_descriptor(process: u32) -> u64 {
    let folder = std::fs::read_dir(format!("/proc/{process}/fd")).expect("the process lives");
    let used: Vec<u64> = folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    (0..).find(|number| !used.contains(number)).expect("one is free")
}

#[test]
fn without_descriptors_for_servers_others_live_and_it_recovers() {
    let folder = Folder::new();
    let (port, server) = (free_port(), echo_server());
    let file = folder.write(
        "echo.cfg",
        &format!(
            "global\n    log stdout format raw local0\n    nbthread 1\n    maxconn 20\n{DEFAULTS}    mode tcp\n    log global\n    \
             option tcplog\n    retries 1\nlisten l\n    bind 127.0.0.1:{port}\n    server s1 127.0.0.1:{server}\n"
        ),
    );
    let mut running = Running::weir(&["-db", "-f", &file]);
    let mut first = connect(port);
    assert!(echoes(&mut first));
    // One more descriptor, for the next client: none is left for its connection to the server.
    let process = Some(pid(running.id()));
    let before = getrlimit(Resource::Nofile);
    let few = Rlimit { current: Some(next_descriptor(running.id()) + 1), maximum: before.maximum };
    prlimit(process, Resource::Nofile, few).expect("a limit of a child");
    let mut second = connect(port);
    assert!(!echoes(&mut second));
    for _ in 0..2 {
        running.wait_for_line(|line| line.contains("Proxy l reached process FD limit"));
    }
    running.wait_for_line(|line| line.contains("l l/s1") && line.contains(" SC "));
    assert!(echoes(&mut first), "whoever was connected still is");
    prlimit(process, Resource::Nofile, before).expect("a limit of a child");
    assert!(echoes(&mut connect(port)), "and it recovers");
}
