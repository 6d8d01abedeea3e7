//! Connections of reverse HTTP that take requests, and the notices about them between workers. Must never hold a connection, nor
//! wait.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::attachments::{Attachments, Kind};
use super::{Process, Worker};

impl Attachments {
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
