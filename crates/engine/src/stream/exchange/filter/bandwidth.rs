//! `filter bwlim-in` and `filter bwlim-out` (configuration manual, section 9.7): limits the bytes of one stream per period. Must
//! never change a byte.
//!
//! Rates are computed as in HAProxy: the bytes of the current period, plus the fraction of the previous one that lies within the
//! sliding window. So a limit's worth of bytes passes at once, and after the first period the rest follows evenly: exactly the
//! limit per period. Held bytes count as sent at the time for which they were scheduled, so that a late timer reduces no
//! throughput.

use std::time::Duration;

use base::buffer::Buffer;
use base::moment::Moment;
use conn::flow::{FilterOutput, forward};
use expression::sample::Direction;
use live::table::Pinned;
use policy::program::Bandwidth;

use super::shared::SharedBandwidthFilter;
use crate::filter::{Filter, FilterContext, Filters, RulePosition};

/// Smallest piece to send without `min-size`: the payload of a TCP segment.
const SEGMENT: u64 = 1_448;

/// Limit and byte counters of a stream.
pub(super) struct BandwidthFilter {
    plan: Bandwidth,
    /// A rule has enabled it.
    enabled: bool,
    limit: u64,
    meter: Meter,
    /// Scheduled release of held bytes: its time, and the minimum number of bytes.
    promise: Option<(Moment, u64)>,
}

/// Enables the bandwidth limit of a filter, by a rule: that number of bytes per period, with the filter's own values for `None`.
/// `entry`: the stick table entry that counts the bytes of all streams with the same limit.
pub fn limit(
    filters: Option<&Filters>,
    position: RulePosition,
    bytes: Option<u64>,
    period: Option<Duration>,
    entry: Option<Pinned>,
) {
    let Some(filters) = filters else { return };
    let set = &mut *filters.borrow_mut();
    let Some(filter) = set.at(position) else { return };
    if let Some(own) = filter.as_kind_mut::<BandwidthFilter>() {
        own.limit(bytes, period);
    } else if let Some(own) = filter.as_kind_mut::<SharedBandwidthFilter>() {
        own.limit(bytes, entry);
    }
}

impl BandwidthFilter {
    pub(super) fn new(plan: Bandwidth) -> Self {
        let meter = Meter { period: nanos(plan.period), start: None, current: 0, previous: 0 };
        Self { plan, enabled: false, limit: plan.limit, meter, promise: None }
    }

    /// Enables it: that number of bytes per period, with its own values for `None`.
    fn limit(&mut self, bytes: Option<u64>, period: Option<Duration>) {
        self.enabled = true;
        self.limit = bytes.unwrap_or(self.plan.limit);
        self.meter.period = nanos(period.unwrap_or(self.plan.period));
        self.promise = None;
    }

    /// Returns the smallest piece to send: all waiting bytes, or at least that number of them.
    fn least(&self, waiting: u64) -> u64 {
        let millisecond = u128::from(self.limit) * 1_000_000 / u128::from(self.meter.period);
        let worth = SEGMENT.min(self.limit / 10).max(u64::try_from(millisecond).unwrap_or(u64::MAX));
        self.plan.min_size.max(worth).clamp(1, self.limit).min(waiting)
    }
}

impl Filter for BandwidthFilter {
    fn wants(&self, direction: Direction) -> bool {
        self.enabled && (direction == Direction::Request) == self.plan.upload
    }

    fn body(
        &mut self,
        _: &FilterContext,
        _: Direction,
        input: &mut Buffer,
        output: &mut Buffer,
        _: bool,
    ) -> FilterOutput {
        if input.is_empty() {
            return FilterOutput::Through;
        }
        let now = rt::now();
        let mut kept = 0;
        if let Some((moment, bytes)) = self.promise {
            if now < moment {
                return FilterOutput::Until(moment);
            }
            self.promise = None;
            self.meter.free(moment, self.limit);
            self.meter.count(bytes);
            kept = bytes;
        }
        let waiting = (input.len() as u64).saturating_sub(kept);
        let free = self.meter.free(now, self.limit);
        let least = self.least(waiting);
        if kept == 0 && free < least {
            let moment = self.meter.free_at(least, self.limit);
            // The rest of a period's limit is sent at its end, if it is large enough.
            let promise = match self.meter.left_at_end(self.limit) {
                (end, left) if end < moment && left >= self.plan.min_size.max(1) => (end, left),
                _ => (moment, least),
            };
            self.promise = Some(promise);
            return FilterOutput::Until(promise.0);
        }
        let most = if free < least { kept } else { kept + free };
        let gone = forward(input, output, usize::try_from(most).unwrap_or(usize::MAX)) as u64;
        self.meter.count(gone.saturating_sub(kept));
        if input.is_empty() { FilterOutput::Through } else { FilterOutput::Again }
    }
}

