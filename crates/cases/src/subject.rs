//! The program under test: which one it is, and a running process of it. It must never outlive its handle.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use socket2::Socket;

use crate::failure::{Failure, Result};

/// A program that the cases run against.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    /// The path of the binary.
    pub(crate) binary: PathBuf,
    /// `weir`, or `haproxy` and `haproxy-3.5`.
    pub(crate) tags: Vec<String>,
    /// The name in reports.
    pub(crate) title: String,
}

impl Subject {
    /// Returns Weir as a subject.
    pub(crate) fn weir(binary: &Path) -> Self {
        Self { binary: binary.to_owned(), tags: vec!["weir".to_owned()], title: "weir".to_owned() }
    }

    /// Returns HAProxy as a subject; its version is queried.
    pub(crate) fn haproxy(binary: &Path) -> Result<Self> {
        let output = Command::new(binary).arg("-v").output();
        let output = output.map_err(|error| Failure::new(format!("{}: {error}", binary.display())))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text.split_whitespace().find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
        let branch: Vec<&str> = version.unwrap_or("unknown").split(['.', '-']).take(2).collect();
        let title = format!("haproxy-{}", branch.join("."));
        Ok(Self { binary: binary.to_owned(), tags: vec!["haproxy".to_owned(), title.clone()], title })
    }
}

/// A running subject.
pub(crate) struct Running {
    child: Child,
    output: PathBuf,
    ended: Option<ExitStatus>,
}

/// Descriptors lose their close-on-exec flag while a subject is started: starts are serialized, so that no other
/// process inherits them.
static STARTING: Mutex<()> = Mutex::new(());

impl Running {
    /// Starts the subject in `dir` with its configuration file and these inherited sockets.
    pub(crate) fn start(subject: &Subject, dir: &Path, arguments: &[String], inherited: &[&Socket]) -> Result<Self> {
        let output = dir.join("output");
        let file = File::create(&output)?;
        let mut command = Command::new(&subject.binary);
        command.args(["-db", "-f", "case.cfg"]).args(arguments).current_dir(dir);
        command.stdin(Stdio::null()).stderr(file.try_clone()?).stdout(file);
        let guard = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        for socket in inherited {
            socket.set_cloexec(false)?;
        }
        let child = command.spawn();
        for socket in inherited {
            socket.set_cloexec(true)?;
        }
        drop(guard);
        let child = child.map_err(|error| Failure::new(format!("{}: {error}", subject.binary.display())))?;
        Ok(Self { child, output, ended: None })
    }

    /// Sends a signal by name (`USR1`).
    pub(crate) fn signal(&mut self, name: &str) -> Result<()> {
        let signal = match name {
            "TERM" => Signal::TERM,
            "INT" => Signal::INT,
            "USR1" => Signal::USR1,
            "USR2" => Signal::USR2,
            "HUP" => Signal::HUP,
            other => return Err(Failure::new(format!("no such signal: {other}"))),
        };
        if self.status()?.is_some() {
            return Ok(());
        }
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).map_err(|error| Failure::new(error.to_string()))
    }

    /// Returns its exit status, if it has exited.
    pub(crate) fn status(&mut self) -> Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait()?;
        }
        Ok(self.ended)
    }

    /// Terminates it with SIGTERM. Returns an error if it had crashed, exited by itself, or does not exit in time:
    /// dropping it then kills it.
    pub(crate) fn stop(&mut self, limit: Duration) -> Result<()> {
        if let Some(status) = self.status()? {
            return complain(status, "it ended by itself");
        }
        self.signal("TERM")?;
        let status = self.wait(limit)?;
        match status.signal() {
            None | Some(15) => Ok(()),
            Some(_) => complain(status, "it died while ending"),
        }
    }

    /// Waits for its exit.
    pub(crate) fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let until = Instant::now() + limit;
        loop {
            if let Some(status) = self.status()? {
                return Ok(status);
            }
            if Instant::now() > until {
                return Err(Failure::new("it does not end"));
            }
            // The only event for a child's exit is SIGCHLD, which belongs to the whole test process: poll.
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Returns its output.
    pub(crate) fn output(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.output).unwrap_or_default()).into_owned()
    }
}

fn complain(status: ExitStatus, what: &str) -> Result<()> {
    Err(Failure::new(format!("{what} ({status})")))
}

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.status(), Ok(Some(_))) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
