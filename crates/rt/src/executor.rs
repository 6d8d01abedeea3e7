//! The turn of a worker, and the threads that take turns.
//!
//! A turn waits, records all events, empties the mailbox, expires timers, and then runs the tasks that were queued by
//! then and those that they start, for a bounded time; it must never run a task twice, nor read the clock for each task.

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

/// How many workers a runtime has and how they work.
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of workers, at least 1.
    pub workers: usize,
    /// The processors of each worker; those that it does not name, or names with `None`, run wherever the process may.
    pub processors: Vec<Option<ProcessorSet>>,
    /// Bytes of a [`crate::buffer`].
    pub buffer_size: usize,
    /// Buffers that a worker keeps while they are unused.
    pub buffers_kept: usize,
    /// Events that one wait takes at most.
    pub max_events: usize,
    /// Normal tasks that one turn runs at most; what is left runs after the next harvest of events.
    pub run_queue_depth: usize,
    /// Ask for events without ever waiting for them: the shortest delay, for all of a processor. See
    /// [`crate::stop_spinning`].
    pub spin: bool,
    /// Who is told of workers that stand still.
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

/// Makes the first task of each worker, on that worker.
pub type Main = Arc<dyn Fn(WorkerId) -> MainFuture + Send + Sync>;

/// Starts the workers (worker 0 on the calling thread), runs `main` as the first task on each, and returns when all of
/// them have left their loops, after [`crate::stop`].
///
/// # Errors
/// When threads or descriptors cannot be had, or when a worker died of a panic outside of any task.
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

/// What runs on this thread, for the handler of the watchdog's signal.
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

/// One worker from start to end. However it ends, the others are told to stop: a runtime with a dead worker would
/// leave connections unanswered.
fn run_worker(config: &Config, remote: Arc<Remote>, shared: Arc<Shared>, main: &Main) -> io::Result<()> {
    struct StopOthers(Arc<Shared>);
    impl Drop for StopOthers {
        fn drop(&mut self) {
            self.0.stop();
        }
    }
    let _stop_others = StopOthers(Arc::clone(&shared));
    if let Some(Some(processors)) = config.processors.get(usize::from(remote.worker)) {
        // Slower, perhaps, but no reason not to serve: a processor may have been switched off since it was looked up.
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

/// Vectors that a worker uses in every turn.
#[derive(Default)]
pub(crate) struct Scratch {
    messages: Vec<Message>,
    due: Vec<Waker>,
}

/// Milliseconds that the worker may wait for events: -1 is for ever.
fn timeout_of(worker: &Worker) -> i32 {
    if is_runnable(worker) {
        count(&worker.counts.unwaited);
        return 0;
    }
    if worker.shared.spin.load(Ordering::Relaxed) {
        return 0;
    }
    let Some(deadline) = worker.timers.borrow().next_deadline() else { return -1 };
    // The turn's own time, not a fresh one: a timer may be as late as a turn is long, and a turn is bounded.
    let millis = deadline.saturating_since(worker.now.get()).as_nanos().div_ceil(1_000_000);
    if millis == 0 {
        count(&worker.counts.overdue);
    }
    i32::try_from(millis).unwrap_or(i32::MAX)
}

/// Whether a turn would find something to do without waiting.
pub(crate) fn is_runnable(worker: &Worker) -> bool {
    !worker.tasks.borrow().is_idle() || worker.remote.has_messages()
}

/// One turn, which waits at most `timeout` milliseconds.
pub(crate) fn turn(worker: &Worker, timeout: i32, scratch: &mut Scratch) {
    count(&worker.counts.turns);
    if harvest(worker, timeout) > 0 {
        count(&worker.counts.eventful);
    }
    read_mailbox(worker, scratch);
    expire_timers(worker, worker.now.get(), scratch);
    run_tasks(worker);
}

/// Records all events that have come and reads the clock. Tells how many there were.
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

/// Of a turn and the wait behind it the part that was no waiting, in percent. `slept`: when the wait began, or when the
/// worker gave way to others, if it did either.
fn usage(began: Moment, slept: Option<Moment>, woke: Moment) -> u32 {
    let Some(slept) = slept else { return 100 };
    let (busy, whole) = (slept.saturating_since(began), woke.saturating_since(began));
    u32::try_from(busy.as_nanos() * 100 / whole.as_nanos().max(1)).unwrap_or(100).min(100)
}

/// Records an event with its source, and wakes its waiter.
pub(crate) fn record(worker: &Worker, key: Key, events: Events) {
    let (spoilt, (reader, writer)) = {
        let mut sources = worker.sources.borrow_mut();
        let Some(source) = sources.get_mut(key) else { return count(&worker.counts.stray) };
        if source.is_listener
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

/// Tells the worker's reaper that something happened on a parked stream.
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

/// Runs a part of a task whose panic is not the task's: the panic hook gets `tag` then, and the task goes on.
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

/// How long a turn calls the tasks of one queue, at least one of them: what is left has to wait for events to be seen.
/// Tasks that serve a request each reach this seldom; it bounds a turn in which many of them take long.
const TURN: Duration = Duration::from_millis(2);
/// The same for tasks that have used up their slices: an event that comes meanwhile waits for two of them, and not for all.
const TURN_OF_LATE: Duration = Duration::from_micros(200);
/// Calls between two readings of the clock.
const CALLS_A_LOOK: usize = 16;

/// Runs the tasks that are queued now, up to the turn's bounds, and then those that were started: a connection that was
/// accepted in this turn is served in it, without another look for events. Tasks that these wake run in the next turn.
/// Those that used up their slices of time come at the end.
fn run_tasks(worker: &Worker) {
    let (normal, heavy, background, late) = worker.tasks.borrow().queued();
    let before = worker.slice.calls();
    let normal = normal.min(worker.run_queue_depth);
    // Heavy work gets about a tenth of a turn's tasks, and one task at least.
    let heavy = heavy.min(1 + normal / 16);
    // An event that comes while many of these are due waits for a few of them and not for all.
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

/// Calls up to so many tasks of a queue, for so long.
fn run_queue(worker: &Worker, queue: Queue, count: usize, period: Duration) {
    let begun = worker.slice.last_reading();
    for number in 1..=count {
        let next = worker.tasks.borrow_mut().take_next(queue);
        match next {
            Some(Some(task)) => call(worker, task),
            Some(None) => {}
            None => break,
        }
        if number % CALLS_A_LOOK == 0 {
            worker.slice.note(worker.driver.now());
        }
        if worker.slice.last_reading().saturating_since(begun) >= period {
            break;
        }
    }
}

/// Calls a task once.
#[inline]
fn call(worker: &Worker, (id, tag, mut future): (TaskId, u64, TaskFuture)) {
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

/// Polls a task; gives it back when it waits. One that ended or panicked is dropped, and a panic goes no further.
#[inline]
fn poll_contained(worker: &Worker, tag: u64, mut future: TaskFuture, waker: &Waker) -> Option<TaskFuture> {
    let mut context = Context::from_waker(waker);
    let polled = panic::catch_unwind(AssertUnwindSafe(|| Pin::new(&mut future).poll(&mut context)));
    match polled {
        Ok(Poll::Pending) => return Some(future),
        Ok(Poll::Ready(())) => drop_contained(worker, tag, future),
        Err(payload) => {
            // One task, one call of the hook: a second panic while the first one's remains are dropped adds nothing.
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
        // A payload may panic when it is dropped, and so on without end: this one is left alone.
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

/// Drops all that a worker still holds while it is the current one: tasks first, then unread messages.
pub(crate) fn end(worker: &Worker) {
    /// Tasks that start others while they are dropped get this many rounds.
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
