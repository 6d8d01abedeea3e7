//! HTTP/2 with other implementations of clients and servers: Go's net/http, Python's httpx and h2, curl, nghttp,
//! h2load, nginx and HAProxy. Each is skipped with a message if it is missing.

use crate::support::{Folder, Running, connect, free_port, run};
use rustix::process::Signal;
use std::path::Path;
use std::process::Command;

/// Locations of Go, also outside of the path.
const GO: [&str; 3] = ["go", "/usr/local/go/bin/go", "/usr/lib/go/bin/go"];

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

/// Builds the client and the server in Go. `None`: not possible, which was printed.
fn build(folder: &Folder) -> Option<String> {
    let Some(go) = GO.iter().find(|go| Command::new(go).arg("version").output().is_ok()) else {
        eprintln!("skipped: go is not installed");
        return None;
    };
    let program = folder.path("http2test").to_string_lossy().into_owned();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/process/http2");
    let built = run(Command::new(go).current_dir(source).env("GOTOOLCHAIN", "local").args([
        "build",
        "-buildvcs=false",
        "-o",
        &program,
        ".",
    ]));
    if built.code() != Some(0) {
        eprintln!("skipped: this Go cannot build the client: {}", built.stderr);
        return None;
    }
    Some(program)
}

/// A Go server on its own port.
struct Origin {
    _server: Running,
    port: String,
}

impl Origin {
    fn start(program: &str, certificate: Option<&str>) -> Self {
        let mut server = Running::start(Command::new(program).arg("server").args(certificate));
        let line = server.wait_for_line(|line| line.starts_with("listening "));
        Self { port: line["listening ".len()..].trim().to_owned(), _server: server }
    }
}

const DEFAULTS: &str = "defaults\n mode http\n timeout connect 20s\n timeout client 60s\n timeout server 60s\n";

/// Runs Weir with these sections; `[port]` is replaced by the port of its `bind`.
fn weir(folder: &Folder, sections: &str) -> (Running, u16) {
    let port = free_port();
    let text = format!(
        "global\n tune.h2.be.max-concurrent-streams 20\n{DEFAULTS}{}",
        sections.replace("[port]", &port.to_string()).replace("[pem]", &certificate())
    );
    let file = folder.write(&format!("weir-{port}.cfg"), &text);
    let running = Running::weir(&["-db", "-f", &file]);
    drop(connect(port));
    (running, port)
}

/// Runs Go's client with requests of every type except `without`.
fn call(program: &str, scheme: &str, port: u16, through: &str, without: &[&str]) {
    let done = run(Command::new(program).args(["client", &format!("{scheme}://127.0.0.1:{port}")]).args(without));
    assert_eq!(done.code(), Some(0), "{through}: {}{}", done.stdout, done.stderr);
    let kinds = ["upload", "duplex", "cut", "early", "cancel", "many"].into_iter();
    let expected: Vec<_> = kinds.filter(|kind| !without.contains(kind)).map(|kind| format!("ok {kind}")).collect();
    assert_eq!(done.stdout.lines().collect::<Vec<_>>(), expected, "{through}");
}

#[test]
fn the_client_and_the_server_of_go() {
    let folder = Folder::new();
    let Some(program) = build(&folder) else { return };
    let (clear, secure) = (Origin::start(&program, None), Origin::start(&program, Some(&certificate())));
    let rows = [
        ("http", "", format!("{} proto h2", clear.port)),
        ("https", "ssl crt [pem]", format!("{} proto h2", clear.port)),
        ("http", "", format!("{} ssl verify none alpn h2", secure.port)),
        ("https", "ssl crt [pem]", format!("{} ssl verify none alpn h2,http/1.1", secure.port)),
        ("https", "ssl crt [pem] alpn h2", clear.port.clone()),
    ];
    for (scheme, bind, server) in &rows {
        let sections = format!("listen l\n bind 127.0.0.1:[port] {bind}\n server s 127.0.0.1:{server}\n");
        let (_weir, port) = weir(&folder, &sections);
        call(&program, scheme, port, &sections, &[]);
    }
}

/// A version of HAProxy: the tests that it fails, and settings that it needs for the others.
struct Peer {
    without: &'static [&'static str],
    global: &'static str,
}

impl Peer {
    /// Returns the limits of the installed version.
    ///
    /// HAProxy 2.6 ends a response that its server has truncated as if it were complete, and resets a connection to a
    /// server, without a GOAWAY, when 300 requests arrive at once: some then look complete though bytes are missing. The
    /// same with Go on both sides of it; 3.5 does neither.
    ///
    /// It also stops reading a client's connection while the buffer of a stream is full. WINDOW_UPDATE frames behind that
    /// payload are not read either, so that an upload that is echoed can stall until its timeout (with HAProxy 3.5 in
    /// front of it as well). A window that is smaller than its buffer prevents that.
    fn of(program: &str) -> Self {
        let version = run(Command::new(program).arg("-v")).stdout;
        if version.starts_with("HAProxy version 2.") || version.starts_with("HA-Proxy version ") {
            let global = "global\n tune.bufsize 131072\n tune.h2.initial-window-size 16384\n";
            Self { without: &["cut", "many"], global }
        } else {
            Self { without: &[], global: "" }
        }
    }
}

