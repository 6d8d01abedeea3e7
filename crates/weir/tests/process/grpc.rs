//! gRPC through Weir: calls of Go's library to a server with Go's library, and Weir's own features for gRPC. Skipped
//! with a message if Go or its modules are missing.

use crate::support::{Folder, Running, connect, free_port, run};
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;

/// Locations of Go, also outside of the path.
const GO: [&str; 3] = ["go", "/usr/local/go/bin/go", "/usr/lib/go/bin/go"];

/// Builds the client and the server. `None`: Go or its modules are missing, which was printed.
fn build(folder: &Folder) -> Option<String> {
    let Some(go) = GO.iter().find(|go| Command::new(go).arg("version").output().is_ok()) else {
        eprintln!("skipped: go is not installed");
        return None;
    };
    let program = folder.path("grpctest").to_string_lossy().into_owned();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/process/grpc");
    let built = run(Command::new(go).current_dir(source).env("GOFLAGS", "-mod=mod").args([
        "build",
        "-buildvcs=false",
        "-o",
        &program,
        ".",
    ]));
    if built.code() != Some(0) {
        eprintln!("skipped: the modules of Go's gRPC cannot be built: {}", built.stderr);
        return None;
    }
    Some(program)
}

struct Site {
    folder: Folder,
    program: String,
    _server: Running,
    weir: Running,
    /// Without and with TLS.
    ports: [u16; 2],
}

/// Runs Weir in front of a gRPC server.
fn site() -> Option<Site> {
    let folder = Folder::new();
    let program = build(&folder)?;
    let mut server = Running::start(Command::new(&program).arg("server"));
    let line = server.wait_for_line(|line| line.starts_with("listening "));
    let origin = &line["listening ".len()..].trim();
    let ports = [free_port(), free_port()];
    let certificate = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/process/site.pem");
    let text = format!(
        "global\n tune.h2.be.max-concurrent-streams 20\ndefaults\n mode http\n timeout connect 20s\n timeout client 60s\n \
         timeout server 60s\n timeout check 60s\n log stdout format raw daemon\n log-format \"call %fp %HPO %ST %[grpc_status] %[grpc_message] %tsc\"\n\
         listen calls\n bind 127.0.0.1:{}\n bind 127.0.0.1:{} ssl crt {}\n filter grpc-web\n \
         option grpc-check service test.Calls\n server s 127.0.0.1:{origin} proto h2 check inter 1s fall 1 rise 1\n",
        ports[0],
        ports[1],
        certificate.display()
    );
    let file = folder.write("weir.cfg", &text);
    let weir = Running::weir(&["-db", "-f", &file]);
    drop(connect(ports[0]));
    Some(Site { folder, program, _server: server, weir, ports })
}

impl Site {
    /// Runs the client; its arguments are unary calls, or none for calls of every type.
    fn call(&self, port: u16, words: &[&str]) -> String {
        let by = if port == self.ports[1] { "tls" } else { "clear" };
        let target = format!("127.0.0.1:{port}");
        let done = run(Command::new(&self.program).args(["client", &target, by]).args(words));
        assert_eq!(done.code(), Some(0), "{}{}", done.stdout, done.stderr);
        done.stdout
    }

    /// Returns the next log line of a call of that method at that port.
    fn logged(&mut self, port: u16, method: &str) -> String {
        let begin = format!("call {port} /test.Calls/{method} ");
        let line = self.weir.wait_for_line(|line| line.starts_with(&begin));
        line[begin.len()..].trim().to_owned()
    }
}

#[test]
fn calls_of_every_kind_pass() {
    let Some(mut site) = site() else { return };
    assert!(site.folder.path("grpctest").exists());
    for port in site.ports {
        let done = site.call(port, &[]);
        let kinds = ["unary", "status", "chat", "collect", "cancel", "deadline", "many", "watch"];
        assert_eq!(done.lines().collect::<Vec<_>>(), kinds.map(|kind| format!("ok {kind}")));
        // Its first calls were answered, then one failed, and one had an unknown method.
        for expected in ["200 0 - ----", "200 0 - ----", "200 0 - ----", "200 0 - ----"] {
            assert_eq!(site.logged(port, "Unary"), expected);
        }
        assert_eq!(site.logged(port, "Unary"), "200 5 no such: thing ----");
        assert!(site.logged(port, "Nothing").starts_with("200 12 "));
        assert_eq!(site.logged(port, "Chat"), "200 0 - ----");
        assert_eq!(site.logged(port, "Collect"), "200 0 - ----");
        // The client has disconnected.
        assert!(site.logged(port, "Pour").starts_with("200 - - C"));
    }
}

#[test]
fn a_server_that_says_that_it_is_ill_gets_no_calls() {
    let Some(mut site) = site() else { return };
    site.call(site.ports[0], &["ill"]);
    let line = site.weir.wait_for_line(|line| line.contains("Server calls/s is DOWN"));
    let reason = "reason: Layer7 wrong status, code: 0, info: \"NOT_SERVING\"";
    assert!(line.contains(reason), "{line}");
}

/// A gRPC-Web call as from a browser: HTTP/1, Base64.
#[test]
fn browsers_reach_servers_of_grpc() {
    let Some(mut site) = site() else { return };
    let port = site.ports[0];
    let mut client = connect(port);
    // The message has a bytes field: "hello".
    let call = "POST /test.Calls/Unary HTTP/1.1\r\nhost: a\r\ncontent-type: application/grpc-web-text\r\nconnection: close\r\n\
                content-length: 16\r\n\r\nAAAAAAcKBWhlbGxv";
    client.write_all(call.as_bytes()).expect("it is sent");
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).expect("it is answered");
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("content-type: application/grpc-web-text\r\n"), "{answer}");
    // The same message, and a trailers frame with its flag.
    assert!(answer.contains("AAAAAAcKBWhlbGxv") && answer.contains("\r\ngAAAA"), "{answer}");
    assert_eq!(site.logged(port, "Unary"), "200 0 - ----");
}
