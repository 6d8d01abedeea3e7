//! `http-request mirror`, Weir's own: counters of the copies sent to a backend. Must never send one.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::ProxyState;

/// Counters of mirrored requests since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MirrorCounts {
    /// Copies begun: a server had a free slot.
    pub begun: u64,
    /// Of these, those whose response was read completely.
    pub answered: u64,
    /// Of these, those that failed: no connection, no valid response in time, or the client disconnected.
    pub failed: u64,
    /// Of these, those whose server was too slow for the body.
    pub lagged: u64,
    /// Requests not copied: no server had a free slot, or the memory limit was reached.
    pub dropped: u64,
}

/// The result of one copy, or that there was none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mirrored {
    Begun,
    Answered,
    Failed,
    Lagged,
    Dropped,
}

/// The counters of a backend.
#[derive(Debug, Default)]
pub(super) struct Mirroring([AtomicU64; 5]);

impl ProxyState {
    /// Counts the result of a copy.
    pub fn note_mirrored(&self, mirrored: Mirrored) {
        self.mirroring.0[mirrored as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Clears the counters, for another backend at the same index.
    pub(super) fn clear_mirrored(&self) {
        self.mirroring.0.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    }

    /// Returns the counters of copies sent to this backend.
    pub fn mirror_counts(&self) -> MirrorCounts {
        let count = |mirrored: Mirrored| self.mirroring.0[mirrored as usize].load(Ordering::Relaxed);
        MirrorCounts {
            begun: count(Mirrored::Begun),
            answered: count(Mirrored::Answered),
            failed: count(Mirrored::Failed),
            lagged: count(Mirrored::Lagged),
            dropped: count(Mirrored::Dropped),
        }
    }
}
