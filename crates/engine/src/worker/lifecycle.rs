//! How far the process is on its way to its end, and whether it is paused. Must never wake a task.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use base::moment::Moment;

/// Whether the process stops, or is paused.
#[derive(Default)]
pub(super) struct Lifecycle {
    /// Set once: no new connections, sessions end when they can.
    stopping: AtomicBool,
    /// Set once, `grace` before `stopping`.
    leaving: AtomicBool,
    /// Time of the stop.
    stopped_at: OnceLock<Moment>,
    /// Accepting is paused.
    paused: AtomicBool,
}

impl Lifecycle {
    #[inline]
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Begins the stop. Returns true the first time.
    pub(super) fn stop(&self) -> bool {
        let _ = self.stopped_at.set(rt::now());
        !self.stopping.swap(true, Ordering::Release)
    }

    /// Returns true from the second call on.
    pub(super) fn begin_to_leave(&self) -> bool {
        self.leaving.swap(true, Ordering::Relaxed)
    }

    /// Whether a soft stop was requested, possibly still within `grace`.
    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed) || self.is_stopping()
    }

    /// Returns the time of the stop; `None` before it.
    pub(super) fn stopped_at(&self) -> Option<Moment> {
        if self.is_stopping() { self.stopped_at.get().copied() } else { None }
    }

    #[inline]
    pub(super) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }

    pub(super) fn set_paused(&self, paused: bool) {
        self.paused.store(paused, Ordering::Relaxed);
    }
}