/// Weir behind HAProxy (`HAPROXY`, or the one in the path), and in front of it, with HTTP/2 on all three connections.
#[test]
fn haproxy_on_either_side() {
    let installed = std::env::var("HAPROXY").unwrap_or_else(|_| "haproxy".to_owned());
    if !is_there(&installed, "-v") {
        return;
    }
    let Peer { without, global } = Peer::of(&installed);
    let folder = Folder::new();
    let Some(program) = build(&folder) else { return };
    let origin = Origin::start(&program, None);
    let haproxy = |name: &str, server: &str| {
        let port = free_port();
        let text =
            format!("{global}{DEFAULTS}listen l\n bind 127.0.0.1:{port}\n server s 127.0.0.1:{server} proto h2\n");
        let file = folder.write(name, &text);
        let running = Running::start(Command::new(&installed).args(["-db", "-f", &file]));
        drop(connect(port));
        (running, port)
    };
    let section = |server: &str| format!("listen l\n bind 127.0.0.1:[port]\n server s 127.0.0.1:{server} proto h2\n");
    let (_weir, port) = weir(&folder, &section(&origin.port));
    let (_front, front) = haproxy("front.cfg", &port.to_string());
    call(&program, "http", front, "HAProxy, Weir, Go", without);
    let (_back, back) = haproxy("back.cfg", &origin.port);
    let (_weir, port) = weir(&folder, &section(&back.to_string()));
    call(&program, "http", port, "Weir, HAProxy, Go", without);
}

/// Responses of a file by nginx, with HTTP/2 in clear and over TLS; the client is curl.
#[test]
fn nginx_behind_and_curl_in_front() {
    if !is_there("nginx", "-v") || !is_there("curl", "-V") {
        return;
    }
    let folder = Folder::new();
    let (clear, secure, pem) = (free_port(), free_port(), certificate());
    let content = "nginx\n".repeat(50_000);
    folder.write("large.txt", &content);
    let root = folder.text();
    let text = format!(
        "daemon off;\nmaster_process off;\npid {root}/nginx.pid;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n\
         client_body_temp_path {root}/1;\nproxy_temp_path {root}/2;\nfastcgi_temp_path {root}/3;\nuwsgi_temp_path {root}/4;\n\
         scgi_temp_path {root}/5;\nserver {{\nlisten 127.0.0.1:{clear} http2;\nlisten 127.0.0.1:{secure} ssl http2;\n\
         ssl_certificate {pem};\nssl_certificate_key {pem};\nroot {root};\nlocation /proto {{ return 200 \"$server_protocol $http_host\"; }}\n}}\n}}\n"
    );
    let file = folder.write("nginx.conf", &text);
    let _nginx = Running::start(Command::new("nginx").args(["-c", &file, "-p", root]));
    drop((connect(clear), connect(secure)));
    for (server, scheme, bind) in [
        (format!("{clear} proto h2"), "http", ""),
        (format!("{secure} ssl verify none alpn h2"), "https", "ssl crt [pem]"),
    ] {
        let sections = format!("listen l\n bind 127.0.0.1:[port] {bind}\n server s 127.0.0.1:{server}\n");
        let (_weir, port) = weir(&folder, &sections);
        let curl = |path: &str, version: &str| {
            let url = format!("{scheme}://127.0.0.1:{port}{path}");
            let done = run(Command::new("curl").args(["-sk", "-m", "60", version, "-w", " %{http_version}", &url]));
            assert_eq!(done.code(), Some(0), "{sections}: {done:?}");
            done.stdout
        };
        for (version, number) in [("--http2-prior-knowledge", "2"), ("--http1.1", "1.1")] {
            let by_tls = scheme == "https" && number == "2";
            let version = if by_tls { "--http2" } else { version };
            assert_eq!(curl("/proto", version), format!("HTTP/2.0 127.0.0.1:{port} {number}"));
            assert!(curl("/large.txt", version) == format!("{content} {number}"), "{sections}");
        }
    }
}

