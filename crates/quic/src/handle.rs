//! The numbers of connections, and the datagrams that an endpoint passes to them.

use quinn_proto::{ConnectionEvent, ConnectionHandle};

/// The number of a connection of an endpoint: small, and used again after its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(pub(crate) ConnectionHandle);

impl Handle {
    pub fn index(self) -> usize {
        self.0.0
    }
}

/// A datagram for a connection.
#[derive(Debug)]
pub struct Input(pub(crate) ConnectionEvent);
