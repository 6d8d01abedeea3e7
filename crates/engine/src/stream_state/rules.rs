//! Results of the rules that ran for a stream. Must never evaluate one.

use std::cell::Cell;

use expression::sample::RulePlace;

use crate::orders::Orders;

/// Results of a stream's rules.
#[derive(Default)]
pub struct RuleResults {
    /// Settings made by rules.
    pub orders: Cell<Orders>,
    /// A rule has denied it.
    pub denied: bool,
    /// A rule has failed.
    pub failed: bool,
    /// An evaluation for it exceeded its cost limit (`sample::Context::exhausted`): it ends with an internal error.
    pub exhausted: Cell<bool>,
    /// The last rule that ended an evaluation.
    pub last_rule: Cell<Option<RulePlace>>,
    /// The rule whose evaluation is suspended.
    pub waiting_rule: Cell<Option<RulePlace>>,
}

impl RuleResults {
    /// Clears what does not require a rule.
    #[inline]
    pub(super) fn clear(&mut self) {
        let Self { orders, denied, failed, exhausted, last_rule, waiting_rule } = self;
        // Cleared by `forget`.
        let _ = (orders, exhausted, last_rule, waiting_rule);
        (*denied, *failed) = (false, false);
    }

    /// Clears the results of rules that had a shared reference.
    pub(super) fn forget(&mut self) {
        self.orders.set(Orders::default());
        self.exhausted.set(false);
        self.last_rule.set(None);
        self.waiting_rule.set(None);
    }

    /// Whether no rule has ended or suspended an evaluation.
    pub(super) fn is_plain(&self) -> bool {
        self.last_rule.get().is_none() && self.waiting_rule.get().is_none()
    }
}
