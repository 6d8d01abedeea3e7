//! The command line: words become a [`Command`]. One table, [`FLAGS`], feeds the parser, `--help` and the tests.
//! Must never open, print or start anything.
//!
//! Source: management guide, section 3. Flags may come in any order, each in a word of its own; the value of a flag is
//! the next word, whatever it looks like, except for the few flags that carry it behind their own letters (`-dM0`).

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

/// What the command line asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// No arguments at all: start the demonstration.
    Demonstrate,
    /// Load configuration files, then check them or serve.
    Run(Box<Settings>),
    /// `-cc`: evaluate one condition and leave.
    Evaluate {
        /// The condition as written.
        condition: String,
        /// True under `-q`.
        quiet: bool,
    },
    /// `-v` and its kin.
    Version(VersionForm),
    /// `-h`, `--help`.
    Help,
}

/// What one run was told on its command line. It always has precedence over the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// `-f` and `--`, in the order of the command line: files and folders.
    pub files: Vec<PathBuf>,
    /// `-C`: the folder to work in, entered before any file is read.
    pub directory: Option<PathBuf>,
    /// `-c`: leave after the check.
    pub check: bool,
    /// `-V`, which also undoes `-q`.
    pub verbose: bool,
    /// `-q`.
    pub quiet: bool,
    /// `-d` or `-db`: stay in the foreground, whatever else asks for a daemon.
    pub foreground: bool,
    /// `-D`.
    pub daemon: bool,
    /// `-dW`: a warning is fatal.
    pub zero_warning: bool,
    /// `-dD`: also report what is merely suspicious.
    pub diagnostics: bool,
    /// `-dr`: a server whose name does not resolve is no error.
    pub ignore_unresolved: bool,
    /// `-4`: names resolve to IPv4 addresses only.
    pub ipv4_only: bool,
    /// `-dR`: no `SO_REUSEPORT` on listening sockets.
    pub no_reuse_port: bool,
    /// `-dS`: no splicing in the kernel.
    pub no_splice: bool,
    /// `-dV`: servers are not verified where the configuration does not say.
    pub trusts_servers: bool,
    /// `-p`.
    pub pid_file: Option<PathBuf>,
    /// `-n`: connections of the process.
    pub maxconn: Option<u32>,
    /// `-N`: connections of a proxy that does not say.
    pub default_maxconn: Option<u32>,
    /// `-m`, megabytes: limits the memory, and bounds the number of connections that is worked out where none is written.
    pub memory: Option<u64>,
    /// `-L`: the name of the local peer.
    pub local_peer: Option<String>,
    /// `-dC`: print the configuration as it was read; under a key other than 0, with names and addresses hidden.
    pub dump_configuration: Option<u32>,
    /// `-dK`: the classes of keywords to print.
    pub dump_keywords: Option<String>,
    /// `-dL`: print the files that the process has mapped.
    pub dump_libraries: bool,
    /// `-W` or `-Ws`: a master that keeps workers.
    pub master: bool,
    /// `-Ws`: the master tells systemd how it is.
    pub notify: bool,
    /// `-S`: where the master takes commands, with the options of a `bind` line behind commas.
    pub master_sockets: Vec<String>,
    /// `-x`: the socket of a running process that hands its listening sockets over.
    pub takeover: Option<String>,
    /// `-sf` and `-st`: older processes, and what is asked of them once this one serves.
    pub predecessors: Vec<(u32, Farewell)>,
    /// What a master tells the workers that it starts.
    pub seat: Option<WorkerSeat>,
    /// The process reads files for a worker: the number of its end of the stream to it.
    pub reader: Option<i32>,
    /// Flags that this version knows by name and cannot honour yet, as written.
    pub not_supported: Vec<&'static str>,
}

/// What an older process is asked to do once its successor serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Farewell {
    /// `-sf`: finish what is open, then leave.
    Finish,
    /// `-st`: leave at once.
    Terminate,
}

/// Why a command line was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UsageError {
    /// A word that is no flag of ours.
    Unknown(String),
    /// The flag needs a value and was the last word.
    MissingValue(&'static str),
    /// The value of a flag that wants a number is not one.
    NotANumber(&'static str, String),
    /// The value of a flag that wants text is not UTF-8.
    NotText(&'static str),
    /// Neither `-f` nor `--` named a file.
    NoConfiguration,
    /// The same with flags, where there is a demonstration without any.
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

/// Finds the row of a word, and the value that the word itself carries.
fn find(word: &OsStr) -> Option<(&'static Flag, &OsStr)> {
    let exact = FLAGS.iter().find(|flag| word == flag.name).map(|flag| (flag, OsStr::new("")));
    exact.or_else(|| {
        FLAGS.iter().filter(|flag| matches!(flag.value, Value::Attached(_))).find_map(|flag| {
            let rest = word.as_bytes().strip_prefix(flag.name.as_bytes())?;
            Some((flag, OsStr::from_bytes(rest)))
        })
    })
}

/// Reads the words behind the program's name.
///
/// # Errors
/// The first word that is wrong; words behind it are not looked at.
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

/// Writes one flag of the table down and returns the words behind it.
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

/// Decides what the whole line means.
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
