//! Early data to a server (RFC 9001, section 4.6): requests are sent before the handshake is complete, and again if the server has
//! rejected them. Must never choose which requests are sent early.
//!
//! A server that rejects early data has seen nothing of it, and QUIC forgets all streams. So what is written until then is kept, and
//! is written once more: streams that are opened in the same order get the same identifiers.

use std::task::{Context, Poll};

use base::moment::Moment;

/// Maximum number of bytes that are sent early on a connection. What exceeds it follows after the handshake.
const MOST_BYTES: usize = 64 * 1024;
/// Maximum number of requests that begin on a connection before its handshake is complete.
const MOST_STREAMS: usize = 100;

/// Why a connection that carries requests has ended before its handshake was complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unshaken {
    /// The handshake has failed.
    Failed,
    /// The time for it has passed.
    Expired,
}

/// The early data of a connection.
#[derive(Default)]
pub(super) struct Early {
    /// The bytes of each request stream, from the first one on.
    streams: Vec<Vec<u8>>,
    total: usize,
}

impl Early {
    /// Whether another request may begin.
    pub(super) fn takes_stream(&self) -> bool {
        self.streams.len() < MOST_STREAMS
    }

    /// Records that the next request stream was opened.
    pub(super) fn begin_stream(&mut self) {
        self.streams.push(Vec::new());
    }

    /// Returns the number of bytes that may be written.
    pub(super) fn room(&self) -> usize {
        MOST_BYTES.saturating_sub(self.total)
    }

    /// Records bytes that were written to the stream of that identifier.
    pub(super) fn note(&mut self, id: u64, bytes: &[u8]) {
        let index = usize::try_from(id / 4).unwrap_or(usize::MAX);
        if let Some(sent) = self.streams.get_mut(index) {
            sent.extend_from_slice(bytes);
            self.total += bytes.len();
        }
    }

    /// Returns what was written to each stream.
    pub(super) fn into_streams(self) -> Vec<Vec<u8>> {
        self.streams
    }
}

/// The time until a handshake has to be complete, on a connection that carries requests already.
pub(super) struct HandshakeLimit(rt::Timer);

impl HandshakeLimit {
    /// Begins. `None`: there is no limit.
    pub(super) fn new(deadline: Option<Moment>) -> Self {
        let mut timer = rt::Timer::new();
        timer.arm(deadline);
        Self(timer)
    }

    /// Ready when the time has passed.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll_expired(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_and_bytes_are_bounded() {
        let mut early = Early::default();
        for _ in 0..MOST_STREAMS {
            assert!(early.takes_stream());
            early.begin_stream();
        }
        assert!(!early.takes_stream());
        early.note(0, b"one");
        assert_eq!(early.room(), MOST_BYTES - 3);
        early.note(4, &[0; MOST_BYTES - 3]);
        assert_eq!(early.room(), 0);
        let streams = early.into_streams();
        assert_eq!((streams.len(), &streams[0][..], streams[1].len()), (MOST_STREAMS, &b"one"[..], MOST_BYTES - 3));
    }
}
