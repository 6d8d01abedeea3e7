//! Combines the workers' counters into seconds of the run. Must never lose an accepted report, nor wait.

use std::collections::VecDeque;
use std::time::Duration;

use crate::Outcome;
use crate::load::counters::Counters;
use crate::load::plan::Plan;
use crate::load::show::{Second, Show};

/// Counters of one worker since its last report.
#[derive(Debug)]
pub struct Report {
    pub worker: u16,
    /// Second of the run that it belongs to, from 1.
    pub second: u32,
    /// Time since the start of the run.
    pub at: Duration,
    /// Time in seconds since 1970.
    pub wall: i64,
    /// Number of the worker's open connections.
    pub open: u64,
    pub counters: Counters,
    /// The worker has ended: this is its last report.
    pub last: bool,
}

/// Receiver of the workers' reports.
pub trait Sink: Send + Sync {
    /// Accepts a report without waiting, or returns it: its worker adds it to the next one. The last report of a worker
    /// is always accepted.
    ///
    /// # Errors
    /// The report, if it cannot be accepted now.
    fn report(&self, report: Report) -> Result<(), Box<Report>>;
    /// Called when all workers have ended.
    fn ended(&self);
}

/// Combines reports for a show.
pub struct Gathering {
    show: Box<dyn Show>,
    workers: Vec<Reporter>,
    /// Seconds for which some worker has not reported, the oldest first.
    seconds: VecDeque<Partial>,
    /// Number of the first of these seconds.
    first: u32,
    total: Counters,
    shown: Duration,
    ended: bool,
}

#[derive(Default, Clone)]
struct Reporter {
    second: u32,
    open: u64,
    ended: bool,
}

#[derive(Default)]
struct Partial {
    at: Duration,
    wall: i64,
    counters: Counters,
}

/// Maximum number of seconds that a worker may lag; a later report counts for the oldest of them.
const MOST_BEHIND: u32 = 60;

impl Gathering {
    /// Starts the show.
    ///
    /// # Errors
    /// Those of the show.
    pub fn new(plan: &Plan, mut show: Box<dyn Show>, workers: usize) -> Result<Self, Outcome> {
        show.begin(plan)?;
        Ok(Self {
            show,
            workers: vec![Reporter::default(); workers],
            seconds: VecDeque::new(),
            first: 1,
            total: Counters::new(),
            shown: Duration::ZERO,
            ended: false,
        })
    }

    /// Processes a report, and shows the seconds that it completes. Returns whether more reports are expected.
    ///
    /// # Errors
    /// Those of the show, which end the run.
    pub fn take(&mut self, report: Report) -> Result<bool, Outcome> {
        let Some(reporter) = self.workers.get_mut(usize::from(report.worker)) else { return Ok(!self.ended) };
        let second = report.second.clamp(self.first, self.first.saturating_add(MOST_BEHIND));
        *reporter = Reporter { second, open: report.open, ended: report.last };
        let index = (second - self.first) as usize;
        while self.seconds.len() <= index {
            self.seconds.push_back(Partial::default());
        }
        let partial = &mut self.seconds[index];
        partial.at = partial.at.max(report.at);
        partial.wall = partial.wall.max(report.wall);
        partial.counters.add(&report.counters);
        self.show_complete()?;
        Ok(!self.ended)
    }

    fn show_complete(&mut self) -> Result<(), Outcome> {
        let everybody = self.workers.iter().all(|worker| worker.ended);
        while !self.seconds.is_empty() {
            let first = self.first;
            let reported = self.workers.iter().all(|worker| worker.ended || worker.second >= first);
            if !reported {
                break;
            }
            let Some(partial) = self.seconds.pop_front() else { break };
            self.first += 1;
            // A worker that ended before the second was over has reported with the next one.
            if partial.at > Duration::ZERO {
                self.show_second(partial)?;
            }
        }
        if everybody && !self.ended {
            self.ended = true;
            self.show.end(&self.total, self.shown)?;
        }
        Ok(())
    }

    fn show_second(&mut self, partial: Partial) -> Result<(), Outcome> {
        self.total.add(&partial.counters);
        let length = partial.at.saturating_sub(self.shown);
        self.shown = self.shown.max(partial.at);
        let open = self.workers.iter().map(|worker| worker.open).sum();
        let second = Second { at: self.shown, wall: partial.wall, length, open, counters: partial.counters };
        self.show.second(&second, &self.total)
    }

    /// Returns the counters of the whole run so far.
    #[must_use]
    pub fn total(&self) -> &Counters {
        &self.total
    }
}

impl std::fmt::Debug for Gathering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gathering").field("first", &self.first).field("shown", &self.shown).finish_non_exhaustive()
    }
}
