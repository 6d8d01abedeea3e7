//! Runs all cases against all subjects, several at a time, and reports. It must never know the content of a case.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::case::{Case, Difference};
use crate::failure::{Failure, Result};
use crate::run::{self, Setting, Transcript};
use crate::subject::Subject;

/// The cases and subjects to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder of topics.
    pub cases: PathBuf,
    /// The Weir binary. `None`: only the HAProxy binaries.
    pub weir: Option<PathBuf>,
    /// HAProxy binaries that must conform.
    pub oracles: Vec<PathBuf>,
    /// Only cases whose `topic/name` contains one of these.
    pub filters: Vec<String>,
    /// Number of cases that run concurrently.
    pub jobs: usize,
    /// Time limit of a single wait.
    pub limit: Duration,
    /// `nbthread`, unless a case sets it.
    pub threads: u32,
    /// Print the log and the output of cases that passed, too.
    pub show: bool,
}

/// The outcome of a case with one subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    /// Failed, as listed in the case for this subject.
    DiffersAsListed,
    /// Weir refuses the configuration, since it does not support a keyword yet.
    NotYet(String),
    Failed(String),
}

/// All outcomes.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Case, subject, outcome.
    pub rows: Vec<(String, String, Outcome)>,
    /// The output of cases that passed, if requested.
    pub shown: String,
}

impl Report {
    /// Whether no case failed.
    pub fn passed(&self) -> bool {
        !self.rows.iter().any(|(.., outcome)| matches!(outcome, Outcome::Failed(_)))
    }

    /// Returns the counts by topic and subject, then every failure.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut columns: Vec<(&str, &str)> =
            self.rows.iter().map(|(case, subject, _)| (topic(case), subject.as_str())).collect();
        columns.sort_unstable();
        columns.dedup();
        for (wanted, title) in columns {
            let rows = self.rows.iter().filter(|(case, subject, _)| topic(case) == wanted && subject == title);
            let outcomes: Vec<&Outcome> = rows.map(|(.., outcome)| outcome).collect();
            let count = |kind: &dyn Fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| kind(outcome)).count();
            let (passed, listed) =
                (count(&|outcome| *outcome == Outcome::Passed), count(&|outcome| *outcome == Outcome::DiffersAsListed));
            let not_yet = count(&|outcome| matches!(outcome, Outcome::NotYet(_)));
            let failed = outcomes.len() - passed - listed - not_yet;
            let _ = write!(
                text,
                "{wanted:<24} {title:<14} {passed:>4} passed {listed:>3} differ as listed {failed:>3} failed"
            );
            let _ = if not_yet > 0 { writeln!(text, " {not_yet:>3} not supported yet") } else { writeln!(text) };
        }
        for (case, subject, outcome) in &self.rows {
            match outcome {
                Outcome::Failed(why) => _ = writeln!(text, "\nFAILED {case} against {subject}\n{why}"),
                Outcome::NotYet(why) => _ = writeln!(text, "NOT YET {case}: {why}"),
                Outcome::Passed | Outcome::DiffersAsListed => {}
            }
        }
        text
    }
}

fn topic(case: &str) -> &str {
    case.split_once('/').map_or(case, |(topic, _)| topic)
}

/// Runs all cases.
pub fn run_all(options: &Options) -> std::result::Result<Report, String> {
    let subjects = subjects(options).map_err(|failure| failure.to_string())?;
    let files = discover(options).map_err(|failure| failure.to_string())?;
    // Weir is first: its time limits the waits of subjects that are listed as different.
    let work: Vec<_> = subjects.iter().flat_map(|subject| files.iter().map(move |file| (file, subject))).collect();
    let setting = Setting { limit: options.limit, threads: options.threads };
    let pace = Pace::default();
    let next = AtomicUsize::new(0);
    let report = Mutex::new(Report::default());
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(|| {
                while let Some(((name, path), subject)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (mut outcome, mut shown) = one(name, path, subject, setting, &pace);
                    // On a busy machine HAProxy may fail by a race of its own; Weir is not retried.
                    for _ in 0..ORACLE_RETRIES {
                        if subject.title == "weir" || !matches!(outcome, Outcome::Failed(_)) {
                            break;
                        }
                        (outcome, shown) = one(name, path, subject, setting, &pace);
                    }
                    let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
                    report.rows.push((name.clone(), subject.title.clone(), outcome));
                    if options.show {
                        report.shown.push_str(&shown);
                    }
                }
            });
        }
    });
    let mut report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    report.rows.sort_by(|left, right| (&left.0, &left.1).cmp(&(&right.0, &right.1)));
    Ok(report)
}

