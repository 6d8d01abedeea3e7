//! The command line of `weir ctl`. Must never open anything.

use crate::Outcome;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

pub const PAGE: &str = "\
Sends commands to the runtime API of a running process, Weir or HAProxy, through its stats
socket or the socket of its master.

Usage: weir ctl [OPTIONS] [COMMAND...]

  COMMAND               a command of the API with its words. One word alone is text of the API,
                        with several commands, separated by semicolons or ends of lines, and
                        payloads after '<<'. Without a command, commands are read from a prompt,
                        or from standard input if that is no terminal
  -s, --socket SOCKET   stats socket: a path, unix@PATH, abns@NAME, HOST:PORT, ipv4@HOST:PORT.
                        Without it that of -f, of $WEIR_SOCKET, else the first of the usual paths
  -S SOCKET             the same, for the socket of a master
  -m, --master          the socket is that of a master: commands without a prefix '@' go to its
                        worker, as with '@1'. Without -s and -S that of $HAPROXY_MASTER_CLI, else
                        the first of the usual paths
  -f FILE               takes the socket from the 'stats socket' lines of a configuration
  --payload FILE        payload of the command that ends in '<<', or of the last one; '-' is
                        standard input, which is the default after '<<'
  -j, --json            prints answers as JSON
  -w, --watch SECONDS   repeats the command at that interval
  --count NUMBER        ends --watch after that number of answers
  -k, --keep-going      continues after a command that failed
  -t, --timeout SECONDS time limit of an answer, from its last byte; 0: unlimited (10)
  -h, --help            prints this page

Status: 0 if every command succeeded, 1 if the API answered with an error, 2 if there was no
answer, or a wrong command line.

Keys of the prompt: Ctrl-C interrupts a command, Ctrl-D ends.
";

/// Settings of the command line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options {
    /// `-s` or `-S`.
    pub socket: Option<OsString>,
    /// `-S` or `-m`: the socket is that of a master.
    pub is_master: bool,
    /// `-m`: commands without a prefix go to the worker.
    pub to_worker: bool,
    /// `-f`, in order.
    pub files: Vec<PathBuf>,
    pub payload: Option<PathBuf>,
    pub is_json: bool,
    pub watch: Option<Duration>,
    /// Number of answers of `--watch`; `None`: unlimited.
    pub count: Option<u64>,
    pub keeps_going: bool,
    /// `-t`. `Some(None)`: unlimited.
    pub timeout: Option<Option<Duration>>,
    /// The words of the command.
    pub command: Vec<OsString>,
}

/// Task selected by the command line.
#[derive(Debug, PartialEq)]
pub enum CtlTask {
    Help,
    Run(Options),
}

/// Parses the words after the tool's name. Options end before the first word of the command.
///
/// # Errors
/// [`Outcome::Misused`].
pub fn parse(words: &[OsString]) -> Result<CtlTask, Outcome> {
    let mut options = Options::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        let mut value = || words.next().cloned().ok_or_else(|| Outcome::Misused(format!("{text} needs a value")));
        match &*text {
            "-h" | "--help" => return Ok(CtlTask::Help),
            "-s" | "--socket" => options.socket = Some(value()?),
            "-S" => (options.socket, options.is_master) = (Some(value()?), true),
            "-m" | "--master" => (options.to_worker, options.is_master) = (true, true),
            "-f" => options.files.push(value()?.into()),
            "--payload" => options.payload = Some(value()?.into()),
            "-j" | "--json" => options.is_json = true,
            "-k" | "--keep-going" => options.keeps_going = true,
            "-w" | "--watch" => options.watch = Some(seconds(&text, &value()?, 0.1)?.unwrap_or_default()),
            "--count" => options.count = Some(number(&text, &value()?)?),
            "-t" | "--timeout" => options.timeout = Some(seconds(&text, &value()?, 0.0)?),
            "--" => {
                options.command.extend(words.cloned());
                break;
            }
            option if option.starts_with('-') => return Err(Outcome::Misused(format!("unknown option '{option}'"))),
            _ => {
                options.command.push(word.clone());
                options.command.extend(words.cloned());
                break;
            }
        }
    }
    options.check()?;
    Ok(CtlTask::Run(options))
}

impl Options {
    /// Checks options that depend on each other.
    fn check(&self) -> Result<(), Outcome> {
        let rows = [
            (self.socket.is_some() && !self.files.is_empty(), "-f and a named socket exclude each other"),
            (self.is_master && !self.files.is_empty(), "a configuration names no socket of a master: use -S"),
            (self.watch.is_some() && self.command.is_empty(), "--watch needs a command"),
            (self.count.is_some() && self.watch.is_none(), "--count needs --watch"),
            (self.payload.is_some() && self.command.is_empty(), "--payload needs a command"),
            (self.payload.is_some() && self.watch.is_some(), "--payload and --watch exclude each other"),
        ];
        match rows.iter().find(|(applies, _)| *applies) {
            Some((_, why)) => Err(Outcome::Misused((*why).to_owned())),
            None => Ok(()),
        }
    }
}

/// Parses a number of seconds. `None`: zero.
fn seconds(option: &str, value: &OsString, least: f64) -> Result<Option<Duration>, Outcome> {
    let value = value.to_string_lossy();
    let seconds = value.parse::<f64>().ok().filter(|seconds| (least..=86_400.0).contains(seconds));
    match seconds {
        Some(0.0) => Ok(None),
        Some(seconds) => Ok(Some(Duration::from_secs_f64(seconds))),
        None => Err(Outcome::Misused(format!("{option} needs a number of seconds, up to a day, not '{value}'"))),
    }
}

fn number(option: &str, value: &OsString) -> Result<u64, Outcome> {
    let value = value.to_string_lossy();
    let number = value.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| Outcome::Misused(format!("{option} needs a number, not '{value}'")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<CtlTask, Outcome> {
        parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn options_end_before_the_command() {
        let Ok(CtlTask::Run(options)) = read("-s /x -j -k -t 0 -w 0.5 --count 3 show events buf0 -w") else {
            panic!("a run");
        };
        assert_eq!((options.is_json, options.keeps_going, options.timeout), (true, true, Some(None)));
        assert_eq!((options.watch, options.count), (Some(Duration::from_millis(500)), Some(3)));
        assert_eq!(options.command, ["show", "events", "buf0", "-w"]);
        let Ok(CtlTask::Run(options)) = read("-m -S m -- -x") else { panic!("a run") };
        assert_eq!((options.to_worker, options.socket, options.command), (true, Some("m".into()), vec!["-x".into()]));
        assert_eq!(read("-h"), Ok(CtlTask::Help));
    }

    #[test]
    fn mistakes_are_named() {
        for line in [
            "-s",
            "-x",
            "-w 0 a",
            "-w x a",
            "-w 1",
            "--count 0 -w 1 a",
            "--count 2 a",
            "-t -1 a",
            "-t NaN a",
            "--payload f",
            "-s a -f b",
            "-m -f b",
            "-w 1 --payload f a",
        ] {
            assert!(matches!(read(line), Err(Outcome::Misused(_))), "{line}");
        }
    }
}
