//! Certificates that Weir obtains itself, from Pebble on loopback: issued, kept, renewed, refused. Pebble is built with go from
//! the module in `tests/pebble`; without go the test says so and passes.

use crate::support::{Folder, Running, WEIR, connect, connect_unix, free_port, wait_until};
use rustix::process::Signal;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tls::certificate::Certificate;
use tls::issue::{Key, KeyKind};

/// Builds Pebble; `None`: that is not possible here, and why was printed.
fn pebble(folder: &Folder) -> Option<PathBuf> {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/pebble");
    let program = folder.path("pebble");
    let build = Command::new("go")
        .current_dir(module)
        .args(["build", "-mod=readonly", "-o"])
        .arg(&program)
        .arg("github.com/letsencrypt/pebble/v2/cmd/pebble")
        .output();
    match build {
        Ok(build) if build.status.success() => Some(program),
        Ok(build) => {
            eprintln!("SKIPPED: Pebble cannot be built: {}", String::from_utf8_lossy(&build.stderr));
            None
        }
        Err(error) => {
            eprintln!("SKIPPED: no go to build Pebble with: {error}");
            None
        }
    }
}

/// A name server that has 127.0.0.1 for every name, over TCP as Pebble asks it; it ends with the process.
fn name_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        while let Ok((mut peer, _)) = listener.accept() {
            std::thread::spawn(move || while answer(&mut peer).is_some() {});
        }
    });
    port
}

/// Answers a question; `None`: the peer has no more.
fn answer(peer: &mut TcpStream) -> Option<()> {
    let mut length = [0; 2];
    peer.read_exact(&mut length).ok()?;
    let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
    peer.read_exact(&mut question).ok()?;
    let end = 12 + question.get(12..)?.iter().position(|byte| *byte == 0)? + 5;
    let is_ipv4 = question.get(end - 4..end - 2)? == [0, 1];
    let mut answer = question[..2].to_vec();
    answer.extend([0x81, 0x80, 0, 1, 0, u8::from(is_ipv4), 0, 0, 0, 0]);
    answer.extend(&question[12..end]);
    if is_ipv4 {
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
    }
    let length = u16::try_from(answer.len()).ok()?;
    peer.write_all(&[&length.to_be_bytes()[..], &answer].concat()).ok()
}

/// Where everything of a test is.
struct Stage {
    folder: Folder,
    directory: String,
    tls: u16,
    _pebble: Running,
}

impl Stage {
    fn new(folder: Folder, program: &Path) -> Self {
        let key = Key::generate(KeyKind::P256).expect("a key");
        let certificate = key.self_signed(&["localhost".into()], &["127.0.0.1".parse().expect("an address")]);
        let certificate = folder.write("ca.pem", &certificate.expect("a certificate"));
        let key = folder.write("ca.key", &key.to_pem());
        let (listen, management, tls) = (free_port(), free_port(), free_port());
        let config = format!(
            r#"{{"pebble":{{"listenAddress":"127.0.0.1:{listen}","managementListenAddress":"127.0.0.1:{management}",
            "certificate":"{certificate}","privateKey":"{key}","httpPort":5002,"tlsPort":{tls},
            "domainBlocklist":["blocked.example"],"retryAfter":{{"authz":1,"order":1}},"keyAlgorithm":"ecdsa",
            "profiles":{{"default":{{"description":"d","validityPeriod":7776000}}}}}}}}"#
        );
        let config = folder.write("pebble.json", &config);
        let names = format!("127.0.0.1:{}", name_server());
        let mut command = Command::new(program);
        command.args(["-config", &config, "-dnsserver", &names]);
        command.envs([("PEBBLE_VA_NOSLEEP", "1"), ("PEBBLE_WFE_NONCEREJECT", "30"), ("PEBBLE_AUTHZREUSE", "0")]);
        let pebble = Running::start(&mut command);
        drop(connect(listen));
        Self { folder, directory: format!("https://127.0.0.1:{listen}/dir"), tls, _pebble: pebble }
    }

    fn config(&self, domains: &str) -> String {
        let (folder, directory, tls) = (self.folder.text(), &self.directory, self.tls);
        let text = format!(
            "global\n httpclient.ssl.ca-file {folder}/ca.pem\n httpclient.resolvers.disabled on\n \
             expose-experimental-directives\n acme.state-dir {folder}/state\n stats socket {folder}/weir.sock level admin\n \
             log stdout format raw local0\nacme default\n directory {directory}\n account-key {folder}/account.key\n\
             frontend f\n mode http\n timeout client 20s\n bind 127.0.0.1:{tls} ssl acme {domains}\n\
             \x20http-request return status 200\n"
        );
        self.folder.write("weir.cfg", &text)
    }

    fn start(&self, domains: &str) -> Running {
        let file = self.config(domains);
        Running::start(Command::new(WEIR).args(["-db", "-f", &file]))
    }

    fn ask(&self, command: &str) -> String {
        let mut socket = connect_unix(&self.folder.path("weir.sock"));
        socket.write_all(format!("{command}\n").as_bytes()).expect("sent");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("text");
        answer
    }
}

