//! The part of a worker that is shared with other threads: its mailbox, its load, and the registry that finds it by
//! number.
//!
//! Nothing here may wait for a worker: a message to one that has ended is dropped.

use std::fmt;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use base::{Key, Moment};

use crate::WorkerId;
use crate::sys;
use crate::task_id::{MOST_WORKERS, TaskId};

/// A job that runs on a worker, outside of any task.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

pub(crate) enum Message {
    Wake(TaskId),
    Job(Job),
    /// A parked stream of this worker was adopted or dropped elsewhere: its slot is free.
    Forget(Key),
}

/// The part of a worker that other threads can reach.
pub(crate) struct Remote {
    /// The worker's number within its runtime.
    pub(crate) worker: WorkerId,
    /// The worker's index in the registry; reused after its end.
    pub(crate) index: u16,
    /// Unique among all workers that the process has ever had.
    pub(crate) instance: u32,
    /// The epoll and event descriptors; `None` in a simulation.
    pub(crate) descriptors: Option<Descriptors>,
    inbox: Inbox,
    load: Padded<AtomicU32>,
    pulse: Padded<Pulse>,
}

/// Liveness data of a worker.
struct Pulse {
    /// The worker's thread ID, 0 before it runs.
    thread: AtomicI32,
    /// Counts its progress: iterations, polls of tasks, and what a task reports within a poll.
    progress: AtomicU32,
    /// Busy percentage of its last iteration.
    usage: AtomicU32,
    /// When the running task is expected to return, in nanoseconds of the monotonic clock; 0: unknown.
    ends_at: AtomicU64,
}

pub(crate) struct Descriptors {
    pub(crate) epoll: OwnedFd,
    pub(crate) event: OwnedFd,
}

/// Keeps its value on a cache line of its own.
#[repr(align(64))]
struct Padded<T>(T);

