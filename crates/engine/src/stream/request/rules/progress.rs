//! How far the rules of a set have come, and why they stopped. Must never evaluate a rule.

use expression::sample::RulePlace;
use policy::rule::{Final, Rule, Wait};

use crate::stream::cache::cache_help::Help;

/// Position in a list of rules whose evaluation can be suspended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Index of the next rule.
    pub(super) next: usize,
    /// Changes that exceed the size limit are skipped (`strict-mode off`).
    pub(super) lenient: bool,
}

impl Progress {
    /// No further rule is evaluated.
    pub const STOPPED: Self = Self { next: usize::MAX, lenient: false };

    /// Returns the configuration line of the last rule that was executed.
    pub fn last_of(self, rules: &[Rule]) -> Option<RulePlace> {
        rules.get(self.next.checked_sub(1)?).map(|rule| rule.place)
    }
}

/// Reason for stopping an evaluation.
pub enum Stop<'r> {
    /// There is no further rule.
    End,
    /// A rule ended it and does not let the message pass.
    Final(&'r Final),
    /// The message has to wait first.
    Wait(&'r Wait),
    /// The task has to yield.
    Yield,
    /// A cache has a response or hints for the client.
    Cache(Help),
    /// A cache has to store the response.
    Store(usize),
}
