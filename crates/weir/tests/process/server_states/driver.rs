//! Runs sequences in one process, each with its own backend, thread and runtime API connection.

use super::events::{ObserveSettings, Random, VARIANTS, Variant, command, is_error, options};
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

/// Events of one server, and its states after each; without events, random ones are generated.
#[derive(Debug, Clone)]
pub struct Sequence {
    pub variant: usize,
    pub events: Vec<String>,
    pub states: Vec<String>,
    pub seed: u64,
    /// A check came while none was to wait: what the program shows is that of another sequence.
    pub spoiled: bool,
}

/// Number of events of a random sequence, in addition to its start.
const LENGTH: usize = 10;

impl Sequence {
    pub fn random(seed: u64, observes: bool) -> Self {
        let variant = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).variant(observes);
        Self { variant, events: Vec::new(), states: Vec::new(), seed, spoiled: false }
    }
}

/// Runs the sequences, each with its own backend; returns them with the states that the program showed.
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
        let Variant { lines, observed, .. } = VARIANTS[sequence.variant];
        let address = match observed {
            Some(observed) if observed.refuses => format!("127.0.0.1:1 port {}", backend.port),
            _ => format!("127.0.0.1:{}", backend.port),
        };
        // Between two checks there is time for requests.
        let inter = if observed.is_some() { "400ms" } else { "100ms" };
        let _ = write!(
            text,
            "backend b{number}\n option httpchk GET /check\n {lines}\n server a {address} {} inter {inter}\n\
             backend u{number}\n option httpchk GET /check\n {lines}\n server t 127.0.0.1:1 track b{number}/a\n",
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
                let mut course = RunningSequence {
                    number,
                    api: BufReader::new(api),
                    frontend,
                    backend,
                    check: None,
                    agent: None,
                    active: [false; 2],
                    maintenance: false,
                    observed: VARIANTS[sequence.variant].observed,
                    errors: 0,
                    spoiled: false,
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

/// The server of a backend, as a listener for checks and requests, and its agent.
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

/// Holds a check, or answers a request with the status in its path. False: the sequence has ended.
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
        Some("/close") => {}
        Some("/junk") => drop(stream.write_all(b"junk\r\n\r\n")),
        Some(path) => {
            let status = path.trim_start_matches('/');
            let _ = write!(stream, "HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
        None => {}
    }
    true
}

/// A running sequence.
struct RunningSequence {
    number: usize,
    api: BufReader<UnixStream>,
    frontend: std::path::PathBuf,
    backend: Backend,
    check: Option<TcpStream>,
    agent: Option<TcpStream>,
    /// Whether the health check and the agent check are enabled and not paused: others are not awaited.
    active: [bool; 2],
    maintenance: bool,
    observed: Option<ObserveSettings>,
    /// Errors of requests since the last success.
    errors: usize,
    spoiled: bool,
}

impl RunningSequence {
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
                    let held = [self.active[0] && check, self.active[1] && agent];
                    match self.observed {
                        Some(observed) => random.observed(held, self.maintenance, observed, self.errors),
                        None => random.event(held[0], held[1], self.maintenance),
                    }
                    .to_owned()
                }
            };
            let mut state = self.happen(&event);
            self.count(&event);
            if self.spoiled && given.is_empty() {
                break;
            }
            self.settle(&format!("{:?} {event}", sequence.events));
            state.push_str(&self.state());
            sequence.events.push(event);
            sequence.states.push(state);
        }
        sequence.spoiled = self.spoiled;
        sequence
    }

    /// Counts errors in a row, so that the next request can be chosen.
    fn count(&mut self, event: &str) {
        match event.as_bytes() {
            [b'c', b'2', ..] | [b'o', ..] => self.errors = 0,
            [b'r', ..] if self.observed.is_some_and(|observed| observed.refuses) || is_error(event) => self.errors += 1,
            [b'r', ..] => self.errors = 0,
            _ => {}
        }
    }

    /// Makes an event happen. Returns what is seen of it at once, which is the status of a request's answer.
    fn happen(&mut self, event: &str) -> String {
        let answered = match event.as_bytes() {
            [b'c', ..] => take(&mut self.check, &self.backend.checks).map(|stream| answer_check(stream, &event[1..])),
            [b'a', b':', ..] => {
                take(&mut self.agent, &self.backend.agents).map(|stream| answer_agent(stream, &event[2..]))
            }
            [b'r', ..] => return self.request(&event[1..]),
            [b'o', ..] => return self.requests_between_checks(&event[1..]),
            b"start" => return "|".to_owned(),
            _ => {
                self.ask(&command(event, self.number));
                return "|".to_owned();
            }
        };
        if answered.is_some() { "|".to_owned() } else { "not asked|".to_owned() }
    }

    /// Has the check that is held succeed, and sends as many requests as errors mark the server, before the next check begins.
    fn requests_between_checks(&mut self, status: &str) -> String {
        let Some(check) = take(&mut self.check, &self.backend.checks) else { return "not asked|".to_owned() };
        answer_check(check, "200");
        let start = std::time::Instant::now();
        while self.check.is_none() && self.row()["srv_check_state"].parse::<u32>().expect("a number") & 1 == 1 {
            assert!(start.elapsed() < PATIENCE, "{}: the check does not end", self.number);
            self.check = self.backend.checks.try_recv().ok();
        }
        let mut answered = String::new();
        for _ in 0..self.observed.map_or(1, |observed| observed.limit) {
            answered = self.request(status);
        }
        self.check = self.check.take().or_else(|| self.backend.checks.try_recv().ok());
        self.spoiled |= self.check.is_some();
        answered
    }

    fn request(&self, status: &str) -> String {
        let mut stream = connect_unix(&self.frontend);
        let head =
            format!("GET /{status} HTTP/1.1\r\nhost: x\r\nx-backend: b{}\r\nconnection: close\r\n\r\n", self.number);
        format!("{}|", exchange_on(&mut stream, &head).0)
    }

    /// Waits until each enabled check has sent its next request.
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

    /// Returns the server's row of `show servers state`.
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
        let mut fields = vec![
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
        ];
        if self.observed.is_some() {
            fields.push(shown["hanafail"].clone());
        }
        fields.join("|")
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

