//! One worker: everything that belongs to one core, and the free functions that act on the current one.
//!
//! It must never be accessed from another thread: only its `Remote` is shared.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};
use std::time::Duration;

use base::{Buffer, BufferPool, Moment, TimerWheel, WallTime};

use crate::driver::Driver;
use crate::idleness::Idleness;
use crate::loop_counts::LoopCounts;
use crate::mailbox::{Handle, Message, Remote, Shared};
use crate::memory_waits::{Waits, memory_is_scarce};
use crate::net::{ParkedId, RawPipe, ReceiveSpaces, Spares};
use crate::profile::Profile;
use crate::random::Random;
use crate::recycle::{Bins, boxed, boxed_with};
use crate::slice::Slice;
use crate::source::Sources;
use crate::task::{Class, TaskCost, Tasks};
use crate::task_id::TaskId;
use crate::yield_policy::YieldPolicy;
use crate::{WorkerId, current, executor};

/// Size of a [`large_buffer`] in bytes: half of a typical second-level cache, and nine of the loopback device's
/// segments.
const LARGE_BUFFER: usize = 576 * 1024;
/// Large buffers that a worker keeps: one serves all bulk data in turn, slow readers hold others.
const LARGE_BUFFERS_KEPT: usize = 4;
/// Large buffers in use for bulk data at a time: hundreds of slow readers would otherwise hold one each.
const LARGE_BUFFERS_LENT: usize = 32;
/// Size of a [`piece_buffer`] in bytes.
const PIECE: usize = 64 * 1024;
/// Pieces that a worker keeps.
const PIECES_KEPT: usize = 16;
/// Units of reading and writing that a task may spend before it must yield; see `Worker::may_spend`.
const BUDGET: u32 = 64;
/// Bytes that cost one unit, in addition to that of the call.
const BYTES_A_UNIT: usize = 16 * 1024;

type PanicHook = Rc<dyn Fn(u64)>;

/// The state of a worker.
pub(crate) struct Worker {
    pub(crate) remote: Arc<Remote>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) driver: Driver,
    pub(crate) now: Cell<Moment>,
    wall: Cell<Option<WallTime>>,
    pub(crate) random: Random,
    buffers: BufferPool,
    large_buffers: BufferPool,
    pieces: BufferPool,
    pub(crate) receive_spaces: ReceiveSpaces,
    pub(crate) waits: Waits,
    pub(crate) bins: Bins,
    pub(crate) tasks: RefCell<Tasks>,
    pub(crate) sources: RefCell<Sources>,
    pub(crate) timers: RefCell<TimerWheel<Waker>>,
    pub(crate) parked_events: RefCell<ParkedEvents>,
    pub(crate) pipes: RefCell<Vec<RawPipe>>,
    pub(crate) spares: RefCell<Spares>,
    panic_hook: RefCell<Option<PanicHook>>,
    /// Number of tasks and jobs that panicked.
    pub(crate) panics: Cell<u32>,
    /// The program's own data for this worker.
    local: RefCell<Option<Rc<dyn Any>>>,
    pub(crate) patience: YieldPolicy,
    pub(crate) idleness: Idleness,
    pub(crate) counts: LoopCounts,
    /// Remaining units of reading and writing of the running task.
    budget: Cell<u32>,
    /// The time slice of the running task.
    pub(crate) slice: Slice,
    pub(crate) run_queue_depth: usize,
    /// Whether the cost of tasks is measured.
    pub(crate) measures: Cell<bool>,
}

/// Parked streams with events, for the reaper.
#[derive(Default)]
pub(crate) struct ParkedEvents {
    pub(crate) ids: Vec<ParkedId>,
    pub(crate) waker: Option<Waker>,
}

/// The parts from which a worker is built.
pub(crate) struct Parts {
    pub(crate) remote: Arc<Remote>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) driver: Driver,
    pub(crate) seed: u64,
    pub(crate) buffer_size: usize,
    pub(crate) buffers_kept: usize,
    pub(crate) run_queue_depth: usize,
}

