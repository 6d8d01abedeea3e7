//! Plays one peer's script. It must never decide whether a case has passed.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, Socket, Type};

use crate::data::{Data, find};
use crate::failure::{Failure, Result};
use crate::journal::Journal;
use crate::link::{End, Link, WaitLimit};
use crate::names::{self, NameServer};
use crate::pattern::Pattern;
use crate::script::{Line, ScriptStep};
use crate::subject::Running;
use crate::world::{PeerAddress, World};

/// A running peer.
pub(crate) struct Peer<'a> {
    pub(crate) name: String,
    /// The state shared by all peers.
    pub(crate) world: &'a World,
    pub(crate) journal: &'a Journal,
    /// The subject's process.
    pub(crate) running: &'a Mutex<Running>,
    /// The values of `${i}` and `${n}`.
    pub(crate) variables: HashMap<&'static str, String>,
    links: HashMap<String, Link>,
    current: String,
    log_seen: usize,
    rests: bool,
}

/// The maximum length of a wait before the deadline is checked again.
const SLICE: Duration = Duration::from_millis(20);

impl<'a> Peer<'a> {
    /// Creates a peer that has done nothing yet.
    pub(crate) fn new(name: String, world: &'a World, journal: &'a Journal, running: &'a Mutex<Running>) -> Self {
        let (links, variables) = (HashMap::new(), HashMap::new());
        Self { name, world, journal, running, variables, links, current: String::new(), log_seen: 0, rests: false }
    }

    /// Plays the script and returns the connections that are still open.
    pub(crate) fn play(mut self, script: &[Line]) -> Vec<(String, Link)> {
        if let Err(failure) = self.lines(script) {
            self.world.fail(failure);
        }
        if !self.rests {
            self.world.rest();
        }
        self.links.into_iter().collect()
    }

    fn lines(&mut self, script: &[Line]) -> Result<()> {
        for line in script {
            self.step(&line.step).map_err(|failure| failure.at(format_args!("{}, line {}", self.name, line.number)))?;
        }
        Ok(())
    }

    fn step(&mut self, step: &ScriptStep) -> Result<()> {
        match step {
            ScriptStep::Connect { listener, name, from, receive_buffer } => {
                let link = self.connect(listener, *from, *receive_buffer)?;
                self.take(name, link)
            }
            ScriptStep::Accept { name } => {
                let link = Link::new(self.accept()?)?;
                self.take(name, link)
            }
            ScriptStep::On(name) => self.switch(name),
            ScriptStep::Send(data)
            | ScriptStep::TrySend(data)
            | ScriptStep::Expect(data)
            | ScriptStep::ExpectChunks(data)
            | ScriptStep::ExpectLastChunk(data) => {
                let bytes = self.render(data)?;
                self.with_link(|link, patience| exchange(link, step, &bytes, patience))
            }
            ScriptStep::ExpectMatch(regex) => self.with_link(|link, patience| link.expect_match(regex, patience)),
            ScriptStep::Receive(count) => self.with_link(|link, patience| link.receive(*count, patience)),
            ScriptStep::ReceiveRest => self.with_link(|link, patience| link.receive_rest(patience).map(drop)),
            ScriptStep::ExpectEof => self.with_link(|link, patience| link.expect_end(Some(End::Eof), patience)),
            ScriptStep::ExpectReset => self.with_link(|link, patience| link.expect_end(Some(End::Reset), patience)),
            ScriptStep::ExpectEnd => self.with_link(|link, patience| link.expect_end(None, patience)),
            ScriptStep::ExpectNothing => self.with_link(|link, _| link.expect_nothing()),
            ScriptStep::Shutdown => self.with_link(|link, _| link.shutdown()),
            ScriptStep::Close => self.give_up_link().map(drop),
            ScriptStep::Reset => self.give_up_link()?.reset(),
            ScriptStep::Accepted => self.with_link(|link, patience| link.await_accept(patience)),
            ScriptStep::Settle => self.with_link(|link, patience| link.settle(patience)),
            ScriptStep::Signal(name) => {
                self.world.signal(name);
                Ok(())
            }
            ScriptStep::Answer { name, kind, reply } => {
                let reply = String::from_utf8_lossy(&self.render(reply)?).into_owned();
                self.nameserver()?.set(name, *kind, names::reply(*kind, &reply)?);
                Ok(())
            }
            ScriptStep::Asked { name, kind, count } => self.wait_asked(name, *kind, *count),
            ScriptStep::Wait { name, count } => self.wait(name, *count),
            ScriptStep::WaitLog(pattern) => self.wait_log(pattern),
            ScriptStep::Listen => Ok(self.own_socket()?.listen(128)?),
            ScriptStep::Unlisten => Ok(self.own_socket()?.shutdown(std::net::Shutdown::Both)?),
            ScriptStep::Serve(answer) => self.serve(answer),
            ScriptStep::Sequence { listener, bodies, request } => self.sequence(listener, bodies, request.as_ref()),
            ScriptStep::Spread { listener, requests, shares, within } => {
                self.spread(listener, *requests, shares, *within)
            }
            ScriptStep::Repeat { times, script } => self.repeat(*times, script),
            ScriptStep::Kill(signal) => self.process()?.signal(signal),
            ScriptStep::ExpectExit(code) => self.expect_exit(*code),
        }
    }

