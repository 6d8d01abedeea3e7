//! The tasks of a worker that wait for memory, and how scarce it is. Must never decide which of them continues: that is
//! the responsibility of [`crate::memory_queue`].

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Waker;

use base::memory::{PROCESS, Supply};

/// The queues of tasks of a worker that wait for memory.
#[derive(Default)]
pub(crate) struct Waits {
    /// By stage.
    pub(crate) queues: RefCell<[VecDeque<Waker>; 3]>,
    /// The number of tasks that may proceed regardless until the next check.
    pub(crate) passes: Cell<u32>,
    /// Set while a task checks whether memory is available again.
    pub(crate) looking: Cell<bool>,
    /// The worker's callback for scarce memory.
    pub(crate) hook: RefCell<Option<Rc<dyn Fn()>>>,
}

/// Whether memory is so scarce that no new work is started.
#[inline]
pub fn memory_is_scarce() -> bool {
    PROCESS.supply() != Supply::Ample
}

/// Whether memory is so scarce that work in progress waits as well.
#[inline]
pub fn memory_is_critical() -> bool {
    PROCESS.supply() == Supply::Critical
}