fn nanos(period: Duration) -> u64 {
    u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).max(1)
}

/// Byte counters of the current and the previous period. The end of a period belongs to it.
struct Meter {
    /// In nanoseconds.
    period: u64,
    /// Start of the current period; `None`: not used yet.
    start: Option<Moment>,
    current: u64,
    previous: u64,
}

impl Meter {
    /// Returns the number of bytes that may pass now.
    fn free(&mut self, now: Moment, limit: u64) -> u64 {
        let start = *self.start.get_or_insert(now);
        let passed = nanos_between(start, now).saturating_sub(1) / self.period;
        if passed > 0 {
            self.previous = if passed == 1 { self.current } else { 0 };
            self.current = 0;
            self.start = Some(start + Duration::from_nanos(passed.saturating_mul(self.period)));
        }
        let left = self.period.saturating_sub(nanos_between(self.start.unwrap_or(now), now));
        let before = u128::from(self.previous) * u128::from(left);
        let before = u64::try_from(before.div_ceil(u128::from(self.period))).unwrap_or(u64::MAX);
        limit.saturating_sub(self.current).saturating_sub(before)
    }

    /// Counts bytes that have passed.
    fn count(&mut self, bytes: u64) {
        self.current = self.current.saturating_add(bytes);
    }

    /// Returns the end of the current period, and the number of bytes that may pass then.
    fn left_at_end(&self, limit: u64) -> (Moment, u64) {
        (self.start.unwrap_or_default() + Duration::from_nanos(self.period), limit.saturating_sub(self.current))
    }

    /// Returns the time at which `wanted` bytes, at most the limit, may pass; after that of [`Meter::free`].
    fn free_at(&self, wanted: u64, limit: u64) -> Moment {
        let start = self.start.unwrap_or_default();
        // The time within a period at which the remaining fraction of `before` is at most `room`.
        let within = |before: u64, room: u64| {
            let share = u128::from(self.period) * u128::from(room) / u128::from(before.max(1));
            self.period - u64::try_from(share).unwrap_or(u64::MAX).min(self.period)
        };
        let room = limit.saturating_sub(wanted);
        let behind = match room.checked_sub(self.current) {
            Some(room) => within(self.previous, room),
            None => self.period.saturating_add(within(self.current, room).max(1)),
        };
        start + Duration::from_nanos(behind)
    }
}

fn nanos_between(from: Moment, to: Moment) -> u64 {
    u64::try_from(to.saturating_since(from).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(nanos: u64) -> Moment {
        Moment::from_nanos(nanos)
    }

    fn meter() -> Meter {
        Meter { period: SECOND, start: None, current: 0, previous: 0 }
    }

    #[test]
    fn a_limit_goes_at_once_and_the_rest_evenly() {
        let mut meter = meter();
        let rows = [(5.0, 100), (5.5, 0), (5.999, 0), (6.0, 0), (6.25, 25), (6.5, 25), (7.0, 50), (7.5, 50), (8.0, 50)];
        for (seconds, expected) in rows {
            let free = meter.free(at((seconds * SECOND as f64) as u64), 100);
            assert_eq!(free, expected, "{seconds}");
            meter.count(free);
        }
        assert_eq!(meter.free(at(100 * SECOND), 100), 100, "after a long pause");
    }

    #[test]
    fn what_is_promised_for_a_moment_is_there_then_and_not_before() {
        let mut seed = 7_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..2_000 {
            let mut meter = Meter { period: 1 + random(3 * SECOND), ..meter() };
            let limit = 1 + random(1_000_000);
            let mut now = at(random(1 << 40));
            for _ in 0..20 {
                let wanted = 1 + random(limit);
                let free = meter.free(now, limit);
                if free >= wanted {
                    meter.count(wanted);
                    continue;
                }
                let then = meter.free_at(wanted, limit);
                assert!(then > now, "{then:?} is not behind {now:?}");
                let before = at(then.as_nanos() - 1);
                if before > now {
                    let mut copy = Meter { ..meter };
                    assert!(copy.free(before, limit) < wanted);
                }
                assert!(meter.free(then, limit) >= wanted, "{wanted} of {limit} in {}", meter.period);
                meter.count(wanted);
                now = then;
            }
        }
    }
}
