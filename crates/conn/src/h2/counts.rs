//! Counters of a connection of HTTP/2, the allowance of frames without use, and the budget of its peer's faults. Must never decide
//! what follows from a count.

use std::time::Duration;

use base::moment::Moment;

/// Frames without use that a peer may send in a row.
const ALLOWANCE: u32 = 128;

/// Frames without use that one earns which carries something: a window of the stream and one of the connection.
pub(super) const EARNED: u32 = 2;

/// The same, of one that carries little.
pub(super) const LITTLE_EARNED: u32 = 1;

/// How long it takes until one of them is forgotten.
const FORGOTTEN: Duration = Duration::from_millis(100);

/// Points of a budget that are restored in that time.
const RESTORED: u32 = 10;

/// Points of a stream that fails through its peer's fault: one more than it has earned by beginning.
pub(super) const FAILED_STREAM: u32 = 2;

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
///
/// Frames beyond that and other faults cost points of a budget. Time restores them, and so does every stream that begins: a client
/// may cancel as many requests as it lets be served.
#[derive(Debug)]
pub(super) struct Allowance {
    left: u32,
    /// Points that were spent.
    spent: u32,
    /// Streams that had begun when a point was last spent.
    begun: u32,
    /// Something was spent and is not restored.
    is_used: bool,
    since: Option<Moment>,
}

impl Allowance {
    pub(super) const fn new() -> Self {
        Self { left: ALLOWANCE, spent: 0, begun: 0, is_used: false, since: None }
    }

    /// A frame without use. Whether it is a glitch.
    pub(super) fn spend(&mut self) -> bool {
        let over = self.left == 0;
        self.left = self.left.saturating_sub(1);
        self.is_used = true;
        over
    }

    /// Charges a fault with `points`; `begun` is the number of streams that have begun so far.
    pub(super) fn charge(&mut self, points: u32, begun: u32) {
        let earned = begun.saturating_sub(std::mem::replace(&mut self.begun, begun));
        self.spent = self.spent.saturating_sub(earned).saturating_add(points);
        self.is_used = true;
    }

    /// Points that were spent and are not restored.
    pub(super) fn spent(&self) -> u32 {
        self.spent
    }

    /// A frame that carries something.
    #[inline]
    pub(super) fn earn(&mut self, frames: u32) {
        self.left = (self.left + frames).min(ALLOWANCE);
    }

    /// Time passes.
    pub(super) fn advance(&mut self, now: Moment) {
        if self.is_used {
            self.restore(now);
        }
    }

    #[cold]
    fn restore(&mut self, now: Moment) {
        if self.left == ALLOWANCE && self.spent == 0 {
            (self.is_used, self.since) = (false, None);
            return;
        }
        let since = *self.since.get_or_insert(now);
        let forgotten = now.saturating_since(since).as_millis() / FORGOTTEN.as_millis();
        let forgotten = u32::try_from(forgotten).unwrap_or(u32::MAX).min(ALLOWANCE);
        if forgotten > 0 {
            self.left = (self.left + forgotten).min(ALLOWANCE);
            self.spent = self.spent.saturating_sub(forgotten * RESTORED);
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
        allowance.earn(EARNED);
        assert_eq!((0..3).filter(|_| allowance.spend()).count(), 1);
        allowance.advance(start + Duration::from_secs(3600));
        assert_eq!((0..200).filter(|_| allowance.spend()).count(), 72);
    }

    /// Streams that begin pay for as many that fail, and so does time.
    #[test]
    fn faults_are_restored_by_streams_and_by_time() {
        let mut allowance = Allowance::new();
        let start = Moment::ZERO + Duration::from_secs(5);
        // Every other stream fails.
        (1..1000).for_each(|number| allowance.charge(FAILED_STREAM, 2 * number));
        assert_eq!(allowance.spent(), FAILED_STREAM);
        // All of them do.
        (1..=100).for_each(|number| allowance.charge(FAILED_STREAM, 2000 + number));
        assert_eq!(allowance.spent(), 101);
        // Time begins to count with the first look at it.
        allowance.advance(start);
        allowance.advance(start + Duration::from_millis(350));
        assert_eq!(allowance.spent(), 101 - 30);
        allowance.advance(start + Duration::from_secs(3600));
        assert_eq!(allowance.spent(), 0);
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
