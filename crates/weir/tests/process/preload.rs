//! A preloaded library that replaces the calls of sockets: socket_wrapper, for which addresses are files in a folder. Such libraries
//! see the functions of the C library alone.

use crate::support::{Folder, Running, WEIR, run, wait_until, weir};
use std::cell::RefCell;
use std::path::PathBuf;
use std::process::Command;

/// Prints a field line and the body of each answer; of a long one its length and sum.
const CLIENT: &str = "import sys, urllib.request as r, zlib
for url in sys.argv[1:]:
    answer = r.build_opener(r.ProxyHandler({})).open(url, timeout=60)
    body = answer.read()
    print(answer.headers['x-seen'], body.decode() if len(body) < 100 else '%d %d' % (len(body), zlib.crc32(body)))";

/// Prints log lines and their senders, after a line when they can be sent.
const LOG_SERVER: &str = "import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('127.0.0.40', 514))
print('open', flush=True)
while True:
    line, sender = s.recvfrom(4096)
    print(sender[0], line.decode(), flush=True)";

const PROXY: &str = "defaults
    mode http
    log global
    log-format \"%ci %fi %ST\"
    timeout connect 5s
    timeout client 30s
    timeout server 30s
frontend f
    bind 127.0.0.10:80
    http-after-response set-header x-seen \"%[src] %[dst]\"
    http-request return status 200 content-type text/plain string own if { path /own }
    http-request return status 200 content-type text/plain lf-string \"%pid\" if { path /pid }
    default_backend b
backend b
    server s 127.0.0.20:80";

/// The end of the configuration: the server is checked.
const CHECKED: &str = " check inter 200\n";

/// The library, and the folder of its sockets. `None`: there is none, which was printed.
struct Wrapper {
    library: PathBuf,
    folder: Folder,
}

impl Wrapper {
    fn new() -> Option<Self> {
        let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
        let library = folders.map(|entry| entry.path().join("libsocket_wrapper.so")).find(|path| path.exists());
        if library.is_none() {
            eprintln!("SKIPPED: libsocket-wrapper is not installed: no preloaded library was tried");
        }
        Some(Self { library: library?, folder: Folder::new() })
    }

    /// Returns a command under the library, with the address 127.0.0.`own`.
    fn command(&self, program: &str, own: u8) -> Command {
        let mut command = Command::new(program);
        command.env("LD_PRELOAD", &self.library).env("SOCKET_WRAPPER_DIR", self.folder.text());
        command.env("SOCKET_WRAPPER_DEFAULT_IFACE", own.to_string());
        command
    }

    /// Starts a proxy with lines in its section `global`, and arguments of its server.
    fn proxy(&self, program: &str, global: &str, server: &str) -> Running {
        let file = self.folder.write("proxy.cfg", &format!("global\n{global}{PROXY}{server}"));
        Running::start(self.command(program, 10).args(["-db", "-f", &file]))
    }

    /// Returns the answers, as a client at 127.0.0.30 gets them.
    fn fetch(&self, paths: &[&str]) -> Option<String> {
        let urls = paths.iter().map(|path| format!("http://127.0.0.10{path}"));
        let done = run(self.command("python3", 30).args(["-c", CLIENT]).args(urls));
        done.status.success().then_some(done.stdout)
    }
}

/// HAProxy, if it is installed. Its absence was printed.
fn haproxy() -> Option<&'static str> {
    const HAPROXY: &str = "/usr/sbin/haproxy";
    let is_installed = std::path::Path::new(HAPROXY).exists();
    if !is_installed {
        eprintln!("SKIPPED: haproxy is not installed: its answers under a preloaded library were not compared");
    }
    is_installed.then_some(HAPROXY)
}

/// Returns the answers that clients of a program get, and its messages.
fn observe(program: &str, server: &str) -> Option<(String, String)> {
    let wrapper = Wrapper::new()?;
    let _origin = Running::start(wrapper.command(WEIR, 20).args(["origin", "-L", "127.0.0.20:80"]));
    let proxy = wrapper.proxy(program, "", server);
    let answers = RefCell::new(String::new());
    wait_until("answers of the server", || {
        let text = wrapper.fetch(&["/own", "/?s=10", "/?s=300000"]).unwrap_or_default();
        answers.replace(text);
        answers.borrow().contains(" 300000 ")
    });
    // The library moves at most 1,500 bytes with a call. That is not taken for the end of what has arrived.
    let large = wrapper.fetch(&["/?s=300000"; 20]).expect("no request is forgotten");
    assert_eq!(large.lines().count(), 20);
    proxy.send(rustix::process::Signal::TERM);
    Some((answers.into_inner(), proxy.finish().stderr))
}

/// The addresses of clients and of the proxy are true, bodies pass, and the server is checked. HAProxy's answers are the same.
#[test]
fn a_preloaded_library_replaces_sockets() {
    const SEEN: &str = "127.0.0.30 127.0.0.10";
    let Some((answers, messages)) = observe(WEIR, CHECKED) else { return };
    let lines: Vec<&str> = answers.lines().filter(|line| !line.is_empty()).collect();
    assert!(lines.len() == 3 && lines.iter().all(|line| line.starts_with(SEEN)), "{answers}");
    assert!(lines[0].ends_with(" own") && lines[2].starts_with(&format!("{SEEN} 300000 ")), "{answers}");
    assert!(messages.contains("Sockets are called through the C library ('tune.driver'), of which "), "{messages}");
    assert!(messages.contains("/libsocket_wrapper.so replaces functions."), "{messages}");
    assert!(messages.contains("The preloaded library refuses SO_REUSEPORT for 127.0.0.10:80"), "{messages}");
    let Some(haproxy) = haproxy() else { return };
    // Under release 1.3.5 of the library, health checks end HAProxy 2.6 and 3.5 by SIGSEGV.
    assert_eq!(observe(haproxy, "\n").map(|(answers, _)| answers), Some(answers));
}

