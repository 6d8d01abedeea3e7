//! The snapshot that the watches share with the reconcile loop.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::snapshot::Snapshot;

/// A snapshot, the watches whose initial list is incomplete, and a signal of changes.
#[derive(Debug, Default)]
pub struct Store {
    contents: Mutex<Contents>,
    changed: Notify,
}

/// The contents of a store, which its lock protects.
#[derive(Debug, Default)]
pub struct Contents {
    pub snapshot: Snapshot,
    /// Names of watches that have not listed their objects yet.
    unlisted: BTreeSet<String>,
}

impl Store {
    /// Returns the contents. The lock must not be held while a task waits.
    pub fn lock(&self) -> MutexGuard<'_, Contents> {
        // A panic of another task leaves whole objects, as each change is one assignment.
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a watch, whose list is then waited for.
    pub fn expect(&self, watch: &str) {
        self.lock().unlisted.insert(watch.to_owned());
    }

    /// Records that a watch has listed its objects, or that these are not waited for.
    pub fn listed(&self, watch: &str) {
        self.lock().unlisted.remove(watch);
        self.changed.notify_one();
    }

    /// Call after each change of the snapshot.
    pub fn announce(&self) {
        self.changed.notify_one();
    }

    /// Waits for a change of a complete snapshot. Changes before the call are kept as one.
    pub async fn wait(&self) {
        loop {
            self.changed.notified().await;
            if self.lock().unlisted.is_empty() {
                return;
            }
        }
    }
}
