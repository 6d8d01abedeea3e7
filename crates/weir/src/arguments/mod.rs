//! The command line: parses words into a [`Command`]. One table, [`FLAGS`], is used by the parser, `--help` and the
//! tests. Must never open, print or start anything.
//!
//! Source: management guide, section 3. Flags may be in any order, each in its own word; the value of a flag is the
//! next word, whatever it contains, except for the few flags with an attached value (`-dM0`).

mod flags;
mod seat;
mod suggestion;
#[cfg(test)]
mod tests;

pub use flags::{FLAGS, Flag, Group, Value};
pub use seat::{READER_FLAG, WorkerSeat};

use crate::version::VersionForm;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The requested operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// No arguments: start the demonstration.
    Demonstrate,
    /// Load configuration files, then check them or serve.
    Run(Box<Settings>),
    /// `-cc`: evaluate a condition and exit.
    Evaluate {
        /// The condition as written.
        condition: String,
        /// True under `-q`.
        quiet: bool,
    },
    /// `-v` and its variants.
    Version(VersionForm),
    /// `-h`, `--help`.
    Help,
}

/// The settings of the command line. They have precedence over the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// `-f` and `--`: files and folders in order.
    pub files: Vec<PathBuf>,
    /// `-C`: the working directory, entered before any file is read.
    pub directory: Option<PathBuf>,
    /// `-c`: check the configuration and exit.
    pub check: bool,
    /// `-V`; overrides `-q`.
    pub verbose: bool,
    /// `-q`.
    pub quiet: bool,
    /// `-d` or `-db`: stay in the foreground, even if a daemon is requested.
    pub foreground: bool,
    /// `-D`.
    pub daemon: bool,
    /// `-dW`: a warning is fatal.
    pub zero_warning: bool,
    /// `-dD`: also report suspicious settings.
    pub diagnostics: bool,
    /// `-dr`: a server whose name does not resolve is not an error.
    pub ignore_unresolved: bool,
    /// `-4`: names resolve to IPv4 addresses only.
    pub ipv4_only: bool,
    /// `-dR`: no `SO_REUSEPORT` on listening sockets.
    pub no_reuse_port: bool,
    /// `-dS`: no splicing in the kernel.
    pub no_splice: bool,
    /// `-dV`: server certificates are not verified unless configured.
    pub trusts_servers: bool,
    /// `-p`.
    pub pid_file: Option<PathBuf>,
    /// `-n`: maximum number of connections of the process.
    pub maxconn: Option<u32>,
    /// `-N`: maximum number of connections of a proxy without `maxconn`.
    pub default_maxconn: Option<u32>,
    /// `-m`, megabytes: limits the memory, and the automatic number of connections.
    pub memory: Option<u64>,
    /// `-L`: the name of the local peer.
    pub local_peer: Option<String>,
    /// `-dC`: print the parsed configuration; with a key other than 0, with names and addresses anonymized.
    pub dump_configuration: Option<u32>,
    /// `-dK`: the keyword classes to print.
    pub dump_keywords: Option<String>,
    /// `-dL`: print the files that the process has mapped.
    pub dump_libraries: bool,
    /// `-W` or `-Ws`: run a master and workers.
    pub master: bool,
    /// `-Ws`: the master notifies systemd.
    pub notify: bool,
    /// `-S`: addresses of the master CLI, with `bind` options after commas.
    pub master_sockets: Vec<String>,
    /// `-x`: the socket of a running process that passes its listening sockets.
    pub takeover: Option<String>,
    /// `-sf` and `-st`: process ids of predecessors, and how they end once this process serves.
    pub predecessors: Vec<(u32, StopMode)>,
    /// Parameters that a master passes to its workers.
    pub seat: Option<WorkerSeat>,
    /// The process reads files for a worker: its file descriptor of the stream to the worker.
    pub reader: Option<i32>,
    /// Flags that are known but not supported yet.
    pub not_supported: Vec<&'static str>,
}

/// How a predecessor ends once its successor serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// `-sf`: finish open sessions, then exit.
    Finish,
    /// `-st`: exit immediately.
    Terminate,
}

/// Reasons to reject a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UsageError {
    /// Unknown flag.
    Unknown(String),
    /// The flag requires a value and is the last word.
    MissingValue(&'static str),
    /// The value of the flag must be a number.
    NotANumber(&'static str, String),
    /// The value of the flag must be valid UTF-8.
    NotText(&'static str),
    /// Neither `-f` nor `--` names a file.
    NoConfiguration,
    /// Flags but no file; without flags, the demonstration would run.
    NothingToRun,
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(word) => {
                write!(f, "unknown argument '{word}'")?;
                suggestion::of(word).map_or(Ok(()), |hint| write!(f, " ({hint})"))
            }
            Self::MissingValue(flag) => write!(f, "{flag} expects a value"),
            Self::NotANumber(flag, value) => write!(f, "{flag} expects a number, not '{value}'"),
            Self::NotText(flag) => write!(f, "the value of {flag} is not valid UTF-8"),
            Self::NoConfiguration => f.write_str("no configuration file was named: use -f FILE"),
            Self::NothingToRun => f.write_str("no configuration file was named: use -f FILE, or no argument at all"),
        }
    }
}

