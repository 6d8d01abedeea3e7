//! One worker: everything that belongs to one core, and the free functions that act on the current one.
//!
//! It must never be reached from another thread: what others may reach is its `Remote`.

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
use crate::net::{ParkedId, RawPipe, Spares};
use crate::patience::Patience;
use crate::profile::Profile;
use crate::random::Random;
use crate::recycle::{Bins, boxed, boxed_with};
use crate::slice::Slice;
use crate::source::Sources;
use crate::task::{Class, TaskCost, Tasks};
use crate::task_id::TaskId;
use crate::{WorkerId, current, executor};

/// Bytes of a [`large_buffer`]: half of a usual second-level cache, and nine of the loopback device's segments.
const LARGE_BUFFER: usize = 576 * 1024;
/// Large buffers that a worker keeps: one moves all bulk data in turn, slow readers hold others.
const LARGE_BUFFERS_KEPT: usize = 4;
/// Large buffers that are lent for bulk data at a time: hundreds of slow readers would hold one each otherwise.
const LARGE_BUFFERS_LENT: usize = 32;
/// Units of reading and writing that a task may spend before it must let others run; see `Worker::may_spend`.
const BUDGET: u32 = 64;
/// Bytes that cost one unit on top of the call's own.
const BYTES_A_UNIT: usize = 16 * 1024;

type PanicHook = Rc<dyn Fn(u64)>;

/// What a worker owns.
pub(crate) struct Worker {
    pub(crate) remote: Arc<Remote>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) driver: Driver,
    pub(crate) now: Cell<Moment>,
    wall: Cell<Option<WallTime>>,
    pub(crate) random: Random,
    buffers: BufferPool,
    large_buffers: BufferPool,
    pub(crate) waits: Waits,
    pub(crate) bins: Bins,
    pub(crate) tasks: RefCell<Tasks>,
    pub(crate) sources: RefCell<Sources>,
    pub(crate) timers: RefCell<TimerWheel<Waker>>,
    pub(crate) parked_events: RefCell<ParkedEvents>,
    pub(crate) pipes: RefCell<Vec<RawPipe>>,
    pub(crate) spares: RefCell<Spares>,
    panic_hook: RefCell<Option<PanicHook>>,
    /// Tasks and jobs that panicked.
    pub(crate) panics: Cell<u32>,
    /// What the program keeps for this worker.
    local: RefCell<Option<Rc<dyn Any>>>,
    pub(crate) patience: Patience,
    pub(crate) idleness: Idleness,
    pub(crate) counts: LoopCounts,
    /// What the task that runs may still read and write.
    budget: Cell<u32>,
    /// How long it may still run.
    pub(crate) slice: Slice,
    pub(crate) run_queue_depth: usize,
    /// It measures what tasks cost.
    pub(crate) measures: Cell<bool>,
}

/// Parked streams on which something happened, for the reaper.
#[derive(Default)]
pub(crate) struct ParkedEvents {
    pub(crate) ids: Vec<ParkedId>,
    pub(crate) waker: Option<Waker>,
}

/// What a worker is made from.
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
            patience: Patience::default(),
            idleness: Idleness::new(now),
            counts: LoopCounts::default(),
            budget: Cell::new(BUDGET),
            slice: Slice::new(now),
            run_queue_depth: parts.run_queue_depth,
            measures: Cell::new(false),
        }
    }

    /// All workers of the runtime.
    pub(crate) fn peers(&self) -> &[Arc<Remote>] {
        &self.shared.remotes
    }

    /// The worker of this runtime at a place of the registry; a runtime's places are neighbours.
    pub(crate) fn peer_by_index(&self, index: u16) -> Option<&Arc<Remote>> {
        let first = self.shared.remotes.first()?.index;
        self.shared.remotes.get(usize::from(index.checked_sub(first)?))
    }

    /// Reads the clock, once a turn.
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
    }

    /// A task, or a job, is called.
    #[inline]
    pub(crate) fn begin_call(&self) {
        self.budget.set(BUDGET);
        self.slice.begin();
        self.remote.note_progress();
    }

    /// Reads the clock for the task that runs; see [`measure`].
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

    /// Whether the running task may read or write once more. When it has spent its budget, or its slice, the answer is no,
    /// and the task is queued for the next turn: a fast peer cannot keep a worker to itself.
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

    /// Takes what `bytes` cost from the running task's budget.
    #[inline]
    pub(crate) fn spend_bytes(&self, bytes: usize) {
        if bytes >= BYTES_A_UNIT {
            let units = u32::try_from(bytes / BYTES_A_UNIT).unwrap_or(u32::MAX);
            self.budget.set(self.budget.get().saturating_sub(units));
        }
    }

    /// The task that is being polled, and its tag. For a signal handler that interrupted this worker: when the tasks
    /// are being changed it looks at nothing.
    pub(crate) fn running_task(&self) -> Option<(u64, u64)> {
        self.tasks.try_borrow().ok()?.running()
    }

    pub(crate) fn panic_hook(&self) -> Option<PanicHook> {
        self.panic_hook.borrow().clone()
    }

    /// Sends to a worker of this runtime, or to this one.
    fn send(&self, worker: WorkerId, message: Message) {
        if let Some(remote) = self.peers().get(usize::from(worker)) {
            remote.send(message);
        }
    }

    pub(crate) fn wake(&self, task: TaskId) {
        self.tasks.borrow_mut().wake(task);
    }
}

