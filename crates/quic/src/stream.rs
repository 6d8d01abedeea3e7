//! Streams by their ids (RFC 9000, section 2.1), and the results of reading and writing them.

use bytes::Bytes;
use quinn_proto::{Dir, VarInt};

/// The directions of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Both sides send.
    Bidirectional,
    /// Only the side that has opened it sends.
    Unidirectional,
}

impl Direction {
    pub(crate) fn inner(self) -> Dir {
        match self {
            Self::Bidirectional => Dir::Bi,
            Self::Unidirectional => Dir::Uni,
        }
    }

    pub(crate) fn of(direction: Dir) -> Self {
        match direction {
            Dir::Bi => Self::Bidirectional,
            Dir::Uni => Self::Unidirectional,
        }
    }
}

/// The id of a stream of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub(crate) quinn_proto::StreamId);

impl StreamId {
    /// Returns the number that frames carry.
    pub fn number(self) -> u64 {
        self.0.into()
    }

    /// Returns the direction.
    pub fn direction(self) -> Direction {
        Direction::of(self.0.dir())
    }

    /// Whether the client has opened it.
    pub fn is_of_client(self) -> bool {
        self.0.initiator().is_client()
    }

    /// Returns the stream with a number that a frame contains. `None`: it is too large.
    pub fn of_number(number: u64) -> Option<Self> {
        VarInt::from_u64(number).ok().map(|number| Self(number.into()))
    }
}

/// The next part of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Bytes, as they were received.
    Chunk(Bytes),
    /// The peer has finished the stream, and everything was read.
    End,
}

/// Why nothing was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadError {
    /// Nothing has arrived: an event reports when something has.
    Blocked,
    /// The peer has reset the stream, with a code of the application.
    Reset(u64),
    /// The stream was read to its end, stopped, or never existed.
    Closed,
}

/// Why nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteError {
    /// The peer accepts no more, or enough is unacknowledged: an event reports when that has changed.
    Blocked,
    /// The peer does not read the stream any further, with a code of the application.
    Stopped(u64),
    /// The stream was finished or reset, or never existed.
    Closed,
}

/// Returns a code that frames can carry; larger ones than that become the largest.
pub(crate) fn code(number: u64) -> VarInt {
    VarInt::from_u64(number).unwrap_or(VarInt::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_contain_the_opener_and_the_direction() {
        use Direction::{Bidirectional, Unidirectional};
        for (number, of_client, direction) in [
            (0, true, Bidirectional),
            (1, false, Bidirectional),
            (6, true, Unidirectional),
            (11, false, Unidirectional),
        ] {
            let id = StreamId::of_number(number).unwrap();
            assert_eq!((id.number(), id.is_of_client(), id.direction()), (number, of_client, direction));
        }
        assert_eq!(StreamId::of_number(1 << 62), None);
        assert_eq!(u64::from(code(u64::MAX)), (1 << 62) - 1);
    }
}
