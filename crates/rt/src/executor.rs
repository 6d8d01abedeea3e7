//! The event loop of a worker, and the threads that run it.
//!
//! An iteration ("turn") waits, records all events, empties the mailbox, expires timers, and then runs the tasks queued
//! by then and those that they start, for a bounded time; it must never run a task twice, nor read the clock for each
//! task.

use std::fmt;
use std::future::Future;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use base::{Key, Moment, ProcessorSet};

use crate::driver::Driver;
use crate::epoll::Poller;
use crate::loop_counts::count;
use crate::mailbox::{self, Descriptors, Message, Remote, Shared};
use crate::net::ParkedId;
use crate::source::Events;
use crate::task::{Class, Queue, TaskFuture};
use crate::task_id::{NO_TAG, TaskId};
use crate::watchdog::{Guard, Watchdog};
use crate::worker::{Parts, Worker};
use crate::{WorkerId, current, process, sys, task};

/// The number of workers of a runtime and their settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of workers, at least 1.
    pub workers: usize,
    /// The processors of each worker; workers with no entry, or with `None`, run on any processor of the process.
    pub processors: Vec<Option<ProcessorSet>>,
    /// Bytes of a [`crate::buffer`].
    pub buffer_size: usize,
    /// Unused buffers that a worker keeps.
    pub buffers_kept: usize,
    /// The maximum number of events of one wait.
    pub max_events: usize,
    /// The maximum number of normal tasks that one iteration runs; the remaining ones run after the next poll for
    /// events.
    pub run_queue_depth: usize,
    /// Polls for events without waiting: the shortest latency, at the cost of a full processor. See
    /// [`crate::stop_spinning`].
    pub spin: bool,
    /// Reports workers that make no progress.
    pub watchdog: Option<Watchdog>,
}

impl Default for Config {
    fn default() -> Config {
        let (max_events, run_queue_depth) = (256, 512);
        Config {
            workers: 1,
            processors: Vec::new(),
            buffer_size: 16 * 1024,
            buffers_kept: 1024,
            max_events,
            run_queue_depth,
            spin: false,
            watchdog: None,
        }
    }
}

/// The first task of a worker.
pub type MainFuture = Pin<Box<dyn Future<Output = ()>>>;

/// Creates the first task of each worker, on that worker.
pub type Main = Arc<dyn Fn(WorkerId) -> MainFuture + Send + Sync>;

/// Starts the workers (worker 0 on the calling thread), runs `main` as the first task on each, and returns when all of
/// them have left their event loops, after [`crate::stop`].
///
/// # Errors
/// If threads or descriptors cannot be created, or if a worker ended by a panic outside of any task.
pub fn run(config: &Config, main: Main) -> io::Result<()> {
    let descriptors = (0..config.workers.max(1)).map(|_| open_descriptors().map(Some));
    let remotes = mailbox::register(descriptors.collect::<io::Result<Vec<_>>>()?)?;
    let workers = remotes.len();
    let (stop, spin) = (AtomicBool::new(false), AtomicBool::new(config.spin));
    let shared = Arc::new(Shared { remotes: remotes.clone(), workers, stop, spin });
    let result = run_threads(config, &shared, &main);
    mailbox::unregister(&remotes);
    result
}

fn open_descriptors() -> io::Result<Descriptors> {
    Ok(Descriptors { epoll: sys::epoll::create()?, event: sys::event::create()? })
}

/// Returns the task that runs on this thread, for the handler of the watchdog's signal.
fn running_task() -> Option<(u64, u64)> {
    current::try_with(Worker::running_task).flatten()
}

fn run_threads(config: &Config, shared: &Arc<Shared>, main: &Main) -> io::Result<()> {
    let _guard = Guard::start(config.watchdog.as_ref(), shared, running_task);
    let mut threads = Vec::new();
    let mut result = Ok(());
    for remote in &shared.remotes[1..] {
        let (config, remote, main) = (config.clone(), Arc::clone(remote), Arc::clone(main));
        let shared_by_thread = Arc::clone(shared);
        let builder = thread::Builder::new().name(format!("worker {}", remote.worker));
        match builder.spawn(move || run_worker(&config, remote, shared_by_thread, &main)) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                result = Err(error);
                shared.stop();
                break;
            }
        }
    }
    if result.is_ok() {
        result = run_worker(config, Arc::clone(&shared.remotes[0]), Arc::clone(shared), main);
    }
    for thread in threads {
        let ended = thread.join().unwrap_or_else(|_| Err(io::Error::other("a worker thread panicked")));
        result = result.and(ended);
    }
    result
}

