//! Listening in network namespaces, on foreign addresses, and without descriptors. The namespaces are created and
//! removed by the tests; without permission they are skipped with a message.

use crate::support::{DEFAULTS, Folder, Running, connect, exchange, free_port, get, run};
use std::io::Write;
use std::process::Command;

/// A namespace with a loopback device. Dropping it removes it.
struct Namespace(String);

impl Namespace {
    fn new(name: &str) -> Option<Self> {
        let made = Self(format!("weir-{name}-{}", std::process::id()));
        let added = match Command::new("ip").args(["netns", "add", &made.0]).output() {
            Ok(output) if output.status.success() => made,
            Ok(output) => {
                eprintln!("skipped: ip netns add: {}", String::from_utf8_lossy(&output.stderr).trim());
                return None;
            }
            Err(error) => {
                eprintln!("skipped: ip: {error}");
                return None;
            }
        };
        assert_eq!(run(Command::new("ip").args(["-n", &added.0, "link", "set", "lo", "up"])).code(), Some(0));
        Some(added)
    }

    /// Returns a command that runs inside.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0, program]);
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).output();
    }
}

/// The frontend and its client are in one namespace; the same port outside is closed.
#[test]
fn a_frontend_in_a_namespace_serves_that_network() {
    let Some(inside) = Namespace::new("front") else { return };
    let folder = Folder::new();
    let (port, outside) = (free_port(), free_port());
    let text = format!(
        "{DEFAULTS}frontend web\n    bind 127.0.0.1:{port} namespace {0}\n    bind 192.0.2.1:{port} namespace {0} transparent\n    \
         bind 127.0.0.1:{outside}\n    default_backend none\nbackend none\n",
        inside.0
    );
    let file = folder.write("weir.cfg", &text);
    let _weir = Running::weir(&["-db", "-f", &file]);
    assert_eq!(exchange(&mut connect(outside), &get("/")).0, 503);
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "nobody listens outside");
    if Command::new("curl").arg("-V").output().is_err() {
        eprintln!("skipped: curl is not installed");
        return;
    }
    let answer = run(inside.command("curl").args(["-s", "-m", "100", &format!("http://127.0.0.1:{port}/")]));
    assert!(answer.stdout.contains("503 Service Unavailable"), "{answer:?}");
}

/// A header of a balancer in front names the client's namespace, and `namespace *` sends the request there.
#[test]
fn a_request_goes_out_into_the_network_that_a_header_names() {
    let Some(inside) = Namespace::new("back") else { return };
    let folder = Folder::new();
    let (port, server) = (free_port(), free_port());
    // The server is another Weir. Its address outside answers once both are bound.
    let ready = free_port();
    let text = format!(
        "{DEFAULTS}frontend web\n    bind 127.0.0.1:{server} namespace {}\n    bind 127.0.0.1:{ready}\n    monitor-uri /alive\n",
        inside.0
    );
    let _server = Running::weir(&["-db", "-f", &folder.write("server.cfg", &text)]);
    drop(connect(ready));
    let text = format!(
        "namespace_list\n    namespace {}\n{DEFAULTS}    retries 0\nlisten web\n    bind 127.0.0.1:{port} accept-proxy\n    \
         server s 127.0.0.1:{server} namespace *\n",
        inside.0
    );
    let _weir = Running::weir(&["-db", "-f", &folder.write("weir.cfg", &text)]);
    let ask = |name: &str| {
        let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11".to_vec();
        header.extend((12 + 3 + name.len() as u16).to_be_bytes());
        header.extend([192, 0, 2, 7, 192, 0, 2, 8, 0x12, 0x67, 0, 80, 0x30]);
        header.extend((name.len() as u16).to_be_bytes());
        header.extend(name.as_bytes());
        let mut stream = connect(port);
        stream.write_all(&header).expect("sent");
        exchange(&mut stream, &get("/alive")).0
    };
    assert_eq!(ask(&inside.0), 200);
    // A namespace that is not listed is ignored: outside, the port is closed.
    assert_eq!(ask("elsewhere"), 503);
}

/// Without free descriptors new clients wait, and connected ones are served, until descriptors are available.
#[test]
fn a_process_without_descriptors_serves_whom_it_has() {
    let folder = Folder::new();
    let port = free_port();
    let text = format!(
        "global\n    no strict-limits\n    maxconn 200\n    nbthread 1\n    confine off\n{DEFAULTS}frontend web\n    bind 127.0.0.1:{port}\n"
    );
    let file = folder.write("weir.cfg", &text);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 40 && exec \"$0\" -db -f \"$1\"", env!("CARGO_BIN_EXE_weir"), &file]);
    let _weir = Running::start(&mut command);
    let mut kept = connect(port);
    assert_eq!(exchange(&mut kept, &get("/")).0, 503);
    let crowd: Vec<_> = (0..60).map(|_| connect(port)).collect();
    for _ in 0..20 {
        assert_eq!(exchange(&mut kept, &get("/")).0, 503);
    }
    drop(crowd);
    assert_eq!(exchange(&mut connect(port), &get("/")).0, 503);
    assert_eq!(exchange(&mut kept, &get("/")).0, 503);
}
