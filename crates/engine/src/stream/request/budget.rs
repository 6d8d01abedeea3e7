//! Charges a stream for the cost of its rules and expressions (`tune.eval.max-time`). Must never end a stream.

use std::time::Duration;

use crate::stream_state::evaluation_cost::EvaluationTime;
use crate::worker::Worker;

impl EvaluationTime {
    /// Charges the work of the current worker since it last read the clock in the same call of its task. `long`: a
    /// potentially long step follows. False: `budget`, the total of the stream, is exhausted.
    ///
    /// Only processor time counts in full, so that a suspended machine ends no request. Reading it is a system call,
    /// which is skipped for short steps while little was spent; wall-clock time of each such step is charged up to an
    /// eighth of the budget.
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
