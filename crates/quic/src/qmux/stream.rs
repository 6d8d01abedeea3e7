//! One stream: the progress of its directions. Must never write a frame.

use bytes::BytesMut;

/// The direction from the peer.
#[derive(Default)]
pub(super) struct Receiving {
    /// Bytes that were not read.
    pub(super) unread: BytesMut,
    /// Bytes received, also those that were read or dropped.
    pub(super) received: u64,
    /// Bytes that the peer may send.
    pub(super) most: u64,
    /// Whether the peer has ended it.
    pub(super) is_ended: bool,
    /// The code with which the peer has reset it.
    pub(super) reset: Option<u64>,
    /// Whether nothing more is read: what arrives is dropped.
    pub(super) is_stopped: bool,
    /// Whether the peer is to be informed that it may send more.
    pub(super) owes_credit: bool,
}

impl Receiving {
    pub(super) fn new(window: u64) -> Self {
        Self { most: window, ..Self::default() }
    }

    /// Returns the credit of a stream of which everything up to the unread bytes was read, if it has become much.
    pub(super) fn credit(&self, window: u64) -> Option<u64> {
        let most = self.received - self.unread.len() as u64 + window;
        (!self.is_ended && !self.is_stopped && most >= self.most + window.div_ceil(2)).then_some(most)
    }
}

/// The direction to the peer.
#[derive(Default)]
pub(super) struct Sending {
    /// Bytes written.
    pub(super) written: u64,
    /// Bytes that the peer accepts.
    pub(super) most: u64,
    /// The code with which the peer has stopped it.
    pub(super) stopped: Option<u64>,
    /// Whether its end was written.
    pub(super) is_finished: bool,
    /// Whether a write had to wait.
    pub(super) is_blocked: bool,
    /// Whether the peer knows that its window is used up.
    pub(super) is_reported: bool,
    pub(super) priority: i32,
}

impl Sending {
    pub(super) fn new(most: u64) -> Self {
        Self { most, ..Self::default() }
    }
}

/// A stream.
#[derive(Default)]
pub(super) struct Stream {
    pub(super) id: u64,
    /// `None`: it is over, or does not exist.
    pub(super) receiving: Option<Receiving>,
    pub(super) sending: Option<Sending>,
    /// Whether the caller knows the stream.
    pub(super) is_accepted: bool,
    /// Events that wait.
    pub(super) is_readable: bool,
    pub(super) is_writable: bool,
}
