//! The number of connections of the process whose handshake is in progress (`tune.quic.fe.sec.retry-threshold`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts connections of clients whose handshake is in progress, over all workers.
#[derive(Debug, Default)]
pub struct HalfOpen(AtomicUsize);

impl HalfOpen {
    /// Returns their number.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts a connection until the guard is dropped.
    pub(crate) fn enter(self: &Arc<Self>) -> HalfOpenGuard {
        self.0.fetch_add(1, Ordering::Relaxed);
        HalfOpenGuard(Arc::clone(self))
    }
}

/// A connection that is counted.
#[derive(Debug)]
pub(crate) struct HalfOpenGuard(Arc<HalfOpen>);

impl Drop for HalfOpenGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_are_counted() {
        let all = Arc::new(HalfOpen::default());
        let guards = [all.enter(), all.enter()];
        assert_eq!(all.count(), 2);
        drop(guards);
        assert_eq!(all.count(), 0);
    }
}
