//! Connections to servers in the client's namespace. The test creates a namespace and removes it; without permission it
//! reports so.

use crate::support::{DEFAULTS, Folder, Running, connect, free_port};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;

/// A namespace with a loopback device. Dropping it removes it.
struct TestNamespace(String);

impl TestNamespace {
    fn new() -> Option<TestNamespace> {
        let name = format!("weir-told-{}", std::process::id());
        let ip = |arguments: &[&str]| {
            Command::new("ip").args(arguments).output().is_ok_and(|output| output.status.success())
        };
        if !ip(&["netns", "add", &name]) {
            eprintln!("skipped: no namespace can be made here");
            return None;
        }
        let made = TestNamespace(name);
        ip(&["-n", &made.0, "link", "set", "lo", "up"]).then_some(made)
    }
}

impl Drop for TestNamespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).output();
    }
}

/// A PROXY header that names this namespace.
fn header(namespace: &str) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11".to_vec();
    header.extend((15 + namespace.len() as u16).to_be_bytes());
    header.extend(*b"\x7f\0\0\x01\x7f\0\0\x01\x12\x34\0\x50\x30");
    header.extend((namespace.len() as u16).to_be_bytes());
    header.extend(namespace.as_bytes());
    header
}

#[test]
fn a_server_is_reached_in_the_namespace_that_a_header_tells() {
    let Some(made) = TestNamespace::new() else { return };
    let inside = rt::net::Namespace::open(&made.0).expect("the namespace");
    let listen = || TcpListener::bind("127.0.0.1:0").expect("a port");
    let server = inside.run(listen).expect("entered");
    let (port, behind) = (free_port(), server.local_addr().expect("an address").port());
    let folder = Folder::new();
    let file = folder.write(
        "told.cfg",
        &format!(
            "namespace_list\n    namespace {}\n{DEFAULTS}    mode tcp\n    retries 0\nlisten l\n    bind 127.0.0.1:{port} accept-proxy\n    \
             server s1 127.0.0.1:{behind} namespace * send-proxy-v2\n",
            made.0
        ),
    );
    let _running = Running::weir(&["-db", "-f", &file]);
    let mut client = connect(port);
    client.write_all(&[&header(&made.0)[..], b"x"].concat()).expect("sent");
    let (mut stream, _) = server.accept().expect("a connection");
    let mut got = vec![0; header(&made.0).len() + 1];
    stream.read_exact(&mut got).expect("a header");
    assert_eq!(got, [&header(&made.0)[..], b"x"].concat());
    // A namespace that is not in the configuration is not entered, and no socket listens outside.
    let mut stranger = connect(port);
    stranger.write_all(&header("weir-unknown")).expect("sent");
    let mut rest = Vec::new();
    let _ = stranger.read_to_end(&mut rest);
    assert_eq!(rest, b"");
}
