//! Faults of a peer: glitches, and what they cost of its budget. Must never decide what follows from them.

use super::Role;
use super::counts::FAILED_STREAM;
use super::state::State;

impl State {
    /// The peer has done what a sound one would not do.
    pub(super) fn note_glitches(&mut self, glitches: u32) {
        self.glitches = self.glitches.saturating_add(glitches);
        self.counts.glitches = self.counts.glitches.saturating_add(glitches);
        self.suspicious = true;
    }

    /// Charges the peer's budget with `points`.
    #[cold]
    pub(super) fn charge(&mut self, points: u32) {
        self.allowance.charge(points, self.newest.div_ceil(2));
        self.suspicious = true;
    }

    /// Counts a stream that fails through the peer's fault.
    #[cold]
    pub(super) fn note_failed_stream(&mut self) {
        self.note_glitches(1);
        self.charge(FAILED_STREAM);
    }

    /// The peer resets a stream.
    pub(super) fn note_cancel(&mut self, stream: u32) {
        let (asks, whole) = (self.role == Role::Server, self.stream_window);
        match self.half(stream) {
            None => self.note_idle_frame(),
            Some(half) if half.failed => self.note_idle_frame(),
            Some(half) if !asks || half.complete || half.draining.is_some() => {}
            // An answer that has begun costs its client no less than us.
            Some(half) if half.window < whole => {
                self.note_glitches(1);
                self.charge(FAILED_STREAM - 1);
            }
            Some(_) => self.note_failed_stream(),
        }
    }

    /// A frame has come that is of no use to a stream.
    pub(super) fn note_idle_frame(&mut self) {
        if self.allowance.spend() {
            self.note_glitches(1);
            self.charge(1);
        }
    }
}