/// Runs one worker from start to end. When it ends for any reason, the others are stopped: a runtime with a dead worker
/// would leave connections unanswered.
fn run_worker(config: &Config, remote: Arc<Remote>, shared: Arc<Shared>, main: &Main) -> io::Result<()> {
    struct StopOthers(Arc<Shared>);
    impl Drop for StopOthers {
        fn drop(&mut self) {
            self.0.stop();
        }
    }
    let _stop_others = StopOthers(Arc::clone(&shared));
    if let Some(Some(processors)) = config.processors.get(usize::from(remote.worker)) {
        // A failure to bind to processors only costs speed: one may have been switched off since the lookup.
        let _ = process::bind_to(processors);
    }
    remote.runs_on(sys::thread::number());
    let driver = Driver::Epoll(Poller::new(Arc::clone(&remote), config.max_events)?);
    let worker = Worker::new(Parts {
        remote,
        shared,
        driver,
        seed: sys::clock::seed(),
        buffer_size: config.buffer_size,
        buffers_kept: config.buffers_kept,
        run_queue_depth: config.run_queue_depth,
    });
    current::enter(&worker, || {
        let first = Box::new(|| crate::spawn(Class::Normal, NO_TAG, main(worker.remote.worker)));
        run_job(&worker, first);
        let mut scratch = Scratch::default();
        while !worker.shared.stopping() {
            worker.remote.note_progress();
            let timeout = timeout_of(&worker);
            turn(&worker, timeout, &mut scratch);
        }
        end(&worker);
    });
    Ok(())
}

/// Vectors that a worker reuses in every iteration.
#[derive(Default)]
pub(crate) struct Scratch {
    messages: Vec<Message>,
    due: Vec<Waker>,
}

/// Returns the milliseconds that the worker may wait for events; -1: without limit.
fn timeout_of(worker: &Worker) -> i32 {
    if is_runnable(worker) {
        count(&worker.counts.unwaited);
        return 0;
    }
    if worker.shared.spin.load(Ordering::Relaxed) {
        return 0;
    }
    let Some(deadline) = worker.timers.borrow().next_deadline() else { return -1 };
    // The time of the iteration, not a fresh reading: timers may be late by the length of an iteration, which is
    // bounded.
    let millis = deadline.saturating_since(worker.now.get()).as_nanos().div_ceil(1_000_000);
    if millis == 0 {
        count(&worker.counts.overdue);
    }
    i32::try_from(millis).unwrap_or(i32::MAX)
}

/// Whether an iteration would find work without waiting.
pub(crate) fn is_runnable(worker: &Worker) -> bool {
    !worker.tasks.borrow().is_idle() || worker.remote.has_messages()
}

/// Runs one iteration, which waits at most `timeout` milliseconds.
pub(crate) fn turn(worker: &Worker, timeout: i32, scratch: &mut Scratch) {
    count(&worker.counts.turns);
    if harvest(worker, timeout) > 0 {
        count(&worker.counts.eventful);
    }
    read_mailbox(worker, scratch);
    expire_timers(worker, worker.now.get(), scratch);
    run_tasks(worker);
}

/// Records all pending events and reads the clock. Returns the number of events.
fn harvest(worker: &Worker, timeout: i32) -> usize {
    match &worker.driver {
        Driver::Epoll(poller) => {
            let looks_first = timeout != 0 && worker.patience.looks_first();
            let timeout = if timeout != 0 && !looks_first && worker.remote.prepare_sleep() { timeout } else { 0 };
            let (began, slept) =
                (worker.now.get(), if timeout == 0 { worker.patience.take_left() } else { Some(worker.driver.now()) });
            let waited = || {
                worker.remote.end_sleep();
                worker.refresh_time();
                worker.remote.set_usage(usage(began, slept, worker.now.get()));
                worker.idleness.note(slept, worker.now.get());
            };
            let events = poller.wait(timeout, waited, |key, events| record(worker, key, events));
            if looks_first && events == 0 {
                worker.patience.idle(|| worker.driver.now(), sys::thread::give_way);
            }
            events
        }
        Driver::Sim(driver) => {
            let events = driver.harvest();
            worker.refresh_time();
            let count = events.len();
            events.into_iter().for_each(|(key, events)| record(worker, key, events));
            count
        }
    }
}

