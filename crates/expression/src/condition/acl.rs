//! An ACL: tests of the same name, one of which has to match. Must never depend on the conditions that use it.

use super::{AclReference, Verdict};
use crate::Expression;
use crate::pattern::{Lookup, Method, Steps};
use crate::sample::{Context, EvalPlace, Meter};

/// A named or anonymous ACL.
#[derive(Debug, Clone, PartialEq)]
pub struct Acl {
    name: Option<Box<str>>,
    tests: Vec<Test>,
}

/// One line of an ACL: a criterion, a matching method and patterns.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    /// The criterion: the sample that is matched.
    pub expression: Expression,
    /// The first word as written: the keyword that messages name.
    pub keyword: Box<str>,
    pub method: Method,
    /// The patterns: the lists of files first, then those of the line itself.
    pub lists: Box<[Lookup]>,
}

impl Acl {
    /// Creates an ACL with its first test; without a name it is anonymous.
    pub fn new(name: Option<&str>, test: Test) -> Self {
        Self { name: name.map(Into::into), tests: vec![test] }
    }

    /// An ACL whose definition was rejected: it matches nothing, and a configuration with it is never served.
    pub(super) fn broken(name: &str) -> Self {
        Self { name: Some(name.into()), tests: Vec::new() }
    }

    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub fn tests(&self) -> &[Test] {
        &self.tests
    }

    /// Adds another line of the same name.
    pub fn add(&mut self, test: Test) {
        self.tests.push(test);
    }

    /// Returns the keyword of the first test that is never available at that place.
    pub fn misfit(&self, place: EvalPlace) -> Option<&str> {
        self.tests.iter().find(|test| !test.expression.fetch().places.has(place)).map(|test| &*test.keyword)
    }

    /// The maximum depth of ACLs that evaluate one another through arguments, including this one.
    pub fn depth(&self) -> usize {
        let asked = self.tests.iter().flat_map(|test| test.expression.made().map(AclReference::acl));
        1 + asked.map(Acl::depth).max().unwrap_or(0)
    }

    /// Whether none of its tests can match at that place.
    pub fn never_matches(&self, place: EvalPlace) -> bool {
        self.tests.iter().all(|test| !test.expression.fetch().places.has(place))
    }

    /// Whether one of its tests matches.
    #[inline]
    pub fn evaluate(&self, context: &Context<'_>) -> Verdict {
        if let [test] = &*self.tests {
            return test.evaluate(context);
        }
        let mut found = Verdict::No;
        for test in &self.tests {
            match test.evaluate(context) {
                Verdict::Yes => return Verdict::Yes,
                Verdict::Unknown => found = Verdict::Unknown,
                Verdict::No => {}
            }
        }
        found
    }
}

impl Test {
    #[inline]
    fn evaluate(&self, context: &Context<'_>) -> Verdict {
        context.incomplete.set(false);
        let matched = if self.method == Method::Found {
            self.expression.evaluate(context).is_some()
        } else {
            let by_regex = self.method == Method::Reg;
            // The values of a field share one step budget: together they may not use more than one value of their total
            // length.
            let steps = Steps::for_values(self.lists.len());
            self.expression.each(context, |value| {
                let units = if by_regex { Meter::search(value.size()) } else { Meter::scan(value.size()) };
                // Once the budget is exhausted no further value is evaluated.
                !context.spend(units) || self.lists.iter().any(|list| list.matches(context, value, &steps))
            })
        };
        if context.exhausted.get() {
            return Verdict::No;
        }
        if !matched && context.incomplete.replace(false) {
            return Verdict::Unknown;
        }
        Verdict::of(matched)
    }
}
