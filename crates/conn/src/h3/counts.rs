//! Counters of a connection of HTTP/3. Must never decide the consequences of a count.

use wire::h3::ErrorCode;

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
    /// Datagrams of WebTransport sessions that were dropped.
    pub dropped: u32,
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
