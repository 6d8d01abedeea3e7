//! How the calls of every request are made: directly, or by the functions of the C library. Must never make one.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the C library's functions are used.
static NAMED: AtomicBool = AtomicBool::new(false);

/// How sockets are read, written, accepted and closed, and how the kernel is asked for events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketCalls {
    /// By system calls. The C library's functions support thread cancellation, which costs two atomic operations each and never
    /// happens here.
    Direct,
    /// By the functions of the C library, which a preloaded library may replace by its own: stacks that bypass the kernel.
    Named,
}

impl SocketCalls {
    /// Returns the calls for the environment: named ones if a library is preloaded (`LD_PRELOAD`).
    #[must_use]
    pub fn of_environment() -> Self {
        let is_preloaded = std::env::var_os("LD_PRELOAD").is_some_and(|libraries| !libraries.is_empty());
        if is_preloaded { Self::Named } else { Self::Direct }
    }

    /// Uses these calls from now on, in all threads. Both kinds may be used on one socket unless a preloaded library is concerned.
    pub fn set(self) {
        NAMED.store(self == Self::Named, Ordering::Relaxed);
    }

    /// Returns the calls that are used.
    #[must_use]
    pub fn current() -> Self {
        if are_named() { Self::Named } else { Self::Direct }
    }
}

#[inline]
pub(crate) fn are_named() -> bool {
    NAMED.load(Ordering::Relaxed)
}
