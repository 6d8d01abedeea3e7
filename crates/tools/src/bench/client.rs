//! The load of a round: the command line of `weir load`, and its output. Must never depend on the proxy.

use super::child::{ChildProcess, Output, Stop, interrupted};
use super::scenario::Scenario;
use super::scenario::quantity::{RampUp, Rate};
use super::scenario::template::{Values, fill};
use super::steps::BenchStep;
use crate::load::record::{Counts, Record};
use base::ProcessorSet;
use rt::clock::Point;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Maximum length of a line of the load's output, in bytes.
const LONGEST_LINE: u64 = 4 << 20;

/// Additional time of the load after its duration, for the last responses.
const GRACE: Duration = Duration::from_secs(20);

/// Time after which a response counts as a timeout, in milliseconds.
const TIMEOUT: &str = "10000";

/// Interval of calls of `meanwhile` while the load runs.
const PAUSE: Duration = Duration::from_millis(10);

/// Output of the load.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadReport {
    pub seconds: Vec<Counts>,
    /// The whole run.
    pub total: Counts,
    /// Percentiles of the time to the last byte: percentile and microseconds.
    pub latency: Vec<(f64, f64)>,
    /// Percentiles of the reference client.
    pub reference: Vec<(f64, f64)>,
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
}

/// Rates in requests per second: those of the scenario, with percentages resolved.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LoadRates {
    /// Constant rate.
    pub rate: Option<f64>,
    /// Maximum rate.
    pub at_most: Option<f64>,
    /// Rate of the reference client.
    pub reference: Option<f64>,
}

impl LoadRates {
    /// Returns the rates of a step, where `full` is the first proxy's full speed.
    #[must_use]
    pub fn of(scenario: &Scenario, step: &BenchStep, full: f64) -> Self {
        let find = |rate: Option<Rate>| {
            rate.map(|rate| match rate {
                Rate::Absolute(rate) => rate,
                // The rate is positive even if the proxy answered nothing at full speed.
                Rate::Share(share) => (share * full).round().max(1.0),
            })
        };
        Self { rate: find(step.rate), at_most: find(scenario.load.at_most), reference: find(scenario.load.reference) }
    }
}

/// Returns the command line of a load, including the program.
///
/// # Errors
/// A placeholder without a value.
pub fn command(
    scenario: &Scenario,
    step: &BenchStep,
    offered: &LoadRates,
    port: u16,
    duration: Duration,
    values: &Values,
) -> Result<Vec<String>, String> {
    let load = &scenario.load;
    let program = values.get("weir").cloned().unwrap_or_default();
    let mut words = vec![program, "load".to_owned(), "--json".to_owned()];
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    option("-c", step.connections.to_string());
    option("-t", (*load.threads.get_ref()).min(step.connections).to_string());
    option("-d", milliseconds(duration));
    option("-w", TIMEOUT.to_owned());
    let ramp_up = match load.ramp_up {
        RampUp::Time(time) => time.duration(),
        RampUp::Share(share) => duration.mul_f64(share),
    };
    if !ramp_up.is_zero() {
        option("-s", milliseconds(ramp_up));
    }
    if let Some(requests) = &load.requests_per_connection {
        option("-r", requests.get_ref().to_string());
    }
    for (name, rate) in [("--constant", offered.rate), ("-R", offered.at_most), ("--reference", offered.reference)] {
        if let Some(rate) = rate {
            option(name, rate.to_string());
        }
    }
    if let Some(think) = load.think {
        option("-T", milliseconds(think.duration()));
    }
    if let Some(method) = &load.method {
        option("-X", method.get_ref().clone());
    }
    for (name, value) in &load.headers {
        option("-H", format!("{name}: {}", fill(value.get_ref(), values)?));
    }
    words.extend(load.options.iter().cloned());
    let scheme = load.scheme.as_ref().map_or("http", |scheme| scheme.get_ref());
    words.push(format!("{scheme}://127.0.0.1:{port}{}", fill(load.path.get_ref(), values)?));
    Ok(words)
}

fn milliseconds(time: Duration) -> String {
    format!("{}ms", time.as_millis().max(1))
}

