//! The tasks of one worker: a slab of boxed futures, run queues, and wakers that are plain numbers.
//!
//! A waker must never own anything: cloning it copies a number, and waking a task that has ended does nothing.

use std::collections::VecDeque;
use std::ptr;
use std::task::{RawWaker, RawWakerVTable, Waker};
use std::time::Duration;

use base::Moment;

use crate::current;
use crate::mailbox;
use crate::profile::Profile;
use crate::recycle::{NamedFuture, Recycled};
use crate::task_id::{MOST_TASKS, TaskId};

/// The scheduling class of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// The work of requests: all tasks that were queued when an iteration began run in it, and those that they start.
    #[default]
    Normal,
    /// Long computations (handshakes, password hashes): a few per iteration, so that they do not delay the others.
    Heavy,
    /// Work that no client waits for, short but numerous (checks): eight tasks per iteration, or a fifth of those that
    /// run in it.
    Background,
}

pub(crate) type TaskFuture = Recycled<dyn NamedFuture<Output = ()>>;

/// Creates a waker of a task.
pub(crate) fn waker(id: TaskId) -> Waker {
    let data = ptr::without_provenance(id.bits() as usize);
    // SAFETY: the table's functions use the data as a number only, and are safe to call from any thread.
    unsafe { Waker::from_raw(RawWaker::new(data, &VTABLE)) }
}

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake, |_| {});

fn clone(data: *const ()) -> RawWaker {
    RawWaker::new(data, &VTABLE)
}

fn wake(data: *const ()) {
    let id = TaskId::from_bits(data.addr() as u64);
    let woken = current::try_with(|worker| {
        if worker.remote.index == id.worker() {
            worker.tasks.borrow_mut().wake(id);
            return true;
        }
        worker.peer_by_index(id.worker()).map(|peer| peer.wake(id)).is_some()
    });
    if woken != Some(true) {
        mailbox::wake(id);
    }
}

/// The cost of a task so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskCost {
    /// Number of polls, including the current one; wraps around.
    pub calls: u32,
    /// Total time of completed polls; zero unless the worker measures ([`crate::measure_tasks`]).
    pub busy: Duration,
    /// Total time between wakeups and the polls that followed; likewise.
    pub late: Duration,
}

/// The measurements of the tasks of one worker.
struct Clock {
    /// The last reading of the clock.
    now: Moment,
    /// Start of the current poll.
    called: Moment,
    /// The time between its wakeup and the current poll.
    late: Duration,
    /// The type name of the running task.
    name: &'static str,
    /// Times by slot.
    times: Vec<Times>,
}

#[derive(Clone, Copy, Default)]
struct Times {
    woken: Moment,
    busy: Duration,
    late: Duration,
}

/// The run queues.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queue {
    /// Woken tasks of the normal class.
    Normal,
    /// Woken or started tasks of the heavy class.
    Heavy,
    /// Woken or started tasks of the background class.
    Background,
    /// Started tasks of the normal class.
    Fresh,
    /// Woken tasks of the normal class that had used up their time slices.
    Late,
}

/// The state of a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    /// The future is in the slot.
    Waiting,
    /// The future is being polled, outside of the slot.
    Running,
}

struct Slot {
    /// The task's tag; in a free slot the index of the next free one.
    tag: u64,
    future: Option<TaskFuture>,
    generation: u32,
    calls: u32,
    state: State,
    class: Class,
    queued: bool,
    /// Number of polls for which the other tasks take precedence: it used up a time slice.
    late: u8,
}

const _: () = assert!(std::mem::size_of::<Slot>() <= 40, "an idle connection is small");

impl Clock {
    fn wake(&mut self, slot: usize) {
        if slot >= self.times.len() {
            self.times.resize(slot + 1, Times::default());
        }
        self.times[slot].woken = self.now;
    }
}

/// All tasks of one worker.
pub(crate) struct Tasks {
    worker: u16,
    slots: Vec<Slot>,
    free: u64,
    len: usize,
    normal: VecDeque<TaskId>,
    heavy: VecDeque<TaskId>,
    background: VecDeque<TaskId>,
    /// Normal tasks that were started and have not run yet.
    fresh: VecDeque<TaskId>,
    /// Normal tasks that used up their time slices.
    late: VecDeque<TaskId>,
    /// The slot of the task that was polled last.
    called: usize,
    clock: Option<Box<Clock>>,
    profile: Profile,
}

const NO_SLOT: u64 = u64::MAX;
/// Number of polls for which a task that used up its time slice runs after the others.
const CALLS_BEHIND: u8 = 2;