impl Worker {
    pub(crate) fn new(parts: Parts) -> Worker {
        let now = parts.driver.now();
        Worker {
            tasks: RefCell::new(Tasks::new(parts.remote.index)),
            remote: parts.remote,
            shared: parts.shared,
            driver: parts.driver,
            now: Cell::new(now),
            wall: Cell::new(None),
            random: Random::seeded(parts.seed),
            buffers: BufferPool::new(parts.buffer_size, parts.buffers_kept),
            large_buffers: BufferPool::new(LARGE_BUFFER.max(parts.buffer_size), LARGE_BUFFERS_KEPT),
            pieces: BufferPool::new(PIECE.max(parts.buffer_size), PIECES_KEPT),
            receive_spaces: ReceiveSpaces::default(),
            waits: Waits::default(),
            bins: Bins::new(),
            sources: RefCell::new(Sources::with_capacity(1024)),
            timers: RefCell::new(TimerWheel::new(now)),
            parked_events: RefCell::default(),
            pipes: RefCell::default(),
            spares: RefCell::default(),
            panic_hook: RefCell::default(),
            panics: Cell::new(0),
            local: RefCell::default(),
            patience: YieldPolicy::default(),
            idleness: Idleness::new(now),
            counts: LoopCounts::default(),
            budget: Cell::new(BUDGET),
            slice: Slice::new(now),
            run_queue_depth: parts.run_queue_depth,
            measures: Cell::new(false),
        }
    }

    /// Returns all workers of the runtime.
    pub(crate) fn peers(&self) -> &[Arc<Remote>] {
        &self.shared.remotes
    }

    /// Returns the worker of this runtime at an index of the registry; a runtime's indices are consecutive.
    pub(crate) fn peer_by_index(&self, index: u16) -> Option<&Arc<Remote>> {
        let first = self.shared.remotes.first()?.index;
        self.shared.remotes.get(usize::from(index.checked_sub(first)?))
    }

    /// Reads the clock, once per iteration.
    pub(crate) fn refresh_time(&self) {
        self.now.set(self.driver.now());
        self.slice.note(self.now.get());
        self.wall.set(None);
        if self.measures.get() {
            self.tasks.borrow_mut().set_clock(self.now.get());
        }
    }

    #[inline]
    fn wall(&self) -> WallTime {
        match self.wall.get() {
            Some(wall) => wall,
            None => self.read_wall(),
        }
    }

    #[cold]
    fn read_wall(&self) -> WallTime {
        let wall = self.driver.wall();
        self.wall.set(Some(wall));
        wall
    }

    pub(crate) fn buffer_size(&self) -> usize {
        self.buffers.size()
    }

    /// Frees the unused buffers.
    pub(crate) fn trim_buffers(&self) {
        self.buffers.trim();
        self.large_buffers.trim();
        self.pieces.trim();
        self.receive_spaces.trim();
    }

    /// Begins a poll of a task, or a job.
    #[inline]
    pub(crate) fn begin_call(&self) {
        self.budget.set(BUDGET);
        self.slice.begin();
        self.remote.note_progress();
    }

    /// Reads the clock for the running task; see [`measure`].
    pub(crate) fn measure(&self) -> Option<Duration> {
        let was_over = self.slice.is_over();
        let since = self.slice.measure(self.driver.measure());
        if self.slice.is_over() && !was_over {
            self.tasks.borrow_mut().demote_running();
        }
        since
    }

    /// Counts pieces of work; see [`slice_is_over`].
    #[inline]
    fn is_over_after(&self, pieces: u32) -> bool {
        if self.slice.count(pieces) {
            self.measure();
        }
        self.slice.is_over()
    }

    /// Whether the running task may read or write once more. If it has spent its budget, or its time slice, returns
    /// false and queues the task for the next iteration: a fast peer cannot monopolize a worker.
    #[inline]
    pub(crate) fn may_spend(&self, context: &Context<'_>) -> bool {
        let left = self.budget.get();
        if left == 0 || self.is_over_after(1) {
            context.waker().wake_by_ref();
            return false;
        }
        self.budget.set(left - 1);
        true
    }

    /// Deducts the cost of `bytes` from the running task's budget.
    #[inline]
    pub(crate) fn spend_bytes(&self, bytes: usize) {
        if bytes >= BYTES_A_UNIT {
            let units = u32::try_from(bytes / BYTES_A_UNIT).unwrap_or(u32::MAX);
            self.budget.set(self.budget.get().saturating_sub(units));
        }
    }

    /// Returns the task being polled, and its tag. For a signal handler that interrupted this worker: returns `None`
    /// while the tasks are borrowed mutably.
    pub(crate) fn running_task(&self) -> Option<(u64, u64)> {
        self.tasks.try_borrow().ok()?.running()
    }

