//! Registry of the process for connections of reverse HTTP: the number per kind and worker, and the workers that wait for one.
//! Must never hold a connection, nor wait.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use conn::pool_key::PoolKey;

use super::{Process, Worker};

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
struct Entry {
    /// Number of connections that take requests, by worker.
    held: Box<[u32]>,
    /// Workers whose requests wait for a connection, in order, without duplicates.
    waiting: Vec<usize>,
}

/// All kinds that have connections.
#[derive(Default)]
pub struct Attachments {
    kinds: Mutex<HashMap<Kind, Entry>>,
    /// Number of waiting workers over all kinds; usually zero.
    waiting: AtomicUsize,
}

impl Attachments {
    fn lock(&self) -> MutexGuard<'_, HashMap<Kind, Entry>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a worker whose requests wait for a connection of that kind, and makes the other workers look for one that they
    /// can give away, once until one is given. Returns false if there is no connection.
    pub(crate) fn announce(&self, kind: &Kind, worker: usize) -> bool {
        let holders: Vec<usize> = {
            let mut kinds = self.lock();
            let Some(entry) = kinds.get_mut(kind) else { return false };
            if entry.waiting.contains(&worker) {
                return true;
            }
            entry.waiting.push(worker);
            self.waiting.fetch_add(1, Ordering::Relaxed);
            let held = entry.held.iter().enumerate();
            held.filter(|(holder, held)| *holder != worker && **held > 0).map(|(holder, _)| holder).collect()
        };
        for holder in holders {
            let kind = kind.clone();
            let look = move |worker: &Rc<Worker>| worker.links.rouse(kind.server, kind.key());
            rt::post(holder as rt::WorkerId, Box::new(move || crate::on_worker(look)));
        }
        true
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

    fn change(&self, kind: &Kind, workers: usize, change: impl FnOnce(&mut [u32])) -> Vec<usize> {
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

/// Registration of a connection that takes requests, or is being moved to another worker.
pub(crate) struct Presence {
    process: Arc<Process>,
    kind: Kind,
    worker: usize,
}

impl Presence {
    /// Registers a connection of a worker.
    pub(crate) fn of(process: &Arc<Process>, kind: Kind, worker: usize) -> Self {
        process.attachments.change(&kind, process.workers(), |held| held[worker] += 1);
        Self { process: Arc::clone(process), kind, worker }
    }

    /// Moves the registration to another worker.
    pub(crate) fn move_to(&mut self, next: usize) {
        let own = std::mem::replace(&mut self.worker, next);
        self.process.attachments.change(&self.kind, self.process.workers(), |held| {
            held[next] += 1;
            held[own] -= 1;
        });
    }
}

impl Drop for Presence {
    /// Wakes the waiting requests if this was the last connection.
    fn drop(&mut self) {
        let own = self.worker;
        let told = self.process.attachments.change(&self.kind, self.process.workers(), |held| held[own] -= 1);
        for worker in told {
            let kind = self.kind.clone();
            let tell = move |worker: &Rc<Worker>| worker.arrivals.wake(&kind);
            rt::post(worker as rt::WorkerId, Box::new(move || crate::on_worker(tell)));
        }
    }
}
