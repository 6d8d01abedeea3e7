//! The command line of `weir top`. Must never open anything.

use super::view::{Scope, SortKey};
use crate::Outcome;
use crate::stats_socket::{Socket, USUAL};
use std::ffi::OsString;
use std::time::Duration;

pub const PAGE: &str = "\
Shows what a running process does, Weir or HAProxy, through its stats socket.

Usage: weir top [OPTIONS] [SOCKET]

  SOCKET             path of a stats socket, unix@PATH, or HOST:PORT. Without it the first
                     of these that exists: /run/weir.sock, /run/weir/stats.sock,
                     /run/weir/admin.sock, /run/haproxy/admin.sock, /var/run/haproxy.sock,
                     /run/haproxy.sock
  --once             print one table and exit
  --view VIEW        all (the default with --once), proxies (the default), servers
  --sort COLUMN      name (the default), status, sessions, queue, requests, errors, in, out, time
  --filter TEXT      rows whose name or status contains that
  --interval SECONDS between two looks (1)
  -h, --help         print this page

Keys: Tab or v changes the view, s the column to sort by, S the direction, / filters,
d drains the chosen server, m puts it into maintenance, e makes it ready, w sets its
weight (each asks first, and needs level admin on the socket), Space pauses, ? shows
the keys, q ends.
";

/// Settings of the command line.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    pub socket: Socket,
    pub once: bool,
    /// `None`: not set.
    pub scope: Option<Scope>,
    pub sort: SortKey,
    pub filter: String,
    pub interval: Duration,
}

impl Options {
    /// Returns the outcome of a failed query.
    pub fn failure(&self, why: &str) -> Outcome {
        Outcome::Failed(format!("{}: {why}", self.socket.shown()))
    }
}

/// Task selected by the command line.
#[derive(Debug, PartialEq)]
pub enum TopTask {
    Help,
    Run(Options),
}

/// Parses the words after the tool's name.
///
/// # Errors
/// [`Outcome::Misused`], or [`Outcome::Failed`] if no socket is named and none is found.
pub fn parse(words: &[OsString]) -> Result<TopTask, Outcome> {
    let mut options = Options {
        socket: Socket::Tcp(String::new()),
        once: false,
        scope: None,
        sort: SortKey::Name,
        filter: String::new(),
        interval: Duration::from_secs(1),
    };
    let mut socket = None;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        let mut value = || {
            let value = words.next().map(|value| value.to_string_lossy().into_owned());
            value.ok_or_else(|| Outcome::Misused(format!("{text} needs a value")))
        };
        let unknown = |value: &str| Outcome::Misused(format!("{text} does not know '{value}'"));
        match &*text {
            "-h" | "--help" => return Ok(TopTask::Help),
            "--once" => options.once = true,
            "--view" => {
                let value = value()?;
                options.scope = Some(Scope::find(&value).ok_or_else(|| unknown(&value))?);
            }
            "--sort" => {
                let value = value()?;
                options.sort = SortKey::find(&value).ok_or_else(|| unknown(&value))?;
            }
            "--filter" => options.filter = value()?,
            "--interval" => {
                let value = value()?;
                let seconds = value.parse::<f64>().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
                options.interval = Duration::from_secs_f64(seconds.ok_or_else(|| unknown(&value))?);
            }
            option if option.starts_with('-') => return Err(Outcome::Misused(format!("unknown option '{option}'"))),
            _ if socket.is_some() => return Err(Outcome::Misused(format!("unexpected argument '{text}'"))),
            _ => socket = Some(Socket::parse(word)),
        }
    }
    options.socket = socket
        .or_else(|| Socket::at(&USUAL))
        .ok_or_else(|| Outcome::Failed("no SOCKET is named, and none is at a usual place".to_owned()))?;
    Ok(TopTask::Run(options))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<TopTask, Outcome> {
        parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn words_are_read() {
        let Ok(TopTask::Run(options)) =
            read("--once --view servers --sort errors --filter web --interval 0.5 /run/x.sock")
        else {
            panic!("a run");
        };
        assert_eq!((options.once, options.scope, options.sort), (true, Some(Scope::Servers), SortKey::Errors));
        assert_eq!((options.filter.as_str(), options.interval), ("web", Duration::from_millis(500)));
        assert_eq!(options.socket, Socket::Unix("/run/x.sock".into()));
        assert_eq!(read("--help"), Ok(TopTask::Help));
        for line in ["--view none x", "--sort", "--interval 0 x", "--what x", "a b", "--interval NaN x"] {
            assert!(matches!(read(line), Err(Outcome::Misused(_))), "{line}");
        }
    }
}