/// Runs a load to its end. `meanwhile` is called repeatedly with the elapsed time; its error ends the
/// load.
///
/// # Errors
/// One line on failure, an interruption, or the error of `meanwhile`.
pub fn run(
    command: &[String],
    on: &ProcessorSet,
    log: &Path,
    duration: Duration,
    meanwhile: &mut dyn FnMut(Duration) -> Result<(), Stop>,
) -> Result<LoadReport, Stop> {
    let mut child = ChildProcess::start("the load", command, on, log, Output::Read)?;
    let lines = read(&mut child)?;
    let since = Point::now();
    let mut told = LoadReport::default();
    let mut ended = false;
    loop {
        match lines.recv_timeout(PAUSE) {
            Ok(line) => ended |= take(&mut told, &line)?,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        interrupted()?;
        meanwhile(since.elapsed())?;
        if since.elapsed() > duration + GRACE {
            return Err(Stop::Failed(format!("the load does not end after {} s", (duration + GRACE).as_secs())));
        }
    }
    child.wait(GRACE)?;
    if !ended {
        return Err(Stop::Failed("the load ended without its summary".to_owned()));
    }
    Ok(told)
}

/// Returns the lines of its output, read by a thread that ends with them.
fn read(child: &mut ChildProcess) -> Result<Receiver<String>, String> {
    let output = child.output().ok_or("the load has no output")?;
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let mut output = BufReader::new(output);
        loop {
            let mut line = Vec::new();
            let read = output.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
            let whole = matches!(read, Ok(1..));
            if !whole || sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    Ok(lines)
}

/// Processes a line; returns true for the summary.
fn take(told: &mut LoadReport, line: &str) -> Result<bool, String> {
    match serde_json::from_str(line).map_err(|error| format!("the load said something else than records: {error}"))? {
        Record::Second(counts) => {
            told.seconds.push(counts);
            Ok(false)
        }
        Record::Summary { counts, last_byte, reference, statuses, .. } => {
            (told.total, told.latency, told.reference, told.statuses) = (counts, last_byte, reference, statuses);
            Ok(true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::scenario::read;
    use crate::bench::steps::steps;

    fn words(load: &str) -> String {
        let text = format!(
            "name = \"a\"\ntitle = \"\"\n[load]\npath = \"/?s={{size}}\"\nduration = 2\n{load}\n\
             [[proxy]]\nname = \"p\"\ncommand = [\"p\"]\n"
        );
        let scenario = read("a.toml", &text).unwrap().scenario;
        let step = steps(&scenario)[0];
        let values = [("weir", "W"), ("size", "64")].map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let offered = LoadRates::of(&scenario, &step, 1000.0);
        command(&scenario, &step, &offered, 80, Duration::from_secs(2), &values).unwrap().join(" ")
    }

    #[test]
    fn a_load_is_a_command_line() {
        let rows = [
            ("", "W load --json -c 64 -t 1 -d 2000ms -w 10000 http://127.0.0.1:80/?s=64"),
            (
                "connections = 2\nthreads = 4\nramp_up = \"25%\"\nrequests_per_connection = 1",
                "W load --json -c 2 -t 2 -d 2000ms -w 10000 -s 500ms -r 1 http://127.0.0.1:80/?s=64",
            ),
            (
                "rate = \"80%\"\nreference = 10\nmethod = \"PUT\"\nheaders = { A = \"b{size}\" }\noptions = [\"-A\"]",
                "W load --json -c 64 -t 1 -d 2000ms -w 10000 --constant 800 --reference 10 -X PUT -H A: b64 -A \
                 http://127.0.0.1:80/?s=64",
            ),
            (
                "at_most = 0.5\nthink = 60\nscheme = \"https\"",
                "W load --json -c 64 -t 1 -d 2000ms -w 10000 -R 0.5 -T 60000ms https://127.0.0.1:80/?s=64",
            ),
        ];
        for (load, expected) in rows {
            assert_eq!(words(load), expected);
        }
    }

    #[test]
    fn what_is_no_record_is_told() {
        let error = take(&mut LoadReport::default(), "hello").unwrap_err();
        assert!(error.starts_with("the load said something else than records: "), "{error}");
    }
}
