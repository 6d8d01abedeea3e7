//! System calls of a proxy, counted by `strace`. Must never be active while anything is timed.

use super::child::{ChildProcess, Output, Stop, interrupted};
use super::procfs;
use rt::clock::Point;
use rt::{Signal, process};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Timeout for `strace` to attach, and to exit.
const PATIENCE: Duration = Duration::from_secs(10);

/// Polling interval.
const PAUSE: Duration = Duration::from_millis(10);

/// A running `strace`.
pub struct Trace {
    strace: ChildProcess,
    output: PathBuf,
}

impl Trace {
    /// Attaches to a process and its descendants.
    ///
    /// # Errors
    /// One line if that fails.
    pub fn attach(to: u32, folder: &Path) -> Result<Self, Stop> {
        let output = folder.join("counts");
        let mut command: Vec<String> = ["strace", "-c", "-f", "-o"].map(str::to_owned).into();
        command.push(output.display().to_string());
        let family: Vec<u32> = procfs::family(to).into_iter().map(|(process, _)| process).collect();
        for process in &family {
            command.extend(["-p".to_owned(), process.to_string()]);
        }
        let anywhere = process::available_processors();
        let mut strace = ChildProcess::start("strace", &command, &anywhere, &folder.join("log"), Output::Log)?;
        let since = Point::now();
        while !family.iter().all(|process| traced(&procfs::read(&format!("/proc/{process}/status")))) {
            strace.check()?;
            if since.elapsed() > PATIENCE {
                return Err(Stop::Failed("strace does not attach".to_owned()));
            }
            thread::sleep(PAUSE);
        }
        interrupted()?;
        Ok(Self { strace, output })
    }

    /// Stops tracing, and divides the counts by `requests`.
    ///
    /// # Errors
    /// One line if it does not stop.
    pub fn finish(mut self, requests: u64) -> Result<BTreeMap<String, f64>, Stop> {
        self.strace.send(Signal::Interrupt);
        let since = Point::now();
        // It exits by the signal that it was sent, which is not a failure here.
        while let Ok(()) = self.strace.check() {
            if since.elapsed() > PATIENCE {
                return Err(Stop::Failed("strace does not end".to_owned()));
            }
            thread::sleep(PAUSE);
        }
        interrupted()?;
        let text = fs::read_to_string(&self.output).map_err(|error| format!("{}: {error}", self.output.display()))?;
        Ok(counts(&text).into_iter().map(|(name, calls)| (name, calls as f64 / requests.max(1) as f64)).collect())
    }
}

/// Whether a process is traced, from its `status`.
fn traced(status: &str) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    line.is_some_and(|process| process.trim() != "0")
}

/// Parses the calls in a table of `strace -c`.
fn counts(text: &str) -> BTreeMap<String, u64> {
    let row = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let name = *fields.last()?;
        fields.first()?.parse::<f64>().ok()?;
        let calls = fields.get(3)?.parse().ok()?;
        (fields.len() >= 5 && name != "total").then(|| (name.to_owned(), calls))
    };
    text.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read() {
        let text = "% time     seconds  usecs/call     calls    errors syscall\n\
                    ------ ----------- ----------- --------- --------- ----------------\n\
                    60.00    0.100000           5     20000         3 recvfrom\n\
                    40.00    0.050000           5     10000           sendto\n\
                    ------ ----------- ----------- --------- --------- ----------------\n\
                    100.00    0.150000           5     30000         3 total\n";
        assert_eq!(counts(text), [("recvfrom".to_owned(), 20000), ("sendto".to_owned(), 10000)].into());
        assert!(counts("").is_empty());
        assert!(traced("Name: a\nTracerPid:\t12\n") && !traced("TracerPid:\t0\n") && !traced(""));
    }
}
