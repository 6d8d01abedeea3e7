//! Runs sequences against one process: a backend, a thread and a connection of the runtime API for each.

use super::events::{Random, VARIANTS, Variant, command, options};
use crate::support::{Folder, PATIENCE, Running, connect_unix, exchange_on};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// Events of one server, and its states after each; without events, so many random ones are made.
#[derive(Debug, Clone)]
pub struct Sequence {
    pub variant: usize,
    pub events: Vec<String>,
    pub states: Vec<String>,
    pub seed: u64,
}

/// Events of a random sequence, in addition to its start.
const LENGTH: usize = 10;

impl Sequence {
    pub fn random(seed: u64) -> Self {
        let variant = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).variant();
        Self { variant, events: Vec::new(), states: Vec::new(), seed }
    }
}

/// Runs the sequences, each with a backend of its own; returns them with the states that the program showed.
pub fn run(program: &str, sequences: Vec<Sequence>) -> Vec<Sequence> {
    let folder = Folder::in_memory();
    let mut text = format!(
        "global\n nbthread 1\n maxconn 4000\n stats maxconn 1000\n stats socket {0}/s level admin\n\
         defaults\n mode http\n retries 0\n timeout client 100s\n timeout server 100s\n timeout connect 100s\n \
         timeout check 100s\nfrontend f\n bind unix@{0}/f\n use_backend %[req.hdr(x-backend)]\n",
        folder.text()
    );
    let backends: Vec<Backend> = sequences.iter().map(|_| Backend::new()).collect();
    for (number, (sequence, backend)) in sequences.iter().zip(&backends).enumerate() {
        let Variant { lines, .. } = VARIANTS[sequence.variant];
        let _ = write!(
            text,
            "backend b{number}\n option httpchk GET /check\n {lines}\n server a 127.0.0.1:{} {} inter 100ms\n\
             backend u{number}\n option httpchk GET /check\n {lines}\n server t 127.0.0.1:1 track b{number}/a\n",
            backend.port,
            options(sequence.variant, backend.agent_port),
        );
    }
    let file = folder.write("proxy.cfg", &text);
    let running = Running::start(Command::new(program).args(["-db", "-f", &file]));
    let tasks: Vec<_> = sequences
        .into_iter()
        .zip(backends)
        .enumerate()
        .map(|(number, (sequence, backend))| {
            let (api, frontend) = (folder.path("s"), folder.path("f"));
            thread::spawn(move || {
                let mut api = connect_unix(&api);
                api.write_all(b"prompt\n").expect("sent");
                let mut course = Course {
                    number,
                    api: BufReader::new(api),
                    frontend,
                    backend,
                    check: None,
                    agent: None,
                    active: [false; 2],
                    maintenance: false,
                };
                course.prompt();
                course.run(sequence)
            })
        })
        .collect();
    let done = tasks.into_iter().map(|task| task.join().expect("a sequence")).collect();
    drop(running);
    done
}

/// The server of one backend, as a listener for checks and requests, and its agent.
struct Backend {
    port: u16,
    agent_port: u16,
    checks: Receiver<TcpStream>,
    agents: Receiver<TcpStream>,
}

impl Backend {
    fn new() -> Self {
        let server = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let agent = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let port = server.local_addr().expect("an address").port();
        let agent_port = agent.local_addr().expect("an address").port();
        let ((held, checks), (asked, agents)) = (channel(), channel());
        thread::spawn(move || {
            for stream in server.incoming() {
                let Ok(stream) = stream else { continue };
                if !serve(stream, &held) {
                    return;
                }
            }
        });
        thread::spawn(move || {
            for stream in agent.incoming() {
                let Ok(stream) = stream else { continue };
                if asked.send(stream).is_err() {
                    return;
                }
            }
        });
        Self { port, agent_port, checks, agents }
    }
}