/// Returns the busy part of an iteration and the wait after it, in percent. `slept`: when the wait began or the worker
/// yielded to other processes, if it did either.
fn usage(began: Moment, slept: Option<Moment>, woke: Moment) -> u32 {
    let Some(slept) = slept else { return 100 };
    let (busy, whole) = (slept.saturating_since(began), woke.saturating_since(began));
    u32::try_from(busy.as_nanos() * 100 / whole.as_nanos().max(1)).unwrap_or(100).min(100)
}

/// Records an event in its source, and wakes its waiter.
pub(crate) fn record(worker: &Worker, key: Key, events: Events) {
    let (spoilt, (reader, writer)) = {
        let mut sources = worker.sources.borrow_mut();
        let Some(source) = sources.get_mut(key) else { return count(&worker.counts.stray) };
        if source.is_level
            && let Some(number) = source.is_unheeded()
        {
            worker.driver.unwatch_number(number);
        }
        (source.is_spoilt_by(events), source.record(events))
    };
    if spoilt {
        report_parked(worker, key);
    }
    if let Some(reader) = reader {
        reader.wake();
    }
    if let Some(writer) = writer {
        writer.wake();
    }
}

/// Reports an event on a parked stream to the worker's reaper.
pub(crate) fn report_parked(worker: &Worker, key: Key) {
    let mut parked = worker.parked_events.borrow_mut();
    parked.ids.push(ParkedId::new(worker.remote.instance, key));
    if let Some(waker) = parked.waker.take() {
        drop(parked);
        waker.wake();
    }
}

fn read_mailbox(worker: &Worker, scratch: &mut Scratch) {
    if !worker.remote.has_messages() {
        return;
    }
    worker.remote.receive(&mut scratch.messages);
    for message in scratch.messages.drain(..) {
        match message {
            Message::Wake(task) => worker.wake(task),
            Message::Job(job) => run_job(worker, job),
            Message::Forget(key) => drop(worker.sources.borrow_mut().remove(key)),
        }
    }
}

pub(crate) fn run_job(worker: &Worker, job: Box<dyn FnOnce() + '_>) {
    worker.begin_call();
    count(&worker.counts.jobs);
    run_contained(worker, NO_TAG, job);
}

/// Runs a part of a task with its panics contained: the panic hook gets `tag` on a panic, and the task continues.
#[inline]
pub(crate) fn run_contained(worker: &Worker, tag: u64, part: impl FnOnce()) {
    if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(part)) {
        after_panic(worker, tag, payload);
    }
}

fn expire_timers(worker: &Worker, now: Moment, scratch: &mut Scratch) {
    worker.timers.borrow_mut().expire(now, &mut scratch.due);
    scratch.due.drain(..).for_each(Waker::wake);
}

/// The time that an iteration may run the tasks of one queue, at least one of them: the remaining ones wait for the
/// next poll for events. Tasks that serve a request each rarely reach this; it bounds an iteration in which many of
/// them take long.
const TURN: Duration = Duration::from_millis(2);
/// The same for tasks that have used up their slices: an event that arrives in between waits for two of them, not for
/// all.
const TURN_OF_LATE: Duration = Duration::from_micros(200);
/// Polls of tasks between two readings of the clock.
const CALLS_A_LOOK: usize = 16;

