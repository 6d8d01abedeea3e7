//! The result of polling a flow: bytes that moved, and the progress of both sides. Must never move a byte.

use crate::progress::TimeoutProgress;

/// Bytes that moved in a poll.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowProgress {
    /// Read from the source.
    pub read: usize,
    /// Written to the sink.
    pub written: usize,
    /// Of the bytes written, those moved by the kernel.
    pub spliced: usize,
    /// Whether the source has completed something that the sink can use.
    pub(super) completes: bool,
}

impl FlowProgress {
    /// Adds payload without framing.
    pub(crate) fn add_payload(&mut self, read: usize, written: usize) {
        self.read += read;
        self.written += written;
        self.completes |= read > 0;
    }

    /// Whether the source has made progress: payload or the end was received, not just a part of the framing.
    #[inline]
    pub fn read_progress(&self) -> Option<TimeoutProgress> {
        TimeoutProgress::when(self.completes)
    }

    /// Whether the sink has made progress, by accepting bytes.
    #[inline]
    pub fn write_progress(&self) -> Option<TimeoutProgress> {
        TimeoutProgress::of_payload(self.written)
    }
}
