//! Counters of a connection of HTTP/3, and the budget of its client's faults. Must never decide the consequences of a
//! count.

use crate::h2::{Allowance, FAILED_STREAM};

use super::Terms;

/// Frames without use earned by a stream that begins.
const EARNED: u32 = 2;

/// Counters of a connection since they were last taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// HEADERS frames received.
    pub headers: u32,
    /// DATA frames received, or parts of them.
    pub data: u32,
    /// SETTINGS frames received.
    pub settings: u32,
    /// GOAWAY frames received.
    pub departures: u32,
    /// Streams that the client has reset or stopped.
    pub resets: u32,
    /// Errors of the client that have ended the connection.
    pub connection_errors: u32,
    /// Errors of the client that have ended a stream.
    pub stream_errors: u32,
    /// Streams reset by this side.
    pub resets_sent: u32,
    /// GOAWAY frames sent.
    pub departures_sent: u32,
    /// Streams that have begun.
    pub streams: u32,
    /// Streams that have ended.
    pub ended: u32,
    /// How often an answer had to wait for the client or for the path.
    pub stalls: u32,
    /// Behaviour that a correct client does not show.
    pub glitches: u32,
    /// Requests that did not become a stream because they were invalid.
    pub malformed: u32,
    /// Heads whose errors have ended the connection.
    pub fatal: u32,
}

/// The conduct of the client.
pub(super) struct Conduct {
    glitches: u32,
    pub(super) allowance: Allowance,
    /// Whether a limit may have been reached.
    suspicious: bool,
}

impl Conduct {
    pub(super) const fn new() -> Self {
        Self { glitches: 0, allowance: Allowance::new(), suspicious: false }
    }

    /// The number of glitches.
    pub(super) fn glitches(&self) -> u32 {
        self.glitches
    }

    /// Counts a glitch.
    pub(super) fn note_glitch(&mut self, counts: &mut Counts) {
        self.glitches = self.glitches.saturating_add(1);
        counts.glitches = counts.glitches.saturating_add(1);
        self.suspicious = true;
    }

    /// Counts a frame without use to a stream.
    pub(super) fn note_idle_frame(&mut self, counts: &mut Counts, begun: u32) {
        if self.allowance.spend() {
            self.note_glitch(counts);
            self.allowance.charge(1, begun);
        }
    }

    /// Counts a stream that fails through the client's fault.
    pub(super) fn note_failed_stream(&mut self, counts: &mut Counts, begun: u32) {
        self.note_glitch(counts);
        self.allowance.charge(FAILED_STREAM, begun);
    }

    /// Counts a stream that begins.
    pub(super) fn note_stream(&mut self) {
        self.allowance.earn(EARNED);
    }

    /// Whether the connection has to end: its client has used up its budget, or has reached the limit of glitches.
    pub(super) fn is_exhausted(&mut self, terms: &Terms) -> bool {
        if !std::mem::take(&mut self.suspicious) {
            return false;
        }
        terms.budget > 0 && self.allowance.spent() >= terms.budget || terms.glitches.kills(self.glitches)
    }

    /// Whether the connection is to end once no request is disturbed by it.
    pub(super) fn is_unwelcome(&self, terms: &Terms) -> bool {
        terms.glitches.leaves(self.glitches)
    }
}