#[repr(align(64))]
struct Inbox {
    /// `None` once the worker has ended.
    messages: Mutex<Option<Vec<Message>>>,
    /// Set while there are messages.
    pending: AtomicBool,
    /// Set while the worker waits for events, or is about to.
    sleeping: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Remote {
    fn new(worker: WorkerId, index: u16, instance: u32, descriptors: Option<Descriptors>) -> Remote {
        let messages = Mutex::new(Some(Vec::with_capacity(64)));
        let inbox = Inbox { messages, pending: AtomicBool::new(false), sleeping: AtomicBool::new(false) };
        let (thread, progress) = (AtomicI32::new(0), AtomicU32::new(0));
        let pulse = Padded(Pulse { thread, progress, usage: AtomicU32::new(0), ends_at: AtomicU64::new(0) });
        Remote { worker, index, instance, descriptors, inbox, load: Padded(AtomicU32::new(0)), pulse }
    }

    /// Puts a message into the mailbox and wakes the worker if it sleeps.
    pub(crate) fn send(&self, message: Message) {
        let refused = match &mut *lock(&self.inbox.messages) {
            Some(messages) => {
                messages.push(message);
                None
            }
            None => Some(message),
        };
        // A refused job is dropped here, outside of the lock: its `drop` may send messages itself.
        if refused.is_none() && !self.inbox.pending.swap(true, Ordering::SeqCst) {
            self.rouse();
        }
    }

    pub(crate) fn wake(&self, task: TaskId) {
        self.send(Message::Wake(task));
    }

    /// Ends the worker's sleep.
    ///
    /// The sender stores `pending` and then reads `sleeping`; the worker stores `sleeping` and then reads `pending`,
    /// all of it sequentially consistent: one of the two sees the other.
    pub(crate) fn rouse(&self) {
        if self.inbox.sleeping.load(Ordering::SeqCst)
            && let Some(descriptors) = &self.descriptors
        {
            sys::event::signal(&descriptors.event);
        }
    }

    /// Sets the worker's thread ID.
    pub(crate) fn runs_on(&self, thread: i32) {
        self.pulse.0.thread.store(thread, Ordering::Relaxed);
    }

    /// Returns the worker's thread ID, 0 before it runs.
    pub(crate) fn thread(&self) -> i32 {
        self.pulse.0.thread.load(Ordering::Relaxed)
    }

    /// Counts an iteration, a poll of a task, or a completed part of one. Only the worker calls this, so no update is
    /// lost between the load and the store.
    #[inline]
    pub(crate) fn note_progress(&self) {
        let progress = &self.pulse.0.progress;
        progress.store(progress.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Sets the busy percentage of an iteration.
    #[inline]
    pub(crate) fn set_usage(&self, percent: u32) {
        self.pulse.0.usage.store(percent, Ordering::Relaxed);
    }

    pub(crate) fn usage(&self) -> u32 {
        self.pulse.0.usage.load(Ordering::Relaxed)
    }

    /// Sets when the running task is expected to return; `None`: unknown. Returns the previous value.
    pub(crate) fn ends_at(&self, moment: Option<Moment>) -> Option<Moment> {
        let ends_at = &self.pulse.0.ends_at;
        let before = ends_at.load(Ordering::Relaxed);
        ends_at.store(moment.map_or(0, Moment::as_nanos), Ordering::Relaxed);
        (before > 0).then(|| Moment::from_nanos(before))
    }

    /// Whether the running task is expected to return at a time after `now`.
    pub(crate) fn will_end(&self, now: Moment) -> bool {
        self.pulse.0.ends_at.load(Ordering::Relaxed) > now.as_nanos()
    }

    pub(crate) fn progress(&self) -> u32 {
        self.pulse.0.progress.load(Ordering::Relaxed)
    }

    /// Whether the worker waits for events.
    pub(crate) fn is_sleeping(&self) -> bool {
        self.inbox.sleeping.load(Ordering::Relaxed)
    }

    /// Announces a sleep; `false` when there are messages, and the worker must not sleep.
    pub(crate) fn prepare_sleep(&self) -> bool {
        self.inbox.sleeping.store(true, Ordering::SeqCst);
        !self.inbox.pending.load(Ordering::SeqCst)
    }

    pub(crate) fn end_sleep(&self) {
        self.inbox.sleeping.store(false, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn has_messages(&self) -> bool {
        self.inbox.pending.load(Ordering::Relaxed)
    }

    /// Swaps the messages with `empty`, which must be empty.
    pub(crate) fn receive(&self, empty: &mut Vec<Message>) {
        if !self.inbox.pending.swap(false, Ordering::SeqCst) {
            return;
        }
        if let Some(messages) = &mut *lock(&self.inbox.messages) {
            std::mem::swap(messages, empty);
        }
    }

    /// Closes the mailbox and returns the unread messages; later ones are refused.
    pub(crate) fn close(&self) -> Vec<Message> {
        lock(&self.inbox.messages).take().unwrap_or_default()
    }

    /// Returns the number of its sessions.
    pub(crate) fn load(&self) -> u32 {
        self.load.0.load(Ordering::Relaxed)
    }

    /// Adds a session.
    pub(crate) fn add_load(&self) {
        self.load.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes a session.
    pub(crate) fn remove_load(&self) {
        self.load.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// Removes a descriptor from this worker's epoll instance. Not an error if it is not registered.
    pub(crate) fn unwatch(&self, fd: RawFd) {
        if let Some(descriptors) = &self.descriptors {
            sys::epoll::delete(&descriptors.epoll, fd);
        }
    }
}

/// Data shared by all workers of one runtime.
pub(crate) struct Shared {
    pub(crate) remotes: Vec<Arc<Remote>>,
    /// The number of the runtime's own workers; a simulation adds one that runs its script.
    pub(crate) workers: usize,
    pub(crate) stop: AtomicBool,
    /// Workers poll for events without waiting.
    pub(crate) spin: AtomicBool,
}

impl Shared {
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        for remote in &self.remotes {
            remote.rouse_always();
        }
    }

    pub(crate) fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Remote {
    fn rouse_always(&self) {
        self.inbox.pending.store(true, Ordering::SeqCst);
        self.rouse();
    }
}

/// A handle to the workers of one runtime, usable from any thread.
#[derive(Clone)]
pub struct Handle {
    pub(crate) shared: Arc<Shared>,
}

impl Handle {
    /// Runs `job` on a worker, outside of any task. Dropped unrun if the worker has ended or does not exist.
    pub fn post(&self, worker: WorkerId, job: Box<dyn FnOnce() + Send>) {
        if let Some(remote) = self.shared.remotes.get(usize::from(worker)) {
            remote.send(Message::Job(job));
        }
    }

    pub fn workers(&self) -> usize {
        self.shared.workers
    }

    /// Makes every worker leave its event loop.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Whether the workers are stopping.
    pub fn stopping(&self) -> bool {
        self.shared.stopping()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("workers", &self.workers()).finish()
    }
}

/// All running workers of the process, by index. Runtimes occupy consecutive indices.
static REGISTRY: RwLock<Vec<Option<Arc<Remote>>>> = RwLock::new(Vec::new());
static INSTANCES: AtomicU32 = AtomicU32::new(0);

/// Adds one worker per element of `descriptors` to the registry.
pub(crate) fn register(descriptors: Vec<Option<Descriptors>>) -> io::Result<Vec<Arc<Remote>>> {
    let mut registry = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
    let count = descriptors.len();
    let mut first = 0;
    while let Some(taken) = registry.iter().skip(first).take(count).rposition(Option::is_some) {
        first += taken + 1;
    }
    if first + count > MOST_WORKERS {
        return Err(io::Error::other("too many workers in one process"));
    }
    let length = registry.len().max(first + count);
    registry.resize(length, None);
    let enter = |(worker, descriptors): (usize, Option<Descriptors>)| {
        let instance = INSTANCES.fetch_add(1, Ordering::Relaxed);
        let remote = Arc::new(Remote::new(worker as u16, (first + worker) as u16, instance, descriptors));
        registry[first + worker] = Some(Arc::clone(&remote));
        remote
    };
    Ok(descriptors.into_iter().enumerate().map(enter).collect())
}

/// Removes a runtime's workers from the registry.
pub(crate) fn unregister(remotes: &[Arc<Remote>]) {
    let mut registry = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
    for remote in remotes {
        if let Some(place) = registry.get_mut(usize::from(remote.index)) {
            *place = None;
        }
    }
}

/// Returns the worker at an index of the registry, if it is running.
pub(crate) fn find(index: u16) -> Option<Arc<Remote>> {
    let registry = REGISTRY.read().unwrap_or_else(PoisonError::into_inner);
    registry.get(usize::from(index)).and_then(Clone::clone)
}

/// Wakes a task from a thread that is not a worker of its runtime. Does nothing if the worker has ended.
pub(crate) fn wake(task: TaskId) {
    if let Some(remote) = find(task.worker()) {
        remote.wake(task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote() -> Remote {
        let descriptors = Descriptors { epoll: sys::epoll::create().unwrap(), event: sys::event::create().unwrap() };
        Remote::new(0, 0, 0, Some(descriptors))
    }

    fn job() -> Message {
        Message::Job(Box::new(|| {}))
    }

    /// Whether a worker was woken, which the event descriptor shows.
    fn was_roused(remote: &Remote) -> bool {
        let event = remote.descriptors.as_ref().unwrap().event.try_clone().unwrap();
        std::io::Read::read(&mut std::fs::File::from(event), &mut [0; 8]).is_ok()
    }

    #[test]
    fn a_worker_with_messages_does_not_sleep() {
        let remote = remote();
        assert!(remote.prepare_sleep());
        remote.end_sleep();
        remote.send(job());
        assert!(!remote.prepare_sleep(), "the message came before the sleep was announced");
        remote.end_sleep();
        let mut messages = Vec::new();
        remote.receive(&mut messages);
        assert_eq!(messages.len(), 1);
        assert!(remote.prepare_sleep());
    }

    #[test]
    fn the_first_message_rouses_a_sleeper_and_a_waking_one_is_left_alone() {
        let remote = remote();
        remote.send(job());
        assert!(!was_roused(&remote), "nobody sleeps");
        remote.receive(&mut Vec::new());
        assert!(remote.prepare_sleep());
        remote.send(job());
        assert!(was_roused(&remote));
        remote.send(job());
        assert!(!was_roused(&remote), "it was roused for the first");
    }

    #[test]
    fn a_closed_mailbox_drops_what_comes() {
        let (remote, held) = (remote(), Arc::new(()));
        remote.send(job());
        assert_eq!(remote.close().len(), 1);
        let inside = Arc::clone(&held);
        remote.send(Message::Job(Box::new(move || drop(inside))));
        assert_eq!(Arc::strong_count(&held), 1);
        assert!(remote.close().is_empty());
    }

    #[test]
    fn a_runtime_takes_neighbouring_places_and_gives_them_back() {
        let first = register(vec![None, None, None]).unwrap();
        let second = register(vec![None, None]).unwrap();
        let places = |remotes: &[Arc<Remote>]| remotes.iter().map(|remote| remote.index).collect::<Vec<_>>();
        for remotes in [&first, &second] {
            assert!(places(remotes).windows(2).all(|pair| pair[0] + 1 == pair[1]));
        }
        assert!(places(&second).iter().all(|place| !places(&first).contains(place)));
        unregister(&first);
        // Another test may have reused an index that became free.
        let is_gone = |old: &Arc<Remote>| find(old.index).is_none_or(|found| found.instance != old.instance);
        assert!(first.iter().all(is_gone));
        unregister(&second);
    }
}
