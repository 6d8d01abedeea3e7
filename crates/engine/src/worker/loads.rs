//! Number of sessions of each worker, and the choice of the worker for a connection. Must never move a session.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use config::spec::MultiQueue;

/// Sessions and streams of all workers.
pub(super) struct Loads {
    /// Number of streams so far.
    streams: Streams,
    /// Next worker for round-robin distribution of connections.
    turn: AtomicUsize,
    /// Number of sessions of each worker, those in its mailbox included.
    workers: Box<[Load]>,
}

/// A counter of streams on a cache line of its own. It wraps, as HAProxy's does.
#[derive(Default)]
#[repr(align(128))]
struct Streams(AtomicU32);

/// A worker's number of sessions, on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Load(AtomicUsize);

impl Loads {
    pub(super) fn new(workers: usize) -> Self {
        let workers = (0..workers).map(|_| Load::default()).collect();
        Self { streams: Streams::default(), turn: AtomicUsize::new(0), workers }
    }

    /// Returns the number of a new stream: the count of streams before it.
    #[inline]
    pub(super) fn number_stream(&self) -> u32 {
        self.streams.0.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the number of sessions of all workers.
    pub(super) fn sessions(&self) -> usize {
        self.workers.iter().map(|load| load.0.load(Ordering::Relaxed)).sum()
    }

    /// Returns the number of workers.
    #[inline]
    pub(super) fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Counts a session of a worker.
    #[inline]
    pub(super) fn enter(&self, worker: usize) {
        self.workers[worker].0.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a session of a worker that has ended.
    #[inline]
    pub(super) fn leave(&self, worker: usize) {
        self.workers[worker].0.fetch_sub(1, Ordering::Relaxed);
    }

    /// Chooses a worker for a connection and counts it; see [`super::Process::reserve`].
    #[inline]
    pub(super) fn reserve(
        &self,
        this: usize,
        among: Option<&[usize]>,
        choice: MultiQueue,
        random: impl FnOnce() -> u64,
    ) -> usize {
        let workers = among.map_or(self.workers(), <[usize]>::len);
        let named = |place: usize| among.map_or(place, |among| among[place]);
        let chosen = match choice {
            _ if workers <= 1 => this,
            MultiQueue::Off => this,
            MultiQueue::Fair => named(self.turn.fetch_add(1, Ordering::Relaxed) % workers),
            MultiQueue::On => {
                // Any worker but this one: the last one is its substitute.
                let last = named(workers - 1);
                let other = match named((random() % (workers as u64 - 1)) as usize) {
                    other if other == this => last,
                    other => other,
                };
                let load = |worker: usize| self.workers[worker].0.load(Ordering::Relaxed);
                if load(other) < load(this) { other } else { this }
            }
        };
        self.enter(chosen);
        chosen
    }
}
