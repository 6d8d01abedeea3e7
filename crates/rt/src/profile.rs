//! Costs of a worker's tasks, by their functions, while they are measured. Must never read a clock.

use std::time::Duration;

use base::Moment;

/// The cost of the tasks of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionCost {
    /// The type name of its futures, from the compiler.
    pub name: &'static str,
    /// Number of polls.
    pub calls: u64,
    /// Total time of the polls.
    pub busy: Duration,
    /// Total time between wakeups and the polls that followed.
    pub late: Duration,
    /// Tasks of it that are queued now.
    pub queued: usize,
}

/// The costs of tasks since measuring was first enabled ([`crate::measure_tasks`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Unordered.
    pub functions: Vec<FunctionCost>,
    /// When measuring began, and when it ended; `None`: it was never enabled, or still is.
    pub since: Option<Moment>,
    /// See [`Profile::since`].
    pub until: Option<Moment>,
}

impl Profile {
    /// Returns the row of a function; there is at most one per kind of task.
    pub(crate) fn row(&mut self, name: &'static str) -> &mut FunctionCost {
        let at = self.functions.iter().position(|row| std::ptr::eq(row.name, name) || row.name == name);
        let at = at.unwrap_or_else(|| {
            self.functions.push(FunctionCost { name, ..FunctionCost::default() });
            self.functions.len() - 1
        });
        &mut self.functions[at]
    }

    /// Adds a poll.
    pub(crate) fn add(&mut self, name: &'static str, busy: Duration, late: Duration) {
        let cost = self.row(name);
        cost.calls += 1;
        cost.busy += busy;
        cost.late += late;
    }
}
