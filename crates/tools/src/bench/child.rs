//! A process started by the benchmark, from listening to exit. Must never leave one running: dropping it ends
//! the process and all its descendants.

use super::procfs;
use base::ProcessorSet;
use rt::clock::Point;
use rt::{Signal, process, signal};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

/// Timeout until a process listens: large lists take long to read on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Timeout until a process exits after a signal.
const FAREWELL: Duration = Duration::from_secs(3);

/// Interval of polling a process.
const PAUSE: Duration = Duration::from_millis(5);

/// Maximum number of bytes of a process's last output that are reported.
const LAST_WORDS: u64 = 2000;

/// The signals that end a run.
pub const ENDING: [Signal; 3] = [Signal::Interrupt, Signal::Terminate, Signal::Hangup];

/// Reason why an operation was not completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// A signal requested the end.
    Interrupted,
    /// A failure, with a message of one line.
    Failed(String),
}

impl From<String> for Stop {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

/// A running process.
pub struct ChildProcess {
    child: Child,
    name: String,
    log: PathBuf,
}

/// Destination of a process's standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// The log, like standard error.
    Log,
    /// A pipe: see [`ChildProcess::output`].
    Read,
}

impl ChildProcess {
    /// Starts a command on the given processors (all if the set is empty), with its output in the file `log`.
    ///
    /// # Errors
    /// One line that names the program.
    pub fn start(
        name: &str,
        command: &[String],
        on: &ProcessorSet,
        log: &Path,
        output: Output,
    ) -> Result<Self, String> {
        let failed = |what: &Path, error: &io::Error| format!("{name}: {}: {error}", what.display());
        let (program, words) = command.split_first().ok_or_else(|| format!("{name}: no command"))?;
        let errors = File::create(log).map_err(|error| failed(log, &error))?;
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::null());
        match output {
            Output::Log => command.stdout(errors.try_clone().map_err(|error| failed(log, &error))?),
            Output::Read => command.stdout(Stdio::piped()),
        };
        command.stderr(errors);
        let child =
            process::start(&mut command, on, Signal::Terminate).map_err(|error| failed(Path::new(program), &error))?;
        Ok(Self { child, name: name.to_owned(), log: log.to_owned() })
    }

    /// Returns the process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns its standard output, once.
    pub fn output(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Waits until the process listens on a port.
    ///
    /// # Errors
    /// One line if it exits before that, or takes too long.
    pub fn wait_to_listen(&mut self, port: u16) -> Result<(), Stop> {
        let since = Point::now();
        loop {
            self.check()?;
            if procfs::listens_now(port) {
                return Ok(());
            }
            if since.elapsed() > PATIENCE {
                let said = self.last_words();
                return Err(Stop::Failed(format!(
                    "{} does not listen on port {port} after {} s{said}",
                    self.name,
                    PATIENCE.as_secs()
                )));
            }
            thread::sleep(PAUSE);
        }
    }

    /// Checks that the process is still running.
    ///
    /// # Errors
    /// One line if it has exited, or an interruption.
    pub fn check(&mut self) -> Result<(), Stop> {
        interrupted()?;
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => {
                // An interruption from the terminal reaches the children as well, and some react faster.
                thread::sleep(PAUSE);
                interrupted()?;
                Err(Stop::Failed(format!("{} ended with {}{}", self.name, describe_status(status), self.last_words())))
            }
            Err(error) => Err(Stop::Failed(format!("{}: {error}", self.name))),
        }
    }

    /// Waits until the process exits.
    ///
    /// # Errors
    /// One line if it takes longer than `most`, or if its status is not 0.
    pub fn wait(&mut self, most: Duration) -> Result<(), Stop> {
        let since = Point::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return interrupted(),
                Ok(None) if since.elapsed() > most => {
                    return Err(Stop::Failed(format!("{} does not end{}", self.name, self.last_words())));
                }
                Ok(None) => interrupted()?,
                Ok(Some(_)) | Err(_) => return self.check(),
            }
            thread::sleep(PAUSE);
        }
    }

    /// Sends a signal; ignored if the process has exited.
    pub fn send(&self, signal: Signal) {
        let _ = process::kill(self.child.id(), signal);
    }

    /// Returns the end of its output after a colon, in one line; empty if there was none.
    fn last_words(&self) -> String {
        let mut text = Vec::new();
        let read = File::open(&self.log).and_then(|mut file| {
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(LAST_WORDS)))?;
            file.take(LAST_WORDS).read_to_end(&mut text)
        });
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let end = &lines[lines.len().saturating_sub(3)..];
        if read.is_err() || end.is_empty() { String::new() } else { format!(": {}", plain(&end.join(" | "))) }
    }

    /// Ends the process and its descendants: by a signal first, then by force.
    fn end(&mut self) {
        let family = procfs::family(self.child.id());
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            self.send(Signal::Terminate);
            let since = Point::now();
            while !matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
                if since.elapsed() > FAREWELL {
                    let _ = self.child.kill();
                    let _ = self.child.wait();
                    break;
                }
                thread::sleep(PAUSE);
            }
        }
        // Descendants that are still running; the start time distinguishes them from new processes with the same id.
        let now = procfs::processes();
        for (process, begun) in family.into_iter().skip(1) {
            if now.get(&process).is_some_and(|stat| stat.begun == begun) {
                let _ = process::kill(process, Signal::Kill);
            }
        }
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.end();
    }
}

