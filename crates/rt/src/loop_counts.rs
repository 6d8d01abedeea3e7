//! Counters of a worker's event loop, for debugging (`show activity`). Owns the cells. One worker writes them; nothing
//! here may read a clock or decide anything.

use std::cell::Cell;

/// The counters of one worker's loop, since its start.
#[derive(Debug, Default)]
pub(crate) struct LoopCounts {
    pub(crate) turns: Cell<u64>,
    /// Iterations that found events.
    pub(crate) eventful: Cell<u64>,
    /// Iterations that did not wait because tasks were queued.
    pub(crate) unwaited: Cell<u64>,
    /// Iterations that did not wait because a timer was due.
    pub(crate) overdue: Cell<u64>,
    /// Iterations that found no task to call.
    pub(crate) idle: Cell<u64>,
    /// Iterations that left tasks queued for the next one.
    pub(crate) crowded: Cell<u64>,
    /// Events of sources that had been removed.
    pub(crate) stray: Cell<u64>,
    /// Jobs that were run outside of tasks.
    pub(crate) jobs: Cell<u64>,
    /// Polls of tasks that carry a tag.
    pub(crate) tagged: Cell<u64>,
    /// Number of times that a task began to wait for memory.
    pub(crate) memory_waits: Cell<u64>,
}

/// Increments a counter.
#[inline]
pub(crate) fn count(cell: &Cell<u64>) {
    cell.set(cell.get() + 1);
}
