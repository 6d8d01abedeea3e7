//! Requests on which no server of a backend has decided (`auth-request`): when they are reported. Must never log.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use base::moment::Moment;

use crate::ProxyState;

/// Minimum time between two reports about a backend.
const INTERVAL: Duration = Duration::from_secs(1);

/// The reports about a backend.
#[derive(Debug, Default)]
pub(super) struct Undecided {
    /// Time of the next report, in nanoseconds.
    next: AtomicU64,
    /// Requests since the last report.
    others: AtomicU64,
}

impl ProxyState {
    /// Counts a request without a decision. Returns the number of those that were not reported before if one is to be reported: at
    /// most one a second.
    pub fn note_undecided(&self, now: Moment) -> Option<u64> {
        let Undecided { next, others } = &self.undecided;
        let due = next.load(Relaxed);
        let is_due = now.as_nanos() >= due;
        if is_due && next.compare_exchange(due, (now + INTERVAL).as_nanos(), Relaxed, Relaxed).is_ok() {
            return Some(others.swap(0, Relaxed));
        }
        others.fetch_add(1, Relaxed);
        None
    }
}
