//! Counts sessions as a worker's load. Must never be counted by hand: a guard is dropped with its session.

use std::fmt;
use std::sync::Arc;

use crate::mailbox::Remote;
use crate::{WorkerId, current};

/// Counts one session on a worker until it is dropped; [`crate::load_of`] returns the sum.
pub struct LoadGuard {
    remote: Arc<Remote>,
}

impl LoadGuard {
    /// Counts one session on a worker of the current runtime: the current one, or the worker that a connection is about
    /// to be handed to (the guard is `Send` and moves with it). A number out of range counts on the current worker.
    pub fn on(worker: WorkerId) -> LoadGuard {
        current::with(|current| {
            let remote = current.peers().get(usize::from(worker)).unwrap_or(&current.remote);
            remote.add_load();
            LoadGuard { remote: Arc::clone(remote) }
        })
    }
}

impl Drop for LoadGuard {
    fn drop(&mut self) {
        self.remote.remove_load();
    }
}

impl fmt::Debug for LoadGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadGuard").field("worker", &self.remote.worker).finish()
    }
}