/// Runs the tasks that are queued now, up to the limits of an iteration, and then those that were started: a connection
/// accepted in this iteration is served in it, without another poll for events. Tasks that these wake run in the next
/// iteration. Tasks that used up their time slices run last.
fn run_tasks(worker: &Worker) {
    let (normal, heavy, background, late) = worker.tasks.borrow().queued();
    let before = worker.slice.calls();
    let normal = normal.min(worker.run_queue_depth);
    // Heavy tasks get about a tenth of an iteration's tasks, and at least one.
    let heavy = heavy.min(1 + normal / 16);
    // If many of these are due, an event that arrives waits for a few of them, not for all.
    let background = background.min(8 + normal / 4);
    run_queue(worker, Queue::Normal, normal, TURN);
    run_queue(worker, Queue::Heavy, heavy, TURN);
    run_queue(worker, Queue::Background, background, TURN);
    run_queue(worker, Queue::Fresh, worker.run_queue_depth, TURN);
    if late > 0 {
        worker.slice.note(worker.driver.now());
        run_queue(worker, Queue::Late, late.min(worker.run_queue_depth), TURN_OF_LATE);
    }
    if worker.slice.calls() == before {
        count(&worker.counts.idle);
    }
    if !worker.tasks.borrow().is_idle() {
        count(&worker.counts.crowded);
    }
}

/// Polls up to `count` tasks of a queue, for at most `period`.
fn run_queue(worker: &Worker, queue: Queue, count: usize, period: Duration) {
    let end = worker.slice.last_reading() + period;
    for number in 1..=count {
        let next = worker.tasks.borrow_mut().take_next(queue);
        match next {
            Some(Some((id, tag, future))) => call(worker, id, tag, future),
            Some(None) => {}
            None => break,
        }
        if number % CALLS_A_LOOK == 0 {
            worker.slice.note(worker.driver.now());
        }
        if worker.slice.last_reading() >= end {
            break;
        }
    }
}

/// Polls a task once.
#[inline]
fn call(worker: &Worker, id: TaskId, tag: u64, mut future: TaskFuture) {
    worker.begin_call();
    if tag != NO_TAG {
        count(&worker.counts.tagged);
    }
    let measures = worker.measures.get();
    if measures {
        worker.tasks.borrow_mut().note_called(future.name(), worker.driver.now());
    }
    let polled = poll_contained(worker, tag, future, &task::waker(id));
    let mut tasks = worker.tasks.borrow_mut();
    if measures {
        tasks.note_returned(worker.driver.now());
    }
    match polled {
        Some(future) => tasks.put_back(id, future),
        None => tasks.finish(id),
    }
}

/// Polls a task; returns it if it is pending. A task that completed or panicked is dropped; the panic is not
/// propagated.
#[inline]
fn poll_contained(worker: &Worker, tag: u64, mut future: TaskFuture, waker: &Waker) -> Option<TaskFuture> {
    let mut context = Context::from_waker(waker);
    let polled = panic::catch_unwind(AssertUnwindSafe(|| Pin::new(&mut future).poll(&mut context)));
    match polled {
        Ok(Poll::Pending) => return Some(future),
        Ok(Poll::Ready(())) => drop_contained(worker, tag, future),
        Err(payload) => {
            // The hook is called once per task: a second panic while its state is dropped is ignored.
            contain_drop(future);
            after_panic(worker, tag, payload);
        }
    }
    None
}

fn drop_contained(worker: &Worker, tag: u64, future: TaskFuture) {
    if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(|| drop(future))) {
        after_panic(worker, tag, payload);
    }
}

type Payload = Box<dyn std::any::Any + Send>;

fn contain_drop<T>(value: T) {
    if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(|| drop(value))) {
        // The payload may panic on drop, and so may the payload of that panic: this one is leaked.
        std::mem::forget(payload);
    }
}

#[cold]
fn after_panic(worker: &Worker, tag: u64, payload: Payload) {
    worker.panics.set(worker.panics.get() + 1);
    contain_drop(payload);
    if let Some(hook) = worker.panic_hook()
        && let Err(payload) = panic::catch_unwind(AssertUnwindSafe(|| hook(tag)))
    {
        contain_drop(payload);
    }
}

/// Drops everything that a worker still owns while it is the current one: tasks first, then unread messages.
pub(crate) fn end(worker: &Worker) {
    /// Rounds of dropping tasks, since tasks may start others while they are dropped.
    const ROUNDS: usize = 8;
    for _ in 0..ROUNDS {
        let futures = worker.tasks.borrow_mut().take_all();
        if futures.is_empty() {
            break;
        }
        futures.into_iter().for_each(contain_drop);
    }
    worker.remote.close().into_iter().for_each(contain_drop);
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("worker", &self.remote.worker).finish_non_exhaustive()
    }
}
