//! Conditions that never hold, because their terms exclude each other. Must never assume what a value is, only that it has
//! one value at a time.

use crate::finding::Findings;
use crate::model::{Condition, Model, Proxy, Statement, Term, TermKind, Test, predefined};
use crate::rule::Rule;
use config::span::Span;
use expression::pattern::Method;

/// The rules of this family.
pub(super) const TABLE: &[Rule] = &[
    Rule {
        name: "never-true",
        doc: "a condition requires what is always false, so that its line never applies",
        check: never_true,
    },
    Rule {
        name: "contradiction",
        doc: "a condition requires two tests that exclude each other; tests that follow each other all have to match",
        check: contradiction,
    },
];

/// Calls `take` with every conjunction of every condition.
fn each_conjunction(model: &Model<'_>, mut take: impl FnMut(&Proxy<'_>, &Statement<'_>, &[Term])) {
    for proxy in &model.proxies {
        for statement in &proxy.statements {
            for terms in statement.condition.iter().flat_map(|condition| &condition.alternatives) {
                take(proxy, statement, terms);
            }
        }
    }
}

fn never_true(model: &Model<'_>, findings: &mut Findings) {
    each_conjunction(model, |proxy, statement, terms| {
        let is_false = |term: &&Term| constant(proxy, statement, term) == Some(false);
        let Some(term) = terms.iter().find(is_false) else { return };
        let Some(condition) = &statement.condition else { return };
        if condition.alternatives.len() > 1 {
            findings.add(term.span, "this alternative never holds: it requires what is always false");
        } else if !condition.unless {
            findings.add(term.span, "the line never applies: its condition requires what is always false");
        }
    });
}

/// Returns the value of a term that has always the same.
fn constant(proxy: &Proxy<'_>, statement: &Statement<'_>, term: &Term) -> Option<bool> {
    let of_test = |test: &Test| match (test.fetch.as_str(), test.converters().is_empty()) {
        ("always_true", true) => Some(true),
        ("always_false", true) => Some(false),
        _ => None,
    };
    let value = match tests_of(proxy, statement, term).as_slice() {
        [test] => of_test(test),
        _ => None,
    };
    value.map(|value| value != term.negated)
}

/// Returns the tests of a term: one of them has to match.
pub(super) fn tests_of(proxy: &Proxy<'_>, statement: &Statement<'_>, term: &Term) -> Vec<Test> {
    match &term.kind {
        TermKind::Anonymous(test) => vec![Test::clone(test)],
        TermKind::Named(name) => match proxy.acl(name, statement.line.inherited) {
            Some(acl) => acl.tests.clone(),
            None => predefined(name).into_iter().collect(),
        },
    }
}

fn contradiction(model: &Model<'_>, findings: &mut Findings) {
    each_conjunction(model, |proxy, statement, terms| {
        if let Some((span, message)) = conflict(proxy, statement, terms) {
            findings.add_with_hint(
                span,
                message,
                "tests that follow each other all have to match: write '||' between alternatives",
            );
        }
    });
}

/// Returns the first two terms that exclude each other.
fn conflict(proxy: &Proxy<'_>, statement: &Statement<'_>, terms: &[Term]) -> Option<(Span, String)> {
    for (index, second) in terms.iter().enumerate() {
        for first in terms.iter().take(index) {
            let span = Span { start: first.span.start.min(second.span.start), ..second.span };
            let is_same = text_of(first) == text_of(second);
            if is_same && first.negated != second.negated && is_steady(proxy, statement, first) {
                return Some((span, format!("'{}' never holds together with its opposite", text_of(first))));
            }
            if first.negated || second.negated || is_same {
                continue;
            }
            let (one, other) = (tests_of(proxy, statement, first), tests_of(proxy, statement, second));
            if exclude(&one, &other) {
                let (one, other) = (text_of(first), text_of(second));
                return Some((span, format!("'{one}' and '{other}' never match together")));
            }
        }
    }
    None
}

/// Returns a term as written.
pub(super) fn text_of(term: &Term) -> String {
    match &term.kind {
        TermKind::Named(name) => name.clone(),
        TermKind::Anonymous(test) => test.text.clone(),
    }
}