fn subjects(options: &Options) -> Result<Vec<Subject>> {
    let mut subjects: Vec<Subject> = options.weir.iter().map(|binary| Subject::weir(binary)).collect();
    for oracle in &options.oracles {
        subjects.push(Subject::haproxy(oracle)?);
    }
    Ok(subjects)
}

/// Number of retries of a case that fails with HAProxy.
const ORACLE_RETRIES: usize = 2;

/// Returns every `topic/name.case`, sorted by name.
fn discover(options: &Options) -> Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for topic in fs::read_dir(&options.cases)? {
        let topic = topic?.path();
        if !topic.is_dir() {
            continue;
        }
        for file in fs::read_dir(&topic)? {
            let path = file?.path();
            let stem =
                |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            let name = format!("{}/{}", stem(&topic), stem(&path));
            let wanted = options.filters.is_empty() || options.filters.iter().any(|filter| name.contains(filter));
            if path.extension().is_some_and(|extension| extension == "case") && wanted {
                found.push((name, path));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The time that Weir took for each case that passed.
#[derive(Debug, Default)]
struct Pace(Mutex<HashMap<String, Duration>>);

impl Pace {
    /// Returns the time limit of a wait. A subject listed as different is expected not to complete one: it gets several
    /// times what Weir took for the whole case, so that one that no longer differs is still noticed.
    fn limit(&self, case: &Case, subject: &Subject, limit: Duration) -> Duration {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&case.name).copied();
        match taken {
            Some(taken) if listed(case, subject).is_some() => limit.min(SHORTEST_LIMIT.max(taken * 4)),
            _ => limit,
        }
    }

    fn note(&self, case: &Case, taken: Duration) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(case.name.clone(), taken);
    }
}

/// The minimum time limit of a wait for a subject listed as different.
const SHORTEST_LIMIT: Duration = Duration::from_secs(2);

/// Returns the difference that the case lists for a subject.
fn listed<'a>(case: &'a Case, subject: &Subject) -> Option<&'a Difference> {
    case.differences.iter().find(|difference| subject.tags.contains(&difference.subject))
}

fn one(name: &str, path: &Path, subject: &Subject, setting: Setting, pace: &Pace) -> (Outcome, String) {
    let case = match run::read(name, path, subject, setting) {
        Ok(case) => case,
        Err(failure) => return (Outcome::Failed(format!("  {}: {failure}", path.display())), String::new()),
    };
    let setting = Setting { limit: pace.limit(&case, subject, setting.limit), ..setting };
    let begun = Instant::now();
    let transcript = match run::run(&case, subject, setting) {
        Ok(transcript) => transcript,
        Err(failure) => return (Outcome::Failed(format!("  {failure}")), String::new()),
    };
    if subject.title == "weir" && transcript.failures.is_empty() {
        pace.note(&case, begun.elapsed());
    }
    (judge(&case, subject, &transcript), format!("{name} against {}\n{}", subject.title, describe(&transcript)))
}

fn judge(case: &Case, subject: &Subject, transcript: &Transcript) -> Outcome {
    if let Some(line) = transcript.output.lines().find(|line| line.contains(NOT_YET)) {
        let keyword = line.rsplit_once("] : ").map_or(line, |(_, text)| text);
        return Outcome::NotYet(keyword.split(NOT_YET).next().unwrap_or(keyword).trim().to_owned());
    }
    match (listed(case, subject), transcript.failures.is_empty()) {
        (None, true) => Outcome::Passed,
        (None, false) => Outcome::Failed(format!("  {}\n{}", case.path.display(), describe(transcript))),
        (Some(_), false) => Outcome::DiffersAsListed,
        (Some(difference), true) if difference.sometimes => Outcome::Passed,
        (Some(difference), true) => {
            let text = format!("  {} says that it differs ({}), but it does not", case.name, difference.reason);
            Outcome::Failed(Failure::new(text).0)
        }
    }
}

/// Weir's message for an unsupported keyword of HAProxy.
const NOT_YET: &str = "is not supported yet by Weir";

/// Whether a line is printed by HAProxy at every start: notices, and the advice not to run as root.
fn is_advice(line: &str) -> bool {
    line.starts_with("[NOTICE]") || line.contains("HAProxy was started as ")
}

fn describe(transcript: &Transcript) -> String {
    let mut text = String::new();
    for failure in &transcript.failures {
        let _ = writeln!(text, "  - {failure}");
    }
    for line in transcript.log.iter().take(20) {
        let _ = writeln!(text, "  log <{}> {}", line.priority, line.text);
    }
    for line in transcript.output.lines().filter(|line| !is_advice(line)).take(40) {
        let _ = writeln!(text, "  out {line}");
    }
    text
}
