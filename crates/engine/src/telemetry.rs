//! Telemetry for collectors (OpenTelemetry): workers add encoded items to a bounded queue, which one task per exporter sends.
//! Must never make a stream wait, nor hold more than an exporter's queue allows.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use base::moment::{Moment, WallTime};
use conn::client::Uri;
use policy::program::{OtelExporter, Program};

/// Number of queues of a channel: each worker adds to one of them, which reduces contention.
const SHARDS: usize = 16;
/// Maximum average size of an item in bytes: larger items shorten the queue.
const BYTES_AN_ITEM: usize = 2_048;

/// Converts a wall-clock time to OTLP's nanoseconds since the epoch.
pub fn nanoseconds(time: WallTime) -> u64 {
    u64::try_from(time.seconds).unwrap_or(0).saturating_mul(1_000_000_000).saturating_add(time.nanos.into())
}

/// One queue of items.
#[derive(Default)]
#[repr(align(64))]
struct Shard(Mutex<VecDeque<Vec<u8>>>);

impl Shard {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counters of a channel's items.
#[derive(Debug, Default)]
pub struct Counts {
    /// Items that collectors have accepted.
    pub sent: AtomicU64,
    /// Items dropped because the queue was full.
    pub dropped: AtomicU64,
    /// Items that could not be delivered.
    pub failed: AtomicU64,
    /// Requests sent, counting each attempt.
    pub requests: AtomicU64,
}

/// Queue of telemetry of one kind for a collector.
pub struct Channel {
    /// Its configuration.
    pub plan: Arc<OtelExporter>,
    /// URL of the collector; `None`: it is invalid, and all items are dropped.
    pub(crate) target: Option<Uri>,
    shards: [Shard; SHARDS],
    queued: AtomicUsize,
    bytes: AtomicUsize,
    pub counts: Counts,
    /// Waker of the sending task, while it sleeps.
    sleeper: Mutex<Option<Waker>>,
    woken: AtomicBool,
    /// Number of items that the task has taken and not sent yet.
    pub(crate) underway: AtomicUsize,
    /// The process ends: each request is attempted once.
    pub(crate) last: AtomicBool,
    /// Reason of the last loss of items.
    error: Mutex<Option<ExportError>>,
}

/// Reason why a collector has not accepted items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportError {
    /// A message.
    pub text: String,
    /// Time of the failure.
    pub at: Moment,
    /// Nothing was accepted since.
    pub lasts: bool,
}

impl Channel {
    fn new(plan: &Arc<OtelExporter>) -> Self {
        Self {
            plan: Arc::clone(plan),
            target: Uri::parse(&plan.url),
            shards: Default::default(),
            queued: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            counts: Counts::default(),
            sleeper: Mutex::default(),
            woken: AtomicBool::new(false),
            underway: AtomicUsize::new(0),
            last: AtomicBool::new(false),
            error: Mutex::default(),
        }
    }

    /// Returns the reason of the last loss of items; `None`: there was none.
    pub fn last_error(&self) -> Option<ExportError> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records a loss of items, or that the collector accepts items again.
    pub(crate) fn note(&self, outcome: Result<(), String>) {
        let mut error = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Err(text) => *error = Some(ExportError { text, at: rt::now(), lasts: true }),
            Ok(()) => error.iter_mut().for_each(|error| error.lasts = false),
        }
    }

    /// Returns the number of queued items, those of a running request included.
    pub fn waiting(&self) -> usize {
        self.queued.load(Ordering::Relaxed) + self.underway.load(Ordering::Relaxed)
    }

    /// Adds an encoded item; if the queue is full, it is dropped and counted.
    pub fn push(&self, worker: usize, item: Vec<u8>) {
        let before = self.queued.fetch_add(1, Ordering::Relaxed);
        let bytes = self.bytes.fetch_add(item.len(), Ordering::Relaxed);
        if before >= self.plan.queue || bytes >= self.plan.queue.saturating_mul(BYTES_AN_ITEM) {
            self.queued.fetch_sub(1, Ordering::Relaxed);
            self.bytes.fetch_sub(item.len(), Ordering::Relaxed);
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.shards[worker % SHARDS].lock().push_back(item);
        if before + 1 == self.early() {
            self.wake();
        }
    }

    /// Whether the queue is half full, so that callers with many items should wait.
    pub fn is_half_full(&self) -> bool {
        let bytes = self.bytes.load(Ordering::Relaxed);
        self.waiting() >= self.plan.queue.div_ceil(2) || bytes >= self.plan.queue.saturating_mul(BYTES_AN_ITEM / 2)
    }

    /// Returns the number of items that are sent before the interval is over.
    fn early(&self) -> usize {
        self.plan.batch.min(self.plan.queue.div_ceil(2)).max(1)
    }

    /// Takes the items of one request; empty if there are none.
    pub(crate) fn take(&self) -> Vec<Vec<u8>> {
        let mut taken = Vec::new();
        for shard in &self.shards {
            let mut items = shard.lock();
            let count = items.len().min(self.plan.batch - taken.len());
            taken.extend(items.drain(..count));
            if taken.len() == self.plan.batch {
                break;
            }
        }
        self.underway.store(taken.len(), Ordering::Relaxed);
        self.queued.fetch_sub(taken.len(), Ordering::Relaxed);
        self.bytes.fetch_sub(taken.iter().map(Vec::len).sum(), Ordering::Relaxed);
        taken
    }

    fn sleeper(&self) -> MutexGuard<'_, Option<Waker>> {
        self.sleeper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wake(&self) {
        self.woken.store(true, Ordering::Release);
        let waker = self.sleeper().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Ready once enough items are queued, or the process ends.
    fn poll_woken(&self, cx: &mut Context<'_>) -> Poll<()> {
        *self.sleeper() = Some(cx.waker().clone());
        if self.woken.swap(false, Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Waits until a time, or until woken.
    pub(crate) async fn wait(&self, until: Moment) {
        let mut timer = rt::Timer::default();
        timer.arm(Some(until));
        std::future::poll_fn(|cx| match self.poll_woken(cx) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => timer.poll_expired(cx),
        })
        .await;
    }
}

/// Returns the channels of a program; those of the previous program with the same configuration are continued.
pub(crate) fn channels(program: &Program, before: &[Arc<Channel>]) -> Box<[Arc<Channel>]> {
    let channel = |plan: &Arc<OtelExporter>| {
        let known = before.iter().find(|known| known.plan == *plan);
        known.map_or_else(|| Arc::new(Channel::new(plan)), Arc::clone)
    };
    program.otel_exporters.iter().map(channel).collect()
}

/// Every channel that has a task.
#[derive(Default)]
pub struct Registry(Mutex<Vec<Arc<Channel>>>);

impl Registry {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<Arc<Channel>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns every channel that has a task.
    pub fn channels(&self) -> Vec<Arc<Channel>> {
        self.lock().clone()
    }
}
