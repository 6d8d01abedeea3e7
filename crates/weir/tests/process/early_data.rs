//! TLS early data with other implementations: OpenSSL's client, and HAProxy on either side. Each is skipped with a
//! message if it is missing.

use crate::support::{Folder, Running, connect, exchange, free_port};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

const DEFAULTS: &str = "defaults\n mode http\n timeout connect 20s\n timeout client 20s\n timeout server 20s\n";
const GET: &str = "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";

fn certificate() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/process/site.pem").to_string_lossy().into_owned()
}

fn is_there(program: &str, argument: &str) -> bool {
    let there = Command::new(program).arg(argument).output().is_ok();
    if !there {
        eprintln!("skipped: {program} is not installed");
    }
    there
}

/// The receiving proxy, which applies `rules` and answers with the value of `fetch`.
fn inner(port: u16, rules: &str, fetch: &str) -> String {
    format!(
        "{DEFAULTS}listen inner\n bind 127.0.0.1:{port} ssl crt {} alpn http/1.1 allow-0rtt\n {rules}\n \
         http-request return status 200 content-type text/plain lf-string \"early: %[{fetch}]\"\n",
        certificate()
    )
}

/// The sending proxy, which sends requests as early data over a new connection each time.
fn outer(port: u16, to: u16) -> String {
    format!(
        "{DEFAULTS}listen outer\n bind 127.0.0.1:{port}\n retry-on 0rtt-rejected\n http-reuse never\n \
         server inner 127.0.0.1:{to} ssl verify none sni str(a.example) alpn http/1.1 allow-0rtt\n"
    )
}

/// Returns the output of OpenSSL's client. `later`: data sent after the handshake.
fn openssl(port: u16, arguments: &[&str], later: &str) -> String {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-connect", &format!("127.0.0.1:{port}"), "-tls1_3", "-alpn", "http/1.1", "-ign_eof"]);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it is there");
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(later.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    drop(input);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn openssl_sends_early_data() {
    if !is_there("openssl", "version") {
        return;
    }
    for (rule, early) in [("", "early: 1"), ("http-request wait-for-handshake", "early: 0")] {
        let (folder, port) = (Folder::new(), free_port());
        let file = folder.write("weir.cfg", &inner(port, rule, "ssl_fc_has_early"));
        let _weir = Running::weir(&["-db", "-f", &file]);
        drop(connect(port));
        let session = folder.path("session").to_string_lossy().into_owned();
        let first = openssl(port, &["-sess_out", &session], GET);
        assert!(first.contains("early: 0"), "{first}");
        let request = folder.write("request", GET);
        let early_request = ["-sess_in", &session, "-early_data", &request];
        let second = openssl(port, &early_request, "");
        assert!(second.contains("Early data was accepted") && second.contains(early), "{rule} {second}");
        // The session can be used once: the request after the handshake is answered instead.
        let third = openssl(port, &early_request, GET);
        assert!(third.contains("Early data was rejected") && third.matches("early: ").count() == 1, "{third}");
        assert!(third.contains("early: 0"), "{third}");
    }
}

/// Returns HAProxy, if its version processes early data before the end of the handshake; `HAPROXY` selects another one
/// than that in the path.
fn haproxy() -> Option<String> {
    let program = std::env::var("HAPROXY").unwrap_or_else(|_| "haproxy".to_owned());
    let Ok(output) = Command::new(&program).arg("-v").output() else {
        eprintln!("skipped: {program} is not installed");
        return None;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.split("version ").nth(1).and_then(|rest| rest.split('.').next()).map(str::parse::<u32>);
    if version.is_some_and(|version| version.is_ok_and(|major| major >= 3)) {
        return Some(program);
    }
    eprintln!("skipped: {program} is too old for early data");
    None
}

#[test]
fn haproxy_takes_and_sends_early_data() {
    let Some(program) = haproxy() else { return };
    for weir_is_inner in [true, false] {
        let (folder, near, far) = (Folder::new(), free_port(), free_port());
        let outer = folder.write("outer.cfg", &outer(near, far));
        let inner = folder.write("inner.cfg", &inner(far, "", "ssl_fc_early_rcvd"));
        let (weir, haproxy) = if weir_is_inner { (inner, outer) } else { (outer, inner) };
        // One thread: each of HAProxy's threads caches sessions with servers separately.
        let global = folder.write("global.cfg", "global\n nbthread 1\n");
        let _weir = Running::weir(&["-db", "-f", &weir]);
        let _haproxy = Running::start(Command::new(&program).args(["-db", "-f", &global, "-f", &haproxy]));
        drop((connect(far), connect(near)));
        let ask = || exchange(&mut connect(near), GET).1;
        assert_eq!(ask(), "early: 0");
        assert_eq!(ask(), "early: 1", "Weir takes it: {weir_is_inner}");
    }
}
