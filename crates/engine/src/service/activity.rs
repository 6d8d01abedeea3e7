//! What a worker counts about its own work, beside the statistics of proxies: for `show activity`. One worker writes the
//! cells; nothing is decided by them.

use std::cell::{Cell, RefCell};

/// Counters and gauges of one worker.
#[derive(Debug, Default)]
pub struct WorkerActivity {
    /// Connections that it accepted, for whichever worker.
    pub accepted: Cell<u64>,
    /// Connections that another worker accepted for it.
    pub received: Cell<u64>,
    /// Checks of servers and questions to agents that it began.
    pub checks: Cell<u64>,
    /// Those of them that run.
    pub running_checks: Cell<u64>,
    /// The lines of `show activity` when they were cleared last; empty: never.
    pub cleared: RefCell<Vec<u64>>,
    /// The counters of `debug counters` when they were reset last; empty: never.
    pub resets: RefCell<Vec<u64>>,
}

/// Counts one more.
#[inline]
pub fn count(cell: &Cell<u64>) {
    cell.set(cell.get() + 1);
}

impl WorkerActivity {
    /// Counts a check as one that runs, until the guard is dropped.
    pub(crate) fn begin_check(&self) -> RunningCheck<'_> {
        count(&self.checks);
        count(&self.running_checks);
        RunningCheck(self)
    }
}

/// A check that runs.
pub(crate) struct RunningCheck<'a>(&'a WorkerActivity);

impl Drop for RunningCheck<'_> {
    fn drop(&mut self) {
        self.0.running_checks.set(self.0.running_checks.get().saturating_sub(1));
    }
}