/// The current worker's number.
pub fn worker() -> WorkerId {
    current::with(|worker| worker.remote.worker)
}

/// Whether a worker runs on this thread.
pub fn is_on_worker() -> bool {
    current::try_with(|_| ()).is_some()
}

/// Number of workers of this runtime.
pub fn workers() -> usize {
    current::with(|worker| worker.shared.workers)
}

/// The time of this turn: it was read once, when the turn's events had come.
#[inline]
pub fn now() -> Moment {
    current::with(|worker| worker.now.get())
}

/// The time at this very moment. For measuring what happens within a turn: it reads the clock, which costs some
/// twenty nanoseconds, where [`now`] costs one.
#[inline]
pub fn read_clock() -> Moment {
    current::with(|worker| worker.driver.now())
}

/// Counts a request, or as much work, and returns whether the running task has used its slice of time (a tenth of a
/// millisecond): it is to await [`crate::yield_now`] then, where it can. The clock is read for every fourth request.
#[inline]
pub fn slice_is_over() -> bool {
    current::with(|worker| {
        worker.remote.note_progress();
        worker.is_over_after(2)
    })
}

/// Reads the clock for the running task, which has done work that may take long: [`slice_is_over`] knows of it at once.
/// Returns the time since the same call of the task read it before; `None`: it is the first reading of the call.
pub fn measure() -> Option<Duration> {
    current::with(|worker| {
        worker.remote.note_progress();
        worker.measure()
    })
}

/// The task that runs goes on with something that ends by itself at that time: until then the watchdog reports a task that does
/// not return, and does no more. `None`: nothing is known of it. Returns what was said before, which is to be said again
/// afterwards. Outside of workers nothing happens.
pub fn ends_at(moment: Option<Moment>) -> Option<Moment> {
    current::try_with(|worker| worker.remote.ends_at(moment)).flatten()
}

/// Whether the slice of the running task was used up when the clock was read last.
#[inline]
pub fn has_used_slice() -> bool {
    current::with(|worker| worker.slice.is_over())
}

/// Calls of tasks on this worker so far, with the one that runs: what was read in one call tells nothing in another one. It
/// wraps.
#[inline]
pub fn calls() -> u32 {
    current::with(|worker| worker.slice.calls())
}

/// The processor time that the current worker's thread has used: a system call. In a simulation the time.
pub fn processor_time() -> Duration {
    current::with(|worker| worker.driver.processor_time())
}

/// The calendar time of this turn, read when it is first asked for in it.
#[inline]
pub fn wall() -> WallTime {
    current::with(Worker::wall)
}

/// A random number of this worker's generator, seeded in the simulator. Not for secrets.
#[inline]
pub fn random() -> u64 {
    current::with(|worker| worker.random.next())
}

/// An empty buffer of [`buffer_size`] bytes from this worker's pool.
#[inline]
pub fn buffer() -> Buffer {
    current::with(|worker| worker.buffers.get())
}

/// Bytes that a [`buffer`] holds.
pub fn buffer_size() -> usize {
    current::with(|worker| worker.buffers.size())
}

/// An empty buffer of the large class (576 KB) for bulk data, from this worker's pool.
pub fn large_buffer() -> Buffer {
    current::with(|worker| worker.large_buffers.get())
}

/// An empty buffer for bulk data: a [`large_buffer`], or an ordinary [`buffer`] while this worker has lent as many large
/// ones as it may, or memory is scarce. So the memory of a worker does not depend on how slowly its peers read.
pub fn bulk_buffer() -> Buffer {
    current::with(|worker| {
        let lent = worker.large_buffers.outstanding();
        if lent < LARGE_BUFFERS_LENT && !memory_is_scarce() { worker.large_buffers.get() } else { worker.buffers.get() }
    })
}

/// Bytes that a [`large_buffer`] holds.
pub fn large_buffer_size() -> usize {
    current::with(|worker| worker.large_buffers.size())
}

/// What a pool of this worker has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolUse {
    /// Its name.
    pub name: &'static str,
    /// Bytes of a buffer.
    pub size: usize,
    /// Buffers that are unused.
    pub kept: usize,
    /// Buffers that are in use.
    pub used: usize,
}

/// The pools of this worker.
pub fn pools() -> [PoolUse; 2] {
    current::with(|worker| {
        [("buffer", &worker.buffers), ("large_buffer", &worker.large_buffers)].map(|(name, pool)| PoolUse {
            name,
            size: pool.size(),
            kept: pool.kept(),
            used: pool.outstanding(),
        })
    })
}

/// Buffers of both classes from this worker's pools that are in use now. For tests that look for leaks.
pub fn buffers_in_use() -> usize {
    current::with(|worker| worker.buffers.outstanding() + worker.large_buffers.outstanding())
}

