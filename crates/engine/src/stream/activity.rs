//! When a side was last heard of and spoken to, and since when it is silent (`option independent-streams`). Must never
//! know how long that may last.

use base::moment::Moment;

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

    /// Something was read from it.
    #[inline]
    pub fn reads(&mut self, now: Moment) {
        self.read = now;
    }

    /// Something was written to it.
    #[inline]
    pub fn writes(&mut self, now: Moment) {
        self.written = now;
    }

    /// Since when it is silent, while reading from it (`reading`) or writing to it is waited for.
    #[inline]
    pub fn since(&self, reading: bool) -> Moment {
        if reading && self.independent { self.read } else { self.read.max(self.written) }
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
        for (independent, reading, since) in [(false, true, 5), (false, false, 5), (true, true, 2), (true, false, 5)] {
            let mut side = Activity::new(start, independent);
            side.reads(at(2));
            side.writes(at(5));
            assert_eq!(side.since(reading), at(since), "{independent} {reading}");
        }
    }
}
