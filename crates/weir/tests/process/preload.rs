//! A preloaded library that replaces the calls of sockets: socket_wrapper, for which addresses are files in a folder. Such libraries
//! see the functions of the C library alone.

use crate::support::{Folder, Running, WEIR, run, wait_until};
use std::path::PathBuf;
use std::process::Command;

/// Prints the answers of addresses.
const CLIENT: &str = "import sys, urllib.request as r
for url in sys.argv[1:]: print(r.build_opener(r.ProxyHandler({})).open(url, timeout=60).read().decode(), end='')";

const PROXY: &str = "defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
    default-server check inter 200
frontend f
    bind 127.0.0.10:80
    http-request return status 200 content-type text/plain lf-string \"%[src] %[dst] \" if { path /own }
    default_backend b
backend b
    server s 127.0.0.20:80
";

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

    /// Starts a proxy with lines in its section `global`.
    fn proxy(&self, program: &str, global: &str) -> Running {
        let file = self.folder.write("proxy.cfg", &format!("global\n{global}{PROXY}"));
        Running::start(self.command(program, 10).args(["-db", "-f", &file]))
    }

    /// Returns the answers, as a client at 127.0.0.30 gets them.
    fn fetch(&self, paths: &[&str]) -> Option<String> {
        let urls = paths.iter().map(|path| format!("http://127.0.0.10{path}"));
        let done = run(self.command("python3", 30).args(["-c", CLIENT]).args(urls));
        done.status.success().then_some(done.stdout)
    }
}

/// The client's and the server's addresses are true, bodies pass, and the server is checked.
#[test]
fn a_preloaded_library_replaces_sockets() {
    let Some(wrapper) = Wrapper::new() else { return };
    let _origin = Running::start(wrapper.command(WEIR, 20).args(["origin", "-L", "127.0.0.20:80"]));
    let weir = wrapper.proxy(WEIR, "");
    wait_until("an answer", || wrapper.fetch(&["/own"]).is_some_and(|answer| answer == "127.0.0.30 127.0.0.10 "));
    wait_until("answers of the server", || {
        let answers = wrapper.fetch(&["/?s=10", "/?s=300000", "/own"]);
        answers.is_some_and(|answers| answers.len() == 300_010 + 22 && answers.ends_with("127.0.0.30 127.0.0.10 "))
    });
    weir.send(rustix::process::Signal::TERM);
    let ended = weir.finish();
    assert!(ended.stderr.contains("Sockets are called through the C library"), "{}", ended.stderr);
    assert!(ended.stderr.contains("The preloaded library refuses SO_REUSEPORT for 127.0.0.10:80"), "{}", ended.stderr);
}

/// `tune.driver epoll` calls the kernel in any case, which knows nothing of the library's sockets.
#[test]
fn direct_calls_are_configured() {
    let Some(wrapper) = Wrapper::new() else { return };
    let ended = wrapper.proxy(WEIR, "    tune.driver epoll\n").finish();
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