fn text(flag: &'static str, value: &OsStr) -> Result<String, UsageError> {
    value.to_str().map(str::to_owned).ok_or(UsageError::NotText(flag))
}

fn number(flag: &'static str, value: &OsStr) -> Result<u32, UsageError> {
    let written = value.to_string_lossy();
    written.parse().map_err(|_| UsageError::NotANumber(flag, written.into_owned()))
}

fn is_number(word: &OsStr) -> bool {
    !word.is_empty() && word.as_bytes().iter().all(u8::is_ascii_digit)
}

/// Finds the row of a word, and the value attached to it.
fn find(word: &OsStr) -> Option<(&'static Flag, &OsStr)> {
    let exact = FLAGS.iter().find(|flag| word == flag.name).map(|flag| (flag, OsStr::new("")));
    exact.or_else(|| {
        FLAGS.iter().filter(|flag| matches!(flag.value, Value::Attached(_))).find_map(|flag| {
            let rest = word.as_bytes().strip_prefix(flag.name.as_bytes())?;
            Some((flag, OsStr::from_bytes(rest)))
        })
    })
}

/// Parses the words after the program's name.
///
/// # Errors
/// Describes the first invalid word; the words after it are not checked.
pub fn parse(words: &[OsString]) -> Result<Command, UsageError> {
    if words.is_empty() {
        return Ok(Command::Demonstrate);
    }
    let mut settings = Settings::default();
    let mut condition = None;
    let mut rest = words;
    while let [word, tail @ ..] = rest {
        rest = tail;
        match word.to_str() {
            Some("-v") => return Ok(Command::Version(VersionForm::Short)),
            Some("-vv") => return Ok(Command::Version(VersionForm::Full)),
            Some("-vq") => return Ok(Command::Version(VersionForm::Level)),
            Some("-vqs") => return Ok(Command::Version(VersionForm::LevelShort)),
            Some("-vqb") => return Ok(Command::Version(VersionForm::Branch)),
            Some("-h" | "--help") => return Ok(Command::Help),
            Some("--") => {
                settings.files.extend(rest.iter().map(PathBuf::from));
                rest = &[];
            }
            Some(WorkerSeat::FLAG) => {
                let [value, tail @ ..] = rest else { return Err(UsageError::MissingValue(WorkerSeat::FLAG)) };
                let written = value.to_string_lossy();
                let seat = WorkerSeat::parse(&written);
                settings.seat = Some(seat.ok_or(UsageError::NotANumber(WorkerSeat::FLAG, written.into_owned()))?);
                rest = tail;
            }
            Some(READER_FLAG) => {
                let [value, tail @ ..] = rest else { return Err(UsageError::MissingValue(READER_FLAG)) };
                let written = value.to_string_lossy();
                let number = written.parse().ok().filter(|number| *number > 2);
                settings.reader = Some(number.ok_or(UsageError::NotANumber(READER_FLAG, written.into_owned()))?);
                rest = tail;
            }
            Some("-cc") => {
                let [value, tail @ ..] = rest else { return Err(UsageError::MissingValue("-cc")) };
                condition = Some(text("-cc", value)?);
                rest = tail;
            }
            _ => rest = apply(&mut settings, word, rest)?,
        }
    }
    finish(settings, condition)
}

/// Applies one flag of the table and returns the words after it.
fn apply<'a>(settings: &mut Settings, word: &OsStr, rest: &'a [OsString]) -> Result<&'a [OsString], UsageError> {
    let (flag, attached) = find(word).ok_or_else(|| UsageError::Unknown(word.to_string_lossy().into_owned()))?;
    let (value, rest) = match (flag.value, rest) {
        (Value::None | Value::Attached(_), _) => (attached, rest),
        (Value::Next(_), []) => return Err(UsageError::MissingValue(flag.name)),
        (Value::Next(_), [next, tail @ ..]) => (next.as_os_str(), tail),
        (Value::Optional(_), [next, tail @ ..]) if !next.as_bytes().starts_with(b"-") => (next.as_os_str(), tail),
        (Value::Optional(_), _) => (attached, rest),
        (Value::Numbers(_), _) => {
            let (numbers, tail) = rest.split_at(rest.iter().take_while(|word| is_number(word)).count());
            numbers.iter().try_for_each(|word| (flag.apply)(settings, word))?;
            return Ok(tail);
        }
    };
    (flag.apply)(settings, value)?;
    Ok(rest)
}

/// Determines the command from the settings.
fn finish(mut settings: Settings, condition: Option<String>) -> Result<Command, UsageError> {
    settings.quiet &= !settings.verbose;
    if let Some(condition) = condition {
        return Ok(Command::Evaluate { condition, quiet: settings.quiet });
    }
    if settings.files.is_empty() {
        return Err(UsageError::NothingToRun);
    }
    Ok(Command::Run(Box::new(settings)))
}
