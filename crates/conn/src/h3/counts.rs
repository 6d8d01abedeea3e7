//! Counters of a connection of HTTP/3, and the budget of its client's faults. Must never decide the consequences of a
//! count.

use wire::h3::ErrorCode;

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
    /// MAX_PUSH_ID frames received.
    pub push_limits: u32,
    /// Codes of the streams that the client has reset or does not read.
    pub errors: ErrorCounts,
    /// Streams that have begun.
    pub streams: u32,
    /// Behaviour that a correct client does not show.
    pub glitches: u32,
    /// Requests that did not become a stream because they were invalid.
    pub malformed: u32,
    /// Heads whose errors have ended the connection.
    pub fatal: u32,
}

/// Number of the codes that are counted.
const CODES: usize = ErrorCode::ALL.len();

/// Error codes received, by code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCounts([u16; CODES]);

impl Default for ErrorCounts {
    fn default() -> Self {
        Self([0; CODES])
    }
}

impl ErrorCounts {
    /// Counts a code. Unknown ones are equivalent to H3_NO_ERROR (RFC 9114, section 9).
    pub(super) fn note(&mut self, code: u64) {
        let code = ErrorCode::of(code).unwrap_or(ErrorCode::NoError);
        if let Some(at) = ErrorCode::ALL.iter().position(|known| *known == code) {
            self.0[at] = self.0[at].saturating_add(1);
        }
    }

    /// Returns the codes that were received, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (ErrorCode, u16)> + '_ {
        let counts = ErrorCode::ALL.iter().zip(&self.0);
        counts.filter(|(_, count)| **count > 0).map(|(code, count)| (*code, *count))
    }
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
