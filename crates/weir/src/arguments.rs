//! The command line: words become a [`Command`]. One table, [`FLAGS`], feeds the parser, `--help` and the tests.
//! Must never open, print or start anything.
//!
//! Source: management guide, section 3. Flags may come in any order, each in a word of its own; the value of a flag is
//! the next word, whatever it looks like, except for the few flags that carry it behind their own letters (`-dM0`).

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

/// How much `-v…` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionForm {
    /// `-v`.
    Short,
    /// `-vv`.
    Full,
    /// `-vq`: the language level alone.
    Level,
    /// `-vqs`: the language level without its suffix.
    LevelShort,
    /// `-vqb`: the branch of the language level.
    Branch,
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
    /// `-p`.
    pub pid_file: Option<PathBuf>,
    /// `-n`: connections of the process.
    pub maxconn: Option<u32>,
    /// `-N`: connections of a proxy that does not say.
    pub default_maxconn: Option<u32>,
    /// `-m`, megabytes: bounds the number of connections that is worked out where none is written.
    pub memory: Option<u64>,
    /// `-L`: the name of the local peer.
    pub local_peer: Option<String>,
    /// `-dC`: print the configuration as it was read; under a key other than 0, with names and addresses hidden.
    pub dump_configuration: Option<u32>,
    /// `-dK`: the classes of keywords to print.
    pub dump_keywords: Option<String>,
    /// `-dL`: print the files that the process has mapped.
    pub dump_libraries: bool,
    /// Flags that this version knows by name and cannot honour yet, as written.
    pub not_supported: Vec<&'static str>,
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
    /// Flags, but neither `-f` nor `--` named a file.
    NoConfiguration,
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(word) => write!(f, "unknown argument '{word}'"),
            Self::MissingValue(flag) => write!(f, "{flag} expects a value"),
            Self::NotANumber(flag, value) => write!(f, "{flag} expects a number, not '{value}'"),
            Self::NotText(flag) => write!(f, "the value of {flag} is not valid UTF-8"),
            Self::NoConfiguration => f.write_str("no configuration file was named: use -f FILE, or no argument at all"),
        }
    }
}

/// Where a flag's value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// The flag has none.
    None,
    /// The next word; the text names it in the help.
    Next(&'static str),
    /// Behind the flag's letters, and possibly empty.
    Attached(&'static str),
    /// The next word, unless that starts with a dash.
    Optional(&'static str),
    /// Every following word that is a number.
    Numbers(&'static str),
}

/// The headings of the help text, in the order in which they are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// What to load and how to run.
    Running,
    /// Checking without starting.
    Checking,
    /// What is printed.
    Output,
    /// Limits.
    Limits,
    /// Behaviour switched off or on for a search of faults.
    Debugging,
    /// Accepted so that a service's command line keeps working.
    Ignored,
    /// Known, and refused when something is to be started.
    Waiting,
}

impl Group {
    /// Every group with its heading.
    pub const ALL: &'static [(Self, &'static str)] = &[
        (Self::Running, "Loading and running"),
        (Self::Checking, "Checking and asking"),
        (Self::Output, "Messages"),
        (Self::Limits, "Limits"),
        (Self::Debugging, "Searching for faults"),
        (Self::Ignored, "Accepted without effect"),
        (Self::Waiting, "Not supported yet"),
    ];
}

/// One flag.
pub struct Flag {
    /// The flag with its dash.
    pub name: &'static str,
    /// Its value.
    pub value: Value,
    /// Where the help shows it.
    pub group: Group,
    /// What it does, one sentence.
    pub doc: &'static str,
    /// Writes it down. The value is empty for a flag without one.
    apply: fn(&mut Settings, &OsStr) -> Result<(), UsageError>,
}

const fn row(
    name: &'static str,
    value: Value,
    group: Group,
    doc: &'static str,
    apply: fn(&mut Settings, &OsStr) -> Result<(), UsageError>,
) -> Flag {
    Flag { name, value, group, doc, apply }
}

fn nothing(_: &mut Settings, _: &OsStr) -> Result<(), UsageError> {
    Ok(())
}

/// A row for a flag that sets one boolean.
macro_rules! switch {
    ($name:literal, $group:ident, $doc:literal, $field:ident) => {
        row($name, Value::None, Group::$group, $doc, |settings, _| {
            settings.$field = true;
            Ok(())
        })
    };
}

