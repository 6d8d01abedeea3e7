//! The number of connections to a server, if it has an exact limit (`strict-maxconn`). Must never open one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The count of one server's connections.
#[derive(Debug, Default)]
pub struct Quota(Arc<AtomicUsize>);

/// One counted connection, busy or idle. Dropping it decrements the count.
#[derive(Debug)]
pub struct Reservation(Arc<AtomicUsize>);

impl Quota {
    /// Counts one more connection, unless there are `most`.
    pub fn reserve(&self, most: usize) -> Option<Reservation> {
        let one_more = |count: usize| (count < most).then(|| count + 1);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok()?;
        Some(Reservation(Arc::clone(&self.0)))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_together_never_have_more_places_than_there_are() {
        let (quota, busy) = (Quota::default(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        let Some(place) = quota.reserve(3) else { continue };
                        assert!(busy.fetch_add(1, Ordering::SeqCst) < 3);
                        std::thread::yield_now();
                        busy.fetch_sub(1, Ordering::SeqCst);
                        drop(place);
                    }
                });
            }
        });
        let places: Vec<Reservation> = std::iter::from_fn(|| quota.reserve(3)).collect();
        assert_eq!(places.len(), 3);
    }
}
