//! When no server of a backend could be used (management manual, `chkdown`, `downtime` and `lastchg` of backends). Plain
//! data; must never decide who can be used.

use base::moment::Moment;
use std::time::Duration;

/// When no server could be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Outages {
    /// How often that began.
    count: u64,
    /// How long it was so, up to the last change.
    total: Duration,
    /// When it last began or ended; `None`: never.
    changed: Option<Moment>,
    /// It is so now, since that change.
    now: bool,
}

impl Outages {
    /// Whether it is so, as of now.
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
    }

    /// The process begins to serve: what is so already has been so since then.
    pub(super) fn begin(&mut self, out: bool, now: Moment) {
        if self.changed.is_none() && out {
            (self.now, self.changed) = (true, Some(now));
        }
    }

    /// Forgets how often it began (`clear counters all`).
    pub(super) fn forget_count(&mut self) {
        self.count = 0;
    }

    /// Sets what a column of the statistics tells, before anything has changed.
    pub(super) fn preset(&mut self, column: &str, value: u64, changed: Moment) {
        match column {
            "chkdown" => self.count = value,
            "lastchg" if self.changed.is_none() => self.changed = Some(changed),
            _ => {}
        }
    }

    /// How often, how long in all up to now, and when that last changed.
    pub(super) fn tell(&self, now: Moment) -> (u64, Duration, Option<Moment>) {
        let current = self.changed.filter(|_| self.now).map_or(Duration::ZERO, |since| now.saturating_since(since));
        (self.count, self.total + current, self.changed)
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
        assert_eq!(outages.tell(at(9)), (0, Duration::from_secs(4), Some(at(5))));
        outages.note(false, at(10));
        assert_eq!(outages.tell(at(90)), (0, Duration::from_secs(5), Some(at(10))));
        outages.note(true, at(100));
        outages.forget_count();
        assert_eq!(outages.tell(at(101)), (0, Duration::from_secs(6), Some(at(100))));
    }
}
