//! Which places of servers and backends that were removed are free for others. Must never decide that one is free.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use live::ServerPlace;

/// Places of servers that were removed, and that nothing refers to any more.
#[derive(Debug, Default)]
pub struct Vacancies {
    places: Mutex<BTreeSet<ServerPlace>>,
    /// Places of backends that an order has removed.
    backends: Mutex<VecDeque<usize>>,
}

/// Number of vacant places of backends that are tried for one that is added; those that do not fit are tried last the next time.
const MOST_TRIED: usize = 16;

impl Vacancies {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<ServerPlace>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them now.
    pub fn all(&self) -> BTreeSet<ServerPlace> {
        self.lock().clone()
    }

    /// Whether a place is free.
    pub fn has(&self, place: ServerPlace) -> bool {
        self.lock().contains(&place)
    }

    /// Takes a place of a backend that `fits`.
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

    /// One more place of a backend.
    pub(crate) fn add_backend(&self, place: usize) {
        self.backends.lock().unwrap_or_else(PoisonError::into_inner).push_back(place);
    }

    /// One more.
    pub(crate) fn add(&self, place: ServerPlace) {
        self.lock().insert(place);
    }

    /// Another server has it.
    pub(crate) fn take(&self, place: ServerPlace) {
        self.lock().remove(&place);
    }

    /// These proxies are removed.
    pub(crate) fn forget(&self, proxies: &[usize]) {
        let mut places = self.lock();
        for proxy in proxies {
            let own: Vec<ServerPlace> = places.range((*proxy, 0)..=(*proxy, usize::MAX)).copied().collect();
            for place in own {
                places.remove(&place);
            }
        }
    }
}
