//! Free slots of removed servers and backends. Must never decide that one is free.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use live::ServerPlace;

/// Slots of removed servers to which nothing refers.
#[derive(Debug, Default)]
pub struct Vacancies {
    places: Mutex<BTreeSet<ServerPlace>>,
    /// Slots of backends that a command has removed.
    backends: Mutex<VecDeque<usize>>,
}

/// Number of free backend slots that are tried for an added backend; those that do not fit are tried last the next time.
const MOST_TRIED: usize = 16;

impl Vacancies {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<ServerPlace>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all free server slots.
    pub fn all(&self) -> BTreeSet<ServerPlace> {
        self.lock().clone()
    }

    /// Whether a server slot is free.
    pub fn has(&self, place: ServerPlace) -> bool {
        self.lock().contains(&place)
    }

    /// Takes a backend slot that `fits`.
    pub fn take_backend(&self, fits: impl Fn(usize) -> bool) -> Option<usize> {
        let mut places = self.backends.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..places.len().min(MOST_TRIED) {
            let place = places.pop_front()?;
            if fits(place) {
                return Some(place);
            }
            places.push_back(place);
        }
        None
    }

    /// Adds a backend slot.
    pub(crate) fn add_backend(&self, place: usize) {
        self.backends.lock().unwrap_or_else(PoisonError::into_inner).push_back(place);
    }

    /// Adds a server slot.
    pub(crate) fn add(&self, place: ServerPlace) {
        self.lock().insert(place);
    }

    /// Removes a server slot that is in use again.
    pub(crate) fn take(&self, place: ServerPlace) {
        self.lock().remove(&place);
    }

    /// Removes the slots of removed proxies.
    pub(crate) fn forget(&self, proxies: &[usize]) {
        let mut places = self.lock();
        for proxy in proxies {
            let first = ServerPlace { proxy: *proxy, server: 0 };
            let last = ServerPlace { server: usize::MAX, ..first };
            let own: Vec<ServerPlace> = places.range(first..=last).copied().collect();
            for place in own {
                places.remove(&place);
            }
        }
    }
}
