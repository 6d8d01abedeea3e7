//! The streams of a connection by number, and the numbers of those that began. Must never know their state.

use super::stream::Stream;
use crate::stream::Direction;

/// Returns the index of a direction.
pub(super) fn index(direction: Direction) -> usize {
    match direction {
        Direction::Bidirectional => 0,
        Direction::Unidirectional => 1,
    }
}

/// Returns the direction of a stream.
pub(super) fn direction(id: u64) -> Direction {
    if id & 2 == 0 { Direction::Bidirectional } else { Direction::Unidirectional }
}

/// The streams that are not over, in the order of their numbers.
#[derive(Default)]
pub(super) struct Table(Vec<Stream>);

impl Table {
    fn position(&self, id: u64) -> Result<usize, usize> {
        self.0.binary_search_by_key(&id, |stream| stream.id)
    }

    pub(super) fn get(&mut self, id: u64) -> Option<&mut Stream> {
        let position = self.position(id).ok()?;
        self.0.get_mut(position)
    }

    pub(super) fn insert(&mut self, stream: Stream) {
        if let Err(position) = self.position(stream.id) {
            self.0.insert(position, stream);
        }
    }

    pub(super) fn remove(&mut self, id: u64) {
        if let Ok(position) = self.position(id) {
            self.0.remove(position);
        }
    }
}

/// The streams of one direction that one side opens.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Opened {
    /// Number of those that were opened.
    pub(super) count: u64,
    /// Number of those that may be opened.
    pub(super) most: u64,
    /// Number of those that are over.
    pub(super) ended: u64,
    /// Number of those that were accepted.
    pub(super) accepted: u64,
    /// Maximum number at a time.
    pub(super) at_once: u64,
}
