//! The bytes and costs of a stream, and the part of them that is counted. Must never change a counter of a proxy.

use std::cell::{Cell, RefCell};

use live::table::Tracking;

use super::evaluation_cost::EvaluationTime;

/// Accounting of a stream.
#[derive(Default)]
pub struct Accounting {
    /// Byte counters so far.
    pub bytes: Flow,
    /// Part of `bytes` that was added to the statistics.
    pub counted: Flow,
    /// Body bytes within `bytes_in` that were counted before the relay began.
    pub early_body: u64,
    /// Length of the body that replaced the received one, before the relay began.
    pub replaced_body: Option<u64>,
    /// Its log line was written before its end.
    pub logged: bool,
    /// CPU time and evaluations.
    pub costs: Costs,
    /// Its entries in stick tables.
    pub tracking: RefCell<Tracking>,
    /// State of counting in tracked entries.
    pub tracked: Tracked,
}

impl Accounting {
    /// Clears all but the results of rules.
    #[inline]
    pub(super) fn clear(&mut self) {
        let Self { bytes, counted, early_body, replaced_body, logged, costs, tracking, tracked } = self;
        // Cleared by `forget_rules`.
        let _ = tracking;
        (*bytes, *counted, *early_body, *replaced_body) = (Flow::default(), Flow::default(), 0, None);
        (*logged, *tracked) = (false, Tracked::default());
        costs.before = rt::TaskCost::default();
    }

    /// Clears the results of rules.
    pub(super) fn forget_rules(&mut self) {
        self.tracking.get_mut().clear();
        self.costs.rules.clear();
        self.costs.log.clear();
    }
}

/// The costs of a stream.
#[derive(Default)]
pub struct Costs {
    /// Cost and number of polls of the session's task when the stream began.
    pub before: rt::TaskCost,
    /// Whether expressions were evaluated for it.
    pub evaluated: Cell<bool>,
    /// The cost of its rules and expressions.
    pub rules: EvaluationTime,
    /// The cost of the expressions in its log lines.
    pub log: EvaluationTime,
}

/// State of a stream's counting in tracked stick table entries.
#[derive(Default)]
pub struct Tracked {
    /// Part of `bytes_in` that was counted.
    pub tracked_in: u64,
    /// Part of `received` that was counted.
    pub tracked_out: u64,
    /// Its request was counted.
    pub request_counted: bool,
    /// A rule has denied its request or required authentication: it counts as an error of the client.
    pub blamed: bool,
    /// A failure of its server was counted.
    pub failure_counted: bool,
}

/// Byte counters of a stream: request from the client and to the server, response from the server and to the client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flow {
    pub bytes_in: u64,
    pub sent: u64,
    pub received: u64,
    pub bytes_out: u64,
}

impl Flow {
    /// Returns the difference to an earlier state.
    #[inline]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            bytes_in: self.bytes_in.wrapping_sub(earlier.bytes_in),
            sent: self.sent.wrapping_sub(earlier.sent),
            received: self.received.wrapping_sub(earlier.received),
            bytes_out: self.bytes_out.wrapping_sub(earlier.bytes_out),
        }
    }
}
