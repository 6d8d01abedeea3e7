//! Other programs in front: curl, nginx and HAProxy send the client's address in the PROXY protocol. Each is skipped
//! with a message if it is not installed.

use crate::support::{DEFAULTS, Folder, Running, connect, exchange, free_port, get, run};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;

/// Runs a server that answers each connection's first request with the client's address from the PROXY header.
fn mirror() -> u16 {
    let socket = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = socket.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for stream in socket.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                head.push(byte[0]);
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let told = head.lines().find_map(|line| line.strip_prefix("x-forwarded-for: ")).unwrap_or("nobody");
            let answer =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{told}", told.len());
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

/// Runs Weir with an address that expects a header; returns its port.
fn behind(folder: &Folder) -> (Running, u16) {
    let (port, server) = (free_port(), mirror());
    let text = format!(
        "{DEFAULTS}listen web\n    bind 127.0.0.1:{port} accept-proxy\n    option forwardfor\n    server s 127.0.0.1:{server}\n"
    );
    let file = folder.write("weir.cfg", &text);
    let running = Running::weir(&["-db", "-f", &file]);
    drop(connect(port));
    (running, port)
}

fn is_there(program: &str) -> bool {
    let there = Command::new(program).arg("-v").output().is_ok();
    if !there {
        eprintln!("skipped: {program} is not installed");
    }
    there
}

#[test]
fn curl_speaks_version_1() {
    if !is_there("curl") {
        return;
    }
    let folder = Folder::new();
    let (_weir, port) = behind(&folder);
    let url = format!("http://127.0.0.1:{port}/");
    let curl = |arguments: &[&str]| run(Command::new("curl").args(["-s", "-m", "100"]).args(arguments).arg(&url));
    assert_eq!(curl(&["--haproxy-protocol"]).stdout, "127.0.0.1");
    let told = curl(&["--haproxy-clientip", "192.0.2.7"]);
    // Only newer versions have the second option.
    assert!(told.stdout == "192.0.2.7" || told.code() == Some(2), "{told:?}");
    // Without a header there is no answer.
    assert_eq!(curl(&[]).code(), Some(52));
}

#[test]
fn nginx_speaks_version_1() {
    if !is_there("nginx") {
        return;
    }
    let folder = Folder::new();
    let (_weir, port) = behind(&folder);
    let front = free_port();
    let modules = "/usr/lib/nginx/modules/ngx_stream_module.so";
    let load = if std::path::Path::new(modules).exists() { format!("load_module {modules};\n") } else { String::new() };
    let text = format!(
        "{load}daemon off;\nmaster_process off;\npid {0}/nginx.pid;\nerror_log stderr;\nevents {{}}\n\
         stream {{ server {{ listen 127.0.0.1:{front}; proxy_pass 127.0.0.1:{port}; proxy_protocol on; }} }}\n",
        folder.text()
    );
    let file = folder.write("nginx.conf", &text);
    if run(Command::new("nginx").args(["-t", "-p", folder.text(), "-c", &file])).code() != Some(0) {
        eprintln!("skipped: this nginx has no stream module");
        return;
    }
    let _nginx = Running::start(Command::new("nginx").args(["-p", folder.text(), "-c", &file]));
    assert_eq!(exchange(&mut connect(front), &get("/")), (200, "127.0.0.1".to_owned()));
}

#[test]
fn haproxy_speaks_both_versions() {
    if !is_there("haproxy") {
        return;
    }
    let folder = Folder::new();
    let (_weir, port) = behind(&folder);
    for options in ["send-proxy", "send-proxy-v2", "send-proxy-v2 proxy-v2-options crc32c,unique-id"] {
        let front = free_port();
        let text = format!(
            "{DEFAULTS}frontend f\n    mode tcp\n    bind 127.0.0.1:{front}\n    unique-id-format %ci-%cp\n    \
             default_backend b\nbackend b\n    mode tcp\n    server s 127.0.0.1:{port} {options}\n"
        );
        let file = folder.write("haproxy.cfg", &text);
        let _haproxy = Running::start(Command::new("haproxy").args(["-db", "-f", &file]));
        assert_eq!(exchange(&mut connect(front), &get("/")), (200, "127.0.0.1".to_owned()), "{options}");
    }
}
