//! The messages of a connection that belong to no stream, and are sent once (RFC 9221). Must never repeat one.

use bytes::Bytes;

use crate::connection::Connection;

/// A message that is too large for a packet, or for a peer that accepts none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageRefused;

impl Connection {
    /// Returns the next message that was received.
    pub fn receive_message(&mut self) -> Option<Bytes> {
        self.inner.datagrams().recv()
    }

    /// Sends a message. If there is no room, the oldest ones that were not sent are dropped.
    ///
    /// # Errors
    /// It cannot be sent.
    pub fn send_message(&mut self, message: Bytes) -> Result<(), MessageRefused> {
        self.inner.datagrams().send(message, true).map_err(|_| MessageRefused)
    }
}