/// Waits until a certificate was obtained.
fn wait_for_success(weir: &mut Running) {
    let line = weir.wait_for_line(|line| line.contains("Successful update") || line.contains("Aborting."));
    assert!(line.ends_with("Successful update of the certificate.\n"), "{line}");
}

#[test]
fn certificates_are_issued_kept_renewed_and_refused() {
    let folder = Folder::new();
    let Some(program) = pebble(&folder) else { return };
    let stage = Stage::new(folder, &program);
    let mut weir = stage.start("a.example,b.example");
    wait_for_success(&mut weir);
    let kept = stage.folder.path("state/a.example.pem");
    let name = kept.to_str().expect("text").to_owned();
    let read = || {
        wait_until("the certificate is kept", || kept.exists());
        assert_eq!(std::fs::metadata(&kept).expect("a file").mode() & 0o777, 0o600);
        Certificate::read(&name, &std::fs::read(&kept).expect("a file"), None).expect("a certificate")
    };
    let first = read();
    assert_eq!(first.names, ["a.example".into(), "b.example".into()]);
    assert_eq!(std::fs::metadata(stage.folder.path("account.key")).expect("a file").mode() & 0o777, 0o600);
    let shown = stage.ask(&format!("show ssl cert {name}"));
    assert!(shown.contains("Issuer: /CN=Pebble Intermediate") && shown.contains("Status: Used"), "{shown}");
    // Renewed by order, with another key.
    assert_eq!(stage.ask(&format!("acme renew {name}")), "\n");
    wait_for_success(&mut weir);
    let second = read();
    assert_ne!(first.der(), second.der());
    weir.send(Signal::TERM);
    weir.finish();
    // The next process goes on with it, and asks for nothing.
    let weir = stage.start("a.example,b.example");
    wait_until("the certificate is due later", || stage.ask("acme status").contains("\tScheduled\t"));
    assert!(stage.ask(&format!("show ssl cert {name}")).contains("Issuer: /CN=Pebble Intermediate"));
    assert_eq!(read().der(), second.der());
    weir.send(Signal::TERM);
    let finished = weir.finish();
    assert!(!finished.stdout.contains("Starting update"), "{}", finished.stdout);
    // One that is refused serves with a temporary certificate.
    let mut weir = stage.start("blocked.example");
    weir.wait_for_line(|line| line.contains("rejectedIdentifier") && line.ends_with("Aborting.\n"));
    drop(connect(stage.tls));
    assert!(!stage.folder.path("state/blocked.example.pem").exists());
    weir.send(Signal::TERM);
    weir.finish();
}

/// What cannot be obtained is an error of the configuration.
#[test]
fn names_and_folders_that_do_not_work_are_told() {
    let folder = Folder::new();
    let told = |line: &str| {
        let text = format!(
            "global\n acme.state-dir {}/file\nfrontend f\n mode http\n timeout client 1s\n bind 127.0.0.1:{} ssl {line}\n",
            folder.text(),
            free_port()
        );
        let file = folder.write("bad.cfg", &text);
        let finished = crate::support::weir(["-db", "-f", &file]);
        assert_eq!(finished.code(), Some(1), "{}", finished.stderr);
        finished.stderr
    };
    folder.write("file", "no folder");
    for (line, expected) in [
        ("acme *.a.example", "'*.a.example' cannot be obtained here"),
        ("acme a.example,,b.example", "'' is no domain name"),
        ("acme localhost", "'localhost' is no domain name"),
        ("acme a.example acme a.example,b.example", "another line asks for 'a.example' with other names"),
        ("acme a.example", "default.account.key': Not a directory"),
    ] {
        let stderr = told(line);
        assert!(stderr.contains(expected), "{line}: {stderr}");
    }
}
