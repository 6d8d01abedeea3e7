//! One case against one subject: opens the world, starts the subject, plays the peers, compares the log. It must never
//! know of another case.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::case::{Case, LogSpec, PeerSpec, Role, ServerKind};
use crate::data::{self, show};
use crate::failure::{Failure, Result};
use crate::journal::Journal;
use crate::link::Link;
use crate::parse;
use crate::pattern::LogLine;
use crate::peer::Peer;
use crate::script::ScriptStep;
use crate::subject::{Running, Subject};
use crate::world::World;

/// The settings of a run, in addition to the case.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    /// Time limit of every wait.
    pub(crate) limit: Duration,
    /// `nbthread`, unless the case sets it.
    pub(crate) threads: u32,
}

/// The result of a case, with the data needed to find the cause of a failure.
pub(crate) struct Transcript {
    /// The failures; empty: passed.
    pub(crate) failures: Vec<Failure>,
    /// The received log.
    pub(crate) log: Vec<LogLine>,
    /// The output of the subject.
    pub(crate) output: String,
}

/// Runs the case. An error means that it could not be started.
pub(crate) fn run(case: &Case, subject: &Subject, setting: Setting) -> Result<Transcript> {
    let dir = Directory::new()?;
    let journal = Journal::open()?;
    let world = World::open(case, &subject.title, &dir.0, setting.limit)?;
    write_files(case, &world, &journal, setting)?;
    let inherited: Vec<_> = world.listeners.values().filter_map(|place| place.socket.as_ref()).collect();
    let running = Mutex::new(Running::start(subject, &dir.0, &case.arguments, &inherited)?);
    std::thread::scope(|scope| {
        scope.spawn(|| journal.receive());
        let links = play(case, &world, &journal, &running);
        conclude(case, &world, &journal, &running, links);
        journal.finish();
    });
    let running = running.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let (false, Some(log)) = (world.has_failed(), &case.log)
        && let Err(failure) = compare(log, &journal.lines())
    {
        world.fail(failure);
    }
    Ok(Transcript { failures: world.failures(), log: journal.lines(), output: running.output() })
}

/// Parses a case file for a subject.
pub(crate) fn read(name: &str, path: &Path, subject: &Subject, setting: Setting) -> Result<Case> {
    parse::case(name, path, &fs::read_to_string(path)?, &subject.tags)?.for_threads(setting.threads)
}

/// Plays all scripts and returns the open connections, by peer.
fn play(case: &Case, world: &World, journal: &Journal, running: &Mutex<Running>) -> Vec<(String, Link)> {
    let copies = |spec: &PeerSpec| (1..=spec.copies).map(|copy| (spec.clone(), copy)).collect::<Vec<_>>();
    let peers: Vec<_> = case.peers.iter().flat_map(copies).collect();
    world.expect_peers(peers.len());
    std::thread::scope(|scope| {
        scope.spawn(|| watch(case, world, running));
        let play_one = |(spec, copy): (PeerSpec, usize)| {
            scope.spawn(move || {
                let name = if spec.copies == 1 { spec.name.clone() } else { format!("{}[{copy}]", spec.name) };
                let mut peer = Peer::new(name, world, journal, running);
                peer.variables.insert("i", copy.to_string());
                peer.play(&spec.script)
                    .into_iter()
                    .map(|(link, open)| (format!("{} {link}", spec.name), open))
                    .collect::<Vec<_>>()
            })
        };
        let threads: Vec<_> = peers.into_iter().map(play_one).collect();
        let mut links = Vec::new();
        for thread in threads {
            match thread.join() {
                Ok(open) => links.extend(open),
                Err(_) => world.fail(Failure::new("a peer's thread panicked")),
            }
        }
        links
    })
}

/// Checks the end of a case: nothing may be left unread or unaccepted, the expected log lines must arrive, and the
/// subject must exit normally.
fn conclude(case: &Case, world: &World, journal: &Journal, running: &Mutex<Running>, links: Vec<(String, Link)>) {
    let mut subject = running.lock().unwrap_or_else(PoisonError::into_inner);
    if !world.has_failed() {
        let complaints = [await_log(case, journal, world.limit), nothing_left(case, world, links)];
        complaints.into_iter().filter_map(Result::err).for_each(|failure| world.fail(failure));
    }
    let exits_by_script = case.peers.iter().any(|peer| peer.role == Role::Process);
    match subject.stop(world.limit) {
        Err(failure) if !exits_by_script => world.fail(failure.at("the subject")),
        _ => {}
    }
    if subject.output().contains("panicked at") {
        world.fail(Failure::new("the subject panicked"));
    }
}

