//! Points in time as plain numbers: `Moment` on a driver's monotonic clock, `WallTime` on the calendar.
//!
//! It must never read a clock: the owner of a clock passes the numbers in.

use std::ops::Add;
use std::time::Duration;

/// A point on a driver's monotonic clock, in nanoseconds since that clock's own zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The clock's zero.
    pub const ZERO: Moment = Moment(0);
    /// The last representable instant; "never" for a deadline.
    pub const MAX: Moment = Moment(u64::MAX);

    /// Returns the instant `nanos` nanoseconds after the clock's zero.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Moment {
        Moment(nanos)
    }

    /// Returns the nanoseconds since the clock's zero.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Adds `duration`; `None` past the end of the clock.
    #[inline]
    pub fn checked_add(self, duration: Duration) -> Option<Moment> {
        let nanos = u64::try_from(duration.as_nanos()).ok()?;
        self.0.checked_add(nanos).map(Moment)
    }

    /// Adds `duration`, saturating at [`Moment::MAX`].
    #[inline]
    pub fn saturating_add(self, duration: Duration) -> Moment {
        self.checked_add(duration).unwrap_or(Moment::MAX)
    }

    /// Returns the time since `earlier`; zero if this is not after it.
    #[inline]
    pub fn saturating_since(self, earlier: Moment) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns the whole milliseconds since `earlier`; zero if this is not after it.
    #[inline]
    pub const fn millis_since(self, earlier: Moment) -> u64 {
        self.0.saturating_sub(earlier.0) / 1_000_000
    }
}

/// A point in time that may be missing, in the space of one: [`Moment::MAX`] is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionalMoment(Moment);

impl OptionalMoment {
    /// No point in time.
    pub const NONE: OptionalMoment = OptionalMoment(Moment::MAX);

    /// Returns the point in time.
    #[inline]
    pub fn get(self) -> Option<Moment> {
        (self.0 != Moment::MAX).then_some(self.0)
    }

    /// Returns the point in time, which becomes `moment` if there was none.
    #[inline]
    pub fn get_or_insert(&mut self, moment: Moment) -> Moment {
        if self.0 == Moment::MAX {
            self.0 = moment;
        }
        self.0
    }
}

impl Default for OptionalMoment {
    fn default() -> OptionalMoment {
        OptionalMoment::NONE
    }
}

impl From<Option<Moment>> for OptionalMoment {
    #[inline]
    fn from(moment: Option<Moment>) -> OptionalMoment {
        OptionalMoment(moment.unwrap_or(Moment::MAX))
    }
}

/// Saturating: a deadline past the end of the clock is [`Moment::MAX`].
impl Add<Duration> for Moment {
    type Output = Moment;

    #[inline]
    fn add(self, duration: Duration) -> Moment {
        self.saturating_add(duration)
    }
}

/// A calendar time in UTC, counted from the UNIX epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime {
    /// Whole seconds since the UNIX epoch.
    pub seconds: i64,
    /// Nanoseconds within the second, below 1,000,000,000.
    pub nanos: u32,
}

impl WallTime {
    /// Adds `duration`, saturating at the end of the calendar.
    pub fn saturating_add(self, duration: Duration) -> WallTime {
        let nanos = u64::from(self.nanos) + u64::from(duration.subsec_nanos());
        let whole = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        let carry = i64::from(nanos >= 1_000_000_000);
        WallTime {
            seconds: self.seconds.saturating_add(whole).saturating_add(carry),
            nanos: (nanos % 1_000_000_000) as u32,
        }
    }

    /// Returns the milliseconds within the second, below 1,000.
    #[inline]
    pub const fn millis(self) -> u32 {
        self.nanos / 1_000_000
    }
}

/// The short name of a time zone at some date: "UTC", "EST". Longer names are truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneName {
    bytes: [u8; Self::MOST],
    length: u8,
}

impl ZoneName {
    /// Maximum length of a name in bytes.
    pub const MOST: usize = 31;
    /// Coordinated universal time.
    pub const UTC: Self = Self::new(b"UTC");
    /// UTC under its name in mail and HTTP.
    pub const GMT: Self = Self::new(b"GMT");

    /// Creates a name from these bytes.
    pub const fn new(name: &[u8]) -> Self {
        let mut bytes = [0; Self::MOST];
        let mut length = 0;
        while length < Self::MOST && length < name.len() {
            bytes[length] = name[length];
            length += 1;
        }
        Self { bytes, length: length as u8 }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adding_saturates_and_differences_never_go_below_zero() {
        let early = Moment::from_nanos(1_500_000);
        let late = early + Duration::from_millis(7);
        assert_eq!(late.as_nanos(), 8_500_000);
        assert_eq!(late.saturating_since(early), Duration::from_millis(7));
        assert_eq!(early.saturating_since(late), Duration::ZERO);
        assert_eq!(late.millis_since(Moment::ZERO), 8);
        assert_eq!(early.millis_since(late), 0);
        assert_eq!(Moment::MAX + Duration::from_nanos(1), Moment::MAX);
        assert_eq!(Moment::ZERO.checked_add(Duration::MAX), None);
    }

    #[test]
    fn wall_time_carries_into_the_seconds() {
        let time = WallTime { seconds: 10, nanos: 900_000_000 }.saturating_add(Duration::from_millis(1_200));
        assert_eq!(time, WallTime { seconds: 12, nanos: 100_000_000 });
        assert_eq!(time.millis(), 100);
    }
}