    fn repeat(&mut self, times: usize, script: &[Line]) -> Result<()> {
        for n in 1..=times {
            self.variables.insert("n", n.to_string());
            self.lines(script).map_err(|failure| failure.at(format_args!("{n}. time")))?;
        }
        Ok(())
    }

    fn render(&self, data: &Data) -> Result<Vec<u8>> {
        data.render(&|name| self.variables.get(name).cloned().or_else(|| self.world.lookup(name)))
    }

    fn take(&mut self, name: &str, link: Link) -> Result<()> {
        name.clone_into(&mut self.current);
        match self.links.insert(name.to_owned(), link) {
            None => Ok(()),
            Some(_) => Err(Failure::new("the connection of that name is still open: close it, or use `as NAME`")),
        }
    }

    fn switch(&mut self, name: &str) -> Result<()> {
        if !self.links.contains_key(name) {
            return Err(Failure::new(format!("no open connection is called {name}")));
        }
        name.clone_into(&mut self.current);
        Ok(())
    }

    fn give_up_link(&mut self) -> Result<Link> {
        self.links.remove(&self.current).ok_or_else(|| Failure::new("no connection"))
    }

    fn with_link<T>(&mut self, act: impl FnOnce(&mut Link, &WaitLimit<'_>) -> Result<T>) -> Result<T> {
        let cancelled = || self.world.has_failed();
        let patience = WaitLimit { until: Instant::now() + self.world.limit, cancelled: &cancelled };
        let link = self.links.get_mut(&self.current).ok_or_else(|| Failure::new("no connection"))?;
        act(link, &patience)
    }

    /// Polls, without delay, until there is a result.
    fn until<T>(&self, what: &str, mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
        let cancelled = || self.world.has_failed();
        let patience = WaitLimit { until: Instant::now() + self.world.limit, cancelled: &cancelled };
        loop {
            if let Some(found) = look()? {
                return Ok(found);
            }
            patience.check(what)?;
        }
    }

    fn connect(&self, listener: &str, from: Option<IpAddr>, receive_buffer: Option<usize>) -> Result<Link> {
        let place =
            self.world.listeners.get(listener).ok_or_else(|| Failure::new(format!("no listener {listener}")))?;
        let once = || {
            let socket = Socket::new(place.address.domain(), Type::STREAM, None)?;
            if let Some(size) = receive_buffer {
                socket.set_recv_buffer_size(size)?;
            }
            if let Some(ip) = from {
                socket.bind(&SockAddr::from(SocketAddr::new(ip, 0)))?;
            }
            socket.connect(&place.address)?;
            if place.address.domain() != Domain::UNIX {
                socket.set_tcp_nodelay(true)?;
            }
            Ok(socket)
        };
        let socket = self.until("there is no listener", || match once() {
            Ok(socket) => Ok(Some(socket)),
            Err(error) if too_early(place, &error) => {
                self.process()?.status()?;
                std::thread::sleep(Duration::from_millis(2));
                Ok(None)
            }
            Err(error) => Err(Failure::new(format!("connecting: {error}"))),
        })?;
        Link::new(socket)
    }

    fn own_socket(&self) -> Result<&'a Socket> {
        let place = self.world.servers.get(&self.name);
        place.and_then(|place| place.socket.as_ref()).ok_or_else(|| Failure::new("only a server can do this"))
    }

