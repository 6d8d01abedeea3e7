//! Faults of a peer: glitches, and their cost in points of its budget. Must never decide their consequences.

use super::Role;
use super::state::State;
use super::stream_half::Half;
use crate::conduct::{EARNED, FAILED_STREAM, LITTLE_EARNED};

/// Points of a stream that a client begins beyond the maximum number of open ones: a correct client never does once it
/// knows the limit.
const EXCESS_STREAM: u32 = 50;

/// The number of streams that a client may begin before it has to know the limit, as a multiple of the limit.
const UNAWARE: usize = 2;

/// Bytes of payload that earn more than one frame without use.
const LEAST_PAYLOAD: usize = 16;

impl State {
    /// Counts glitches: behaviour that a correct peer does not show.
    pub(super) fn note_glitches(&mut self, glitches: u32) {
        self.conduct.note_glitches(glitches);
        let counts = self.counts();
        counts.glitches = counts.glitches.saturating_add(glitches);
    }

    /// Charges the peer's budget with `points`.
    #[cold]
    pub(super) fn charge(&mut self, points: u32) {
        self.conduct.charge(points, self.newest.div_ceil(2));
    }

    /// Counts a stream that fails through the peer's fault.
    #[cold]
    pub(super) fn note_failed_stream(&mut self) {
        self.note_glitches(1);
        self.charge(FAILED_STREAM);
    }

    /// Counts a RST_STREAM of the peer.
    pub(super) fn note_cancel(&mut self, stream: u32) {
        let asks = self.role == Role::Server;
        let Some(cell) = self.stream(stream) else { return self.note_idle_frame() };
        let half = cell.half();
        if half.failed {
            return self.note_idle_frame();
        }
        if !asks || half.complete || half.draining.is_some() {
            return;
        }
        // An answer that has begun costs its client no less than this side.
        if half.window < i64::from(self.peer.stream_window) {
            self.note_glitches(1);
            self.charge(FAILED_STREAM - 1);
        } else {
            self.note_failed_stream();
        }
    }

    /// Counts a stream that a client begins beyond the limit. Streams that have ended for the client, but were not
    /// released by their tasks, do not count as open here.
    #[cold]
    pub(super) fn note_excess(&mut self, stream: u32) {
        let most = self.terms.max_streams;
        let is_aware = !self.unread_settings || stream as usize / 2 > UNAWARE * most;
        let is_open = |half: &Half| !(half.failed || half.complete && half.ended);
        if is_aware && self.streams().filter(|(_, cell)| is_open(&cell.half())).count() >= most {
            self.charge(EXCESS_STREAM);
        }
    }

    /// Counts a frame of payload.
    #[inline]
    pub(super) fn note_payload(&mut self, bytes: usize, ends: bool) {
        match bytes {
            0 if !ends => self.note_idle_frame(),
            1..LEAST_PAYLOAD if !ends => self.conduct.earn(LITTLE_EARNED),
            _ => self.conduct.earn(EARNED),
        }
    }

    /// Counts a frame without use to a stream.
    pub(super) fn note_idle_frame(&mut self) {
        if self.conduct.spend() {
            self.note_glitches(1);
            self.charge(1);
        }
    }
}
