//! Times of the last read and the last write on one side of a stream, and since when the side is inactive (`option
//! independent-streams`). Must never know the timeouts.

use std::time::Duration;

use base::moment::Moment;
use conn::progress::TimeoutProgress;

/// Delay before a waiting client is registered with the poller: most answers arrive sooner.
pub const WATCH_AFTER: Duration = Duration::from_millis(5);

/// Activity of one side of a stream.
#[derive(Debug, Clone, Copy)]
pub struct Activity {
    read: Moment,
    written: Moment,
    independent: bool,
}

impl Activity {
    /// Starts at `now`. `independent`: bytes that are sent to this side do not count as its activity.
    pub fn new(now: Moment, independent: bool) -> Self {
        Self { read: now, written: now, independent }
    }

    /// Records that a unit (a head, payload, the end of a message) was read from this side.
    #[inline]
    pub fn reads(&mut self, now: Moment, _: TimeoutProgress) {
        self.read = now;
    }

    /// Records that this side has accepted payload.
    #[inline]
    pub fn writes(&mut self, now: Moment, _: TimeoutProgress) {
        self.written = now;
    }

    /// Restarts the read time: Weir itself did not read from this side until now.
    #[inline]
    pub fn reading_resumes(&mut self, now: Moment) {
        self.read = now;
    }

    /// Restarts the write time: from now on, data is waiting to be written to this side.
    #[inline]
    pub fn writing_waits(&mut self, now: Moment) {
        self.written = now;
    }

    /// Returns since when this side is inactive while data is expected from it.
    #[inline]
    pub fn silent_since(&self) -> Moment {
        if self.independent { self.read } else { self.read.max(self.written) }
    }

    /// Returns since when this side has accepted nothing while data is waiting to be written to it. Data that it sends
    /// does not count.
    #[inline]
    pub fn takes_nothing_since(&self) -> Moment {
        self.written
    }

    /// Returns since when nothing has been read from this side or written to it.
    #[inline]
    pub fn idle_since(&self) -> Moment {
        self.read.max(self.written)
    }

    /// Returns the time of the last read from this side.
    #[inline]
    pub fn last_read(&self) -> Moment {
        self.read
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_is_written_counts_for_reading_unless_the_directions_are_independent() {
        let start = Moment::ZERO;
        let at = |seconds| start + Duration::from_secs(seconds);
        for (independent, silent) in [(false, 5), (true, 2)] {
            let mut side = Activity::new(start, independent);
            side.reading_resumes(at(2));
            side.writing_waits(at(5));
            assert_eq!((side.silent_since(), side.takes_nothing_since()), (at(silent), at(5)), "{independent}");
            side.reading_resumes(at(7));
            assert_eq!((side.silent_since(), side.takes_nothing_since()), (at(7), at(5)), "{independent}");
            assert_eq!(side.idle_since(), at(7));
        }
    }
}
