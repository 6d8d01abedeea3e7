//! Which places of servers that were removed are free for others. Must never decide that one is free.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use live::ServerPlace;

/// Places of servers that were removed, and that nothing refers to any more.
#[derive(Debug, Default)]
pub struct Vacancies {
    places: Mutex<BTreeSet<ServerPlace>>,
}

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

    /// One more.
    pub(crate) fn add(&self, place: ServerPlace) {
        self.lock().insert(place);
    }

    /// Another server has it, or its proxy is removed.
    pub(crate) fn remove(&self, is_taken: impl Fn(ServerPlace) -> bool) {
        self.lock().retain(|place| !is_taken(*place));
    }
}
