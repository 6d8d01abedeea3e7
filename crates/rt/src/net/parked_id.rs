//! The name of a parked stream. Must never be used for another one.

use base::Key;

/// Identifies a parked stream while it is parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ParkedId {
    instance: u32,
    key: Key,
}

impl ParkedId {
    pub(crate) fn new(instance: u32, key: Key) -> ParkedId {
        ParkedId { instance, key }
    }

    /// Returns a small number, unique among the streams parked on one worker: an index for side tables.
    pub fn slot(self) -> usize {
        self.key.slot as usize
    }
}
