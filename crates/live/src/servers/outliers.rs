//! `eject-outliers`, Weir's own: servers whose requests fail, or are slower than those of the others, are ejected for a
//! period. Must never read a clock, and never eject the last server.

use super::Servers;
use crate::{Ejection, Observation, Reason};
use base::moment::Moment;
use config::spec::OutlierSpec;
use std::task::Waker;
use std::time::Duration;

/// Half a window of one server.
#[derive(Debug, Clone, Copy, Default)]
struct Half {
    requests: u32,
    failed: u32,
    /// Timed responses, and their total latency.
    answers: u32,
    nanos: u64,
}

impl Half {
    fn with(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            failed: self.failed.saturating_add(other.failed),
            answers: self.answers.saturating_add(other.answers),
            nanos: self.nanos.saturating_add(other.nanos),
        }
    }

    fn mean(self) -> u64 {
        self.nanos / u64::from(self.answers.max(1))
    }
}

/// The record of a server.
#[derive(Debug, Clone, Copy, Default)]
struct Record {
    /// The current half of the window, and the previous one.
    halves: [Half; 2],
    /// The number of recent ejections; decremented over time.
    level: u32,
    /// The end of its ejection.
    until: Option<Moment>,
    /// When its last ejection ended, or its level was last decremented.
    calm: Moment,
}

/// The records of a backend.
#[derive(Debug)]
pub(super) struct Outliers {
    written: OutlierSpec,
    records: Vec<Record>,
    /// When the current half of the window began.
    began: Moment,
}

/// Number of responses of a server between two latency evaluations.
const LOOK_EVERY: u32 = 16;

impl Outliers {
    pub(super) fn new(written: OutlierSpec) -> Self {
        Self { written, records: Vec::new(), began: Moment::ZERO }
    }

    /// Clears the record of a server.
    pub(super) fn forget(&mut self, server: usize) {
        if let Some(record) = self.records.get_mut(server) {
            *record = Record::default();
        }
    }

    /// Advances to the current half of the window.
    fn roll(&mut self, now: Moment) {
        let half = Duration::from_millis(self.written.window) / 2;
        let age = now.saturating_since(self.began);
        if age < half {
            return;
        }
        let is_recent = age < half * 2;
        let forgiveness = Duration::from_millis(self.written.time);
        for record in &mut self.records {
            record.halves = [Half::default(), if is_recent { record.halves[0] } else { Half::default() }];
            if record.level > 0 && record.until.is_none() && now.saturating_since(record.calm) >= forgiveness {
                record.level -= 1;
                record.calm = now;
            }
        }
        self.began = now;
    }

    /// Records the result of a request.
    fn note(&mut self, server: usize, seen: Observation, now: Moment) {
        self.roll(now);
        if self.records.len() <= server {
            self.records.resize(server + 1, Record::default());
        }
        let half = &mut self.records[server].halves[0];
        half.requests = half.requests.saturating_add(1);
        half.failed = half.failed.saturating_add(u32::from(seen.failed));
        if let Some(took) = seen.took {
            half.answers = half.answers.saturating_add(1);
            half.nanos = half.nanos.saturating_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        }
    }

    fn window(&self, server: usize) -> Half {
        self.records.get(server).map_or_else(Half::default, |record| record.halves[0].with(record.halves[1]))
    }

    /// Returns why a server should be ejected after that request.
    fn reason(&self, server: usize, seen: Observation, others: impl Iterator<Item = usize>) -> Option<Reason> {
        let own = self.window(server);
        if own.requests < self.written.min_requests || self.records[server].until.is_some() {
            return None;
        }
        if let Some(errors) = self.written.errors.filter(|_| seen.failed)
            && u64::from(own.failed) * 100 >= u64::from(errors) * u64::from(own.requests)
        {
            return Some(Reason::Errors { failed: own.failed, of: own.requests });
        }
        let factor = self.written.latency.filter(|_| seen.took.is_some() && own.answers.is_multiple_of(LOOK_EVERY))?;
        let enough = |half: &Half| half.answers >= self.written.min_requests;
        let all = others.map(|other| self.window(other)).filter(enough).fold(Half::default(), Half::with);
        let is_slow = u128::from(own.mean()) * 100 > u128::from(all.mean()) * u128::from(factor);
        (enough(&own) && all.answers > 0 && is_slow).then(|| Reason::Latency {
            mean: Duration::from_nanos(own.mean()),
            others: Duration::from_nanos(all.mean()),
        })
    }

    /// Begins an ejection of a server; returns its duration.
    fn begin(&mut self, server: usize, now: Moment) -> Duration {
        let record = &mut self.records[server];
        record.level = record.level.saturating_add(1);
        let longest = Duration::from_millis(self.written.max_time);
        let period = Duration::from_millis(self.written.time).saturating_mul(record.level).min(longest);
        (record.until, record.halves) = (Some(now + period), [Half::default(); 2]);
        period
    }
}

impl Servers {
    /// Records a response or a failure of a server: updates load balancing, and ejects the server if necessary.
    pub(crate) fn heed(&mut self, server: usize, seen: Observation, now: Moment) -> (Option<Ejection>, Vec<Waker>) {
        if self.servers.get(server).is_none_or(|state| state.removed.is_some()) {
            return (None, Vec::new());
        }
        if let Some(wait) = seen.wait() {
            self.balance.on_answer(server, wait, now);
        }
        let Some(mut outliers) = self.outliers.take() else { return (None, Vec::new()) };
        outliers.note(server, seen, now);
        let peers = self.servers.iter().enumerate().filter(|(other, state)| *other != server && state.candidate);
        let reason = outliers.reason(server, seen, peers.map(|(other, _)| other));
        let found = match reason {
            Some(reason) if self.may_eject(server, outliers.written.max_ejected) => {
                let period = outliers.begin(server, now);
                let wakers = self.set_ejected(server, true, now);
                let ejected = self.servers.iter().filter(|state| state.ejected).count();
                (
                    Some(Ejection { reason, period, until: now + period, ejected, left: self.candidates as usize }),
                    wakers,
                )
            }
            _ => (None, Vec::new()),
        };
        self.outliers = Some(outliers);
        found
    }

    /// Whether the server may be ejected: the limit of ejected servers is not reached, and it is not the only available
    /// one.
    fn may_eject(&self, server: usize, most: u32) -> bool {
        let members = self.servers.iter().filter(|state| state.candidate || state.ejected).count();
        let ejected = self.servers.iter().filter(|state| state.ejected).count();
        let allowed = (members * most as usize / 100).max(1);
        self.servers[server].candidate && self.candidates > 1 && ejected < allowed
    }

    /// Ends the ejection scheduled to end at `until`. False: it has ended already, or is another one.
    pub(crate) fn end_ejection(&mut self, server: usize, until: Moment, now: Moment) -> (bool, Vec<Waker>) {
        let Some(outliers) = &mut self.outliers else { return (false, Vec::new()) };
        let Some(record) = outliers.records.get_mut(server).filter(|record| record.until == Some(until)) else {
            return (false, Vec::new());
        };
        (record.until, record.calm, record.halves) = (None, now, [Half::default(); 2]);
        (true, self.set_ejected(server, false, now))
    }

    /// Ends an ejection by the administrator's command.
    pub(crate) fn pardon(&mut self, server: usize) {
        let record = self.outliers.as_mut().and_then(|outliers| outliers.records.get_mut(server));
        if let Some(record) = record {
            record.until = None;
        }
    }

    fn set_ejected(&mut self, server: usize, ejected: bool, now: Moment) -> Vec<Waker> {
        self.change_state(server, now, |state| state.ejected = ejected)
    }
}