    fn accept(&self) -> Result<Socket> {
        let listening = self.own_socket()?;
        self.until("no connection came", || match listening.accept() {
            Ok((socket, address)) => {
                if address.domain() != Domain::UNIX {
                    socket.set_tcp_nodelay(true)?;
                }
                Ok(Some(socket))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1));
                Ok(None)
            }
            Err(error) => Err(Failure::new(format!("accepting: {error}"))),
        })
    }

    fn wait(&self, name: &str, count: usize) -> Result<()> {
        self.until(&format!("signal {name}"), || Ok(self.world.wait_signal(name, count, SLICE).then_some(())))
    }

    fn nameserver(&self) -> Result<&'a NameServer> {
        let found = self.world.nameservers.get(&self.name);
        found.ok_or_else(|| Failure::new("only a name server can do this"))
    }

    /// Waits for a number of queries of a type from now on.
    fn wait_asked(&self, name: &str, kind: u16, count: usize) -> Result<()> {
        let nameserver = self.nameserver()?;
        let before = nameserver.asked(name, kind);
        self.until(&format!("question about {name}"), || {
            let enough = nameserver.asked(name, kind) >= before + count;
            if !enough {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(enough.then_some(()))
        })
    }

    /// Waits for a line that this peer has not waited for yet.
    fn wait_log(&mut self, pattern: &Pattern) -> Result<()> {
        let mut seen = self.log_seen;
        let found = self.until("log line", || {
            let lines = self.journal.lines();
            if let Some(at) = lines[seen..].iter().position(|line| pattern.matches(line)) {
                return Ok(Some(seen + at + 1));
            }
            seen = lines.len();
            self.journal.wait_beyond(seen);
            Ok(None)
        });
        self.log_seen = found.map_err(|failure| Failure::new(format!("{failure} {}", pattern.as_written())))?;
        Ok(())
    }

    /// Accepts until every other peer has finished, and responds to each request's head.
    fn serve(&mut self, answer: &Data) -> Result<()> {
        let answer = self.render(answer)?;
        let listening = self.own_socket()?;
        self.rests = true;
        self.world.rest();
        std::thread::scope(|scope| {
            while !self.world.wait_over(Duration::from_millis(1)) {
                if let Ok((socket, _)) = listening.accept() {
                    let (world, answer) = (self.world, &answer);
                    scope.spawn(move || serve_one(world, socket, answer));
                }
            }
        });
        Ok(())
    }

    /// Sends one request on a connection of its own; returns the response body.
    fn ask(&self, listener: &str, request: &[u8]) -> Result<String> {
        let cancelled = || self.world.has_failed();
        let patience = WaitLimit { until: Instant::now() + self.world.limit, cancelled: &cancelled };
        let mut link = self.connect(listener, None, None)?;
        link.send(request, &patience)?;
        let (answer, _) = link.receive_rest(&patience)?;
        let body = find(&answer, b"\r\n\r\n").map_or(&answer[..0], |end| &answer[end + 4..]);
        Ok(String::from_utf8_lossy(body).trim().to_owned())
    }

    fn sequence(&mut self, listener: &str, bodies: &[String], request: Option<&Data>) -> Result<()> {
        let mut got = Vec::new();
        for n in 1..=bodies.len() {
            self.variables.insert("n", n.to_string());
            let request = request.map_or_else(|| Ok(USUAL_REQUEST.to_vec()), |request| self.render(request))?;
            got.push(self.ask(listener, &request)?);
        }
        if got == bodies {
            return Ok(());
        }
        Err(Failure::new(format!("other answers\n      want {}\n      got  {}", bodies.join(" "), got.join(" "))))
    }

    fn spread(&mut self, listener: &str, requests: usize, shares: &[(String, usize)], within: usize) -> Result<()> {
        let mut counts: HashMap<String, usize> = HashMap::new();
        for _ in 0..requests {
            *counts.entry(self.ask(listener, USUAL_REQUEST)?).or_default() += 1;
        }
        let fits = |(body, share): &(String, usize)| counts.get(body).copied().unwrap_or(0).abs_diff(*share) <= within;
        if shares.iter().all(fits) {
            return Ok(());
        }
        Err(Failure::new(format!("another spread: {counts:?}")))
    }

    fn process(&self) -> Result<std::sync::MutexGuard<'a, Running>> {
        self.running.lock().map_err(|_| Failure::new("another peer panicked"))
    }

    fn expect_exit(&self, code: i32) -> Result<()> {
        let status = self.until("the process does not end", || {
            std::thread::sleep(Duration::from_millis(2));
            self.process()?.status()
        })?;
        if status.code() == Some(code) {
            return Ok(());
        }
        Err(Failure::new(format!("ended with {status}, not with status {code}")))
    }
}

const USUAL_REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

/// Sends or expects bytes.
fn exchange(link: &mut Link, step: &ScriptStep, bytes: &[u8], patience: &WaitLimit<'_>) -> Result<()> {
    match step {
        ScriptStep::Send(_) => link.send(bytes, patience),
        ScriptStep::Expect(_) => link.expect(bytes, patience),
        ScriptStep::ExpectChunks(_) => link.expect_chunks(bytes, patience),
        ScriptStep::ExpectLastChunk(_) => link.expect_last_chunk(bytes, patience),
        _ => {
            // `try-send`: the other side may have closed.
            let _ = link.send(bytes, patience);
            Ok(())
        }
    }
}

/// Whether an error may mean that the subject has not opened the address yet.
fn too_early(place: &PeerAddress, error: &std::io::Error) -> bool {
    place.opened_by_subject && matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound)
}

/// Responds to each head on one connection until the case is over.
fn serve_one(world: &World, socket: Socket, answer: &[u8]) {
    let cancelled = || world.is_over();
    let patience = WaitLimit { until: Instant::now() + world.limit * 4, cancelled: &cancelled };
    let Ok(mut link) = Link::new(socket) else { return };
    let Ok(head_end) = regex_lite::Regex::new("^(?s:.*?\r\n\r\n)") else { return };
    while link.expect_match(&head_end, &patience).is_ok() && link.send(answer, &patience).is_ok() {}
}
