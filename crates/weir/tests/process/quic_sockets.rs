//! The UDP sockets of QUIC addresses: one for each thread, passed from process to process, opened and closed by reloads in place.

use crate::reload::Service;
use crate::support::{DEFAULTS, Folder, Running, connect, exchange, free_port, get, line, wait_until};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};

const SITE: &str = include_str!("site.pem");

/// An address of the loopback network that no other test uses, with a port that is free there.
pub fn free_address() -> (Ipv4Addr, u16) {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    let number = (std::process::id() << 4) + COUNT.fetch_add(1, Ordering::Relaxed);
    let address = Ipv4Addr::from(0x7f00_0000 | (number & 0x00ff_ffff));
    let socket = UdpSocket::bind((address, 0)).expect("a port");
    (address, socket.local_addr().expect("bound").port())
}

/// The inodes of the UDP sockets that are bound to an address.
pub fn sockets(address: Ipv4Addr, port: u16) -> Vec<u64> {
    let local = format!("{:08X}:{port:04X}", u32::from_le_bytes(address.octets()));
    let table = std::fs::read_to_string("/proc/net/udp").expect("a table");
    let lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let bound = lines.filter(|words| words.get(1) == Some(&local.as_str()));
    let mut inodes: Vec<u64> = bound.filter_map(|words| words.get(9)?.parse().ok()).collect();
    inodes.sort_unstable();
    inodes
}

/// A frontend that listens by TCP, and with `binds` by QUIC.
fn frontend(folder: &Folder, port: &str, binds: &[&str]) -> String {
    let pem = folder.write("site.pem", SITE);
    let lines = binds.iter().map(|bind| format!("    bind {bind} ssl crt {pem}\n"));
    format!(
        "frontend web\n    mode http\n    bind 127.0.0.1:{port}\n{}    http-request return status 200\n",
        lines.collect::<String>()
    )
}

fn configuration(folder: &Folder, port: u16, global: &str, binds: &[&str]) -> String {
    let api = folder.path("api");
    let global = format!("global\n    nbthread 3\n    stats socket {} expose-fd listeners\n{global}", api.display());
    folder.write("quic.cfg", &format!("{global}{DEFAULTS}{}", frontend(folder, &port.to_string(), binds)))
}

#[test]
fn each_thread_has_a_socket_of_a_quic_address() {
    let folder = Folder::new();
    let (port, [all, one, alone]) = (free_port(), [free_address(), free_address(), free_address()]);
    let binds = [
        format!("quic4@{}:{}", all.0, all.1),
        format!("quic4@{}:{} thread 2", one.0, one.1),
        format!("{}:{},quic4@{}:{}", alone.0, alone.1, alone.0, alone.1),
    ];
    let file = configuration(&folder, port, "", &binds.each_ref().map(String::as_str));
    let weir = Running::weir(&["-db", "-f", &file]);
    assert_eq!(exchange(&mut connect(port), &get("/")).0, 200);
    let counts = [all, one, alone].map(|(address, port)| sockets(address, port).len());
    assert_eq!(counts, [3, 1, 3]);
    drop(weir);
    // Without SO_REUSEPORT there is one socket.
    let file = configuration(&folder, port, "    noreuseport\n", &[&binds[0]]);
    let _weir = Running::weir(&["-db", "-f", &file]);
    assert_eq!(exchange(&mut connect(port), &get("/")).0, 200);
    assert_eq!(sockets(all.0, all.1).len(), 1);
}

#[test]
fn a_quic_address_that_is_in_use_is_told() {
    let folder = Folder::new();
    let (address, port) = free_address();
    let _taken = UdpSocket::bind((address, port)).expect("a socket");
    let file = configuration(&folder, free_port(), "", &[&format!("quic4@{address}:{port}")]);
    let found = line(&format!("-db -f {file}"));
    let expected = format!(
        "Binding [{file}:12] for frontend web: protocol quic4: cannot bind socket (Address already in use) for [{address}:{port}]."
    );
    assert_eq!(found.code(), Some(1));
    assert!(found.stderr.contains(&expected), "{expected}\n{}", found.stderr);
}

#[test]
fn an_inherited_udp_socket_is_used() {
    let folder = Folder::new();
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let bound = socket.local_addr().expect("bound").port();
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::empty()).expect("own");
    let before = sockets(Ipv4Addr::LOCALHOST, bound);
    assert_eq!(before.len(), 1);
    let port = free_port();
    let file = configuration(&folder, port, "", &[&format!("quic+fd@{}", socket.as_raw_fd())]);
    let _weir = Running::weir(&["-db", "-f", &file]);
    assert_eq!(exchange(&mut connect(port), &get("/")).0, 200);
    drop(socket);
    assert_eq!(sockets(Ipv4Addr::LOCALHOST, bound), before);
}

#[test]
fn quic_sockets_are_passed_to_a_successor() {
    let folder = Folder::new();
    let (port, (address, quic)) = (free_port(), free_address());
    let file = configuration(&folder, port, "", &[&format!("quic4@{address}:{quic}")]);
    let old = Running::weir(&["-db", "-f", &file]);
    assert_eq!(exchange(&mut connect(port), &get("/")).0, 200);
    let before = sockets(address, quic);
    assert_eq!(before.len(), 3);
    let (api, id) = (folder.path("api"), old.id().to_string());
    let _new = Running::weir(&["-db", "-f", &file, "-x", api.to_str().expect("text"), "-sf", &id]);
    assert_eq!(old.finish().code(), Some(0));
    assert_eq!(exchange(&mut connect(port), &get("/")).0, 200);
    assert_eq!(sockets(address, quic), before);
}

#[test]
fn quic_addresses_come_and_go_in_place() {
    let folder = Folder::new();
    let (first, second) = (free_address(), free_address());
    let text = |(address, port): (Ipv4Addr, u16)| format!("quic4@{address}:{port}");
    let with = |folder: &Folder, binds: &[&str]| frontend(folder, "PORT", binds);
    let sections = with(&folder, &[&text(first)]);
    let service = Service::start_with("    nbthread 2\n", &sections, folder);
    let before = sockets(first.0, first.1);
    assert_eq!(before.len(), 2);
    let reload = |binds: &[&str]| {
        service.write("    nbthread 2\n", &with(&service.folder, binds));
        let answer = service.reload();
        assert!(answer.starts_with("Success=1\n") && answer.contains("Reloaded in place"), "{answer}");
    };
    reload(&[&text(first), &text(second)]);
    assert_eq!((sockets(first.0, first.1), sockets(second.0, second.1).len()), (before, 2));
    reload(&[&text(second)]);
    wait_until("the sockets are closed", || sockets(first.0, first.1).is_empty());
    assert_eq!(sockets(second.0, second.1).len(), 2);
}
