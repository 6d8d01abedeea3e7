//! Outages: periods in which no server of a backend was usable (management manual, `chkdown`, `downtime` and `lastchg`
//! of backends). Plain data; must never decide which server is usable.

use base::moment::Moment;
use std::time::Duration;

/// When a server or a backend last became usable or unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LastChange {
    /// The time of the change; `None`: none since the start.
    pub at: Option<Moment>,
    /// `lastchg` was cleared after the change: it is 0 until the next one.
    pub is_cleared: bool,
}

impl LastChange {
    /// The time since the change, or since the start without one; zero if it was cleared.
    pub fn elapsed(&self, start: Moment, now: Moment) -> Duration {
        if self.is_cleared { Duration::ZERO } else { now.saturating_since(self.at.unwrap_or(start)) }
    }
}

/// The outages of a backend: the periods in which no server of it was usable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutageReport {
    /// Outages that began, since the last `clear counters all`.
    pub count: u64,
    /// Their total duration since the start, including the current one.
    pub total: Duration,
    /// When the last one began or ended.
    pub changed: LastChange,
}

/// The outages of a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Outages {
    /// Number of outages begun.
    count: u64,
    /// Total duration, up to the last change.
    total: Duration,
    /// When the last one began or ended; `None`: never.
    changed: Option<Moment>,
    /// `lastchg` was cleared after that change.
    change_is_cleared: bool,
    /// An outage is in progress, since that change.
    now: bool,
}

impl Outages {
    /// Records whether there is an outage, as of now.
    pub(super) fn note(&mut self, out: bool, now: Moment) {
        if self.now == out {
            return;
        }
        match (out, self.changed) {
            (true, _) => self.count += 1,
            (false, Some(since)) => self.total += now.saturating_since(since),
            (false, None) => {}
        }
        (self.now, self.changed) = (out, Some(now));
        self.change_is_cleared = false;
    }

    /// Records the start of the process: an existing outage counts from then on.
    pub(super) fn begin(&mut self, out: bool, now: Moment) {
        if self.changed.is_none() && out {
            (self.now, self.changed) = (true, Some(now));
        }
    }

    /// Clears their number and the time of the last change, but not their duration (`clear counters all`).
    pub(super) fn clear(&mut self) {
        self.count = 0;
        self.change_is_cleared = true;
    }

    /// Sets a column of the statistics before anything has changed.
    pub(super) fn preset(&mut self, column: &str, value: u64, changed: Moment) {
        match column {
            "chkdown" => self.count = value,
            "lastchg" if self.changed.is_none() => self.changed = Some(changed),
            _ => {}
        }
    }

    /// Reports the outages as of `now`.
    pub(super) fn report(&self, now: Moment) -> OutageReport {
        let current = self.changed.filter(|_| self.now).map_or(Duration::ZERO, |since| now.saturating_since(since));
        let changed = LastChange { at: self.changed, is_cleared: self.change_is_cleared };
        OutageReport { count: self.count, total: self.total + current, changed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_that_is_there_at_the_start_lasts_since_then() {
        let at = |seconds| Moment::ZERO + Duration::from_secs(seconds);
        let mut outages = Outages::default();
        outages.begin(true, at(5));
        let check = |outages: &Outages, now, count, total, changed, is_cleared| {
            let changed = LastChange { at: Some(at(changed)), is_cleared };
            assert_eq!(outages.report(at(now)), OutageReport { count, total: Duration::from_secs(total), changed });
        };
        check(&outages, 9, 0, 4, 5, false);
        outages.note(false, at(10));
        check(&outages, 90, 0, 5, 10, false);
        outages.note(true, at(100));
        check(&outages, 101, 1, 6, 100, false);
        outages.clear();
        check(&outages, 102, 0, 7, 100, true);
        outages.note(false, at(103));
        check(&outages, 104, 0, 8, 103, false);
    }
}
