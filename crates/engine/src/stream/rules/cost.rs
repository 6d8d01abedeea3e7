//! Measures what rules cost, where that is asked for: reads the clock before and after each of them. Must never change what a
//! rule does, nor run while nothing is measured.

use std::time::Duration;

use base::Moment;
use policy::program::Frontend;
use policy::rule::{Bound, PersistOrder, ServerChoice};

use super::{Course, RuleStep};
use crate::rule_costs::RuleCost;
use crate::session::Session;
use crate::stream::evaluate::EvalContext;

/// Adds to what a rule of a list has cost.
pub fn add<T>(session: &Session, rules: &[T], at: usize, (evaluated, taken): (u64, u64), time: Duration) {
    let cost = RuleCost { evaluated, taken, time };
    session.worker.rule_costs.add(session.generation().number(), rules, at, cost);
}

impl<'r> Course<'_, 'r> {
    /// The same where rules are measured.
    #[cold]
    pub(super) fn evaluate_measured(&mut self, view: &EvalContext<'_>) -> RuleStep<'r> {
        if let Some((at, since)) = self.open.take() {
            add(self.session, self.rules, at, (0, 0), rt::read_clock().saturating_since(since));
        }
        if self.progress.next >= self.rules.len() {
            return RuleStep::End;
        }
        view.lend(|context| self.walk::<true>(context, view))
    }

    /// A rule has been evaluated, which began at that time. The change of a message that follows is part of its cost.
    pub(super) fn measure(&mut self, at: usize, since: Moment, taken: bool, step: Option<&RuleStep<'_>>) {
        let now = rt::read_clock();
        add(self.session, self.rules, at, (1, u64::from(taken)), now.saturating_since(since));
        let changes =
            matches!(step, Some(RuleStep::Edit(_) | RuleStep::Effect(_) | RuleStep::Cache(_) | RuleStep::Body(_)));
        self.open = changes.then_some((at, now));
    }
}

/// Measures rules that are evaluated one after the other.
pub struct Laps<'s, 'r, T> {
    session: &'s Session,
    rules: &'r [T],
    since: Moment,
}

impl<'s, 'r, T> Laps<'s, 'r, T> {
    /// The first rule is about to be evaluated.
    pub fn begin(session: &'s Session, rules: &'r [T]) -> Self {
        Self { session, rules, since: rt::read_clock() }
    }

    /// The rule at that index has been evaluated.
    pub fn lap(&mut self, at: usize, taken: bool) {
        let now = rt::read_clock();
        let time = now.saturating_since(std::mem::replace(&mut self.since, now));
        add(self.session, self.rules, at, (1, u64::from(taken)), time);
    }
}

/// Measures rules, where that is asked for.
pub fn laps<'s, 'r, T>(session: &'s Session, rules: &'r [T]) -> Option<Laps<'s, 'r, T>> {
    session.worker.rule_costs.is_on().then(|| Laps::begin(session, rules))
}

/// The rule at that index has been evaluated.
pub fn lap<T>(laps: &mut Option<Laps<'_, '_, T>>, at: usize, taken: bool) {
    if let Some(laps) = laps {
        laps.lap(at, taken);
    }
}

/// The proxy that the switching rules lead to ([`Frontend::switch`]).
pub fn switch(view: &EvalContext<'_>, frontend: &Frontend) -> Option<usize> {
    if !view.session.worker.rule_costs.is_on() {
        return view.lend(|context| frontend.switch(context));
    }
    let mut laps = Laps::begin(view.session, &frontend.switching);
    view.lend(|context| frontend.switch_watched(context, &mut |at, taken| laps.lap(at, taken)))
}

/// The server that `use-server` names ([`ServerChoice::named`]).
pub fn choose(
    view: &EvalContext<'_>,
    choice: &ServerChoice,
    order: Option<PersistOrder>,
    is_usable: impl Fn(usize) -> bool,
) -> Option<Bound> {
    if !view.session.worker.rule_costs.is_on() {
        return view.lend(|context| choice.named(context, order, is_usable));
    }
    let mut laps = Laps::begin(view.session, &choice.rules);
    view.lend(|context| choice.named_watched(context, order, is_usable, &mut |at, taken| laps.lap(at, taken)))
}
