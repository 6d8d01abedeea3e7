//! `sockpair@`: connections passed as descriptors, between Weir and a test, Weir and itself, Weir and HAProxy. Must
//! never depend on descriptor numbers.

use crate::support::{DEFAULTS, Folder, Running, WEIR, connect, exchange, exchange_on, free_port, get, weir};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sendmsg, socketpair,
};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

/// Creates a connected pair that a started program inherits.
fn pair() -> (OwnedFd, OwnedFd) {
    socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::empty(), None).expect("a pair")
}

/// Passes descriptors over a carrier.
fn pass(carrier: &OwnedFd, descriptors: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
    }
    assert_eq!(sendmsg(carrier, &[IoSlice::new(&[0])], &mut control, SendFlags::empty()), Ok(1));
}

/// Passes one end of a new connection, and returns the other one.
fn connect_over(carrier: &OwnedFd) -> UnixStream {
    let (own, other) = UnixStream::pair().expect("a pair");
    pass(carrier, &[other.as_fd()]);
    own.set_read_timeout(Some(crate::support::PATIENCE)).expect("a socket");
    own
}

fn origin(address: &str, name: &str) -> String {
    format!(
        "frontend {name}\n    bind {address}\n    http-request return status 200 content-type text/plain string {name}\n"
    )
}

fn through(port: u16, server: &str) -> String {
    format!("listen web\n    bind 127.0.0.1:{port}\n    server s1 {server}\n")
}

fn start(program: &Path, folder: &Folder, name: &str, sections: &str) -> Running {
    let file = folder.write(name, &format!("{DEFAULTS}{sections}"));
    Running::start(Command::new(program).args(["-db", "-f", &file]))
}

#[test]
fn a_test_connects_over_a_socket_that_was_inherited() {
    let folder = Folder::new();
    let (own, theirs) = pair();
    let (port, address) = (free_port(), format!("sockpair@{}", theirs.as_raw_fd()));
    let sections = format!("{}{}", origin(&address, "passed"), origin(&format!("127.0.0.1:{port}"), "plain"));
    let _running = start(Path::new(WEIR), &folder, "weir.cfg", &sections);
    drop(theirs);
    let mut kept = connect_over(&own);
    for _ in 0..3 {
        assert_eq!(exchange_on(&mut kept, &get("/")), (200, "passed".to_owned()));
    }
    // A descriptor that is not a connection is closed, and the next one served.
    let (one, other) = UnixStream::pair().expect("a pair");
    let file = std::fs::File::open("/dev/null").expect("there");
    let datagram = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    pass(&own, &[]);
    pass(&own, &[one.as_fd(), other.as_fd()]);
    pass(&own, &[file.as_fd()]);
    pass(&own, &[datagram.as_fd()]);
    let many: Vec<_> = (0..20).map(|_| connect_over(&own)).collect();
    for mut one in many {
        assert_eq!(exchange_on(&mut one, &get("/")), (200, "passed".to_owned()));
    }
    // The other end is closed: passed connections continue, and so does everything else.
    drop(own);
    assert_eq!(exchange_on(&mut kept, &get("/")).0, 200);
    assert_eq!(exchange(&mut connect(port), &get("/")), (200, "plain".to_owned()));
}

#[test]
fn a_server_is_connected_to_over_a_socket_that_was_inherited() {
    let folder = Folder::new();
    let (one, other) = pair();
    let port = free_port();
    let address = |of: &OwnedFd| format!("sockpair@{}", of.as_raw_fd());
    let sections = format!("{}{}", origin(&address(&one), "passed"), through(port, &address(&other)));
    let _running = start(Path::new(WEIR), &folder, "weir.cfg", &sections);
    drop((one, other));
    for _ in 0..3 {
        let mut client = connect(port);
        assert_eq!(exchange(&mut client, &get("/")), (200, "passed".to_owned()));
        assert_eq!(exchange(&mut client, &get("/")), (200, "passed".to_owned()));
    }
}

#[test]
fn haproxy_and_weir_pass_connections_to_each_other() {
    let haproxy = Path::new("/usr/sbin/haproxy");
    if !haproxy.exists() {
        eprintln!("skipped: there is no {}", haproxy.display());
        return;
    }
    for (front, back) in [(Path::new(WEIR), haproxy), (haproxy, Path::new(WEIR))] {
        let folder = Folder::new();
        let (one, other) = pair();
        let port = free_port();
        let _back = start(back, &folder, "back.cfg", &origin(&format!("sockpair@{}", one.as_raw_fd()), "passed"));
        let _front = start(front, &folder, "front.cfg", &through(port, &format!("sockpair@{}", other.as_raw_fd())));
        drop((one, other));
        let mut client = connect(port);
        for _ in 0..3 {
            assert_eq!(exchange(&mut client, &get("/")), (200, "passed".to_owned()), "{}", front.display());
        }
    }
}