/// The new process binds the address after the old one has released it.
#[test]
fn a_reload_keeps_a_preloaded_library() {
    let Some(wrapper) = Wrapper::new() else { return };
    let file = wrapper.folder.write("proxy.cfg", &format!("global\n{PROXY}{CHECKED}"));
    let master = Running::start(wrapper.command(WEIR, 10).args(["-W", "-db", "-f", &file]));
    let worker = RefCell::new(String::new());
    wait_until("a worker", || {
        worker.replace(wrapper.fetch(&["/pid"]).unwrap_or_default());
        worker.borrow().starts_with("127.0.0.30 127.0.0.10 ")
    });
    let first = worker.into_inner();
    master.send(rustix::process::Signal::USR2);
    wait_until("another worker", || wrapper.fetch(&["/pid"]).is_some_and(|answer| answer != first));
    master.send(rustix::process::Signal::TERM);
    assert!(master.finish().stderr.contains("Loading success."));
}

/// Libraries replace the functions for single datagrams.
#[test]
fn datagrams_pass_a_preloaded_library() {
    let Some(wrapper) = Wrapper::new() else { return };
    let mut logs = Running::start(wrapper.command("python3", 40).args(["-c", LOG_SERVER]));
    logs.wait_for_line(|line| line == "open\n");
    let _proxy = wrapper.proxy(WEIR, "    log 127.0.0.40:514 local0\n", CHECKED);
    wait_until("an answer", || wrapper.fetch(&["/own"]).is_some());
    let line = logs.wait_for_line(|line| line.contains(" 200"));
    assert!(line.starts_with("127.0.0.10 ") && line.contains(": 127.0.0.30 127.0.0.10 200"), "{line}");
}

/// The library is named by the runtime API and by `-vv`.
#[test]
fn the_library_is_shown() {
    let Some(wrapper) = Wrapper::new() else { return };
    let long = run(wrapper.command(WEIR, 10).arg("-vv")).stdout;
    let line = |text: &str, start: &str| text.lines().find_map(|line| line.strip_prefix(start)).map(str::to_owned);
    let shown = line(&long, "Calls for sockets : ").expect("a line");
    assert!(shown.starts_with("posix (preloaded: ") && shown.ends_with("/libsocket_wrapper.so)"), "{shown}");
    assert_eq!(line(&weir(["-vv"]).stdout, "Calls for sockets : ").as_deref(), Some("epoll"));
    let socket = wrapper.folder.path("cli");
    let _proxy = wrapper.proxy(WEIR, &format!("    stats socket {}\n", socket.display()), CHECKED);
    wait_until("the socket", || socket.exists());
    let info = run(wrapper.command(WEIR, 30).args(["ctl", "-s", &socket.display().to_string(), "show info"])).stdout;
    assert_eq!(line(&info, "Driver: "), Some(shown), "{info}");
}

/// A library that replaces no function for sockets, like most that are preloaded, changes nothing.
#[test]
fn other_libraries_do_not_count() {
    let Some(wrapper) = Wrapper::new() else { return };
    let folders = std::fs::read_dir(wrapper.library.parent().expect("a folder")).expect("a folder");
    let names = folders.flatten().map(|entry| entry.path());
    let mut others = names.filter(|path| path.to_string_lossy().contains("/libz.so.1"));
    let Some(other) = others.next() else { return eprintln!("SKIPPED: no other library is installed") };
    let long = run(std::process::Command::new(WEIR).arg("-vv").env("LD_PRELOAD", other)).stdout;
    assert!(long.contains("\nCalls for sockets : epoll\n"), "{long}");
}

/// `tune.driver epoll` calls the kernel in any case, which knows nothing of the library's sockets.
#[test]
fn direct_calls_are_configured() {
    let Some(wrapper) = Wrapper::new() else { return };
    let ended = wrapper.proxy(WEIR, "    tune.driver epoll\n", CHECKED).finish();
    assert!(ended.stderr.contains("cannot bind socket (Operation not supported)"), "{}", ended.stderr);
    assert_eq!(ended.code(), Some(1));
}

/// Without a library, the functions of the C library serve as well.
#[test]
fn named_calls_serve_without_a_library() {
    let folder = Folder::new();
    let socket = folder.path("clients");
    let file = folder.write(
        "proxy.cfg",
        &format!(
            "global\n    tune.driver posix\ndefaults\n    mode http\n    timeout client 30s\nfrontend f\n    bind {}\n    \
             http-request return status 204\n",
            socket.display()
        ),
    );
    let weir = Running::weir(&["-db", "-f", &file]);
    wait_until("an answer", || {
        use std::io::{Read, Write};
        let Ok(mut stream) = std::os::unix::net::UnixStream::connect(&socket) else { return false };
        let mut answer = String::new();
        let sent = stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        sent.is_ok() && stream.read_to_string(&mut answer).is_ok() && answer.starts_with("HTTP/1.1 204 ")
    });
    weir.send(rustix::process::Signal::TERM);
    assert!(weir.finish().stderr.contains("Sockets are called through the C library"));
}
