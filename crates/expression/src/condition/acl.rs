//! An ACL: tests under one name, of which one has to match. Must never know the conditions that it stands in.

use super::{Named, Verdict};
use crate::Expression;
use crate::pattern::{Lookup, Method, Steps};
use crate::sample::{Context, EvalPlace, Meter};

/// A named or anonymous ACL.
#[derive(Debug, Clone, PartialEq)]
pub struct Acl {
    name: Option<Box<str>>,
    tests: Vec<Test>,
}

/// One line of an ACL.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    /// What is compared.
    pub expression: Expression,
    /// The first word as it was written: the keyword that messages name.
    pub keyword: Box<str>,
    /// How it is compared.
    pub method: Method,
    /// What it is compared with: the lists of files, then its own.
    pub lists: Box<[Lookup]>,
}

impl Acl {
    /// With its first test; without a name it is anonymous.
    pub fn new(name: Option<&str>, test: Test) -> Self {
        Self { name: name.map(Into::into), tests: vec![test] }
    }

    /// One that was refused: it matches nothing, and nothing with it is served.
    pub(super) fn broken(name: &str) -> Self {
        Self { name: Some(name.into()), tests: Vec::new() }
    }

    /// Its name.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Its tests.
    pub fn tests(&self) -> &[Test] {
        &self.tests
    }

    /// Another line of the same name.
    pub fn add(&mut self, test: Test) {
        self.tests.push(test);
    }

    /// The keyword of the first test that cannot match at that place.
    pub fn misfit(&self, place: EvalPlace) -> Option<&str> {
        self.tests.iter().find(|test| !test.expression.fetch().places.has(place)).map(|test| &*test.keyword)
    }

    /// How many ACLs ask for one another through it, at most, itself included.
    pub fn depth(&self) -> usize {
        let asked = self.tests.iter().flat_map(|test| test.expression.made().map(Named::acl));
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
            // However many values a field has: together they may not take more than one of their length.
            let steps = Steps::for_values(self.lists.len());
            self.expression.each(context, |value| {
                let units = if by_regex { Meter::search(value.size()) } else { Meter::scan(value.size()) };
                // With nothing left to spend no further value is looked at.
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