    pub(crate) fn panic_hook(&self) -> Option<PanicHook> {
        self.panic_hook.borrow().clone()
    }

    /// Sends a message to a worker of this runtime, including this one.
    fn send(&self, worker: WorkerId, message: Message) {
        if let Some(remote) = self.peers().get(usize::from(worker)) {
            remote.send(message);
        }
    }

    pub(crate) fn wake(&self, task: TaskId) {
        self.tasks.borrow_mut().wake(task);
    }
}

/// Returns the current worker's ID.
pub fn worker() -> WorkerId {
    current::with(|worker| worker.remote.worker)
}

/// Whether a worker runs on this thread.
pub fn is_on_worker() -> bool {
    current::try_with(|_| ()).is_some()
}

/// Returns the number of workers of this runtime.
pub fn workers() -> usize {
    current::with(|worker| worker.shared.workers)
}

/// Returns the time of this iteration: read once, when its events had been collected.
#[inline]
pub fn now() -> Moment {
    current::with(|worker| worker.now.get())
}

/// Returns the current time. For measurements within an iteration: reads the clock, which costs some twenty
/// nanoseconds, whereas [`now`] costs one.
#[inline]
pub fn read_clock() -> Moment {
    current::with(|worker| worker.driver.now())
}

/// Counts a request, or an equal amount of work, and returns whether the running task has used up its time slice (a
/// tenth of a millisecond): if possible, it is to await [`crate::yield_now`] then. The clock is read for every fourth
/// request.
#[inline]
pub fn slice_is_over() -> bool {
    current::with(|worker| {
        worker.remote.note_progress();
        worker.is_over_after(2)
    })
}

/// Reads the clock for the running task, after work that may have taken long: [`slice_is_over`] takes it into account
/// immediately. Returns the time since the previous reading in the same poll of the task; `None`: it is the first one.
pub fn measure() -> Option<Duration> {
    current::with(|worker| {
        worker.remote.note_progress();
        worker.measure()
    })
}

/// Declares that the running task's current work ends by itself at that time: until then the watchdog only reports a
/// task that does not return. `None`: the time is unknown. Returns the previous value, which is to be restored
/// afterwards. Outside of workers it has no effect.
/// afterwards. Outside of workers nothing happens.
pub fn ends_at(moment: Option<Moment>) -> Option<Moment> {
    current::try_with(|worker| worker.remote.ends_at(moment)).flatten()
}

/// Whether the time slice of the running task was used up at the last reading of the clock.
#[inline]
pub fn has_used_slice() -> bool {
    current::with(|worker| worker.slice.is_over())
}

/// Returns the number of polls of tasks on this worker, including the current one: for detecting data cached in another
/// poll. Wraps around.
#[inline]
pub fn calls() -> u32 {
    current::with(|worker| worker.slice.calls())
}

/// Returns the processor time used by the current worker's thread: a system call. In a simulation the current time.
pub fn processor_time() -> Duration {
    current::with(|worker| worker.driver.processor_time())
}

/// Returns the calendar time of this iteration, read on the first call in it.
#[inline]
pub fn wall() -> WallTime {
    current::with(Worker::wall)
}

/// Returns a random number of this worker's generator, seeded in the simulator. Not for secrets.
#[inline]
pub fn random() -> u64 {
    current::with(|worker| worker.random.next())
}

/// Returns an empty buffer of [`buffer_size`] bytes from this worker's pool.
#[inline]
pub fn buffer() -> Buffer {
    current::with(|worker| worker.buffers.get())
}

/// Returns the size of a [`buffer`] in bytes.
pub fn buffer_size() -> usize {
    current::with(|worker| worker.buffers.size())
}

/// Returns an empty buffer of the large class (576 KB) for bulk data, from this worker's pool.
pub fn large_buffer() -> Buffer {
    current::with(|worker| worker.large_buffers.get())
}

/// Returns an empty buffer for bulk data: a [`large_buffer`], or an ordinary [`buffer`] if this worker has reached its
/// limit of large ones in use, or memory is scarce. So the memory of a worker does not depend on how slowly its peers
/// read.
pub fn bulk_buffer() -> Buffer {
    current::with(|worker| {
        let lent = worker.large_buffers.outstanding();
        if lent < LARGE_BUFFERS_LENT && !memory_is_scarce() { worker.large_buffers.get() } else { worker.buffers.get() }
    })
}

