//! Unmodified programs that use HAProxy's runtime API work with Weir. A program that is not installed is skipped with a
//! message.

use crate::support::{DEFAULTS, Folder, Running, WEIR, connect, connect_unix, free_port, wait_for_file, wait_until};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SECTIONS: &str = "global
    stats socket [socket] mode 600 level admin
    maxconn 1000
frontend web
    bind 127.0.0.1:[port]
    stats uri /stats
    http-request track-sc0 src table app
    http-request set-header kind %[path,map([map])]
    acl known path -f [acl]
    http-request deny if known
    default_backend app
backend app
    stick-table type ip size 100 store gpc0
    server one 127.0.0.1:[down] weight 10
    server two 127.0.0.1:[down] disabled
";

/// Weir under the name that such programs expect in `show info`.
struct Subject {
    socket: PathBuf,
    port: u16,
    _running: Running,
}

impl Subject {
    fn start(folder: &Folder) -> Self {
        let (socket, port) = (folder.path("stats.sock"), free_port());
        let sections = SECTIONS
            .replace("[socket]", &socket.to_string_lossy())
            .replace("[port]", &port.to_string())
            .replace("[map]", &folder.write("kinds.map", "/x 1\n"))
            .replace("[acl]", &folder.write("known.acl", "/known\n"))
            .replace("[down]", &free_port().to_string());
        let file = folder.write("clients.cfg", &(DEFAULTS.to_owned() + &sections));
        let (program, pids) = (folder.path("haproxy"), folder.path("pid"));
        std::os::unix::fs::symlink(WEIR, &program).expect("a free name");
        let arguments = ["-db", "-p", &pids.to_string_lossy(), "-f", &file].map(str::to_owned);
        let running = Running::start(Command::new(program).args(arguments));
        // Waits until the address accepts connections.
        drop(connect(port));
        drop(connect_unix(&socket));
        Self { socket, port, _running: running }
    }

    fn ask(&self, command: &str) -> String {
        let mut stream = connect_unix(&self.socket);
        stream.write_all(format!("{command}\n").as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }
}

fn is_installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        eprintln!("SKIPPED: {program} is not installed, and was not tried with Weir's runtime API");
    }
    found
}

/// A changed limit is shown and applied.
#[test]
fn the_limit_of_connections_is_shown_as_it_was_changed() {
    let folder = Folder::new();
    let subject = Subject::start(&folder);
    assert!(subject.ask("show info").contains("\nMaxconn: 1000\nHard_maxconn: 1000\n"));
    assert_eq!(subject.ask("set maxconn global 800"), "\n");
    assert!(subject.ask("show info").contains("\nMaxconn: 800\nHard_maxconn: 1000\n"));
    assert!(subject.ask("show info typed").contains(".Maxconn.1:CLPV:u32:800\n"));
}