/// Fails the case as soon as the subject has exited by itself: its peers would wait in vain. Does nothing if a script
/// ends the subject.
fn watch(case: &Case, world: &World, running: &Mutex<Running>) {
    if case.peers.iter().any(|peer| peer.role == Role::Process) {
        return;
    }
    while !world.wait_over(WATCH) {
        let ended = running.lock().unwrap_or_else(PoisonError::into_inner).status();
        if !matches!(ended, Ok(None)) {
            return world.fail(Failure::new("the subject ended by itself"));
        }
    }
}

/// The interval of checking the subject.
const WATCH: Duration = Duration::from_millis(100);

/// Waits until the number of lines that the case lists has arrived; they are compared later.
fn await_log(case: &Case, journal: &Journal, limit: Duration) -> Result<()> {
    let Some(log) = &case.log else { return Ok(()) };
    let until = Instant::now() + limit;
    while journal.wait_beyond(log.lines.len().saturating_sub(1)) < log.lines.len() {
        if Instant::now() > until {
            let (wanted, came) = (log.lines.len(), journal.lines().len());
            return Err(Failure::new(format!("{came} log lines came, {wanted} were expected")));
        }
    }
    Ok(())
}

/// Checks that nothing is left. All connections stay open until this returns, so that the effects of closing one are
/// not seen.
fn nothing_left(case: &Case, world: &World, mut links: Vec<(String, Link)>) -> Result<()> {
    for (name, link) in &mut links {
        let bytes = link.leftover().unwrap_or_default();
        if !bytes.is_empty() {
            return Err(Failure::new(format!("{name}: bytes that no step asked for: {}", show(&bytes))));
        }
    }
    for peer in &case.peers {
        // A server with `serve` ends with the other scripts; a health check may connect after that.
        let serves = peer.script.iter().any(|line| matches!(line.step, ScriptStep::Serve(_)));
        let strict = !serves && matches!(peer.role, Role::Server { spare: false, kind } if kind != ServerKind::Full);
        let socket = world.servers.get(&peer.name).and_then(|place| place.socket.as_ref());
        if strict && socket.is_some_and(|socket| socket.accept().is_ok()) {
            return Err(Failure::new(format!("{}: a connection that no step accepts", peer.name)));
        }
    }
    Ok(())
}

fn compare(expected: &LogSpec, lines: &[LogLine]) -> Result<()> {
    let mut left: Vec<&LogLine> = lines.iter().collect();
    for pattern in &expected.lines {
        let at = if expected.ordered {
            left.first().filter(|line| pattern.matches(line)).map(|_| 0)
        } else {
            left.iter().position(|line| pattern.matches(line))
        };
        let Some(at) = at else { return Err(Failure::new(format!("the log lacks\n      {}", pattern.as_written()))) };
        left.remove(at);
    }
    match left.first() {
        Some(line) => Err(Failure::new(format!("a log line too many\n      {}", line.text))),
        None => Ok(()),
    }
}

/// Writes the configuration and the case's own files.
fn write_files(case: &Case, world: &World, journal: &Journal, setting: Setting) -> Result<()> {
    let lookup = |name: &str| world.lookup(name);
    for (name, content) in &case.files {
        fs::write(world.dir.join(name), content.render(&lookup)?)?;
    }
    let threads = case.threads.unwrap_or(setting.threads);
    let mut text = format!("global\n    log {} local0\n    nbthread {threads}\n", journal.address()?);
    add(&mut text, &case.global);
    text.push_str("defaults\n");
    if !case.bare {
        text.push_str("    mode http\n    log global\n    option httplog\n");
        text.push_str("    timeout connect 20s\n    timeout client 20s\n    timeout server 20s\n");
    }
    add(&mut text, &case.defaults);
    for line in &case.config {
        text.push_str(line);
        text.push('\n');
    }
    fs::write(world.dir.join("case.cfg"), data::expand(text.as_bytes(), &lookup)?)?;
    Ok(())
}

fn add(text: &mut String, lines: &[String]) {
    for line in lines {
        text.push_str("    ");
        text.push_str(line);
        text.push('\n');
    }
}

/// A directory that is removed after the run.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Result<Self> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("weir-case-{}-{number}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
