//! The listening sockets of the process, and the tasks that accept from them. Must never open or close a socket.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::sockets::Sockets;

/// First number of listeners added at run time; those of the start have smaller ones.
const FIRST_LATE_LISTENER: usize = 1 << 24;

/// Sockets and tasks that accept.
pub(super) struct Listeners {
    /// Number of workers that may still accept connections.
    pub(super) accepting: AtomicUsize,
    /// The listening sockets, for pausing them and passing them on.
    pub(super) sockets: OnceLock<Sockets>,
    /// Number of the next listener that is added at run time.
    next: AtomicUsize,
}

impl Listeners {
    pub(super) fn new(workers: usize) -> Self {
        let next = AtomicUsize::new(FIRST_LATE_LISTENER);
        Self { accepting: AtomicUsize::new(workers), sockets: OnceLock::new(), next }
    }

    /// Returns a number that no listener had before.
    pub(super) fn number(&self) -> usize {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}