/// Returns an empty buffer of 64 KB whose storage its writer may keep, or an ordinary [`buffer`] if memory is scarce.
pub fn piece_buffer() -> Buffer {
    current::with(|worker| if memory_is_scarce() { worker.buffers.get() } else { worker.pieces.get() })
}

/// Keeps the storage of a piece for the next [`piece_buffer`] of this thread's worker. Without a worker it is freed.
pub fn keep_piece(storage: Box<[u8]>) {
    current::try_with(|worker| worker.pieces.adopt(storage));
}

/// Returns the size of a [`large_buffer`] in bytes.
pub fn large_buffer_size() -> usize {
    current::with(|worker| worker.large_buffers.size())
}

/// The state of a buffer pool of this worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolUse {
    pub name: &'static str,
    /// Size of a buffer in bytes.
    pub size: usize,
    /// Number of unused buffers.
    pub kept: usize,
    /// Number of buffers in use.
    pub used: usize,
}

/// Returns the state of this worker's pools.
pub fn pools() -> [PoolUse; 3] {
    current::with(|worker| {
        let pools = [("buffer", &worker.buffers), ("large_buffer", &worker.large_buffers), ("piece", &worker.pieces)];
        pools.map(|(name, pool)| PoolUse { name, size: pool.size(), kept: pool.kept(), used: pool.outstanding() })
    })
}

/// Returns the number of buffers of all classes in use. For tests that look for leaks.
pub fn buffers_in_use() -> usize {
    pools().iter().map(|pool| pool.used).sum()
}

/// Starts a task on this worker. It runs at the end of the current iteration, if that has capacity for it, otherwise in
/// the next one. `tag` is passed to the panic hook.
pub fn spawn(class: Class, tag: u64, future: impl Future<Output = ()> + 'static) {
    let future = boxed(future).into_task();
    current::with(|worker| worker.tasks.borrow_mut().insert(class, tag, future));
}

/// Starts the task that `make` returns, which is written in place; otherwise like [`spawn`].
#[inline]
pub fn spawn_with<A, F: Future<Output = ()> + 'static>(
    class: Class,
    tag: u64,
    arguments: A,
    make: impl FnOnce(A) -> F,
) {
    let future = boxed_with(arguments, make).into_task();
    current::with(|worker| worker.tasks.borrow_mut().insert(class, tag, future));
}

/// Runs a part of the running task with its panics contained: on a panic the panic hook gets `tag`, and the task
/// continues.
#[inline]
pub fn contain(tag: u64, part: impl FnOnce()) {
    current::with(|worker| executor::run_contained(worker, tag, part));
}

/// Returns the number of tasks of this worker.
pub fn tasks() -> usize {
    current::with(|worker| worker.tasks.borrow().len())
}

/// Returns the number of tasks of this worker that are queued.
pub fn waiting_tasks() -> usize {
    current::with(|worker| {
        let (normal, heavy, background, late) = worker.tasks.borrow().queued();
        normal + heavy + background + late
    })
}

/// The activity of a worker since its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Iterations of its loop.
    pub turns: u64,
    /// Iterations that began with events.
    pub eventful: u64,
    /// Iterations that did not wait because tasks were queued.
    pub unwaited: u64,
    /// Iterations that did not wait because a timer was due.
    pub overdue: u64,
    /// Iterations that found no task to call.
    pub idle: u64,
    /// Iterations that left tasks queued for the next one.
    pub crowded: u64,
    /// Events of sources that had been removed.
    pub stray: u64,
    /// Polls of tasks and jobs; wraps around.
    pub calls: u32,
    /// Jobs that were run outside of tasks.
    pub jobs: u64,
    /// Polls of tasks that were spawned with a tag.
    pub tagged: u64,
    /// Number of times that a task began to wait for memory.
    pub memory_waits: u64,
    /// Tasks and jobs that panicked.
    pub panics: u64,
    /// Average time of an iteration without its wait in microseconds, over the last complete window of half a second.
    pub average_micros: u32,
    /// Number of queued tasks.
    pub queued: usize,
    /// Whether timers are armed.
    pub has_timers: bool,
    /// Whether times of tasks are measured ([`measure_tasks`]).
    pub measures: bool,
}

