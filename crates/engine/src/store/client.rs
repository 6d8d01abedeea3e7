//! Commands to a store: a bounded queue that any worker may add to, and whose answers arrive as futures. Must never wait, and never
//! send a command twice.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use base::Moment;
use policy::program::Store;
use wire::resp::{OwnedReply, push_command};

use super::fault::Fault;

/// Maximum number of commands without an answer.
const MOST_COMMANDS: usize = 4_096;
/// Maximum size of the commands that were not written yet, in bytes: those in the queue, and those that the connection has taken.
const MOST_BYTES: usize = 4 << 20;

/// Why a command has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The store cannot be used. The command may have been executed.
    Lost,
    /// The queue is full. The command was not sent.
    Full,
}

/// Numbers of a store.
#[derive(Debug, Default)]
pub struct ClientCounts {
    /// Commands that were sent.
    pub commands: AtomicU64,
    /// Commands that did not fit into the queue.
    pub refused: AtomicU64,
    /// Connections that were established.
    pub connections: AtomicU64,
    /// Faults.
    pub faults: AtomicU64,
    /// Duration of the last periodic command until its answer, in microseconds.
    pub round_trip: AtomicU64,
}

/// A store, as its users see it.
#[derive(Debug)]
pub struct Client {
    /// Its configuration.
    pub plan: Arc<Store>,
    pub counts: ClientCounts,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    /// The store can be used.
    is_ready: bool,
    /// The last fault, until the store can be used.
    fault: Option<Fault>,
    /// Encoded commands that the connection has not taken yet.
    bytes: Vec<u8>,
    /// Bytes that it has taken and keeps.
    taken: usize,
    /// The answers that are expected for them.
    waiting: Vec<Arc<Slot>>,
    /// Number of commands that were written and have no answer.
    in_flight: usize,
    /// A fault that a user has found in an answer.
    complaint: Option<Fault>,
    /// Waker of the task of the connection.
    task: Option<Waker>,
}

/// Place of an answer.
#[derive(Debug, Default)]
pub(super) struct Slot(Mutex<Outcome>);

#[derive(Debug, Default)]
struct Outcome {
    answer: Option<Result<OwnedReply, Failure>>,
    waker: Option<Waker>,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Outcome> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, answer: Result<OwnedReply, Failure>) {
        let mut outcome = self.lock();
        outcome.answer.get_or_insert(answer);
        let waker = outcome.waker.take();
        drop(outcome);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// An answer that has not arrived. Dropping it drops the answer; the command is executed.
#[must_use = "an answer is only known once it is awaited"]
pub struct Pending(Arc<Slot>);

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pending(_)")
    }
}

impl Pending {
    /// Creates the place of an answer, and the future of it.
    pub(super) fn new() -> (Arc<Slot>, Self) {
        let slot = Arc::new(Slot::default());
        (Arc::clone(&slot), Self(slot))
    }
}

impl Future for Pending {
    type Output = Result<OwnedReply, Failure>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut outcome = self.0.lock();
        if let Some(answer) = outcome.answer.take() {
            return Poll::Ready(answer);
        }
        outcome.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Client {
    /// Creates a client without a connection.
    pub fn new(plan: Arc<Store>) -> Self {
        Self { plan, counts: ClientCounts::default(), queue: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the store can be used.
    pub fn is_ready(&self) -> bool {
        self.lock().is_ready
    }

    /// Returns why the store cannot be used; `None`: it can, or no connection was tried yet.
    pub fn fault(&self) -> Option<Fault> {
        self.lock().fault.clone()
    }

    /// Returns a text with the prefix of the store's keys.
    pub fn key(&self, rest: &[u8]) -> Vec<u8> {
        [&*self.plan.key_prefix, rest].concat()
    }

    /// Sends a command: its name, then its arguments. Any worker may call it.
    ///
    /// # Errors
    /// The store cannot be used, or the queue is full.
    pub fn send(&self, arguments: &[&[u8]]) -> Result<Pending, Failure> {
        let mut queue = self.lock();
        if !queue.is_ready {
            return Err(Failure::Lost);
        }
        let size: usize = arguments.iter().map(|argument| argument.len() + 16).sum();
        let commands = queue.waiting.len() + queue.in_flight;
        let bytes = queue.bytes.len().saturating_add(queue.taken).saturating_add(size);
        if commands >= MOST_COMMANDS || bytes > MOST_BYTES {
            self.counts.refused.fetch_add(1, Relaxed);
            return Err(Failure::Full);
        }
        push_command(arguments, &mut queue.bytes);
        let (slot, pending) = Pending::new();
        queue.waiting.push(slot);
        let task = queue.task.take();
        drop(queue);
        self.counts.commands.fetch_add(1, Relaxed);
        if let Some(task) = task {
            task.wake();
        }
        Ok(pending)
    }

    /// Sends a command and waits for its answer, which may be an error of the server. The store's `timeout server` limits the time.
    ///
    /// # Errors
    /// The store cannot be used or was lost before the answer, or the queue is full.
    pub async fn command(&self, arguments: &[&[u8]]) -> Result<OwnedReply, Failure> {
        self.send(arguments)?.await
    }

    /// Reports an answer that is a fault of the server: the connection is closed, and the store is lost until it works again.
    pub fn complain(&self, fault: Fault) {
        let mut queue = self.lock();
        if !queue.is_ready {
            return;
        }
        queue.complaint.get_or_insert(fault);
        let task = queue.task.take();
        drop(queue);
        if let Some(task) = task {
            task.wake();
        }
    }

    /// Marks the store as usable.
    pub(super) fn begin(&self) {
        let mut queue = self.lock();
        (queue.is_ready, queue.fault, queue.complaint) = (true, None, None);
        self.counts.connections.fetch_add(1, Relaxed);
    }

    /// Marks the store as lost; commands that were not written have no answer.
    pub(super) fn end(&self, fault: Fault) {
        let mut queue = self.lock();
        (queue.is_ready, queue.fault, queue.in_flight) = (false, Some(fault), 0);
        (queue.bytes, queue.taken) = (Vec::new(), 0);
        let waiting = std::mem::take(&mut queue.waiting);
        drop(queue);
        self.counts.faults.fetch_add(1, Relaxed);
        waiting.iter().for_each(|slot| slot.set(Err(Failure::Lost)));
    }

    /// Counts answers, and the bytes that the connection keeps: as many further commands are accepted.
    pub(super) fn note_progress(&self, answers: usize, kept: usize) {
        let mut queue = self.lock();
        queue.in_flight = queue.in_flight.saturating_sub(answers);
        queue.taken = kept;
    }

    /// Takes the commands that were not written yet, and registers the calling task for the next one.
    pub(super) fn take(&self, cx: &Context<'_>, out: &mut Outgoing<'_>) -> Result<(), Fault> {
        let mut queue = self.lock();
        if let Some(fault) = queue.complaint.take() {
            return Err(fault);
        }
        queue.in_flight += queue.waiting.len();
        out.bytes.append(&mut queue.bytes);
        queue.taken = out.bytes.len();
        let deadline = out.deadline;
        out.slots.extend(queue.waiting.drain(..).map(|slot| (slot, deadline)));
        queue.task = Some(cx.waker().clone());
        Ok(())
    }
}

/// Where a connection keeps commands.
pub(super) struct Outgoing<'a> {
    /// Encoded commands.
    pub(super) bytes: &'a mut Vec<u8>,
    /// Places of the answers, and the time by which each has to be there.
    pub(super) slots: &'a mut VecDeque<(Arc<Slot>, Moment)>,
    /// That time for commands that are taken now.
    pub(super) deadline: Moment,
}
