//! When a side was last heard of and spoken to, and since when it is silent (`option independent-streams`). Must never
//! know how long that may last.

use std::time::Duration;

use base::moment::Moment;
use conn::progress::TimeoutProgress;

/// A client that waits is registered with the poller after so long: most answers come sooner.
pub const WATCH_AFTER: Duration = Duration::from_millis(5);

/// One side of a stream.
#[derive(Debug, Clone, Copy)]
pub struct Activity {
    read: Moment,
    written: Moment,
    independent: bool,
}

impl Activity {
    /// From now on. `independent`: what is sent to this side is no sign of life.
    pub fn new(now: Moment, independent: bool) -> Self {
        Self { read: now, written: now, independent }
    }

    /// It has completed something that was read from it.
    #[inline]
    pub fn reads(&mut self, now: Moment, _: TimeoutProgress) {
        self.read = now;
    }

    /// It has taken something that was written to it.
    #[inline]
    pub fn writes(&mut self, now: Moment, _: TimeoutProgress) {
        self.written = now;
    }

    /// Nothing was read from it until now, for a reason of our own.
    #[inline]
    pub fn reading_resumes(&mut self, now: Moment) {
        self.read = now;
    }

    /// From now on something waits to be written to it.
    #[inline]
    pub fn writing_waits(&mut self, now: Moment) {
        self.written = now;
    }

    /// Since when it is silent while something is waited for that it sends.
    #[inline]
    pub fn silent_since(&self) -> Moment {
        if self.independent { self.read } else { self.read.max(self.written) }
    }

    /// Since when it takes nothing, while something waits to be written to it. What it sends meanwhile does not count.
    #[inline]
    pub fn takes_nothing_since(&self) -> Moment {
        self.written
    }

    /// Since when nothing has moved in either direction.
    #[inline]
    pub fn idle_since(&self) -> Moment {
        self.read.max(self.written)
    }

    /// The last moment at which something was read from it.
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