/// The question that is held. One that was given up, as connecting took too long on a busy machine, is followed by another.
fn take(held: &mut Option<TcpStream>, coming: &Receiver<TcpStream>) -> Option<TcpStream> {
    let mut stream = held.take()?;
    loop {
        stream.set_nonblocking(true).expect("a socket");
        let ended = matches!(stream.peek(&mut [0]), Ok(0));
        stream.set_nonblocking(false).expect("a socket");
        if !ended {
            return Some(stream);
        }
        stream = coming.recv_timeout(PATIENCE).ok()?;
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

/// Whether the next request has arrived, or none is expected. By the flags of `show servers state`, a check that is
/// enabled (4) and not paused (8) sends requests (management manual, "show servers state").
fn wait(held: &mut Option<TcpStream>, coming: &Receiver<TcpStream>, active: bool) -> bool {
    if held.is_none() && active {
        *held = coming.recv_timeout(Duration::from_millis(300)).ok();
    }
    held.is_some() || !active
}

/// Parses the rows of a table whose header begins with `#`, by the name of the server.
fn table(text: &str, separator: char) -> HashMap<String, HashMap<String, String>> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with('#'));
    let header: Vec<&str> = lines.next().map_or(Vec::new(), |line| line[2..].split(separator).collect());
    let rows = lines.filter(|line| line.contains(separator)).map(|line| {
        // Separators between quotation marks belong to a field.
        let mut is_quoted = false;
        let fields = line.split(|letter: char| {
            is_quoted ^= letter == '"';
            letter == separator && !is_quoted
        });
        header.iter().map(|&name| name.to_owned()).zip(fields.map(str::to_owned)).collect::<HashMap<_, _>>()
    });
    let name = |row: &HashMap<String, String>| row.get("srv_name").or(row.get("svname")).cloned();
    rows.filter_map(|row| Some((name(&row)?, row))).collect()
}
