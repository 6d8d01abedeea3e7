//! Events of a sliding period in three words: the start of the period (milliseconds, wrapping), its events, and those
//! of the previous period. Must never read a clock.

use base::moment::Moment;

/// A time in milliseconds, wrapping.
#[inline]
pub(super) fn tick(now: Moment) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

/// Returns the time since the begin of a period. Threads read the clock once per iteration: the time of one may precede the begin
/// that another one has set, by less than `SKEW` milliseconds.
#[inline]
pub(super) fn since(begin: u32, now: u32) -> u32 {
    const SKEW: u32 = 60_000;
    let passed = now.wrapping_sub(begin);
    if passed > u32::MAX - SKEW { 0 } else { passed }
}

/// Adds events. A period begins with the first event after a pause.
#[inline]
pub(super) fn add(words: &mut [u32], now: u32, period: u32, events: u32) {
    let [begin, current, previous] = words else { return };
    let passed = since(*begin, now);
    if passed >= period.saturating_mul(2) || (*current == 0 && *previous == 0) {
        (*begin, *current, *previous) = (now, 0, 0);
    } else if passed >= period {
        (*begin, *previous, *current) = (begin.wrapping_add(period), *current, 0);
    }
    *current = current.saturating_add(events);
}

/// Adds up to `wanted` events, if the last period then has at most `limit` and at least `least` may be added. The
/// error: milliseconds until that is possible.
pub(super) fn take(words: &mut [u32], now: u32, period: u32, limit: u32, least: u32, wanted: u32) -> Result<u32, u32> {
    let period = period.max(1);
    let free = limit.saturating_sub(read(words, now, period));
    if free >= least.min(limit).max(1) {
        let taken = free.min(wanted);
        add(words, now, period, taken);
        return Ok(taken);
    }
    let [begin, current, previous] = words else { return Ok(wanted) };
    let passed = since(*begin, now);
    // The events of the ending period, and the time since this one began; there are some, as the limit is reached.
    let (past, events, passed) =
        if passed < period { (*previous, *current, passed) } else { (*current, 0, passed - period) };
    let room = limit.saturating_sub(least.min(limit).max(1));
    // The remaining part of a period at which at most `room` of its events still count: shares are rounded down.
    let left = |past: u32, room: u32| {
        let left = ((u64::from(room) + 1) * u64::from(period) - 1) / u64::from(past.max(1));
        left.min(u64::from(period)) as u32
    };
    let wait = match room.checked_sub(events) {
        Some(room) => period.saturating_sub(left(past, room)).saturating_sub(passed),
        None => (2 * period).saturating_sub(left(events, room)).saturating_sub(passed),
    };
    Err(wait.max(1))
}

/// Removes events that did not happen.
pub(super) fn take_back(words: &mut [u32], events: u32) {
    if let [_, current, _] = words {
        *current = current.saturating_sub(events);
    }
}

/// Sets the number of events, as of now.
pub(super) fn set(words: &mut [u32], now: u32, events: u32) {
    if let [begin, current, previous] = words {
        (*begin, *current, *previous) = (now, events, 0);
    }
}

/// Returns the events of the last period: those of the current one, and the proportionate part of the previous one. A
/// single event counts fully until it expires, as in HAProxy, so that a rate does not oscillate around zero.
#[inline]
pub(super) fn read(words: &[u32], now: u32, period: u32) -> u32 {
    let [begin, current, previous] = words else { return 0 };
    let passed = since(*begin, now);
    let (past, events, left) = match passed {
        _ if passed < period => (*previous, *current, period - passed),
        _ if passed < period.saturating_mul(2) => (*current, 0, 2 * period - passed),
        _ => return 0,
    };
    if past <= 1 && events == 0 {
        return past;
    }
    let share = u64::from(past) * u64::from(left) / u64::from(period.max(1));
    events.saturating_add(share as u32)
}

/// Moves the period on if it has ended. Returns the time until it ends, in milliseconds. `None`: there are no events.
pub(super) fn settle(words: &mut [u32], now: u32, period: u32) -> Option<u32> {
    let [begin, current, previous] = words else { return None };
    let passed = since(*begin, now);
    let (age, events, past) = match passed {
        _ if passed < period => (passed, *current, *previous),
        _ if passed < period.saturating_mul(2) => (passed - period, 0, *current),
        _ => (0, 0, 0),
    };
    (*begin, *current, *previous) = (now.wrapping_sub(age), events, past);
    (events > 0 || past > 0).then(|| period - age)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_fade_over_the_period_behind_theirs() {
        let mut words = [0; 3];
        for _ in 0..8 {
            add(&mut words, 5_000, 2_000, 1);
        }
        let course = [(5_000, 8), (6_999, 8), (7_000, 8), (7_500, 6), (8_000, 4), (8_999, 0), (9_000, 0)];
        for (now, events) in course {
            assert_eq!(read(&words, now, 2_000), events, "{now}");
        }
        add(&mut words, 8_000, 2_000, 2);
        assert_eq!((read(&words, 8_000, 2_000), read(&words, 8_500, 2_000)), (6, 4));
    }

    #[test]
    fn a_single_event_counts_until_it_is_over() {
        let mut words = [0; 3];
        add(&mut words, u32::MAX, 1_000, 1);
        assert_eq!([0, 999, 1_000, 1_998, 1_999].map(|now| read(&words, now, 1_000)), [1, 1, 1, 1, 0]);
    }

    #[test]
    fn no_more_than_a_limit_goes_and_what_waits_goes_as_soon_as_it_may() {
        let mut words = [0; 3];
        let (mut now, mut gone, mut steps) = (1_000, 0, 0);
        while now < 11_000 {
            match take(&mut words, now, 1_000, 100, 10, 1_000) {
                Ok(taken) => gone += taken,
                Err(wait) => {
                    assert!(take(&mut words.clone(), now + wait - 1, 1_000, 100, 10, 1).is_err() || wait == 1);
                    now += wait;
                    steps += 1;
                }
            }
            assert!(read(&words, now, 1_000) <= 100);
        }
        assert!((950..=1_050).contains(&gone) && steps < 120, "{gone} in {steps} steps");
        take_back(&mut words, u32::MAX);
        assert!(read(&words, now, 1_000) <= 100);
    }

    /// Another thread has begun the period at a later time than that of this thread.
    #[test]
    fn a_time_before_the_period_counts_as_its_begin() {
        for begin in [10_000, 0, u32::MAX] {
            let mut words = [begin.wrapping_sub(1_000); 3];
            (words[1], words[2]) = (500, 0);
            add(&mut words, begin, 1_000, 1);
            assert_eq!(words, [begin, 1, 500]);
            let early = begin.wrapping_sub(3);
            add(&mut words, early, 1_000, 1);
            assert_eq!((words, read(&words, early, 1_000)), ([begin, 2, 500], 502));
            assert_eq!(take(&mut words, early, 1_000, 510, 1, 100), Ok(8));
            assert_eq!((settle(&mut words, early, 1_000), words), (Some(1_000), [early, 10, 500]));
            assert_eq!((since(begin, early), since(begin, begin.wrapping_add(7))), (0, 7));
        }
    }

    #[test]
    fn a_pause_begins_a_new_period() {
        let mut words = [0; 3];
        add(&mut words, 100, 1_000, 5);
        add(&mut words, 2_100, 1_000, 1);
        assert_eq!(words, [2_100, 1, 0]);
        set(&mut words, 2_200, 7);
        assert_eq!(read(&words, 3_200, 1_000), 7);
    }
}
