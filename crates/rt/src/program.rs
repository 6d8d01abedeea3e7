//! External programs: started by a thread that may block, monitored by a worker until they end.
//!
//! A program, and its own descendants, must never outlive the task that monitors it, and every ended program is reaped.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};

use base::Key;

use crate::guardian::Guardian;
use crate::net::Socket;
use crate::source::{Readiness, Source, Watch};
use crate::sys::signal::Signal;
use crate::{current, sys};

/// The program to start, with its arguments and environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invocation {
    /// The program. A name without a slash is searched for in `path`.
    pub program: String,
    /// The directories of `PATH`, joined by colons; also the program's own `PATH`.
    pub path: String,
    /// Arguments after the program's name.
    pub arguments: Vec<String>,
    /// Environment besides `PATH`: names and values; of duplicates the last one.
    pub environment: Vec<(String, String)>,
}

/// Programs that were dropped and not reaped yet.
static ABANDONED: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// Running programs, by process group: an orderly exit of the process kills them ([`end_all`]); otherwise its guardian
/// does.
static RUNNING: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

static GUARDIAN: OnceLock<Guardian> = OnceLock::new();

/// Starts a guardian process that kills the running programs when this process is killed. For a process that will start
/// some, once it has the privileges that they are to have.
///
/// # Errors
/// From the kernel: the process cannot be created.
pub fn guard() -> io::Result<()> {
    if GUARDIAN.get().is_none() {
        let _ = GUARDIAN.set(Guardian::start()?);
    }
    Ok(())
}

fn enter(head: u32) {
    running().insert(head);
    if let Some(guardian) = GUARDIAN.get() {
        guardian.note(head);
    }
}

fn leave(running: &mut BTreeSet<u32>, head: u32) {
    running.remove(&head);
    if let Some(guardian) = GUARDIAN.get() {
        guardian.forget(head);
    }
}

fn running() -> MutexGuard<'static, BTreeSet<u32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills all running programs with their descendants. For a process that is about to exit.
pub fn end_all() {
    for head in running().iter() {
        let _ = sys::process::kill_group(*head, Signal::Kill.number());
    }
}

fn abandoned() -> MutexGuard<'static, Vec<Child>> {
    ABANDONED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Invocation {
    /// Starts it, as the leader of a process group of its own, with the standard streams of this process. Blocks: never
    /// call it on a worker.
    ///
    /// # Errors
    /// From the kernel: the process cannot be created, or the program not executed.
    pub fn start(&self) -> io::Result<RunningProgram> {
        abandoned().retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        if self.program.contains('/') {
            return self.execute(&self.program);
        }
        // As in the shell: a permission error is reported only if no other program of the name is found.
        let mut refused = io::ErrorKind::NotFound.into();
        for directory in self.path.split(':') {
            let place = if directory.is_empty() { "." } else { directory };
            match self.execute(&format!("{place}/{}", self.program)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => refused = error,
                other => return other,
            }
        }
        Err(refused)
    }

    fn execute(&self, file: &str) -> io::Result<RunningProgram> {
        let mut command = Command::new(file);
        let variables = self.environment.iter().map(|(name, value)| (name, value));
        command.env_clear().envs(variables).env("PATH", &self.path);
        command.arg0(&self.program).args(&self.arguments).process_group(0);
        let child = sys::signal::with_none_blocked(|| command.spawn())?;
        let number = child.id();
        let mut launched = RunningProgram { child: Some(child), end: None };
        enter(number);
        launched.end = Some(Socket::Os(sys::process::open_process(number)?.into()));
        Ok(launched)
    }
}

/// A program that has just been started. Dropping it kills the program.
pub struct RunningProgram {
    child: Option<Child>,
    /// The process descriptor: readable once the process has ended.
    end: Option<Socket>,
}

impl RunningProgram {
    /// Monitors it on the current worker.
    ///
    /// # Errors
    /// From the kernel, if its descriptor cannot be watched.
    pub fn follow(mut self) -> io::Result<Running> {
        let Some(end) = self.end.take() else { return Err(io::ErrorKind::NotFound.into()) };
        let key = current::with(|worker| worker.sources.borrow_mut().insert(Source::new()));
        // From here on the drop of `running` cleans up on any error.
        let running = Running { launched: self, end, key };
        current::with(|worker| {
            worker.driver.watch(&running.end, Watch::Edges, key)?;
            if let Some(source) = worker.sources.borrow_mut().get_mut(key) {
                source.note_watched(running.end.number());
            }
            Ok::<(), io::Error>(())
        })?;
        Ok(running)
    }

    /// Returns its exit status, if it has ended.
    fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        let Some(child) = &mut self.child else { return Err(io::ErrorKind::NotFound.into()) };
        // The lock is held, since its ID may be reused by another process once it is reaped.
        let mut running = running();
        let ended = child.try_wait()?;
        if ended.is_some() {
            leave(&mut running, child.id());
            self.child = None;
        }
        Ok(ended)
    }

    fn signal(&self, signal: Signal) {
        if let Some(child) = &self.child {
            // Fails only if the group has ended.
            let _ = sys::process::kill_group(child.id(), signal.number());
        }
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        self.signal(Signal::Kill);
        let Some(mut child) = self.child.take() else { return };
        leave(&mut running(), child.id());
        if matches!(child.try_wait(), Ok(None)) {
            abandoned().push(child);
        }
    }
}

/// A program that a worker monitors. Dropping it kills the program.
pub struct Running {
    launched: RunningProgram,
    end: Socket,
    key: Key,
}

impl Running {
    /// Ready with the exit status once it has ended.
    ///
    /// # Errors
    /// From the kernel; `NotFound` if the status was already returned.
    pub fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<io::Result<ExitStatus>> {
        current::with(|worker| {
            if let Some(source) = worker.sources.borrow_mut().get_mut(self.key) {
                // The waker is stored before the check: an end between the two is recorded for the next iteration.
                source.read = Readiness::Drained;
                source.wait_to_read(context);
            }
        });
        match self.launched.ended() {
            Ok(None) => Poll::Pending,
            Ok(Some(status)) => Poll::Ready(Ok(status)),
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// Sends a signal to it and to its descendants.
    pub fn signal(&self, signal: Signal) {
        self.launched.signal(signal);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        current::try_with(|worker| {
            worker.driver.unwatch(&self.end);
            worker.sources.borrow_mut().remove(self.key)
        });
    }
}

impl fmt::Debug for RunningProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launched").field("process", &self.child.as_ref().map(Child::id)).finish()
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.launched.fmt(f)
    }
}
