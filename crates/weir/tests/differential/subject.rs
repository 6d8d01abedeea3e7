//! One of the programs: the expressions that it rejects, and its answers.

use crate::case::{Case, FILES};
use crate::ports::free_port;
use crate::requests::REQUESTS;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Timeout of a program that hangs; normal runs take a fraction of it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Lines before the first expression.
const HEAD: &str = "defaults\n mode http\n timeout client 60s\n timeout server 60s\n timeout connect 60s\nbackend be\n server s \
                    127.0.0.1:9\nfrontend fe\n default_backend be\n bind 127.0.0.1:PORT\n";

pub struct Subject {
    program: PathBuf,
    version: String,
    folder: PathBuf,
}

/// A process that is killed at the end of the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Subject {
    pub fn new(program: PathBuf) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let output = Command::new(&program).arg("-v").output().expect("the program starts");
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.split_whitespace().nth(2).unwrap_or_default().to_owned();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("weir-differential-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        for (name, content) in FILES {
            std::fs::write(folder.join(name), content).expect("a file");
        }
        Self { program, version, folder }
    }

    /// Returns the version of HAProxy: `2.6.12-1`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Writes a configuration; also returns the case of each line after the head.
    fn write<'a>(&self, port: u16, cases: impl Iterator<Item = (usize, &'a Case)>) -> (PathBuf, Vec<usize>) {
        let (mut text, mut owners) = (HEAD.replace("PORT", &port.to_string()), Vec::new());
        for (index, case) in cases {
            for line in &case.lines {
                let guard = format!("{{ req.hdr(x-case) -m str {index} }}");
                let line = line.replace("GUARD", &guard).replace("FOLDER", &self.folder.to_string_lossy());
                text.push_str(&format!(" {line}\n"));
                owners.push(index);
            }
        }
        let path = self.folder.join("test.cfg");
        std::fs::write(&path, text).expect("a configuration");
        (path, owners)
    }

    /// Returns the cases that the program rejects, by index, with its message.
    pub fn refused(&self, cases: &[Case]) -> BTreeMap<usize, String> {
        let mut refused = BTreeMap::new();
        // A program may stop after some errors: the other cases are checked in further iterations.
        for _ in 0..200 {
            let left = (0..cases.len()).filter(|index| !refused.contains_key(index));
            let (path, owners) = self.write(1, left.map(|index| (index, &cases[index])));
            let output = Command::new(&self.program).arg("-c").arg("-f").arg(&path).output().expect("a check");
            if output.status.success() {
                return refused;
            }
            let before = refused.len();
            let first = HEAD.lines().count() + 1;
            for line in String::from_utf8_lossy(&output.stderr).lines().filter(|line| is_refusal(line)) {
                let number = line.split("test.cfg:").nth(1).and_then(|rest| rest.split(']').next());
                let number: Option<usize> = number.and_then(|number| number.parse().ok());
                let index = number.and_then(|number| number.checked_sub(first)).and_then(|at| owners.get(at));
                if let Some(index) = index {
                    let why = line.rsplit("rule : ").next().unwrap_or(line);
                    refused.entry(*index).or_insert_with(|| why.to_owned());
                }
            }
            assert!(refused.len() > before, "{}", String::from_utf8_lossy(&output.stderr));
        }
        panic!("it goes on refusing");
    }

    /// Returns the answers: for the first request to every case, then for the second, and so on.
    pub fn answers(&self, cases: &[Case]) -> Vec<Vec<u8>> {
        let port = free_port();
        let (path, _) = self.write(port, cases.iter().enumerate());
        let mut command = Command::new(&self.program);
        command.arg("-db").arg("-f").arg(&path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut running = Running(command.spawn().expect("the program starts"));
        let began = Instant::now();
        let stream = loop {
            match TcpStream::connect(("127.0.0.1", port)) {
                Ok(stream) => break stream,
                Err(_) => {
                    assert!(running.0.try_wait().expect("a state").is_none(), "it ended before it listened");
                    assert!(began.elapsed() < PATIENCE, "it does not listen");
                    std::thread::yield_now();
                }
            }
        };
        let mut peer = Peer::new(stream);
        let mut answers = Vec::new();
        for request in REQUESTS {
            for (index, case) in cases.iter().enumerate() {
                if peer.is_closed {
                    peer = Peer::new(TcpStream::connect(("127.0.0.1", port)).expect("another connection"));
                }
                // In one write: a second one would wait for the acknowledgement of the first.
                let whole = format!("{request}X-Case: {index}\r\n\r\n");
                peer.stream.write_all(whole.as_bytes()).expect("the request goes out");
                answers.push(peer.answer(request.starts_with("HEAD"), &case.text()));
            }
        }
        answers
    }
}

/// A connection to the program.
struct Peer {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
    is_closed: bool,
}

impl Peer {
    fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("an option");
        let reader = BufReader::new(stream.try_clone().expect("a second hand"));
        Self { stream, reader, is_closed: false }
    }

    /// Returns the value of the field with the sample; the status if there is none.
    fn answer(&mut self, to_head: bool, case: &str) -> Vec<u8> {
        let (mut value, mut status, mut length) = (None, None, 0);
        loop {
            let mut line = Vec::new();
            let read = self.reader.read_until(b'\n', &mut line).unwrap_or_else(|error| panic!("{case}: {error}"));
            if read == 0 {
                self.is_closed = true;
                return b"the end of the connection".to_vec();
            }
            let line = line.trim_ascii_end();
            if line.is_empty() {
                break;
            }
            if let Some(found) = line.strip_prefix(b"x: ") {
                value = Some(found.to_vec());
            }
            if let Some(found) = line.strip_prefix(b"content-length: ") {
                length = std::str::from_utf8(found).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
            }
            self.is_closed |= line.eq_ignore_ascii_case(b"connection: close");
            status.get_or_insert_with(|| line.get(9..12).unwrap_or_default().to_vec());
        }
        let mut body = vec![0; if to_head { 0 } else { length }];
        std::io::Read::read_exact(&mut self.reader, &mut body).expect("the body");
        value.or(status).unwrap_or_default()
    }
}

/// Whether a line of the output reports an error with its position.
fn is_refusal(line: &str) -> bool {
    // Some of HAProxy's warnings end with a quote on its own line.
    line.trim_start_matches('\'').starts_with("[ALERT]") || line.trim_start().starts_with("parsing [")
}