/// Starts a task on this worker. It runs at the end of the turn that goes on, where that has room for it, or else of the
/// next one. `tag` is what the panic hook gets.
pub fn spawn(class: Class, tag: u64, future: impl Future<Output = ()> + 'static) {
    let future = boxed(future).into_task();
    current::with(|worker| worker.tasks.borrow_mut().insert(class, tag, future));
}

/// Starts the task that `make` returns, which is written where it stays; else as [`spawn`].
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

/// Runs a part of the running task that is about something else: when it panics, the panic hook gets `tag`, and the task
/// goes on.
#[inline]
pub fn contain(tag: u64, part: impl FnOnce()) {
    current::with(|worker| executor::run_contained(worker, tag, part));
}

/// Number of tasks that live on this worker.
pub fn tasks() -> usize {
    current::with(|worker| worker.tasks.borrow().len())
}

/// Number of tasks of this worker that wait to be called.
pub fn waiting_tasks() -> usize {
    current::with(|worker| {
        let (normal, heavy, background, late) = worker.tasks.borrow().queued();
        normal + heavy + background + late
    })
}

/// What a worker has done since its start.
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
    /// Events of sources that were removed before.
    pub stray: u64,
    /// Calls of tasks and jobs; it wraps.
    pub calls: u32,
    /// Jobs that were run outside of tasks.
    pub jobs: u64,
    /// Calls of tasks that were spawned with a tag.
    pub tagged: u64,
    /// Times that a task began to wait for memory.
    pub memory_waits: u64,
    /// Tasks and jobs that panicked.
    pub panics: u64,
    /// Microseconds that an iteration took without its wait, on average over the last whole window of half a second.
    pub average_micros: u32,
    /// Tasks that are queued to be called now.
    pub queued: usize,
    /// Timers are armed.
    pub has_timers: bool,
    /// Times of tasks are measured ([`measure_tasks`]).
    pub measures: bool,
}

/// What this worker has done since its start.
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

/// Percent of its time that this worker spent waiting, lately: over a window of half a second or more.
pub fn idle_percent() -> u32 {
    current::with(|worker| worker.idleness.percent())
}

/// What the tasks of this worker have cost, by kind, and which are queued.
pub fn task_profile() -> Profile {
    current::with(|worker| worker.tasks.borrow_mut().profile())
}

/// What the running task has cost so far; nothing outside of any.
pub fn task_cost() -> TaskCost {
    current::with(|worker| worker.tasks.borrow().cost())
}

/// Whether this worker measures from now on how long its tasks run and how long they wait for that. Each call of a task then costs
/// two readings of the clock more. To begin anew forgets what was measured before.
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

/// How much of its last turn, with the wait behind it, a worker of this runtime has worked, in percent; 0 for one that
/// does not exist.
pub fn usage_of(worker: WorkerId) -> u32 {
    current::with(|current| current.peers().get(usize::from(worker)).map_or(0, |remote| remote.usage()))
}

/// Sets what this worker does after a task panicked and was dropped; it gets the task's tag.
pub fn set_panic_hook(hook: Rc<dyn Fn(u64)>) {
    let old = current::with(|worker| worker.panic_hook.borrow_mut().replace(hook));
    drop(old);
}

/// Keeps a value for the current worker, for jobs that were posted to it; replaces the one that was kept before.
pub fn set_local(value: Rc<dyn Any>) {
    let old = current::with(|worker| worker.local.borrow_mut().replace(value));
    drop(old);
}

/// What was kept for the current worker, if it is a `T`.
pub fn local<T: 'static>() -> Option<Rc<T>> {
    let value = current::with(|worker| worker.local.borrow().clone())?;
    value.downcast().ok()
}

/// Runs `job` on a worker of this runtime, outside of any task. Dropped without a run when that worker has ended or
/// does not exist.
pub fn post(worker: WorkerId, job: Box<dyn FnOnce() + Send>) {
    current::with(|current| current.send(worker, Message::Job(job)));
}

/// A way to reach this runtime's workers from other threads.
pub fn handle() -> Handle {
    current::with(|worker| Handle { shared: Arc::clone(&worker.shared) })
}

/// Sessions that live on this worker; see [`crate::LoadGuard`].
pub fn load() -> u32 {
    current::with(|worker| worker.remote.load())
}

/// Sessions that live on a worker of this runtime; 0 for one that does not exist.
pub fn load_of(worker: WorkerId) -> u32 {
    current::with(|current| current.peers().get(usize::from(worker)).map_or(0, |remote| remote.load()))
}

/// Asks every worker of this runtime to leave its loop after its turn.
pub fn stop() {
    current::with(|worker| worker.shared.stop());
}

/// Has every worker of this runtime wait for events from now on, whatever [`crate::Config::spin`] says.
pub fn stop_spinning() {
    current::with(|worker| worker.shared.spin.store(false, Ordering::Relaxed));
}

/// Whether the workers were asked to stop.
pub fn stopping() -> bool {
    current::with(|worker| worker.shared.stopping())
}
