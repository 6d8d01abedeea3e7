//! How the calls of every request are made: directly, or by the functions of the C library. Must never make one.

use std::path::Path;
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
    /// Whether the program was linked statically. Libraries cannot be preloaded then.
    pub const IS_STATIC: bool = cfg!(target_feature = "crt-static");

    /// Returns the preloaded library that replaces functions of the C library for sockets, if there is one. Others, like those that
    /// replace the allocation of memory, do not count.
    #[must_use]
    pub fn library() -> Option<&'static Path> {
        #[cfg(not(target_feature = "crt-static"))]
        {
            static LIBRARY: std::sync::OnceLock<Option<std::path::PathBuf>> = std::sync::OnceLock::new();
            LIBRARY.get_or_init(crate::sys::preload::replacement).as_deref()
        }
        #[cfg(target_feature = "crt-static")]
        None
    }

    /// Returns the calls that a preloaded library sees, if there is one.
    #[must_use]
    pub fn detected() -> Self {
        if Self::library().is_some() { Self::Named } else { Self::Direct }
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

    /// Returns the calls and the reason, for people: the value of `tune.driver`, and the library.
    #[must_use]
    pub fn description(self) -> String {
        let name = match self {
            Self::Direct => "epoll",
            Self::Named => "posix",
        };
        match Self::library() {
            Some(library) => format!("{name} (preloaded: {})", library.display()),
            None if Self::IS_STATIC => format!("{name} (linked statically, no library can be preloaded)"),
            None => name.to_owned(),
        }
    }
}

#[inline]
pub(crate) fn are_named() -> bool {
    NAMED.load(Ordering::Relaxed)
}
