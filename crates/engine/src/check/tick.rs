//! The ticks that checks are aligned to: a worker that wakes for one check finds others due as well, since sleeping and waking
//! cost more than a check. Must never move a check by more than a 256th of its interval.

use std::time::Duration;

use base::moment::Moment;

/// Longest tick, in milliseconds.
const LONGEST: u64 = 8;

/// Minimum number of ticks per interval.
const BEATS: u32 = 128;

/// Returns the tick nearest to a check's time. All intervals use ticks from one grid, powers of two in milliseconds, and most
/// intervals are multiples of their tick: such a check runs exactly at its configured rate.
pub(super) fn nearest(at: Moment, interval: Duration) -> Moment {
    let Ok(most) = u64::try_from((interval / BEATS).as_millis()) else { return at };
    if most < 2 {
        return at;
    }
    let beat = (1 << most.ilog2()).min(LONGEST) * 1_000_000;
    Moment::from_nanos((at.as_nanos().saturating_add(beat / 2) / beat).saturating_mul(beat))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(at: u64, interval: u64) -> u64 {
        nearest(Moment::from_nanos(at * 1000), Duration::from_millis(interval)).as_nanos() / 1000
    }

    #[test]
    fn a_beat_is_a_small_part_of_the_interval() {
        assert_eq!(micros(1_234_567, 60_000), 1_232_000);
        assert_eq!(micros(1_236_000, 60_000), 1_240_000, "half a beat is rounded up");
        assert_eq!(micros(1_234_567, 2000), 1_232_000);
        assert_eq!(micros(1_234_567, 1000), 1_236_000);
        assert_eq!(micros(1_234_567, 300), 1_234_000);
        assert_eq!(micros(1_234_567, 100), 1_234_567, "nothing is gained by beats of a millisecond");
    }

    #[test]
    fn a_late_start_does_not_make_the_next_check_later() {
        let mut at = 8_000_000;
        for late in [1900, 0, 3999, 700] {
            at += 2_000_000;
            assert_eq!(micros(at + late, 2000), at);
        }
    }
}
