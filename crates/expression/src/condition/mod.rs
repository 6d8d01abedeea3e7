//! Conditions (configuration manual, sections 7.1 and 7.2): ACLs, and how rules combine them. Must never act on the
//! result.

mod acl;
mod keyword;
mod named;
mod parse;

pub use acl::{Acl, Test};
pub use keyword::{PREDEFINED, Shorthand, shorthands};
pub(crate) use named::AclReference;
pub use parse::{
    AclScope, Acls, ConditionError, LinePosition, ReadTest, SuspectTest, parse_acl, parse_condition, predefined,
};

use crate::sample::{Context, EvalPlace};
use std::sync::Arc;

/// The result of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The condition does not hold.
    No,
    /// The condition holds.
    Yes,
    /// A sample that decides it has not arrived yet.
    Unknown,
}

impl Verdict {
    fn of(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }

    fn not(self) -> Self {
        match self {
            Self::No => Self::Yes,
            Self::Yes => Self::No,
            Self::Unknown => Self::Unknown,
        }
    }
}

/// `if` or `unless` with its ACLs: alternatives (`or`), each a conjunction of terms.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    alternatives: Box<[Box<[Term]>]>,
    unless: bool,
}

/// An ACL within a condition.
#[derive(Debug, Clone, PartialEq)]
struct Term {
    acl: Arc<Acl>,
    negated: bool,
}

impl Condition {
    /// Evaluates the condition. A missing sample makes the result unknown if it decides.
    pub fn evaluate(&self, context: &Context<'_>) -> Verdict {
        let found = match &*self.alternatives {
            // Most conditions are a single ACL.
            [group] if group.len() == 1 => group[0].evaluate(context),
            groups => evaluate_groups(groups, context),
        };
        if self.unless { found.not() } else { found }
    }

    /// Whether the condition holds when no further data will arrive.
    pub fn holds(&self, context: &Context<'_>) -> bool {
        self.evaluate(context) == Verdict::Yes
    }

    /// Returns HAProxy's message about the first ACL with a sample that is not available at that place; the message
    /// names the place `told`. Rules other than those of TCP have no `set`: HAProxy opens a quote before the message then.
    pub fn misfit(&self, place: EvalPlace, told: EvalPlace, set: &str) -> Option<String> {
        let (acl, keyword) = self.terms().find_map(|term| Some((&term.acl, term.acl.misfit(place)?)))?;
        let what = format!("incompatible with '{}'", told.name());
        let (quote, many, stop) = if set.is_empty() { ("'", "s", ".") } else { ("", "", "") };
        Some(match acl.name() {
            None => format!(
                "{quote}anonymous acl will never match{set} because it uses keyword '{keyword}' which is {what}{stop}"
            ),
            Some(name) if acl.never_matches(place) => format!(
                "{quote}acl '{name}' will never match{set} because it only involves keywords that are {what}{stop}"
            ),
            Some(name) => format!("{quote}acl '{name}' involves keyword{many} '{keyword}' which is {what}{stop}"),
        })
    }

    /// Returns a keyword of its ACLs that is not available at that place.
    pub fn unavailable(&self, place: EvalPlace) -> Option<&str> {
        self.terms().find_map(|term| term.acl.misfit(place))
    }

    /// Returns a keyword of its ACLs that means the current proxy.
    pub fn of_current_proxy(&self) -> Option<&str> {
        let mut tests = self.terms().flat_map(|term| term.acl.tests());
        tests.find(|test| test.expression.omits_proxy()).map(|test| &*test.keyword)
    }

    /// Whether it fetches from the raw bytes of a message, which are not available to HTTP rules.
    pub fn asks_for_layer6(&self) -> bool {
        self.terms().any(|term| term.acl.tests().iter().any(|test| test.expression.fetch().is_layer6()))
    }

    fn terms(&self) -> impl Iterator<Item = &Term> {
        self.alternatives.iter().flat_map(|group| group.iter())
    }
}

impl Term {
    #[inline]
    fn evaluate(&self, context: &Context<'_>) -> Verdict {
        let verdict = self.acl.evaluate(context);
        if self.negated { verdict.not() } else { verdict }
    }
}

fn evaluate_groups(groups: &[Box<[Term]>], context: &Context<'_>) -> Verdict {
    let mut found = Verdict::No;
    for group in groups {
        match evaluate_group(group, context) {
            Verdict::Yes => return Verdict::Yes,
            Verdict::Unknown => found = Verdict::Unknown,
            Verdict::No => {}
        }
    }
    found
}

fn evaluate_group(group: &[Term], context: &Context<'_>) -> Verdict {
    let mut found = Verdict::Yes;
    for term in group {
        match term.evaluate(context) {
            Verdict::No => return Verdict::No,
            Verdict::Unknown => found = Verdict::Unknown,
            Verdict::Yes => {}
        }
    }
    found
}

#[cfg(test)]
mod tests;
