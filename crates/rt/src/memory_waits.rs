//! The tasks of a worker that wait for memory, and how short it is. Must never decide which of them goes on: that is
//! [`crate::supply`]'s business.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Waker;

use base::memory::{PROCESS, Supply};

/// The tasks of a worker that wait for memory.
#[derive(Default)]
pub(crate) struct Waits {
    /// By stage.
    pub(crate) queues: RefCell<[VecDeque<Waker>; 3]>,
    /// So many may go on all the same until the next look.
    pub(crate) passes: Cell<u32>,
    /// A task looks whether memory is back.
    pub(crate) looking: Cell<bool>,
    /// What the worker does when memory becomes scarce.
    pub(crate) hook: RefCell<Option<Rc<dyn Fn()>>>,
}

/// Whether memory is so short that nothing new is begun.
#[inline]
pub fn memory_is_scarce() -> bool {
    PROCESS.supply() != Supply::Ample
}

/// Whether memory is so short that what goes on waits as well.
#[inline]
pub fn memory_is_critical() -> bool {
    PROCESS.supply() == Supply::Critical
}
