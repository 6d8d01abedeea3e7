//! Counters of a worker's own activity, apart from the statistics of proxies: for `show activity`. One worker writes the cells.
//! Must never influence a decision.

use std::cell::{Cell, RefCell};

/// Counters and gauges of one worker.
#[derive(Debug, Default)]
pub struct WorkerActivity {
    /// Connections that it accepted, for any worker.
    pub accepted: Cell<u64>,
    /// Connections that another worker accepted for it.
    pub received: Cell<u64>,
    /// Health and agent checks that it started.
    pub checks: Cell<u64>,
    /// Checks that are running.
    pub running_checks: Cell<u64>,
    /// The lines of `show activity` at the last reset; empty: never reset.
    pub cleared: RefCell<Vec<u64>>,
    /// The values of `debug counters` at the last reset; empty: never reset.
    pub resets: RefCell<Vec<u64>>,
}

/// Increments a counter.
#[inline]
pub fn count(cell: &Cell<u64>) {
    cell.set(cell.get() + 1);
}

impl WorkerActivity {
    /// Counts a check as started and running; it runs until the guard is dropped.
    pub(crate) fn begin_check(&self) -> RunningCheck<'_> {
        count(&self.checks);
        count(&self.running_checks);
        RunningCheck(self)
    }
}

/// Guard of a running check.
pub(crate) struct RunningCheck<'a>(&'a WorkerActivity);

impl Drop for RunningCheck<'_> {
    fn drop(&mut self) {
        self.0.running_checks.set(self.0.running_checks.get().saturating_sub(1));
    }
}
