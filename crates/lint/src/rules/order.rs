//! Rules that no message reaches, because an earlier rule ends the evaluation for all messages that they are about. Must
//! never report what reading the configuration warns about.

use super::contradictions::{is_steady, normalized};
use crate::finding::Findings;
use crate::model::{Model, Proxy, Statement, StatementKind};
use crate::rule::Rule;
use config::keyword::rule::{
    HTTP_AFTER_RESPONSE, HTTP_REQUEST, HTTP_RESPONSE, RuleSets, TCP_REQUEST_CONNECTION, TCP_REQUEST_CONTENT,
    TCP_REQUEST_SESSION, TCP_RESPONSE_CONTENT,
};

/// The rules of this family.
pub(super) const TABLE: &[Rule] = &[
    Rule {
        name: "rule-not-reached",
        doc: "a rule follows one that ends the evaluation for everything that it is about",
        check: not_reached,
    },
    Rule {
        name: "default-backend-not-reached",
        doc: "a 'use_backend' rule without a condition precedes 'default_backend', which is never used",
        check: default_backend,
    },
];

/// Lists of statements that are evaluated in order, and whether reading the configuration warns about rules after an
/// unconditional end.
const LISTS: &[(StatementKind, bool)] = &[
    (StatementKind::Switching, false),
    (StatementKind::Redirect, false),
    (StatementKind::Rule(HTTP_REQUEST), true),
    (StatementKind::Rule(HTTP_RESPONSE), true),
    (StatementKind::Rule(HTTP_AFTER_RESPONSE), true),
    (StatementKind::Rule(TCP_REQUEST_CONNECTION), false),
    (StatementKind::Rule(TCP_REQUEST_SESSION), false),
    (StatementKind::Rule(TCP_REQUEST_CONTENT), false),
    (StatementKind::Rule(TCP_RESPONSE_CONTENT), false),
];

fn not_reached(model: &Model<'_>, findings: &mut Findings) {
    for proxy in &model.proxies {
        for (kind, is_known) in LISTS {
            // Backends ignore the rules that select backends.
            if *kind == StatementKind::Switching && !proxy.has_clients() {
                continue;
            }
            for inherited in [true, false] {
                let list = proxy.statements.iter();
                let list: Vec<_> = list.filter(|one| one.kind == *kind && one.line.inherited == inherited).collect();
                in_list(model, proxy, &list, *is_known, findings);
            }
        }
    }
}

fn in_list(model: &Model<'_>, proxy: &Proxy<'_>, list: &[&Statement<'_>], is_known: bool, findings: &mut Findings) {
    for (index, later) in list.iter().enumerate() {
        let ending = (0..index).find(|at| {
            let earlier = list[*at];
            let between = &list[*at + 1..index];
            let is_reported = is_known && earlier.condition.is_none();
            !is_reported && ends(model, earlier) && covers(proxy, earlier, later, between)
        });
        let Some(earlier) = ending.and_then(|at| list.get(at)) else { continue };
        let line = earlier.line.span.line;
        let message = match is_unconditional(earlier) {
            true => format!("never reached: the rule in line {line} has no condition and ends the evaluation"),
            false => format!("never reached: the rule in line {line} ends the evaluation whenever this one applies"),
        };
        findings.add(later.line.span, message);
        if is_unconditional(earlier) {
            // One finding says it for all that follow.
            return;
        }
    }
}

fn is_unconditional(statement: &Statement<'_>) -> bool {
    match &statement.condition {
        None => true,
        Some(condition) => !condition.unless && normalized(condition).iter().any(|terms| terms == &["TRUE"]),
    }
}

/// Whether a statement ends the evaluation of its list if its condition holds.
fn ends(model: &Model<'_>, statement: &Statement<'_>) -> bool {
    match statement.kind {
        // A closed backend is skipped.
        StatementKind::Switching => model
            .spec
            .proxies
            .iter()
            .any(|proxy| proxy.name.value == statement.text(0) && !proxy.disabled && !proxy.unpublished),
        StatementKind::Redirect => !statement.words.iter().any(|word| word.text == "ignore-empty"),
        StatementKind::Rule(set) => ends_set(set, statement),
        _ => false,
    }
}

fn ends_set(set: RuleSets, statement: &Statement<'_>) -> bool {
    const HTTP: RuleSets = HTTP_REQUEST | HTTP_RESPONSE | HTTP_AFTER_RESPONSE;
    let is_empty_possible = statement.words.iter().any(|word| word.text == "ignore-empty");
    match statement.action() {
        "accept" | "close" => set & !HTTP != 0,
        "allow" | "deny" | "return" | "tarpit" => set & HTTP != 0,
        "redirect" => set & HTTP != 0 && !is_empty_possible,
        "reject" | "silent-drop" => true,
        _ => false,
    }
}

/// Whether an earlier rule applies to everything that a later one applies to.
fn covers(proxy: &Proxy<'_>, earlier: &Statement<'_>, later: &Statement<'_>, between: &[&Statement<'_>]) -> bool {
    if is_unconditional(earlier) {
        return true;
    }
    let (Some(one), Some(other)) = (&earlier.condition, &later.condition) else { return false };
    // A rule in between may change what a condition looks at.
    let is_quiet = between.iter().all(|rule| !matches!(rule.kind, StatementKind::Rule(set) if !ends_set(set, rule)));
    let steady = one.terms().all(|term| is_steady(proxy, earlier, term));
    if one.unless || other.unless || !is_quiet || !steady || waits(later) || waits(earlier) {
        return one.unless == other.unless && is_quiet && steady && normalized(one) == normalized(other);
    }
    let (one, other) = (normalized(one), normalized(other));
    other.iter().all(|terms| one.iter().any(|wider| wider.iter().all(|term| terms.contains(term))))
}

/// Whether a rule may be evaluated again when more data has arrived.
fn waits(statement: &Statement<'_>) -> bool {
    matches!(statement.kind, StatementKind::Rule(TCP_REQUEST_CONTENT | TCP_RESPONSE_CONTENT))
}

fn default_backend(model: &Model<'_>, findings: &mut Findings) {
    for proxy in model.proxies.iter().filter(|proxy| proxy.has_clients()) {
        let Some(line) = proxy.own(&["default_backend"]).last() else { continue };
        let switching = proxy.statements.iter().filter(|one| one.kind == StatementKind::Switching);
        let ending = switching.filter(|one| is_unconditional(one)).find(|one| ends(model, one));
        if let Some(rule) = ending.filter(|rule| rule.text(0) != line.text(1)) {
            let at = rule.line.span.line;
            findings.add(line.whole(), format!("never used: the 'use_backend' rule in line {at} has no condition"));
        }
    }
}