/// Holds a check, or answers a request with the status in its path. False: the sequence is over.
fn serve(stream: TcpStream, held: &Sender<TcpStream>) -> bool {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        if first.is_empty() {
            first.clone_from(&line);
        }
        line.clear();
    }
    let mut stream = reader.into_inner();
    match first.split(' ').nth(1) {
        Some("/check") => return held.send(stream).is_ok(),
        Some(path) => {
            let status = path.trim_start_matches('/');
            let _ = write!(stream, "HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
        None => {}
    }
    true
}

/// A sequence under way.
struct Course {
    number: usize,
    api: BufReader<UnixStream>,
    frontend: std::path::PathBuf,
    backend: Backend,
    check: Option<TcpStream>,
    agent: Option<TcpStream>,
    /// Whether a check and an agent are enabled and not paused: results of others are not awaited.
    active: [bool; 2],
    maintenance: bool,
}

impl Course {
    fn run(mut self, mut sequence: Sequence) -> Sequence {
        let mut random = Random(sequence.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let given = std::mem::take(&mut sequence.events);
        let length = if given.is_empty() { LENGTH + 1 } else { given.len() };
        for step in 0..length {
            let event = match given.get(step) {
                Some(event) => event.clone(),
                None if step == 0 => "start".to_owned(),
                None => {
                    let (check, agent) = (self.check.is_some(), self.agent.is_some());
                    random.event(self.active[0] && check, self.active[1] && agent, self.maintenance).to_owned()
                }
            };
            let mut state = self.happen(&event);
            self.settle(&format!("{:?} {event}", sequence.events));
            state.push_str(&self.state());
            sequence.events.push(event);
            sequence.states.push(state);
        }
        sequence
    }

    /// Makes an event happen. Returns what is seen of it at once, which is the status of a request's answer.
    fn happen(&mut self, event: &str) -> String {
        let answered = match event.as_bytes() {
            [b'c', ..] => self.check.take().map(|stream| answer_check(stream, &event[1..])),
            [b'a', b':', ..] => self.agent.take().map(|stream| answer_agent(stream, &event[2..])),
            [b'r', ..] => return self.request(&event[1..]),
            b"start" => return "|".to_owned(),
            _ => {
                self.ask(&command(event, self.number));
                return "|".to_owned();
            }
        };
        if answered.is_some() { "|".to_owned() } else { "not asked|".to_owned() }
    }

    fn request(&self, status: &str) -> String {
        let mut stream = connect_unix(&self.frontend);
        let head =
            format!("GET /{status} HTTP/1.1\r\nhost: x\r\nx-backend: b{}\r\nconnection: close\r\n\r\n", self.number);
        format!("{}|", exchange_on(&mut stream, &head).0)
    }

    /// Waits until each kind of check is at its next question, or is not to ask any more.
    fn settle(&mut self, events: &str) {
        let start = std::time::Instant::now();
        loop {
            let row = self.row();
            assert!(start.elapsed() < PATIENCE, "{}: neither a check nor the end of checks: {events}", self.number);
            let number = |name: &str| row[name].parse::<u32>().expect("a number");
            self.maintenance = number("srv_admin_state") & 1 == 1;
            self.active = ["srv_check_state", "srv_agent_state"].map(|name| number(name) & 12 == 4);
            let checks = wait(&mut self.check, &self.backend.checks, self.active[0]);
            let agents = wait(&mut self.agent, &self.backend.agents, self.active[1]);
            if checks && agents {
                return;
            }
        }
    }

    /// The server's row of `show servers state`.
    fn row(&mut self) -> HashMap<String, String> {
        let text = self.ask(&format!("show servers state b{}", self.number));
        table(&text, ' ').remove("a").unwrap_or_else(|| panic!("no server in {text:?}"))
    }

    fn state(&mut self) -> String {
        let row = self.row();
        let asked = |name: &str| row[name].parse::<u32>().expect("a number") & !1;
        let follower = self.ask(&format!("show servers state u{}", self.number));
        let follower = table(&follower, ' ').remove("t").expect("the server that tracks");
        let shown = self.ask(&format!("show stat b{} 4 -1", self.number));
        let shown = table(&shown, ',').remove("a").expect("the server");
        let followed = self.ask(&format!("show stat u{} 4 -1", self.number));
        let followed = table(&followed, ',').remove("t").expect("the server that tracks");
        [
            shown["status"].clone(),
            row["srv_op_state"].clone(),
            row["srv_admin_state"].clone(),
            row["srv_uweight"].clone(),
            row["srv_check_health"].clone(),
            asked("srv_check_state").to_string(),
            asked("srv_agent_state").to_string(),
            shown["agent_status"].trim_start_matches("* ").to_owned(),
            shown["chkfail"].clone(),
            shown["chkdown"].clone(),
            followed["status"].clone(),
            follower["srv_op_state"].clone(),
            follower["srv_admin_state"].clone(),
        ]
        .join("|")
    }

    fn ask(&mut self, command: &str) -> String {
        self.api.get_mut().write_all(format!("{command}\n").as_bytes()).expect("sent");
        self.prompt()
    }

    /// Reads up to the next prompt.
    fn prompt(&mut self) -> String {
        let mut text = Vec::new();
        while !text.ends_with(b"\n> ") {
            let mut byte = [0];
            self.api.read_exact(&mut byte).expect("the runtime API answers");
            text.push(byte[0]);
        }
        text.truncate(text.len() - 3);
        String::from_utf8(text).expect("text")
    }
}

fn answer_check(mut stream: TcpStream, result: &str) {
    if result != "close" {
        let _ = write!(stream, "HTTP/1.1 {result} x\r\ncontent-length: 0\r\n\r\n");
    }
}

fn answer_agent(mut stream: TcpStream, words: &str) {
    let _ = writeln!(stream, "{}", words.replace('_', " "));
}

/// Whether the next question has come, or none is to come. By the flags of `show servers state`, a check that is enabled (4)
/// and not paused (8) asks (management manual, "show servers state").
fn wait(held: &mut Option<TcpStream>, coming: &Receiver<TcpStream>, active: bool) -> bool {
    if held.is_none() && active {
        *held = coming.recv_timeout(Duration::from_millis(300)).ok();
    }
    held.is_some() || !active
}

/// Rows of a table whose header begins with `#`, by the name of the server.
fn table(text: &str, separator: char) -> HashMap<String, HashMap<String, String>> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with('#'));
    let header: Vec<&str> = lines.next().map_or(Vec::new(), |line| line[2..].split(separator).collect());
    let rows = lines.filter(|line| line.contains(separator)).map(|line| {
        let fields = line.split(separator);
        header.iter().map(|&name| name.to_owned()).zip(fields.map(str::to_owned)).collect::<HashMap<_, _>>()
    });
    let name = |row: &HashMap<String, String>| row.get("srv_name").or(row.get("svname")).cloned();
    rows.filter_map(|row| Some((name(&row)?, row))).collect()
}