#[test]
fn a_descriptor_has_one_owner_and_listeners_share_it() {
    let folder = Folder::new();
    let (_own, theirs) = pair();
    let number = theirs.as_raw_fd();
    let carrier = origin(&format!("sockpair@{number}"), "one");
    let relay = format!("log-forward relay\n    dgram-bind fd@{number}\n");
    let rows = [
        (format!("{carrier}{}", origin(&format!("sockpair@{number}"), "two")), 10, "bind"),
        (format!("{}{carrier}", origin(&format!("fd@{number}"), "two")), 10, "bind"),
        (format!("{carrier}{relay}"), 10, "bind"),
        (format!("{carrier}backend b\n    server s sockpair@{number}\n"), 10, "server"),
    ];
    for (sections, line, keyword) in rows {
        let file = folder.write("weir.cfg", &format!("{DEFAULTS}{sections}"));
        let said = format!(
            "config : parsing [{file}:{line}] : '{keyword}' : file descriptor '{number}' is that of the line at [{file}:7] already."
        );
        for mode in ["-c", "-db"] {
            let found = weir([mode, "-f", &file]);
            assert_eq!(found.code(), Some(1), "{}", found.stderr);
            assert!(found.stderr.contains(&said), "{mode}: {said}\n{}", found.stderr);
        }
    }
    // Nor do sockets of the runtime API and of peers.
    for (sections, line, first) in [
        (format!("global\n    stats socket fd@{number}\n{DEFAULTS}{carrier}"), 9, 2),
        (format!("peers p\n    bind fd@{number}\n    server s\n{DEFAULTS}{carrier}"), 2, 10),
        (format!("global\n    stats socket fd@{number}\n{DEFAULTS}{relay}"), 9, 2),
    ] {
        let file = folder.write("weir.cfg", &sections);
        let found = weir(["-c", "-L", "s", "-f", &file]);
        assert_eq!(found.code(), Some(1), "{}", found.stderr);
        let said = format!(
            "parsing [{file}:{line}] : 'bind' : file descriptor '{number}' is that of the line at [{file}:{first}] already."
        );
        assert!(found.stderr.contains(&said), "{said}\n{}", found.stderr);
    }
    // Several lines may listen on one socket, and each gets connections.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    rustix::io::fcntl_setfd(&listener, rustix::io::FdFlags::empty()).expect("own");
    let address = format!("fd@{}", listener.as_raw_fd());
    let sections = format!("{}{}", origin(&address, "one"), origin(&address, "two"));
    let running = start(Path::new(WEIR), &folder, "weir.cfg", &sections);
    drop(listener);
    for _ in 0..20 {
        let (status, body) = exchange(&mut connect(port), &get("/"));
        assert!(status == 200 && ["one", "two"].contains(&&*body), "{body}");
    }
    drop(running);
    // Several servers may pass connections over one.
    let servers = format!("backend b\n    server s sockpair@{number}\n    server t sockpair@{number}\n");
    let file = folder.write("weir.cfg", &format!("{DEFAULTS}{servers}"));
    let found = weir(["-c", "-f", &file]);
    assert_eq!(found.code(), Some(0), "{}", found.stderr);
}

#[test]
fn descriptors_that_carry_nothing_are_refused() {
    let folder = Folder::new();
    let rows = [
        ("sockpair@999", "cannot use file descriptor '999' : Bad file descriptor."),
        ("sockpair@x", "file descriptor 'x' is not a valid integer in 'sockpair@x'"),
        ("sockpair@0", "cannot use file descriptor '0'"),
    ];
    for (address, expected) in rows {
        let file = folder.write("weir.cfg", &format!("{DEFAULTS}{}", origin(address, "passed")));
        let found = weir(["-db", "-f", &file]);
        assert_eq!(found.code(), Some(1), "{}", found.stderr);
        assert!(found.stderr.contains(expected), "{}", found.stderr);
    }
    let server = folder.write("weir.cfg", &format!("{DEFAULTS}{}", through(1, "sockpair@999")));
    let found = weir(["-c", "-f", &server]);
    assert!(
        found.stderr.contains("'server web/s1' : cannot use file descriptor '999' : Bad file descriptor."),
        "{}",
        found.stderr
    );
    let other = folder.write("weir.cfg", &format!("global\n    stats socket sockpair@3\n{DEFAULTS}"));
    assert!(weir(["-c", "-f", &other]).stderr.contains("a file descriptor is not acceptable here in 'sockpair@3'"));
}
