//! What the tasks of a worker cost, by the function that each is, while that is measured. Must never read a clock.

use std::time::Duration;

use base::Moment;

/// What the tasks of one function have cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionCost {
    /// The type of its futures, as the compiler names it.
    pub name: &'static str,
    /// Their calls.
    pub calls: u64,
    /// How long those took.
    pub busy: Duration,
    /// Time between their wakings and the calls that followed.
    pub late: Duration,
    /// Tasks of it that are queued now.
    pub queued: usize,
}

/// What tasks have cost since their times were measured first ([`crate::measure_tasks`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// In no order.
    pub functions: Vec<FunctionCost>,
    /// When measuring began, and when it ended; `None`: it was never measured, or still is.
    pub since: Option<Moment>,
    /// See [`Profile::since`].
    pub until: Option<Moment>,
}

impl Profile {
    /// The row of a function; there are no more than kinds of tasks are spawned.
    pub(crate) fn row(&mut self, name: &'static str) -> &mut FunctionCost {
        let at = self.functions.iter().position(|row| std::ptr::eq(row.name, name) || row.name == name);
        let at = at.unwrap_or_else(|| {
            self.functions.push(FunctionCost { name, ..FunctionCost::default() });
            self.functions.len() - 1
        });
        &mut self.functions[at]
    }

    /// Adds a call.
    pub(crate) fn add(&mut self, name: &'static str, busy: Duration, late: Duration) {
        let cost = self.row(name);
        cost.calls += 1;
        cost.busy += busy;
        cost.late += late;
    }
}