#[test]
fn hatop_draws_the_proxies() {
    if !is_installed("hatop") || !is_installed("script") {
        return;
    }
    let folder = Folder::new();
    let subject = Subject::start(&folder);
    let command = format!("stty rows 40 cols 160; exec hatop -s {}", subject.socket.display());
    let mut screen = Command::new("timeout")
        .args(["120", "script", "-qec", &command, "/dev/null"])
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script starts");
    let mut output = screen.stdout.take().expect("a pipe");
    let (mut drawn, mut bytes) = (String::new(), [0; 4096]);
    let wanted = ["HAProxy Version", "web", "FRONTEND", "OPEN", "app", "one", "two", "MAINT", "BACKEND"];
    while !wanted.iter().all(|text| drawn.contains(text)) {
        let count = output.read(&mut bytes).expect("a screen");
        assert!(count > 0, "hatop has ended: {drawn}");
        drawn.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    screen.stdin.take().expect("a pipe").write_all(b"Q").expect("hatop reads");
    let _ = std::io::copy(&mut output, &mut std::io::sink());
    assert!(screen.wait().expect("script").success());
}

#[test]
fn the_exporter_of_debian_reads_the_statistics() {
    if !is_installed("prometheus-haproxy-exporter") {
        return;
    }
    let folder = Folder::new();
    let subject = Subject::start(&folder);
    let command = format!(
        "exec prometheus-haproxy-exporter --haproxy.scrape-uri=unix:{} --haproxy.pid-file={} --web.listen-address=127.0.0.1:0 2>&1",
        subject.socket.display(),
        folder.path("pid").display()
    );
    let mut exporter = Running::start(Command::new("sh").args(["-c", &command]));
    let line = exporter.wait_for_line(|line| line.contains("Listening on"));
    let port = line.rsplit(':').next().and_then(|port| port.trim().parse().ok()).expect("an address");
    let mut stream = connect(port);
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    for wanted in [
        "haproxy_up 1",
        "haproxy_exporter_csv_parse_failures_total 0",
        "haproxy_server_up{backend=\"app\",server=\"one\"} 1",
        "haproxy_server_up{backend=\"app\",server=\"two\"} 0",
        "haproxy_backend_current_server{backend=\"app\"} 1",
        "haproxy_frontend_limit_sessions{frontend=\"web\"} 1000",
    ] {
        assert!(text.lines().any(|line| line == wanted), "{wanted}:\n{text}");
    }
}

/// The output of a program with HAProxy's native client library for Go.
const NATIVE: &str = "maxconn 1000
frontend  web OPEN
server app one no check
server app two MAINT
backend  app UP
maint/down
ready/up
one 127.0.0.1 ready
two 127.0.0.1 maint
more 127.0.0.1 maint
app ip 100 0
maps 1
lists 2
";

#[test]
fn the_library_of_haproxy_for_go_works() {
    let folder = Folder::new();
    let program = folder.path("native").to_string_lossy().into_owned();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/process/client_native");
    let mut build = Command::new("go");
    build.current_dir(source).args(["build", "-buildvcs=false", "-o", &program, "."]);
    if !build.output().is_ok_and(|built| built.status.success()) {
        eprintln!("SKIPPED: Go and HAProxy's client-native are not there, and were not tried with Weir's runtime API");
        return;
    }
    let subject = Subject::start(&folder);
    let done = Command::new(&program).arg(&subject.socket).output().expect("a program");
    assert_eq!(String::from_utf8_lossy(&done.stdout), NATIVE, "{}", String::from_utf8_lossy(&done.stderr));
}

/// Telegraf's values from the socket, and from the page: kind, proxy, name, status, sessions, responses, weight, mode,
/// and whether the other columns exist. The page counts the session that requests it.
const TELEGRAF: &str = "haproxy backend app BACKEND UP 0 0 10 http true
haproxy frontend web FRONTEND OPEN SESSIONS 0 <nil> http true
haproxy server app one no check 0 0 10 http true
haproxy server app two MAINT 0 0 1 http true
";

#[test]
fn the_input_of_telegraf_reads_the_socket_and_the_page() {
    let folder = Folder::new();
    let program = folder.path("telegraf").to_string_lossy().into_owned();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/process/telegraf");
    let mut build = Command::new("go");
    build.current_dir(source).args(["build", "-buildvcs=false", "-o", &program, "."]);
    if !build.output().is_ok_and(|built| built.status.success()) {
        eprintln!(
            "SKIPPED: Go and Telegraf's input for HAProxy are not there, and were not tried with Weir's statistics"
        );
        return;
    }
    let subject = Subject::start(&folder);
    wait_until("the first session", || {
        let shown = subject.ask("show stat");
        let line = shown.lines().find(|line| line.starts_with("web,FRONTEND,")).unwrap_or_default();
        (line.split(',').nth(4), line.split(',').nth(7)) == (Some("0"), Some("1"))
    });
    let page = format!("http://127.0.0.1:{}/stats;csv", subject.port);
    let done = Command::new(&program).arg(&subject.socket).arg(page).output().expect("a program");
    // The connection that waited for the process to serve is a session, too.
    let expected = TELEGRAF.replace("SESSIONS", "1") + &TELEGRAF.replace("SESSIONS", "2");
    assert_eq!(String::from_utf8_lossy(&done.stdout), expected, "{}", String::from_utf8_lossy(&done.stderr));
}

/// A script with typical calls of the library `haproxyadmin`, and its output.
const SCRIPT: &str = r#"
import sys
from haproxyadmin import haproxy
h = haproxy.HAProxy(socket_file=sys.argv[1])
print(h.maxconn, [f.name for f in h.frontends()], [b.name for b in h.backends()])
s = h.server('one')[0]
print(s.status, s.setstate('maint'), s.status, s.setstate('drain'), s.status, s.setstate('ready'), s.status)
print(s.setweight(10), s.weight, s.setweight('50%'), s.weight, s.address, s.port)
print(h.setmaxconn(900), h.maxconn, h.clearcounters(), len(h.errors()))
f = h.frontend('web')
print(f.setmaxconn(100), f.maxconn, f.disable(), f.status, f.enable(), f.status)
print(h.setratelimitsess(10), h.ratelimitsess, h.command('show stat')[0][1][0][:8])
"#;

const PRINTED: &str = "1000 ['web'] ['app']
no check True MAINT True DRAIN True no check
True 10 True 5 127.0.0.1 [down]
True 900 True 1
True 100 True PAUSED True OPEN
True 10 # pxname
";

#[test]
fn scripts_with_haproxyadmin_work() {
    let has_library = Command::new("python3").args(["-c", "import haproxyadmin"]).stderr(Stdio::null()).status();
    if !has_library.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: python3 with haproxyadmin is not installed, and was not tried with Weir's runtime API");
        return;
    }
    let folder = Folder::new();
    let subject = Subject::start(&folder);
    let socket = subject.socket.to_string_lossy().into_owned();
    let done = Command::new("python3").args(["-c", SCRIPT, &socket]).output().expect("python3");
    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
    let port = printed.split("127.0.0.1 ").nth(1).and_then(|rest| rest.split('\n').next()).unwrap_or_default();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert_eq!(printed, PRINTED.replace("[down]", port), "{errors}");
    assert_ne!(port, subject.port.to_string());
    assert!(port.parse::<u16>().is_ok(), "{printed}");
    drop(wait_for_file(&folder.path("pid")));
}
