//! Services of the process that requests do not need, by their type. Must never be used on the path of a request: a service is
//! found by a search.

use std::any::Any;
use std::sync::OnceLock;

/// Services, each in a list entry of its own; one is created at its first use.
#[derive(Default)]
pub(crate) struct Registry(Next);

type Next = OnceLock<Box<Entry>>;

struct Entry {
    service: Box<dyn Any + Send + Sync>,
    next: Next,
}

impl Entry {
    fn new<T: Any + Send + Sync>(service: T, next: Next) -> Box<Self> {
        Box::new(Self { service: Box::new(service), next })
    }
}

impl Registry {
    /// Adds a service that is not created by default.
    pub(crate) fn with<T: Any + Send + Sync>(self, service: T) -> Self {
        Self(OnceLock::from(Entry::new(service, self.0)))
    }

    /// Returns the service of that type.
    pub(crate) fn get<T: Default + Any + Send + Sync>(&self) -> &T {
        let mut next = &self.0;
        loop {
            let entry = next.get_or_init(|| Entry::new(T::default(), Next::new()));
            if let Some(service) = entry.service.downcast_ref() {
                return service;
            }
            next = &entry.next;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_service_is_created_once() {
        let registry = Registry::default().with(AtomicU8::new(8)).with(AtomicU16::new(16));
        let add = || registry.get::<AtomicU32>().fetch_add(1, Ordering::Relaxed);
        std::thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(add))));
        let known = (registry.get::<AtomicU8>(), registry.get::<AtomicU16>(), registry.get::<AtomicU32>());
        assert_eq!((known.0.load(Ordering::Relaxed), known.1.load(Ordering::Relaxed)), (8, 16));
        assert_eq!(known.2.load(Ordering::Relaxed), 8);
    }
}
