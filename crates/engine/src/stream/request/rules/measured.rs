//! A list of rules on its way where rules are measured. Must never change what a rule does.

use base::Moment;

use super::cost::add;
use super::{RuleRun, RuleStep};
use crate::rule_costs::RuleCost;
use crate::stream::request::evaluate::EvalContext;

impl<'r> RuleRun<'_, 'r> {
    /// Evaluates rules and measures them.
    #[cold]
    pub(super) fn evaluate_measured(&mut self, view: &EvalContext<'_>) -> RuleStep<'r> {
        if let Some((at, since)) = self.open.take() {
            let time = rt::read_clock().saturating_since(since);
            add(self.session, self.rules, at, RuleCost { evaluated: 0, taken: 0, time });
        }
        if self.progress.next >= self.rules.len() {
            return RuleStep::End;
        }
        view.lend(|context| self.walk::<true>(context, view))
    }

    /// Records the evaluation of a rule that began at `since`. A following change of a message is part of its cost.
    pub(super) fn measure(&mut self, at: usize, since: Moment, taken: bool, step: Option<&RuleStep<'_>>) {
        let now = rt::read_clock();
        let cost = RuleCost { evaluated: 1, taken: u64::from(taken), time: now.saturating_since(since) };
        add(self.session, self.rules, at, cost);
        let changes =
            matches!(step, Some(RuleStep::Edit(_) | RuleStep::Effect(_) | RuleStep::Cache(_) | RuleStep::Body(_)));
        self.open = changes.then_some((at, now));
    }
}
