//! The table of flags: each with its value, its group in the help and its effect on the settings. Must never act on
//! one.

use super::{Settings, StopMode, UsageError, number, text};
use std::ffi::OsStr;
use std::path::PathBuf;

/// The form of a flag's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// No value.
    None,
    /// The next word; the text names it in the help.
    Next(&'static str),
    /// The rest of the flag's own word, possibly empty.
    Attached(&'static str),
    /// The next word, unless it starts with a dash.
    Optional(&'static str),
    /// All following words that are numbers.
    Numbers(&'static str),
}

/// The headings of the help text, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Configuration and operation.
    Running,
    /// Checking without starting.
    Checking,
    /// Output.
    Output,
    /// Limits.
    Limits,
    /// Features switched off or on for debugging.
    Debugging,
    /// Accepted without effect, for compatibility of service command lines.
    Ignored,
    /// Known but unsupported: starting is refused.
    Waiting,
}

impl Group {
    /// Every group with its heading.
    pub const ALL: &'static [(Self, &'static str)] = &[
        (Self::Running, "Loading and running"),
        (Self::Checking, "Checking and querying"),
        (Self::Output, "Messages"),
        (Self::Limits, "Limits"),
        (Self::Debugging, "Debugging"),
        (Self::Ignored, "Accepted without effect"),
        (Self::Waiting, "Not supported yet"),
    ];
}

pub struct Flag {
    /// The flag with its dash.
    pub name: &'static str,
    pub value: Value,
    /// Its group in the help.
    pub group: Group,
    /// Description, one sentence.
    pub doc: &'static str,
    /// Stores the value in the settings; empty for a flag without one.
    pub(super) apply: fn(&mut Settings, &OsStr) -> Result<(), UsageError>,
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

/// Creates a row for a flag that sets a boolean.
macro_rules! switch {
    ($name:literal, $group:ident, $doc:literal, $field:ident) => {
        row($name, Value::None, Group::$group, $doc, |settings, _| {
            settings.$field = true;
            Ok(())
        })
    };
}

/// Creates a row for a flag that has no effect.
macro_rules! ignored {
    ($name:literal, $value:expr, $doc:literal) => {
        row($name, $value, Group::Ignored, $doc, nothing)
    };
}

/// Creates a row for a flag that is not supported yet.
macro_rules! waiting {
    ($name:literal, $value:expr, $doc:literal) => {
        row($name, $value, Group::Waiting, $doc, |settings, _| {
            settings.not_supported.push($name);
            Ok(())
        })
    };
}

/// Every flag except `-v…`, `-h`, `--help`, `-cc` and `--`, which [`parse`] handles itself.
pub const FLAGS: &[Flag] = &[
    row("-f", Value::Next("FILE|FOLDER"), Group::Running, "loads a file, or every *.cfg file of a folder", |s, v| {
        s.files.push(PathBuf::from(v));
        Ok(())
    }),
    row("-C", Value::Next("FOLDER"), Group::Running, "changes to FOLDER before any file is read", |s, v| {
        s.directory = Some(PathBuf::from(v));
        Ok(())
    }),
    switch!("-D", Running, "starts in the background and returns when every address is bound", daemon),
    switch!("-d", Running, "stays in the foreground, overriding the configuration", foreground),
    switch!("-db", Running, "the same as -d", foreground),
    row("-p", Value::Next("FILE"), Group::Running, "writes the process ID to FILE", |s, v| {
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
    switch!("-W", Running, "keeps a master process that starts workers and replaces them on SIGUSR2", master),
    row("-Ws", Value::None, Group::Running, "the same as -W, and notifies systemd", |s, _| {
        (s.master, s.notify) = (true, true);
        Ok(())
    }),
    row(
        "-S",
        Value::Next("ADDRESS[,OPTION...]"),
        Group::Running,
        "address of the master's command line, with the options of a bind line",
        |s, v| {
            s.master_sockets.push(text("-S", v)?);
            Ok(())
        },
    ),
    row(
        "-x",
        Value::Next("SOCKET"),
        Group::Running,
        "takes over the listening sockets of the process that owns this stats socket",
        |s, v| {
            s.takeover = Some(text("-x", v)?);
            Ok(())
        },
    ),
    row(
        "-sf",
        Value::Numbers("PID..."),
        Group::Running,
        "asks older processes to finish once this one serves",
        |s, v| predecessor(s, "-sf", v, StopMode::Finish),
    ),
    row("-st", Value::Numbers("PID..."), Group::Running, "ends older processes once this one serves", |s, v| {
        predecessor(s, "-st", v, StopMode::Terminate)
    }),
    switch!("-c", Checking, "checks the configuration and exits: status 0 if it can be loaded, else 1", check),
    row(
        "-dC",
        Value::Attached("KEY"),
        Group::Checking,
        "prints the configuration as it was read; a KEY hides names and addresses",
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
    switch!("-dL", Checking, "prints the program and the shared libraries that it has loaded", dump_libraries),
    switch!("-q", Output, "prints no message", quiet),
    switch!("-V", Output, "prints more, and cancels -q", verbose),
    switch!("-dW", Output, "treats warnings as errors", zero_warning),
    switch!("-dD", Output, "also prints diagnostics about suspicious settings", diagnostics),
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
        "limits the memory for data, and computes maxconn for it (0: no limit)",
        |s, v| {
            s.memory = Some(number("-m", v)?.into()).filter(|megabytes| *megabytes > 0);
            Ok(())
        },
    ),
    switch!("-dr", Debugging, "starts even if the name of a server does not resolve", ignore_unresolved),
    switch!("-dR", Debugging, "binds without SO_REUSEPORT", no_reuse_port),
    switch!("-dS", Debugging, "never splices in the kernel", no_splice),
    switch!("-dV", Debugging, "as `ssl-server-verify none`: does not verify servers by default", trusts_servers),
    ignored!("-dM", Value::Attached("BYTE,OPTIONS"), "would poison memory: safe code never reads uninitialised memory"),
    ignored!("-dI", Value::None, "would allow forks of the running process"),
    ignored!("-dF", Value::None, "would disable fast-forwarding"),
    ignored!("-dZ", Value::None, "would disable zero-copy forwarding"),
    ignored!("-dT", Value::None, "would disable kernel TLS"),
    ignored!("-dG", Value::None, "would avoid getaddrinfo()"),
    ignored!("-de", Value::None, "would avoid epoll"),
    ignored!("-dp", Value::None, "would avoid poll"),
    ignored!("-dk", Value::None, "would avoid kqueue"),
    ignored!("-dv", Value::None, "would avoid event ports"),
    ignored!("-dc", Value::None, "would print the selection of processors"),
    ignored!("-dt", Value::Optional("TRACES"), "would print traces on the terminal"),
    waiting!("-dA", Value::Attached("FILE"), "archives the libraries that are in use"),
];

/// Process ids are positive; 0 would address a process group.
fn predecessor(settings: &mut Settings, flag: &'static str, pid: &OsStr, wish: StopMode) -> Result<(), UsageError> {
    let pid = number(flag, pid)?;
    if pid > 0 {
        settings.predecessors.push((pid, wish));
    }
    Ok(())
}
