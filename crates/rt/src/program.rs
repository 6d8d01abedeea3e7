//! Programs that run beside the process: started by a thread that may wait, followed by a worker until they end.
//!
//! None may outlive the task that follows it, with all that it has started itself, and none that has ended stays in the
//! system's table.

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

/// What to start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invocation {
    /// The program. A name without a slash is looked for in `path`.
    pub program: String,
    /// The directories of `PATH`, joined by colons; the program's own as well.
    pub path: String,
    /// What stands behind its name.
    pub arguments: Vec<String>,
    /// Its environment beside `PATH`: names and values, of two with the same name the last.
    pub environment: Vec<(String, String)>,
}

/// Programs that were given up and not reaped yet.
static ABANDONED: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// Those that run: a process that ends in order takes them with it ([`end_all`]), and its guardian does otherwise.
static RUNNING: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

static GUARDIAN: OnceLock<Guardian> = OnceLock::new();

/// Has a process of its own end the programs that run when this one is killed. For a process that will start some, once it
/// has the rights that they are to have.
///
/// # Errors
/// The kernel's: it makes no process.
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

/// Ends all programs that run, with all that they have started. For a process that is about to end itself.
pub fn end_all() {
    for head in running().iter() {
        let _ = sys::process::kill_group(*head, Signal::Kill.number());
    }
}

fn abandoned() -> MutexGuard<'static, Vec<Child>> {
    ABANDONED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Invocation {
    /// Starts it, at the head of a group of processes of its own, with the standard streams of this process. Takes as long
    /// as the system takes: never on a worker.
    ///
    /// # Errors
    /// The kernel's: it makes no process, or does not execute the program.
    pub fn start(&self) -> io::Result<Launched> {
        abandoned().retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        if self.program.contains('/') {
            return self.execute(&self.program);
        }
        // As the shell does: what may not be executed is told if there is no other of its name.
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

    fn execute(&self, file: &str) -> io::Result<Launched> {
        let mut command = Command::new(file);
        let variables = self.environment.iter().map(|(name, value)| (name, value));
        command.env_clear().envs(variables).env("PATH", &self.path);
        command.arg0(&self.program).args(&self.arguments).process_group(0);
        let child = sys::signal::with_none_blocked(|| command.spawn())?;
        let number = child.id();
        let mut launched = Launched { child: Some(child), end: None };
        enter(number);
        launched.end = Some(Socket::Os(sys::process::open_process(number)?.into()));
        Ok(launched)
    }
}

/// A program that has just been started. Dropping it ends the program.
pub struct Launched {
    child: Option<Child>,
    /// The descriptor of the process: readable from its end on.
    end: Option<Socket>,
}

impl Launched {
    /// Follows it on the current worker.
    ///
    /// # Errors
    /// The kernel's, where nothing more can be watched.
    pub fn follow(mut self) -> io::Result<Running> {
        let Some(end) = self.end.take() else { return Err(io::ErrorKind::NotFound.into()) };
        let key = current::with(|worker| worker.sources.borrow_mut().insert(Source::new()));
        // From here on, whatever fails, its drop puts things in order.
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

    /// How it ended, if it has.
    fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        let Some(child) = &mut self.child else { return Err(io::ErrorKind::NotFound.into()) };
        // Its number may be another's once it was waited for.
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
            // A group that is gone needs no signal.
            let _ = sys::process::kill_group(child.id(), signal.number());
        }
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        self.signal(Signal::Kill);
        let Some(mut child) = self.child.take() else { return };
        leave(&mut running(), child.id());
        if matches!(child.try_wait(), Ok(None)) {
            abandoned().push(child);
        }
    }
}

/// A program that a worker follows. Dropping it ends the program.
pub struct Running {
    launched: Launched,
    end: Socket,
    key: Key,
}

impl Running {
    /// How it ended, once it has.
    ///
    /// # Errors
    /// The kernel's; `NotFound` when this was answered already.
    pub fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<io::Result<ExitStatus>> {
        current::with(|worker| {
            if let Some(source) = worker.sources.borrow_mut().get_mut(self.key) {
                // The waker is kept before it is looked: an end between the two is recorded for the next turn.
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

    /// Sends a signal to it and to all that it has started.
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

impl fmt::Debug for Launched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launched").field("process", &self.child.as_ref().map(Child::id)).finish()
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.launched.fmt(f)
    }
}
