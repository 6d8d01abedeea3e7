//! Counters of a connection of HTTP/2, the allowance of frames without use, and the budget of its peer's faults. Must
//! never decide the consequences of a count.

use std::time::Duration;

use base::moment::{Moment, OptionalMoment};

/// The number of consecutive frames without use that a peer may send.
const ALLOWANCE: u32 = 128;

/// The number of frames without use earned by one that carries data: a WINDOW_UPDATE of the stream and one of the
/// connection.
pub(super) const EARNED: u32 = 2;

/// The number earned by a frame that carries little data.
pub(super) const LITTLE_EARNED: u32 = 1;

/// The time after which one of them is restored.
const FORGOTTEN: Duration = Duration::from_millis(100);

/// Points of a budget that are restored in that time.
const RESTORED: u32 = 10;

/// Points of a stream that fails through its peer's fault: one more than its beginning has earned.
pub(crate) const FAILED_STREAM: u32 = 2;

/// The number of CONTINUATION frames of a block that are no glitch.
const FEW_PIECES: u32 = 4;

/// Average size of a block's pieces in bytes above which they are no glitch, whatever their number.
const WORTHWHILE_PIECE: usize = 512;

/// The number of pieces that add one glitch.
const MORE_PIECES: u32 = 16;

/// Counters of a connection since they were last taken. Names are those of HAProxy's counters if it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// HEADERS frames received.
    pub headers: u32,
    /// DATA frames received.
    pub data: u32,
    /// SETTINGS frames received.
    pub settings: u32,
    /// RST_STREAM frames received.
    pub resets: u32,
    /// GOAWAY frames received.
    pub departures: u32,
    /// Errors of the peer that have ended the connection.
    pub connection_errors: u32,
    /// Errors of the peer that have ended a stream.
    pub stream_errors: u32,
    /// RST_STREAM frames sent because of an error.
    pub resets_sent: u32,
    /// GOAWAY frames sent because of an error.
    pub departures_sent: u32,
    /// Streams that have begun.
    pub streams: u32,
    /// Streams that have ended.
    pub ended: u32,
    /// How often payload had to wait because the peer's window of the stream was used up.
    pub stream_stalls: u32,
    /// How often payload had to wait because the peer's window of the connection was used up.
    pub connection_stalls: u32,
    pub glitches: u32,
    /// Requests that did not become a stream because they were invalid.
    pub malformed: u32,
    /// Heads whose errors have ended the connection.
    pub fatal: u32,
}

/// The number of frames without use that the peer may still send before each is a glitch: a few at once, and then the
/// rate that keepalives need. Frames that carry data earn some, because peers that measure the path send a PING with
/// the data that they receive.
///
/// Further frames without use and other faults cost points of a budget. The budget is restored over time, and by every
/// stream that begins: a client may cancel as many requests as it lets be served.
#[derive(Debug)]
pub(crate) struct Allowance {
    left: u32,
    /// The number of points spent.
    spent: u32,
    /// The number of streams that had begun when a point was last spent.
    begun: u32,
    /// Whether something was spent and is not restored.
    is_used: bool,
    since: OptionalMoment,
}

impl Allowance {
    pub(crate) const fn new() -> Self {
        Self { left: ALLOWANCE, spent: 0, begun: 0, is_used: false, since: OptionalMoment::NONE }
    }

    /// Spends a frame without use. Returns whether it is a glitch.
    pub(crate) fn spend(&mut self) -> bool {
        let over = self.left == 0;
        self.left = self.left.saturating_sub(1);
        self.is_used = true;
        over
    }

    /// Charges a fault with `points`; `begun` is the number of streams begun so far.
    pub(crate) fn charge(&mut self, points: u32, begun: u32) {
        let earned = begun.saturating_sub(std::mem::replace(&mut self.begun, begun));
        self.spent = self.spent.saturating_sub(earned).saturating_add(points);
        self.is_used = true;
    }

