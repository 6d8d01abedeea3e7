//! Receivers of the run's output: columns, lines for programs, the terminal. Must never change the run.

mod closing;
mod columns;
mod csv;
mod json;
mod live;
mod number;
mod percentiles;
mod progress;
mod sink;
mod verbose;

use super::counters::Counters;
use super::plan::{Output, Plan, ReportSink};
use super::record::Moment;
use crate::Outcome;
use sink::Sink;
use std::io::IsTerminal;
use std::time::Duration;

/// One second of a run (the last one may be shorter).
#[derive(Debug, Clone)]
pub struct Second {
    /// Time since the start of the run.
    pub at: Duration,
    /// Time in seconds since 1970.
    pub wall: i64,
    pub length: Duration,
    /// Number of open connections at its end.
    pub open: u64,
    pub counters: Counters,
}

impl Second {
    /// Returns everything but its counters.
    #[must_use]
    pub const fn moment(&self) -> Moment {
        Moment { at: self.at, length: self.length, wall: self.wall, open: self.open }
    }
}

/// Prints a run in one of the formats. It is called on a thread of its own, so that a slow terminal does not slow the
/// load; seconds that arrive too fast are merged into longer ones.
///
/// # Errors
/// Each call may end the run with that outcome: a file that cannot be written is a failure, a closed pipe
/// (`weir load … | head`) is not.
pub trait Show: Send {
    /// Called before the first connection.
    fn begin(&mut self, plan: &Plan) -> Result<(), Outcome>;
    /// Called at the end of each second, with the second and the counters of the whole run so far.
    fn second(&mut self, second: &Second, total: &Counters) -> Result<(), Outcome>;
    /// Called at the end, with the counters and the length of the whole run.
    fn end(&mut self, total: &Counters, length: Duration) -> Result<(), Outcome>;
}

/// Opens the outputs of a plan.
///
/// # Errors
/// A file that cannot be written; a format that standard output does not support.
pub fn open(plan: &Plan) -> Result<Box<dyn Show>, Outcome> {
    forms(plan, std::io::stdout().is_terminal(), std::io::stderr().is_terminal())
}

/// Opens the outputs; `stdout` and `stderr`: whether these are terminals.
fn forms(plan: &Plan, stdout: bool, stderr: bool) -> Result<Box<dyn Show>, Outcome> {
    let output = &plan.output;
    if output.live && !stdout {
        return Err(Outcome::Misused("--live needs a terminal, and standard output is none".to_owned()));
    }
    let mut forms: Vec<Box<dyn Show>> = Vec::new();
    if output.verbose > 0 {
        forms.push(Box::new(verbose::Verbose::new(Sink::Stderr)));
    }
    if let Some(place) = &output.json {
        forms.push(Box::new(json::Json::new(Sink::open(place)?, quiet_on(place, output))));
    }
    if let Some(place) = &output.csv {
        forms.push(Box::new(csv::Csv::new(Sink::open(place)?, quiet_on(place, output))));
    }
    let taken = [&output.json, &output.csv].contains(&&Some(ReportSink::Stdout));
    if output.live {
        forms.push(Box::new(live::Live::new(plan, Sink::Stdout)));
    } else if !taken && !output.quiet {
        forms.push(Box::new(columns::Columns::new(plan, Sink::Stdout)));
    }
    let ends = plan.duration.is_some() || plan.requests.is_some();
    if stderr && ends && !output.live && (!stdout || output.quiet) {
        forms.push(Box::new(progress::Progress::new(plan, Sink::Stderr)));
    }
    // After everything else: the live view has restored the terminal by then.
    if !taken {
        forms.push(Box::new(closing::Closing::new(plan, stdout || output.summary || output.quiet, Sink::Stdout)));
    } else if output.summary || output.percentiles {
        forms.push(Box::new(closing::Closing::new(plan, output.summary, Sink::Stderr)));
    }
    Ok(Box::new(Forms(forms)))
}

/// Whether `-q` omits the seconds there: files are always complete.
fn quiet_on(place: &ReportSink, output: &Output) -> bool {
    output.quiet && *place == ReportSink::Stdout
}

/// Several formats of the same run.
struct Forms(Vec<Box<dyn Show>>);

impl Forms {
    /// Calls all of them, even after an error; returns the first error.
    fn each(&mut self, mut call: impl FnMut(&mut dyn Show) -> Result<(), Outcome>) -> Result<(), Outcome> {
        let mut first = Ok(());
        for form in &mut self.0 {
            first = first.and(call(form.as_mut()));
        }
        first
    }
}

impl Show for Forms {
    fn begin(&mut self, plan: &Plan) -> Result<(), Outcome> {
        self.each(|form| form.begin(plan))
    }

    fn second(&mut self, second: &Second, total: &Counters) -> Result<(), Outcome> {
        self.each(|form| form.second(second, total))
    }

    fn end(&mut self, total: &Counters, length: Duration) -> Result<(), Outcome> {
        self.each(|form| form.end(total, length))
    }
}

#[cfg(test)]
mod tests;