/// Sleeps; an interruption ends it early.
///
/// # Errors
/// The interruption.
pub fn pause(time: Duration) -> Result<(), Stop> {
    let since = Point::now();
    while !since.remaining(time).is_zero() {
        interrupted()?;
        thread::sleep(since.remaining(time).min(PAUSE));
    }
    interrupted()
}

/// Checks whether a signal requested the end.
///
/// # Errors
/// The interruption.
pub fn interrupted() -> Result<(), Stop> {
    // A second signal of the same kind would otherwise be returned by the next call.
    if signal::take(&ENDING).is_some() { Err(Stop::Interrupted) } else { Ok(()) }
}

/// Replaces control characters in the text of a foreign program, so that it cannot drive a terminal.
#[must_use]
pub fn plain(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

fn describe_status(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("status {code}"),
        (None, signal) => format!("signal {}", signal.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is removed at the end of the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("weir-bench-child-{name}-{}", std::process::id()));
            std::fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn log(&self) -> PathBuf {
            self.0.join("log")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn shell(script: &str, folder: &Folder) -> ChildProcess {
        let command = ["sh", "-c", script].map(str::to_owned);
        ChildProcess::start("it", &command, &ProcessorSet::EMPTY, &folder.log(), Output::Log).unwrap()
    }

    #[test]
    fn one_that_dies_is_told_with_its_last_words() {
        let folder = Folder::new("dies");
        let mut child = shell("echo one >&2; printf 'two\\033[1m\\n' >&2; exit 3", &folder);
        let error = child.wait_to_listen(1).unwrap_err();
        assert_eq!(error, Stop::Failed("it ended with status 3: one | two [1m".to_owned()));
        assert_eq!(shell("exit 0", &folder).wait(PATIENCE), Ok(()));
    }

    #[test]
    fn a_missing_program_is_named() {
        let (folder, command) = (Folder::new("missing"), ["/nowhere/proxy".to_owned()]);
        let started = ChildProcess::start("it", &command, &ProcessorSet::EMPTY, &folder.log(), Output::Log);
        assert_eq!(started.err().unwrap(), "it: /nowhere/proxy: No such file or directory (os error 2)");
    }

    #[test]
    fn what_it_started_ends_with_it() {
        let folder = Folder::new("family");
        let mut child = shell("trap '' TERM; sleep 1000 & echo $!; wait; wait", &folder);
        let since = Point::now();
        let grandchild: u32 = loop {
            child.check().unwrap();
            let said = std::fs::read_to_string(folder.log()).unwrap_or_default();
            if said.ends_with('\n') {
                break said.trim().parse().unwrap();
            }
            assert!(since.elapsed() < PATIENCE);
        };
        let begun = procfs::processes()[&grandchild].begun;
        drop(child);
        let gone = || procfs::processes().get(&grandchild).is_none_or(|stat| stat.begun != begun);
        while !gone() {
            assert!(since.elapsed() < 3 * PATIENCE);
        }
    }
}