    /// The number of points spent and not restored.
    pub(crate) fn spent(&self) -> u32 {
        self.spent
    }

    /// Adds the frames earned by one that carries data.
    #[inline]
    pub(crate) fn earn(&mut self, frames: u32) {
        self.left = (self.left + frames).min(ALLOWANCE);
    }

    /// Updates the time, which restores points.
    pub(crate) fn advance(&mut self, now: Moment) {
        if self.is_used {
            self.restore(now);
        }
    }

    #[cold]
    fn restore(&mut self, now: Moment) {
        if self.left == ALLOWANCE && self.spent == 0 {
            (self.is_used, self.since) = (false, OptionalMoment::NONE);
            return;
        }
        let since = self.since.get_or_insert(now);
        let forgotten = now.saturating_since(since).as_millis() / FORGOTTEN.as_millis();
        let forgotten = u32::try_from(forgotten).unwrap_or(u32::MAX).min(ALLOWANCE);
        if forgotten > 0 {
            self.left = (self.left + forgotten).min(ALLOWANCE);
            self.spent = self.spent.saturating_sub(forgotten * RESTORED);
            self.since = Some(since + FORGOTTEN * forgotten).into();
        }
    }
}

/// The conduct of the peer.
pub(super) struct Conduct {
    /// The total number of glitches.
    pub(super) glitches: u32,
    /// The allowance of frames without use, and the points that the peer's faults have cost.
    pub(super) allowance: Allowance,
    /// Whether a limit of glitches or of the budget may have been reached.
    pub(super) suspicious: bool,
}

impl Conduct {
    pub(super) const fn new() -> Self {
        Self { glitches: 0, allowance: Allowance::new(), suspicious: false }
    }
}

/// The number of glitches of a block of `bytes` bytes received in that number of CONTINUATION frames.
pub(super) fn of_pieces(pieces: u32, bytes: usize) -> u32 {
    if pieces <= FEW_PIECES || bytes / pieces as usize > WORTHWHILE_PIECE {
        return 0;
    }
    1 + (pieces - 1) / MORE_PIECES
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
        // Frames spent from now on are restored one by one.
        allowance.advance(start);
        assert!(allowance.spend());
        allowance.advance(start + Duration::from_millis(250));
        assert_eq!((0..5).filter(|_| allowance.spend()).count(), 3);
        allowance.earn(EARNED);
        assert_eq!((0..3).filter(|_| allowance.spend()).count(), 1);
        allowance.advance(start + Duration::from_secs(3600));
        assert_eq!((0..200).filter(|_| allowance.spend()).count(), 72);
    }

    /// Streams that begin pay for the same number that fail; time restores points as well.
    #[test]
    fn faults_are_restored_by_streams_and_by_time() {
        let mut allowance = Allowance::new();
        let start = Moment::ZERO + Duration::from_secs(5);
        // Every other stream fails.
        (1..1000).for_each(|number| allowance.charge(FAILED_STREAM, 2 * number));
        assert_eq!(allowance.spent(), FAILED_STREAM);
        // All of them fail.
        (1..=100).for_each(|number| allowance.charge(FAILED_STREAM, 2000 + number));
        assert_eq!(allowance.spent(), 101);
        // Time counts from the first call.
        allowance.advance(start);
        allowance.advance(start + Duration::from_millis(350));
        assert_eq!(allowance.spent(), 101 - 30);
        allowance.advance(start + Duration::from_secs(3600));
        assert_eq!(allowance.spent(), 0);
    }

    /// As counted by HAProxy 3.5.
    #[test]
    fn many_small_pieces_are_glitches() {
        let rows =
            [(1, 10, 0), (4, 0, 0), (5, 0, 1), (16, 1600, 1), (17, 1700, 2), (32, 320, 2), (33, 33, 3), (6, 12_000, 0)];
        for (pieces, bytes, glitches) in rows {
            assert_eq!(of_pieces(pieces, bytes), glitches, "{pieces} of {bytes} bytes");
        }
    }
}
