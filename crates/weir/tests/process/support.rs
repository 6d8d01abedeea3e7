//! Starts programs, communicates with them, and waits for events.

pub use crate::ports::free_port;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Timeout of a test that hangs; even on a busy machine, normal runs take a fraction of it.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// The result of a process.
#[derive(Debug)]
pub struct ProcessResult {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl ProcessResult {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }
}

/// Runs the program until it exits.
pub fn weir<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> ProcessResult {
    run(Command::new(WEIR).args(arguments))
}

/// The same with arguments in one line.
pub fn line(arguments: &str) -> ProcessResult {
    weir(arguments.split_whitespace())
}

/// Runs a command until it exits; one that hangs is killed.
pub fn run(command: &mut Command) -> ProcessResult {
    Running::start(command).finish()
}

/// A process that is killed at the end of the test.
pub struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: Option<thread::JoinHandle<String>>,
    done: Option<mpsc::Sender<()>>,
}

impl Running {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut pipe = child.stderr.take().expect("a pipe");
        let stderr = thread::spawn(move || {
            let mut text = Vec::new();
            let _ = pipe.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let (done, wait) = mpsc::channel();
        let pid = pid(child.id());
        thread::spawn(move || {
            if wait.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        Self { child, stdout, stderr: Some(stderr), done: Some(done) }
    }

    pub fn weir(arguments: &[&str]) -> Self {
        Self::start(Command::new(WEIR).args(arguments))
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the exit status, if it has exited.
    pub fn try_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child")
    }

    /// Sends a signal. If the process handles the signal, waits first until its handler is installed.
    pub fn send(&self, signal: Signal) {
        if [Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2].contains(&signal) {
            wait_until("the process catches signals", || catches(self.child.id(), signal));
        }
        kill_process(pid(self.child.id()), signal).expect("the process lives");
    }

    /// Reads lines of standard output until one satisfies, and returns it.
    pub fn wait_for_line(&mut self, satisfies: impl Fn(&str) -> bool) -> String {
        let mut seen = String::new();
        loop {
            let mut line = String::new();
            let read = self.stdout.read_line(&mut line).expect("text");
            assert!(read > 0, "the output ended:\n{seen}");
            if satisfies(&line) {
                return line;
            }
            seen.push_str(&line);
        }
    }

    /// Waits until both pipes are closed and the process has exited.
    pub fn finish(mut self) -> ProcessResult {
        let mut stdout = String::new();
        let _ = self.stdout.read_to_string(&mut stdout);
        let stderr = self.stderr.take().expect("once").join().expect("the reader");
        let status = self.child.wait().expect("the process");
        self.done = None;
        ProcessResult { status, stdout, stderr }
    }
}

/// Whether a process has a handler for a signal, or reads it by other means (proc(5), `SigCgt` and `SigBlk`).
fn catches(process: u32, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mask = |field: &str| {
        let text = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or("0");
        u64::from_str_radix(text.trim(), 16).unwrap_or(0)
    };
    (mask("SigCgt:") | mask("SigBlk:")) >> (signal.as_raw() - 1) & 1 == 1
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn pid(number: u32) -> Pid {
    Pid::from_raw(i32::try_from(number).expect("a process number")).expect("not zero")
}

/// A folder that is removed at the end of the test.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        Self::inside(&std::env::temp_dir())
    }

    /// Creates a folder in memory, if possible: other users of a disk do not delay it.
    pub fn in_memory() -> Self {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Self::inside(memory) } else { Self::new() }
    }

    fn inside(place: &Path) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = place.join(format!("weir-test-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).expect("a folder of our own");
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file and returns its path as text.
    pub fn write(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).expect("a folder");
        }
        std::fs::write(&path, content).expect("written");
        path.to_str().expect("text").to_owned()
    }

    pub fn text(&self) -> &str {
        self.0.to_str().expect("text")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Connects as soon as the port is open.
pub fn connect(port: u16) -> TcpStream {
    let stream = poll(&format!("somebody on port {port}"), || TcpStream::connect(("127.0.0.1", port)).ok());
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream
}

/// Connects to a UNIX socket as soon as it is open: other sockets of the process may listen earlier.
pub fn connect_unix(path: &Path) -> UnixStream {
    let stream = poll(&format!("somebody at {}", path.display()), || UnixStream::connect(path).ok());
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream
}

/// Returns the contents of a file as soon as it has a complete line.
pub fn wait_for_file(path: &Path) -> String {
    poll(&path.display().to_string(), || std::fs::read_to_string(path).ok().filter(|text| text.ends_with('\n')))
}

/// Waits until a condition is true.
pub fn wait_until(what: &str, holds: impl Fn() -> bool) {
    poll(what, || holds().then_some(()));
}

fn poll<T>(what: &str, attempt: impl Fn() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(result) = attempt() {
            return result;
        }
        assert!(start.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Sends a request and reads one answer with a length: status and body.
pub fn exchange(stream: &mut TcpStream, request: &str) -> (u16, String) {
    exchange_on(stream, request)
}

/// The same on a stream of any type.
pub fn exchange_on(stream: &mut (impl Read + Write), request: &str) -> (u16, String) {
    stream.write_all(request.as_bytes()).expect("sent");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream
            .read_exact(&mut byte)
            .unwrap_or_else(|error| panic!("{error} behind {}", String::from_utf8_lossy(&head)));
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text").to_ascii_lowercase();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.trim().parse().expect("a length"));
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("the body");
    (status, String::from_utf8_lossy(&body).into_owned())
}

pub fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: weir.test\r\n\r\n")
}

/// Reads to the end of the stream, or to a reset.
pub fn wait_for_close(mut stream: TcpStream) {
    let mut rest = [0; 1024];
    while matches!(stream.read(&mut rest), Ok(1..)) {}
}

/// Lines at the start of most configurations.
pub const DEFAULTS: &str =
    "defaults\n    mode http\n    timeout client 100s\n    timeout server 100s\n    timeout connect 100s\n";
