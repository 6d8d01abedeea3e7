//! The conduct of a peer with several streams: its glitches, the allowance of frames without use, and the budget of its faults.
//! Must never know a frame.

use std::time::Duration;

use base::moment::{Moment, OptionalMoment};

use crate::glitches::GlitchLimits;

/// The number of consecutive frames without use that a peer may send.
const ALLOWANCE: u32 = 128;

/// The number of frames without use earned by one that carries data: a WINDOW_UPDATE of the stream and one of the
/// connection.
pub(crate) const EARNED: u32 = 2;

/// The number earned by a frame that carries little data.
pub(crate) const LITTLE_EARNED: u32 = 1;

/// The time after which one of them is restored.
const FORGOTTEN: Duration = Duration::from_millis(100);

/// Points of a budget that are restored in that time.
const RESTORED: u32 = 10;

/// Points of a stream that fails through its peer's fault: one more than its beginning has earned.
pub(crate) const FAILED_STREAM: u32 = 2;

/// The number of bytes of a head with too many fields that cost one point. Each byte may be a field, which costs much more to
/// process.
const FIELDS_OF_A_POINT: u32 = 64;

/// Returns the points of a head of that size with too many fields.
pub(crate) fn of_many_fields(bytes: usize) -> u32 {
    FAILED_STREAM + u32::try_from(bytes).unwrap_or(u32::MAX) / FIELDS_OF_A_POINT
}

/// The consequence of a peer's conduct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consequence {
    None,
    /// The connection is to end once no request is disturbed by it.
    Leave,
    /// It is to end at once.
    Kill,
}

/// The conduct of the peer.
pub(crate) struct Conduct {
    /// The total number of glitches.
    glitches: u32,
    /// The allowance of frames without use, and the points that the peer's faults have cost.
    allowance: Allowance,
    /// Whether a limit of glitches or of the budget may have been reached.
    suspicious: bool,
}

impl Conduct {
    pub(crate) const fn new() -> Self {
        Self { glitches: 0, allowance: Allowance::new(), suspicious: false }
    }

    /// The total number of glitches.
    pub(crate) fn glitches(&self) -> u32 {
        self.glitches
    }

    /// Counts glitches: behaviour that a correct peer does not show.
    pub(crate) fn note_glitches(&mut self, glitches: u32) {
        self.glitches = self.glitches.saturating_add(glitches);
        self.suspicious = true;
    }

    /// Charges the budget with `points`; `begun` is the number of streams begun so far.
    pub(crate) fn charge(&mut self, points: u32, begun: u32) {
        self.allowance.charge(points, begun);
        self.suspicious = true;
    }

    /// Counts a frame without use to a stream. Returns whether it is a glitch, which is to be counted and charged.
    pub(crate) fn spend(&mut self) -> bool {
        self.allowance.spend()
    }

    /// Adds the frames without use that are earned by one that carries data.
    #[inline]
    pub(crate) fn earn(&mut self, frames: u32) {
        self.allowance.earn(frames);
    }

    /// Updates the time, which restores points.
    pub(crate) fn advance(&mut self, now: Moment) {
        self.allowance.advance(now);
    }

    /// Whether [`Self::judge`] may return another consequence than before.
    #[inline]
    pub(crate) fn is_suspicious(&self) -> bool {
        self.suspicious
    }

    /// Notes that the connection has ended: its conduct has no consequences.
    pub(crate) fn settle(&mut self) {
        self.suspicious = false;
    }

    /// Applies the limits of glitches, and those of the budget with the same conditions. A budget of 0 has no limit.
    #[cold]
    pub(crate) fn judge(&mut self, limits: GlitchLimits, budget: u32) -> Consequence {
        let (glitches, spent) = (self.glitches, self.allowance.spent());
        let budget = GlitchLimits { threshold: budget, ..limits };
        self.suspicious = limits.leaves(glitches) || budget.leaves(spent);
        match self.suspicious {
            false => Consequence::None,
            true if limits.kills(glitches) || budget.kills(spent) => Consequence::Kill,
            true => Consequence::Leave,
        }
    }
}

/// The number of frames without use that the peer may still send before each is a glitch: a few at once, and then the
/// rate that keepalives need. Frames that carry data earn some, because peers that measure the path send a PING with
/// the data that they receive.
///
/// Further frames without use and other faults cost points of a budget. The budget is restored over time, and by every
/// stream that begins: a client may cancel as many requests as it lets be served.
#[derive(Debug)]
struct Allowance {
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
    const fn new() -> Self {
        Self { left: ALLOWANCE, spent: 0, begun: 0, is_used: false, since: OptionalMoment::NONE }
    }

    /// Spends a frame without use. Returns whether it is a glitch.
    fn spend(&mut self) -> bool {
        let over = self.left == 0;
        self.left = self.left.saturating_sub(1);
        self.is_used = true;
        over
    }

    /// Charges a fault with `points`; `begun` is the number of streams begun so far.
    fn charge(&mut self, points: u32, begun: u32) {
        let earned = begun.saturating_sub(std::mem::replace(&mut self.begun, begun));
        self.spent = self.spent.saturating_sub(earned).saturating_add(points);
        self.is_used = true;
    }

    /// The number of points spent and not restored.
    fn spent(&self) -> u32 {
        self.spent
    }

    /// Adds the frames earned by one that carries data.
    #[inline]
    fn earn(&mut self, frames: u32) {
        self.left = (self.left + frames).min(ALLOWANCE);
    }

    /// Updates the time, which restores points.
    fn advance(&mut self, now: Moment) {
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

    /// Glitches and the budget end a connection, first gracefully, each by its own limit.
    #[test]
    fn limits_have_consequences() {
        let none = GlitchLimits::default();
        let four = GlitchLimits { threshold: 4, usage: 0 };
        for (limits, budget, glitches, points, expected) in [
            (none, 0, u32::MAX, u32::MAX, Consequence::None),
            (four, 0, 2, u32::MAX, Consequence::None),
            (four, 0, 3, 0, Consequence::Leave),
            (four, 0, 4, 0, Consequence::Kill),
            (none, 100, u32::MAX, 74, Consequence::None),
            (none, 100, 0, 75, Consequence::Leave),
            (none, 100, 0, 100, Consequence::Kill),
        ] {
            let mut conduct = Conduct::new();
            assert!(!conduct.is_suspicious());
            conduct.note_glitches(glitches);
            conduct.charge(points, 0);
            assert_eq!(conduct.judge(limits, budget), expected, "{limits:?} {budget} {glitches} {points}");
            assert_eq!(conduct.is_suspicious(), expected != Consequence::None, "{limits:?} {budget}");
        }
    }
}
