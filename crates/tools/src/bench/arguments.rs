//! The command line of `weir bench`. Must never open a file.

use super::scenario::template;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// Output of `--help`.
pub const HELP: &str = "\
weir bench compares proxies as a scenario describes, and writes a folder with results.json and report.html.

usage: weir bench [options] NAME|FILE.toml

  --list              lists the scenarios that ship
  --show NAME         prints one of them
  --check             checks the environment only: conditions that would distort the result
  --quick             one short round of everything, to try a scenario, not to measure
  --only PROXY,...    omits the other proxies
  --no-direct         omits the direct measurement without a proxy
  --rounds N          overrides the scenario's number of rounds
  --duration SECONDS  overrides the scenario's duration
  --set NAME=VALUE    changes a value of the scenario, such as --set haproxy=/opt/haproxy/haproxy
  --syscalls          counts system calls per request with strace, in a separate round
  --flame             draws a flame graph of each proxy with perf, in a separate round
  --out FOLDER        output folder (weir-bench-NAME-TIME)
  --report FOLDER     generates the report of an earlier run again
  --sizing FOLDER...  prints the sizing page computed from the results of earlier runs
  --into PAGE FOLDER...
                      updates the tables and pictures of a page from the results of earlier runs
  -h, --help          prints this page

docs/benchmarks.md describes scenarios.
";

/// Task selected by the command line.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// `--help`.
    Help,
    /// `--list`.
    List,
    /// `--show`: the scenario's name.
    Show(String),
    /// `--report`: a folder or file of results.
    Report(PathBuf),
    /// `--sizing`: folders or files of results.
    Sizing(Vec<PathBuf>),
    /// `--into`: a page, and folders or files of results.
    Into(PathBuf, Vec<PathBuf>),
    /// Run a scenario.
    Run(Box<Settings>),
}

/// Options of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// Name of a shipped scenario, or a file.
    pub scenario: String,
    /// `--check`.
    pub check: bool,
    /// `--quick`.
    pub quick: bool,
    /// `--only`; empty: all proxies.
    pub only: Vec<String>,
    /// `--no-direct`.
    pub no_direct: bool,
    /// `--rounds`.
    pub rounds: Option<u32>,
    /// `--duration`, seconds.
    pub duration: Option<f64>,
    /// `--set`.
    pub values: BTreeMap<String, String>,
    /// `--syscalls`.
    pub syscalls: bool,
    /// `--flame`.
    pub flame: bool,
    /// `--out`.
    pub out: Option<PathBuf>,
}

/// Parses the words after `weir bench`.
///
/// # Errors
/// A message about the words that are not understood.
pub fn parse(words: &[OsString]) -> Result<Task, String> {
    let earlier = |option: &OsString| ["--report", "--sizing", "--into"].iter().any(|known| option == known);
    if let Some((option, places)) = words.split_first().filter(|(option, _)| earlier(option)) {
        return match places {
            [page, places @ ..] if option == "--into" && !places.is_empty() => {
                Ok(Task::Into(page.into(), places.iter().map(PathBuf::from).collect()))
            }
            _ if option == "--into" => Err("--into takes a page, and the folders of earlier runs".to_owned()),
            [] => Err(format!("{} lacks the folder of an earlier run", option.display())),
            [place] if option == "--report" => Ok(Task::Report(place.into())),
            [_, ..] if option == "--report" => Err("--report takes one folder".to_owned()),
            places => Ok(Task::Sizing(places.iter().map(PathBuf::from).collect())),
        };
    }
    let mut settings = Settings::default();
    let mut names = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(word) = word.to_str() else { return Err(format!("{} is no text", word.display())) };
        let mut value = |what: &str| {
            let value = words.next().ok_or_else(|| format!("{word} lacks {what}"))?;
            value.to_str().map(str::to_owned).ok_or_else(|| format!("{} is no text", value.display()))
        };
        match word {
            "-h" | "--help" => return Ok(Task::Help),
            "--list" => return Ok(Task::List),
            "--show" => return Ok(Task::Show(value("a scenario's name")?)),
            "--check" => settings.check = true,
            "--quick" => settings.quick = true,
            "--no-direct" => settings.no_direct = true,
            "--syscalls" => settings.syscalls = true,
            "--flame" => settings.flame = true,
            "--only" => settings.only.extend(value("names of proxies")?.split(',').map(str::to_owned)),
            "--rounds" => settings.rounds = Some(number(word, &value("a number")?, 1.0, 1000.0)? as u32),
            "--duration" => settings.duration = Some(number(word, &value("seconds")?, 0.05, 86400.0)?),
            "--out" => settings.out = Some(value("a folder")?.into()),
            "--set" => {
                let text = value("NAME=VALUE")?;
                let named = text.split_once('=').filter(|(name, _)| template::is_name(name));
                let (name, value) = named.ok_or_else(|| format!("--set wants NAME=VALUE, not '{text}'"))?;
                settings.values.insert(name.to_owned(), value.to_owned());
            }
            _ if word.starts_with('-') => return Err(format!("unknown option '{word}'")),
            _ => names.push(word.to_owned()),
        }
    }
    let mut names = names.into_iter();
    settings.scenario = names.next().ok_or("which scenario? '--list' prints those that ship")?;
    match names.next() {
        Some(other) => Err(format!("one scenario at a time: '{}' or '{other}'", settings.scenario)),
        None => Ok(Task::Run(Box::new(settings))),
    }
}