/// A row for a flag that is accepted and changes nothing.
macro_rules! ignored {
    ($name:literal, $value:expr, $doc:literal) => {
        row($name, $value, Group::Ignored, $doc, nothing)
    };
}

/// A row for a flag that only a later version can honour.
macro_rules! waiting {
    ($name:literal, $value:expr, $doc:literal) => {
        row($name, $value, Group::Waiting, $doc, |settings, _| {
            settings.not_supported.push($name);
            Ok(())
        })
    };
}

/// Every flag but `-v…`, `-h`, `--help`, `-cc` and `--`, which [`parse`] treats itself.
pub const FLAGS: &[Flag] = &[
    row("-f", Value::Next("FILE|FOLDER"), Group::Running, "loads a file, or every *.cfg file of a folder", |s, v| {
        s.files.push(PathBuf::from(v));
        Ok(())
    }),
    row("-C", Value::Next("FOLDER"), Group::Running, "enters FOLDER before any file is read", |s, v| {
        s.directory = Some(PathBuf::from(v));
        Ok(())
    }),
    switch!("-D", Running, "starts in the background and returns once every address is bound", daemon),
    switch!("-d", Running, "stays in the foreground, whatever the configuration says", foreground),
    switch!("-db", Running, "the same", foreground),
    row("-p", Value::Next("FILE"), Group::Running, "writes the process number into FILE", |s, v| {
        s.pid_file = Some(PathBuf::from(v));
        Ok(())
    }),
    row(
        "-L",
        Value::Next("NAME"),
        Group::Running,
        "sets the name of the local peer (default: the host's name)",
        |s, v| {
            s.local_peer = Some(text("-L", v)?);
            Ok(())
        },
    ),
    switch!("-4", Running, "resolves names to IPv4 addresses only", ipv4_only),
    switch!("-c", Checking, "checks the configuration and leaves: status 0 when it can be loaded, else 1", check),
    row(
        "-dC",
        Value::Attached("KEY"),
        Group::Checking,
        "prints the configuration as it was read; names are hidden under a KEY",
        |s, v| {
            s.dump_configuration = Some(if v.is_empty() { 0 } else { number("-dC", v)? });
            Ok(())
        },
    ),
    row(
        "-dK",
        Value::Attached("CLASSES"),
        Group::Checking,
        "prints the keywords of CLASSES (-dKhelp lists them)",
        |s, v| {
            s.dump_keywords = Some(text("-dK", v)?);
            Ok(())
        },
    ),
    switch!("-dL", Checking, "prints the program and the libraries that it has loaded", dump_libraries),
    switch!("-q", Output, "prints no message", quiet),
    switch!("-V", Output, "prints more, and undoes -q", verbose),
    switch!("-dW", Output, "refuses to start when there was any warning", zero_warning),
    switch!("-dD", Output, "also reports what is merely suspicious", diagnostics),
    row("-n", Value::Next("NUMBER"), Group::Limits, "limits the connections of the process", |s, v| {
        s.maxconn = Some(number("-n", v)?);
        Ok(())
    }),
    row(
        "-N",
        Value::Next("NUMBER"),
        Group::Limits,
        "limits the connections of each proxy that sets no maxconn",
        |s, v| {
            s.default_maxconn = Some(number("-N", v)?);
            Ok(())
        },
    ),
    row(
        "-m",
        Value::Next("MEGABYTES"),
        Group::Limits,
        "works the connections out for so much memory (0: for any)",
        |s, v| {
            s.memory = Some(number("-m", v)?.into()).filter(|megabytes| *megabytes > 0);
            Ok(())
        },
    ),
    switch!("-dr", Debugging, "starts although the name of a server does not resolve", ignore_unresolved),
    switch!("-dR", Debugging, "binds without SO_REUSEPORT", no_reuse_port),
    switch!("-dS", Debugging, "never splices in the kernel", no_splice),
    ignored!("-dM", Value::Attached("BYTE,OPTIONS"), "would poison memory: safe code reads none that was not written"),
    ignored!("-dI", Value::None, "would allow forks of the running process"),
    ignored!("-dF", Value::None, "would switch fast-forwarding off"),
    ignored!("-dZ", Value::None, "would switch zero-copy forwarding off"),
    ignored!("-dT", Value::None, "would switch kernel TLS off"),
    ignored!("-dV", Value::None, "would switch the verification of servers' certificates off"),
    ignored!("-dG", Value::None, "would avoid getaddrinfo()"),
    ignored!("-de", Value::None, "would avoid epoll"),
    ignored!("-dp", Value::None, "would avoid poll"),
    ignored!("-dk", Value::None, "would avoid kqueue"),
    ignored!("-dv", Value::None, "would avoid event ports"),
    ignored!("-dc", Value::None, "would print how processors were chosen"),
    ignored!("-dt", Value::Optional("TRACES"), "would trace on the terminal"),
    waiting!("-W", Value::None, "master and worker: a master process that keeps workers"),
    waiting!("-Ws", Value::None, "the same, telling systemd when it is ready"),
    waiting!("-S", Value::Next("ADDRESS"), "the master's command socket"),
    waiting!("-x", Value::Next("SOCKET"), "takes listening sockets over from a running process"),
    row(
        "-sf",
        Value::Numbers("PID..."),
        Group::Waiting,
        "asks older processes to finish once this one serves",
        |s, v| refuse_pids(s, "-sf", v),
    ),
    row("-st", Value::Numbers("PID..."), Group::Waiting, "ends older processes once this one serves", |s, v| {
        refuse_pids(s, "-st", v)
    }),
    waiting!("-dA", Value::Attached("FILE"), "archives the libraries that are in use"),
];

