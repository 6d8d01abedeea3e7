//! The driver with a running Weir: the program that `cargo test` has built beside this one, else a visible skip.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use gateway::cluster::Target;
use gateway::desired::{Backend, BackendKind, Desired, Frontend, FrontendKind, PathMatch, Protocol, Route, Timeouts};
use gateway::weir::Driver;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

/// A folder that is removed.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("weir-gateway-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A Weir with its master, which ends with the test.
struct Running(Child);

impl Running {
    fn start(program: &Path, folder: &Path) -> Self {
        let mut command = Command::new(program);
        command.arg("-W").arg("-S").arg(folder.join("master.sock")).arg("-f").arg(folder.join("weir.cfg"));
        let log = std::fs::File::create(folder.join("weir.log")).expect("a log");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Self(command.spawn().expect("a process"))
    }

    /// Ends the master, which ends its worker.
    fn stop(&mut self) {
        if matches!(self.0.try_wait(), Ok(Some(_))) {
            return;
        }
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns the program Weir in the folder of this test's own.
#[allow(clippy::print_stdout)]
fn weir() -> Option<PathBuf> {
    let own = std::env::current_exe().expect("a program");
    let program = own.parent()?.parent()?.join("weir");
    if program.exists() {
        return Some(program);
    }
    println!("SKIPPED: there is no {}", program.display());
    None
}

fn status(status: u16) -> Arc<Backend> {
    Arc::new(Backend {
        kind: BackendKind::Status(status),
        filters: Vec::new(),
        servers: BTreeMap::new(),
        protocol: Protocol::Http1,
        tls: None,
        timeouts: Timeouts::default(),
        retries: None,
        cookie: None,
    })
}

fn route(path: &str, backend: &str) -> Route {
    Route {
        host: "*".into(),
        path: PathMatch::Prefix(path.into()),
        method: None,
        headers: Vec::new(),
        query: Vec::new(),
        order: String::new(),
        backend: backend.into(),
    }
}

/// A loopback address of this process alone.
fn address() -> SocketAddr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    SocketAddr::new(Ipv4Addr::new(127, 65 + (high & 0x3f), middle, low.max(1)).into(), 8080)
}

fn desired(at: SocketAddr, routes: &[(&str, &str)], backends: &[(&str, u16)]) -> Desired {
    let routes = routes.iter().map(|(path, backend)| route(path, backend)).collect();
    Desired {
        frontends: [(at, Arc::new(Frontend { kind: FrontendKind::Http { tls: None, routes } }))].into(),
        backends: backends.iter().map(|(name, code)| ((*name).to_owned(), status(*code))).collect(),
        ..Desired::default()
    }
}

/// Sends a request and returns the status of the answer.
async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin, path: &str) -> u16 {
    let request = format!("GET {path} HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("a connection");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default()
}

/// Applies a state as soon as the master can be reached.
async fn apply(driver: &mut Driver, desired: &Desired) {
    let mut last = String::new();
    for _ in 0..1200 {
        match driver.apply(desired).await {
            Ok(()) => return,
            Err(error) => last = error,
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{last}");
}

#[tokio::test]
async fn states_are_served_and_what_weir_refuses_does_not_stop_them() {
    let Some(program) = weir() else { return };
    let folder = Folder::new("driver");
    let mut driver = Driver::new(folder.0.clone(), folder.0.join("master.sock"));
    driver.prepare().unwrap();
    let mut weir = Running::start(&program, &folder.0);
    let at = address();
    let connect = async || TcpStream::connect(at).await.unwrap();
    apply(&mut driver, &desired(at, &[("/a", "a"), ("/b", "b")], &[("a", 201), ("b", 202)])).await;
    assert_eq!(ask(UnixStream::connect(folder.0.join("ready.sock")).await.unwrap(), "/").await, 200);
    let kept = connect().await;
    for (path, expected) in [("/a", 201), ("/b/c", 202), ("/c", 404)] {
        assert_eq!(ask(connect().await, path).await, expected, "{path}");
    }
    // No answer has such a status.
    let wrong = desired(at, &[("/a", "a"), ("/b", "b"), ("/c", "c")], &[("a", 999), ("b", 203), ("c", 1000)]);
    apply(&mut driver, &wrong).await;
    for (path, expected) in [("/a", 500), ("/b", 203), ("/c", 500)] {
        assert_eq!(ask(connect().await, path).await, expected, "{path}");
    }
    // A connection of before is served on.
    assert_eq!(ask(kept, "/a").await, 201);
    // Weir serves the same after a restart, and the controller goes on with it.
    weir.stop();
    let _weir = Running::start(&program, &folder.0);
    apply(&mut driver, &desired(at, &[("/a", "a")], &[("a", 204)])).await;
    assert_eq!((ask(connect().await, "/a").await, ask(connect().await, "/b").await), (204, 404));
}