/// A browser loads a page with 40 images over TLS: HTTP/2, whichever version the server uses.
#[test]
fn chromium_in_front() {
    if !is_there("chromium", "--version") {
        return;
    }
    let folder = Folder::new();
    let Some(program) = build(&folder) else { return };
    let origin = Origin::start(&program, None);
    for proto in ["", "proto h2"] {
        let pictures: String = (0..40).map(|number| format!("<img src=/echo?{number} onerror=seen(this)>")).collect();
        let page = folder
            .write("page.html", &format!("<script>n=0;seen=i=>{{n++;document.title=n}}</script>{pictures}<p id=v>"));
        let sections = format!(
            "frontend f\n bind 127.0.0.1:[port] ssl crt [pem]\n log stdout format raw daemon\n \
             log-format \"%[req.ver] %[ssl_fc_alpn] %HU %ST %ts\"\n \
             http-request return status 200 content-type text/html file {page} if {{ path / }}\n default_backend b\n\
             backend b\n server s 127.0.0.1:{} {proto}\n",
            origin.port
        );
        let (mut weir, port) = weir(&folder, &sections);
        let profile = folder.path("profile");
        let done = run(Command::new("timeout")
            .args(["100", "chromium", "--headless", "--no-sandbox", "--disable-gpu"])
            .args([
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--disable-dev-shm-usage",
                "--ignore-certificate-errors",
                &format!("--user-data-dir={}", profile.display()),
                "--dump-dom",
                &format!("https://127.0.0.1:{port}/"),
            ]));
        assert!(done.stdout.contains("<title>40</title>"), "{}{}", done.stdout, done.stderr);
        for _ in 0..40 {
            let line = weir.wait_for_line(|line| line.contains("/echo?"));
            assert!(line.starts_with("2.0 h2 ") && line.trim_end().ends_with(" 200 --"), "{line}");
        }
    }
}

/// Uploads and trailers with nghttp, many requests with h2load.
#[test]
fn nghttp_and_h2load() {
    if !is_there("nghttp", "--version") || !is_there("h2load", "--version") {
        return;
    }
    let folder = Folder::new();
    let Some(program) = build(&folder) else { return };
    let origin = Origin::start(&program, None);
    for server in [format!("{} proto h2", origin.port), origin.port.clone()] {
        let (_weir, port) = weir(&folder, &format!("listen l\n bind 127.0.0.1:[port]\n server s 127.0.0.1:{server}\n"));
        let url = format!("http://127.0.0.1:{port}/echo");
        let payload = folder.write("payload", &"p".repeat(200_000));
        let arguments = ["-nv", "--no-content-length", "--trailer=x-said: behind", "--data", &payload, &url];
        let done = run(Command::new("nghttp").args(arguments));
        assert_eq!(done.code(), Some(0), "{done:?}");
        assert!(done.stdout.contains("x-sum: 200000 behind"), "{}", done.stdout);
        let arguments = ["-n", "400", "-c", "4", "-m", "50", "-d", &payload, &url];
        let done = run(Command::new("h2load").args(arguments));
        assert!(done.stdout.contains("400 succeeded, 0 failed, 0 errored"), "{}", done.stdout);
    }
}

/// Runs a script with Python's libraries: `None` if they are missing, which was printed.
fn python(folder: &Folder, script: &str) -> Option<String> {
    let there = Command::new("python3").args(["-c", "import h2, httpx"]).output();
    if !there.is_ok_and(|done| done.status.success()) {
        eprintln!("skipped: python3 with h2 and httpx is not installed");
        return None;
    }
    Some(folder.write("client.py", script))
}

#[test]
fn httpx_and_h2_of_python() {
    let folder = Folder::new();
    let Some(script) = python(&folder, include_str!("http2/client.py")) else { return };
    let Some(program) = build(&folder) else { return };
    let origin = Origin::start(&program, None);
    let (_weir, port) = weir(
        &folder,
        &format!(
            "listen l\n bind 127.0.0.1:[port] ssl crt [pem]\n server s 127.0.0.1:{} proto h2 ws h1\n",
            origin.port
        ),
    );
    let done = run(Command::new("python3").args([&script, &port.to_string(), "requests"]));
    assert_eq!(done.code(), Some(0), "{}{}", done.stdout, done.stderr);
    assert_eq!(done.stdout.lines().collect::<Vec<_>>(), ["ok httpx", "ok reset", "ok ping", "ok websocket"]);
}

/// A soft stop sends GOAWAY to HTTP/2 clients, and their requests are answered.
#[test]
fn a_soft_stop_says_goaway() {
    let folder = Folder::new();
    let Some(script) = python(&folder, include_str!("http2/client.py")) else { return };
    let Some(program) = build(&folder) else { return };
    let origin = Origin::start(&program, None);
    let (weir, port) = weir(
        &folder,
        &format!("listen l\n bind 127.0.0.1:[port] ssl crt [pem]\n server s 127.0.0.1:{} proto h2\n", origin.port),
    );
    let mut client = Running::start(Command::new("python3").args([&script, &port.to_string(), "stop"]));
    client.wait_for_line(|line| line.trim() == "asked");
    weir.send(Signal::USR1);
    client.wait_for_line(|line| line.trim() == "goaway");
    let done = client.finish();
    assert_eq!(done.code(), Some(0), "{}{}", done.stdout, done.stderr);
    weir.finish();
}
