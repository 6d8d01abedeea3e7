//! Telemetry on its way to collectors (OpenTelemetry): workers add what is encoded to a bounded queue, from which one task
//! for each exporter takes it. Must never make a stream wait, nor hold more than an exporter's queue allows.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use base::moment::{Moment, WallTime};
use conn::client::Uri;
use policy::program::{OtelExporter, Program};

/// Queues of a channel: a worker adds to its own, so that workers seldom meet.
const SHARDS: usize = 16;
/// Bytes that an item has on average at most: more than that shortens the queue.
const BYTES_AN_ITEM: usize = 2_048;

/// A time of the calendar as OTLP has it.
pub fn nanoseconds(time: WallTime) -> u64 {
    u64::try_from(time.seconds).unwrap_or(0).saturating_mul(1_000_000_000).saturating_add(time.nanos.into())
}

/// Items of one queue.
#[derive(Default)]
#[repr(align(64))]
struct Shard(Mutex<VecDeque<Vec<u8>>>);

impl Shard {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What became of the items of a channel.
#[derive(Debug, Default)]
pub struct Counts {
    /// Collectors have taken them.
    pub sent: AtomicU64,
    /// The queue was full.
    pub dropped: AtomicU64,
    /// No collector has taken them.
    pub failed: AtomicU64,
    /// Requests that were sent, each attempt.
    pub requests: AtomicU64,
}

/// The way of telemetry of one kind to a collector.
pub struct Channel {
    /// What the configuration says of it.
    pub plan: Arc<OtelExporter>,
    /// Where requests go; `None`: that is no address, and all is dropped.
    pub(crate) target: Option<Uri>,
    shards: [Shard; SHARDS],
    queued: AtomicUsize,
    bytes: AtomicUsize,
    /// What became of its items.
    pub counts: Counts,
    /// The task that sends, while it sleeps.
    sleeper: Mutex<Option<Waker>>,
    woken: AtomicBool,
    /// Items that the task has taken and not sent yet.
    pub(crate) underway: AtomicUsize,
    /// The process ends: each request is sent once.
    pub(crate) last: AtomicBool,
    /// Why items were lost last.
    error: Mutex<Option<ExportError>>,
}

/// Why a collector has not taken items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportError {
    /// In words.
    pub text: String,
    /// When.
    pub at: Moment,
    /// It has taken nothing since.
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

    /// Why items were lost last; `None`: none were.
    pub fn last_error(&self) -> Option<ExportError> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes why items were lost, or that the collector takes them again.
    pub(crate) fn note(&self, outcome: Result<(), String>) {
        let mut error = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Err(text) => *error = Some(ExportError { text, at: rt::now(), lasts: true }),
            Ok(()) => error.iter_mut().for_each(|error| error.lasts = false),
        }
    }

    /// Items that wait, those of a request under way included.
    pub fn waiting(&self) -> usize {
        self.queued.load(Ordering::Relaxed) + self.underway.load(Ordering::Relaxed)
    }

    /// Adds an encoded item; dropped and counted where the queue is full.
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

    /// Whether who has much to add should wait.
    pub fn is_half_full(&self) -> bool {
        let bytes = self.bytes.load(Ordering::Relaxed);
        self.waiting() >= self.plan.queue.div_ceil(2) || bytes >= self.plan.queue.saturating_mul(BYTES_AN_ITEM / 2)
    }

    /// So many items are sent before their time is over.
    fn early(&self) -> usize {
        self.plan.batch.min(self.plan.queue.div_ceil(2)).max(1)
    }

    /// Takes the items of one request; none: there are none.
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

    /// Ready once enough items wait, or the process ends.
    fn poll_woken(&self, cx: &mut Context<'_>) -> Poll<()> {
        *self.sleeper() = Some(cx.waker().clone());
        if self.woken.swap(false, Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Waits until then, or until it is woken.
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

/// The channels of a program; those of the program before it that have the same plan go on.
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

    /// Every channel that has a task.
    pub fn channels(&self) -> Vec<Arc<Channel>> {
        self.lock().clone()
    }
}
