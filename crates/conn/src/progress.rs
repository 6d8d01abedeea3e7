//! The proof of progress that restarts a timeout: a peer has completed something. Owns how the proof is made; must
//! never make it of bytes that complete nothing, so that a peer cannot hold a connection by sending a byte of a line
//! now and then.

/// Proof that a peer has completed a unit: a head, payload, a frame that carries payload, the end of a message, or that
/// it has accepted bytes written to it. Functions that restart a timeout take one as argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeoutProgress(());

impl TimeoutProgress {
    /// A whole head or message was read.
    pub(crate) const fn of_whole() -> Self {
        Self(())
    }

    /// `bytes` of payload were read or written, each of which counts.
    pub(crate) fn of_payload(bytes: usize) -> Option<Self> {
        Self::when(bytes > 0)
    }

    /// Something was completed if `completes`.
    pub(crate) fn when(completes: bool) -> Option<Self> {
        completes.then_some(Self(()))
    }
}

/// Payload of a longer frame or record that counts before the rest was received: a buffer of the usual size.
const PART: usize = 16_384;

/// Progress of frames or records received in parts: payload counts once its frame is complete, or once it fills a
/// buffer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FrameProgress {
    /// Bytes received since something was completed.
    part: usize,
    completed: bool,
}

impl FrameProgress {
    pub(crate) const fn new() -> Self {
        Self { part: 0, completed: false }
    }

    /// Records received payload; `is_whole`: its frame is complete.
    #[inline]
    pub(crate) fn note(&mut self, payload: usize, is_whole: bool) {
        self.part += payload;
        if self.part > 0 && (is_whole || self.part >= PART) {
            *self = Self { part: 0, completed: true };
        }
    }

    /// Whether something was completed since the last call.
    #[inline]
    pub(crate) fn take(&mut self) -> bool {
        std::mem::take(&mut self.completed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_counts_once_it_is_whole_or_fills_a_buffer() {
        for (parts, completes) in [
            (&[(0, true)][..], false),
            (&[(1, true)], true),
            (&[(1, false), (9, false)], false),
            (&[(1, false), (9, true)], true),
            (&[(1, false), (0, true)], true),
            (&[(PART, false)], true),
            (&[(PART - 1, false)], false),
            (&[(PART - 1, false), (1, false)], true),
        ] {
            let mut progress = FrameProgress::default();
            parts.iter().for_each(|(payload, is_whole)| progress.note(*payload, *is_whole));
            assert_eq!((progress.take(), progress.take()), (completes, false), "{parts:?}");
        }
    }
}
