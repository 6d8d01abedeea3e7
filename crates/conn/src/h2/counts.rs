//! What has happened on a connection of HTTP/2, and how much of what costs work and carries nothing its peer may send before
//! that is a glitch. Must never decide what follows from a count.

use std::time::Duration;

use base::moment::Moment;

/// Frames without use that a peer may send in a row.
const ALLOWANCE: u32 = 128;

/// How long it takes until one of them is forgotten.
const FORGOTTEN: Duration = Duration::from_millis(100);

/// CONTINUATION frames of a block that are no glitch.
const FEW_PIECES: u32 = 4;

/// Bytes of a piece of a block, on average, from which on its pieces are no glitch however many there are.
const WORTHWHILE_PIECE: usize = 512;

/// Pieces of which each 16 more are one glitch more.
const MORE_PIECES: u32 = 16;

/// What has happened on a connection since this was last taken. Names are those of HAProxy's counters where it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// HEADERS frames that have come.
    pub headers: u32,
    /// DATA frames that have come.
    pub data: u32,
    /// SETTINGS frames that have come.
    pub settings: u32,
    /// RST_STREAM frames that have come.
    pub resets: u32,
    /// GOAWAY frames that have come.
    pub departures: u32,
    /// Errors of the peer that have ended the connection.
    pub connection_errors: u32,
    /// Errors of the peer that have ended a stream.
    pub stream_errors: u32,
    /// RST_STREAM frames that were sent because of an error.
    pub resets_sent: u32,
    /// GOAWAY frames that were sent because of an error.
    pub departures_sent: u32,
    /// Streams that have begun.
    pub streams: u32,
    /// Streams that have ended.
    pub ended: u32,
    /// Times that payload had to wait because the peer's window of the stream was used up.
    pub stream_stalls: u32,
    /// Times that payload had to wait because the peer's window of the connection was used up.
    pub connection_stalls: u32,
    /// Glitches.
    pub glitches: u32,
    /// Requests that became no stream because of an error of theirs.
    pub malformed: u32,
    /// Heads whose errors have ended the connection.
    pub fatal: u32,
}

/// How many frames without use the peer may still send before each is a glitch: a few at once, and then as many a second
/// as keepalives need. Frames that carry something earn one each, because peers that measure the path send a PING with what
/// they receive.
#[derive(Debug)]
pub(super) struct Allowance {
    left: u32,
    since: Option<Moment>,
}

impl Allowance {
    pub(super) const fn new() -> Self {
        Self { left: ALLOWANCE, since: None }
    }

    /// A frame without use. Whether it is a glitch.
    pub(super) fn spend(&mut self) -> bool {
        let over = self.left == 0;
        self.left = self.left.saturating_sub(1);
        over
    }

    /// A frame that carries something.
    #[inline]
    pub(super) fn earn(&mut self) {
        self.left = (self.left + 1).min(ALLOWANCE);
    }

    /// Time passes.
    pub(super) fn advance(&mut self, now: Moment) {
        if self.left == ALLOWANCE {
            self.since = None;
            return;
        }
        let since = *self.since.get_or_insert(now);
        let forgotten = now.saturating_since(since).as_millis() / FORGOTTEN.as_millis();
        let forgotten = u32::try_from(forgotten).unwrap_or(u32::MAX).min(ALLOWANCE);
        if forgotten > 0 {
            self.left = (self.left + forgotten).min(ALLOWANCE);
            self.since = Some(since + FORGOTTEN * forgotten);
        }
    }
}

/// Glitches of a block of that many bytes that came in so many CONTINUATION frames.
pub(super) fn of_pieces(pieces: u32, bytes: usize) -> u32 {
    let is_worthwhile = bytes / (pieces.max(1) as usize) > WORTHWHILE_PIECE;
    if pieces <= FEW_PIECES || is_worthwhile { 0 } else { 1 + (pieces - 1) / MORE_PIECES }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_without_use_are_forgiven_as_far_as_keepalives_need() {
        let mut allowance = Allowance::new();
        let start = Moment::ZERO + Duration::from_secs(5);
        allowance.advance(start);
        assert_eq!((0..200).filter(|_| allowance.spend()).count(), 72);
        // What begins now is forgotten one by one.
        allowance.advance(start);
        assert!(allowance.spend());
        allowance.advance(start + Duration::from_millis(250));
        assert_eq!((0..5).filter(|_| allowance.spend()).count(), 3);
        allowance.earn();
        assert_eq!((0..2).filter(|_| allowance.spend()).count(), 1);
        allowance.advance(start + Duration::from_secs(3600));
        assert_eq!((0..200).filter(|_| allowance.spend()).count(), 72);
    }

    /// As HAProxy 3.5 counts them.
    #[test]
    fn many_small_pieces_are_glitches() {
        let rows =
            [(1, 10, 0), (4, 0, 0), (5, 0, 1), (16, 1600, 1), (17, 1700, 2), (32, 320, 2), (33, 33, 3), (6, 12_000, 0)];
        for (pieces, bytes, glitches) in rows {
            assert_eq!(of_pieces(pieces, bytes), glitches, "{pieces} of {bytes} bytes");
        }
    }
}
