//! The lines of a proxy that have conditions, of all kinds in one form. Must never decide which of them apply.

use super::condition::Condition;
use super::condition_start;
use config::document::Word;
use config::keyword::rule::RuleSets;
use config::spec::{ProxySpec, RuleLineSpec};

/// A line with a condition.
pub struct Statement<'a> {
    pub kind: StatementKind,
    pub line: &'a RuleLineSpec,
    /// The words before the condition, from the action or the target on.
    pub words: &'a [Word],
    pub condition: Option<Condition>,
}

/// The kind of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementKind {
    /// A rule of a rule set.
    Rule(RuleSets),
    /// `redirect`.
    Redirect,
    /// `use_backend`.
    Switching,
    /// `force-be-switch`.
    ForceSwitching,
    /// `use-server`.
    ServerChoice,
    /// `force-persist` and `ignore-persist`.
    Persistence,
    /// `stick`.
    Stick,
    /// `monitor fail`.
    MonitorFail,
    /// `stats admin`.
    StatsAdmin,
    /// `stats http-request`.
    StatsRule,
}

impl Statement<'_> {
    /// Returns the text of a word before the condition; empty after the last one.
    pub fn text(&self, index: usize) -> &str {
        self.words.get(index).map_or("", |word| &word.text)
    }

    /// Returns the name of its action, without parentheses.
    pub fn action(&self) -> &str {
        self.text(0).split('(').next().unwrap_or_default()
    }
}

/// Returns the statements of a proxy; those of one kind are in the order of the file.
pub fn statements(spec: &ProxySpec) -> Vec<Statement<'_>> {
    use StatementKind as Kind;
    let rules = &spec.rules;
    let mut all: Vec<Statement<'_>> = Vec::new();
    all.extend(rules.rules.iter().map(|rule| statement(Kind::Rule(rule.set), &rule.line)));
    let lists = [
        (Kind::Redirect, &rules.redirects),
        (Kind::Switching, &rules.switching),
        (Kind::ForceSwitching, &rules.force_switching),
        (Kind::ServerChoice, &rules.use_server),
        (Kind::Stick, &rules.stick),
        (Kind::MonitorFail, &rules.monitor_fail),
    ];
    for (kind, lines) in lists {
        all.extend(lines.iter().map(|line| statement(kind, line)));
    }
    all.extend(rules.persistence.iter().map(|rule| statement(Kind::Persistence, &rule.line)));
    if let Some(page) = &spec.stats {
        all.extend(page.admin.iter().map(|line| statement(Kind::StatsAdmin, line)));
        all.extend(page.rules.iter().map(|rule| statement(Kind::StatsRule, &rule.line)));
    }
    all
}

fn statement(kind: StatementKind, line: &RuleLineSpec) -> Statement<'_> {
    let at = condition_start(&line.words).unwrap_or(line.words.len());
    let (words, condition) = line.words.split_at(at);
    Statement { kind, line, words, condition: Condition::read(condition) }
}
