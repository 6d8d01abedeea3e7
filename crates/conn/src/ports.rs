//! The ports of a source's range (`source 10.0.0.1:1000-2000`), shared by all workers: each is used by one connection
//! at a time. Must never open anything.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The free ports, longest unused first.
#[derive(Debug)]
pub struct SourcePorts {
    free: Mutex<VecDeque<u16>>,
}

/// A port in use. Dropping it frees it.
#[derive(Debug)]
pub struct SourcePort {
    ports: Arc<SourcePorts>,
    port: u16,
}

impl SourcePorts {
    /// Creates the range from `first` to `last`, inclusive.
    pub fn new(first: u16, last: u16) -> Arc<Self> {
        Arc::new(Self { free: Mutex::new((first..=last).collect()) })
    }

    /// Takes a port; `None` if all are in use.
    pub fn take(self: &Arc<Self>) -> Option<SourcePort> {
        let port = self.lock().pop_front()?;
        Some(SourcePort { ports: Arc::clone(self), port })
    }

    /// The number of free ports.
    pub fn free(&self) -> usize {
        self.lock().len()
    }

    /// Locks the list. It is consistent even if the lock is poisoned.
    fn lock(&self) -> MutexGuard<'_, VecDeque<u16>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SourcePort {
    pub fn number(&self) -> u16 {
        self.port
    }
}

impl Drop for SourcePort {
    fn drop(&mut self) {
        self.ports.lock().push_back(self.port);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_used_once_at_a_time_and_the_one_longest_free_comes_first() {
        let ports = SourcePorts::new(10, 12);
        let held: Vec<SourcePort> = std::iter::from_fn(|| ports.take()).collect();
        assert_eq!(held.iter().map(SourcePort::number).collect::<Vec<_>>(), [10, 11, 12]);
        let mut held = held;
        drop(held.remove(1));
        assert_eq!(ports.take().map(|port| port.number()), Some(11));
        drop(held);
        assert_eq!(ports.free(), 3);
        let held: Vec<SourcePort> = std::iter::from_fn(|| ports.take()).collect();
        assert_eq!(held.iter().map(SourcePort::number).collect::<Vec<_>>(), [11, 10, 12]);
    }
}
