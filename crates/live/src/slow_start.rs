//! `slowstart`: a server that comes back reaches its full weight and its full `maxconn` in steps. The time is an
//! argument. Must never access requests.

use base::moment::Moment;
use std::time::Duration;

/// The full level in steps.
pub(super) const FULL: u32 = 16;

/// The progress of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Warming {
    /// `slowstart` in seconds, rounded up: steps are made once per second. Zero without.
    time: u64,
    /// When the server came back; `None` when complete.
    since: Option<Moment>,
    /// From 1 to [`FULL`].
    level: u32,
}

impl Warming {
    /// Creates a complete one: the manual requires no `slowstart` when the process starts.
    pub(super) fn new(time: Option<Duration>) -> Self {
        let time = time.unwrap_or_default();
        Self { time: time.as_secs() + u64::from(time.subsec_nanos() > 0), since: None, level: FULL }
    }

    /// The current level in steps.
    pub(super) fn level(&self) -> u32 {
        self.level
    }

    /// Begins `slowstart`.
    pub(super) fn start(&mut self, now: Moment) {
        if self.time > 0 {
            (self.since, self.level) = (Some(now), 1);
        }
    }

    /// Ends it: the server went down, or must have its full share at once.
    pub(super) fn end(&mut self) {
        (self.since, self.level) = (None, FULL);
    }

    /// Advances to the level as of `now`; returns whether it changed.
    pub(super) fn advance(&mut self, now: Moment) -> bool {
        let Some(since) = self.since else { return false };
        let elapsed = now.saturating_since(since).as_secs();
        let level = match elapsed < self.time {
            true => (elapsed * u64::from(FULL) / self.time + 1).min(u64::from(FULL)) as u32,
            false => FULL,
        };
        if level == FULL {
            self.since = None;
        }
        std::mem::replace(&mut self.level, level) != level
    }

    /// When the next step is due; `None` when complete.
    pub(super) fn next(&self) -> Option<Moment> {
        let seconds = (self.time * u64::from(self.level)).div_ceil(u64::from(FULL));
        self.since.map(|since| since + Duration::from_secs(seconds))
    }

    /// The current share of a number, rounded up so that it is never zero.
    pub(super) fn share(&self, of: u32) -> u32 {
        if self.level == FULL || of == u32::MAX {
            return of;
        }
        (u64::from(of) * u64::from(self.level)).div_ceil(u64::from(FULL)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn the_share_grows_from_a_sixteenth_in_as_many_steps() {
        let mut warming = Warming::new(Some(Duration::from_secs(16)));
        assert_eq!((warming.level(), warming.next()), (FULL, None));
        warming.start(at(1_000));
        assert_eq!((warming.level(), warming.share(100), warming.share(1)), (1, 7, 1));
        let mut steps = 0;
        while let Some(next) = warming.next() {
            let before = Moment::from_nanos(next.as_nanos() - 1);
            assert!(!warming.advance(before), "not before it is due");
            assert!(warming.advance(next));
            steps += 1;
            assert_eq!(warming.level(), steps + 1);
        }
        assert_eq!((steps, warming.share(100), warming.share(u32::MAX)), (15, 100, u32::MAX));
        assert!(!warming.advance(at(99_000)));
    }

    /// Observed with HAProxy 3.5, second by second.
    #[test]
    fn steps_are_made_once_a_second() {
        let levels = |time: u64, seconds: std::ops::RangeInclusive<u64>| -> Vec<u32> {
            let mut warming = Warming::new(Some(Duration::from_millis(time)));
            warming.start(at(0));
            let level = |second: u64| {
                warming.advance(at(second * 1_000 + 900));
                warming.level()
            };
            seconds.map(level).collect()
        };
        assert_eq!(levels(8_000, 0..=8), [1, 3, 5, 7, 9, 11, 13, 15, 16]);
        assert_eq!(levels(1_500, 0..=2), [1, 9, 16]);
        assert_eq!(levels(60_000, 0..=8), [1, 1, 1, 1, 2, 2, 2, 2, 3]);
    }

    #[test]
    fn who_asks_late_gets_what_is_due_by_then() {
        let mut warming = Warming::new(Some(Duration::from_secs(10)));
        warming.start(at(0));
        assert!(warming.advance(at(1_200)));
        assert_eq!(warming.level(), 2);
        assert!(warming.advance(at(60_000)));
        assert_eq!((warming.level(), warming.next()), (FULL, None));
    }

    #[test]
    fn without_slowstart_a_server_is_warm_at_once() {
        let mut warming = Warming::new(None);
        warming.start(at(5));
        assert_eq!((warming.level(), warming.next()), (FULL, None));
    }
}
