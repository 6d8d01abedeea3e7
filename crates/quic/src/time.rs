//! The points in time of the library, made from those of Weir. Must never read a clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base::moment::{Moment, WallTime};

/// Converts points in time. The library counts from an opaque instant, and only differences have a meaning.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// Creates a clock that calls [`Moment::ZERO`] `origin`. Any instant of the process serves.
    pub fn new(origin: Instant) -> Self {
        Self { origin }
    }

    pub(crate) fn instant(self, moment: Moment) -> Instant {
        self.origin.checked_add(Duration::from_nanos(moment.as_nanos())).unwrap_or(self.origin)
    }

    pub(crate) fn moment(self, instant: Instant) -> Moment {
        let since = instant.saturating_duration_since(self.origin);
        u64::try_from(since.as_nanos()).map_or(Moment::MAX, Moment::from_nanos)
    }
}

/// The calendar by which tokens expire: set by its owner, in seconds since the UNIX epoch.
#[derive(Debug, Default)]
pub(crate) struct Calendar(AtomicU64);

impl Calendar {
    pub(crate) fn set(&self, wall: WallTime) {
        self.0.store(u64::try_from(wall.seconds).unwrap_or(0), Ordering::Relaxed);
    }
}

impl quinn_proto::TimeSource for Calendar {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH.checked_add(Duration::from_secs(self.0.load(Ordering::Relaxed))).unwrap_or(UNIX_EPOCH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quinn_proto::TimeSource;

    #[test]
    fn moments_survive_the_conversion() {
        let clock = Clock::new(Instant::now());
        for nanos in [0, 1, 1_000_000_007, u64::from(u32::MAX) * 1_000_000_000] {
            let moment = Moment::from_nanos(nanos);
            assert_eq!(clock.moment(clock.instant(moment)), moment);
        }
        let early = clock.instant(Moment::ZERO).checked_sub(Duration::from_secs(1)).unwrap();
        assert_eq!(clock.moment(early), Moment::ZERO);
    }

    #[test]
    fn the_calendar_shows_what_it_was_set_to() {
        let calendar = Calendar::default();
        calendar.set(WallTime { seconds: 1_700_000_000, nanos: 5 });
        assert_eq!(calendar.now(), UNIX_EPOCH + Duration::from_secs(1_700_000_000));
        calendar.set(WallTime { seconds: -1, nanos: 0 });
        assert_eq!(calendar.now(), UNIX_EPOCH);
    }
}