/// Whether a term has the same value each time that it is evaluated for a message.
pub(super) fn is_steady(proxy: &Proxy<'_>, statement: &Statement<'_>, term: &Term) -> bool {
    let changes =
        |name: &str| name == "rand" || name.starts_with("lua.") || name.contains("inc_") || name.contains("clr_");
    let is_steady = |test: &Test| !test.calls.iter().any(|call| changes(&call.name));
    tests_of(proxy, statement, term).iter().all(is_steady)
}

/// Samples with one value for each message of a well-formed client.
const SINGLE: &[&str] =
    &["base", "method", "path", "pathq", "query", "req.ssl_sni", "ssl_fc_sni", "url", "url_param", "urlp", "var"];

/// Whether no value matches a test of each list.
fn exclude(one: &[Test], other: &[Test]) -> bool {
    let pairs = || one.iter().flat_map(|first| other.iter().map(move |second| (first, second)));
    !one.is_empty() && !other.is_empty() && pairs().all(|(first, second)| tests_exclude(first, second))
}

fn tests_exclude(one: &Test, other: &Test) -> bool {
    let is_single = SINGLE.contains(&one.fetch.as_str())
        || (one.fetch == "req.hdr" && one.argument(0).is_some_and(|name| name.eq_ignore_ascii_case("host")));
    let same_sample = is_single && one.fetch == other.fetch && arguments(one) == arguments(other);
    if !same_sample || one.has_files || other.has_files || one.patterns.is_empty() || other.patterns.is_empty() {
        return false;
    }
    let ignores_case = one.ignores_case || other.ignores_case;
    let text = |text: &str| if ignores_case { text.to_ascii_lowercase() } else { text.to_owned() };
    let (Some(first), Some(second)) = (Part::of(one.method), Part::of(other.method)) else { return false };
    one.patterns.iter().all(|a| other.patterns.iter().all(|b| !first.may_share(&text(&a.text), second, &text(&b.text))))
}

/// Returns the arguments of the fetch and the converters, as far as they decide the value.
fn arguments(test: &Test) -> Vec<(Option<Vec<String>>, String)> {
    let names = test.calls.iter().enumerate();
    let lower = |texts: &Vec<String>| texts.iter().map(|text| text.to_ascii_lowercase()).collect();
    names
        .map(|(index, call)| match index {
            // The shorthand of a fetch has another name.
            0 => (call.arguments.as_ref().map(lower), String::new()),
            _ => (call.arguments.clone(), call.name.clone()),
        })
        .collect()
}

/// The part of a value that a pattern is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    Start,
    End,
    Any,
}

impl Part {
    fn of(method: Option<Method>) -> Option<Self> {
        match method? {
            Method::Str => Some(Self::Whole),
            Method::Beg => Some(Self::Start),
            Method::End => Some(Self::End),
            Method::Sub => Some(Self::Any),
            _ => None,
        }
    }

    /// Whether one value may match both patterns.
    fn may_share(self, pattern: &str, second: Self, other: &str) -> bool {
        match (self, second) {
            (Self::Whole, Self::Whole) => pattern == other,
            (Self::Whole, Self::Start) => pattern.starts_with(other),
            (Self::Whole, Self::End) => pattern.ends_with(other),
            (Self::Whole, Self::Any) => pattern.contains(other),
            (_, Self::Whole) => second.may_share(other, self, pattern),
            (Self::Start, Self::Start) => pattern.starts_with(other) || other.starts_with(pattern),
            (Self::End, Self::End) => pattern.ends_with(other) || other.ends_with(pattern),
            _ => true,
        }
    }
}

/// Returns the words of a condition's conjunction, sorted: equal for conditions that mean the same.
pub(super) fn normalized(condition: &Condition) -> Vec<Vec<String>> {
    let term = |term: &Term| format!("{}{}", if term.negated { "!" } else { "" }, text_of(term));
    let conjunction = |terms: &Vec<Term>| {
        let mut words: Vec<String> = terms.iter().map(term).collect();
        words.sort();
        words.dedup();
        words
    };
    condition.alternatives.iter().map(conjunction).collect()
}
