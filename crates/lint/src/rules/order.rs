//! Rules that no message reaches, because an earlier rule ends the evaluation for all messages that they are about. Must
//! never report what reading the configuration warns about.

use super::contradictions::{is_steady, normalized};
use crate::finding::Findings;
use crate::model::{Model, Proxy, Statement, StatementKind};
use crate::rule::Rule;
use config::keyword::rule::{
    HTTP_AFTER_RESPONSE, HTTP_REQUEST, HTTP_RESPONSE, QUIC_INITIAL, RuleSets, TCP_REQUEST_CONNECTION,
    TCP_REQUEST_CONTENT, TCP_REQUEST_SESSION, TCP_RESPONSE_CONTENT,
};
use std::collections::BTreeMap;

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
    (StatementKind::Rule(QUIC_INITIAL), false),
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
    // Conjunctions whose messages an earlier rule has ended, and the line of that rule.
    let mut ended: BTreeMap<Vec<String>, u32> = BTreeMap::new();
    for (index, statement) in list.iter().enumerate() {
        let conjunctions = conjunctions(statement);
        if let Some(line) = covering(&conjunctions, &ended, !waits(statement)) {
            let message =
                format!("never reached: the rule in line {line} ends the evaluation whenever this one applies");
            findings.add(statement.line.span, message);
        }
        let line = statement.line.span.line;
        if !ends(model, statement) {
            // It may change what conditions look at.
            if matches!(statement.kind, StatementKind::Rule(_)) {
                ended.clear();
            }
            continue;
        }
        if !is_unconditional(statement) {
            let terms = || statement.condition.iter().flat_map(|condition| condition.terms());
            if terms().all(|term| is_steady(proxy, statement, term)) {
                for terms in conjunctions {
                    ended.entry(terms).or_insert(line);
                }
            }
            continue;
        }
        let is_reported = is_known && statement.condition.is_none();
        if let Some(next) = list.get(index + 1).filter(|_| !is_reported) {
            let message = format!("never reached: the rule in line {line} has no condition and ends the evaluation");
            findings.add(next.line.span, message);
        }
        // One finding says it for all that follow.
        return;
    }
}

/// Returns the alternatives of a condition, each as its sorted terms; a condition whose alternatives have no meaning of
/// their own is one term.
fn conjunctions(statement: &Statement<'_>) -> Vec<Vec<String>> {
    let Some(condition) = &statement.condition else { return Vec::new() };
    let all = normalized(condition);
    if !condition.unless && !waits(statement) {
        return all;
    }
    let word = if condition.unless { "unless" } else { "if" };
    let texts: Vec<String> = all.iter().map(|terms| terms.join(" ")).collect();
    vec![vec![format!("{word} {}", texts.join(" || "))]]
}

/// Returns the line of a rule that has ended every message of these conjunctions. `may_split`: a conjunction is contained
/// in one of its terms.
fn covering(conjunctions: &[Vec<String>], ended: &BTreeMap<Vec<String>, u32>, may_split: bool) -> Option<u32> {
    let line_of = |terms: &Vec<String>| {
        let by_all = ended.get(terms).copied();
        let mut each = terms.iter().filter(|_| may_split).map(|term| ended.get(std::slice::from_ref(term)).copied());
        by_all.or_else(|| each.find_map(|line| line))
    };
    let lines: Option<Vec<u32>> = conjunctions.iter().map(line_of).collect();
    lines?.into_iter().max()
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
        StatementKind::Switching => {
            model.backend(statement.text(0)).is_some_and(|proxy| !proxy.spec.disabled && !proxy.spec.unpublished)
        }
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
