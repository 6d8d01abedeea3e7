//! QUIC that is passed through to servers: Weir and quic-go as clients and servers, whose ports change while they exchange data.

use crate::quic_client::Client;
use crate::quic_sockets::{free_address, sockets};
use crate::reload::Service;
use crate::support::{Folder, Running, run, wait_until};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Locations of Go, also outside of the path.
const GO: [&str; 3] = ["go", "/usr/local/go/bin/go", "/usr/lib/go/bin/go"];

type Address = (Ipv4Addr, u16);

fn certificate() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/process/site.pem").to_string_lossy().into_owned()
}

/// A section that passes connections with a name on to the second server, and the others to the first one.
fn section(at: Address, servers: [Address; 2], name: &str) -> String {
    let [a, b] = servers.map(|(address, port)| format!("{address}:{port}"));
    format!(
        "udp-lb quic\n    dgram-bind {}:{}\n    option quic-passthrough\n    balance first\n    timeout client 1m\n    \
         use-server b if {{ req.ssl_sni {name} }}\n    server a {a}\n    server b {b}\n",
        at.0, at.1
    )
}

/// A server whose answers are a name.
fn server(name: &str, at: Address) -> String {
    format!(
        "frontend {name}\n    mode http\n    timeout client 1m\n    bind quic4@{}:{} ssl crt {}\n    \
         http-request return status 200 content-type text/plain string {name}\n",
        at.0,
        at.1,
        certificate()
    )
}

const TCP: &str = "frontend web\n    mode http\n    timeout client 10s\n    bind 127.0.0.1:PORT\n    http-request return status 200\n";

/// The ports of clients change before, between and after reloads in place: each connection stays with its server, although other
/// threads receive its datagrams.
#[test]
fn connections_survive_new_ports_and_reloads() {
    let (at, servers) = (free_address(), [free_address(), free_address()]);
    let text = |name: &str| {
        let [a, b] = servers;
        format!("{TCP}{}{}{}", section(at, servers, name), server("a", a), server("b", b))
    };
    let global = "    nbthread 3\n";
    let service = Service::start_with(global, &text("a.example"), Folder::new());
    let mut clients: Vec<_> = (0..8).map(|_| Client::connect(at)).collect();
    for name in ["b.example", "a.example", "b.example"] {
        for client in &mut clients {
            assert_eq!(client.get("/"), "b");
            client.change_port();
            assert_eq!(client.get("/"), "b");
        }
        service.write(global, &text(name));
        let answer = service.reload();
        assert!(answer.starts_with("Success=1\n") && answer.contains("Reloaded in place"), "{answer}");
    }
    // Connections that begin now have the new rule.
    let mut other = Client::connect(at);
    assert_eq!(other.get("/"), "a");
    other.close();
    for mut client in clients {
        client.change_port();
        assert_eq!(client.get("/"), "b");
        client.close();
    }
}

/// Number of datagrams of a client before its port changes first: the handshake is complete then, also with repeated packets.
const HANDSHAKE: usize = 100;

/// Starts a relay in front of an address, whose outer port changes after so many datagrams of its client, once its handshake is
/// complete. Returns its port, and the number of changes.
fn relay(to: Address, each: usize) -> (u16, Arc<AtomicUsize>) {
    let inner = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a port"));
    let port = inner.local_addr().expect("bound").port();
    let client = Arc::new(Mutex::new(SocketAddr::from(to)));
    let changes = Arc::new(AtomicUsize::new(0));
    let open = {
        let (inner, client, changes) = (Arc::clone(&inner), Arc::clone(&client), Arc::clone(&changes));
        move || {
            let outer = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a port"));
            outer.connect(to).expect("an address");
            let (socket, inner, client, changes) =
                (Arc::clone(&outer), Arc::clone(&inner), Arc::clone(&client), Arc::clone(&changes));
            let own = changes.load(Ordering::SeqCst);
            // Runs until the test's process ends.
            std::thread::spawn(move || {
                let mut place = [0; 2_048];
                while let Ok(length) = socket.recv(&mut place) {
                    // A translation that has changed passes nothing on any longer.
                    if changes.load(Ordering::SeqCst) == own {
                        let to = *client.lock().expect("not poisoned");
                        let _ = inner.send_to(&place[..length], to);
                    }
                }
            });
            outer
        }
    };
    let result = (port, Arc::clone(&changes));
    std::thread::spawn(move || {
        let (mut place, mut outer) = ([0; 2_048], open());
        for count in 1.. {
            let Ok((length, from)) = inner.recv_from(&mut place) else { return };
            *client.lock().expect("not poisoned") = from;
            if count > HANDSHAKE && count % each == 0 {
                changes.fetch_add(1, Ordering::SeqCst);
                outer = open();
            }
            let _ = outer.send(&place[..length]);
        }
    });
    result
}

/// Builds the client and the server of `bench/quic_go`. `None`: not possible, which was printed.
fn build(folder: &Folder) -> Option<String> {
    let Some(go) = GO.iter().find(|go| Command::new(go).arg("version").output().is_ok()) else {
        eprintln!("skipped: go is not installed");
        return None;
    };
    let program = folder.path("quic-go").to_string_lossy().into_owned();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/quic_go");
    let mut command = Command::new(go);
    command.current_dir(source).env("GOTOOLCHAIN", "local").args(["build", "-buildvcs=false", "-o", &program, "."]);
    let built = run(&mut command);
    if built.code() != Some(0) {
        eprintln!("skipped: this Go cannot build quic-go: {}", built.stderr);
        return None;
    }
    Some(program)
}

/// A client of quic-go fetches a body from a server of quic-go, over a relay whose port changes. The client uses another connection
/// ID once its handshake is complete, which only its packets show.
#[test]
fn quic_go_survives_address_translation() {
    let folder = Folder::new();
    let Some(program) = build(&folder) else { return };
    let (at, servers) = (free_address(), [free_address(), free_address()]);
    let text = format!("global\n    nbthread 3\n{}", section(at, servers, "localhost"));
    let mut weir = Running::weir(&["-f", &folder.write("weir.cfg", &text)]);
    // Nothing listens at the address of the first server: only the name leads to the second one.
    let _server = Running::start(Command::new(&program).args([
        "serve",
        &format!("{}:{}", servers[1].0, servers[1].1),
        &certificate(),
    ]));
    for (address, port) in [at, servers[1]] {
        wait_until("the sockets are open", || !sockets(address, port).is_empty());
    }
    let (port, changes) = relay(at, 20);
    let size = 3_000_000;
    let url = format!("https://localhost:{port}/{size}");
    let found = run(Command::new(&program).args(["get", &url, folder.text()]));
    assert_eq!(found.code(), Some(0), "{}", found.stderr);
    let body = std::fs::read(folder.path(&size.to_string())).expect("a body");
    let expected: Vec<u8> = (0..65_536_usize).map(|at| (at * 131 + size) as u8).cycle().take(size).collect();
    assert!(body == expected, "{} bytes", body.len());
    assert!(changes.load(Ordering::SeqCst) > 1, "{changes:?}");
    assert!(weir.try_status().is_none());
}
