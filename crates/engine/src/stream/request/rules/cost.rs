//! Measures the cost of rules (`set profiling rules on`): reads the clock before and after each. Must never change the effect of
//! a rule, nor run while nothing is measured.

use base::Moment;
use policy::program::Frontend;
use policy::rule::{PersistOrder, SelectedServer, ServerChoice};

use crate::rule_costs::RuleCost;
use crate::session::Session;
use crate::stream::request::evaluate::EvalContext;

/// Adds to the cost of a rule.
pub fn add<T>(session: &Session, rules: &[T], at: usize, cost: RuleCost) {
    session.worker.rule_costs.add(session.generation().number(), rules, at, cost);
}

/// Measures rules that are evaluated in sequence.
pub struct Laps<'s, 'r, T> {
    session: &'s Session,
    rules: &'r [T],
    since: Moment,
}

impl<'s, 'r, T> Laps<'s, 'r, T> {
    /// Starts before the first rule is evaluated.
    pub fn begin(session: &'s Session, rules: &'r [T]) -> Self {
        Self { session, rules, since: rt::read_clock() }
    }

    /// Records the evaluation of the rule at that index.
    pub fn lap(&mut self, at: usize, taken: bool) {
        let now = rt::read_clock();
        let time = now.saturating_since(std::mem::replace(&mut self.since, now));
        add(self.session, self.rules, at, RuleCost { evaluated: 1, taken: u64::from(taken), time });
    }
}

/// Returns a measurement if rules are measured.
pub fn laps<'s, 'r, T>(session: &'s Session, rules: &'r [T]) -> Option<Laps<'s, 'r, T>> {
    session.worker.rule_costs.is_on().then(|| Laps::begin(session, rules))
}

/// Records the evaluation of the rule at that index, if rules are measured.
pub fn lap<T>(laps: &mut Option<Laps<'_, '_, T>>, at: usize, taken: bool) {
    if let Some(laps) = laps {
        laps.lap(at, taken);
    }
}

/// Evaluates the switching rules ([`Frontend::switch`]).
pub fn switch(view: &EvalContext<'_>, frontend: &Frontend) -> Option<usize> {
    if !view.session.worker.rule_costs.is_on() {
        return view.lend(|context| frontend.switch(context));
    }
    let mut laps = Laps::begin(view.session, &frontend.switching);
    view.lend(|context| frontend.switch_watched(context, &mut |at, taken| laps.lap(at, taken)))
}

/// Evaluates the `use-server` rules ([`ServerChoice::named`]).
pub fn choose(
    view: &EvalContext<'_>,
    choice: &ServerChoice,
    order: Option<PersistOrder>,
    is_usable: impl Fn(usize) -> bool,
) -> Option<SelectedServer> {
    if !view.session.worker.rule_costs.is_on() {
        return view.lend(|context| choice.named(context, order, is_usable));
    }
    let mut laps = Laps::begin(view.session, &choice.rules);
    view.lend(|context| choice.named_watched(context, order, is_usable, &mut |at, taken| laps.lap(at, taken)))
}