/// Returns the activity of this worker since its start.
pub fn activity() -> Activity {
    current::with(|worker| Activity {
        turns: worker.counts.turns.get(),
        eventful: worker.counts.eventful.get(),
        unwaited: worker.counts.unwaited.get(),
        overdue: worker.counts.overdue.get(),
        idle: worker.counts.idle.get(),
        crowded: worker.counts.crowded.get(),
        stray: worker.counts.stray.get(),
        calls: worker.slice.calls(),
        jobs: worker.counts.jobs.get(),
        tagged: worker.counts.tagged.get(),
        panics: u64::from(worker.panics.get()),
        memory_waits: worker.counts.memory_waits.get(),
        average_micros: worker.idleness.average_micros(),
        queued: worker.tasks.borrow().queued_in_all(),
        has_timers: !worker.timers.borrow().is_empty(),
        measures: worker.measures.get(),
    })
}

/// Returns the percentage of its time that this worker recently spent waiting: over a window of at least half a second.
pub fn idle_percent() -> u32 {
    current::with(|worker| worker.idleness.percent())
}

/// Returns the cost of this worker's tasks, by kind, and the number queued.
pub fn task_profile() -> Profile {
    current::with(|worker| worker.tasks.borrow_mut().profile())
}

/// Returns the cost of the running task so far; zero outside of any.
pub fn task_cost() -> TaskCost {
    current::with(|worker| worker.tasks.borrow().cost())
}

/// Starts or stops measuring how long this worker's tasks run, and how long they wait for that. Each poll of a task
/// then costs two more readings of the clock. Starting again discards previous results.
pub fn measure_tasks(on: bool) {
    current::with(|worker| {
        let (now, mut tasks) = (worker.driver.now(), worker.tasks.borrow_mut());
        worker.measures.set(on);
        tasks.stop_clock(now);
        if on {
            tasks.set_clock(now);
        }
    });
}

/// Returns the busy part of a worker's last iteration and the wait after it, in percent; 0 if there is no such worker.
pub fn usage_of(worker: WorkerId) -> u32 {
    current::with(|current| current.peers().get(usize::from(worker)).map_or(0, |remote| remote.usage()))
}

/// Sets this worker's callback after a task panicked and was dropped; it gets the task's tag.
pub fn set_panic_hook(hook: Rc<dyn Fn(u64)>) {
    let old = current::with(|worker| worker.panic_hook.borrow_mut().replace(hook));
    drop(old);
}

/// Stores a value for the current worker, for jobs posted to it; replaces a previous one.
pub fn set_local(value: Rc<dyn Any>) {
    let old = current::with(|worker| worker.local.borrow_mut().replace(value));
    drop(old);
}

/// Returns the value stored for the current worker, if it is a `T`.
pub fn local<T: 'static>() -> Option<Rc<T>> {
    let value = current::with(|worker| worker.local.borrow().clone())?;
    value.downcast().ok()
}

/// Runs `job` on a worker of this runtime, outside of any task. Dropped unrun if that worker has ended or does not
/// exist.
pub fn post(worker: WorkerId, job: Box<dyn FnOnce() + Send>) {
    current::with(|current| current.send(worker, Message::Job(job)));
}

/// Returns a handle to this runtime's workers for other threads.
pub fn handle() -> Handle {
    current::with(|worker| Handle { shared: Arc::clone(&worker.shared) })
}

/// Returns the number of sessions of this worker; see [`crate::LoadGuard`].
pub fn load() -> u32 {
    current::with(|worker| worker.remote.load())
}

/// Returns the number of sessions of a worker of this runtime; 0 if there is no such worker.
pub fn load_of(worker: WorkerId) -> u32 {
    current::with(|current| current.peers().get(usize::from(worker)).map_or(0, |remote| remote.load()))
}

/// Makes every worker of this runtime leave its event loop after the current iteration.
pub fn stop() {
    current::with(|worker| worker.shared.stop());
}

/// Makes every worker of this runtime wait for events from now on, regardless of [`crate::Config::spin`].
pub fn stop_spinning() {
    current::with(|worker| worker.shared.spin.store(false, Ordering::Relaxed));
}

/// Whether workers never wait for events: [`crate::Config::spin`], until [`stop_spinning`].
pub fn is_spinning() -> bool {
    current::with(|worker| worker.shared.spin.load(Ordering::Relaxed))
}

/// Whether the workers are stopping.
pub fn stopping() -> bool {
    current::with(|worker| worker.shared.stopping())
}
