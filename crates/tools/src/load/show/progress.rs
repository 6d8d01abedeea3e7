//! Progress bar on a terminal while the columns are written elsewhere. Must never leave a character on the terminal.

use super::number::short;
use super::{Second, Show, Sink};
use crate::Outcome;
use crate::load::counters::Counters;
use crate::load::plan::Plan;
use std::time::Duration;

/// Width of the bar, in cells.
const WIDTH: usize = 40;
/// Moves to the first column, and clears the line.
const CLEAR: &str = "\r\x1b[K";

/// One line on standard error, redrawn each second.
#[derive(Debug)]
pub struct Progress {
    out: Sink,
    duration: Option<Duration>,
    requests: Option<u64>,
    drawn: bool,
}

impl Progress {
    /// Creates the bar of a run that has a limit.
    #[must_use]
    pub const fn new(plan: &Plan, out: Sink) -> Self {
        Self { out, duration: plan.duration, requests: plan.requests, drawn: false }
    }

    fn line(&self, second: &Second, total: &Counters) -> String {
        let of_time = self.duration.map(|all| second.at.as_secs_f64() / all.as_secs_f64());
        let of_requests = self.requests.map(|all| total.answers as f64 / all as f64);
        let done = of_time.unwrap_or(0.0).max(of_requests.unwrap_or(0.0)).clamp(0.0, 1.0);
        let full = (done * WIDTH as f64) as usize;
        let rate = short(total_rate(second));
        let errors = match total.errors.failures() {
            0 => String::new(),
            failures => format!(", {failures} errors"),
        };
        let bar = "#".repeat(full) + &".".repeat(WIDTH - full);
        format!("{CLEAR}[{bar}] {:>3.0} %, {} s, {rate} answers/s{errors}", (done * 100.0).floor(), second.at.as_secs())
    }
}

fn total_rate(second: &Second) -> f64 {
    second.counters.answers as f64 / second.length.as_secs_f64().max(1e-6)
}

impl Show for Progress {
    fn begin(&mut self, _: &Plan) -> Result<(), Outcome> {
        Ok(())
    }

    fn second(&mut self, second: &Second, total: &Counters) -> Result<(), Outcome> {
        self.drawn = true;
        let line = self.line(second, total);
        self.out.write(&line)
    }

    fn end(&mut self, _: &Counters, _: Duration) -> Result<(), Outcome> {
        if std::mem::take(&mut self.drawn) { self.out.write(CLEAR) } else { Ok(()) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.drawn {
            // An error of a closed terminal is ignored.
            let _ = self.out.write(CLEAR);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::show::tests::{plan, second, total};

    #[test]
    fn the_bar_follows_what_ends_first() {
        let line = |words: &[&str]| Progress::new(&plan(words), Sink::Stderr).line(&second(2), &total());
        let bar = |full: usize| format!("\r\x1b[K[{}{}]", "#".repeat(full), ".".repeat(40 - full));
        assert_eq!(line(&["-d", "8", "a"]), bar(10) + "  25 %, 2 s, 1k00 answers/s");
        assert_eq!(line(&["-d", "8", "-n", "2000", "a"]), bar(20) + "  50 %, 2 s, 1k00 answers/s");
        assert_eq!(line(&["-n", "10", "a"]), bar(40) + " 100 %, 2 s, 1k00 answers/s");
    }
}
