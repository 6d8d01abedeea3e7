//! The ID of a task: a number that any thread may hold. Must never give access to the task.

/// The tag passed to the panic hook for a posted job: such a job has no task.
pub const NO_TAG: u64 = u64::MAX;

const SLOT_BITS: u32 = 24;
const GENERATION_BITS: u32 = 28;
/// Maximum number of tasks of a worker at a time.
pub(crate) const MOST_TASKS: usize = 1 << SLOT_BITS;
/// Maximum number of workers in one process at a time.
pub(crate) const MOST_WORKERS: usize = 1 << (u64::BITS - SLOT_BITS - GENERATION_BITS);

const _: () = assert!(usize::BITS >= u64::BITS, "a waker packs its task into one pointer of 64 bits");

/// Worker, generation and slot of a task in one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskId(u64);

impl TaskId {
    pub(crate) fn new(worker: u16, generation: u32, slot: u32) -> TaskId {
        let worker = u64::from(worker) << (SLOT_BITS + GENERATION_BITS);
        TaskId(worker | u64::from(generation) << SLOT_BITS | u64::from(slot))
    }

    /// Returns the worker's index in the registry of mailboxes.
    pub(crate) fn worker(self) -> u16 {
        (self.0 >> (SLOT_BITS + GENERATION_BITS)) as u16
    }

    pub(crate) fn generation(self) -> u32 {
        (self.0 >> SLOT_BITS) as u32 & ((1 << GENERATION_BITS) - 1)
    }

    pub(crate) fn slot(self) -> usize {
        self.0 as usize & (MOST_TASKS - 1)
    }

    /// Returns the generation of the slot's next task; wraps around.
    pub(crate) fn next_generation(generation: u32) -> u32 {
        (generation + 1) & ((1 << GENERATION_BITS) - 1)
    }

    /// Returns its packed representation.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// Converts from the packed representation.
    pub(crate) fn from_bits(bits: u64) -> TaskId {
        TaskId(bits)
    }
}