fn number(option: &str, text: &str, least: f64, most: f64) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("{option} wants a number from {least} to {most}, not '{text}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Task, String> {
        parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read() {
        let line = "--quick --only a,b --no-direct --rounds 3 --duration 0.5 --set haproxy=/a=b --out o --check \
                    --syscalls --flame keep-alive";
        let expected = Settings {
            scenario: "keep-alive".to_owned(),
            check: true,
            quick: true,
            only: vec!["a".to_owned(), "b".to_owned()],
            no_direct: true,
            rounds: Some(3),
            duration: Some(0.5),
            values: [("haproxy".to_owned(), "/a=b".to_owned())].into(),
            syscalls: true,
            flame: true,
            out: Some("o".into()),
        };
        assert_eq!(read(line), Ok(Task::Run(Box::new(expected))));
        assert_eq!(read("--list"), Ok(Task::List));
        assert_eq!(read("--show x"), Ok(Task::Show("x".to_owned())));
        assert_eq!(read("x --help"), Ok(Task::Help));
        assert_eq!(read("--report a"), Ok(Task::Report("a".into())));
        assert_eq!(read("--into p a b"), Ok(Task::Into("p".into(), vec!["a".into(), "b".into()])));
        assert_eq!(read("--sizing a b"), Ok(Task::Sizing(vec!["a".into(), "b".into()])));
    }

    #[test]
    fn what_is_not_understood_is_told() {
        let rows = [
            ("", "which scenario? '--list' prints those that ship"),
            ("a b", "one scenario at a time: 'a' or 'b'"),
            ("--colour a", "unknown option '--colour'"),
            ("a --rounds", "--rounds lacks a number"),
            ("a --rounds 0", "--rounds wants a number from 1 to 1000, not '0'"),
            ("a --duration x", "--duration wants a number from 0.05 to 86400, not 'x'"),
            ("a --duration NaN", "--duration wants a number from 0.05 to 86400, not 'NaN'"),
            ("--into p", "--into takes a page, and the folders of earlier runs"),
            ("a --set x", "--set wants NAME=VALUE, not 'x'"),
            ("--report", "--report lacks the folder of an earlier run"),
            ("--report a b", "--report takes one folder"),
            ("--sizing", "--sizing lacks the folder of an earlier run"),
            ("a --set X=1", "--set wants NAME=VALUE, not 'X=1'"),
        ];
        for (line, error) in rows {
            assert_eq!(read(line), Err(error.to_owned()), "{line}");
        }
    }

    #[test]
    fn the_help_names_every_option() {
        let options = "--list --show --check --quick --only --no-direct --rounds --duration --set --syscalls --flame --out --report --sizing --into --help";
        for option in options.split(' ') {
            assert!(HELP.contains(option), "{option}");
        }
        assert!(HELP.lines().all(|line| line.len() <= 120));
    }
}