impl Tasks {
    pub(crate) fn new(worker: u16) -> Tasks {
        let (normal, heavy, fresh) =
            (VecDeque::with_capacity(1024), VecDeque::with_capacity(64), VecDeque::with_capacity(64));
        let slots = Vec::with_capacity(1024);
        let background = VecDeque::new();
        Tasks {
            worker,
            slots,
            free: NO_SLOT,
            len: 0,
            normal,
            heavy,
            background,
            fresh,
            late: VecDeque::new(),
            called: usize::MAX,
            clock: None,
            profile: Profile::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn insert(&mut self, class: Class, tag: u64, future: TaskFuture) {
        self.len += 1;
        let number = self.free as usize;
        let id = match self.slots.get_mut(number) {
            Some(slot) => {
                self.free = slot.tag;
                let (generation, future) = (slot.generation, Some(future));
                *slot = Slot { tag, future, generation, calls: 0, state: State::Waiting, class, queued: true, late: 0 };
                TaskId::new(self.worker, generation, number as u32)
            }
            None => self.append(Slot {
                tag,
                future: Some(future),
                generation: 0,
                calls: 0,
                state: State::Waiting,
                class,
                queued: true,
                late: 0,
            }),
        };
        match class {
            Class::Normal => self.fresh.push_back(id),
            Class::Heavy => self.heavy.push_back(id),
            Class::Background => self.background.push_back(id),
        }
        if let Some(clock) = &mut self.clock {
            if let Some(times) = clock.times.get_mut(id.slot()) {
                *times = Times::default();
            }
            clock.wake(id.slot());
        }
    }

    #[cold]
    fn append(&mut self, slot: Slot) -> TaskId {
        let number = self.slots.len();
        assert!(number < MOST_TASKS, "a worker has at most 2^24 tasks");
        self.slots.push(slot);
        TaskId::new(self.worker, 0, number as u32)
    }

    fn slot(&mut self, id: TaskId) -> Option<&mut Slot> {
        self.slots.get_mut(id.slot()).filter(|slot| slot.generation == id.generation() && slot.state != State::Free)
    }

    /// Queues a task unless it is queued already or has ended.
    #[inline]
    pub(crate) fn wake(&mut self, id: TaskId) {
        let Some(slot) = self.slots.get_mut(id.slot()) else { return };
        if slot.generation != id.generation() || slot.queued || slot.state == State::Free {
            return;
        }
        slot.queued = true;
        match slot.class {
            Class::Normal if slot.late > 0 => self.late.push_back(id),
            Class::Normal => self.normal.push_back(id),
            Class::Heavy => self.heavy.push_back(id),
            Class::Background => self.background.push_back(id),
        }
        if let Some(clock) = &mut self.clock {
            clock.wake(id.slot());
        }
    }

    /// Returns the number of queued tasks: normal, heavy, background, and normal ones that used up their slices.
    /// Includes ended tasks, excludes those just started.
    #[inline]
    pub(crate) fn queued(&self) -> (usize, usize, usize, usize) {
        (self.normal.len(), self.heavy.len(), self.background.len(), self.late.len())
    }

    /// Marks the running task as having used up its time slice: for two polls the others take precedence. After only
    /// one, a client that sends burst after burst would take precedence with the next burst again.
    pub(crate) fn demote_running(&mut self) {
        if let Some(slot) = self.slots.get_mut(self.called).filter(|slot| slot.state == State::Running) {
            slot.late = CALLS_BEHIND;
        }
    }

    /// Changes the class of the running task from its next wakeup on. Returns its previous class; `None`: no task is
    /// running.
    pub(crate) fn reclassify_running(&mut self, class: Class) -> Option<Class> {
        let slot = self.slots.get_mut(self.called).filter(|slot| slot.state == State::Running)?;
        Some(std::mem::replace(&mut slot.class, class))
    }

    /// Returns the number of queued tasks, including just started and ended ones.
    pub(crate) fn queued_in_all(&self) -> usize {
        let queues = [&self.normal, &self.fresh, &self.late, &self.heavy, &self.background];
        queues.iter().map(|queue| queue.len()).sum()
    }

    /// Whether no task is queued.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        let queues = [&self.normal, &self.fresh, &self.late, &self.heavy, &self.background];
        queues.iter().all(|queue| queue.is_empty())
    }

    /// Takes the next task of a queue out of its slot, to be polled. The outer `None`: the queue is empty; the inner one:
    /// the task has ended since it was queued.
    #[inline]
    pub(crate) fn take_next(&mut self, queue: Queue) -> Option<Option<(TaskId, u64, TaskFuture)>> {
        let id = match queue {
            Queue::Normal => self.normal.pop_front()?,
            Queue::Heavy => self.heavy.pop_front()?,
            Queue::Background => self.background.pop_front()?,
            Queue::Fresh => self.fresh.pop_front()?,
            Queue::Late => self.late.pop_front()?,
        };
        let rest = if queue == Queue::Background { &self.background } else { &self.normal };
        if let Some(next) = rest.front().and_then(|next| self.slots.get(next.slot()))
            && let Some(future) = &next.future
        {
            // The next task is rarely in the cache if there are many, and this task runs longer than the fetch takes.
            future.prefetch();
        }
        let Some(slot) = self.slot(id) else { return Some(None) };
        (slot.queued, slot.late) = (false, slot.late.saturating_sub(1));
        slot.state = State::Running;
        slot.calls = slot.calls.wrapping_add(1);
        let taken = slot.future.take().map(|future| (id, slot.tag, future));
        self.called = id.slot();
        Some(taken)
    }

    /// Returns the cost of the running task so far.
    pub(crate) fn cost(&self) -> TaskCost {
        let Some(slot) = self.slots.get(self.called).filter(|slot| slot.state == State::Running) else {
            return TaskCost::default();
        };
        let times = self.clock.as_ref().and_then(|clock| clock.times.get(self.called)).copied().unwrap_or_default();
        TaskCost { calls: slot.calls, busy: times.busy, late: times.late }
    }

    /// Starts measuring, or updates the clock.
    pub(crate) fn set_clock(&mut self, now: Moment) {
        match &mut self.clock {
            Some(clock) => clock.now = now,
            None => {
                self.profile = Profile { since: Some(now), ..Profile::default() };
                self.clock =
                    Some(Box::new(Clock { now, called: now, late: Duration::ZERO, name: "", times: Vec::new() }));
            }
        }
    }

    /// Stops measuring; the results are kept.
    pub(crate) fn stop_clock(&mut self, now: Moment) {
        if self.clock.take().is_some() {
            self.profile.until = Some(now);
        }
    }

    /// Returns the cost of tasks by function. Walks all slots if tasks are queued.
    pub(crate) fn profile(&mut self) -> Profile {
        let mut profile = self.profile.clone();
        if !self.is_idle() {
            let queued = self.slots.iter_mut().filter(|slot| slot.queued && slot.state != State::Free);
            for future in queued.filter_map(|slot| slot.future.as_mut()) {
                profile.row(future.name()).queued += 1;
            }
        }
        profile
    }

    /// Records the start of a poll of the task taken last.
    pub(crate) fn note_called(&mut self, name: &'static str, now: Moment) {
        let called = self.called;
        let Some(clock) = &mut self.clock else { return };
        (clock.now, clock.called, clock.late, clock.name) = (now, now, Duration::ZERO, name);
        if let Some(times) = clock.times.get_mut(called) {
            clock.late = now.saturating_since(times.woken);
            times.late += clock.late;
        }
    }

    /// Records the end of its poll.
    pub(crate) fn note_returned(&mut self, now: Moment) {
        let called = self.called;
        let Some(clock) = &mut self.clock else { return };
        let took = now.saturating_since(clock.called);
        clock.now = now;
        if let Some(times) = clock.times.get_mut(called) {
            times.busy += took;
        }
        self.profile.add(clock.name, took, clock.late);
    }

    /// Returns the ID of the task being polled as a number, and its tag. Walks all slots: for emergencies.
    pub(crate) fn running(&self) -> Option<(u64, u64)> {
        let number = self.slots.iter().position(|slot| slot.state == State::Running)?;
        let slot = &self.slots[number];
        Some((TaskId::new(self.worker, slot.generation, number as u32).bits(), slot.tag))
    }

    /// Puts a pending task back into its slot.
    #[inline]
    pub(crate) fn put_back(&mut self, id: TaskId, future: TaskFuture) {
        if let Some(slot) = self.slot(id) {
            slot.state = State::Waiting;
            slot.future = Some(future);
        }
    }

    /// Frees the slot of a task that has ended.
    #[inline]
    pub(crate) fn finish(&mut self, id: TaskId) {
        let free = self.free;
        let Some(slot) = self.slot(id) else { return };
        slot.generation = TaskId::next_generation(slot.generation);
        slot.state = State::Free;
        slot.queued = false;
        slot.tag = free;
        self.free = id.slot() as u64;
        self.len -= 1;
    }

    /// Removes all waiting tasks, to be dropped when the worker ends.
    pub(crate) fn take_all(&mut self) -> Vec<TaskFuture> {
        let mut futures = Vec::new();
        for number in 0..self.slots.len() {
            let slot = &mut self.slots[number];
            if slot.state == State::Waiting {
                futures.extend(slot.future.take());
                let id = TaskId::new(self.worker, slot.generation, number as u32);
                self.finish(id);
            }
        }
        futures
    }
}
