//! The programs of checks that run at the same time: how many there are. Must never start one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base::moment::Moment;

/// Maximum number of concurrently running programs of a process; further checks wait.
const MOST: usize = 128;
/// Interval at which a waiting check looks for a free slot.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The external check programs of a process.
#[derive(Debug)]
pub struct Programs {
    /// Threads that start programs: that blocks until the system has forked.
    pub(super) starters: rt::Helpers,
    running: Arc<AtomicUsize>,
}

impl Default for Programs {
    fn default() -> Self {
        Self { starters: rt::Helpers::new(1, MOST), running: Arc::default() }
    }
}

/// A slot for a running program, freed when dropped.
pub(super) struct Room(Arc<AtomicUsize>);

impl Drop for Room {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Programs {
    fn enter(&self) -> Option<Room> {
        let more = |running: usize| (running < MOST).then_some(running + 1);
        let entered = self.running.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        entered.is_ok().then(|| Room(Arc::clone(&self.running)))
    }

    /// Waits for a slot; `None`: none was free before the deadline.
    pub(super) async fn room(&self, deadline: Moment) -> Option<Room> {
        loop {
            if let Some(room) = self.enter() {
                return Some(room);
            }
            if rt::now() >= deadline {
                return None;
            }
            rt::sleep(LOOK_AGAIN).await;
        }
    }
}
