//! Registry of the process for connections of reverse HTTP: the number per kind and worker, and the workers that wait for one.
//! Must never hold a connection, nor wait.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use conn::pool_key::PoolKey;

/// Interchangeable connections: the serial number of their server, and their pool key, empty without a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    pub(crate) server: usize,
    name: Arc<[u8]>,
}

impl Kind {
    pub(crate) fn new(server: usize, name: &[u8]) -> Self {
        Self { server, name: name.into() }
    }

    pub(crate) fn key(&self) -> PoolKey<'_> {
        if self.name.is_empty() { PoolKey::COMMON } else { PoolKey::new(&self.name) }
    }
}

/// Connections and waiting workers of a kind.
pub(crate) struct Entry {
    /// Number of connections that take requests, by worker.
    pub(crate) held: Box<[u32]>,
    /// Workers whose requests wait for a connection, in order, without duplicates.
    pub(crate) waiting: Vec<usize>,
}

/// All kinds that have connections.
#[derive(Default)]
pub struct Attachments {
    pub(crate) kinds: Mutex<HashMap<Kind, Entry>>,
    /// Number of waiting workers over all kinds; usually zero.
    pub(crate) waiting: AtomicUsize,
}

impl Attachments {
    pub(crate) fn lock(&self) -> MutexGuard<'_, HashMap<Kind, Entry>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes a worker from the waiting ones.
    pub(crate) fn withdraw(&self, kind: &Kind, worker: usize) {
        if let Some(entry) = self.lock().get_mut(kind) {
            let before = entry.waiting.len();
            entry.waiting.retain(|waiting| *waiting != worker);
            self.waiting.fetch_sub(before - entry.waiting.len(), Ordering::Relaxed);
        }
    }

    /// Takes the worker that has waited longest, other than `own`. The caller has to give it a connection.
    pub(crate) fn claim(&self, kind: &Kind, own: usize) -> Option<usize> {
        if self.waiting.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut kinds = self.lock();
        let waiting = &mut kinds.get_mut(kind)?.waiting;
        let place = waiting.iter().position(|worker| *worker != own)?;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(waiting.remove(place))
    }

    pub(crate) fn change(&self, kind: &Kind, workers: usize, change: impl FnOnce(&mut [u32])) -> Vec<usize> {
        let mut kinds = self.lock();
        let known = kinds.entry(kind.clone());
        let entry = known.or_insert_with(|| Entry { held: vec![0; workers].into(), waiting: Vec::new() });
        change(&mut entry.held);
        if entry.held.iter().any(|held| *held > 0) {
            return Vec::new();
        }
        let waiting = kinds.remove(kind).map(|entry| entry.waiting).unwrap_or_default();
        self.waiting.fetch_sub(waiting.len(), Ordering::Relaxed);
        waiting
    }
}
