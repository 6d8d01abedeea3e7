//! `http-request mirror`, Weir's own: what came of the copies that went to a backend. Must never send one.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::ProxyState;

/// What came of copies since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MirrorCounts {
    /// Copies that were begun: a server had a free slot.
    pub begun: u64,
    /// Of these, those whose answer was read to its end.
    pub answered: u64,
    /// Of these, those that failed: no connection, no valid answer in time, or a client that left.
    pub failed: u64,
    /// Of these, those whose server was too slow for the body.
    pub lagged: u64,
    /// Requests that were not copied: no server had a free slot, or there was no memory.
    pub dropped: u64,
}

/// What came of one copy, or that there was none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Mirrored {
    Begun,
    Answered,
    Failed,
    Lagged,
    Dropped,
}

/// A backend's counts.
#[derive(Debug, Default)]
pub(super) struct Mirroring([AtomicU64; 5]);

impl ProxyState {
    /// Something came of a copy, or there was none.
    pub fn note_mirrored(&self, mirrored: Mirrored) {
        self.mirroring.0[mirrored as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Another backend has its place.
    pub(super) fn clear_mirrored(&self) {
        self.mirroring.0.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    }

    /// What came of copies of requests that went to this backend.
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
