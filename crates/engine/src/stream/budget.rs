//! Charges a stream for the cost of its rules and expressions (`tune.eval.max-time`). Must never end a stream.

use std::time::Duration;

use crate::stream_state::spent::Spent;
use crate::worker::Worker;

impl Spent {
    /// Charges what the current worker has done since it looked at the clock last in the same call of its task. `long`: a
    /// step follows that may take long. False: `budget`, the stream's whole, is used up.
    ///
    /// Only processor time counts in full, so that a machine that stood still ends no request. To read it is a system call,
    /// which is left out for short steps while little was spent; their time counts up to a part of the budget each.
    pub fn charge(&self, worker: &Worker, budget: Duration, long: bool) -> bool {
        let part = budget / 8;
        let since = rt::measure();
        let before = worker.processor_time.take().filter(|(call, _)| *call == rt::calls()).map(|(_, time)| time);
        let is_worth_it = long || self.time.get() >= part;
        let now = (is_worth_it || before.is_some()).then(rt::processor_time);
        if let Some(since) = since {
            let cost = match (before, now) {
                (Some(before), Some(now)) => now.saturating_sub(before),
                _ => since.min(part),
            };
            self.time.set(self.time.get() + cost);
        }
        worker.processor_time.set(now.filter(|_| is_worth_it).map(|now| (rt::calls(), now)));
        self.time.get() < budget
    }
}