/// An empty list asks for nothing: service scripts write `-sf $(cat pidfile)` for a first start, too.
fn refuse_pids(settings: &mut Settings, flag: &'static str, pids: &OsStr) -> Result<(), UsageError> {
    if !pids.is_empty() {
        settings.not_supported.push(flag);
    }
    Ok(())
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
        (Value::Numbers(_), [next, ..]) if is_number(next) => {
            let count = rest.iter().take_while(|word| is_number(word)).count();
            (next.as_os_str(), &rest[count..])
        }
        (Value::Optional(_) | Value::Numbers(_), _) => (attached, rest),
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
        return Err(UsageError::NoConfiguration);
    }
    Ok(Command::Run(Box::new(settings)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn run(line: &str) -> Settings {
        match parse(&words(line)) {
            Ok(Command::Run(settings)) => *settings,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn refused(line: &str) -> UsageError {
        parse(&words(line)).expect_err(line)
    }

    #[test]
    fn no_word_at_all_is_the_demonstration() {
        assert_eq!(parse(&[]), Ok(Command::Demonstrate));
    }

    #[test]
    fn files_keep_the_order_of_the_command_line() {
        let settings = run("-f a -c -f b -- c -f");
        assert_eq!(settings.files, ["a", "b", "c", "-f"].map(PathBuf::from));
        assert!(settings.check);
    }

    #[test]
    fn every_switch_of_the_table_changes_something_or_says_that_it_does_not() {
        let plain = run("-f x");
        for flag in FLAGS.iter().filter(|flag| flag.value == Value::None) {
            let changed = run(&format!("-f x {}", flag.name)) != plain;
            assert_eq!(changed, flag.group != Group::Ignored, "{}", flag.name);
        }
    }

    #[test]
    fn names_are_unique_and_documented() {
        for (index, flag) in FLAGS.iter().enumerate() {
            assert!(flag.name.starts_with('-') && !flag.doc.is_empty(), "{}", flag.name);
            assert!(FLAGS[..index].iter().all(|other| other.name != flag.name), "{} twice", flag.name);
        }
    }

    #[test]
    fn a_value_is_the_next_word_whatever_it_looks_like() {
        assert_eq!(run("-f -c").files, ["-c"].map(PathBuf::from));
        let settings = run("-C dir -p pid -n 10 -N 20 -m 384 -L here -f x");
        assert_eq!(settings.directory, Some("dir".into()));
        assert_eq!(settings.pid_file, Some("pid".into()));
        assert_eq!((settings.maxconn, settings.default_maxconn), (Some(10), Some(20)));
        assert_eq!(settings.local_peer.as_deref(), Some("here"));
        assert_eq!((settings.memory, run("-m 0 -f x").memory), (Some(384), None));
    }

    #[test]
    fn values_behind_the_letters_may_be_empty() {
        assert_eq!(run("-dKall -f x").dump_keywords.as_deref(), Some("all"));
        assert_eq!(run("-dK -f x").dump_keywords.as_deref(), Some(""));
        assert_eq!(["-dC -f x", "-dC42 -f x"].map(|line| run(line).dump_configuration), [Some(0), Some(42)]);
        assert_eq!(refused("-dCx -f x"), UsageError::NotANumber("-dC", "x".into()));
        for line in ["-dM -f x", "-dM0 -f x", "-dMno-merge,tag -f x"] {
            assert_eq!(run(line), run("-f x"), "{line}");
        }
    }

    #[test]
    fn the_flags_of_a_regression_run_are_accepted() {
        assert!(run("-d -dM -dI -dW -f x").zero_warning);
        assert!(run("-d -f x").foreground);
        assert!(run("-dr -dV -dS -dF -dZ -de -dp -dG -dR -dL -dD -db -4 -f x").diagnostics);
        assert_eq!(run("-dt -c -f x"), run("-c -f x"));
        assert_eq!(run("-dt h2:developer -c -f x"), run("-c -f x"));
    }

    #[test]
    fn verbose_undoes_quiet_in_either_order() {
        assert!(run("-q -f x").quiet);
        assert!(!run("-q -V -f x").quiet);
        assert!(!run("-V -q -f x").quiet);
    }

    #[test]
    fn what_waits_for_a_later_version_is_named() {
        assert_eq!(run("-W -f x").not_supported, ["-W"]);
        assert_eq!(run("-Ws -S /run/m,level,admin -f x").not_supported, ["-Ws", "-S"]);
        assert_eq!(run("-x /run/s -sf 1 2 -st 3 -f x").not_supported, ["-x", "-sf", "-st"]);
    }

    #[test]
    fn an_empty_list_of_old_processes_asks_for_nothing() {
        assert_eq!(run("-f x -sf"), run("-f x"));
        assert_eq!(run("-sf -f x"), run("-f x"));
    }

    #[test]
    fn questions_are_answered_at_once() {
        assert_eq!(parse(&words("-dM -dI -dW -vv")), Ok(Command::Version(VersionForm::Full)));
        assert_eq!(parse(&words("-v -zz")), Ok(Command::Version(VersionForm::Short)));
        assert_eq!(parse(&words("-vq")), Ok(Command::Version(VersionForm::Level)));
        assert_eq!(parse(&words("-vqs")), Ok(Command::Version(VersionForm::LevelShort)));
        assert_eq!(parse(&words("-vqb")), Ok(Command::Version(VersionForm::Branch)));
        assert_eq!(parse(&words("-f x -h")), Ok(Command::Help));
        assert_eq!(parse(&words("--help")), Ok(Command::Help));
    }

    #[test]
    fn a_condition_needs_no_file() {
        let expected = |quiet| Ok(Command::Evaluate { condition: "1".into(), quiet });
        assert_eq!(parse(&words("-cc 1")), expected(false));
        assert_eq!(parse(&words("-dM -cc 1 -f x -q")), expected(true));
    }

    #[test]
    fn everything_else_is_refused() {
        assert_eq!(refused("-zz -v"), UsageError::Unknown("-zz".into()));
        assert_eq!(refused("ok.cfg"), UsageError::Unknown("ok.cfg".into()));
        assert_eq!(refused("-f x -"), UsageError::Unknown("-".into()));
        assert_eq!(refused("-fx"), UsageError::Unknown("-fx".into()));
        assert_eq!(refused("--foo"), UsageError::Unknown("--foo".into()));
        assert_eq!(refused("-f"), UsageError::MissingValue("-f"));
        assert_eq!(refused("-cc"), UsageError::MissingValue("-cc"));
        assert_eq!(refused("-cc 1 2"), UsageError::Unknown("2".into()));
        assert_eq!(refused("-n abc -f x"), UsageError::NotANumber("-n", "abc".into()));
        assert_eq!(refused("-sf abc -f x"), UsageError::Unknown("abc".into()));
        for line in ["-c", "-V", "-q", "-D", "--"] {
            assert_eq!(refused(line), UsageError::NoConfiguration, "{line}");
        }
    }
}
